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
#: A peak of log p: its angle, log p there, the slope (of a peak at an end), and a width.
Peak = tuple[float, float, float, float]
#: A search for where log p has fallen: how far to look, how far the last look was and how deep
#: it had fallen there, and how far it is not yet and is deep enough.
Search = tuple[float, float, float, float, float]

#: Nodes and weights of the rule on each side of a peak, and of the coarse one that finds windows.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(14)
FEW_NODES, FEW_WEIGHTS = np.polynomial.legendre.leggauss(5)

#: Weights below exp(-DEPTH), 1e-10, of the largest are left out. A search for the place aims
#: deeper and stops where the logarithm has fallen by DEPTH to DEEPER.
DEPTH, AIM, DEEPER = 23.0, 25.0, 29.0

#: A part of a law on which it falls more and more slowly is so many times as long as the last.
LONGER = 2.0

#: So many standard deviations above d = 1 the limit takes nothing away that floats could tell.
CLEAR = 9.0


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
    log = -0.5 * (x * x + y * y + c * c) / square
    a = (1.0 - mu) / s
    if a < FAR:
        # I_k = mu I_{k-1} + (k - 1) s^2 I_{k-2} + s phi(a): by parts, from d = 1 on.
        edge, i0 = (s * density(a), upper_tail(a)) if a > -CLEAR else (0.0, 1.0)
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
        return log + math.log(s * i1), i2 / i1, i3 / i1
    return log + math.log(s * i2), i3 / i2, i4 / i2


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
def point(along: Line, angle: float) -> tuple[float, Vector, float]:
    """Return the place on a line at an angle, its direction, and how fast the place moves there.

    The place is told in steps from the start of the line.
    """
    (a, b, c), (u, v, w), foot, unit = along
    tangent = math.tan(angle)
    t = foot + unit * tangent
    return t, (a + t * u, b + t * v, c + t * w), unit * (1.0 + tangent * tangent)


@compiled_within
def angle_of(along: Line, t: float) -> float:
    """Return the angle of a place on a line."""
    return math.atan((t - along[2]) / along[3])


@compiled
def look(along: Line, z: Vector, q: int, angle: float) -> tuple[float, float]:
    """Return log p at an angle, and its slope."""
    _, w, speed = point(along, angle)
    log, d, square = weight(w, z, q)
    return log, speed * (d * dot(z, along[1]) - square * dot(w, along[1]))


@compiled
def guess(along: Line, z: Vector, low: float, high: float) -> tuple[float, float]:
    """Return the angle that z points to, as far as it is allowed, and the width of p there."""
    start, step, foot, _ = along
    (a, b, c), (u, v, w) = start, step
    base = (a + foot * u, b + foot * v, c + foot * w)
    right, up = dot(z, step) / math.sqrt(dot(step, step)), dot(z, base) / math.sqrt(dot(base, base))
    width = max(min(high - low, 1.0 / max(math.hypot(right, up), 1e-100)), 1e-100)
    return min(max(math.atan2(right, up), low), high), width


@compiled
def peak(along: Line, z: Vector, q: int, low: float, high: float) -> Peak:
    """Return the peak between two angles, so that log p is known to about 0.1.

    Newton's method from where z points to, with the curvature between the last two places. A
    step is at first no longer than the width, then twice as long each time, and never leaves
    what is known to hold the peak. The top of the last parabola need not be looked at.
    """
    at, width = guess(along, z, low, high)
    log, slope = look(along, z, q, at)
    uphill, turned, stride = slope > 0.0, False, width
    for turn in range(150):
        if slope > 0.0:
            low = at
        else:
            high = at
        step = min(max(abs(slope) * width * width, 0.3 * width), stride)
        trial = min(at + step, high) if slope > 0.0 else max(at - step, low)
        if turned and (turn % 4 == 3 or not low < trial < high):
            trial = 0.5 * (low + high)
        if trial == at or slope == 0.0:
            break
        before, slope_before = at, slope
        at = trial
        log, slope = look(along, z, q, at)
        turned = turned or (slope > 0.0) != uphill
        stride *= 2.0
        curvature = (slope_before - slope) / (at - before)
        if curvature > 0.0:
            width = 1.0 / math.sqrt(curvature)
            # The curvature is that of the peak only if measured within its width.
            if abs(slope) * width < 0.45 and abs(at - before) < 1.5 * width:
                if low < at + slope / curvature < high:
                    at, log, slope = at + slope / curvature, log + 0.5 * slope**2 / curvature, 0.0
                break
    return at, log, slope, width


