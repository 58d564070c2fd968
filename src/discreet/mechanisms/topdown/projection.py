"""The nearest feasible point: X >= 0, given sums over children, totals, and lower bounds.

With multipliers tau of the cells, `total` of the children whose total is given and `bound`
>= 0 of the lower bounds (group, child), the nearest point to Z in the metric
sum (x - z)^2 / (a_j s_c), with steps a of the cells and s of the children, is

    X[j, c] = max(0, Z[j, c] + a_j s_c (total[c] + bound[g(j), c] - tau[j]))

Given the other multipliers, tau[j] is the root of a convex, piecewise linear function of
one variable: Newton's method finds it in finitely many steps, monotone after the first
(cf. Condat 2016 on simplices). What is left is a concave, piecewise quadratic function of
few variables, maximised by Newton's method with a generalised Hessian (Qi and Sun 1993),
projected on bound >= 0 as by Bertsekas (1982): only bounds that are broken or have a
multiplier take part. The system is solved by conjugate gradients without being formed;
for one direction d, the Hessian times d needs each cell's support once. Ours: all of this
together; checked numerically against an interior point method.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled
from discreet.mechanisms.topdown.dual_newton import (
    Limits,
    Metric,
    Support,
    add,
    add_groups,
    missing,
    newton_direction,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.uint8]
Numbers = NDArray[np.int32]

#: The first chunk. As a plain 0 it would be a type of its own, and be compiled for once more.
FIRST: Any = np.int64(0)
#: The shift of a child where a group is not allowed: X is 0 whatever the rest.
NEVER = -1e300
#: Newton steps before a projection is given up, and how often one may be shortened.
NEWTON_STEPS, SHORTENINGS = 100, 30
#: Within this multiple of the tolerance, a step that does not halve the breach is the last.
STALLED = 10.0
#: A step is taken if the slope at its end is above this share of that at its start.
OVERSHOOT = -0.1


class Dual(NamedTuple):
    """Multipliers, kept from one projection to the next, and the shift they amount to.

    `tau` by cell, those of totals and bounds as rows (see `dual_newton`), `shift` by group.
    """

    tau: Floats
    rows: Floats
    shift: Floats


class Room(NamedTuple):
    """Room to work in: the support, sums by group and child of each chunk, and rows.

    Rows (see `dual_newton`): sums now and ahead, what they lack, which take part, and the
    multipliers before a step.
    """

    support: Support
    partial: Floats
    sums: Floats
    ahead: Floats
    lack: Floats
    active: Flags
    old: Floats


@compiled
def above(x: Floats, steps: Floats, t: float, members: Numbers) -> int:
    """Write where x > steps * t; return the number of such places."""
    count = 0
    for c in range(x.size):
        members[count] = c
        if x[c] > steps[c] * t:
            count += 1
    return count


@compiled
def keep(
    x: Floats, steps: Floats, t: float, members: Numbers, count: int
) -> tuple[int, float, float]:
    """Keep those members with x > steps * t; return their number, sum and summed steps."""
    kept = 0
    held = step = 0.0
    for k in range(count):
        c = members[k]
        height = x[c] - steps[c] * t
        members[kept] = c
        if height > 0.0:
            kept += 1
            held += height
            step += steps[c]
    return kept, held, step


@compiled
def settle(
    x: Floats, steps: Floats, parent: float, start: float, members: Numbers
) -> tuple[float, int]:
    """Return t with sum of max(0, x - steps * t) = parent, and the number of terms > 0.

    `members` receives where they are. Left of the root, members only leave: once the
    first estimate is there, all others need not be looked at again.
    """
    t = start
    count = 0
    for trial in range(3):
        count = above(x, steps, t, members)
        if count == 0:
            # Nobody: begin where the child that would be last to leave holds everything.
            t = -np.inf
            for c in range(x.size):
                t = max(t, (x[c] - parent) / steps[c])
            count = above(x, steps, t, members)
        count, held, step = keep(x, steps, t, members, count)
        if count == 0:
            # A step so long that rounding lost the parent; it will be shortened.
            return t, 0
        t += (held - parent) / step
        if held >= parent * (1.0 - 1e-15) or trial == 2:
            break
    while True:
        kept, held, step = keep(x, steps, t, members, count)
        if kept == 0:
            return t, count
        t += (held - parent) / step
        if kept == count:
            return t, count
        count = kept


@compiled
def evaluate(
    first: int,
    last: int,
    z: Floats,
    limits: Limits,
    metric: Metric,
    dual: Dual,
    x: Floats,
    support: Support,
    partial: Floats,
) -> None:
    """Write X of chunks `first` to `last` as the multipliers have it, its support and sums."""
    cells, children = z.shape
    chunks = partial.shape[0]
    steps = metric.child
    for chunk in range(first, last):
        partial[chunk].fill(0.0)
        for j in range(chunk * cells // chunks, (chunk + 1) * cells // chunks):
            row, before, shift = x[j], z[j], dual.shift[limits.group_of[j]]
            members, sums = support.child[j], partial[chunk, limits.group_of[j]]
            scale = metric.cell[j]
            for c in range(children):
                row[c] = before[c] + scale * (steps[c] * shift[c])
            t, count = settle(row, steps, limits.parent[j], dual.tau[j], members)
            step = 0.0
            for c in range(children):
                row[c] = max(0.0, row[c] - steps[c] * t)
            for k in range(count):
                sums[members[k]] += row[members[k]]
                step += steps[members[k]]
            dual.tau[j], support.size[j], support.step[j] = t, count, step


@compiled
def add_up(partial: Floats, sums: Floats) -> None:
    """Write the sums of all rows over all chunks, always added in the same order."""
    sums.fill(0.0)
    for chunk in range(partial.shape[0]):
        for g in range(partial.shape[1]):
            for c in range(partial.shape[2]):
                sums[1 + g, c] += partial[chunk, g, c]
    add_groups(sums)


@compiled
def move(allowed: Flags, dual: Dual, old: Floats, d: Floats, length: float) -> None:
    """Set the multipliers to old + length d, but no bound's below 0, and their shift."""
    for c in range(d.shape[1]):
        dual.rows[0, c] = old[0, c] + length * d[0, c]
        for r in range(1, d.shape[0]):
            dual.rows[r, c] = max(0.0, old[r, c] + length * d[r, c])
            open_to = allowed[r - 1, c] != 0
            dual.shift[r - 1, c] = dual.rows[0, c] + dual.rows[r, c] if open_to else NEVER


