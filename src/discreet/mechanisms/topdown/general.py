"""Least squares with any linear equalities, by the interior point solver PIQP.

For constraints that users define, and to check the compiled solver. Much slower. PIQP
(Schwan, Jiang, Kuhn and Jones 2023) is an optional package.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadInput
from discreet.mechanisms.topdown.least_squares import INFEASIBLE, NOT_CONVERGED, SOLVED

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Numbers = NDArray[np.int32]
Flags = NDArray[np.uint8]

MOST_ITERATIONS = 1000
#: Equalities off by more than this share of the largest count cannot be met.
BREACH = 1e-5


def solve_general(
    row_of: Numbers,
    query_of: Numbers,
    answers: Floats,
    weights: Floats,
    parent: Integers,
    group_of: Numbers,
    lower: Integers,
    allowed: Flags,
    totals: Floats,
    rows: Any = None,
    values: Floats | None = None,
    accuracy: float = 1e-9,
) -> tuple[Floats, int]:
    """Return X [cell, child] and a status, for the problem of `least_squares.solve`.

    `rows`, dense or a SciPy sparse matrix, holds further equalities, one coefficient for
    each X[j, c] at column j * K + c; `values` are their right-hand sides. Unlike `solve`,
    a `parent` below 0 leaves that cell's sum free.
    """
    piqp, sparse = packages()
    limits = parent, group_of, lower, allowed, totals
    choose, measured, bounds, (equal, sides) = _matrices(sparse, row_of, query_of, *limits)
    if rows is not None and values is not None:
        equal = sparse.vstack([equal, sparse.csr_array(rows) @ choose])
        sides = np.concatenate([sides, values])
    # With the answers' fitted values as unknowns too, the curvature is diagonal.
    fitted, used = measured.shape
    weight = weights[query_of].ravel()
    nothing = np.zeros(used), np.full(fitted, -np.inf)
    needed = lower.ravel()[lower.ravel() > 0].astype(np.float64)
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = accuracy
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = accuracy
    solver.settings.max_iter = MOST_ITERATIONS
    solver.setup(
        sparse.diags_array(np.concatenate([nothing[0], weight]), format="csc"),
        np.concatenate([nothing[0], -weight * answers.ravel()]),
        sparse.block_array([[measured, -sparse.eye_array(fitted)], [equal, None]], format="csc"),
        np.concatenate([np.zeros(fitted), sides]),
        sparse.hstack([bounds, sparse.csr_array((needed.size, fitted))], format="csc"),
        needed,
        np.full(needed.size, np.inf),
        np.concatenate(nothing),
        np.full(used + fitted, np.inf),
    )
    outcome = solver.solve()
    x = choose @ np.maximum(solver.result.x[:used], 0.0)
    status = SOLVED if outcome == piqp.PIQP_SOLVED else NOT_CONVERGED
    # Asked for high accuracy, PIQP may give up before it is sure that there is no solution.
    off = abs(equal @ solver.result.x[:used] - sides).max(initial=0.0)
    if status != SOLVED and off > BREACH * (1.0 + abs(sides).max(initial=0.0)):
        status = INFEASIBLE
    return x.reshape(parent.size, totals.size), status


def _matrices(
    sparse: Any,
    row_of: Numbers,
    query_of: Numbers,
    parent: Integers,
    group_of: Numbers,
    lower: Integers,
    allowed: Flags,
    totals: Floats,
) -> tuple[Any, Any, Any, tuple[Any, Floats]]:
    """Return matrices over the unknowns that are not zeros by rule.

    These choose them among all X, give the rows of queries, the groups with a lower bound,
    and the equalities with their right-hand sides.
    """
    cells, children = parent.size, totals.size
    each_cell, each_child = sparse.eye_array(cells), sparse.eye_array(children)
    used = np.flatnonzero(allowed[group_of].ravel() != 0)
    choose = sparse.eye_array(cells * children, format="csc")[:, used]
    place = np.arange(row_of.size) % cells
    queries = sparse.csr_array(
        (np.ones(row_of.size), (row_of.ravel(), place)), (query_of.size, cells)
    )
    groups = sparse.csr_array(
        (np.ones(cells), (group_of, np.arange(cells))), (lower.shape[0], cells)
    )
    by_group = sparse.kron(groups, each_child, format="csr")[lower.ravel() > 0]
    of_cells = sparse.kron(each_cell, np.ones((1, children)), format="csr")[parent >= 0]
    of_children = sparse.kron(np.ones((1, cells)), each_child, format="csr")[~np.isnan(totals)]
    sides = np.concatenate([parent[parent >= 0].astype(np.float64), totals[~np.isnan(totals)]])
    equal = sparse.vstack([of_cells, of_children]) @ choose
    measured = sparse.kron(queries, each_child, format="csr") @ choose
    return choose, measured, by_group @ choose, (equal, sides)


def packages() -> tuple[Any, Any]:
    """Return PIQP and SciPy's sparse matrices."""
    try:
        piqp = importlib.import_module("piqp")
        sparse = importlib.import_module("scipy.sparse")
    except ImportError:
        raise BadInput(
            "constraints: those that users define need the package piqp, which is not installed. "
            "Install it with `pip install discreet[solvers]`, or leave the constraints out."
        ) from None
    return piqp, sparse
