"""The part of the law of an average that matters: where its peak is, and where it has fallen.

The law has one peak (see `lines`; marginals keep that, by Borell 1975). From where the noisy
counts point to it is searched for uphill; a parabola through three places near it tells how far
away to look for the edges.
"""

from __future__ import annotations

import math

from discreet.compiled import compiled_within
from discreet.products.sdhc.estimates.lines import (
    Line,
    Vector,
    farther,
    guess,
    integral,
    line,
    outwards,
    point,
    weight,
)

#: How near to the peak in log weight a search for it may stop.
NEAR = 3.0

#: Averages are not told apart more finely than this.
TINY = 1e-12

#: Noisy counts in units of their noise (households first), the noise, and the two limits.
Problem = tuple[Vector, Vector, float, float]

#: An angle, and the log weight of the average there.
Place = tuple[float, float]

#: Which average: of all persons, where two kinds of them are counted; of the first kind; of
#: persons that are counted as one.
ALL, FIRST, ONLY = 0, 1, 2


@compiled_within
def given(kind: int, ratio: float, problem: Problem, coarse: bool) -> tuple[float, float]:
    """Return the log weight of an average, and the mean of d given it.

    Of all persons: the line runs through the part of the first kind. Of the first kind: it
    runs through the other.
    """
    z, s, m, kappa = problem
    if kind == ONLY:
        log, d, _ = weight((1.0 / s[0], ratio / s[1], 0.0), z, 1)
        return log, d
    if kind == ALL:
        along = line((1.0 / s[0], 0.0, ratio / s[2]), (0.0, 1.0 / s[1], -1.0 / s[2]))
        least, end = 0.0, ratio
    else:
        along = line((1.0 / s[0], ratio / s[1], 0.0), (0.0, 0.0, 1.0 / s[2]))
        least = max(m - ratio, 0.0)
        # Rounding may carry the average to the limit itself, where the line would be empty.
        end = max(kappa - ratio, least + TINY)
    return integral(along, z, 2, least, end, coarse)


@compiled_within
def _log(kind: int, along: Line, angle: float, problem: Problem) -> float:
    """Return the log weight of the average at an angle, roughly."""
    return given(kind, point(along, angle)[0], problem, True)[0]


@compiled_within
def window(
    kind: int, along: Line, z: Vector, ends: tuple[float, float], problem: Problem
) -> tuple[float, float, float, tuple[float, float]]:
    """Return the angles between which the law of an average matters, with one near its peak.

    And how far to both sides a parabola through its top would matter. `z` are the noisy counts
    of households and of all persons that the average is about.
    """
    low, high = ends
    at, width = guess(along, z, low, high)
    left, peak, right = _bracket(kind, along, at, max(width, 1e-15), ends, problem)
    left, (at, top), right = _closer(kind, along, left, peak, right, problem)
    if top == -math.inf:
        return low, at, high, (high, high)
    near, fallen = (at - left[0], right[0] - at), (top - left[1], top - right[1])
    if near[0] > 0.0 and near[1] > 0.0:
        # log p is a parabola near the peak: the distance x from here takes a x^2 + b x off it.
        slopes = (fallen[0] / near[0], fallen[1] / near[1])
        a = (slopes[0] + slopes[1]) / (near[0] + near[1])
        if a > 0.0:
            b = slopes[1] - a * near[1]
            at, top = at - 0.5 * b / a, top + 0.25 * b * b / a
            near, fallen = (a**-0.5, a**-0.5), (1.0, 1.0)
    near = (farther(near[0], fallen[0], 0.0, 0.0), farther(near[1], fallen[1], 0.0, 0.0))
    first = _edge(kind, along, (at, top), near[0], low, problem)
    return first, at, _edge(kind, along, (at, top), near[1], high, problem), near


@compiled_within
def _bracket(
    kind: int, along: Line, at: float, width: float, ends: tuple[float, float], problem: Problem
) -> tuple[Place, Place, Place]:
    """Return a place with one on either side that is not higher, or is the end: uphill.

    Strides are twice as long each time.
    """
    here = (at, _log(kind, along, at, problem))
    found = [here, here, here]  # to the left, the highest, to the right
    for side in (2, 0):
        end, stride = (ends[1], width) if side else (ends[0], -width)
        while found[side][0] == found[1][0] != end:
            at = found[1][0] + stride
            at = min(at, end) if side else max(at, end)
            found[side] = (at, _log(kind, along, at, problem))
            if found[side][1] > found[1][1]:
                found[2 - side], found[1] = found[1], found[side]
            stride *= 2.0
    return found[0], found[1], found[2]


@compiled_within
def _closer(
    kind: int, along: Line, left: Place, peak: Place, right: Place, problem: Problem
) -> tuple[Place, Place, Place]:
    """Return three places around the peak: none lower by `NEAR`, nor much farther, than another.

    If the highest place is an end, a peak may stand between it and the next: halfway is looked
    until two looks in a row found nothing higher, and little lower.
    """
    moved, calm = False, 0
    for _ in range(150):
        drop, near = peak[1] - min(left[1], right[1]), (peak[0] - left[0], right[0] - peak[0])
        if drop >= NEAR:
            end = left if left[1] < right[1] else right
            # A normal curve has fallen by 1 there, unless the peak is somewhere else.
            part = 0.5 if moved else min(max(max(drop, 1.0) ** -0.5, 0.01), 0.5)
        else:
            end = left if near[0] > near[1] else right
            part = 2.0 * min(near) / max(max(near), TINY)
            if min(near) == 0.0 and calm < 2:
                part = 0.5
            elif not 0.0 < part < 0.5:
                break
        at = peak[0] + part * (end[0] - peak[0])
        if at in (peak[0], end[0]):
            break
        new = (at, _log(kind, along, at, problem))
        moved = new[1] > peak[1]
        calm = 0 if moved or drop >= NEAR else calm + 1
        if end[0] < peak[0]:
            left, peak, right = (left, new, peak) if moved else (new, peak, right)
        else:
            left, peak, right = (peak, new, right) if moved else (left, peak, new)
    return left, peak, right


@compiled_within
def _edge(kind: int, along: Line, peak: Place, far: float, end: float, problem: Problem) -> float:
    """Return where the law of an average has fallen by `DEPTH` on the way to `end`; look so far."""
    side = 1.0 if end > peak[0] else -1.0
    limit = abs(end - peak[0])
    if limit == 0.0:
        return end
    search = (min(far, limit), 0.0, 0.0, 0.0, math.inf)
    for _ in range(150):
        at = end if search[0] == limit else peak[0] + side * search[0]
        search, found = outwards(search, peak[1] - _log(kind, along, at, problem), limit)
        if found:
            break
    return end if search[0] == limit else peak[0] + side * search[0]
