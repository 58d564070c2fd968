"""Estimate the first level, whose areas have no parent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.mechanisms.topdown.active import Estimate, Integers, Numbers
from discreet.mechanisms.topdown.constraints import Bounds, Held, Impossible
from discreet.mechanisms.topdown.design import Design, Query
from discreet.mechanisms.topdown.estimate import check_estimate
from discreet.mechanisms.topdown.held import equalities, solve_one
from discreet.mechanisms.topdown.root import solve_root
from discreet.mechanisms.topdown.rounding import IMPOSSIBLE, round_root
from discreet.mechanisms.topdown.solve import OK, Problem, Rules, tree_of, way_of_rounding


def estimate_root(design: Design, bounds: Bounds, answers: Callable[[Query], Integers]) -> Estimate:
    """Return whole counts for every node of the first level.

    `answers(query)` are all answers of a query, nodes by rows.
    """
    rules, queries = design.rules(0, bounds), design.queries(0)
    dense = [answers(query) for query in queries]
    start, cells, counts = [0], [], []
    for node in range(design.spine.size(0)):
        allowed = rules.allowed[:, node] > 0
        inside = np.flatnonzero(~design.histogram.zeros & allowed[rules.group_of]).astype(np.int32)
        problem = _problem(rules, node, inside, dense)
        told = _counts(problem, rules, tree_of(rules.tree, inside), inside, node, bounds.held[0])
        if told is None:
            raise Impossible(
                f"topdown, {design.strategy.name}, {design.spine.levels[0]}: no whole counts of "
                f"area {node + 1} satisfy all constraints."
            )
        kept = told > 0
        cells.append(inside[kept])
        counts.append(told[kept])
        start.append(start[-1] + int(kept.sum()))
    made = Estimate(np.array(start), np.concatenate(cells), np.concatenate(counts))
    check_estimate(design, 0, made, None, bounds)
    return made


def _problem(rules: Rules, node: int, inside: Numbers, dense: list[Integers]) -> Problem:
    """Return the problem of one area: one child, and sums of cells that nothing fixes (-1)."""
    row_of, query_of, told, offset = [], [], [], 0
    for q, values in enumerate(dense):
        rows, local = np.unique(rules.row_of[q][inside], return_inverse=True)
        row_of.append(local + offset)
        query_of.append(np.full(rows.size, q))
        told.append(values[node, rows])
        offset += rows.size
    own = slice(node, node + 1)
    return Problem(
        np.ascontiguousarray(row_of, dtype=np.int32),
        np.concatenate(query_of).astype(np.int32),
        np.concatenate(told).astype(np.float64)[:, None],
        np.ascontiguousarray(rules.weights[:, own]),
        np.full(inside.size, -1, dtype=np.int64),
        rules.group_of[inside],
        np.ascontiguousarray(rules.lower[:, own]),
        np.ascontiguousarray(rules.allowed[:, own]),
        rules.totals[own].copy(),
    )


def _counts(
    problem: Problem, rules: Rules, tree: Numbers, inside: Numbers, node: int, held: list[Held]
) -> Integers | None:
    """Return whole counts of one area in the cells `inside`, or nothing if there are none."""
    mode, total = way_of_rounding(rules), float(problem.totals[0])
    if held:
        kept = equalities(held, inside, node, 1)
        if isinstance(kept, str):
            return None
        table, status = solve_one(problem, problem, tree, kept, mode)
        return table[:, 0] if status == OK else None
    x = solve_root(
        problem.row_of,
        problem.query_of,
        problem.answers,
        problem.weights,
        problem.group_of,
        problem.lower,
        problem.allowed,
        total,
    )
    if np.isnan(x).any():
        return None
    counts, wrong = round_root(
        x, tree, problem.lower, problem.allowed, problem.group_of, total, mode
    )
    return None if wrong == IMPOSSIBLE else counts
