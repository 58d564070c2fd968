"""Plans of PHSafe: the published figures, margins and their inverse, truncation, refusals."""

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.config import BadConfig
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import phsafe
from discreet.mechanisms.phsafe.planning import (
    budget_for,
    budgets_2020,
    deviation,
    margin,
    margin_2020,
    meet,
    plan,
    targets_of,
)
from discreet.run import run
from phsafe.homes import Home, Person, census_of
from worlds import write_census

US = phsafe.load_configuration("us-2020")
PR = phsafe.load_configuration("pr-2020")

PUBLIC = {"source": "public", "citation": "made up"}


def promised(found, tight: bool = False) -> dict[str, Fraction]:
    return {one.change: one.tight if tight else one.published for one in found.promises}


def test_the_published_totals() -> None:
    assert promised(plan(US)) == {
        "add-remove": Fraction("1.257281"),
        "replace": Fraction("2.514562"),
    }
    assert promised(plan(PR))["add-remove"] == Fraction("1.226649")
    assert promised(plan("pr-2020"))["replace"] == Fraction("2.453298")


def test_the_tight_totals() -> None:
    """Figures of the direct count: 0.4884 and 1.9536; Puerto Rico 0.4759 and 1.9037."""
    for settings, wanted in ((US, (0.4884, 1.9536)), (PR, (0.4759, 1.9037))):
        found = promised(plan(settings), tight=True).values()
        assert [round(float(one), 4) for one in found] == list(wanted)


@pytest.mark.parametrize(
    ("table", "level", "sigma", "wanted"),
    [
        ("PH1_num", "usa_*", 303.976, 500.04),
        ("PH7", "state_*", 121.582, 200.00),
        ("PH4", "state_A-G", 41.337, 68.000),
        ("PH6", "usa_*", 303.917, 499.94),
        ("PH3", "state_A-G", 12.158, 20.000),
        ("PH8_denom", "usa_H,I", 301.511, 495.99),
        ("PH5_denom", "state_H,I", 121.716, 200.22),
        ("PH1_denom", "state_A-G", 41.345, 68.01),
    ],
)
def test_margins_of_the_published_table(table, level, sigma, wanted) -> None:
    (part,) = (one for one in US.account.parts if (one.table, one.level) == (table, level))
    assert deviation(part) == pytest.approx(sigma, abs=5e-4)
    assert margin(part) == pytest.approx(wanted, abs=6e-3)


def test_all_46_budgets_follow_from_margins_and_thresholds() -> None:
    assert len(US.account.parts) == 46
    assert budgets_2020(US.thresholds) == US.budgets


def test_epsilon_is_the_tight_conversion() -> None:
    """At the best order a the bound is met: exp((a-1)(a rho - e)) (1-1/a)^a / (a-1) = delta."""
    rho, delta = 1.257281, 1e-10
    epsilon = plan(US, Fraction(1, 10**10)).promises[0].epsilon()
    deltas = [
        (a - 1) * (a * rho - epsilon) + a * math.log(1 - 1 / a) - math.log(a - 1)
        for a in [1 + k / 1000 for k in range(100, 20000)]
    ]
    assert min(deltas) == pytest.approx(math.log(delta), abs=1e-5)


@pytest.mark.parametrize("wanted", [1, 20, 68, 200, 500, Fraction(1, 3)])
@pytest.mark.parametrize(("table", "tau"), [("PH3", 6), ("PH7", 10), ("PH8_denom", None)])
def test_a_planned_budget_meets_its_margin_and_hardly_more(table, tau, wanted) -> None:
    rho = budget_for(table, tau, wanted)
    found = margin(phsafe.Part(table, "usa_*", rho, tau, "gaussian"))
    assert float(wanted) * (1 - 1e-5) < found <= float(wanted) * (1 + 1e-12)


def test_targets_change_only_what_they_name() -> None:
    targets = targets_of(["PH3:state_A-G=10", "PH8_denom:usa_*=100"])
    planned = meet(US, targets)
    for table, levels in US.budgets.items():
        for level, budget in levels.items():
            same = planned.budgets[table][level] == budget
            assert same == ((table, level) not in targets)
    parts = {(one.table, one.level): margin(one) for one in planned.account.parts}
    assert 9.9999 < parts["PH3", "state_A-G"] <= 10
    assert phsafe.load_configuration(planned.model_dump(mode="json")) == planned


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (["PH3=4"], "TABLE:LEVEL=MARGIN"),
        (["PH3:usa_*=0"], "TABLE:LEVEL=MARGIN"),
        (["PH3:usa_*=x"], "TABLE:LEVEL=MARGIN"),
        (["PH3:usa_*=4", "PH3:usa_*=5"], "two targets"),
        (["PH9:usa_*=4"], "no table 'PH9'"),
        (["PH2:usa_A-G=4"], "no level 'usa_A-G'"),
        (["PH3:state_A-G=1e300"], "out of range"),
        (["PH3:state_A-G=1e-300"], "out of range"),
        (["PH3:state_A-G=16451"], "out of range"),
    ],
)
def test_bad_targets_are_refused(targets: list[str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        meet(US, targets_of(targets))


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(1, 10**4000)])
def test_a_delta_that_is_none_is_refused(delta: Fraction) -> None:
    with pytest.raises(BadInput, match="between 1e-300 and 1"):
        plan(US, delta)


