"""Distances between two finite laws, exact where they have a closed form and certified elsewhere.

A law gives every possible outcome its probability as a fraction; an outcome it does not
list has probability 0. The distances are those of the output premetrics, with the larger
of both directions where a divergence is not symmetric.

Whole numbers and logarithms of fractions are kept exact; everything else is enclosed by
floats, whose distance is a few units of the last place unless said otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from discreet.errors import BadInput
from discreet.spec.divergences.certified import (
    INFINITE,
    SLACK,
    Between,
    Exact,
    LogOf,
    bounds_of,
    decimal_of,
    enclose,
    ln,
    normal_quantile,
    precise,
    root_between,
)
from discreet.spec.divergences.experiments import (
    Aligned,
    Experiment,
    Law,
    aligned,
    corners,
    experiment,
    swapped,
)
from discreet.spec.divergences.orders import LogMoments, largest_over_orders


@dataclass(frozen=True)
class Distance:
    """How far apart two laws are, and where that shows.

    `exact` is given where the distance has a closed form; `outcome` where a single
    outcome (or the last of a set of them) attains it, `order` where a Renyi order does.
    """

    bounds: Between
    exact: Exact | None = None
    outcome: Hashable = None
    order: float | None = None


def distance(
    name: str,
    p: Law,
    q: Law,
    *,
    delta: Fraction | None = None,
    order: Fraction | None = None,
) -> Distance:
    """Return the distance between two laws under the output premetric called `name`.

    `delta` belongs to "approximate" and `order` to "renyi".

    >>> fair = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    >>> biased = {0: Fraction(1, 4), 1: Fraction(3, 4)}
    >>> distance("multiplicative", fair, biased).exact
    LogOf(of=Fraction(2, 1), over=Fraction(1, 1))
    >>> distance("total-variation", fair, biased).exact
    Fraction(1, 4)
    """
    return distance_in(aligned([p, q]), 0, 1, name, delta=delta, order=order)


def distance_in(
    laws: Aligned,
    one: int,
    other: int,
    name: str,
    *,
    delta: Fraction | None = None,
    order: Fraction | None = None,
) -> Distance:
    """Return the distance between two of several aligned laws, given by their places."""
    p, q = laws.rows[one], laws.rows[other]
    if name == "multiplicative":
        return _multiplicative(laws.outcomes, p, q)
    if name not in _RULES:
        raise BadInput(_REFUSED.get(name, f"no output premetric '{name}' is computed here."))
    return _cached(name, experiment(p, q, laws.whole), delta, order)


@lru_cache(maxsize=4096)
@precise
def _cached(
    name: str, cells: Experiment, delta: Fraction | None, order: Fraction | None
) -> Distance:
    # Universes have symmetries: most pairs of laws in them repeat an experiment seen before.
    if all(cell.p == cell.q for cell in cells):
        return Distance(Between(0.0, 0.0), Fraction(0))
    if name == "approximate":
        return approximate(cells, delta)
    if name == "renyi":
        return renyi(cells, order)
    return _RULES[name](cells)


# -- pure and approximate -------------------------------------------------------------------


def _multiplicative(outcomes: Sequence[Hashable], p: Sequence[int], q: Sequence[int]) -> Distance:
    """Return the largest |ln p/q|: an outcome that only one law can have makes it infinite."""
    top, bottom, where = 1, 1, None
    for outcome, one, other in zip(outcomes, p, q, strict=True):
        high, low = (one, other) if one > other else (other, one)
        if high * bottom > top * low:
            top, bottom, where = high, low, outcome
            if not low:
                return Distance(INFINITE, outcome=outcome)
    exact = LogOf(Fraction(top, bottom))
    return Distance(bounds_of(exact), exact, where)


def approximate(cells: Experiment, delta: Fraction | None) -> Distance:
    """Return the smallest e >= 0 with sum of [p - exp(e) q]+ at most delta, in both directions.

    The sum is the largest P(A) - exp(e) Q(A) over events A, attained by the first k cells
    for some k. So exp(e) is the largest (P(A) - delta) / Q(A) over these.
    """
    if delta is None or not 0 < delta < 1:
        raise BadInput("approximate: give a delta strictly between 0 and 1.")
    largest = Fraction(1)
    for direction in (cells, swapped(cells)):
        p = q = _ZERO
        for cell in direction:
            p, q = p + cell.p, q + cell.q
            if p > delta and not q:
                return Distance(INFINITE)
            if p > delta:
                largest = max(largest, (p - delta) / q)
    exact = LogOf(largest)
    return Distance(bounds_of(exact), exact)


# -- averages of the likelihood ratio ---------------------------------------------------------


@precise
def renyi(cells: Experiment, order: Fraction | None) -> Distance:
    """Return ln(sum of p^a q^(1-a)) / (a-1), the larger direction; exact at whole orders a."""
    if order is None or order <= 1:
        raise BadInput("renyi: give an order above 1.")
    if not _same_support(cells):
        return Distance(INFINITE)
    if order.denominator == 1:
        a = int(order)
        sums = [
            sum((c.p**a / c.q ** (a - 1) for c in way), _ZERO) for way in (cells, swapped(cells))
        ]
        exact = LogOf(max(sums), Fraction(a - 1))
        return Distance(bounds_of(exact), exact, order=float(order))
    exponent = decimal_of(order)
    top = max(log_moment(way)(exponent) for way in (cells, swapped(cells)))
    above = decimal_of(order - 1)
    return Distance(enclose(top / above, SLACK / above), order=float(order))


def log_moment(cells: Experiment) -> Callable[[Decimal], Decimal]:
    """Return the function a -> ln(sum of p^a q^(1-a)), for laws with the same support."""
    terms = [(ln(cell.p / cell.q), decimal_of(cell.q)) for cell in cells]

    @precise
    def value(a: Decimal) -> Decimal:
        return sum(((a * log).exp() * q for log, q in terms), Decimal(0)).ln()

    return value


@precise
def relative_entropy(cells: Experiment) -> Decimal:
    """Return the sum of p ln p/q, for laws with the same support."""
    return sum((decimal_of(p) * ln(p / q) for p, q in cells), Decimal(0))


def _kullback_leibler(cells: Experiment) -> Distance:
    if not _same_support(cells):
        return Distance(INFINITE)
    return Distance(enclose(max(relative_entropy(cells), relative_entropy(swapped(cells)))))


def _normalised_renyi(cells: Experiment) -> Distance:
    """Return sqrt(sup D_a / a) over orders a > 1 and both directions (Bun and Steinke 2016)."""
    if not _same_support(cells):
        return Distance(INFINITE)
    ways = [largest_over_orders(_moments(way)) for way in (cells, swapped(cells))]
    best = max(ways, key=lambda way: way.upper)
    lower = max(way.lower for way in ways)
    return Distance(root_between(lower, best.upper), order=float(best.order))


def _moments(cells: Experiment) -> LogMoments:
    logs = [ln(p / q) for p, q in cells]
    mean = relative_entropy(cells)
    squares = (decimal_of(c.p) * (log - mean) ** 2 for c, log in zip(cells, logs, strict=True))
    variance = sum(squares, Decimal(0))
    return LogMoments(log_moment(cells), mean, logs[0], logs[0] - logs[-1], variance)


def _total_variation(cells: Experiment) -> Distance:
    exact = sum((abs(p - q) for p, q in cells), _ZERO) / 2
    return Distance(bounds_of(exact), exact)


def _hellinger(cells: Experiment) -> Distance:
    """Return sqrt(sum of (sqrt p - sqrt q)^2) = sqrt(2 - 2 sum of sqrt(p q))."""
    square = 2 - 2 * sum((decimal_of(p * q).sqrt() for p, q in cells), Decimal(0))
    return Distance(root_between(max(square - SLACK, Decimal(0)), square + SLACK))


def _chi_squared(cells: Experiment) -> Distance:
    if not _same_support(cells):
        return Distance(INFINITE)
    exact = max(sum(((p - q) ** 2 / q for p, q in way), _ZERO) for way in (cells, swapped(cells)))
    return Distance(bounds_of(exact), exact)


# -- tests of one law against the other -------------------------------------------------------


def _gaussian(cells: Experiment) -> Distance:
    """Return the smallest mu such that no test beats one of N(0, 1) against N(mu, 1).

    The power curve of the two normal laws is concave, and that of the cells is a straight
    line between its corners; a concave function that lies above the ends of a line segment
    lies above all of it. So the corners decide: at size s and power r, mu must be at least
    z(r) - z(s), with z the normal quantile. The curve of the exchanged laws is the mirror
    image, with the same differences, so both directions are covered.
    """
    bounds = Between(0.0, 0.0)
    for size, power in corners(cells)[1:-1]:
        if size == 0 or power == 1:
            return Distance(INFINITE)
        one, other = normal_quantile(power), normal_quantile(size)
        lower, upper = one.lower - other.upper, one.upper - other.lower
        bounds = Between(
            max(bounds.lower, math.nextafter(lower, -math.inf)),
            max(bounds.upper, math.nextafter(upper, math.inf)),
        )
    return Distance(bounds)


# -- shared -----------------------------------------------------------------------------------

_ZERO = Fraction(0)

_RULES: dict[str, Callable[[Experiment], Distance]] = {
    "approximate": lambda cells: approximate(cells, None),
    "renyi": lambda cells: renyi(cells, None),
    "normalised-renyi": _normalised_renyi,
    "kullback-leibler": _kullback_leibler,
    "total-variation": _total_variation,
    "hellinger": _hellinger,
    "chi-squared": _chi_squared,
    "gaussian": _gaussian,
}

_REFUSED = {
    "trade-off": "a trade-off function is a curve, not a number: use power_curve.",
    "integral-probability": "an integral probability metric needs a class of functions, "
    "which the name alone does not give.",
}


def _same_support(cells: Experiment) -> bool:
    return all(cell.p and cell.q for cell in cells)
