"""What a promise rests on is checked on the data, whatever the schema says and wherever they are.

A schema declares values and where they apply. A file may break that, so the run looks before
it charges anything: the message names table, column, rule and number, and no value.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import narwhals as nw
import pytest

from discreet.census import Census, Schema, as_data, check_structure, load_schema
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism, protect
from discreet.noise import trial
from phsafe.homes import Home, Person, census_of
from topdown.runs import FEWEST, LEAST, LEAST_UNITS, levels_of
from worlds import us_census, write_census

HOMES = [(block, "1", [(40, "1", "01"), (9, "2", "02")]) for block in range(3)]


@pytest.fixture
def census() -> Census:
    return us_census(Engine(threads=1), HOMES)


def given(table: str, column: str, when: nw.Expr, value: object) -> Callable[[Census], Census]:
    """Return a change: a value of a column for some rows."""

    def change(census: Census) -> Census:
        dtype = census.table(table).collect_schema()[column]
        chosen = nw.when(when).then(nw.lit(value, dtype=dtype)).otherwise(nw.col(column))
        rows = census.engine.materialise(census.table(table).with_columns(chosen.alias(column)))
        return replace(census, **{table: rows})

    return change


OCCUPIED, QUARTERS = nw.col("kind") == "occupied", nw.col("kind") == "group_quarters"
TENURE = {"name": "tenure", "column": "tenure"}
BY_TENURE = {
    "units": {
        **LEAST_UNITS,
        "where": {"kind": ["occupied"]},
        "axes": [{"name": "kind", "column": "kind"}, TENURE],
    }
}
SEX = {
    "persons": {
        **LEAST,
        "axes": [{"name": "sex", "column": "sex"}, {"name": "age", "column": "voting_age"}],
        "zeros": [],
        "quarters": None,
        "rounding": ["total"],
        "levels": levels_of({"state": {"detailed": 1}, "block": {"detailed": 1}}),
    }
}

#: Strategies, what is wrong with the data, and what is said.
TOPDOWN = {
    "a type of quarters on occupied units": (
        FEWEST,
        given("units", "gq_type", OCCUPIED, "301"),
        "units.gq_major from units.gq_type: 3 units that are not collective have a value",
    ),
    "a type of quarters on vacant units": (
        FEWEST,
        given("units", "gq_type", nw.col("kind") == "vacant", "501"),
        "units.gq_major from units.gq_type: 1 units that are not collective have a value",
    ),
    "quarters without a type": (
        FEWEST,
        given("units", "gq_type", QUARTERS, None),
        "units.gq_major from units.gq_type: 1 collective units have no value",
    ),
    "a type of quarters that no list has": (
        FEWEST,
        given("units", "gq_type", QUARTERS, "999"),
        "1 collective units have no value, or one that the schema does not list",
    ),
    "an unknown code of an axis": (
        SEX,
        given("persons", "sex", nw.col("age") == 9, "7"),
        "3 persons have a value of 'sex' that the schema does not list",
    ),
    "a missing value of an axis": (
        SEX,
        given("persons", "sex", nw.col("age") == 9, None),
        "3 persons have no value of 'sex'",
    ),
    "a missing value that only the condition of the schema excludes": (
        BY_TENURE,
        given("units", "tenure", OCCUPIED, None),
        "3 units have no value of 'tenure'",
    ),
}


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("why", TOPDOWN)
def test_topdown_refuses_data_that_break_what_it_relies_on(census, tmp_path, why, stored):
    parameters, spoil, says = TOPDOWN[why]
    spoilt = spoil(census)
    if stored:
        spoilt = write_census(spoilt, tmp_path / "census")
    check_structure(spoilt)
    with pytest.raises(BadInput, match=says) as refused:
        mechanism("topdown", census.schema, parameters).check(spoilt)
    assert "301" not in str(refused.value)
    assert "999" not in str(refused.value)


def test_quarters_that_may_have_no_type_are_refused_all_the_same(census):
    """The schema allows it, but such quarters would be in no category of the release."""
    data = as_data(census.schema)
    data["units"]["gq_type"]["missing"] = True
    spoilt = given("units", "gq_type", QUARTERS, None)(census)
    spoilt = replace(spoilt, schema=Schema(**data))
    with pytest.raises(BadInput, match="1 collective units have no value"):
        mechanism("topdown", spoilt.schema, FEWEST).check(spoilt)


def test_occupied_units_with_a_type_would_be_published_as_quarters(census, tmp_path, monkeypatch):
    """The refused case is refused for a reason: their number is exact and not declared."""
    monkeypatch.setattr("discreet.mechanisms.topdown.mechanism.check_types", lambda *_: None)
    spoilt = given("units", "gq_type", OCCUPIED, "301")(census)
    made = mechanism("topdown", census.schema, FEWEST)
    released = protect(made, spoilt, trial(1), tmp_path / "out").microdata(census.engine)
    quarters = released.frame("units", ["block"], where={"kind": ["group_quarters"]})
    assert len(census.engine.rows(quarters)) == 4
    assert len(HOMES) + 1 == 4


@pytest.mark.parametrize("level", ["state", "county", "tract", "block_group"])
def test_a_block_that_lies_in_no_area_of_the_spine_is_refused(census, tmp_path, level):
    first = nw.col("block").str.ends_with("000")
    lost = given("geography", level, first, None)(census)
    for one in (lost, write_census(lost, tmp_path / "census")):
        with pytest.raises(BadInput, match=f"geography.{level}: 1 rows have no value"):
            check_structure(one)


# -- PHSafe -------------------------------------------------------------------------------------

ADULT = nw.col("age") == 35
FAMILY = Home(1, (Person(40, "20"), Person(35, "28"), Person(9, "25")))


def phsafe(table: str):
    """Return the mechanism that measures one table."""
    schema = load_schema("us-decennial")
    whole = mechanism("phsafe", schema, {"configuration": "us-2020", "states": ["50"]})
    budgets = {
        name: {level: ("1" if name == table and level == "state_*" else "0") for level in levels}
        for name, levels in whole.settings.budgets.items()
    }
    return mechanism("phsafe", schema, {**whole.parameters(), "budgets": budgets})


LOST = {
    "an adult without a relationship": ("PH4", given("persons", "relationship", ADULT, None)),
    "an unknown relationship": ("PH4", given("persons", "relationship", ADULT, "99")),
    "a child without an age": ("PH3", given("persons", "age", nw.col("age") == 9, None)),
    "an own child without an age": ("PH6", given("persons", "age", nw.col("age") == 9, None)),
    "a household without a type": ("PH4", given("units", "household_type", OCCUPIED, None)),
    "a family without a type": ("PH5_denom", given("units", "household_type", OCCUPIED, None)),
}


@pytest.mark.parametrize("why", LOST)
def test_phsafe_refuses_records_that_a_filter_would_drop_silently(why):
    table, spoil = LOST[why]
    census = census_of(Engine(threads=1), [FAMILY])
    made = phsafe(table)
    made.check(census)
    with pytest.raises(BadInput, match=rf"table {table}: [13] .* is missing or not legal"):
        phsafe(table).check(spoil(census))


def test_phsafe_refuses_a_schema_whose_kinds_it_does_not_know():
    data = as_data(load_schema("us-decennial"))
    codes = data["units"]["kind"]["codes"]
    codes["empty"] = codes.pop("vacant")
    data["kinds"]["vacant"] = ["empty"]
    data["units"]["vacancy"]["only"] = {"kind": ["empty"]}
    data["rules"], data["tables"] = [], []
    with pytest.raises(BadInput, match="kinds"):
        mechanism("phsafe", Schema(**data), {"configuration": "us-2020", "states": ["50"]})


# -- all mechanisms, through a stored census ------------------------------------------------------


def test_the_census_itself_passes(census, tmp_path: Path):
    stored = write_census(census, tmp_path / "census")
    for one in (census, stored):
        check_structure(one)
        mechanism("topdown", census.schema, FEWEST).check(one)
