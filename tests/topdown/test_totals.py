"""Totals of children from their noisy totals alone."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.mechanisms.topdown.general import solve_general
from discreet.mechanisms.topdown.least_squares import SOLVED
from discreet.mechanisms.topdown.totals import solve_totals
from topdown.checks import by_group
from topdown.problems import Made, make_problem


def arguments(made: Made, exact: float = 0.0) -> tuple[np.ndarray, ...]:
    """Return what `solve_totals` takes, with the first share of totals exact."""
    problem = made.problem
    groups = by_group(problem, problem.parent)
    known = np.arange(problem.totals.size) < exact * problem.totals.size
    totals = np.where(known, made.problem.totals, np.nan)
    return groups, problem.lower, problem.allowed, made.measured, made.precision, totals


@pytest.mark.parametrize("number", range(30))
def test_no_worse_than_an_interior_point_method(number: int) -> None:
    rng = np.random.default_rng(number)
    level = ("tract", "block_group", "county")[number % 3]
    made = make_problem(
        rng, level, int(rng.integers(2, 12)), 400.0, bypass=0.4, homeless=0.4, totals="true"
    )
    case = arguments(made, 0.3 if number % 4 == 3 else 0.0)
    groups, lower, allowed, measured, precision, exact = case
    totals = solve_totals(*case)
    row_of, query_of = np.zeros((1, 8), dtype=np.int32), np.zeros(1, dtype=np.int32)
    split, status = solve_general(
        row_of,
        query_of,
        measured[None],
        precision[None],
        groups,
        np.arange(8, dtype=np.int32),
        lower,
        allowed,
        exact,
    )
    assert status == SOLVED
    assert abs(totals - split.sum(axis=0)).max() < 1e-3
    assert totals.sum() == pytest.approx(groups.sum(), abs=1e-7)
    best, own = (
        float((precision * (t - measured) ** 2).sum()) for t in (split.sum(axis=0), totals)
    )
    assert own <= best + 1e-8 * (1.0 + best)


def test_a_case_done_by_hand() -> None:
    # Ten at home in either child, six in barracks of the second only: 16 are to be 5 and 5,
    # three more each; then two to one when the second counts half as much.
    groups = np.array([10, 6])
    lower, allowed = np.zeros((2, 2), dtype=np.int64), np.array([[1, 1], [0, 1]], dtype=np.uint8)
    free, measured = np.full(2, np.nan), np.array([5.0, 5.0])
    equal = solve_totals(groups, lower, allowed, measured, np.ones(2), free)
    assert np.allclose(equal, [8.0, 8.0], atol=1e-12)
    weighed = solve_totals(groups, lower, allowed, measured, np.array([2.0, 1.0]), free)
    assert np.allclose(weighed, [7.0, 9.0], atol=1e-12)
    pushed = solve_totals(groups, lower, allowed, np.array([15.0, 1.0]), np.ones(2), free)
    assert np.allclose(pushed, [10.0, 6.0], atol=1e-12)
    fixed = solve_totals(groups, lower, allowed, measured, np.ones(2), np.array([4.0, np.nan]))
    assert np.allclose(fixed, [4.0, 12.0], atol=1e-9)


def test_large_counts_keep_their_last_digits() -> None:
    made = make_problem(np.random.default_rng(8), "county", 60, 3e7)
    case = arguments(made)
    totals = solve_totals(*case)
    assert totals.sum() == pytest.approx(float(case[0].sum()), abs=1e-7)
    # All share housing, so all are off by the same multiple of their variance.
    off = (totals - made.measured) * made.precision
    assert np.ptp(off) < 1e-6


def test_bounds_that_leave_no_choice() -> None:
    lower = np.array([[3, 4], [2, 0]])
    totals = solve_totals(
        np.array([7, 2]),
        lower,
        np.ones((2, 2), dtype=np.uint8),
        np.array([90.0, -5.0]),
        np.ones(2),
        np.full(2, np.nan),
    )
    assert totals.tolist() == [5.0, 4.0]


@pytest.mark.parametrize(
    ("lower", "allowed", "exact"),
    [
        ([[5, 3]], [[1, 1]], [np.nan, np.nan]),
        ([[1, 0]], [[0, 1]], [np.nan, np.nan]),
        ([[0, 0]], [[1, 1]], [3.0, 5.0]),
        ([[0, 0]], [[0, 0]], [np.nan, np.nan]),
    ],
)
def test_what_cannot_be_met_is_not_a_number(
    lower: list[list[int]], allowed: list[list[int]], exact: list[float]
) -> None:
    totals = solve_totals(
        np.array([7]),
        np.array(lower),
        np.array(allowed, dtype=np.uint8),
        np.zeros(2),
        np.ones(2),
        np.array(exact),
    )
    assert np.isnan(totals).all()
