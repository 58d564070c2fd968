"""The cells of the redistricting file, and axes that would break the promise."""

import itertools
from typing import Any

import numpy as np
import pytest

from discreet.census import load_schema
from discreet.errors import BadInput
from discreet.mechanisms.topdown.histogram import Histogram
from discreet.mechanisms.topdown.strategy import load_strategy

RACES = ["White", "Black", "AIAN", "Asian", "NHPI", "Other"]

ROWS = {
    "total": 1,
    "cenrace": 63,
    "hispanic": 2,
    "votingage": 2,
    "hhinstlevels": 3,
    "hhgq": 8,
    "hispanic*cenrace": 126,
    "votingage*cenrace": 126,
    "votingage*hispanic": 4,
    "votingage*hispanic*cenrace": 252,
    "detailed": 2016,
}


@pytest.fixture(scope="module")
def persons() -> Histogram:
    return Histogram(load_strategy("pl94-us-persons-2020"), load_schema("us-decennial"))


# --- the redistricting file ---------------------------------------------------------------------


def test_there_are_2016_cells_in_row_major_order(persons: Histogram) -> None:
    assert persons.shape == (8, 2, 2, 63)
    assert persons.size == 2016
    assert persons.label(0) == "hhgq=household, votingage=under 18, hispanic=1, cenrace=01"
    assert persons.label(63).endswith("hispanic=2, cenrace=01")
    assert persons.label(126).endswith("votingage=18 and over, hispanic=1, cenrace=01")
    assert persons.label(252).startswith("hhgq=correctional, votingage=under 18")
    last = {"hhgq": "other noninstitutional", "votingage": "18 and over"}
    assert persons.cell(**last, hispanic="2", cenrace="63") == 2015


def test_races_are_in_the_order_of_combinations(persons: Histogram) -> None:
    labels = load_schema("us-decennial").persons["race"].codes
    assert labels is not None
    found = [
        labels[code].label.removesuffix(" alone") for code in persons.scale("cenrace").categories
    ]
    sets = itertools.chain.from_iterable(itertools.combinations(RACES, n) for n in range(1, 7))
    assert found == [" + ".join(one) for one in sets]


def test_records_without_a_value_come_first(persons: Histogram) -> None:
    scale = persons.scale("hhgq")
    assert scale.categories[:2] == ("household", "correctional")
    assert scale.place_of[None] == 0
    assert scale.place_of["correctional"] == 1
    assert None not in persons.scale("cenrace").place_of


def test_children_in_nursing_homes_do_not_occur(persons: Histogram) -> None:
    assert persons.zeros.sum() == 126
    hhgq, age, _, _ = persons.places(np.flatnonzero(persons.zeros))
    assert set(hhgq) == {3}
    assert set(age) == {0}


@pytest.mark.parametrize("query", ROWS)
def test_every_query_is_a_partition(persons: Histogram, query: str) -> None:
    row_of, rows, shape = persons.partition(query)
    assert rows == ROWS[query] == np.prod(shape, dtype=int)
    assert row_of.dtype == np.int32
    assert row_of.shape == (2016,)
    assert set(row_of) == set(range(rows))


def test_rows_agree_with_the_categories_of_cells(persons: Histogram) -> None:
    _, age, hispanic, race = persons.places(np.arange(2016))
    assert (persons.partition("votingage*cenrace").row_of == age * 63 + race).all()
    assert (persons.partition("hispanic*cenrace").row_of == hispanic * 63 + race).all()
    assert (persons.partition("detailed").row_of == np.arange(2016)).all()


def test_the_institutions_are_three_groups(persons: Histogram) -> None:
    hhgq = persons.places(np.arange(2016))[0]
    expected = np.array([0, 1, 1, 1, 1, 2, 2, 2])
    assert (persons.partition("hhinstlevels").row_of == expected[hhgq]).all()


def test_quarters_and_the_chain_of_rounding(persons: Histogram) -> None:
    assert (persons.group_of == persons.places(np.arange(2016))[0]).all()
    assert len(persons.groups) == 8
    assert persons.at_least_one.tolist() == [False] + [True] * 7
    assert [part.rows for part in persons.tree] == [1, 8, 16, 1008]


def test_units_are_vacant_or_occupied() -> None:
    units = Histogram(load_strategy("pl94-us-units-2020"), load_schema("us-decennial"))
    assert [units.label(cell) for cell in range(units.size)] == ["h1=vacant", "h1=occupied"]
    assert units.axes[0].place_of == {"vacant": 0, "occupied": 1}
    assert units.groups == ("",)
    assert not units.group_of.any()
    assert not units.at_least_one.any()


def test_another_country() -> None:
    strategy = load_strategy("register-country-persons")
    found = Histogram(strategy, load_schema("register-country"))
    assert found.shape == (2, 2, 4, 3)
    assert found.scale("dwelling").place_of == {"occupied": 0, "vacant": 0, "institution": 1}
    with pytest.raises(BadInput, match="has no level 'region'"):
        Histogram(strategy, load_schema("us-decennial"))


