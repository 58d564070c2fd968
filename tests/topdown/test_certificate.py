"""The figures printed on the production certificate, and what they hold for."""

import json
from fractions import Fraction

import pytest

from discreet.mechanisms.topdown.certificate import attribute_rho, certificate, place_rho
from discreet.mechanisms.topdown.strategy import load_strategy, shipped_strategies

PERSONS = load_strategy("pl94-us-persons-2020")


def test_the_whole_budget() -> None:
    whole = certificate(PERSONS).whole
    assert whole.rho == Fraction(293764, 114921)
    assert (round(whole.epsilon, 2), round(whole.epsilon_published, 2)) == (17.14, 17.90)
    units = certificate(load_strategy("pl94-us-units-2020")).whole
    assert (round(units.epsilon, 2), round(units.epsilon_published, 2)) == (2.47, 2.70)


def test_one_attribute_at_a_time() -> None:
    found = {one.name: round(one.epsilon, 2) for one in certificate(PERSONS).attributes}
    assert found == {"hhgq": 7.24, "votingage": 7.57, "hispanic": 10.04, "cenrace": 10.08}
    assert round(float(attribute_rho(PERSONS, "hhgq")), 6) == 0.555377


def test_one_move_at_a_time() -> None:
    found = {one.name: round(one.epsilon, 2) for one in certificate(PERSONS).places}
    assert found == {
        "block within block_group": 2.93,
        "block within tract": 9.38,
        "block within county": 11.70,
        "block within state": 13.05,
        "block within all": 16.89,
    }


def test_a_state_alone_costs_as_much_as_moving_in_the_country() -> None:
    assert place_rho(PERSONS, "all") == PERSONS.rooted("state").rho
    assert place_rho(PERSONS, "block") == 0


def test_weaker_promises_cost_less() -> None:
    for name in shipped_strategies():
        found = certificate(load_strategy(name))
        for one in (*found.attributes, *found.places):
            assert one.rho <= one.bypassed <= one.single <= found.whole.rho
            assert one.rho < found.whole.rho


def test_only_children_can_make_an_attribute_cost_more() -> None:
    """Two levels: the lower one measured with the queries of the upper one."""
    strategy = load_strategy(
        {
            "name": "two",
            "title": "Two levels",
            "count": "persons",
            "rho": 1,
            "axes": [{"name": "sex", "column": "sex"}, {"name": "age", "column": "voting_age"}],
            "levels": [
                {"level": "county", "share": "1/2", "queries": {"age": "1/4", "detailed": "3/4"}},
                {"level": "block", "share": "1/2", "queries": {"age": "3/4", "detailed": "1/4"}},
            ],
        }
    )
    sex, age = certificate(strategy).attributes
    assert (sex.rho, sex.bypassed) == (Fraction(1, 2), Fraction(3, 4))
    assert (age.rho, age.bypassed) == (1, 1)


def test_the_bound_for_only_children_in_production() -> None:
    """Tracts and block groups of one child add their shares to the level above."""
    found = {one.name: one.bypassed for one in certificate(PERSONS).attributes}
    # Worst for hhgq: one tract per county, its share spent on the county's queries.
    county, tract = PERSONS.at("county"), PERSONS.at("tract")
    parts = [
        sum(part for query, part in level.queries.items() if PERSONS.distinguishes(query, "hhgq"))
        for level in (county, tract)
    ]
    moved = PERSONS.rho * tract.share * (parts[0] - parts[1])
    assert found["hhgq"] == attribute_rho(PERSONS, "hhgq") + moved


def test_a_country_of_one_state_is_told_apart() -> None:
    """Its state is an only child: one census of one state, `root: all`, measures the root only."""
    own = {
        "name": "country",
        "title": "A country",
        "count": "persons",
        "rho": 1,
        "axes": [{"name": "sex", "column": "sex"}, {"name": "age", "column": "voting_age"}],
        "levels": [
            {"level": "all", "share": "1/4", "queries": {"detailed": 1}},
            {"level": "state", "share": "1/4", "queries": {"age": "3/4", "detailed": "1/4"}},
            {"level": "block", "share": "1/2", "queries": {"age": "1/2", "detailed": "1/2"}},
        ],
    }
    found = certificate(load_strategy(own))
    sex = found.attributes[0]
    # Alone; blocks as they are; all three levels as one.
    assert (sex.rho, sex.bypassed, sex.single) == (Fraction(9, 16), Fraction(9, 16), 1)
    assert "1.000000 if there is only one state" in "\n".join(found.describe())
    assert sex.as_data()["rho2_with_one_area_below_all"] == 1
    lower = certificate(load_strategy(own).rooted("state"))
    assert "only one" not in "\n".join(lower.describe())


def test_a_single_attribute_is_the_whole() -> None:
    assert certificate(load_strategy("pl94-us-units-2020")).attributes == ()


@pytest.mark.parametrize("name", shipped_strategies())
def test_it_says_for_whom_it_holds(name: str) -> None:
    found = certificate(load_strategy(name))
    text = "\n".join(found.describe())
    assert "weaker than the whole budget" in text
    assert "is replaced by another" in text
    told = json.loads(json.dumps(found.as_data()))
    assert told["whole"]["rho2"] == str(found.whole.rho)
    assert all(one["neighbours"] for one in told["attributes"] + told["places"])
    assert all("moves to another" in one["neighbours"] for one in told["places"])
