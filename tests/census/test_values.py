"""Values stay off the console; when asked for they go to a file only its owner can read."""

import csv
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import pytest

from discreet.census import Census, IngestReport, InvalidCensus, ingest, validate
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.simulate import simulate

SECRET = "4815162342"
Copy = Callable[[str], Path]
Edit = Callable[[Path, list[Any]], None]
TakeIn = Callable[..., IngestReport]

EDITS: dict[str, list[Any]] = {
    "type": ["persons", 10, "age", SECRET + "x"],
    "range": ["persons", 10, "age", SECRET],
    "code": ["persons", 10, "sex", SECRET],
    "pattern": ["persons", 10, "race_detail_1", SECRET],
    "block": ["units", 4, "block", SECRET + "00000"],
    "unit": ["persons", 10, "unit_id", SECRET],
    "donor": ["persons", 10, "donor_id", SECRET],
    "family-size": ["units", 1, "family_size", "97"],
}


@pytest.mark.parametrize("rule", EDITS)
def test_a_value_is_in_the_file_and_nowhere_else(
    rule: str,
    copied: Copy,
    edit: Edit,
    take_in: TakeIn,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = copied("us")
    edit(folder, EDITS[rule])
    value = EDITS[rule][-1]
    with pytest.raises(InvalidCensus) as error:
        take_in(folder, "us", work=tmp_path / "work", values=True)
    said = str(error.value) + repr(error.value) + "".join(capfd.readouterr())
    said += str(error.value.findings.data())
    assert value not in said.replace("1..97", "")
    path = tmp_path / "work" / "values.csv"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with path.open(newline="") as handle:
        listed = list(csv.DictReader(handle))
    assert value in [row["value"] for row in listed if row["rule"] == rule]


def test_a_file_without_header_does_not_show_its_first_record(
    copied: Copy, take_in: TakeIn, tmp_path: Path
) -> None:
    folder = copied("register")
    path = folder / "persons.csv"
    records = path.read_text().splitlines()[2:]
    path.write_text("\n".join(records) + "\n")
    with pytest.raises(InvalidCensus) as error:
        take_in(folder, "register")
    words = [value for value in records[0].split(",") if len(value) > 2]
    assert not [word for word in words if f" {word} " in str(error.value)]
    assert "column 3" in str(error.value)


def test_without_asking_no_values_are_written(
    copied: Copy, edit: Edit, take_in: TakeIn, tmp_path: Path
) -> None:
    folder = copied("us")
    edit(folder, EDITS["code"])
    with pytest.raises(InvalidCensus):
        take_in(folder, "us", work=tmp_path / "work")
    assert not list(tmp_path.rglob("values.csv"))
    with pytest.raises(BadInput, match="work folder"):
        take_in(folder, "us", values=True)


def test_validate_lists_values_too(
    copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    take_in(copied("us"), "us")
    path = tmp_path / "census" / "persons.parquet"
    older = engine.materialise(engine.read_parquet(path).with_columns(age=nw.lit(200)))
    engine.write_parquet(older, path)
    findings = validate(Census.open(tmp_path / "census", engine), values=tmp_path / "work")
    assert "range" in {item.rule for item in findings.errors}
    with (tmp_path / "work" / "values.csv").open(newline="") as handle:
        listed = [row for row in csv.DictReader(handle) if row["rule"] == "range"]
    assert len(listed) == 21
    assert {row["value"] for row in listed} == {"200"}


def test_a_folder_of_the_user_is_left_as_it_was(tmp_path):
    shared = tmp_path / "shared"
    (shared / "spill").mkdir(parents=True)
    (shared / "spill" / "mine.txt").write_text("x")
    shared.chmod(0o755)
    with pytest.raises(BadInput, match="must be a new one"):
        ingest(tmp_path, tmp_path / "out", schema="register-country", work=shared, values=True)
    assert (shared / "spill" / "mine.txt").exists()
    assert shared.stat().st_mode & 0o777 == 0o755


def test_a_simulated_census_read_again_stays_simulated(tmp_path):
    simulate("tiny", tmp_path / "census", 1)
    ingest(tmp_path / "census", tmp_path / "copy")
    assert Census.open(tmp_path / "copy").origin == "simulated"


def test_printing_a_census_shows_no_record(tmp_path):
    simulate("tiny", tmp_path / "census", 1)
    census = Census.open(tmp_path / "census")
    text = repr(census)
    assert "simulated" in text
    assert "LazyFrame" not in text
    assert "occupied │" not in text
