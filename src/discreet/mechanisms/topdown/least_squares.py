"""Weighted non-negative least squares for the children of one parent.

    minimise    1/2 sum_c sum_r w[query of r, c] (sum of X[j, c] over cells j in r - answer[r, c])^2
    subject to  X >= 0, sum over children = parent, lower bounds and zeros by group, totals

Accelerated projected gradients (Beck and Teboulle 2009), with the momentum of strongly
convex functions as its limit and restart when it points uphill (O'Donoghue and Candès
2015). The steps come from `gradient`; the projection is in the metric they define.

Results do not depend on threads: sums over cells are always added in the same chunks.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled
from discreet.mechanisms.topdown.dual_newton import Limits, Metric, Support
from discreet.mechanisms.topdown.gradient import Points, advance, choose_metric, compare
from discreet.mechanisms.topdown.partitions import Partitions, arrange, largest
from discreet.mechanisms.topdown.projection import FIRST, Dual, Room, evaluate, project

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Numbers = NDArray[np.int32]
Flags = NDArray[np.uint8]

SOLVED, NOT_CONVERGED, INFEASIBLE = 0, 1, 2

MOST_ITERATIONS = 20_000
#: A problem of this many unknowns is cut into so many chunks.
LARGE, CHUNKS = 20_000, 16
#: A breach of a sum this large means that there is no feasible point.
BREACH = 1e-3


@compiled
def next_momentum(theta: float, turn: float, condition: float) -> tuple[float, float]:
    """Return the momentum of the next step and theta; both begin anew when it turned uphill."""
    if turn > 0.0:
        return 0.0, 1.0
    ahead = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * theta * theta))
    root = np.sqrt(condition)
    return min((theta - 1.0) / ahead, (root - 1.0) / (root + 1.0)), ahead


@compiled
def feasible(limits: Limits) -> bool:
    """Tell whether groups can be split as the bounds and totals say, each taken by itself."""
    groups, children = limits.lower.shape
    supply = np.zeros(groups)
    people = 0.0
    for j in range(limits.parent.size):
        supply[limits.group_of[j]] += limits.parent[j]
        people += limits.parent[j]
    slack = 1e-6 + 1e-12 * people
    for g in range(groups):
        needed, places = 0.0, 0
        for c in range(children):
            needed += limits.lower[g, c]
            places += limits.allowed[g, c]
        if needed > supply[g] or (supply[g] > 0.0 and places == 0):
            return False
    given, free = 0.0, 0
    for c in range(children):
        least = most = 0.0
        for g in range(groups):
            if limits.lower[g, c] > 0.0 and limits.allowed[g, c] == 0:
                return False
            least += limits.lower[g, c]
            most += supply[g] if limits.allowed[g, c] else 0.0
        if limits.fixed[c] == 0:
            free += 1
        elif limits.totals[c] < least - slack or limits.totals[c] > most + slack:
            return False
        else:
            given += limits.totals[c]
    return given <= people + slack and (free > 0 or given >= people - slack)


def new_limits(
    parent: Integers,
    group_of: Numbers,
    lower: Integers,
    allowed: Flags,
    totals: Floats,
) -> Limits:
    """Return the constraints in real numbers."""
    fixed = (totals == totals).view(np.uint8)  # not if not-a-number
    return Limits(
        parent.astype(np.float64), group_of, lower.astype(np.float64), allowed, totals, fixed
    )


@compiled
def new_room(parts: Partitions, limits: Limits) -> tuple[Dual, Room, Points]:
    """Return room for the multipliers and iterates of a problem."""
    cells = limits.parent.size
    groups, children = limits.lower.shape
    chunks = CHUNKS if cells * children >= LARGE else 1
    rows = np.zeros((5, 1 + groups, children))
    partial = np.zeros((chunks + 1, groups, children))
    iterates = np.zeros((2, cells, children))
    dual = Dual(np.zeros(cells), rows[0], partial[chunks])
    support = Support(
        np.empty((cells, children), dtype=np.int32),
        np.empty(cells, dtype=np.int64),
        np.zeros(cells),
    )
    active = np.empty((1 + groups, children), dtype=np.uint8)
    room = Room(support, partial[:chunks], rows[1], rows[2], rows[3], active, rows[4])
    sums = np.empty((parts.first_row[-1], children))
    points = Points(iterates[0], iterates[1], sums, np.zeros(chunks), np.zeros(chunks))
    return dual, room, points


@compiled
def descend(
    parts: Partitions,
    limits: Limits,
    metric: Metric,
    condition: float,
    tolerance: float,
) -> tuple[Floats, int, int]:
    """Return the solution, the iterations it took and a status.

    By strong convexity X is within condition * |X - Y| of the solution.
    """
    dual, room, points = new_room(parts, limits)
    x, old = parts.aims.copy(), parts.aims.copy()
    people = limits.parent.sum()
    near = tolerance / condition + 1e-15 * people
    meet = min(1e-9, near) + 1e-15 * people
    momentum, theta = 0.0, 1.0
    for iteration in range(1, MOST_ITERATIONS + 1):
        advance(FIRST, x.shape[1], parts, metric, x, old, momentum, points)
        x, old = old, x
        breach = project(points.z, limits, metric, dual, room, x, meet)
        if not breach <= BREACH:
            return x, iteration, INFEASIBLE
        compare(FIRST, points.change.size, metric, x, old, points)
        if largest(points.change) <= near:
            return x, iteration, SOLVED if breach <= 1e-7 + 1e-14 * people else NOT_CONVERGED
        momentum, theta = next_momentum(theta, points.turn.sum(), condition)
    return x, MOST_ITERATIONS, NOT_CONVERGED


def solve(
    row_of: Numbers,
    query_of: Numbers,
    answers: Floats,
    weights: Floats,
    parent: Integers,
    group_of: Numbers,
    lower: Integers,
    allowed: Flags,
    totals: Floats,
    tolerance: float,
    threads: int = 1,
) -> tuple[Floats, int, int]:
    """Return X [cell, child], the number of iterations and a status; see the module.

    With threads the work of each step of a large problem is split; the result is the same, bit
    for bit. Not compiled itself: that would compile all that it calls once more.
    """
    limits = new_limits(parent, group_of, lower, allowed, totals)
    if not feasible(limits):
        return np.zeros((parent.size, totals.size)), 0, INFEASIBLE
    if totals.size == 1 or parent.size == 0:
        return limits.parent.reshape(parent.size, totals.size), 0, SOLVED
    parts = arrange(row_of, query_of, answers, weights)
    metric, condition = choose_metric(parts)
    if threads <= 1 or parent.size * totals.size < LARGE:
        return descend(parts, limits, metric, condition, tolerance)
    with ThreadPoolExecutor(threads) as pool:
        return in_threads(pool, threads)(parts, limits, metric, condition, tolerance)


def in_threads(pool: ThreadPoolExecutor, threads: int) -> Callable[..., tuple[Floats, int, int]]:
    """Return `descend` run by Python, from the same source, each of its steps in threads."""

    def split(kernel: Any) -> Callable[..., None]:
        def run(first: int, last: int, *arguments: Any) -> None:
            ends = [first + (last - first) * part // threads for part in range(threads + 1)]
            tasks = [pool.submit(kernel, *span, *arguments) for span in itertools.pairwise(ends)]
            for task in tasks:
                task.result()

        return run

    projecting = rebound(project, evaluate=split(evaluate))
    return rebound(descend, advance=split(advance), compare=split(compare), project=projecting)


def rebound(kernel: Any, **names: Any) -> Callable[..., Any]:
    """Return a compiled function's Python source as a function that sees other globals."""
    source = kernel.py_func
    return types.FunctionType(source.__code__, {**source.__globals__, **names})