# --- what is refused ----------------------------------------------------------------------------


def histogram(**changes: Any) -> Histogram:
    content = {
        "name": "small",
        "title": "Small",
        "count": "persons",
        "rho": 1,
        "axes": [{"name": "sex", "column": "sex"}],
        "levels": [{"level": "block", "share": 1, "queries": {"detailed": 1}}],
    }
    return Histogram(load_strategy({**content, **changes}), load_schema("us-decennial"))


@pytest.mark.parametrize("column", ["size_class", "household_type", "owner", "tenure", "kind"])
def test_units_may_be_counted_by_what_their_members_are(column: str) -> None:
    axis = {"name": "one", "column": column, "missing": "none"}
    assert histogram(count="units", axes=[axis]).size > 2


@pytest.mark.parametrize("column", ["kind", "gq_type", "gq_major", "tenure"])
def test_persons_may_be_counted_by_their_unit(column: str) -> None:
    assert histogram(axes=[{"name": "one", "column": column, "missing": "none"}]).size > 2


@pytest.mark.parametrize("column", ["size_class", "household_type", "householder_race_group"])
def test_persons_are_not_counted_by_the_other_members(column: str) -> None:
    with pytest.raises(BadInput, match="depends on the members of the unit"):
        histogram(axes=[{"name": "one", "column": column, "missing": "none"}])


def test_not_even_which_persons_are_counted_depends_on_the_others() -> None:
    with pytest.raises(BadInput, match="depends on the members of the unit"):
        histogram(where={"size": {"min": 2}})


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ({"column": "shoe_size"}, "no column 'shoe_size'"),
        ({"column": "rural_urban"}, "belongs to the geography"),
        ({"column": "gq_type"}, "may be missing"),
        ({"column": "gq_major"}, "may be missing"),
        ({"column": "ethnicity_detail"}, "no finite list"),
        ({"column": "sex", "groups": {"men": ["1"]}}, "leave out values of sex"),
        ({"column": "sex", "groups": {"men": ["1"], "women": ["3"]}}, "sex has no '3'"),
        ({"column": "sex", "missing": "1"}, "taken by a category"),
    ],
)
def test_an_axis_that_would_lose_records_is_refused(axis: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        histogram(axes=[{"name": "one", **axis}])


def test_a_value_that_is_present_where_it_is_counted_needs_no_category() -> None:
    axes = [{"name": "tenure", "column": "tenure"}]
    assert histogram(count="units", axes=axes, where={"kind": ["occupied"]}).size == 4
    with pytest.raises(BadInput, match="may be missing"):
        histogram(count="units", axes=axes, where={"kind": ["occupied", "vacant"]})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"where": {"kind": ["ocupied"]}}, "has no such code"),
        ({"where": {"any": 3}}, "needs a list of conditions"),
        ({"recodes": {"one": {"of": "sex", "groups": {"a": ["1"]}}}}, "does not cover"),
        ({"recodes": {"one": {"of": "sex", "groups": {"a": ["1", "3"]}}}}, "sex has no '3'"),
        ({"recodes": {"one": {"of": "sex", "groups": {"a": ["1", "2"], "b": []}}}}, "is empty"),
        ({"zeros": [{"sex": ["3"]}]}, "sex has no '3'"),
        ({"quarters": {"axis": "sex"}, "rounding": ["total", "sex"]}, "a column of the unit"),
    ],
)
def test_what_does_not_fit_the_schema_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        histogram(**changes)


def test_the_chain_must_be_nested() -> None:
    axes = [{"name": "sex", "column": "sex"}, {"name": "age", "column": "voting_age"}]
    assert len(histogram(axes=axes, rounding=["total", "age", "sex*age"]).tree) == 3
    with pytest.raises(BadInput, match="'age' does not subdivide 'sex'"):
        histogram(axes=axes, rounding=["total", "sex", "age"])


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (["block", "county"], "not in the order of the spine"),
        (["state", "county"], "must end at the smallest level"),
        (["place", "block"], "has no level 'place'"),
        (["all"], "must end at the smallest level"),
    ],
)
def test_levels_follow_the_spine(levels: list[str], message: str) -> None:
    share = f"1/{len(levels)}"
    measured = [{"level": one, "share": share, "queries": {"detailed": 1}} for one in levels]
    with pytest.raises(BadInput, match=message):
        histogram(levels=measured)


def test_too_many_cells_are_refused_before_they_are_made() -> None:
    axes = [{"name": "age", "column": "age"}, {"name": "race", "column": "race"}]
    axes += [{"name": "gq", "column": "gq_type", "missing": "none"}]
    axes += [{"name": "relationship", "column": "relationship"}]
    axes += [{"name": "tenure", "column": "tenure", "missing": "none"}]
    with pytest.raises(BadInput, match="Use coarser axes"):
        histogram(axes=axes)
