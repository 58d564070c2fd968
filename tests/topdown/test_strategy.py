"""The strategies of production, number by number, and what is refused."""

import copy
import itertools
from fractions import Fraction

import pytest

from discreet.errors import BadInput
from discreet.mechanisms.topdown.strategy import load_strategy, shipped_strategies
from discreet.noise import DiscreteGaussian

PERSONS, UNITS = "pl94-us-persons-2020", "pl94-us-units-2020"
LEVELS = ["all", "state", "county", "tract", "block_group", "block"]

#: sigma^2 of the production run, level by level; None: not measured.
SIX = [2429.6181, 760.3805, 1469.7287, 1914.9069, 1744.3987, 7963.2575]
SIGMA2 = {
    "total": [None, 1.2092, 4.7016, 6.1101, 3.0693, 7963.2575],
    "cenrace": [1214.8091, 760.3805, 1469.7287, 1196.8168, 1744.3987, 4424.0319],
    "hispanic": SIX,
    "votingage": SIX,
    "hhinstlevels": SIX,
    "hhgq": SIX,
    "votingage*hispanic": SIX,
    "hispanic*cenrace": [485.9236, 380.1902, 524.9031, 4.9532, 4.9604, 1896.0137],
    "votingage*cenrace": [485.9236, 380.1902, 524.9031, 478.7267, 581.4662, 1896.0137],
    "votingage*hispanic*cenrace": [142.9187, 134.1848, 145.5177, 142.9035, 218.0498, 560.7928],
    "detailed": [19.6608, 19.8360, 19.4924, 19.8642, 4.0630, 10.0928],
}


# --- the numbers of production ------------------------------------------------------------------


@pytest.mark.parametrize("query", SIGMA2)
def test_the_noise_of_production(query: str) -> None:
    strategy = load_strategy(PERSONS)
    for level, expected in zip(LEVELS, SIGMA2[query], strict=True):
        if expected is None:
            with pytest.raises(BadInput, match="not measured at all"):
                strategy.sigma2(level, query)
        else:
            assert round(float(strategy.sigma2(level, query)), 4) == expected


def test_every_query_of_production_is_in_the_table() -> None:
    asked = {query for level in load_strategy(PERSONS).levels for query in level.queries}
    assert asked == set(SIGMA2)


def test_two_variances_are_known_exactly() -> None:
    strategy = load_strategy(PERSONS)
    assert strategy.sigma2("state", "total") == Fraction(214437516707, 177339451520)
    assert strategy.sigma2("county", "total") == Fraction(214437516707, 45609211112)


@pytest.mark.parametrize(
    ("level", "query", "expected"),
    [
        ("state", "detailed", 31.838),
        ("county", "total", 3.024),
        ("tract", "total", 5.808),
        ("tract", "hispanic*cenrace", 4.919),
        ("block_group", "total", 1.972),
        ("block_group", "detailed", 2.611),
    ],
)
def test_the_noise_of_puerto_rico(level: str, query: str, expected: float) -> None:
    found = load_strategy("pl94-pr-persons-2020").sigma2(level, query)
    assert round(float(found), 3) == expected


def test_puerto_rico_asks_counties_and_blocks_as_the_states_do() -> None:
    here, there = load_strategy("pl94-pr-persons-2020"), load_strategy(PERSONS)
    for level in ("county", "block"):
        assert here.at(level).queries == there.at(level).queries
    assert "total" not in here.at("state").queries
    assert here.root == "state"
    assert here.rho == there.rho


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (UNITS, [2735.39, 2735.39, 156.31, 37.57, 31.10, 110.52]),
        ("pl94-pr-units-2020", [2317.52, 155.99, 37.15, 31.12, 110.52]),
    ],
)
def test_the_noise_of_units(name: str, expected: list[float]) -> None:
    strategy = load_strategy(name)
    found = [float(strategy.sigma2(level, "detailed")) for level in strategy.level_names]
    assert [round(value, 2) for value in found] == expected


def test_what_levels_cost() -> None:
    strategy = load_strategy(PERSONS)
    found = [round(float(strategy.rho_of(level)), 5) for level in LEVELS]
    assert found == [0.06486, 0.89802, 0.27876, 0.42843, 0.78327, 0.10290]
    assert sum(strategy.rho_of(level) for level in LEVELS) == strategy.rho
    asked = (strategy.rho_of(level.level, q) for level in strategy.levels for q in level.queries)
    assert sum(asked) == strategy.rho


def test_a_variance_is_the_inverse_of_its_cost() -> None:
    for name in shipped_strategies():
        strategy = load_strategy(name)
        for level in strategy.levels:
            for query in level.queries:
                cost = strategy.rho_of(level.level, query)
                assert strategy.sigma2(level.level, query) == 1 / cost


def test_noise_can_be_drawn_for_every_share_that_occurs() -> None:
    for name in shipped_strategies():
        strategy = load_strategy(name)
        for first, last in itertools.combinations_with_replacement(range(len(strategy.levels)), 2):
            run = strategy.levels[first : last + 1]
            share = sum((level.share for level in run), Fraction(0))
            for query in run[0].queries:
                DiscreteGaussian(strategy.sigma2(run[0].level, query, share))


