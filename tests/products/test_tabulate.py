"""Tables are counted as their shells say, at every kind of area."""

import numpy as np
import pytest

from discreet.census import Census, Table
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.products import invariant_counts, tabulate
from discreet.spec import MarginalTable
from worlds import text, us_census

HOUSEHOLDS = [
    (0, "1", [(40, "1", "01"), (12, "2", "07")]),
    (1, "3", [(70, "2", "02")]),
    (2, "1", [(30, "1", "02")]),
]


@pytest.fixture
def census() -> Census:
    return us_census(Engine(threads=1), HOUSEHOLDS, blocks=3, per_county=2)


def rows(census: Census, table, level: str) -> list[tuple]:
    return sorted(census.engine.rows(tabulate(census, table, level)))


def test_persons_by_race_and_county(census):
    assert rows(census, "P1", "county") == [
        ("50001", "Black", 1),
        ("50001", "Two or more", 1),
        ("50001", "White", 1),
        ("50003", "Black", 1),
        ("50003", "White", 1),  # the resident of the nursing home
    ]


def test_a_universe_is_respected(census):
    assert rows(census, "H4", "state") == [("50", "1", 2), ("50", "3", 1)]
    assert rows(census, "P5", "county") == [("50003", "nursing", 1)]


def test_total_without_columns(census):
    shell = Table(name="T", title="all", count="persons", levels=["state"])
    assert rows(census, shell, "state") == [("50", 5)]


def test_non_nested_areas_count_only_what_lies_in_them(census):
    blocks = sorted(row[0] for row in census.engine.rows(census.geography.select("block")))
    places = census.engine.from_numpy(
        {"block": text(blocks), "place": text(["5000001", None, "5000001"])}
    )
    geography = census.geography.join(places, on="block")
    placed = Census(
        census.schema, census.engine, geography, census.units, census.persons, "simulated"
    )
    shell = Table(
        name="T", title="all", count="units", levels=["place"], where={"kind": ["occupied"]}
    )
    assert rows(placed, shell, "place") == [("5000001", 2)]


def test_unknown_names_get_suggestions(census):
    with pytest.raises(BadInput, match="Did you mean 'county'"):
        tabulate(census, "P1", "conty")
    with pytest.raises(BadInput, match="no table 'P9'"):
        tabulate(census, "P9", "county")


def test_an_optional_column_that_is_absent_is_named(census):
    shell = Table(name="T", title="x", count="units", by=["imputed"], levels=["state"])
    with pytest.raises(BadInput, match=r"no column units\.imputed"):
        tabulate(census, shell, "state")


def test_tables_sum_to_the_rows(census):
    count = {
        table.name: sum(r[-1] for r in rows(census, table, "state"))
        for table in census.schema.tables
    }
    assert count == {
        "P1": 5, "P2": 5, "P3": 5, "P5": 1, "P12": 5, "H1": 4, "H4": 3, "H9": 3, "H11": 3,
    }  # fmt: skip


def test_whole_records_are_counted_with_their_members(census):
    invariant = MarginalTable(
        name="r", of="units", level="state", where={"kind": ["occupied"]}, whole_record=True
    )
    counted = census.engine.rows(invariant_counts(census, invariant))
    assert len(counted) == 3
    assert np.sum([row[1] for row in counted]) == 3


def test_a_kind_of_area_the_geography_lacks_is_named(census):
    shell = Table(name="T", title="x", count="units", levels=["place"])
    with pytest.raises(BadInput, match=r"no column geography\.place"):
        tabulate(census, shell, "place")


def test_an_invariant_about_numbers_is_counted(census):
    table = MarginalTable(name="", of="persons", where={"age": ["12", "70"]}, level="state")
    assert [row[-1] for row in census.engine.rows(invariant_counts(census, table))] == [2]
    wrong = table.model_copy(update={"where": {"age": ["young"]}})
    with pytest.raises(BadInput, match="'age' holds numbers"):
        invariant_counts(census, wrong)
