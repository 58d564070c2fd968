"""Pairs that use up a promise: where a bound is claimed to be tight, one of them reaches 1."""

import pytest

from discreet.census import load_schema
from discreet.engine import Engine
from discreet.mechanisms import mechanism
from discreet.noise import trial
from neighbours.watch import compared
from topdown.runs import LEAST, levels_of
from worlds import us_census

US = load_schema("us-decennial")
HOMES = [(number % 3, "1", [(40, "1", "01")]) for number in range(6)]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("distance", [1, 2])
@pytest.mark.parametrize("change", ["add-remove", "replace"])
def test_households_that_change_alike_use_up_noisy_tables(
    engine, noise, distance, change, tmp_path
):
    queries = [
        {"table": "H4", "level": "county", "share": "1/4"},
        {"table": "H4", "level": "block", "share": "3/4"},
    ]
    parameters = {"noise": noise, "budget": "1/3", "change": change, "queries": queries}
    made = mechanism("noisy-tables", US, parameters)
    same_block = [0, 3][:distance]
    renters = [(b, "3" if n in same_block else t, m) for n, (b, t, m) in enumerate(HOMES)]
    fewer = [home for n, home in enumerate(HOMES) if n not in same_block]
    pair = [us_census(engine, h) for h in (HOMES, renters if change == "replace" else fewer)]
    assert compared(made, *pair, distance, trial(1), tmp_path) == 1


@pytest.mark.parametrize("measurements", ["full", "lazy"])
@pytest.mark.parametrize("distance", [1, 2])
def test_persons_who_change_alike_use_up_topdown(engine, distance, measurements, tmp_path):
    """Every level and query tells them apart, so every one of them is used up."""
    asked = {"detailed": "1/2", "sex": "1/2"}
    axes = [{"name": "sex", "column": "sex"}, {"name": "voting_age", "column": "voting_age"}]
    strategy = {
        **LEAST,
        "axes": axes,
        "zeros": [],
        "quarters": None,
        "rounding": ["total"],
        "total": "block",
        "levels": levels_of({"state": asked, "county": asked, "block": asked}),
    }
    made = mechanism("topdown", US, {"persons": strategy, "measurements": measurements})
    same_block = [0, 3][:distance]
    women = [
        (b, t, [(40, "2", "01")] if n in same_block else m) for n, (b, t, m) in enumerate(HOMES)
    ]
    pair = [us_census(engine, homes) for homes in (HOMES, women)]
    part = compared(made, *pair, distance, trial(1), tmp_path)
    # A lazy draw does not ask for what its estimate above leaves no place for.
    assert part == 1 if measurements == "full" else 0 < part <= 1
