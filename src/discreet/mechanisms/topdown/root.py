"""Least squares for the root: one node, no parent, all cells that may hold anybody.

The same accelerated gradients as for children. The projection is simpler: with a level
m >= 0 of each group, x[j] = max(0, z[j] + a_j m). Groups share a level, which makes the
total right, but those whose sum would be below their bound: these have the higher level
that meets it. What the groups hold together is convex and increasing in the shared level,
so Newton's method started above the root falls to it. Ours (elementary).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within
from discreet.mechanisms.topdown.dual_newton import Metric
from discreet.mechanisms.topdown.gradient import Points, choose_metric, compare, residuals_of
from discreet.mechanisms.topdown.least_squares import MOST_ITERATIONS, next_momentum
from discreet.mechanisms.topdown.partitions import CELLS, Partitions, arrange

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Numbers = NDArray[np.int32]
Flags = NDArray[np.uint8]

TOLERANCE = 1e-6
MOST_STEPS = 500


def solve_root(
    row_of: Numbers,
    query_of: Numbers,
    answers: Floats,
    weights: Floats,
    group_of: Numbers,
    lower: Integers,
    allowed: Flags,
    total: float,
) -> Floats:
    """Return the counts of the cells; not-a-number throughout if there are none.

    `total` is what they must add up to, or not-a-number if that is free. There are few roots:
    compiled are only the parts of an iteration, most of which children need as well.
    """
    cells = group_of.size
    members = np.zeros(lower.shape[0], dtype=np.int64)
    np.add.at(members, group_of, allowed[group_of, 0])
    if not root_feasible(members, lower, total):
        return np.full(cells, np.nan)
    parts = arrange(row_of, query_of, answers, weights)
    metric, condition = choose_metric(parts)
    iterates = np.zeros((2, cells, 1))
    points = Points(iterates[0], iterates[1], np.zeros((0, 1)), np.zeros(1), np.zeros(1))
    x, old = parts.aims.copy(), parts.aims.copy()
    steps = metric.cell * metric.child[0]
    levels = np.zeros(lower.shape[0])
    momentum, theta = 0.0, 1.0
    for _ in range(MOST_ITERATIONS):
        advance_root(parts, metric, x, old, momentum, points)
        x, old = old, x
        find_levels(points.z, steps, group_of, lower, members, total, levels)
        fill(points.z, steps, group_of, members, levels, x)
        compare(0, 1, metric, x, old, points)
        if points.change[0] <= TOLERANCE / condition + 1e-15 * x.max():
            return x[:, 0].copy()
        momentum, theta = next_momentum(theta, float(points.turn[0]), condition)
    return np.full(cells, np.nan)


@compiled
def advance_root(
    parts: Partitions, metric: Metric, x: Floats, old: Floats, momentum: float, points: Points
) -> None:
    """Extrapolate to Y and take a gradient step to Z, as `gradient.advance` for many children."""
    y = np.zeros(x.size)
    for j in range(y.size):
        y[j] = x[j, 0] + momentum * (x[j, 0] - old[j, 0])
    sums = residuals_of(parts, parts.weights.reshape(-1), parts.targets.reshape(-1), y)
    for j in range(y.size):
        slope = parts.diagonal[0] * (y[j] - parts.aims[j, 0])
        for p in range(parts.source.size):
            if parts.source[p] == CELLS:
                slope += sums[parts.into[parts.first_entry[p] + j]]
        points.y[j, 0] = y[j]
        points.z[j, 0] = y[j] - metric.cell[j] * (metric.child[0] * slope)


@compiled
def root_feasible(members: Integers, lower: Integers, total: float) -> bool:
    """Tell whether bounds and total can be met by the cells there are."""
    needed, places = 0, 0
    for g in range(members.size):
        needed += lower[g, 0]
        places += members[g]
        if lower[g, 0] > 0 and members[g] == 0:
            return False
    return np.isnan(total) or (needed <= total and (places > 0 or total == 0.0))


@compiled
def fill(
    z: Floats, steps: Floats, group_of: Numbers, members: Integers, levels: Floats, x: Floats
) -> None:
    """Write x as the levels have it."""
    for j in range(steps.size):
        open_to = members[group_of[j]] > 0
        x[j, 0] = max(0.0, z[j, 0] + steps[j] * levels[group_of[j]]) if open_to else 0.0


@compiled_within
def group_at(
    z: Floats, steps: Floats, group_of: Numbers, levels: Floats, held: Floats, slope: Floats
) -> None:
    """Write what groups hold at their levels, and how fast that grows."""
    held.fill(0.0)
    slope.fill(0.0)
    for j in range(steps.size):
        g = group_of[j]
        height = z[j, 0] + steps[j] * levels[g]
        if height > 0.0:
            held[g] += height
            slope[g] += steps[j]


@compiled
def find_levels(
    z: Floats,
    steps: Floats,
    group_of: Numbers,
    lower: Integers,
    members: Integers,
    total: float,
    levels: Floats,
) -> None:
    """Write the level of each group: shared ones first, then those held up by their bound."""
    groups = levels.size
    held, slope = np.empty(groups), np.empty(groups)
    shared = (
        0.0 if np.isnan(total) else shared_level(z, steps, group_of, lower, members, total, levels)
    )
    levels.fill(shared)
    group_at(z, steps, group_of, levels, held, slope)
    low = np.zeros(groups, dtype=np.uint8)
    for g in range(groups):
        if held[g] < lower[g, 0]:
            low[g] = 1
            levels[g] = level_above(z, steps, group_of, g, float(lower[g, 0]))
    for _ in range(MOST_STEPS):
        group_at(z, steps, group_of, levels, held, slope)
        moved = False
        for g in range(groups):
            excess = held[g] - lower[g, 0]
            if low[g] and excess > 1e-15 * lower[g, 0] and slope[g] > 0.0:
                before = levels[g]
                levels[g] -= excess / slope[g]
                moved = moved or levels[g] < before
        if not moved:
            break


@compiled_within
def level_above(z: Floats, steps: Floats, group_of: Numbers, group: int, wanted: float) -> float:
    """Return a level at which one cell of a group holds all that is wanted."""
    level = np.inf
    for j in range(steps.size):
        if group_of[j] == group:
            level = min(level, (wanted - z[j, 0]) / steps[j])
    return level


@compiled_within
def shared_level(
    z: Floats,
    steps: Floats,
    group_of: Numbers,
    lower: Integers,
    members: Integers,
    total: float,
    levels: Floats,
) -> float:
    """Return the level at which groups, each at least at its bound, add up to the total."""
    groups = levels.size
    held, slope = np.empty(groups), np.empty(groups)
    level = np.inf  # at which one cell holds all
    for j in range(steps.size):
        if members[group_of[j]] > 0:
            level = min(level, (total - z[j, 0]) / steps[j])
    for _ in range(MOST_STEPS):
        levels.fill(level)
        group_at(z, steps, group_of, levels, held, slope)
        excess, steepness = -total, 0.0
        for g in range(groups):
            excess += max(held[g], float(lower[g, 0])) if members[g] > 0 else 0.0
            if members[g] > 0 and held[g] > lower[g, 0]:
                steepness += slope[g]
        if excess <= 1e-15 * total or steepness == 0.0:
            break
        level -= excess / steepness
    return level