@compiled
def slope(limits: Limits, sums: Floats, old: Floats, dual: Floats) -> float:
    """Return how fast the dual rises, where the sums are these, from `old` to `dual`."""
    rise = 0.0
    for c in range(sums.shape[1]):
        if limits.fixed[c]:
            rise += (dual[0, c] - old[0, c]) * (limits.totals[c] - sums[0, c])
        for r in range(1, sums.shape[0]):
            rise += (dual[r, c] - old[r, c]) * (limits.lower[r - 1, c] - sums[r, c])
    return rise


@compiled
def shorten(start: float, end: float) -> float:
    """Return the share of a step to keep, from the slopes at both ends; 1 if it is good."""
    if start > 0.0 and end >= OVERSHOOT * start:
        return 1.0
    share = 0.5 if start <= 0.0 else start / (start - end)
    return max(0.1, min(0.7, share))


@compiled
def project(
    z: Floats,
    limits: Limits,
    metric: Metric,
    dual: Dual,
    room: Room,
    x: Floats,
    tolerance: float,
) -> float:
    """Write to `x` the feasible point nearest to `z`; return the worst breach of a sum."""
    support, partial, old = room.support, room.partial, room.old
    move(limits.allowed, dual, dual.rows, dual.rows, 0.0)
    evaluate(FIRST, partial.shape[0], z, limits, metric, dual, x, support, partial)
    add_up(partial, room.sums)
    worst = missing(limits, room.sums, dual.rows, room.lack, room.active)
    for _ in range(NEWTON_STEPS):
        if worst <= tolerance:
            break
        direction = newton_direction(
            support, limits.group_of, metric, room.lack, room.active, worst
        )
        add(dual.rows, 0.0, dual.rows, old)
        length = 1.0
        for _ in range(SHORTENINGS):
            move(limits.allowed, dual, old, direction, length)
            start = slope(limits, room.sums, old, dual.rows)
            evaluate(FIRST, partial.shape[0], z, limits, metric, dual, x, support, partial)
            add_up(partial, room.ahead)
            share = shorten(start, slope(limits, room.ahead, old, dual.rows))
            if share == 1.0:
                break
            length *= share
        add_up(partial, room.sums)
        before = worst
        worst = missing(limits, room.sums, dual.rows, room.lack, room.active)
        if 0.5 * before <= worst <= STALLED * tolerance:
            # Rounding allows no more.
            break
    return worst
