"""Every check finds its planted violation, names it, and shows no value."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from discreet.census import Findings, IngestReport, load_layout, load_schema

VIOLATIONS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "violations.yaml").read_text()
)


def name(case: dict[str, Any]) -> str:
    edited = "-".join(str(part) for part in case["edits"][0][1:3])
    return f"{case['sample']}:{case['rule']}:{edited}"


@pytest.mark.parametrize("case", VIOLATIONS, ids=name)
def test_a_planted_violation_is_found(
    case: dict[str, Any],
    copied: Callable[[str], Path],
    edit: Callable[[Path, list[Any]], None],
    found: Callable[..., Findings],
    tmp_path: Path,
) -> None:
    folder = copied(case["sample"])
    for change in case["edits"]:
        edit(folder, change)
    findings = found(folder, case["sample"])
    match = [
        item
        for item in findings.items
        if item.rule == case["rule"] and case.get("column", item.column) == item.column
    ]
    assert len(match) == 1, findings.text()
    assert match[0].table == case["table"]
    assert match[0].severity == case.get("severity", "error")
    assert list(match[0].rows) == case["rows"]
    assert match[0].count == max(1, len(case["rows"]))
    assert (tmp_path / "census").exists() == findings.ok


@pytest.mark.parametrize("sample", ["us", "register", "phsafe", "household-rows"])
def test_the_samples_themselves_are_valid(
    sample: str, copied: Callable[[str], Path], take_in: Callable[..., IngestReport]
) -> None:
    report = take_in(copied(sample), sample)
    assert report.findings.items == ()
    assert report.counts["persons"] > 0


@pytest.mark.parametrize("profile", ["us-decennial", "register-country"])
def test_every_rule_of_a_profile_has_a_violation_here(profile: str) -> None:
    sample = {"us-decennial": "us", "register-country": "register"}[profile]
    broken = {case["rule"] for case in VIOLATIONS if case["sample"] == sample}
    assert {rule.id for rule in load_schema(profile).rules} <= broken


@pytest.mark.parametrize("layout", ["phsafe", "household-rows"])
def test_every_rule_of_a_layout_has_a_violation_here(layout: str) -> None:
    broken = {case["rule"] for case in VIOLATIONS if case["sample"] == layout}
    assert {rule.id for rule in load_layout(layout).rules} <= broken


def test_all_problems_are_listed_at_once(
    copied: Callable[[str], Path],
    edit: Callable[[Path, list[Any]], None],
    found: Callable[..., Findings],
) -> None:
    folder = copied("us")
    for change in (
        ["persons", 4, "sex", "3"],
        ["persons", 8, "age", "x"],
        ["persons", 14, "unit_id", "66"],
        ["units", 4, "tenure", "1"],
        ["units", "repeat", 2],
        ["geography", 2, "tract", "44001030200"],
    ):
        edit(folder, change)
    rules = {item.rule for item in found(folder, "us").errors}
    assert {"code", "type", "unit", "only", "unique", "nesting"} <= rules


def test_a_unit_given_twice_does_not_break_other_rules(
    copied: Callable[[str], Path],
    edit: Callable[[Path, list[Any]], None],
    found: Callable[..., Findings],
) -> None:
    folder = copied("us")
    edit(folder, ["units", "repeat", 1])
    edit(folder, ["geography", "repeat", 1])
    assert {item.rule for item in found(folder, "us").errors} == {"unique"}


def test_rows_are_the_first_five_and_the_count_is_of_all(
    copied: Callable[[str], Path],
    edit: Callable[[Path, list[Any]], None],
    found: Callable[..., Findings],
) -> None:
    folder = copied("us")
    for row in range(1, 22):
        edit(folder, ["persons", row, "imputed", "7"])
    (item,) = found(folder, "us").errors
    assert (item.count, item.rows) == (21, (1, 2, 3, 4, 5))
