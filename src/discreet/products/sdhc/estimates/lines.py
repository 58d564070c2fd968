"""Posterior weight of directions, and its integrals along lines of directions.

A vector of counts is d times (1, r), d the number of households and r the averages. In
units of its noise it is d w with w = (1/sigma_d, r_2/sigma_2, r_3/sigma_3), and noisy
counts z. The weight of a direction w is

    p(w) = int_1^oo d^q exp(-|d w - z|^2 / 2) dd        (q + 1 the number of counts)

which has a closed form in normal tails (ours, checked against sampling): along w the
exponent is a square around mu = w.z/|w|^2, and what is left, |z x w|^2/|w|^2, is computed
without cancellation by the cross product.

Along a line of directions p^(-1/(q+1)) is convex, because exp(-|v - z|^2 / 2) is log-concave
(Ball 1988, whose argument for half-lines needs no symmetry), so p has one peak. Lines are run
through by their angle seen from the origin, in which p is close to a normal curve where it is
narrow, and flat where it is wide; a rule of Gauss and Legendre on the part that matters
does the rest.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.compiled import compiled, compiled_within
from discreet.products.sdhc.estimates.normal import (
    FAR,
    LOG_ROOT_2_PI,
    density,
    quotients,
    upper_tail,
)

Vector = tuple[float, float, float]
#: A line of directions: start, step, and where its foot is, in steps, with its unit of angle.
Line = tuple[Vector, Vector, float, float]

#: Nodes and weights of the rule on each side of a peak, and of the coarse one that finds windows.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(14)
FEW_NODES, FEW_WEIGHTS = np.polynomial.legendre.leggauss(5)

#: Weights below exp(-DEPTH) of the largest are left out: 1e-10.
DEPTH = 23.0


@compiled
def dot(u: Vector, v: Vector) -> float:
    """Return the inner product."""
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


@compiled
def weight(w: Vector, z: Vector, q: int) -> tuple[float, float, float]:
    """Return log p(w), and the mean of d and of d^2 along w."""
    square = dot(w, w)
    s = 1.0 / math.sqrt(square)
    mu = dot(w, z) / square
    x = z[1] * w[2] - z[2] * w[1]
    y = z[2] * w[0] - z[0] * w[2]
    c = z[0] * w[1] - z[1] * w[0]
    log = math.log(s) - 0.5 * (x * x + y * y + c * c) / square
    a = (1.0 - mu) / s
    if a < FAR:
        # I_k = mu I_{k-1} + (k - 1) s^2 I_{k-2} + s phi(a): by parts, from d = 1 on.
        edge = s * density(a)
        i0 = upper_tail(a)
        i1 = mu * i0 + edge
        i2 = mu * i1 + s * s * i0 + edge
        i3 = mu * i2 + 2.0 * s * s * i1 + edge
        i4 = mu * i3 + 3.0 * s * s * i2 + edge
    else:
        # With d = 1 + s y the integrals are sums of T_0 to T_4 of `normal`.
        r1, r2, r3, r4 = quotients(a)
        t1 = s * r1
        t2 = t1 * s * r2
        t3 = t2 * s * r3
        t4 = t3 * s * r4
        log -= 0.5 * a * a + LOG_ROOT_2_PI + math.log(a + r1)
        i1 = 1.0 + t1
        i2 = 1.0 + 2.0 * t1 + t2
        i3 = 1.0 + 3.0 * (t1 + t2) + t3
        i4 = 1.0 + 4.0 * (t1 + t3) + 6.0 * t2 + t4
    if q == 1:
        return log + math.log(i1), i2 / i1, i3 / i1
    return log + math.log(i2), i3 / i2, i4 / i2


@compiled
def line(start: Vector, step: Vector) -> Line:
    """Return the line through `start` with its foot: the point nearest to the origin."""
    square = dot(step, step)
    foot = -dot(start, step) / square
    x = start[1] * step[2] - start[2] * step[1]
    y = start[2] * step[0] - start[0] * step[2]
    c = start[0] * step[1] - start[1] * step[0]
    return start, step, foot, math.sqrt(x * x + y * y + c * c) / square


@compiled
def point(along: Line, angle: float) -> tuple[float, Vector]:
    """Return the place on a line at an angle, in steps from its start, and as a direction."""
    (a, b, c), (u, v, w), foot, unit = along
    t = foot + unit * math.tan(angle)
    return t, (a + t * u, b + t * v, c + t * w)


@compiled_within
def angle_of(along: Line, t: float) -> float:
    """Return the angle of a place on a line."""
    return math.atan((t - along[2]) / along[3])


@compiled
def look(along: Line, z: Vector, q: int, angle: float) -> tuple[float, float]:
    """Return log p at an angle, and its slope."""
    _, w = point(along, angle)
    log, d, square = weight(w, z, q)
    slope = d * dot(z, along[1]) - square * dot(w, along[1])
    return log, slope * along[3] / math.cos(angle) ** 2


@compiled
def peak(along: Line, z: Vector, q: int, low: float, high: float) -> tuple[float, float, float]:
    """Return an angle near the peak between two angles, log p there, and a width.

    From where z points to, walk uphill, twice as far each time, until the slope turns or the
    end is reached; then regula falsi (Illinois) until log p is known to about 0.1.
    """
    start, step, foot, _ = along
    (a, b, c), (u, v, w) = start, step
    base = (a + foot * u, b + foot * v, c + foot * w)
    right, up = dot(z, step) / math.sqrt(dot(step, step)), dot(z, base) / math.sqrt(dot(base, base))
    width = min(high - low, 1.0 / max(math.hypot(right, up), 1e-300))
    at = before = trial = min(max(math.atan2(right, up), low), high)
    log = slope = slope_before = 0.0
    stride, turned = width, False
    for turn in range(150):
        log, new = look(along, z, q, trial)
        if turned and new * slope > 0.0:
            slope_before *= 0.5
        elif turn > 0:
            before, slope_before = at, slope
        at, slope = trial, new
        turned = turned or slope * slope_before < 0.0
        if turned:
            if abs(slope) * abs(at - before) < 0.1:
                break
            trial = at - slope * (at - before) / (slope - slope_before)
            if not min(at, before) < trial < max(at, before):
                trial = 0.5 * (at + before)
        else:
            trial = min(at + stride, high) if slope > 0.0 else max(at - stride, low)
            stride *= 2.0
            if slope == 0.0 or trial == at:
                break
    return at, log, width


@compiled
def edge(along: Line, z: Vector, q: int, at: float, top: float, width: float, end: float) -> float:
    """Return where log p has fallen by `DEPTH` on the way to `end`.

    After `end` itself: outwards, twice as far each time, then back by halves to within a tenth.
    """
    side = 1.0 if end > at else -1.0
    inside, outside = 0.0, abs(end - at)
    far = outside
    for turn in range(150):
        log, _ = look(along, z, q, end if turn == 0 else at + side * far)
        top = max(top, log)
        if log < top - DEPTH:
            outside = far
        elif turn == 0:
            break
        else:
            inside = far
        if outside - inside < 0.1 * outside:
            break
        far = max(6.8 * width, 2.0 * inside)
        if far >= outside:
            far = 0.5 * (inside + outside)
    return end if outside == abs(end - at) else at + side * outside


@compiled
def integral(
    along: Line, z: Vector, q: int, low: float, high: float, coarse: bool
) -> tuple[float, float]:
    """Return log of the integral of p over places `low` to `high`, and the mean of d there."""
    if not low < high:
        return -math.inf, 1.0
    ends = (angle_of(along, low), angle_of(along, high))
    at, top, width = peak(along, z, q, ends[0], ends[1])
    nodes, weights = (FEW_NODES, FEW_WEIGHTS) if coarse else (NODES, WEIGHTS)
    total = mean = 0.0
    # The two sides of the peak may be of very different width.
    for side in range(2):
        end = edge(along, z, q, at, top, width, ends[side])
        half, middle = 0.5 * abs(end - at), 0.5 * (end + at)
        if half == 0.0:
            continue
        for i in range(nodes.size):
            angle = middle + half * nodes[i]
            _, w = point(along, angle)
            log, d, _ = weight(w, z, q)
            # The top is known to about 0.1; more than that above it is rounding.
            part = half * weights[i] * math.exp(min(log - top, 1.0)) / math.cos(angle) ** 2
            total += part
            mean += part * d
    if total <= 0.0:  # narrower than the floats can tell
        return -math.inf, 1.0
    return top + math.log(total * along[3]), mean / total
