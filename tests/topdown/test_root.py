"""Least squares of the root."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.mechanisms.topdown.general import solve_general
from discreet.mechanisms.topdown.least_squares import SOLVED
from discreet.mechanisms.topdown.root import solve_root
from topdown.checks import by_group, objective
from topdown.problems import NURSING, QUERIES, Problem, first_seen, partition, weights_of


def root_problem(number: int, people: float) -> Problem:
    """Draw the problem of a root: all cells but minors in nursing homes; parent free."""
    rng = np.random.default_rng(number)
    cells = np.arange(2016)
    cells = cells[(cells // 126 != 2 * NURSING) & (cells % 63 < 21)]
    law = rng.dirichlet(np.full(cells.size, 0.05))
    truth = rng.multinomial(int(people), law)[:, None]
    rows, answers, queries = [], [], []
    begin = 0
    for place, name in enumerate(QUERIES):
        local, labels = first_seen(partition(name)[cells])
        counts = np.zeros((labels.size, 1))
        np.add.at(counts, local, truth)
        deviation = 1.0 / np.sqrt(weights_of("county")[place])
        answers.append(np.rint(counts + rng.normal(0.0, deviation, counts.shape)))
        rows.append(begin + local)
        queries.append(np.full(labels.size, place))
        begin += labels.size
    group_of = (cells // 252).astype(np.int32)
    held = np.bincount(group_of, weights=truth[:, 0], minlength=8)
    lower = np.where(held > 0, rng.integers(0, 2, 8) * held, 0).astype(np.int64)[:, None]
    return Problem(
        np.array(rows, dtype=np.int32),
        np.concatenate(queries).astype(np.int32),
        np.concatenate(answers),
        weights_of("county")[:, None],
        np.full(cells.size, -1),
        group_of,
        lower,
        (held > 0).astype(np.uint8)[:, None],
        np.array([people if number % 2 else np.nan]),
    )


def run(problem: Problem) -> np.ndarray:
    return solve_root(
        problem.row_of,
        problem.query_of,
        problem.answers,
        problem.weights,
        problem.group_of,
        problem.lower,
        problem.allowed,
        problem.totals[0],
    )


@pytest.mark.parametrize("number", range(6))
def test_no_worse_than_an_interior_point_method(number: int) -> None:
    problem = root_problem(number, 3000.0)
    x = run(problem)[:, None]
    other, status = solve_general(*problem)
    assert status == SOLVED
    assert x.min() >= 0.0
    assert (by_group(problem, x) >= problem.lower - 1e-7).all()
    assert not x[problem.allowed[problem.group_of, 0] == 0].any()
    if number % 2:
        assert x.sum() == pytest.approx(3000.0, abs=1e-8)
    best = objective(problem, other)
    assert objective(problem, x) <= best + 1e-8 * (1.0 + best)


def test_a_nation() -> None:
    problem = root_problem(1, 3.3e8)
    x = run(problem)
    assert x.sum() == pytest.approx(3.3e8, abs=1e-6)
    assert x.min() >= 0.0


def test_what_cannot_be_met_is_not_a_number() -> None:
    problem = root_problem(1, 100.0)
    assert np.isnan(run(problem._replace(lower=problem.lower + 100))).all()
    assert np.isnan(run(problem._replace(allowed=0 * problem.allowed))).all()
