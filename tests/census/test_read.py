"""A census read without storing it is the census that `ingest` would have stored."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pytest

from discreet.census import (
    Census,
    InvalidCensus,
    check_structure,
    load_schema,
    read_census,
    validate,
    with_person_key,
)
from discreet.engine import Engine, Frame
from discreet.errors import BadInput, UnreadableFile
from discreet.products.invariants import differing_cells
from discreet.spec import MarginalTable

Copy = Callable[[str], Path]
TakeIn = Callable[..., Any]
Layouts = dict[str, dict[str, Any]]


def content(census: Census) -> dict[str, tuple[list[str], list[tuple[Any, ...]]]]:
    """Return the columns and the sorted rows of every table, with types."""
    found = {}
    for name in ("geography", "units", "persons"):
        frame: Frame | None = getattr(census, name)
        if frame is not None:
            types = sorted(f"{column} {dtype}" for column, dtype in frame.collect_schema().items())
            ordered = frame.select(*sorted(frame.collect_schema().names()))
            found[name] = types, sorted(map(repr, census.engine.rows(ordered)))
    return found


@pytest.mark.parametrize("sample", ["us", "register", "phsafe", "household-rows"])
def test_read_and_stored_agree(
    sample: str, copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path, layouts: Layouts
) -> None:
    folder = copied(sample)
    take_in(folder, sample, key="k")
    stored = Census.open(tmp_path / "census", engine)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    read = read_census(folder, engine=engine, key="k", **layouts[sample])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    keyed = read.keyed()
    assert content(keyed) == content(stored)
    assert keyed.keyed() is keyed
    assert (read.schema, read.origin, read.banner) == (stored.schema, stored.origin, stored.banner)
    check_structure(read)
    assert validate(read).ok
    assert "'k'" not in repr(read)


def test_keys_of_members_are_those_of_all(copied: Copy, engine: Engine) -> None:
    read = read_census(copied("phsafe"), layout="phsafe", engine=engine, key="k")
    assert read.persons is not None
    assert "person_key" not in read.persons.collect_schema().names()
    every = engine.rows(read.keyed().frame("persons", ["unit_id", "person_key"]))
    (one, *_) = sorted({row[0] for row in every})
    alone = read.members(read.table("units").filter(nw.col("unit_id") == one))
    found = engine.rows(alone.frame("persons", ["unit_id", "person_key"]))
    assert sorted(found) == sorted(row for row in every if row[0] == one)


def test_ids_that_are_no_numbers_have_their_keys_at_once(
    copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path, layouts: Layouts
) -> None:
    folder = copied("register")
    for path in (folder / "units.csv", folder / "persons.csv"):
        header, *rows = path.read_text().splitlines()
        at = header.split(",").index("unit_id")
        parts = [row.split(",") for row in rows]
        for part in parts:
            part[at] = f"u{part[at]}"
        path.write_text("\n".join([header, *(",".join(part) for part in parts)]) + "\n")
    take_in(folder, "register", key="k")
    read = read_census(folder, engine=engine, key="k", **layouts["register"])
    assert read.key is None
    assert content(read) == content(Census.open(tmp_path / "census", engine))


def test_what_ingest_refuses_is_refused(copied: Copy, engine: Engine, tmp_path: Path) -> None:
    folder = copied("phsafe")
    text = (folder / "persons.csv").read_text()
    header, _, *rest = text.splitlines()
    (folder / "persons.csv").write_text("\n".join([header, *rest]) + "\n")
    with pytest.raises(InvalidCensus, match="stated-size"):
        read_census(folder, layout="phsafe", engine=engine)
    (folder / "persons.csv").write_text(text + "1,2\n")
    with pytest.raises(UnreadableFile, match=r"persons\.csv"):
        read_census(folder, layout="phsafe", engine=engine)
    with pytest.raises(BadInput, match="empty"):
        read_census(folder, layout="phsafe", engine=engine, key="")
    shutil.rmtree(folder)
    with pytest.raises(BadInput, match="does not exist"):
        read_census(folder, layout="phsafe", engine=engine)


def test_identical_persons_have_keys_of_their_own(engine: Engine) -> None:
    """Records are numbered among those identical to them, whatever others there are."""
    random = np.random.default_rng(1)
    units, ages = random.integers(1, 40, 3000), random.integers(0, 3, 3000)
    columns = {"unit_id": units, "age": ages.astype(np.int16)}
    schema = load_schema("us-decennial")
    keyed = with_person_key(engine, engine.from_numpy(columns), schema, "k")
    rows = engine.rows(keyed.select("unit_id", "age", "person_key"))
    assert len(rows) == 3000
    found: dict[tuple[int, int], set[int]] = {}
    for unit, age, key in rows:
        found.setdefault((unit, age), set()).add(key)
    # As the rule says: the key of record and ordinal, one by one.
    for (unit, age), keys in found.items():
        many = int(((units == unit) & (ages == age)).sum())
        listed = {"unit_id": np.full(many, unit), "age": np.full(many, age)}
        listed["ordinal"] = np.arange(1, many + 1)
        said = engine.order_key(
            engine.from_numpy(listed), ["unit_id", "age", "ordinal"], "k", "key"
        )
        assert keys == {row[0] for row in engine.rows(said.select("key"))}


@pytest.mark.parametrize("bits", [4, 60])
def test_different_records_may_share_a_key(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, bits: int
) -> None:
    """With few bits keys meet all the time; ordinals count identical records all the same."""
    random = np.random.default_rng(2)
    columns = {"unit_id": random.integers(1, 9, 300), "age": random.integers(0, 9, 300)}
    true_key = Engine.order_key

    def short_key(self: Engine, frame: Frame, of: list[str], key: str, name: str) -> Frame:
        keyed = true_key(self, frame, of, key, name)
        return keyed.with_columns((nw.col(name) % 2**bits).alias(name))

    monkeypatch.setattr(Engine, "order_key", short_key)
    frame = engine.from_numpy(columns)
    keyed = with_person_key(engine, frame, load_schema("us-decennial"), "k")
    ranked = frame.with_columns(_one=nw.lit(1)).with_columns(
        _ordinal=nw.col("_one").rank("ordinal").over("unit_id", "age")
    )
    said = engine.order_key(ranked, ["unit_id", "age", "_ordinal"], "k", "person_key")
    names = ["unit_id", "age", "person_key"]
    assert sorted(engine.rows(keyed.select(*names))) == sorted(engine.rows(said.select(*names)))


def test_units_alone_are_read(
    copied: Copy, engine: Engine, take_in: TakeIn, tmp_path: Path
) -> None:
    folder = copied("register")
    (folder / "persons.csv").unlink()
    take_in(folder, "register")
    read = read_census(folder, engine=engine, schema="register-country")
    assert read.persons is None
    assert content(read) == content(Census.open(tmp_path / "census", engine))


def test_keys_are_made_for_whoever_asks(copied: Copy, engine: Engine) -> None:
    read = read_census(copied("phsafe"), layout="phsafe", engine=engine, key="k")
    asked = engine.rows(read.frame("persons", ["person_key"], where={"kind": ["occupied"]}))
    assert len({row[0] for row in asked}) == len(asked) > 1
    everybody = MarginalTable(name="persons", of="persons", level="all")
    assert differing_cells(everybody, read, read.keyed()) == 0


def test_warnings_and_waivers_stay_with_the_census(copied: Copy, engine: Engine) -> None:
    folder = copied("register")
    text = (folder / "persons.csv").read_text().splitlines()
    at = text[0].split(",").index("age")
    row = text[1].split(",")
    row[at] = "140"
    (folder / "persons.csv").write_text("\n".join([text[0], ",".join(row), *text[2:]]) + "\n")
    waivers = folder / "waivers.yaml"
    waivers.write_text(
        "- {rule: range, table: persons, reason: checked by hand twice, by: the office}\n"
    )
    read = read_census(folder, schema="register-country", waivers=waivers, engine=engine)
    assert read.findings is not None
    assert [item.rule for item in read.findings.items if item.severity == "waived"] == ["range"]
    assert validate(read).ok
    assert not validate(read, waivers=[]).ok
