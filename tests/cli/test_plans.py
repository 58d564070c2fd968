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
    assert "error: " in done.stderr  # a slow machine tells its progress first
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [f"topdown {PERSONS} --target county:total=3", "phsafe us-2020 --target PH3:state_A-G=10"],
)
def test_no_file_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.yaml").write_text("lines of a run\n")
    done = CliRunner().invoke(app, ["plan", *arguments.split(), "--write", "own.yaml"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--write: own.yaml is there already" in done.stderr
    assert (tmp_path / "own.yaml").read_text() == "lines of a run\n"


# --- phsafe ---------------------------------------------------------------------------------------

SIZES = """format_version: 1
source: public
citation: made up
persons: {1: 28, 2: 34, 3: 15, 4: 13, 12: 1}
"""


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("us-2020", ("1.257281", "2.514562", "0.488408")), ("pr-2020", ("1.226649", "2.453298"))],
)
def test_plans_of_2020_for_people(discreet, name: str, wanted: tuple[str, ...]) -> None:
    done = discreet("plan", "phsafe", name)
    assert done.returncode == 0, done.stderr
    for number in (*wanted, "68.00", "never charged", "housing units", "1.645 sigma", "1.6448536"):
        assert number in done.stdout


def test_a_planned_configuration_is_written_and_read(discreet, tmp_path: Path) -> None:
    (tmp_path / "sizes.yaml").write_text(SIZES)
    arguments = ["--target", "PH3:state_A-G=10", "--write", "own.yaml"]
    done = discreet("plan", "phsafe", "us-2020", *arguments)
    assert done.returncode == 0, done.stderr
    again = discreet("plan", "phsafe", "own.yaml", "--sizes", "sizes.yaml", "--json")
    assert again.returncode == 0, again.stderr
    told = json.loads(again.stdout)
    margins = {(one["table"], one["level"]): one["margin_of_error"] for one in told["parts"]}
    assert len(margins) == 46
    assert 9.9999 < margins["PH3", "state_A-G"] <= 10
    assert told["truncation"]["source"] == "public"
    lacking = {"PH3": "under_18", "PH4": "family_members", "PH6": "own_children"}
    assert told["truncation"]["without_sizes"] == lacking
    assert told["promises"][0]["published_decimal"] > 1.257281


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("us-2021", "Did you mean 'us-2020'"),
        ("us-2020 --target PH3:state_A-G", "TABLE:LEVEL=MARGIN"),
        ("us-2020 --write own.yaml", "without --target"),
        ("us-2020 --delta 0", "between 0 and 1"),
        ("us-2020 --sizes none.yaml", "none.yaml"),
    ],
)
def test_bad_plans_are_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["plan", "phsafe", *arguments.split()])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "error: " in done.stderr  # a slow machine tells its progress first
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_sizes_without_a_source_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "sizes.yaml"
    path.write_text(SIZES.replace("source: public", ""))
    done = CliRunner().invoke(app, ["plan", "phsafe", "us-2020", "--sizes", str(path)])
    assert done.exit_code == 2
    assert "say where the sizes come from" in done.stderr
