"""Rounding with rows of one's own, where the relaxed optimum may not be whole."""

import numpy as np
import pytest

from discreet.errors import DiscreetError
from discreet.mechanisms.topdown import general_rounding
from discreet.mechanisms.topdown.general_rounding import (
    Rows,
    no_rows,
    round_with_rows,
)
from discreet.mechanisms.topdown.rounding import DONE, IMPOSSIBLE, LOOSE, OURS, round_children
from discreet.mechanisms.topdown.rounding_cost import Table
from topdown.tables import cost_of, make_table


def one_row(places, low, high):
    places = np.asarray(places, np.int64)
    return Rows(
        np.array([0, places.size]), places, np.ones(places.size), np.array([low]), np.array([high])
    )


def triangle():
    """Return three cells, two children, one person each, all fractions a half."""
    return Table(
        np.full((3, 2), 0.5), np.ones(3, np.int64), np.zeros((1, 3), np.int32),
        np.zeros((1, 2), np.int64), np.ones((1, 2), np.uint8), np.zeros(3, np.int32),
        np.full(2, np.nan), OURS,
    )  # fmt: skip


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_without_rows_the_cost_is_that_of_the_flow(mode):
    for seed in range(6):
        table = make_table(seed, 12, 4, ties=seed % 2 == 0, exact=seed % 3 == 0)
        table = table._replace(mode=mode)
        result, status = round_with_rows(table, no_rows())
        assert status == DONE
        assert cost_of(table, result) == cost_of(table, round_children(*table)[0])


def test_a_row_is_kept():
    for seed in range(6):
        table = make_table(seed, 15, 4)
        free, _ = round_children(*table)
        cells = np.flatnonzero(table.x.ravel() % 1 > 0.01)[::3]
        held = free.ravel()[cells].sum() - 1.0
        result, status = round_with_rows(table, one_row(cells, held, held))
        assert status in (DONE, LOOSE)
        assert result.ravel()[cells].sum() == held
        assert (result.sum(axis=1) == table.parent).all()
        assert status == LOOSE or cost_of(table, result) >= cost_of(table, free)


def test_rows_whose_relaxed_optimum_is_not_whole():
    # Any two of three cells hold at most one person in child 0, and so in child 1: relaxed,
    # halves do; whole persons cannot.
    pairs = [[0, 2], [2, 4], [0, 4], [1, 3], [3, 5], [1, 5]]
    places = np.concatenate(pairs).astype(np.int64)
    rows = Rows(np.arange(0, 13, 2), places, np.ones(12), np.full(6, -np.inf), np.ones(6))
    model = general_rounding.built(triangle(), rows, loose=False).model()
    relaxed = general_rounding.solve(model, whole=False)
    assert relaxed is not None
    assert np.abs(relaxed - np.rint(relaxed)).max() == pytest.approx(0.5)
    assert round_with_rows(triangle(), rows)[1] == IMPOSSIBLE
    result, status = round_with_rows(
        triangle(), Rows(rows.start[:4], places[:6], *(part[: len(part) // 2] for part in rows[2:]))
    )
    assert status == DONE
    assert result[:, 0].sum() == 1


def test_a_row_may_need_a_cell_that_is_whole():
    table = triangle()._replace(x=np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]))
    result, status = round_with_rows(table, one_row([1], 1.0, 1.0))
    assert status == LOOSE
    assert (result[0] == [0, 1]).all()
    assert (result.sum(axis=1) == 1).all()


def test_a_missing_solver_is_named(monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(general_rounding, "import_module", absent)
    with pytest.raises(DiscreetError, match=r"highspy.*extra 'solvers'"):
        round_with_rows(triangle(), no_rows())
