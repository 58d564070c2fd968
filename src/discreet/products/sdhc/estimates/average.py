"""The posterior law of one average: its mean, quantiles, numerator and denominator.

The part of the law that matters (see `windows`) is cut into panels at its peak; a panel is
halved until a polynomial describes the law on it to about 1e-6 of its mass, and the integral of
the polynomials gives the quantiles. Weights below 1e-10 of the largest are left out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within
from discreet.products.sdhc.estimates.lines import LONGER, Line, angle_of, line, point, weight
from discreet.products.sdhc.estimates.normal import Floats
from discreet.products.sdhc.estimates.windows import ALL, FIRST, Problem, given, window

#: The rule across averages; and the polynomials of Legendre at its nodes, so that
#: `SERIES @ values` are the coefficients of a function.
ACROSS, ACROSS_WEIGHTS = np.polynomial.legendre.leggauss(24)
_DEGREES = np.arange(ACROSS.size)
SERIES = np.ascontiguousarray(
    (_DEGREES[:, None] + 0.5)
    * np.polynomial.legendre.legvander(ACROSS, ACROSS.size - 1).T
    * ACROSS_WEIGHTS
)

#: A panel is halved while its last coefficients are above this part of the whole mass. With
#: as many nodes as here, half a normal curve need not be.
SMALL, PANELS = 1e-6, 40


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


@compiled
def average(kind: int, problem: Problem, low: float, tail: float, out: Floats) -> None:
    """Write mean, quantiles, mean numerator and denominator of an average of at least `low`."""
    z, s, m, kappa = problem
    unit = math.hypot(s[1], s[2]) if kind == ALL else s[1]
    along = line((1.0 / s[0], 0.0, 0.0), (0.0, 1.0 / unit, 0.0))
    persons = (z[1] * s[1] + z[2] * s[2]) / unit if kind == ALL else z[1]
    whole = (angle_of(along, low), angle_of(along, kappa))
    ends, nodes = np.empty((PANELS, 2)), np.zeros((3, PANELS, ACROSS.size))
    first, at, last, near = window(kind, along, (z[0], persons, 0.0), whole, problem)
    ends[0, 0], ends[0, 1] = first, last
    many = _cut(ends, nodes, 1 if first < last else 0, at)
    if kind == FIRST:  # whose law has a kink where its number alone reaches the least
        many = _cut(ends, nodes, many, angle_of(along, m))
    for side in range(2):  # where it falls more and more slowly, longer and longer panels
        far, end = max(LONGER * near[side], 1e-15), (at - first, last - at)[side]
        while far * LONGER < end and many < PANELS // 2:
            many = _cut(ends, nodes, many, at + far if side else at - far)
            far *= LONGER
    fresh, news = 0, many  # the panels from `fresh` on, so many, are not filled yet
    while news > 0:
        for panel in range(fresh, fresh + news):
            _fill(kind, along, ends[panel], nodes[:, panel], problem)
        fresh = _unresolved(ends, nodes[0], many) if many < PANELS else -1
        news = 0
        if fresh >= 0:
            many, news = _cut(ends, nodes, many, 0.5 * (ends[fresh, 0] + ends[fresh, 1])), 2
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
def _cut(ends: Floats, nodes: Floats, many: int, at: float) -> int:
    """Cut the panel that holds an angle there, if any; panels stay in order. Return how many."""
    for panel in range(many):
        if ends[panel, 0] < at < ends[panel, 1]:
            for k in range(many, panel, -1):
                ends[k, 0], ends[k, 1] = ends[k - 1, 0], ends[k - 1, 1]
                for row in range(3):
                    for i in range(ACROSS.size):
                        nodes[row, k, i] = nodes[row, k - 1, i]
            ends[panel, 1] = ends[panel + 1, 0] = at
            return many + 1
    return many


@compiled_within
def _fill(kind: int, along: Line, ends: Floats, nodes: Floats, problem: Problem) -> None:
    """Write log weights, averages and means of d at the nodes of a panel."""
    half, middle = 0.5 * (ends[1] - ends[0]), 0.5 * (ends[1] + ends[0])
    for k in range(ACROSS.size):
        nodes[1, k], _, speed = point(along, middle + half * ACROSS[k])
        log, nodes[2, k] = given(kind, nodes[1, k], problem, False)
        nodes[0, k] = log + math.log(speed)


@compiled_within
def _unresolved(ends: Floats, logs: Floats, many: int) -> int:
    """Return the panel that a polynomial describes worst, or -1 if all are described well."""
    top = -math.inf
    for panel in range(many):
        for k in range(ACROSS.size):
            top = max(top, logs[panel, k])
    total, worst, size = 0.0, -1, 0.0
    last = np.empty(3)
    for panel in range(many):
        half = 0.5 * (ends[panel, 1] - ends[panel, 0])
        last[:] = 0.0
        for k in range(ACROSS.size):
            value = half * math.exp(logs[panel, k] - top)
            total += ACROSS_WEIGHTS[k] * value
            for j in range(3):
                last[j] += SERIES[ACROSS.size - 3 + j, k] * value
        left = max(abs(last[0]), abs(last[1]), abs(last[2]))
        if left > size:
            worst, size = panel, left
    return worst if size > SMALL * total else -1


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
    low, high, x = -1.0, 1.0, 0.0
    for _ in range(60):
        # The integral of P_k is (P_{k+1} - P_{k-1}) / (2k + 1).
        before, here = 1.0, x
        total, slope = series[0] * (x + 1.0), series[0]
        for k in range(1, series.size):
            after = ((2 * k + 1) * x * here - k * before) / (k + 1)
            total += series[k] * (after - before) / (2 * k + 1)
            slope += series[k] * here
            before, here = here, after
        if total < wanted:
            low = x
        else:
            high = x
        # Newton's method, or halves where it would leave what is known.
        trial = x + (wanted - total) / slope if slope > 0.0 else low
        trial = trial if low < trial < high else 0.5 * (low + high)
        if abs(trial - x) < 1e-14:
            break
        x = trial
    return x