# --- from a plan to a run and back ----------------------------------------------------------------

LINES = "release: planned\nmode: design\ncensus: census\nwork: work\nout: out\n"


def test_a_plan_is_run_and_the_run_is_planned(tmp_path: Path) -> None:
    """The text that is written, and five lines more, is a run file that reads back the same."""
    planned = meet(US, targets_of(["PH3:state_A-G=10"]))
    text = phsafe.run_text(planned.model_copy(update={"states": ("50",)}), "add-remove")
    (tmp_path / "run.yaml").write_text(text + LINES)
    home = Home(1, (Person(40, "20"), Person(9, "25")))
    write_census(census_of(Engine(threads=1), [home]), tmp_path / "census")
    with pytest.warns(UserWarning, match="not the nation"):
        release = run(tmp_path / "run.yaml", seed=1)
    again, change = phsafe.read_settings(tmp_path / "run.yaml")
    assert again.budgets == planned.budgets
    assert (again.thresholds, again.states, change) == (US.thresholds, ("50",), "add-remove")
    assert promised(plan(again))["add-remove"] == release.specification.budget.amount.of
    once_more = {**release.header.parameters}
    assert phsafe.Parameters.model_validate(once_more).settings.budgets == planned.budgets


def test_the_command_writes_what_it_can_read(tmp_path: Path, root: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    target = ["--target", "PH1_num:state_A-G=20", "--write", "finer.yaml"]
    example = str(root / "examples" / "phsafe-own.yaml")
    done = CliRunner().invoke(app, ["plan", "phsafe", example, *target])
    assert done.exit_code == 0, done.stderr
    again = CliRunner().invoke(app, ["plan", "phsafe", "finer.yaml", "--json"])
    told = json.loads(again.stdout)
    assert (told["account"], told["states"]) == ("the United States", ["44"])
    (part,) = [one for one in told["parts"] if one["level"] == "state_A-G" and one["threshold"]]
    assert 19.999 < part["margin_of_error"] <= 20
    assert "change: add-remove" in (tmp_path / "finer.yaml").read_text()


@pytest.mark.parametrize("margin_of_error", ["1e300", "1e-300", "16451"])
def test_a_margin_out_of_range_is_bad_input(margin_of_error: str) -> None:
    target = f"PH3:state_A-G={margin_of_error}"
    done = CliRunner().invoke(app, ["plan", "phsafe", "us-2020", "--target", target])
    assert done.exit_code == 2
    assert "out of range" in done.stderr


def test_every_code_and_budget_is_quoted(tmp_path: Path) -> None:
    text = phsafe.run_text(US, "replace")
    assert '"08", "09"' in text
    assert text.splitlines()[0] == "# us-2020: Production parameters of 2020, United States"
    (tmp_path / "us.yaml").write_text(text)
    again, change = phsafe.read_settings(tmp_path / "us.yaml")
    assert change == "replace"
    assert again.model_copy(update={"name": US.name, "title": US.title}) == US


@pytest.mark.parametrize("name", ["phsafe-us", "phsafe-own"])
def test_examples_can_be_planned(root: Path, name: str) -> None:
    settings, change = phsafe.read_settings(root / "examples" / f"{name}.yaml")
    lines = plan(settings).describe()
    assert lines[0] == f"{name}: parameters of a run"
    assert "1 of 51 states (44)" in lines[1]
    assert ("warning: " in lines[2]) == (name == "phsafe-us")
    assert change == {"phsafe-us": "replace", "phsafe-own": "add-remove"}[name]


def test_some_entries_of_a_named_configuration_are_planned_and_run(tmp_path: Path) -> None:
    """Plan, promise and record follow the merged values; the record has them all."""
    own = {"PH2": {"state_*": "1/10"}, "PH3": dict.fromkeys(US.budgets["PH3"], "0")}
    parameters = {
        "configuration": "us-2020",
        "states": ["50"],
        "budgets": own,
        "thresholds": {"PH7": 4},
    }
    content = {"format_version": 1, "mechanism": "phsafe", "parameters": parameters}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(content) + LINES)
    write_census(census_of(Engine(threads=1), [Home(1, (Person(40, "20"),))]), tmp_path / "census")
    with pytest.warns(UserWarning, match="not the nation"):
        release = run(tmp_path / "run.yaml", seed=1)
    settings, _ = phsafe.read_settings(tmp_path / "run.yaml")
    spared = sum(US.budgets["PH3"].values()) + US.budgets["PH2"]["state_*"]
    total = Fraction("1.257281") - spared + Fraction(1, 10)
    assert promised(plan(settings))["add-remove"] == total
    assert release.specification.budget.amount.of == 2 * total
    assert not (release.folder / "tables" / "PH3.csv").exists()
    recorded = release.header.parameters
    assert "configuration" not in recorded
    assert recorded["thresholds"] == {**US.thresholds, "PH7": 4}
    again = phsafe.Parameters.model_validate(recorded).settings
    assert (again.budgets, again.account) == (settings.budgets, settings.account)


