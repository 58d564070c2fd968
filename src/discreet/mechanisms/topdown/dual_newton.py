"""Newton's direction for the multipliers of totals and lower bounds.

The Hessian of the dual is never formed: times a direction it needs the support of each
cell once. Only totals that are given and bounds that are broken or have a multiplier take
part (see `projection`). The system is solved by conjugate gradients with the diagonal as
preconditioner; cut short they still give a direction in which the dual rises.

What belongs to totals and lower bounds is kept in one array, called rows: its row 0 has a
number for the total of each child, row 1 + g one for the bound of each child on group g.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within
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


class Support(NamedTuple):
    """Where X > 0: children of cell j are child[j, : size[j]], with steps adding to step[j]."""

    child: Numbers
    size: Integers
    step: Floats


@compiled_within
def hessian_times(
    support: Support, group_of: Numbers, metric: Metric, shift: Floats, rows: Floats
) -> None:
    """Write how fast the sums by group and child, and by child, change along a `shift`."""
    rows.fill(0.0)
    steps = metric.child
    for j in range(group_of.size):
        moves = shift[group_of[j]]
        row = rows[1 + group_of[j]]
        mean = 0.0
        for k in range(support.size[j]):
            c = support.child[j, k]
            mean += steps[c] * moves[c]
        mean /= max(support.step[j], TINY)
        for k in range(support.size[j]):
            c = support.child[j, k]
            row[c] += metric.cell[j] * steps[c] * (moves[c] - mean)
    add_groups(rows)


@compiled_within
def hessian_diagonal(support: Support, group_of: Numbers, metric: Metric, rows: Floats) -> None:
    """Write the Hessian's diagonal."""
    rows.fill(0.0)
    steps = metric.child
    for j in range(group_of.size):
        row = rows[1 + group_of[j]]
        for k in range(support.size[j]):
            c = support.child[j, k]
            row[c] += metric.cell[j] * steps[c] * (1.0 - steps[c] / support.step[j])
    add_groups(rows)


@compiled_within
def add_groups(rows: Floats) -> None:
    """Write to row 0 the sums of all others."""
    for c in range(rows.shape[1]):
        total = 0.0
        for r in range(1, rows.shape[0]):
            total += rows[r, c]
        rows[0, c] = total


@compiled
def missing(limits: Limits, sums: Floats, dual: Floats, lack: Floats, active: Flags) -> float:
    """Write what the sums lack (the dual's gradient) and which rows take part.

    Returns the largest in absolute value; it is 0 where a row takes no part.
    """
    worst = 0.0
    for c in range(sums.shape[1]):
        active[0, c] = limits.fixed[c]
        lack[0, c] = limits.totals[c] - sums[0, c] if limits.fixed[c] else 0.0
        worst = max(worst, abs(lack[0, c]))
        for r in range(1, sums.shape[0]):
            value = limits.lower[r - 1, c] - sums[r, c]
            taking_part = limits.lower[r - 1, c] > 0.0 and (value > 0.0 or dual[r, c] > 0.0)
            active[r, c] = 1 if taking_part else 0
            lack[r, c] = value if taking_part else 0.0
            worst = max(worst, abs(lack[r, c]))
    return worst


@compiled
def dot(a: Floats, b: Floats) -> float:
    """Return the inner product of rows."""
    total = 0.0
    for c in range(a.shape[1]):
        for r in range(a.shape[0]):
            total += a[r, c] * b[r, c]
    return total


@compiled
def add(a: Floats, factor: float, b: Floats, result: Floats) -> None:
    """Write a + factor b."""
    for r in range(a.shape[0]):
        for c in range(a.shape[1]):
            result[r, c] = a[r, c] + factor * b[r, c]


@compiled_within
def apply_hessian(
    support: Support,
    group_of: Numbers,
    metric: Metric,
    d: Floats,
    active: Flags,
    ridge: float,
    shift: Floats,
    out: Floats,
) -> None:
    """Write (Hessian + ridge) d on the rows that take part: totals given and active bounds."""
    for g in range(shift.shape[0]):
        for c in range(shift.shape[1]):
            shift[g, c] = d[0, c] + d[1 + g, c]
    hessian_times(support, group_of, metric, shift, out)
    for r in range(out.shape[0]):
        for c in range(out.shape[1]):
            out[r, c] = out[r, c] + ridge * d[r, c] if active[r, c] else 0.0


@compiled
def newton_direction(
    support: Support, group_of: Numbers, metric: Metric, lack: Floats, active: Flags, worst: float
) -> Floats:
    """Solve (Hessian + ridge) d = lack by preconditioned conjugate gradients."""
    solution = np.zeros(lack.shape)
    room = np.zeros((5, lack.shape[0], lack.shape[1]))
    diagonal, image, scaled, search, rest = room[0], room[1], room[2], room[3], room[4]
    shift = np.zeros((lack.shape[0] - 1, lack.shape[1]))
    hessian_diagonal(support, group_of, metric, diagonal)
    unit = largest(metric.cell) * largest(metric.child)
    ridge = RIDGE * max(largest(diagonal[0]), unit) + FAR_RIDGE * min(1.0, worst) * unit
    for r in range(lack.shape[0]):
        for c in range(lack.shape[1]):
            diagonal[r, c] += ridge
            rest[r, c] = lack[r, c]
            search[r, c] = rest[r, c] / diagonal[r, c]
    size = dot(rest, search)
    goal = ACCURACY * size
    for _ in range(GRADIENT_STEPS):
        apply_hessian(support, group_of, metric, search, active, ridge, shift, image)
        curvature = dot(search, image)
        if curvature <= 0.0:
            break
        length = size / curvature
        add(solution, length, search, solution)
        add(rest, -length, image, rest)
        for r in range(rest.shape[0]):
            for c in range(rest.shape[1]):
                scaled[r, c] = rest[r, c] / diagonal[r, c]
        before = size
        size = dot(rest, scaled)
        if size <= goal:
            break
        add(scaled, size / before, search, search)
    return solution
