"""Least squares of one parent, against an interior point method and its own conditions."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.mechanisms.topdown.general import solve_general
from discreet.mechanisms.topdown.least_squares import INFEASIBLE, LARGE, SOLVED, solve
from topdown.checks import breach, by_group, gradient, objective
from topdown.problems import FRACTIONS, Problem, make_problem


def any_problem(number: int) -> Problem:
    """Draw a problem of a kind that depends on its number."""
    rng = np.random.default_rng(number)
    level = str(rng.choice(list(FRACTIONS)))
    made = make_problem(
        rng,
        level,
        int(rng.integers(2, 4 if level in ("state", "county") else 9)),
        float(np.exp(rng.uniform(3, 8))),
        noise=(1.0, 0.0, 3.0, 1.0)[number % 4],
        bypass=0.3 * (number % 2),
        homeless=0.3 * (number % 3 == 0),
        totals=("", "free", "true", "some")[number // 2 % 4],
    )
    problem = made.problem
    if number % 5 == 0:
        # Bounds so high that nothing is left to choose between groups, where truth allows.
        truth = by_group(problem, made.truth)
        tight = truth.sum(axis=1) == by_group(problem, problem.parent)
        problem = problem._replace(lower=np.where(tight[:, None], truth, problem.lower))
    if number % 6 == 1:
        spread = np.exp(rng.uniform(np.log(0.01), np.log(10.0), problem.weights.shape))
        problem = problem._replace(weights=problem.weights * spread)
    return problem


@pytest.mark.parametrize("number", range(60))
def test_no_worse_than_an_interior_point_method(number: int) -> None:
    problem = any_problem(number)
    x, _, status = solve(*problem, 1e-7)
    other, other_status = solve_general(*problem)
    assert (status, other_status) == (SOLVED, SOLVED)
    assert breach(problem, x) < 1e-7
    best = objective(problem, other)
    assert objective(problem, x) <= best + 1e-8 * (1.0 + best)
    assert abs(x - other).max() < 0.05


def test_no_pair_of_people_wants_to_trade_places() -> None:
    # Optimality without multipliers: with sums, totals and bounds kept, nothing is gained
    # by moving mass between two children in one cell and back in another of the same group.
    problem = any_problem(14)
    x, _, _ = solve(*problem, 1e-8)
    slope = gradient(problem, x)
    for group in range(8):
        cells = np.flatnonzero(problem.group_of == group)
        for a in range(x.shape[1]):
            for b in range(x.shape[1]):
                if not problem.allowed[group, [a, b]].all():
                    continue
                # From a to b where a has somebody; back where b has.
                there = (slope[:, b] - slope[:, a])[cells][x[cells, a] > 1e-6]
                back = (slope[:, a] - slope[:, b])[cells][x[cells, b] > 1e-6]
                if there.size and back.size:
                    assert there.min() + back.min() > -1e-5


@pytest.mark.parametrize("level", ["block", "tract"])
def test_without_noise_the_truth_comes_back(level: str) -> None:
    made = make_problem(np.random.default_rng(3), level, 7, 2000.0, noise=0.0, error=0.0)
    x, _, status = solve(*made.problem, 1e-7)
    assert status == SOLVED
    assert abs(x - made.truth).max() < 1e-6


def test_children_in_another_order_get_the_same() -> None:
    problem = any_problem(11)
    order = np.random.default_rng(1).permutation(problem.totals.size)
    turned = problem._replace(
        answers=np.ascontiguousarray(problem.answers[:, order]),
        weights=np.ascontiguousarray(problem.weights[:, order]),
        lower=np.ascontiguousarray(problem.lower[:, order]),
        allowed=np.ascontiguousarray(problem.allowed[:, order]),
        totals=problem.totals[order],
    )
    x, y = solve(*problem, 1e-9)[0], solve(*turned, 1e-9)[0]
    assert abs(x[:, order] - y).max() < 1e-7


def test_thirty_million_people() -> None:
    made = make_problem(np.random.default_rng(5), "county", 20, 3e7, bypass=0.3)
    x, iterations, status = solve(*made.problem, 1e-6)
    assert status == SOLVED
    assert iterations < 500
    assert breach(made.problem, x) < 1e-7


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(threads: int) -> None:
    made = make_problem(np.random.default_rng(6), "county", 70, 2e5, bypass=0.2)
    assert made.problem.parent.size * 70 >= LARGE
    one, several = solve(*made.problem, 1e-6), solve(*made.problem, 1e-6, threads)
    assert np.array_equal(one[0], several[0])
    assert one[1:] == several[1:]


def small(**changes: object) -> Problem:
    """Return two cells in two groups for two children, changed as told."""
    problem = Problem(
        np.array([[0, 1]], dtype=np.int32),
        np.array([0, 0], dtype=np.int32),
        np.array([[3.0, 1.0], [-2.0, 4.0]]),
        np.ones((1, 2)),
        np.array([6, 2]),
        np.array([0, 1], dtype=np.int32),
        np.zeros((2, 2), dtype=np.int64),
        np.ones((2, 2), dtype=np.uint8),
        np.full(2, np.nan),
    )
    return problem._replace(**changes)


def test_a_case_done_by_hand() -> None:
    x, _, status = solve(*small(), 1e-9)
    assert status == SOLVED
    assert np.allclose(x, [[4.0, 2.0], [0.0, 2.0]], atol=1e-9)
    bounded, _, _ = solve(*small(lower=np.array([[0, 0], [1, 0]])), 1e-9)
    assert np.allclose(bounded, [[4.0, 2.0], [1.0, 1.0]], atol=1e-8)
    fixed, _, _ = solve(*small(totals=np.array([5.0, 3.0])), 1e-9)
    assert np.allclose(fixed, [[5.0, 1.0], [0.0, 2.0]], atol=1e-8)


@pytest.mark.parametrize(
    "changes",
    [
        {"lower": np.array([[4, 3], [0, 0]])},
        {"lower": np.array([[1, 0], [0, 0]]), "allowed": np.array([[0, 1], [1, 1]], np.uint8)},
        {"allowed": np.array([[1, 1], [0, 0]], dtype=np.uint8)},
        {"totals": np.array([5.0, 4.0])},
        {"totals": np.array([9.0, np.nan])},
        {"totals": np.array([1.0, np.nan]), "lower": np.array([[1, 0], [1, 0]])},
    ],
)
def test_what_cannot_be_met_is_said_to_be_infeasible(changes: dict[str, object]) -> None:
    assert solve(*small(**changes), 1e-6)[2] == INFEASIBLE


def test_totals_that_only_together_cannot_be_met() -> None:
    # Each total by itself could be met, but both must come out of the first group.
    problem = Problem(
        np.array([[0, 1]], dtype=np.int32),
        np.array([0, 0], dtype=np.int32),
        np.zeros((2, 3)),
        np.ones((1, 3)),
        np.array([4, 6]),
        np.array([0, 1], dtype=np.int32),
        np.zeros((2, 3), dtype=np.int64),
        np.array([[1, 1, 1], [0, 0, 1]], dtype=np.uint8),
        np.array([3.0, 3.0, 4.0]),
    )
    assert solve(*problem, 1e-6)[2] == INFEASIBLE


def test_an_only_child_is_its_parent() -> None:
    made = make_problem(np.random.default_rng(2), "block", 1, 300.0)
    x, _, status = solve(*made.problem, 1e-6)
    assert status == SOLVED
    assert np.array_equal(x[:, 0], made.problem.parent)