def test_a_configuration_in_a_file_is_planned_too(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(PR.model_dump(mode="json")))
    assert phsafe.read_settings(tmp_path / "own.yaml") == (PR, "replace")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mechanism: topdown\nparameters: {}\n", "not one of phsafe"),
        ("parameters: {configuration: us-2020, epsilon: 1}\n", "epsilon: unknown key"),
        ("parameters: {configuration: own.yaml}\n", "not a file"),
        ("parameters: {configuration: us-2020, states: ['03']}\n", r"parameters:\n  states"),
        ("parameters: [1]\n", "run.yaml, parameters"),
        ("budget: 1\n", "unknown key"),
    ],
)
def test_a_run_that_cannot_be_planned_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "run.yaml").write_text(f"format_version: 1\n{text}")
    with pytest.raises(BadInput, match=message):
        phsafe.read_settings(tmp_path / "run.yaml")


def test_geometric_noise_has_margins_of_its_own() -> None:
    for scale in (Fraction(1, 3), Fraction(3), Fraction(44)):
        part = phsafe.Part("PH1_denom", "usa_*", 2 / scale, None, "geometric")
        rate = math.exp(-1 / float(scale))
        outside = [2 * rate ** (m + 1) / (1 + rate) for m in range(400)]
        assert margin(part) == next(m for m, p in enumerate(outside) if p <= 0.1)
        variance = 2 * rate / (1 - rate) ** 2
        assert deviation(part) == pytest.approx(math.sqrt(variance), rel=1e-9)


# --- truncation -----------------------------------------------------------------------------------


def test_truncation_by_hand() -> None:
    """Of 3 households with 1, 10 and 14 persons a threshold of 10 leaves 4 of 25 out."""
    sizes = phsafe.load_sizes({**PUBLIC, "persons": {1: 1, 10: 1, 14: 1}, "under_18": {0: 9, 7: 1}})
    found = {bias.table: bias for bias in plan(US, sizes=sizes).biases}
    assert sorted(found) == ["PH1_num", "PH2", "PH3", "PH7"]
    assert (found["PH7"].lost, found["PH7"].cut) == (4 / 25, 1 / 3)
    assert (found["PH7"].mean, found["PH7"].kept) == (25 / 3, 7)
    assert found["PH3"].lost == pytest.approx(1 / 7)
    assert found["PH3"].cut == 1


def test_tables_without_sizes_are_told() -> None:
    sizes = phsafe.load_sizes({**PUBLIC, "persons": {1: 1, 14: 1}, "under_18": {7: 1}})
    found = plan(US, sizes=sizes)
    assert found.unknown == {"PH4": "family_members", "PH6": "own_children"}
    line = "  not known, for want of the key in brackets: PH4 (family_members), PH6 (own_children)"
    assert found.describe()[-1] == line
    more = {"family_members": {2: 1}, "own_children": {1: 1}}
    every = plan(US, sizes=sizes.model_copy(update=more))
    assert (len(every.biases), every.unknown) == (6, {})
    assert not any("not known" in line for line in every.describe())


def test_truncation_is_told_of_tables_that_are_made(root: Path) -> None:
    settings, _ = phsafe.read_settings(root / "examples" / "phsafe-own.yaml")
    sizes = phsafe.load_sizes({**PUBLIC, "persons": {1: 1, 14: 1}})
    found = plan(settings, sizes=sizes)
    assert ([bias.table for bias in found.biases], found.unknown) == (["PH1_num"], {})


def test_noised_sizes_are_charged() -> None:
    sizes = {"source": "noised", "citation": "a run", "rho": "1/100", "persons": {1: 5.0, 11: 1}}
    found = promised(plan(US, sizes=phsafe.load_sizes(sizes)))
    assert found["add-remove"] == Fraction("1.267281")
    assert found["replace"] == Fraction("2.554562")


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"persons": {1: 1}}, "say where the sizes come from"),
        ({"source": "secret", "citation": "x", "persons": {1: 1}}, "source"),
        ({"source": "public", "persons": {1: 1}}, "citation"),
        ({"source": "noised", "citation": "x", "persons": {1: 1}}, "rho"),
        ({**PUBLIC, "rho": "1/10", "persons": {1: 1}}, "rho"),
        (PUBLIC, "at least one of"),
        ({**PUBLIC, "persons": {0: 5}}, "no persons"),
        ({**PUBLIC, "persons": {1: -5}}, "greater than or equal"),
        ({**PUBLIC, "persons": {1: float("nan")}}, "persons"),
        ({**PUBLIC, "family": {1: 1}}, "unknown key"),
    ],
)
def test_sizes_without_a_source_are_refused(sizes, message: str) -> None:
    with pytest.raises(BadConfig, match=message):
        phsafe.load_sizes(sizes)


def test_margins_of_2020() -> None:
    told = {margin_2020(part.table, part.level) for part in US.account.parts}
    assert told == {500, 200, 68, 20}
