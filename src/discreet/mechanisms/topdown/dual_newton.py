"""Newton's direction for the multipliers of totals and lower bounds.

The Hessian of the dual is never formed: times a direction it needs the support of each
cell once. Only totals that are given and bounds that are broken or have a multiplier take
part (see `projection`). The system is solved by conjugate gradients with the diagonal as
preconditioner; cut short they still give a direction in which the dual rises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled
from discreet.mechanisms.topdown.partitions import largest

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.uint8]
Numbers = NDArray[np.int32]

#: Conjugate gradients end after so many steps, or at this share of the squared residual.
GRADIENT_STEPS, ACCURACY = 200, 1e-6
#: Added to the Hessian: always, relative to its largest entry, and while far from the end.
RIDGE, FAR_RIDGE = 1e-10, 1e-2
TINY = 1e-300


class Limits(NamedTuple):
    """What X must satisfy, as real numbers; where a total is free, `fixed` is 0."""

    parent: Floats
    group_of: Numbers
    lower: Floats
    allowed: NDArray[np.uint8]
    totals: Floats
    fixed: NDArray[np.uint8]


class Metric(NamedTuple):
    """Step lengths cell[j] child[c] of X[j, c]; `inverse` has one over those of children."""

    cell: Floats
    child: Floats
    inverse: Floats


class Rows(NamedTuple):
    """A number for each total [child] and each lower bound [group, child]."""

    total: Floats
    bound: Floats


class Support(NamedTuple):
    """Where X > 0: children of cell j are child[j, : size[j]], with steps adding to step[j]."""

    child: Numbers
    size: Integers
    step: Floats


@compiled
def hessian_times(
    support: Support, group_of: Numbers, metric: Metric, direction: Floats, result: Floats
) -> None:
    """Write how fast the sums by group and child change along a direction of the shift."""
    result.fill(0.0)
    steps = metric.child
    for j in range(group_of.size):
        moves = direction[group_of[j]]
        row = result[group_of[j]]
        mean = 0.0
        for k in range(support.size[j]):
            c = support.child[j, k]
            mean += steps[c] * moves[c]
        mean /= max(support.step[j], TINY)
        for k in range(support.size[j]):
            c = support.child[j, k]
            row[c] += metric.cell[j] * steps[c] * (moves[c] - mean)


@compiled
def hessian_diagonal(support: Support, group_of: Numbers, metric: Metric, result: Floats) -> None:
    """Write the Hessian's diagonal by group and child."""
    result.fill(0.0)
    steps = metric.child
    for j in range(group_of.size):
        row = result[group_of[j]]
        for k in range(support.size[j]):
            c = support.child[j, k]
            row[c] += metric.cell[j] * steps[c] * (1.0 - steps[c] / support.step[j])


@compiled
def child_sum(sums: Floats, child: int) -> float:
    """Return a child's sum over groups."""
    total = 0.0
    for g in range(sums.shape[0]):
        total += sums[g, child]
    return total


@compiled
def missing(limits: Limits, sums: Floats, bound: Floats, lack: Rows, active: Flags) -> float:
    """Write what the sums lack (the dual's gradient) and which bounds take part.

    Returns the largest in absolute value; it is 0 where a bound takes no part.
    """
    worst = 0.0
    for c in range(sums.shape[1]):
        lack.total[c] = limits.totals[c] - child_sum(sums, c) if limits.fixed[c] else 0.0
        worst = max(worst, abs(lack.total[c]))
        for g in range(sums.shape[0]):
            value = limits.lower[g, c] - sums[g, c]
            taking_part = limits.lower[g, c] > 0.0 and (value > 0.0 or bound[g, c] > 0.0)
            active[g, c] = 1 if taking_part else 0
            lack.bound[g, c] = value if taking_part else 0.0
            worst = max(worst, abs(lack.bound[g, c]))
    return worst


@compiled
def new_rows(groups: int, children: int) -> Rows:
    """Return a number for each total and each bound, all 0."""
    return Rows(np.zeros(children), np.zeros((groups, children)))


@compiled
def dot(a: Rows, b: Rows) -> float:
    """Return the inner product."""
    total = 0.0
    for c in range(a.total.size):
        total += a.total[c] * b.total[c]
        for g in range(a.bound.shape[0]):
            total += a.bound[g, c] * b.bound[g, c]
    return total


@compiled
def add(a: Rows, factor: float, b: Rows, result: Rows) -> None:
    """Write a + factor b."""
    for c in range(a.total.size):
        result.total[c] = a.total[c] + factor * b.total[c]
        for g in range(a.bound.shape[0]):
            result.bound[g, c] = a.bound[g, c] + factor * b.bound[g, c]


@compiled
def divide(a: Rows, b: Rows, result: Rows) -> None:
    """Write a / b."""
    for c in range(a.total.size):
        result.total[c] = a.total[c] / b.total[c]
        for g in range(a.bound.shape[0]):
            result.bound[g, c] = a.bound[g, c] / b.bound[g, c]


@compiled
def apply_hessian(
    support: Support,
    limits: Limits,
    metric: Metric,
    d: Rows,
    active: Flags,
    ridge: float,
    out: Rows,
) -> None:
    """Write (Hessian + ridge) d on the rows that take part: totals given and active bounds."""
    groups, children = d.bound.shape
    shift = np.empty((groups, children))
    for g in range(groups):
        for c in range(children):
            shift[g, c] = d.total[c] + d.bound[g, c]
    hessian_times(support, limits.group_of, metric, shift, out.bound)
    for c in range(children):
        rest = child_sum(out.bound, c) + ridge * d.total[c]
        out.total[c] = rest if limits.fixed[c] else 0.0
        for g in range(groups):
            rest = out.bound[g, c] + ridge * d.bound[g, c]
            out.bound[g, c] = rest if active[g, c] else 0.0


@compiled
def newton_direction(
    support: Support, limits: Limits, metric: Metric, lack: Rows, active: Flags, worst: float
) -> Rows:
    """Solve (Hessian + ridge) d = lack by preconditioned conjugate gradients."""
    groups, children = lack.bound.shape
    diagonal = new_rows(groups, children)
    hessian_diagonal(support, limits.group_of, metric, diagonal.bound)
    for c in range(children):
        diagonal.total[c] = child_sum(diagonal.bound, c)
    unit = largest(metric.cell) * largest(metric.child)
    ridge = RIDGE * max(largest(diagonal.total), unit) + FAR_RIDGE * min(1.0, worst) * unit
    for c in range(children):
        diagonal.total[c] += ridge
        for g in range(groups):
            diagonal.bound[g, c] += ridge
    solution, image = new_rows(groups, children), new_rows(groups, children)
    scaled, search = new_rows(groups, children), new_rows(groups, children)
    rest = new_rows(groups, children)
    add(lack, 0.0, lack, rest)
    divide(rest, diagonal, search)
    size = dot(rest, search)
    goal = ACCURACY * size
    for _ in range(GRADIENT_STEPS):
        apply_hessian(support, limits, metric, search, active, ridge, image)
        curvature = dot(search, image)
        if curvature <= 0.0:
            break
        length = size / curvature
        add(solution, length, search, solution)
        add(rest, -length, image, rest)
        divide(rest, diagonal, scaled)
        before = size
        size = dot(rest, scaled)
        if size <= goal:
            break
        add(scaled, size / before, search, search)
    return solution
