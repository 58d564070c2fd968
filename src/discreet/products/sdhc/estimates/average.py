"""The posterior law of one average: its mean, quantiles, numerator and denominator.

The law has one peak (see `lines`; marginals keep that, by Borell 1975). The part of it that
matters is found by golden section and cut into panels; a panel is halved until a polynomial
describes the law on it to about 1e-6 of its mass, and the integral of the polynomials gives
the quantiles. Only what floats cannot tell is left out: less than 1e-9 of the mass.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within
from discreet.products.sdhc.estimates.lines import (
    DEPTH,
    Line,
    Vector,
    angle_of,
    integral,
    line,
    point,
    weight,
)
from discreet.products.sdhc.estimates.normal import Floats

#: The rule across averages; and the polynomials of Legendre at its nodes, so that
#: `SERIES @ values` are the coefficients of a function.
ACROSS, ACROSS_WEIGHTS = np.polynomial.legendre.leggauss(20)
_DEGREES = np.arange(ACROSS.size)
SERIES = np.ascontiguousarray(
    (_DEGREES[:, None] + 0.5)
    * np.polynomial.legendre.legvander(ACROSS, ACROSS.size - 1).T
    * ACROSS_WEIGHTS
)

#: A panel is halved while its last coefficients are above this part of the whole mass.
SMALL, PANELS = 1e-6, 24

#: The golden section, and how near to the peak in log weight a search for it may stop.
GOLDEN, NEAR = 0.6180339887498949, 3.0

#: Averages are not told apart more finely than this.
TINY = 1e-12

#: Noisy counts in units of their noise (households first), the noise, and the two limits.
Problem = tuple[Vector, Vector, float, float]

#: Which average: of all persons, where two kinds of them are counted; of the first kind; of
#: persons that are counted as one.
ALL, FIRST, ONLY = 0, 1, 2


@compiled
def laws(
    kind: NDArray[np.int64],
    z: Floats,
    s: Floats,
    low: Floats,
    m: float,
    kappa: float,
    tail: float,
) -> Floats:
    """Return mean, two quantiles, mean numerator and denominator of averages, row by row.

    `z` and `s` are noisy counts and their standard deviations, households first; `low` is
    the least that an average can be.
    """
    out = np.empty((kind.size, 5))
    for i in range(kind.size):
        noise = (s[i, 0], s[i, 1], s[i, 2])
        counts = (z[i, 0] / s[i, 0], z[i, 1] / s[i, 1], z[i, 2] / s[i, 2])
        average(kind[i], (counts, noise, m, kappa), low[i], tail, out[i])
    return out


@compiled_within
def _given(kind: int, ratio: float, problem: Problem, coarse: bool) -> tuple[float, float]:
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


@compiled
def average(kind: int, problem: Problem, low: float, tail: float, out: Floats) -> None:
    """Write mean, quantiles, mean numerator and denominator of an average of at least `low`."""
    z, s, m, kappa = problem
    unit = math.hypot(s[1], s[2]) if kind == ALL else s[1]
    along = line((1.0 / s[0], 0.0, 0.0), (0.0, 1.0 / unit, 0.0))
    first, at, last = _window(kind, along, angle_of(along, low), angle_of(along, kappa), problem)
    # The law of one kind has a kink where its number alone reaches the least.
    kink = min(max(angle_of(along, m), first), last) if kind == FIRST else first
    ends, nodes = np.empty((PANELS, 2)), np.zeros((3, PANELS, ACROSS.size))
    many = 0
    start = first
    for end in (min(at, kink), max(at, kink), last):
        if start < end:
            ends[many, 0], ends[many, 1] = start, end
            many += 1
        start = end
    fresh, news = 0, many  # the panels from `fresh` on, so many, are not filled yet
    while news > 0:
        for panel in range(fresh, fresh + news):
            _fill(kind, along, ends[panel], nodes[:, panel], problem)
        fresh = _unresolved(ends, nodes[0], many) if many < PANELS else -1
        news = 0
        if fresh >= 0:
            _halve(ends, nodes, fresh, many)
            many, news = many + 1, 2
    top = -math.inf
    for panel in range(many):
        for k in range(ACROSS.size):
            top = max(top, nodes[0, panel, k])
    if top > -math.inf:
        _summary(along, ends, nodes, many, top, tail, out)
    else:  # all the weight is at one point, as far as the floats can tell
        out[0] = out[1] = out[2] = point(along, at)[0]
        out[4] = weight((1.0 / s[0], out[0] / s[1], 0.0), z, 1)[1]
        out[3] = out[0] * out[4]
    for k in range(3):
        out[k] = min(max(out[k], low), kappa)


@compiled_within
def _halve(ends: Floats, nodes: Floats, panel: int, many: int) -> None:
    """Cut a panel in two and move those after it, so that they stay in order."""
    for k in range(many, panel, -1):
        ends[k, 0], ends[k, 1] = ends[k - 1, 0], ends[k - 1, 1]
        for row in range(3):
            for i in range(ACROSS.size):
                nodes[row, k, i] = nodes[row, k - 1, i]
    middle = 0.5 * (ends[panel, 0] + ends[panel, 1])
    ends[panel, 1] = ends[panel + 1, 0] = middle


@compiled_within
def _fill(kind: int, along: Line, ends: Floats, nodes: Floats, problem: Problem) -> None:
    """Write log weights, averages and means of d at the nodes of a panel."""
    half, middle = 0.5 * (ends[1] - ends[0]), 0.5 * (ends[1] + ends[0])
    for k in range(ACROSS.size):
        angle = middle + half * ACROSS[k]
        nodes[1, k] = point(along, angle)[0]
        log, nodes[2, k] = _given(kind, nodes[1, k], problem, False)
        nodes[0, k] = log - 2.0 * math.log(math.cos(angle))


@compiled_within
def _unresolved(ends: Floats, logs: Floats, many: int) -> int:
    """Return the panel that a polynomial describes worst, or -1 if all are described well."""
    top = -math.inf
    for panel in range(many):
        for k in range(ACROSS.size):
            top = max(top, logs[panel, k])
    total, worst, size = 0.0, -1, 0.0
    for panel in range(many):
        half = 0.5 * (ends[panel, 1] - ends[panel, 0])
        for degree in range(ACROSS.size - 3, ACROSS.size):
            last = 0.0
            for k in range(ACROSS.size):
                last += SERIES[degree, k] * math.exp(logs[panel, k] - top)
            if half * abs(last) > size:
                worst, size = panel, half * abs(last)
        for k in range(ACROSS.size):
            total += half * ACROSS_WEIGHTS[k] * math.exp(logs[panel, k] - top)
    return worst if size > SMALL * total else -1


@compiled_within
def _log(kind: int, along: Line, angle: float, problem: Problem) -> float:
    """Return the log weight of the average at an angle, roughly."""
    return _given(kind, point(along, angle)[0], problem, True)[0]


@compiled_within
def _window(
    kind: int, along: Line, low: float, high: float, problem: Problem
) -> tuple[float, float, float]:
    """Return the angles between which the law of an average matters, with one near its peak.

    Golden section, which finds the peak of a law that has one, until all four points are
    within `NEAR` of each other; from there outwards.
    """
    a, b, fa, fb, fc, fd = low, high, -math.inf, -math.inf, -math.inf, -math.inf
    c, d = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    left = True
    for turn in range(92):
        found = _log(kind, along, c if left else d, problem)
        fc, fd = (found, fd) if left else (fc, found)
        if turn == 0:
            left = False
        elif max(fc, fd) - min(fa, fb) < NEAR or not a < c < d < b:
            break
        elif fc > fd:
            b, fb, d, fd = d, fd, c, fc
            c, left = b - GOLDEN * (b - a), True
        else:
            a, fa, c, fc = c, fc, d, fd
            d, left = a + GOLDEN * (b - a), False
    at, top = (c, fc) if fc > fd else (d, fd)
    reached = [low, high]
    for side in range(2):
        reached[side] = _edge(kind, along, at, top, b - a, reached[side], problem)
    return reached[0], at, reached[1]


@compiled_within
def _edge(
    kind: int, along: Line, at: float, top: float, width: float, end: float, problem: Problem
) -> float:
    """Return where the law of an average has fallen by `DEPTH` on the way to `end`."""
    side = 1.0 if end > at else -1.0
    inside, outside = 0.0, abs(end - at)
    far = outside
    for turn in range(150):
        if _log(kind, along, end if turn == 0 else at + side * far, problem) < top - DEPTH:
            outside = far
        elif turn == 0:
            return end
        else:
            inside = far
        if outside - inside < 0.2 * outside:
            break
        far = max(2.0 * width, 2.0 * inside, 1e-15)
        if far >= outside:
            far = 0.5 * (inside + outside)
    return end if outside == abs(end - at) else at + side * outside


# -- from values of a law at nodes to its mean and quantiles --------------------------------------


@compiled
def _summary(
    along: Line, ends: Floats, nodes: Floats, many: int, top: float, tail: float, out: Floats
) -> None:
    """Write mean, quantiles, mean numerator and denominator of a law given panel by panel."""
    mass, total, ratio, numerator, denominator = np.zeros(many), 0.0, 0.0, 0.0, 0.0
    for panel in range(many):
        half = 0.5 * (ends[panel, 1] - ends[panel, 0])
        for k in range(ACROSS.size):
            value = math.exp(nodes[0, panel, k] - top)
            nodes[0, panel, k] = value
            part = half * ACROSS_WEIGHTS[k] * value
            mass[panel] += part
            total += part
            ratio += part * nodes[1, panel, k]
            denominator += part * nodes[2, panel, k]
            numerator += part * nodes[1, panel, k] * nodes[2, panel, k]
    out[0], out[3], out[4] = ratio / total, numerator / total, denominator / total
    for which in range(2):
        wanted = (1.0 - tail if which else tail) * total
        panel = 0
        while wanted > mass[panel] and panel < many - 1:
            wanted -= mass[panel]
            panel += 1
        half = 0.5 * (ends[panel, 1] - ends[panel, 0])
        angle = ends[panel, 0] + half * (1.0 + _reached(nodes[0, panel], wanted / half))
        out[1 + which] = point(along, angle)[0]


@compiled_within
def _reached(values: Floats, wanted: float) -> float:
    """Return up to where in -1..1 the integral of a function given at the nodes is `wanted`."""
    series = np.zeros(ACROSS.size)
    for degree in range(ACROSS.size):
        for k in range(ACROSS.size):
            series[degree] += SERIES[degree, k] * values[k]
    low, high = -1.0, 1.0
    for _ in range(50):
        x = 0.5 * (low + high)
        # The integral of P_k is (P_{k+1} - P_{k-1}) / (2k + 1).
        before, here = 1.0, x
        total = series[0] * (x + 1.0)
        for k in range(1, series.size):
            after = ((2 * k + 1) * x * here - k * before) / (k + 1)
            total += series[k] * (after - before) / (2 * k + 1)
            before, here = here, after
        if total < wanted:
            low = x
        else:
            high = x
    return 0.5 * (low + high)
