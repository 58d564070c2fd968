"""Totals of the children of one parent, from their noisy totals alone.

    minimise    1/2 sum_c w[c] (t[c] - answer[c])^2,   t[c] = sum_g T[g, c]
    subject to  sum over children of T[g] = parent's group, lower bounds, zeros, exact totals

T is not unique but t is. Less the lower bounds this is a small problem of least squares;
its solver tells which groups share children, directly or through others. Within such a
set every total that is not exact is off its answer by the same multiple of its variance
(the groups' multipliers agree), which gives t to the last digit. Ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled
from discreet.mechanisms.topdown.least_squares import SOLVED, solve

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.uint8]

#: Accuracy asked of the solver, and how far its totals may be moved to the exact ones.
TOLERANCE, NEAR = 1e-6, 1e-2
#: Stands for the weight of a child that was not measured.
TINY = 1e-12


def solve_totals(
    parent_by_group: Integers,
    lower: Integers,
    allowed: Flags,
    answers: Floats,
    weights: Floats,
    exact: Floats,
) -> Floats:
    """Return the totals of the children; not-a-number throughout if there are none.

    `exact` are totals that must be met, not-a-number where a total is free.
    """
    least = lower.sum(axis=0)
    spare = parent_by_group - lower.sum(axis=1)
    goal, limit = answers - least, exact - least
    totals = np.full(least.size, np.nan)
    if np.any(spare < 0) or np.any((lower > 0) & (allowed == 0)):
        return totals
    split, status = split_groups(spare, allowed, goal, weights, limit)
    if status == SOLVED:
        label = np.arange(split.shape[0])
        connect(split, label)
        finish(split, label, goal, weights, limit, totals)
        totals += least
    return totals


def split_groups(
    spare: Integers, allowed: Flags, goal: Floats, weights: Floats, limit: Floats
) -> tuple[Floats, int]:
    """Return what each child has of each group above its lower bound, and a status."""
    used = np.flatnonzero(spare > 0)
    split, _, status = solve(
        np.zeros((1, used.size), dtype=np.int32),
        np.zeros(1, dtype=np.int32),
        goal[None],
        weights[None],
        spare[used],
        np.arange(used.size, dtype=np.int32),
        np.zeros((used.size, goal.size), dtype=np.int64),
        allowed[used],
        limit,
        TOLERANCE,
    )
    return split, status


@compiled
def connect(split: Floats, label: Integers) -> None:
    """Label each group by the first of the set it is in: groups linked by shared children.

    At first each is labelled by itself.
    """
    groups, children = split.shape
    for c in range(children):
        first = -1
        for g in range(groups):
            if split[g, c] <= 0.0:
                continue
            if first < 0:
                first = label[g]
            elif label[g] != first:
                old, new = max(label[g], first), min(label[g], first)
                for other in range(groups):
                    if label[other] == old:
                        label[other] = new
                first = new


@compiled
def finish(
    split: Floats,
    label: Integers,
    goal: Floats,
    weights: Floats,
    limit: Floats,
    totals: Floats,
) -> None:
    """Write the exact totals that belong to a split, or the split's own if they disagree."""
    groups, children = split.shape
    home = np.full(children, -1)
    rest, variance = np.zeros(groups + 1), np.zeros(groups + 1)
    for c in range(children):
        totals[c] = 0.0
        for g in range(groups):
            totals[c] += split[g, c]
            if split[g, c] > 0.0:
                home[c] = label[g]
        if home[c] >= 0 and np.isnan(limit[c]):
            # What the set's children have together is known: the split meets the groups.
            rest[home[c]] += totals[c] - goal[c]
            variance[home[c]] += 1.0 / max(weights[c], TINY)
    for c in range(children):
        if not np.isnan(limit[c]):
            totals[c] = limit[c]
        elif home[c] >= 0:
            better = goal[c] + rest[home[c]] / (max(weights[c], TINY) * variance[home[c]])
            if abs(better - totals[c]) <= NEAR:
                totals[c] = better