# --- another root -------------------------------------------------------------------------------


def test_a_state_alone_leaves_the_country_out() -> None:
    whole = load_strategy(PERSONS)
    state = whole.rooted("state")
    assert state.rho == Fraction(3995, 4099) * Fraction(293764, 114921)
    assert state.level_names == LEVELS[1:]
    assert state.total_first == ["county", "tract", "block_group"]
    assert sum(level.share for level in state.levels) == 1
    for level in state.levels:
        for query in level.queries:
            assert state.sigma2(level.level, query) == whole.sigma2(level.level, query)
    assert whole.rooted("all") is whole


def test_a_root_below_what_is_exact_is_refused() -> None:
    with pytest.raises(BadInput, match="every state exact"):
        load_strategy(PERSONS).rooted("county")
    with pytest.raises(BadInput, match="no level 'contry'"):
        load_strategy(PERSONS).rooted("contry")
    assert load_strategy(UNITS).rooted("county").root == "county"


def test_a_unit_that_stands_for_two_levels_has_both_shares() -> None:
    strategy = load_strategy(PERSONS)
    share = Fraction(1256 + 165, 4099)
    expected = 1 / (strategy.rho * share * Fraction(1705, 4099))
    assert strategy.sigma2("block_group", "total", share) == expected
    with pytest.raises(BadInput, match="not measured"):
        strategy.sigma2("block", "total", Fraction(0))


# --- reading ------------------------------------------------------------------------------------


def test_a_strategy_survives_its_own_file() -> None:
    for name in shipped_strategies():
        strategy = load_strategy(name)
        assert load_strategy(strategy.as_data()) == strategy


def test_an_unknown_strategy_is_named() -> None:
    with pytest.raises(BadInput, match="Did you mean 'pl94-us-persons-2020'"):
        load_strategy("pl94-us-person-2020")


SMALL = {
    "name": "small",
    "title": "Small",
    "count": "persons",
    "rho": "1/2",
    "axes": [{"name": "sex", "column": "sex"}, {"name": "age", "column": "voting_age"}],
    "recodes": {"everybody": {"of": "sex", "groups": {"all": ["1", "2"]}}},
    "rounding": ["total", "sex"],
    "levels": [
        {"level": "all", "share": "1/4", "queries": {"detailed": 1}},
        {"level": "county", "share": "1/4", "queries": {"total": "1/3", "detailed": "2/3"}},
        {"level": "block", "share": "1/2", "queries": {"age": "1/3", "detailed": "2/3"}},
    ],
}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("levels.0.share", "1/5", "shares do not add up to exactly 1"),
        ("levels.0.share", 0.25, "must be exact"),
        ("levels.1.queries.total", "1/4", "queries of county do not add up to exactly 1"),
        ("levels.1.queries", {"total": 1}, "county must measure `detailed`"),
        ("levels.1.queries", {"sexx": "1/3", "detailed": "2/3"}, "Did you mean 'sex'"),
        ("levels.1.queries", {"sex*everybody": "1/3", "detailed": "2/3"}, "one axis twice"),
        ("levels.2.queries", {"age*sex": "1/3", "detailed": "2/3"}, "two names"),
        ("levels.2.level", "county", "a level is given twice"),
        ("levels.2.level", "all", "a level is given twice; levels: `all` can only be the first"),
        ("rho", 0, "greater than 0"),
        ("axes.1.name", "sex", "the name 'sex' is taken"),
        ("axes.1.name", "total", "the name 'total' is taken"),
        ("axes.1.column", "sex", "column 'sex' is given twice"),
        ("axes.0.groups", {"a": ["1"], "b": ["1"]}, "a value is given twice"),
        ("recodes.everybody.of", "hair", "no axis 'hair'"),
        ("recodes.everybody.groups", {"a": ["1"], "b": ["1", "2"]}, "a category is given twice"),
        ("zeros", [{"hair": ["1"]}], "no axis 'hair'"),
        ("zeros", [{}], "every cell would be empty"),
        ("total", "state", "total: no level 'state'"),
        ("hold", [{"query": "sex", "level": "state"}], "hold: no level 'state'"),
        ("total_first", ["block"], "block does not measure `total`"),
        ("total_first", ["all"], "the first level has no parent"),
        ("rounding", ["sex"], "begins with `total`"),
        ("quarters", {"axis": "age"}, "the chain must hold 'age'"),
        ("shares", 1, "unknown key"),
        ("format_version", 99, "format_version is 99"),
    ],
)
def test_what_is_wrong_is_said(path: str, value: object, message: str) -> None:
    content = copy.deepcopy(SMALL)
    *way, last = path.split(".")
    place = content
    for step in way:
        place = place[int(step)] if step.isdigit() else place[step]
    place[last] = value
    with pytest.raises(BadInput) as refused:
        load_strategy(content)
    assert message in str(refused.value)


def test_the_small_strategy_is_right() -> None:
    assert load_strategy(SMALL).sigma2("county", "total") == 24
