"""Noise from budgets, budgets from noise, and the error of totals through the tree."""

import math
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.errors import BadInput
from discreet.mechanisms.topdown.planning import (
    Z,
    expected_totals,
    meet,
    plan,
    prepare,
    rho_for,
    targets_of,
    together,
)
from discreet.mechanisms.topdown.strategy import load_strategy

PERSONS = load_strategy("pl94-us-persons-2020")


def test_margins_are_those_of_the_noise() -> None:
    found = {(one.level, one.query): one for one in plan(PERSONS).noise}
    assert len(found) == 10 + 5 * 11
    assert round(found["county", "total"].margin, 2) == 3.57
    assert sum(one.rho for one in found.values()) == PERSONS.rho


def test_persons_and_units_together() -> None:
    found = together([PERSONS, load_strategy("pl94-us-units-2020")])
    assert Fraction(found["rho2"]) == Fraction(293764, 114921) + Fraction(11417641, 152349649)
    # 2.556226 + 0.074944 if each is rounded first.
    assert math.isclose(found["rho2_decimal"], 2.631169, abs_tol=1e-6)


def test_budgets_of_disjoint_people_are_not_added_up() -> None:
    names = ["pl94-us-persons-2020", "pl94-pr-persons-2020"]
    found = together([load_strategy(name) for name in names])
    assert found["rho2"] is None
    assert "Puerto Rico" in found["reason"]
    for more in ([], ["--json"]):
        done = CliRunner().invoke(app, ["plan", "topdown", *names, *more])
        assert done.exit_code == 0
        assert "Puerto Rico" in done.stdout
    assert "together: not added up" in CliRunner().invoke(app, ["plan", "topdown", *names]).stdout


def test_wide_numbers_stay_apart() -> None:
    lines = plan(prepare("pl94-us-persons-2020", None, targets_of(["county:total=16450"])))
    (row,) = [line for line in lines.describe() if "100000000" in line]
    assert row.split() == ["total", "0.000000", "100000000.0000", "10000.0000", "16450.00"]


def test_noise_that_cannot_be_drawn_is_no_plan(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = ["pl94-us-persons-2020", "--target", "county:total=1000000", "--write", "own.yaml"]
    done = CliRunner().invoke(app, ["plan", "topdown", *wanted])
    assert done.exit_code == 2
    assert "county, query 'total': sigma2" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_plan_refuses_what_a_run_refuses() -> None:
    own = PERSONS.changed({"quarters": {"axis": "hhgq", "at_least_one": ["household"]}})
    with pytest.raises(BadInput, match="vacant"):
        prepare(own.as_data(), schema="us-decennial")


# --- the error of totals ------------------------------------------------------------------------


def test_the_error_of_totals_is_that_of_least_squares() -> None:
    """Each step of the theory, against the covariance of constrained least squares."""
    children = [3, 4, 2]
    covariance = 0.0
    for found, count in zip(expected_totals(PERSONS, children), children, strict=True):
        noise = float(PERSONS.sigma2(found.level, "total"))
        # Fit t to answers y with sum(t) = parent p: stationarity and constraint, as one system.
        system = np.block(
            [[np.eye(count), np.ones((count, 1))], [np.ones((1, count)), np.zeros((1, 1))]]
        )
        solved = np.linalg.inv(system)[:count]
        spread = np.diag([*[noise] * count, covariance])
        covariance = float((solved @ spread @ solved.T)[0, 0])
        assert math.isclose(found.variance, covariance)


def test_an_only_child_has_the_error_of_its_parent() -> None:
    first, second, _ = expected_totals(PERSONS, [5, 1, 3])
    assert second.variance == first.variance


def test_totals_need_numbers_of_children() -> None:
    assert len(expected_totals(PERSONS, [14, 11, 4, 45])) == 3
    for wrong in ([14], [14, 11, 0], [1, 2, 3, 4, 5]):
        with pytest.raises(BadInput, match="county, tract, block_group, block"):
            expected_totals(PERSONS, wrong)
    with pytest.raises(BadInput, match="does not estimate totals first"):
        expected_totals(load_strategy("pl94-us-units-2020"), [3])
    with pytest.raises(BadInput, match="no exact totals"):
        expected_totals(PERSONS.changed({"total": None}), [3, 3, 3])


# --- the inverse --------------------------------------------------------------------------------


@pytest.mark.parametrize("margin", ["3", "0.01", "1/3", "1000", "1.645", "146.8"])
def test_a_target_is_met_and_barely(margin: str) -> None:
    wanted = Fraction(margin)
    rho = rho_for(wanted)
    assert Z * Z / rho <= wanted * wanted
    assert float(Z * Z / (wanted * wanted) / rho) > 1 - 1e-5


def test_named_queries_change_and_all_others_keep_their_noise() -> None:
    targets = targets_of(["county:total=3", "block:total=10", "state:hhgq*hispanic=20"])
    planned = meet(PERSONS, targets)
    for level in planned.levels:
        for query in level.queries:
            found = planned.sigma2(level.level, query)
            if (level.level, query) in targets:
                assert Z * Z * found <= targets[level.level, query] ** 2
            else:
                assert found == PERSONS.sigma2(level.level, query)
    kept = PERSONS.rho - PERSONS.rho_of("county", "total") - PERSONS.rho_of("block", "total")
    assert planned.rho == kept + sum(rho_for(margin) for margin in targets.values())
    assert load_strategy(planned.as_data()) == planned
    assert planned.name == "pl94-us-persons-2020-planned"
    assert meet(planned, targets).name == planned.name
    first, *_, last = planned.at("state").queries
    assert (first, last) == ("total", "detailed")


def test_a_looser_target_saves() -> None:
    assert meet(PERSONS, targets_of(["county:total=10"])).rho < PERSONS.rho


@pytest.mark.parametrize(
    "text", ["county:total", "county=3", "county:total=0", "county:total=-1", "county:total=x", ""]
)
def test_a_target_has_three_parts(text: str) -> None:
    with pytest.raises(BadInput, match="LEVEL:QUERY=MARGIN"):
        targets_of([text])


def test_targets_that_make_no_sense_are_refused() -> None:
    with pytest.raises(BadInput, match="two targets"):
        targets_of(["county:total=3", "county:total=4"])
    with pytest.raises(BadInput, match="no level 'country'"):
        meet(PERSONS, targets_of(["country:total=3"]))
    with pytest.raises(BadInput, match="no axis or recode"):
        meet(PERSONS, targets_of(["county:sex=3"]))


def test_a_strategy_is_prepared_with_root_and_schema() -> None:
    found = prepare("pl94-us-persons-2020", root="state", schema="us-decennial")
    assert found == PERSONS.rooted("state")
    with pytest.raises(BadInput, match="has no level 'region'"):
        prepare("register-country-persons", schema="us-decennial")
