"""Least squares with further equalities, by an interior point method."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from discreet.errors import BadInput
from discreet.mechanisms.topdown.general import solve_general
from discreet.mechanisms.topdown.least_squares import INFEASIBLE, SOLVED
from topdown.checks import breach
from topdown.problems import make_problem


def test_further_equalities_hold() -> None:
    problem = make_problem(np.random.default_rng(1), "tract", 4, 500.0).problem
    plain, _ = solve_general(*problem)
    # The first two children together have as many of the first cell as the other two.
    rows = np.zeros((1, plain.size))
    rows[0, :4] = [1.0, 1.0, -1.0, -1.0]
    assert abs(rows @ plain.ravel()) > 0.1
    x, status = solve_general(*problem, rows=rows, values=np.zeros(1))
    assert status == SOLVED
    assert abs(rows @ x.ravel()) < 1e-6
    assert breach(problem, x) < 1e-5


def test_equalities_that_contradict_are_infeasible() -> None:
    problem = make_problem(np.random.default_rng(1), "block", 3, 60.0).problem
    rows = np.zeros((1, problem.parent.size * 3))
    rows[0, 0] = 1.0
    _, status = solve_general(*problem, rows=rows, values=np.array([1e6]))
    assert status == INFEASIBLE


def test_without_the_package_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "piqp", None)
    problem = make_problem(np.random.default_rng(1), "block", 2, 20.0).problem
    with pytest.raises(BadInput, match="pip install"):
        solve_general(*problem)
