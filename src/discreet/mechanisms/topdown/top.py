"""Estimate the first level, whose areas have no parent."""

from __future__ import annotations

import numpy as np

from discreet.errors import BadInput
from discreet.mechanisms.topdown.active import Estimate, Integers, Numbers
from discreet.mechanisms.topdown.constraints import Bounds, Facts, Held, Impossible
from discreet.mechanisms.topdown.design import Design
from discreet.mechanisms.topdown.estimate import bounds_for, check_estimate
from discreet.mechanisms.topdown.failure import failure
from discreet.mechanisms.topdown.held import equalities, solve_one
from discreet.mechanisms.topdown.root import solve_root
from discreet.mechanisms.topdown.rounding import IMPOSSIBLE, LOOSE, OURS, round_root
from discreet.mechanisms.topdown.solve import (
    INFEASIBLE,
    LOOSELY_ROUNDED,
    NOT_ROUNDED,
    OK,
    Problem,
    Rules,
    tree_of,
    way_of_rounding,
)


def estimate_root(design: Design, bounds: Bounds, answers: list[Integers]) -> Estimate:
    """Return whole counts for every node of the first level.

    `answers` are all answers of each query, nodes by rows.
    """
    rules = design.rules(0, bounds)
    start, cells, counts = [0], [], []
    for node in range(design.spine.size(0)):
        allowed = rules.allowed[:, node] > 0
        inside = np.flatnonzero(~design.histogram.zeros & allowed[rules.group_of]).astype(np.int32)
        problem = root_problem(rules, node, inside, answers)
        tree, held = tree_of(rules.tree, inside), bounds.held[0]
        told, status, failed = _counts(problem, rules, tree, inside, node, held)
        if status != OK:
            raise failure(design, 0, bounds, status, node, above=False, held=failed)
        kept = told > 0
        cells.append(inside[kept])
        counts.append(told[kept])
        start.append(start[-1] + int(kept.sum()))
    made = Estimate(np.array(start), np.concatenate(cells), np.concatenate(counts))
    check_estimate(design, 0, made, None, bounds)
    return made


def check_held_together(design: Design, facts: Facts) -> None:
    """Refuse statistics that the user holds if no counts of the first level satisfy them all.

    Exact statistics alone decide that, whatever the noisy answers are: so answers of 0 tell it
    before anything is drawn. Levels below also depend on the estimate above them.
    """
    if not design.strategy.hold:
        return
    nodes = design.spine.size(0)
    nothing = [np.zeros((nodes, query.rows), dtype=np.int64) for query in design.queries(0)]
    try:
        estimate_root(design, bounds_for(design, facts), nothing)
    except Impossible as reason:
        raise BadInput(str(reason)) from None


def root_problem(rules: Rules, node: int, inside: Numbers, dense: list[Integers]) -> Problem:
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
) -> tuple[Integers, int, str]:
    """Return whole counts of one area in the cells `inside`, how it ended, and what failed."""
    mode, total = way_of_rounding(rules), float(problem.totals[0])
    none = np.zeros(inside.size, dtype=np.int64)
    if held:
        kept = equalities(held, inside, node, 1)
        if isinstance(kept, str):
            return none, INFEASIBLE, kept
        table, status = solve_one(problem, problem, tree, kept, mode)
        return table[:, 0], status, "" if status == OK else " or ".join(one.name for one in held)
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
        return none, INFEASIBLE, ""
    counts, wrong = round_root(
        x, tree, problem.lower, problem.allowed, problem.group_of, total, mode
    )
    if wrong == LOOSE and mode == OURS:
        return counts, LOOSELY_ROUNDED, ""
    return counts, NOT_ROUNDED if wrong == IMPOSSIBLE else OK, ""
