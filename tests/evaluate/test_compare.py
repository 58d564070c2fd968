"""Errors of tables, against cases worked by hand and against NumPy."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.census import Census
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.evaluate import Errors, compare, paired_cells
from worlds import register_census, us_census

WHITE, BLACK = "01", "02"


def single(block: int, race: str, tenure: str = "1") -> tuple:
    """Return a household of one person."""
    return (block, tenure, [(40, "1", race)])


def pair(engine: Engine, before: list, after: list, **options) -> tuple[Census, Census]:
    return tuple(us_census(engine, rows, extras=False, **options) for rows in (before, after))


def rows(engine: Engine, frame) -> list[tuple]:
    return sorted(engine.rows(frame), key=str)


def test_a_case_worked_by_hand():
    # Block 0: White 3 -> 1, Black 0 -> 2. Block 1: White 1 -> 3, Black 2 -> 0. Block 2: as before.
    engine = Engine()
    stays = [single(2, WHITE)]
    before = [single(0, WHITE)] * 3 + [single(1, WHITE)] + [single(1, BLACK)] * 2 + stays
    after = [single(0, WHITE)] + [single(0, BLACK)] * 2 + [single(1, WHITE)] * 3 + stays
    found = compare(*pair(engine, before, after), ["P1"]).at("P1", "block")
    assert found.errors == Errors(
        cells=5,
        changed=4,
        mean_count=7 / 5,
        mean_absolute=8 / 5,
        root_mean_square=math.sqrt(16 / 5),
        mean=0.0,
        percentile_90=2.0,
        largest=2,
    )
    assert found.errors.share_changed == 0.8
    assert found.errors.relative == pytest.approx(8 / 7)
    assert set(found.by_size) == {"1-9"}
    assert compare(*pair(engine, before, after), ["P1"]).at("P1", "county").errors.changed == 0


def test_a_cell_on_one_side_only_counts_zero_on_the_other():
    engine = Engine()
    before, after = pair(engine, [single(0, WHITE)] * 2, [single(0, BLACK)] * 3)
    cells = paired_cells(before, after, before.schema.table("P1"), "state")
    assert rows(engine, cells) == [("50", "Black", 0, 3), ("50", "White", 2, 0)]


def test_a_missing_code_is_a_cell_of_its_own():
    engine = Engine()
    before, after = pair(engine, [single(0, WHITE)] * 2, [single(0, WHITE)] * 2)
    table = before.schema.table("H4").model_copy(update={"by": ["vacancy"]})
    cells = paired_cells(before, after, table, "state")
    assert rows(engine, cells) == [("50", None, 2, 2)]


@pytest.mark.parametrize(
    ("persons", "label"),
    [(1, "1-9"), (9, "1-9"), (10, "10-99"), (99, "10-99"), (100, "100-999")],
)
def test_areas_are_classed_by_their_true_total(persons: int, label: str):
    engine = Engine()
    before, after = pair(engine, [single(0, WHITE)] * persons, [single(0, WHITE)])
    assert set(compare(before, after, ["P1"]).at("P1", "state").by_size) == {label}


def test_an_area_that_was_empty_has_a_class_of_its_own():
    engine = Engine()
    before, after = pair(engine, [single(0, WHITE)], [single(1, WHITE)])
    by_size = compare(before, after, ["P1"]).at("P1", "block").by_size
    assert list(by_size) == ["0", "1-9"]
    assert by_size["0"].mean == 1.0
    assert by_size["1-9"].mean == -1.0


def test_a_table_whose_column_is_absent_is_named_not_fatal():
    engine = Engine()
    before, after = pair(engine, [single(0, WHITE)], [single(0, WHITE)])
    slim = [
        dataclasses.replace(census, units=census.table("units").drop("gq_type"))
        for census in (before, after)
    ]
    comparison = compare(*slim)
    assert set(comparison.missing) == {"P5"}
    assert "gq_type" in comparison.missing["P5"]
    assert {found.table.name for found in comparison.tables} >= {"P1", "H9"}


def test_a_level_that_is_absent_is_named_not_fatal():
    engine = Engine()
    census = register_census(engine, [(0, "owner", [(40, "f", "national")])])
    comparison = compare(census, census, ["R2"])
    assert set(comparison.missing) == {"R2 (urban_area)"}
    assert [found.level for found in comparison.tables] == ["region", "municipality"]


def test_two_engines_are_refused():
    before = us_census(Engine(), [single(0, WHITE)])
    after = us_census(Engine(), [single(0, WHITE)])
    with pytest.raises(BadInput, match="one engine"):
        compare(before, after)


def test_an_unknown_table_or_level_is_refused():
    engine = Engine()
    before, after = pair(engine, [single(0, WHITE)], [single(0, WHITE)])
    with pytest.raises(BadInput, match="P1"):
        compare(before, after, ["P11"])
    with pytest.raises(BadInput, match="not compared"):
        compare(before, after, ["P1"]).at("P1", "place")


@settings(max_examples=15, deadline=None)
@given(
    before=st.lists(st.tuples(st.integers(0, 2), st.sampled_from([WHITE, BLACK])), min_size=1),
    after=st.lists(st.tuples(st.integers(0, 2), st.sampled_from([WHITE, BLACK])), min_size=1),
)
def test_the_engine_agrees_with_numpy(before, after):
    engine = Engine(threads=1)
    censuses = pair(engine, [single(*row) for row in before], [single(*row) for row in after])
    found = compare(*censuses, ["P1"]).at("P1", "block").errors
    cells = sorted({*before, *after})
    error = np.array([after.count(cell) - before.count(cell) for cell in cells])
    assert found.cells == len(cells)
    assert found.changed == (error != 0).sum()
    assert found.mean == pytest.approx(error.mean())
    assert found.mean_absolute == pytest.approx(np.abs(error).mean())
    assert found.root_mean_square == pytest.approx(np.sqrt((error**2).mean()))
    assert found.percentile_90 == pytest.approx(np.quantile(np.abs(error), 0.9))
    assert found.largest == np.abs(error).max()