@compiled
def farther(far: float, drop: float, near: float, fallen: float) -> float:
    """Return how far log p falls by `AIM`, if it falls by `drop` as far as `far`, and by `fallen`.

    As a power of the distance: of a normal curve it is the second, of an exponential the first.
    """
    power = 2.0
    if 0.0 < fallen < math.inf and 0.0 < drop < math.inf and 0.0 < near != far:
        power = min(max(math.log(drop / fallen) / math.log(far / near), 0.5), 3.0)
    stretch = math.pow(AIM / max(drop, 1e-3), 1.0 / power)
    return far * min(max(stretch, 0.01), 100.0)


@compiled
def outwards(search: Search, drop: float, limit: float) -> tuple[Search, bool]:
    """Return a search after one more look, and whether it has ended; not beyond `limit`."""
    far, near, fallen, inside, outside = search
    if drop >= DEPTH:
        outside = far
    elif far == limit:
        return search, True
    else:
        inside = far
    if DEPTH <= drop <= DEEPER or outside - inside < 0.1 * outside:
        return (outside, near, fallen, inside, outside), True
    guessed = farther(far, drop, near, fallen)
    if not inside < guessed < outside:
        guessed = 0.5 * (inside + min(outside, limit))
    return (min(guessed, limit), far, drop, inside, outside), False


@compiled
def edge(along: Line, z: Vector, q: int, top: Peak, end: float) -> tuple[float, float]:
    """Return how far log p has fallen by `DEPTH` on the way from the peak to `end`.

    And how far a parabola with the slope and width of the peak would have fallen by `AIM`.
    """
    at, log, slope, width = top
    side = 1.0 if end > at else -1.0
    limit = abs(end - at)
    steep = max(-side * slope, 0.0)
    guessed = 2.0 * AIM / (steep + math.sqrt(steep * steep + 2.0 * AIM / (width * width)))
    search = (min(guessed, limit), 0.0, 0.0, 0.0, math.inf)
    for _ in range(150):
        angle = end if search[0] == limit else at + side * search[0]
        search, found = outwards(search, log - look(along, z, q, angle)[0], limit)
        if found:
            break
    return search[0], guessed


@compiled
def integral(
    along: Line, z: Vector, q: int, low: float, high: float, coarse: bool
) -> tuple[float, float]:
    """Return log of the integral of p over places `low` to `high`, and the mean of d there."""
    if not low < high:
        return -math.inf, 1.0
    ends = (angle_of(along, low), angle_of(along, high))
    top = peak(along, z, q, ends[0], ends[1])
    nodes, weights = (FEW_NODES, FEW_WEIGHTS) if coarse else (NODES, WEIGHTS)
    total = mean = 0.0
    # The two sides of the peak may be of very different width.
    for side in range(2):
        if ends[side] == top[0]:
            continue
        far, sure = edge(along, z, q, top, ends[side])
        begin, sure = 0.0, max(sure, 1e-6 * far)
        while begin < far:
            # Where a law falls more and more slowly, every part of it takes a rule of its own.
            stop = far if far < LONGER * sure else sure
            half = 0.5 * (stop - begin)
            middle = top[0] + (begin + half if side else -begin - half)
            begin, sure = stop, LONGER * sure
            for i in range(nodes.size):
                _, w, speed = point(along, middle + half * nodes[i])
                log, d, _ = weight(w, z, q)
                # The top is known to about 0.1; more than that above it is rounding.
                part = half * weights[i] * math.exp(min(log - top[1], 1.0)) * speed
                total += part
                mean += part * d
    if total <= 0.0:  # narrower than the floats can tell
        return -math.inf, 1.0
    return top[1] + math.log(total), mean / total
