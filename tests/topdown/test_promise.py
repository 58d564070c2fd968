"""What TopDown promises, and the parameters it refuses before it sees any data."""

from fractions import Fraction

import pytest

from discreet.census import Schema, load_schema
from discreet.errors import BadInput
from discreet.mechanisms import mechanism
from discreet.mechanisms.topdown.promise import spent
from discreet.mechanisms.topdown.strategy import load_strategy
from discreet.spec import NORMALISED_RENYI, catalog, hamming_of_multisets
from topdown.runs import BOTH, COUNTRY, LEAST, PERSONS, UNITS, levels_of

US = load_schema("us-decennial")
PERSONS_2020 = Fraction(293764, 114921)
UNITS_2020 = Fraction(11417641, 152349649)


def specification(**parameters):
    return mechanism("topdown", US, parameters).specify()


def test_persons_from_the_state_down():
    told = specification(persons="pl94-us-persons-2020", root="state")
    assert told.budget.unit == "rho2"
    assert told.budget.amount.of == Fraction(3995, 4099) * PERSONS_2020
    assert told.budget.status == "published"
    assert told.input_premetric == hamming_of_multisets("person")
    assert told.output_premetric == NORMALISED_RENYI


def test_the_whole_redistricting_file():
    told = specification(persons="pl94-us-persons-2020", units="pl94-us-units-2020")
    assert told.budget.amount.of == PERSONS_2020 + UNITS_2020
    assert float(told.budget.amount.of) == pytest.approx(2.631169, abs=1e-6)
    assert told.input_premetric == hamming_of_multisets("person")


def test_a_smaller_root_spends_less_on_both():
    told = specification(persons="pl94-us-persons-2020", units="pl94-us-units-2020", root="state")
    units = UNITS_2020 * (1 - Fraction(1, 205))
    assert told.budget.amount.of == Fraction(3995, 4099) * PERSONS_2020 + units


def test_it_is_the_flavor_of_the_catalogue():
    told = specification(persons="pl94-us-persons-2020", units="pl94-us-units-2020")
    listed = catalog.specification("topdown-pl")
    assert told.input_premetric == listed.input_premetric
    assert told.output_premetric == listed.output_premetric
    assert {content(one) for one in told.multiverse.invariants} == {
        content(one) for one in listed.multiverse.invariants
    }
    assert round(float(told.budget.amount.of), 2) == round(float(listed.budget.amount.of), 2)


def content(invariant):
    """Return what an invariant counts, whatever its name; group quarters by any code of type."""
    by = tuple("type" if column in ("gq_type", "gq_major") else column for column in invariant.by)
    where = tuple((c, tuple(sorted(v))) for c, v in sorted(invariant.where.items()))
    return invariant.of, where, by, invariant.level


def test_the_budget_is_that_of_the_noise():
    for name in ("pl94-us-persons-2020", "pl94-pr-persons-2020", "register-country-persons"):
        strategy = load_strategy(name)
        assert spent(strategy) == strategy.rho
    halved = load_strategy("pl94-us-units-2020").changed({"rho": UNITS_2020 / 2})
    assert spent(halved) == UNITS_2020 / 2


def test_invariants_follow_from_the_strategy():
    def names(**parameters):
        return [one.name for one in specification(**parameters).multiverse.invariants]

    housing, quarters = "housing units per block", "occupied group quarters by type per block"
    assert names(persons=PERSONS) == ["state population", housing, quarters]
    assert names(units=UNITS) == [housing]
    assert names(**BOTH) == ["state population", housing, quarters]


def test_a_register_promises_per_person():
    made = mechanism(
        "topdown", load_schema("register-country"), {"persons": "register-country-persons"}
    )
    told = made.specify()
    assert told.budget.amount.of == 2
    assert [one.level for one in told.multiverse.invariants] == ["region", "cell", "cell"]


def test_units_alone_promise_per_household():
    told = specification(units=UNITS)
    assert told.input_premetric == hamming_of_multisets("household")
    assert told.budget.amount.of == Fraction(1, 4)


