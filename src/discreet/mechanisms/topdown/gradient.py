"""One gradient step of the least squares problem, and how long it may be.

On the active cells the Hessian H of a child is well conditioned and entrywise >= 0. So for
any v > 0 the diagonal matrix of (H v)_j / v_j is above H, which gives the step of each
cell. (The bound of Collatz and Wielandt on the largest eigenvalue is the largest of these
numbers; v after few power steps is nearly its best.) A child of other weights has other
steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within
from discreet.mechanisms.topdown.dual_newton import Metric
from discreet.mechanisms.topdown.partitions import CELLS, Partitions, largest

Floats = NDArray[np.float64]

POWER_STEPS = 3
#: The condition number is taken to be no worse; and what it is if not strictly convex.
WORST_CONDITION, NOT_STRICT = 1e6, 1e3


class Points(NamedTuple):
    """Iterates [cell, child]: the last two, the extrapolated one and the gradient step.

    `sums` are the weighted residuals of the partitions' rows; `change` and `turn`, of
    each chunk of cells, how far X is from Y, and whether the momentum points uphill.
    """

    y: Floats
    z: Floats
    sums: Floats
    change: Floats
    turn: Floats


@compiled
def add_rows(begin: int, end: int, parts: Partitions, y: Floats, sums: Floats) -> None:
    """Write the sums of Y over the rows of all partitions, for children `begin` to `end`."""
    for r in range(sums.shape[0]):
        sums[r, begin:end].fill(0.0)
    for p in range(parts.source.size):
        into = parts.into[parts.first_entry[p] : parts.first_entry[p + 1]]
        from_cells = parts.source[p] == CELLS
        terms = y if from_cells else sums[parts.first_row[parts.source[p]] :]
        for k in range(into.size):
            row, term = sums[into[k], begin:end], terms[k, begin:end]
            for c in range(row.size):
                row[c] += term[c]


@compiled_within
def spread_residuals(begin: int, end: int, parts: Partitions, sums: Floats) -> None:
    """Turn sums into weighted residuals and pass those of coarse rows on to finer ones."""
    for p in range(parts.source.size):
        weight = parts.weights[p, begin:end]
        for r in range(parts.first_row[p], parts.first_row[p + 1]):
            row, target = sums[r, begin:end], parts.targets[r, begin:end]
            for c in range(row.size):
                row[c] = weight[c] * (row[c] - target[c])
    for p in range(parts.source.size - 1, -1, -1):
        if parts.source[p] == CELLS:
            continue
        into = parts.into[parts.first_entry[p] : parts.first_entry[p + 1]]
        first = parts.first_row[parts.source[p]]
        for k in range(into.size):
            row, coarse = sums[first + k, begin:end], sums[into[k], begin:end]
            for c in range(row.size):
                row[c] += coarse[c]


@compiled
def advance(
    begin: int,
    end: int,
    parts: Partitions,
    metric: Metric,
    x: Floats,
    old: Floats,
    momentum: float,
    points: Points,
) -> None:
    """Extrapolate to Y and take a gradient step to Z, for children `begin` to `end`."""
    # Loops over slices, not from `begin` to `end`: from 0 on they run on vector units.
    for j in range(x.shape[0]):
        now, before, ahead = x[j, begin:end], old[j, begin:end], points.y[j, begin:end]
        for c in range(now.size):
            ahead[c] = now[c] + momentum * (now[c] - before[c])
    add_rows(begin, end, parts, points.y, points.sums)
    spread_residuals(begin, end, parts, points.sums)
    diagonal, steps = parts.diagonal[begin:end], metric.child[begin:end]
    for j in range(x.shape[0]):
        ahead, row, aim = points.y[j, begin:end], points.z[j, begin:end], parts.aims[j, begin:end]
        for c in range(row.size):
            row[c] = diagonal[c] * (ahead[c] - aim[c])
        for p in range(parts.source.size):
            if parts.source[p] == CELLS:
                residual = points.sums[parts.into[parts.first_entry[p] + j], begin:end]
                for c in range(row.size):
                    row[c] += residual[c]
        scale = metric.cell[j]
        for c in range(row.size):
            row[c] = ahead[c] - scale * (steps[c] * row[c])


@compiled
def compare(first: int, last: int, metric: Metric, x: Floats, old: Floats, points: Points) -> None:
    """Write how far X is from Y, and <Y - X, X - old> in the metric, for some chunks."""
    cells, children = x.shape
    chunks = points.change.size
    for chunk in range(first, last):
        change = turn = 0.0
        for j in range(chunk * cells // chunks, (chunk + 1) * cells // chunks):
            row = 0.0
            for c in range(children):
                step = points.y[j, c] - x[j, c]
                change = max(change, abs(step))
                row += step * (x[j, c] - old[j, c]) * metric.inverse[c]
            turn += row / metric.cell[j]
        points.change[chunk] = change
        points.turn[chunk] = turn


@compiled_within
def residuals_of(parts: Partitions, weights: Floats, targets: Floats, v: Floats) -> Floats:
    """Return weighted residuals of the rows at v, of one child, passed on as above.

    For one child loops over children cost most of the time.
    """
    sums = np.zeros(targets.size)
    for p in range(weights.size):
        first, source = parts.first_entry[p], parts.source[p]
        for k in range(parts.first_entry[p + 1] - first):
            term = v[k] if source == CELLS else sums[parts.first_row[source] + k]
            sums[parts.into[first + k]] += term
    for p in range(weights.size):
        for row in range(parts.first_row[p], parts.first_row[p + 1]):
            sums[row] = weights[p] * (sums[row] - targets[row])
    for p in range(weights.size - 1, -1, -1):
        first, source = parts.first_entry[p], parts.source[p]
        if source != CELLS:
            for k in range(parts.first_entry[p + 1] - first):
                sums[parts.first_row[source] + k] += sums[parts.into[first + k]]
    return sums


@compiled
def hessian_times(parts: Partitions, shape: Floats, diagonal: float, v: Floats) -> Floats:
    """Return H v, with a weight for each partition."""
    sums = residuals_of(parts, shape, np.zeros(parts.targets.shape[0]), v)
    result = np.zeros(v.size)
    for k in range(v.size):
        result[k] = diagonal * v[k]
        for p in range(shape.size - 1, -1, -1):
            if parts.source[p] == CELLS:
                result[k] += sums[parts.into[parts.first_entry[p] + k]]
    return result


@compiled_within
def cell_steps(parts: Partitions, shape: Floats, diagonal: float) -> Floats:
    """Return the step of each cell: v / (H v), with v nearly the leading eigenvector of H."""
    v = np.ones(parts.aims.shape[0])
    for step in range(POWER_STEPS + 1):
        image = hessian_times(parts, shape, diagonal, v)
        most = largest(image)
        for k in range(v.size):
            v[k] = v[k] / image[k] if step == POWER_STEPS else image[k] / most
    return v


@compiled
def choose_metric(parts: Partitions) -> tuple[Metric, float]:
    """Return steps under which no gradient step overshoots, and the condition number.

    All children are compared with mean weights; a child's own Hessian is at most the
    mean one times the largest ratio of their weights.
    """
    count, children = parts.weights.shape
    shape = np.zeros(count)
    diagonal = 0.0
    for c in range(children):
        size = parts.diagonal[c]
        for p in range(count):
            size += parts.weights[p, c]
        if size > 0.0:
            diagonal += parts.diagonal[c] / size
            for p in range(count):
                shape[p] += parts.weights[p, c] / size
    cell = cell_steps(parts, shape, diagonal)
    shortest = -largest(-cell)
    child, inverse = np.empty(children), np.empty(children)
    condition = 1.0
    for c in range(children):
        ratio = parts.diagonal[c] / diagonal if diagonal > 0.0 else 0.0
        for p in range(count):
            ratio = max(ratio, parts.weights[p, c] / shape[p])
        # A child without measurements has no curvature: any step will do.
        inverse[c] = ratio if ratio > 0.0 else 1.0
        child[c] = 1.0 / inverse[c]
        if parts.diagonal[c] > 0.0:
            condition = max(condition, ratio / (shortest * parts.diagonal[c]))
        else:
            condition = max(condition, NOT_STRICT)
    return Metric(cell, child, inverse), min(condition, WORST_CONDITION)
