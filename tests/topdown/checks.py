"""What a solution of least squares is held against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topdown.problems import Problem

Floats = NDArray[np.float64]


def row_sums(problem: Problem, x: Floats) -> Floats:
    sums = np.zeros(problem.answers.shape)
    for rows in problem.row_of:
        np.add.at(sums, rows, x)
    return sums


def objective(problem: Problem, x: Floats) -> float:
    off = row_sums(problem, x) - problem.answers
    return float(0.5 * (problem.weights[problem.query_of] * off**2).sum())


def gradient(problem: Problem, x: Floats) -> Floats:
    off = row_sums(problem, x) - problem.answers
    weighted = problem.weights[problem.query_of] * off
    return np.sum([weighted[rows] for rows in problem.row_of], axis=0)


def by_group(problem: Problem, values: NDArray) -> NDArray:
    sums = np.zeros((problem.lower.shape[0], *values.shape[1:]), dtype=values.dtype)
    np.add.at(sums, problem.group_of, values)
    return sums


def breach(problem: Problem, x: Floats) -> float:
    """Return the worst violation of a constraint."""
    parts = (
        abs(x.sum(axis=1) - problem.parent),
        np.nan_to_num(abs(x.sum(axis=0) - problem.totals)),
        problem.lower - by_group(problem, x),
        -x,
        abs(x[problem.allowed[problem.group_of] == 0]),
    )
    return max(float(part.max(initial=0.0)) for part in parts)
