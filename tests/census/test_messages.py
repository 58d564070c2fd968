"""Findings speak of the files that somebody has: their columns, and the file that lacks a row."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.census import Census, Findings, IngestReport, read_census, validate
from discreet.engine import Engine
from discreet.errors import UnreadableFile

Copy = Callable[[str], Path]
Edit = Callable[[Path, list[Any]], None]
Found = Callable[..., Findings]

#: An edit of the files, and the columns that are shown then.
SHOWN = {
    "race (CENRACE)": ["persons", 3, "CENRACE", "99"],
    "size, stated_size (FINAL_POP)": ["units", 1, "FINAL_POP", "4"],
    "unit_id (MAFID)": ["persons", 1, "MAFID", ""],
    "kind (RTYPE, HHT of units.csv)": ["persons", 1, "RTYPE", "5"],
    "geo_record_type (RTYPE of geo.csv), record_type (RTYPE)": ["geo", 4, "RTYPE", "2"],
    "kind (RTYPE, HHT)": ["units", 4, "RTYPE", "3"],
    "region (REGIONCE)": ["geo", 1, "REGIONCE", "5"],
}


@pytest.mark.parametrize("shown", SHOWN)
def test_columns_of_the_file_are_shown(shown: str, copied: Copy, edit: Edit, found: Found) -> None:
    folder = copied("phsafe")
    edit(folder, SHOWN[shown])
    findings = found(folder, "phsafe")
    assert f"  {shown}  " in findings.text()
    assert "(" not in "".join(item.column for item in findings.items)


@pytest.mark.parametrize("sample", ["us", "register"])
def test_a_namesake_is_not_shown_twice(sample: str, copied: Copy, edit: Edit, found: Found) -> None:
    folder = copied(sample)
    edit(folder, ["persons", 1, "age", "999"])
    (item,) = [item for item in found(folder, sample).errors if item.rule == "range"]
    assert (item.column, item.shown, item.made_of) == ("age", "age", {})


def test_the_record_keeps_the_columns_of_the_file_apart(
    copied: Copy, edit: Edit, take_in: Callable[..., IngestReport], engine: Engine, tmp_path: Path
) -> None:
    folder, waivers = copied("phsafe"), tmp_path / "waivers.yaml"
    edit(folder, ["persons", 3, "CENRACE", "99"])
    waiver = "{rule: code, table: persons, column: race, reason: as it was returned, by: us}"
    waivers.write_text(f"- {waiver}\n")
    take_in(folder, "phsafe", waivers=waivers)
    (item,) = json.loads((tmp_path / "census" / "ingest.json").read_text())["findings"]
    assert (item["column"], item["made_of"]) == ("race", {"race": "CENRACE"})
    assert validate(Census.open(tmp_path / "census", engine)).ok


def test_counted_persons_show_the_columns_of_counts(copied: Copy, edit: Edit, found: Found) -> None:
    folder = copied("household-rows")
    edit(folder, ["households", 1, "W", "many"])
    (item,) = [item for item in found(folder, "household-rows").errors if item.rule == "type"]
    assert item.shown == "W"


@pytest.mark.parametrize("column", ["QAGE", "CENRACE"])
def test_an_unknown_column_is_told_with_the_missing_ones(
    column: str, copied: Copy, edit: Edit, found: Found
) -> None:
    folder = copied("phsafe")
    edit(folder, ["persons", "rename", column, "mystery"])
    findings = found(folder, "phsafe")
    (unknown,) = [item for item in findings.items if item.rule == "unknown-column"]
    assert unknown.title.endswith(f"; columns wanted and missing: {column}")
    assert "mystery" not in findings.text()


def test_an_unknown_column_where_none_is_missing(copied: Copy, edit: Edit, found: Found) -> None:
    folder = copied("phsafe")
    edit(folder, ["units", "add", "mystery", "1"])
    edit(folder, ["persons", "drop", "QAGE"])  # of another file
    (unknown,) = [i for i in found(folder, "phsafe").items if i.rule == "unknown-column"]
    assert "missing" not in unknown.title


def test_an_orphan_is_told_once(copied: Copy, edit: Edit, found: Found) -> None:
    folder = copied("phsafe")
    for row in (5, 6):
        edit(folder, ["persons", row, "MAFID", "100000009"])
    edit(folder, ["units", 4, "FINAL_POP", "0"])
    assert [(i.rule, i.count) for i in found(folder, "phsafe").errors] == [("unit", 2)]
    edit(folder, ["persons", 5, "CENRACE", "99"])  # what is wrong with its own row stays
    edit(folder, ["persons", 1, "RTYPE", "5"])  # and what is wrong with others
    rules = [(i.rule, i.rows) for i in found(folder, "phsafe").errors]
    assert rules == [("unit", (5, 6)), ("code", (5,)), ("quarters-record", (1,))]


def test_the_file_that_lacks_a_row_is_named(copied: Copy, edit: Edit, found: Found) -> None:
    folder = copied("phsafe")
    edit(folder, ["geo", "delete", 2])
    errors = found(folder, "phsafe").errors
    missing = [item for item in errors if item.rule == "missing"]
    assert {item.column for item in missing} == {"block", "geo_record_type"}
    assert all("geo.csv has a row with the same MAFID" in item.title for item in missing)
    assert all("geo.csv" in item.shown for item in errors)


def test_an_own_value_that_is_missing_names_no_other_file(
    copied: Copy, edit: Edit, found: Found
) -> None:
    folder = copied("phsafe")
    edit(folder, ["units", 1, "TEN", "0"])
    (item,) = found(folder, "phsafe").errors
    assert (item.title, item.shown) == ("the value is there", "tenure (TEN)")


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_is_called_empty(content: bytes, copied: Copy, engine: Engine) -> None:
    folder = copied("phsafe")
    (folder / "geo.csv").write_bytes(content)
    with pytest.raises(UnreadableFile, match=r"geo\.csv: is empty\."):
        read_census(folder, layout="phsafe", engine=engine)
