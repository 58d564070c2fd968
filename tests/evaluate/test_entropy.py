"""Entropy of areas, worked by hand."""

import dataclasses
import math

import narwhals as nw
import pytest

from discreet.engine import Engine
from discreet.evaluate import entropy
from worlds import us_census


def households(*cells: tuple[int, str, int]) -> list[tuple]:
    """Return households of one person: block, race, how many."""
    return [(block, "1", [(40, "1", race)]) for block, race, count in cells for _ in range(count)]


def by_block(rows: list[tuple], variable: str = "race_group", **options) -> list[float]:
    census = us_census(Engine(), rows, extras=False)
    return [value for _, value in sorted(entropy(census, "block", variable, **options).items())]


def test_one_kind_only_has_no_entropy():
    assert by_block(households((0, "01", 5))) == [0.0]


def test_two_equal_shares_have_the_logarithm_of_two():
    assert by_block(households((0, "01", 3), (0, "02", 3))) == [pytest.approx(math.log(2))]


def test_unequal_shares_and_several_areas():
    found = by_block(
        households((0, "01", 1), (0, "02", 3), (2, "01", 1), (2, "02", 1), (2, "03", 2))
    )
    quarter = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert found == [pytest.approx(quarter), pytest.approx(1.5 * math.log(2))]


def test_empty_areas_are_left_out():
    assert len(by_block(households((1, "01", 2)))) == 1


def test_units_can_be_counted_too():
    rows = [(0, "1", [(40, "1", "01")]), (0, "3", [(40, "1", "01"), (41, "2", "01")])]
    assert by_block(rows, "tenure", count="units") == [pytest.approx(math.log(2))]
    third = -(math.log(1 / 3) / 3 + 2 * math.log(2 / 3) / 3)
    assert by_block(rows, "tenure") == [pytest.approx(third)]


def test_a_census_without_persons_has_no_areas():
    census = us_census(Engine(), households((0, "01", 1)), extras=False)
    nobody = dataclasses.replace(census, persons=census.table("persons").filter(nw.col("age") < 0))
    assert entropy(nobody, "block", "race_group") == {}