UNLISTED = {**UNITS, "where": {"kind": {"not": ["group_quarters"]}}}
TENURE = {"name": "ten", "column": "tenure", "missing": "none"}
BY_TENURE = {
    **LEAST,
    "axes": [TENURE, *LEAST["axes"][1:]],
    "zeros": [],
    "quarters": {"axis": "ten"},
    "rounding": ["total", "ten"],
}
ONE_EACH = {**LEAST, "quarters": {"axis": "hhgq", "at_least_one": ["household"]}}
NO_NURSING = {**LEAST, "zeros": [{"hhgq": ["nursing"]}]}
TOO_QUIET = {**UNITS, "rho": "1/1000000000"}
TOO_LOUD = {**LEAST, "rho": "300"}
#: Each level alone could be drawn; both together, where a state is one block, could not.
LOUD_TOGETHER = {
    **UNITS,
    "rho": "150",
    "levels": levels_of({"state": {"detailed": 1}, "block": {"detailed": 1}}),
}
NO_BLOCK = levels_of({"state": {"detailed": 1}, "tract": {"detailed": 1}})

REFUSED = {
    "nothing to count": ({}, "name a strategy"),
    "an unknown strategy": ({"persons": "pl94-us-person-2020"}, "pl94-us-persons-2020"),
    "a path": ({"persons": "/tmp/strategy.yaml"}, "comes with discreet"),
    "units where persons are asked for": ({"persons": UNITS}, "counts units"),
    "persons where units are asked for": ({"units": "pl94-us-persons-2020"}, "counts persons"),
    "an unknown level": ({"persons": PERSONS, "root": "ward"}, "no level 'ward'"),
    "a root below what is exact": ({"persons": PERSONS, "root": "county"}, "state"),
    "tables of an unknown level": ({**BOTH, "tables": ["tracts"]}, "tract"),
    "an unknown way of measuring": ({**BOTH, "measurements": "some"}, "measurements"),
    "an unknown rounder": ({**BOTH, "rounder": "nearest"}, "rounder"),
    "an unknown parameter": ({**BOTH, "seed": 1}, "seed"),
    "a universe that is no list": ({"units": UNLISTED}, "where"),
    "units by tenure, undeclared": ({"persons": BY_TENURE}, "by tenure exact"),
    "a bound that counts vacant units": ({"persons": ONE_EACH}, "vacant"),
    "a bound on some residents": ({"persons": {**LEAST, "where": {"sex": ["1"]}}}, "at_least_one"),
    "a bound without a cell": ({"persons": NO_NURSING}, "no cell"),
    "more noise than can be drawn": ({"units": TOO_QUIET}, "few-units, state.*sigma2"),
    "less noise than can be drawn": ({"persons": TOO_LOUD}, "least-persons, state.*sigma2"),
    "less noise with only children": ({"units": LOUD_TOGETHER}, "few-units, state.*sigma2"),
    "a spine that ends above the blocks": ({"persons": {**LEAST, "levels": NO_BLOCK}}, "block"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_parameters_that_are_refused(why):
    parameters, told = REFUSED[why]
    with pytest.raises(BadInput, match=told):
        mechanism("topdown", US, parameters)


@pytest.mark.parametrize("column", ["tenure", "dwelling_type"])
def test_a_register_does_not_publish_units_by_other_columns(column):
    persons = COUNTRY["persons"]
    own = {
        **persons,
        "axes": [{"name": "dwelling", "column": column, "missing": "none"}, persons["axes"][1]],
        "quarters": {"axis": "dwelling"},
    }
    with pytest.raises(BadInput, match=f"by {column} exact"):
        mechanism("topdown", load_schema("register-country"), {"persons": own})


def test_kinds_that_are_told_apart_are_declared_apart():
    """Two collective kinds: quarters count them one by one, and the promise says so."""
    schema = load_schema("register-country")
    data = schema.model_dump(by_alias=True, exclude_none=True)
    data["units"]["kind"]["codes"]["barracks"] = {"label": "Barracks"}
    data["kinds"]["collective"].append("barracks")
    groups = {**COUNTRY["persons"]["axes"][0]["groups"], "barracks": ["barracks"]}
    axes = [{"name": "dwelling", "column": "kind", "groups": groups}, COUNTRY["persons"]["axes"][1]]
    made = mechanism("topdown", Schema(**data), {"persons": {**COUNTRY["persons"], "axes": axes}})
    (quarters,) = [i for i in made.specify().multiverse.invariants if "quarters" in i.name]
    assert quarters.by == ("kind",)


def test_parameters_read_back():
    made = mechanism("topdown", US, {**BOTH, "measurements": "lazy", "tables": ["county"]})
    assert mechanism("topdown", US, made.parameters()).specify() == made.specify()
