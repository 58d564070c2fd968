"""`discreet plan`: what it prints, what it writes, and how it refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli.app import app

PERSONS = "pl94-us-persons-2020"


def test_a_plan_for_people(discreet) -> None:
    done = discreet("plan", "topdown", PERSONS, "--children", "14,11,4,45")
    assert done.returncode == 0, done.stderr
    for wanted in ("1.2092", "2429.6181", "17.14", "17.90", "hhgq: epsilon 7.24", "block_group (4"):
        assert wanted in done.stdout


def test_a_plan_for_machines(discreet) -> None:
    arguments = ["plan", "topdown", PERSONS, "pl94-us-units-2020", "--root", "state", "--json"]
    done = discreet(*arguments)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [one["root"] for one in told["plans"]] == ["state", "state"]
    noise = told["plans"][0]["noise"]
    (state,) = [one for one in noise if (one["level"], one["query"]) == ("state", "total")]
    assert state["sigma2"] == "214437516707/177339451520"
    assert told["together"]["rho2_decimal"] > told["plans"][0]["rho2_decimal"]


def test_a_planned_strategy_is_written_and_read(discreet, tmp_path: Path) -> None:
    arguments = ["--target", "county:total=3", "--target", "block:total=20"]
    done = discreet("plan", "topdown", PERSONS, *arguments, "--write", "own.yaml")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["own.yaml"]
    again = discreet("plan", "topdown", "own.yaml", "--schema", "us-decennial", "--json")
    assert again.returncode == 0, again.stderr
    noise = json.loads(again.stdout)["plans"][0]["noise"]
    margins = {(one["level"], one["query"]): one["margin_of_error"] for one in noise}
    assert 2.9999 < margins["county", "total"] <= 3
    assert 19.999 < margins["block", "total"] <= 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("pl94-us-person-2020", "Did you mean 'pl94-us-persons-2020'"),
        (f"{PERSONS} --root county", "every state exact"),
        (f"{PERSONS} --target county:total", "LEVEL:QUERY=MARGIN"),
        (f"{PERSONS} --write own.yaml", "without --target"),
        (f"{PERSONS} {PERSONS} --target county:total=3", "one strategy"),
        (f"{PERSONS} --children 3,x", "whole numbers"),
        (f"{PERSONS} --delta 2", "between 0 and 1"),
        (f"{PERSONS} --schema register-country", "no level"),
    ],
)
def test_bad_input_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["plan", "topdown", *arguments.split()])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []
