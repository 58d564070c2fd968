"""Waivers: a recorded reason lets a finding pass; the model itself cannot be waived."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from discreet.census import Census, IngestReport, InvalidCensus, read_waivers, validate
from discreet.census.schema import load_schema
from discreet.config import BadConfig
from discreet.engine import Engine
from discreet.errors import BadInput

REASON = "The edited file is final; checked with the county on 3 May."
GOOD = {"rule": "age-of-parent", "table": "persons", "reason": REASON, "by": "A. Clerk"}
Copy = Callable[[str], Path]
Edit = Callable[[Path, list[Any]], None]
TakeIn = Callable[..., IngestReport]


def write(path: Path, *waivers: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(list(waivers)))
    return path


def test_a_waived_rule_is_kept_with_its_reason(
    copied: Copy, edit: Edit, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    folder = copied("us")
    edit(folder, ["persons", 13, "age", "29"])
    with pytest.raises(InvalidCensus, match="age-of-parent"):
        take_in(folder, "us")
    waivers = write(tmp_path / "waivers.yaml", GOOD)
    (item,) = take_in(folder, "us", waivers=waivers).findings.items
    assert (item.severity, item.reason, item.by) == ("waived", REASON, "A. Clerk")
    record = json.loads((tmp_path / "census" / "ingest.json").read_text())
    assert record["waivers"][0]["reason"] == REASON
    assert record["findings"][0]["severity"] == "waived"
    census = Census.open(tmp_path / "census", engine)
    assert not validate(census, []).ok
    findings = validate(census)
    assert findings.ok
    assert validate(census, waivers) == findings
    assert REASON in findings.text()


def test_a_waiver_for_one_column_leaves_the_others(
    copied: Copy, edit: Edit, take_in: TakeIn, tmp_path: Path
) -> None:
    folder = copied("us")
    edit(folder, ["persons", 1, "race", ""])
    edit(folder, ["persons", 1, "hispanic", ""])
    one = {**GOOD, "rule": "missing", "column": "race"}
    waivers = write(tmp_path / "waivers.yaml", one)
    with pytest.raises(InvalidCensus) as error:
        take_in(folder, "us", waivers=waivers)
    assert [item.column for item in error.value.findings.errors] == ["hispanic"]


def test_a_waived_number_out_of_range_is_stored_whole(
    copied: Copy, edit: Edit, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    folder = copied("us")
    edit(folder, ["persons", 15, "age", "123456789"])
    waivers = write(
        tmp_path / "waivers.yaml",
        {**GOOD, "rule": "range", "column": "age"},
        {**GOOD, "rule": "age-in-prison"},
    )
    take_in(folder, "us", waivers=waivers)
    persons = Census.open(tmp_path / "census", engine).table("persons")
    assert (123456789,) in engine.rows(persons.select("age"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"reason": ""}, "reason"),
        ({"reason": "  ok   "}, "reason"),
        ({"by": " "}, "by"),
        ({"rule": "age-of-parents"}, "Did you mean 'age-of-parent'"),
        ({"rule": "unique"}, "cannot be waived"),
        ({"rule": "type"}, "cannot be waived"),
        ({"rule": "block"}, "cannot be waived"),
        ({"table": "person"}, "table"),
        ({"table": "units"}, "is about persons"),
        ({"column": "aeg"}, "Did you mean 'age'"),
        ({"colum": "age"}, "unknown key"),
        ({"reason": None}, "reason"),
    ],
)
def test_a_bad_waiver_is_refused(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = write(tmp_path / "waivers.yaml", {**GOOD, **change})
    with pytest.raises(BadConfig, match=says):
        read_waivers(path, load_schema("us-decennial"))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format_version": 2}', '{"format_version": 1, "waivers": 3}']
)
def test_a_damaged_record_of_waivers_is_refused(
    text: str, copied: Copy, take_in: TakeIn, engine: Engine, tmp_path: Path
) -> None:
    take_in(copied("register"), "register")
    (tmp_path / "census" / "ingest.json").write_text(text)
    with pytest.raises(BadInput):
        validate(Census.open(tmp_path / "census", engine))


@pytest.mark.parametrize("text", ["rule: x", "", "- 3", "- [a]", "'text'", "- &a [*a]"])
def test_a_waiver_file_that_is_no_list_of_waivers_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "waivers.yaml").write_text(text)
    with pytest.raises(BadInput):
        read_waivers(tmp_path / "waivers.yaml", load_schema("us-decennial"))
