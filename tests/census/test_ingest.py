"""Reading other people's files: formats, ids, links, keys, and nothing left behind."""

import csv
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import pytest

from discreet.census import Census, IngestReport, InvalidCensus, ingest, read_census, validate
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.files import read_yaml

TABLES = ("geography", "units", "persons")
Copy = Callable[[str], Path]
Edit = Callable[[Path, list[Any]], None]
TakeIn = Callable[..., IngestReport]


def content(folder: Path, engine: Engine) -> dict[str, Any]:
    census = Census.open(folder, engine)
    frames = {name: census.table(name) for name in TABLES}  # type: ignore[arg-type]
    return {n: (dict(f.collect_schema()), engine.rows(f)) for n, f in frames.items()}


def as_parquet(folder: Path, engine: Engine) -> None:
    for path in folder.glob("*.csv"):
        engine.write_parquet(engine.read_csv(path), path.with_suffix(".parquet"))
        path.unlink()


@pytest.mark.parametrize("sample", ["us", "register", "phsafe", "household-rows"])
def test_csv_and_parquet_give_the_same_census(
    sample: str, copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    folder = copied(sample)
    take_in(folder, sample, out=tmp_path / "from-csv", key="k")
    as_parquet(folder, engine)
    take_in(folder, sample, out=tmp_path / "from-parquet", key="k")
    assert content(tmp_path / "from-csv", engine) == content(tmp_path / "from-parquet", engine)
    for path in sorted((tmp_path / "from-csv").iterdir()):
        if path.name != "ingest.json":
            assert path.read_bytes() == (tmp_path / "from-parquet" / path.name).read_bytes()


@pytest.mark.parametrize("separator", ["|", ";", "\t"])
@pytest.mark.parametrize("ending", [".csv", ".txt"])
def test_separators_are_found(
    separator: str, ending: str, copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    folder = copied("phsafe")
    take_in(folder, "phsafe", out=tmp_path / "commas", key="k")
    for path in folder.glob("*.csv"):
        text = path.read_text().replace(",", separator)
        path.unlink()
        path.with_suffix(ending).write_text(text)
    take_in(folder, "phsafe", out=tmp_path / "others", key="k")
    assert content(tmp_path / "commas", engine) == content(tmp_path / "others", engine)


def test_a_table_in_parts_is_one_table_and_findings_name_the_part(
    copied: Copy, edit: Edit, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    folder = copied("us")
    take_in(folder, "us", out=tmp_path / "whole", key="k")
    persons = engine.read_csv(folder / "persons.csv")
    (folder / "persons.csv").unlink()
    first = nw.col("unit_id").is_in(["1", "2", "3"])
    engine.write_parquet(persons.filter(first), folder / "persons" / "a.parquet")
    engine.write_parquet(persons.filter(~first), folder / "persons" / "b.parquet")
    take_in(folder, "us", out=tmp_path / "parts", key="k")
    assert content(tmp_path / "whole", engine) == content(tmp_path / "parts", engine)
    wrong = persons.filter(~first).with_columns(sex=nw.lit("9"))
    engine.write_parquet(wrong, folder / "persons" / "b.parquet")
    with pytest.raises(InvalidCensus) as error:
        take_in(folder, "us", out=tmp_path / "wrong")
    code = next(item for item in error.value.findings.errors if item.rule == "code")
    assert (code.file, code.rows, code.count) == ("persons/b.parquet", (1, 2, 3, 4, 5), 11)


def test_typed_parquet_is_read_like_text(
    copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    folder = copied("register")
    take_in(folder, "register", out=tmp_path / "text", key="k")
    persons = engine.read_csv(folder / "persons.csv")
    typed = persons.with_columns(nw.col("unit_id").cast(nw.Float64), nw.col("age").cast(nw.Float64))
    engine.write_parquet(typed, folder / "persons.parquet")
    (folder / "persons.csv").unlink()
    take_in(folder, "register", out=tmp_path / "typed", key="k")
    assert content(tmp_path / "text", engine) == content(tmp_path / "typed", engine)


def test_the_folder_is_private_and_explains_itself(
    copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    take_in(copied("us"), "us")
    out = tmp_path / "census"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (out, *out.iterdir())}
    assert modes["census"] == 0o700
    assert modes["person-key.txt"] == modes["ingest.json"] == 0o600
    assert read_yaml(out / "census.yaml")["schema_name"] == "us-decennial"
    assert validate(Census.open(out, engine)).items == ()


def test_storage_is_as_small_as_the_range_allows(
    copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    take_in(copied("us"), "us")
    tables = content(tmp_path / "census", engine)
    assert str(tables["units"][0]["unit_id"]) == "Int64"
    assert str(tables["persons"][0]["age"]) == "Int16"
    assert str(tables["persons"][0]["donor_id"]) == "Int64"
    assert str(tables["geography"][0]["latitude"]) == "Float64"


@pytest.mark.parametrize("form", ["house {}", "9999999999999999999{}", "-{}", "0{}"])
def test_other_ids_are_numbered_in_sorted_order(
    form: str, copied: Copy, edit: Edit, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    folder = copied("register")
    for table, rows in (("units", 4), ("persons", 6)):
        for row in range(1, rows + 1):
            with (folder / f"{table}.csv").open(newline="") as handle:
                old = list(csv.DictReader(handle))[row - 1]["unit_id"]
            edit(folder, [table, row, "unit_id", form.format(old)])
    take_in(folder, "register")
    units = content(tmp_path / "census", engine)["units"][1]
    assert [row[0] for row in units] == [1, 2, 3, 4]
    assert [row[2] for row in units] == ["occupied", "vacant", "institution", "occupied"]


def test_the_same_key_gives_the_same_person_keys_in_any_row_order(
    copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    folder = copied("us")
    take_in(folder, "us", out=tmp_path / "first")
    key = (tmp_path / "first" / "person-key.txt").read_text().strip()
    header, *rows = (folder / "persons.csv").read_text().splitlines()
    (folder / "persons.csv").write_text("\n".join([header, *reversed(rows)]) + "\n")
    take_in(folder, "us", out=tmp_path / "second", key=key)
    take_in(folder, "us", out=tmp_path / "third")
    first, second, third = (content(tmp_path / n, engine) for n in ("first", "second", "third"))
    assert first["persons"] == second["persons"]
    assert first["persons"] != third["persons"]


def test_donors_are_named_by_the_new_keys(
    copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    take_in(copied("us"), "us")
    census = Census.open(tmp_path / "census", engine)
    rows = engine.rows(census.frame("persons", ["unit_id", "person_key", "age", "donor_id"]))
    (donor,) = [row[3] for row in rows if row[3] is not None]
    assert [(row[0], row[2]) for row in rows if row[1] == donor] == [(2, 33)]


OPTIONAL = {
    "geography": ["place", "county_subdivision", "aiannh", "school_district", "precinct",
                  "grid_cell", "latitude", "longitude", "rural_urban"],
    "units": ["vacancy", "gq_type", "tenure", "household_type", "household_type2",
              "couple_type", "family_size", "imputed"],
    "persons": ["donor_id", "person_key", "relationship", "race_detail_1", "race_detail_2",
                "ethnicity_detail", "imputed"],
}  # fmt: skip


@pytest.mark.parametrize(("table", "column"), [(t, c) for t, cs in OPTIONAL.items() for c in cs])
def test_optional_columns_may_be_left_out(
    table: str, column: str, copied: Copy, edit: Edit, take_in: TakeIn, tmp_path: Path
) -> None:
    folder = copied("us")
    if column == "person_key":
        edit(folder, ["persons", "drop", "donor_id"])
    edit(folder, [table, "drop", column])
    report = take_in(folder, "us")
    assert report.findings.items == ()
    lacking = set(report.findings.not_checked.values())
    assert lacking <= {f"{table}.{column}"}
    assert bool(lacking) == (column in ("gq_type", "relationship"))


def test_everything_optional_may_be_left_out_at_once(
    copied: Copy, edit: Edit, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    folder = copied("us")
    for table, columns in OPTIONAL.items():
        for column in columns:
            edit(folder, [table, "drop", column])
    take_in(folder, "us")
    census = Census.open(tmp_path / "census", engine)
    assert validate(census).ok
    assert len(engine.rows(census.frame("persons", ["county", "race_group"]))) == 21


def test_persons_without_a_household_link(
    copied: Copy, edit: Edit, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    folder = copied("register")
    edit(folder, ["persons", "add", "cell", "AA01001N4000E3000"])
    edit(folder, ["persons", "drop", "unit_id"])
    report = take_in(folder, "register")
    assert report.findings.ok
    assert report.findings.not_checked["one-head"] == "persons.unit_id"
    census = Census.open(tmp_path / "census", engine)
    assert not census.linked
    assert validate(census).ok
    assert engine.rows(census.frame("persons", ["municipality"]).unique()) == [("AA01001",)]
    edit(folder, ["persons", 2, "cell", "AA01001N9999E9999"])
    with pytest.raises(InvalidCensus) as error:
        take_in(folder, "register", out=tmp_path / "other")
    assert [item.rule for item in error.value.findings.errors] == ["block"]


@pytest.mark.parametrize("left_out", ["units", "persons"])
def test_a_census_of_persons_or_of_units_alone(
    left_out: str, copied: Copy, edit: Edit, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    folder = copied("register")
    edit(folder, ["persons", "add", "cell", "AA01001N4000E3000"])
    (folder / f"{left_out}.csv").unlink()
    report = take_in(folder, "register")
    assert [(i.rule, i.severity) for i in report.findings.items if i.table == left_out] == [
        ("table", "warn")
    ]
    census = Census.open(tmp_path / "census", engine)
    assert validate(census).ok
    assert (census.units is None, census.persons is None) == (
        left_out == "units",
        left_out == "persons",
    )


def test_household_rows_reproduce_every_count(
    copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    folder = copied("household-rows")
    take_in(folder, "household-rows")
    census = Census.open(tmp_path / "census", engine)
    races = ["white", "black", "aian", "asian", "nhpi", "other_race", "two_or_more"]
    wanted = ["unit_id", "size", *races, "hispanics", "adults"]
    counted = sorted(engine.rows(census.frame("units", wanted)))
    names = ["TOTAL", "W", "B", "AI_AN", "AS", "H_PI", "OTH", "TWO_OR_MORE", "NUM_HISP", "18_PLUS"]
    with (folder / "households.csv").open(newline="") as handle:
        given = [tuple(int(row[name]) for name in names) for row in csv.DictReader(handle)]
    assert [row[1:] for row in counted] == given
    assert engine.rows(census.geography.select("population").sort("population")) == [
        (1,), (3,), (6,)
    ]  # fmt: skip


def test_a_layout_of_one_file_takes_the_file_itself(
    copied: Copy, take_in: TakeIn, tmp_path: Path
) -> None:
    folder = copied("household-rows")
    report = take_in(folder / "households.csv", "household-rows")
    assert report.counts == {"geography": 3, "units": 4, "persons": 10}
    with pytest.raises(BadInput, match="name a folder"):
        take_in(folder / "households.csv", "phsafe", out=tmp_path / "other")


def test_phsafe_derivations(copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path) -> None:
    take_in(copied("phsafe"), "phsafe")
    tables = content(tmp_path / "census", engine)
    assert [row[1:] for row in tables["units"][1]] == [
        ("440010301001000", "occupied", "1", "1", "01", "1", 3),
        ("440010301001000", "vacant", None, None, None, None, None),
        ("440010301002000", "occupied", "3", "6", "05", "5", 0),
        ("440030202001003", "group_quarters", None, None, None, None, None),
    ]
    assert [row[-2:] for row in tables["geography"][1]] == [
        ("4459000", None),
        (None, "1234"),
        (None, None),
    ]
    census = Census.open(tmp_path / "census", engine)
    assert not census.schema.persons["sex"].required


ABSENT = {
    "units": ["NPF", "TEN", "FINAL_POP", "HHT2", "CPLT", "HHT"],
    "geo": ["PLACEFP", "AIANNHCE", "REGIONCE", "DIVISIONCE"],
}


@pytest.mark.parametrize(("table", "column"), [(t, c) for t, cs in ABSENT.items() for c in cs])
def test_a_column_of_phsafe_that_nothing_needs_may_be_absent(
    table: str, column: str, copied: Copy, edit: Edit, take_in: TakeIn
) -> None:
    folder = copied("phsafe")
    edit(folder, [table, "drop", column])
    assert take_in(folder, "phsafe").findings.items == ()


def test_phsafe_without_its_optional_columns_derives_kind_and_family_size(
    copied: Copy, edit: Edit, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    folder = copied("phsafe")
    for table, columns in ABSENT.items():
        for column in columns:
            edit(folder, [table, "drop", column])
    assert take_in(folder, "phsafe").findings.items == ()
    census = Census.open(tmp_path / "census", engine)
    assert validate(census).items == ()
    frame = census.frame("units", ["unit_id", "kind", "family_size", "couple_type"])
    wanted = frame.select("unit_id", "kind", "family_size", "couple_type").sort("unit_id")
    assert [row[1:] for row in engine.rows(wanted)] == [
        ("occupied", 3, "1"),
        ("vacant", None, None),
        ("occupied", 0, "5"),
        ("group_quarters", None, None),
    ]


@pytest.mark.parametrize("blank", ["", " ", "  "])
def test_blank_race_and_origin_of_the_householder_mean_none(
    blank: str, copied: Copy, edit: Edit, take_in: TakeIn
) -> None:
    folder = copied("phsafe")
    for row in (2, 4):
        edit(folder, ["units", row, "HHRACE", blank])
        edit(folder, ["units", row, "HHSPAN", blank[:1]])
    assert take_in(folder, "phsafe").findings.items == ()


def test_without_sex_household_types_are_checked_as_far_as_relationships_go(
    copied: Copy, take_in: TakeIn
) -> None:
    not_checked = take_in(copied("phsafe"), "phsafe").findings.not_checked
    assert {"household-type", "household-type2"} <= not_checked.keys()
    assert not {"household-type-members", "household-type2-members"} & not_checked.keys()


def everything_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_failure_leaves_nothing_behind(copied: Copy, edit: Edit, tmp_path: Path) -> None:
    folder = copied("us")
    edit(folder, ["persons", 1, "sex", "9"])
    before = everything_below(tmp_path)
    with pytest.raises(InvalidCensus):
        ingest(folder, tmp_path / "census", schema="us-decennial")
    assert everything_below(tmp_path) == before


def test_a_crash_while_writing_leaves_nothing_behind(
    copied: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied("us")
    before = everything_below(tmp_path)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["discreet.census.ingest"], "write_header", crash)
    with pytest.raises(KeyboardInterrupt):
        ingest(folder, tmp_path / "census", schema="us-decennial")
    assert everything_below(tmp_path) == before


#: Reads a census and stops for good when all but its header is written.
STOPS = """
import pathlib, sys, time
import discreet.census
module = sys.modules["discreet.census.ingest"]
def stop(*_):
    print("written", flush=True)
    time.sleep(600)
module.write_header = stop
source, out = map(pathlib.Path, sys.argv[1:])
discreet.census.ingest(source, out, schema="register-country")
"""


def test_what_a_killed_process_left_is_gone_after_the_next_one(
    copied: Copy, edit: Edit, tmp_path: Path
) -> None:
    folder, out = copied("register"), tmp_path / "census"
    command = [sys.executable, "-c", STOPS, str(folder), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.kill()
    left = [path for path in tmp_path.iterdir() if path != folder]
    assert len(left) == 2  # the half census, and the work folder
    assert any((path / "person-key.txt").exists() for path in left)
    edit(folder, ["persons", 1, "age", "old"])  # also if nothing can be written then
    with pytest.raises(InvalidCensus):
        ingest(folder, out, schema="register-country")
    assert [*tmp_path.iterdir()] == [folder]


def test_success_leaves_only_the_census(copied: Copy, tmp_path: Path) -> None:
    folder = copied("register")
    before = everything_below(tmp_path)
    ingest(folder, tmp_path / "census", schema="register-country")
    added = everything_below(tmp_path) - before
    assert added == {"census"} | {
        f"census/{name}"
        for name in (
            "census.yaml", "schema.yaml", "geography.parquet", "units.parquet",
            "persons.parquet", "person-key.txt", "ingest.json",
        )
    }  # fmt: skip


def test_what_is_refused_before_any_reading(
    copied: Copy, take_in: TakeIn, tmp_path: Path, engine: Engine
) -> None:
    folder = copied("us")
    full = tmp_path / "full"
    full.mkdir()
    (full / "x").touch()
    with pytest.raises(BadInput, match="not empty"):
        take_in(folder, "us", out=full)
    with pytest.raises(BadInput, match="does not exist"):
        take_in(folder, "us", out=tmp_path / "no" / "census")
    with pytest.raises(BadInput, match="does not exist"):
        take_in(tmp_path / "nowhere", "us")
    with pytest.raises(BadInput, match="name one"):
        ingest(folder, tmp_path / "census", engine=engine)
    with pytest.raises(BadInput, match="empty"):
        take_in(folder, "us", key="")
    with pytest.raises(BadInput, match="simulated, supplied, released"):
        take_in(folder, "us", origin="made-up")
    with pytest.raises(BadInput, match="simulated, supplied, released"):
        read_census(folder, schema="us-decennial", origin="made-up", engine=engine)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="Did you mean 'phsafe'"):
        take_in(folder, "us", layout="phsave")
    (folder / "units.psv").touch()
    with pytest.raises(BadInput, match=r"units\.csv, units\.psv"):
        take_in(folder, "us")
    (folder / "units.psv").unlink()
    (folder / "geography.csv").unlink()
    with pytest.raises(BadInput, match="no file for geography"):
        take_in(folder, "us")


def test_a_folder_that_brings_its_schema_needs_no_other(
    copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    take_in(copied("register"), "register", out=tmp_path / "first", key="k")
    ingest(tmp_path / "first", tmp_path / "again", engine=engine, key="k")
    assert content(tmp_path / "first", engine) == content(tmp_path / "again", engine)


def test_the_key_of_a_person_does_not_depend_on_other_units(
    copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    """Else the order in which members are truncated would depend on other records."""
    folder = copied("us")
    for table in ("units", "persons"):
        header, *rows = (folder / f"{table}.csv").read_text().splitlines()
        (folder / f"{table}.csv").write_text("\n".join([header, *(f"u{row}" for row in rows)]))
    take_in(folder, "us", out=tmp_path / "one", key="k")
    with (folder / "units.csv").open("a") as units:
        units.write("\na0,440010301001000,vacant,1,,,,,,,0\n")  # sorts before all others
    take_in(folder, "us", out=tmp_path / "other", key="k")

    def keys(name: str) -> list[tuple[int, ...]]:
        persons = engine.read_parquet(tmp_path / name / "persons.parquet")
        return sorted(engine.rows(persons.select("person_key")))

    assert len(keys("one")) > 1
    assert keys("one") == keys("other")


@pytest.mark.parametrize("own", [False, True])
def test_a_folder_that_is_not_utf8_is_refused_and_nothing_is_left(
    own: bool, copied: Copy, take_in: TakeIn, tmp_path: Path
) -> None:
    folder, other = copied("us"), tmp_path / os.fsdecode(b"n\xff")
    other.mkdir()
    options = {"engine": None} if own else {}
    with pytest.raises(BadInput, match="not UTF-8"):
        take_in(folder, "us", out=other / "census", **options)
    assert list(other.iterdir()) == []


@pytest.mark.parametrize("name", ["source", "out", "work"])
def test_a_path_that_no_file_can_have_is_refused(
    name: str, copied: Copy, take_in: TakeIn, tmp_path: Path
) -> None:
    paths = {"source": copied("us"), "out": tmp_path / "out", "work": tmp_path / "work"}
    paths[name] = tmp_path / "a\0b"
    with pytest.raises(BadInput, match="NUL"):
        take_in(paths.pop("source"), "us", **paths)
