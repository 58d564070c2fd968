"""Integer noise on counts: how far apart the laws are when counts differ.

Each cell of a vector of counts gets independent noise on all integers, so the laws have
infinite support. If a cell differs by a whole number m, its laws are w(x) / W and
w(x - m) / W with the weights

    discrete Gaussian  w(x) = exp(-x^2 / (2 s))      s = sigma^2
    discrete Laplace   w(x) = r^|x|                  r = exp(-1 / scale)

Reflection x -> m - x exchanges the two laws, so no direction needs to be looked at twice.
Below L is the log-ratio of the laws and psi(a) = ln(sum of p^a q^(1-a)) = (a - 1) D_a, which
is added over independent cells.

Discrete Laplace. All sums are geometric series and have a closed form.

Discrete Gaussian. Completing the square, with c = a m and theta(c) the sum of
exp(-(x - c)^2 / (2 s)) over all integers x,

    psi(a) = a (a - 1) m^2 / (2 s) + ln theta(c) / theta(0).

theta has period 1 and is largest at whole numbers (Canonne, Kamath and Steinke 2020), so
D_a / a is at most m^2 / (2 s), and equal to it at every whole order a. Hence the
normalised Renyi distance is exactly m / sqrt(2 s), for several cells the root of the sum
of squares; the relative entropy is exactly m^2 / (2 s) too, the mean of p being whole.

Other sums run over a window. From its edge on, weights fall by ratios that never rise
(the sequence is log-concave), so all that is left out is at most the first term left out
divided by 1 - its ratio, a geometric series; windows end where that is below 1e-44 of the
whole. Terms come from two multiplications each, so after k of them the relative error is
below k^2 1e-59; windows have less than 10^6 terms. `SLACK` covers both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from discreet.errors import BadInput
from discreet.spec import OutputPremetric, divergences

#: Products of two windows up to which log-ratios of several cells are added up.
MOST = 5_000_000

#: Where a window may end, relative to its first term.
_END = Decimal("1e-46")

_ZERO = Decimal(0)


@dataclass(frozen=True)
class Shift:
    """A cell with noise whose count differs by `by`; `parameter` is sigma^2 or the scale."""

    noise: Literal["gaussian", "laplace"]
    parameter: Fraction
    by: int

    def __post_init__(self) -> None:
        """Refuse parameters for which the error bounds were not proved."""
        if not Fraction(1, 100) <= self.parameter <= 10**8:
            raise BadInput("the parameter of the noise must lie between 1/100 and 10^8.")
        if abs(self.by) > 10**5:
            raise BadInput("counts that differ by more than 10^5 are not compared.")


def distance_of_shifts(output: OutputPremetric, shifts: Sequence[Shift]) -> divergences.Distance:
    """Return how far apart the laws of noisy counts are that differ by `shifts`.

    >>> one = Shift("gaussian", Fraction(2), 1)
    >>> str(distance_of_shifts(OutputPremetric(name="normalised-renyi"), [one, one]).exact)
    'sqrt(1/2)'
    """
    moved = sorted((s for s in shifts if s.by), key=lambda s: (s.noise, s.parameter, abs(s.by)))
    if output.name not in _RULES:
        raise BadInput(f"the output premetric '{output.name}' is not computed for integer noise.")
    if not moved:
        return _exactly(Fraction(0))
    whole = tuple(Shift(s.noise, s.parameter, abs(s.by)) for s in moved)
    return _computed(output, whole)


@lru_cache(maxsize=4096)
@divergences.precise
def _computed(output: OutputPremetric, shifts: tuple[Shift, ...]) -> divergences.Distance:
    return _RULES[output.name](output, shifts)


def _exactly(value: divergences.Exact) -> divergences.Distance:
    return divergences.Distance(divergences.bounds_of(value), value)


# -- with a closed form -------------------------------------------------------------------------


def _multiplicative(_: OutputPremetric, shifts: Sequence[Shift]) -> divergences.Distance:
    """Return the largest |L|: by / scale per cell; Gaussian ratios have no bound."""
    if any(s.noise == "gaussian" for s in shifts):
        return divergences.Distance(divergences.INFINITE)
    return _exactly(sum((s.by / s.parameter for s in shifts), Fraction(0)))


def _kullback_leibler(_: OutputPremetric, shifts: Sequence[Shift]) -> divergences.Distance:
    if all(s.noise == "gaussian" for s in shifts):
        return _exactly(_half_square(shifts))
    total = sum((_relative_entropy(s) for s in shifts), _ZERO)
    return divergences.Distance(divergences.enclose(total))


def _half_square(shifts: Sequence[Shift]) -> Fraction:
    return sum((s.by**2 / (2 * s.parameter) for s in shifts), Fraction(0))


def _normalised_renyi(_: OutputPremetric, shifts: Sequence[Shift]) -> divergences.Distance:
    """Return sqrt(sup D_a / a), orders added over cells before the supremum is taken."""
    kinds = {s.noise for s in shifts}
    if kinds == {"gaussian"}:
        return _exactly(divergences.RootOf(_half_square(shifts)))
    if kinds != {"laplace"}:
        raise BadInput("noise of two kinds: the supremum over orders is not computed.")
    largest = _decimal(sum((s.by / s.parameter for s in shifts), Fraction(0)))
    found = divergences.largest_over_orders(
        divergences.LogMoments(
            psi=lambda a: sum((_psi(s, a) for s in shifts), _ZERO),
            relative_entropy=sum((_relative_entropy(s) for s in shifts), _ZERO),
            largest=largest,
            spread=2 * largest,
            variance=sum((_variance(s) for s in shifts), _ZERO),
        )
    )
    bounds = divergences.root_between(found.lower, found.upper)
    return divergences.Distance(bounds, order=float(found.order))


def _renyi(output: OutputPremetric, shifts: Sequence[Shift]) -> divergences.Distance:
    order = output.order
    assert order is not None  # by the model
    whole = all(s.noise == "gaussian" and (order * s.by).denominator == 1 for s in shifts)
    if whole:
        return _exactly(order * _half_square(shifts))
    psi = sum((_psi(s, _decimal(order)) for s in shifts), _ZERO)
    above = _decimal(order - 1)
    return divergences.Distance(divergences.enclose(psi / above, divergences.SLACK / above))


def _hellinger(_: OutputPremetric, shifts: Sequence[Shift]) -> divergences.Distance:
    """Return sqrt(2 - 2 A) with A = exp(psi(1/2)) the sum of sqrt(p q), multiplied over cells."""
    affinity = sum((_psi(s, Decimal("0.5")) for s in shifts), _ZERO).exp()
    square = 2 - 2 * affinity
    low = max(square - divergences.SLACK, _ZERO)
    return divergences.Distance(divergences.root_between(low, square + divergences.SLACK))


def _psi(shift: Shift, a: Decimal) -> Decimal:
    """Return ln of the sum of p^a q^(1-a) in one cell."""
    if shift.noise == "laplace":
        return _laplace_psi(shift, a)
    half_square = _decimal(shift.by**2 / (2 * shift.parameter))
    place = a * shift.by
    place -= place.to_integral_value()
    return (
        a * (a - 1) * half_square
        + (_theta(shift.parameter, place) / _theta(shift.parameter, _ZERO)).ln()
    )


def _laplace_psi(shift: Shift, a: Decimal) -> Decimal:
    """Sum r^(a|x| + (1-a)|x-m|): geometric up to 0, from 1 to m-1, and from m on."""
    m, step = shift.by, -1 / _decimal(shift.parameter)
    slope = (2 * a - 1) * step
    r, ratio, start = step.exp(), slope.exp(), ((1 - a) * m * step).exp()
    inner = (ratio - (m * slope).exp()) / (1 - ratio) if slope else Decimal(m - 1)
    total = start / (1 - r) + start * inner + (a * m * step).exp() / (1 - r)
    return (total * (1 - r) / (1 + r)).ln()


def _relative_entropy(shift: Shift) -> Decimal:
    """Return the mean of L under p.

    Laplace: L is (|x-m| - |x|) / scale, and its mean m - 2 (P(X >= 1) + ... + P(X >= m))
    over the scale, with P(X >= k) = r^k / (1 + r).
    """
    if shift.noise == "gaussian":
        return _decimal(shift.by**2 / (2 * shift.parameter))
    step = -1 / _decimal(shift.parameter)
    r = step.exp()
    tails = r * (1 - (shift.by * step).exp()) / ((1 - r) * (1 + r))
    return (shift.by - 2 * tails) / _decimal(shift.parameter)


def _variance(shift: Shift) -> Decimal:
    """Return the variance of L under p, for Laplace noise."""
    mean = _relative_entropy(shift)
    values = ((_decimal(log) - mean, p) for log, p in _log_ratios(shift))
    return sum((gap * gap * p for gap, p in values), _ZERO)


# -- summed over a window -------------------------------------------------------------------------


def _theta(sigma2: Fraction, place: Decimal) -> Decimal:
    """Return the sum of exp(-(x - place)^2 / (2 sigma2)) over all integers x."""
    right, left = _side(sigma2, place), _side(sigma2, -place)
    return sum(right, _ZERO) + sum(left[1:], _ZERO)


@lru_cache(maxsize=8)
@divergences.precise
def _side(sigma2: Fraction, place: Decimal) -> list[Decimal]:
    """Return exp(-(x - place)^2 / (2 sigma2)) for x = 0, 1, ... to the end of the window.

    `place` lies between -1/2 and 1/2, so ratios start at 1 or below, and fall.
    """
    width = _decimal(sigma2)
    term = (-place * place / (2 * width)).exp()
    ratio = ((2 * place - 1) / (2 * width)).exp()
    bend = (-1 / width).exp()
    terms, end = [], _END * term
    while term > end * (1 - ratio):
        terms.append(term)
        term, ratio = term * ratio, ratio * bend
    return terms


def _log_ratios(shift: Shift) -> list[tuple[Fraction, Decimal]]:
    """Return the values of L in one cell, and their probabilities under p.

    Laplace: L takes m + 1 values, the outermost on a whole half-line.
    """
    m, parameter = shift.by, shift.parameter
    if shift.noise == "laplace":
        step = -1 / _decimal(parameter)
        r = step.exp()
        ends = [(m / parameter, 1 / (1 + r)), (-m / parameter, (m * step).exp() / (1 + r))]
        inner = (((m - 2 * x) / parameter, (x * step).exp()) for x in range(1, m))
        return [*ends, *((log, weight * (1 - r) / (1 + r)) for log, weight in inner)]
    side, total = _side(parameter, _ZERO), _theta(parameter, _ZERO)
    return [
        (m * (m - 2 * x) / (2 * parameter), side[abs(x)] / total)
        for x in range(1 - len(side), len(side))
    ]


def _law_of_log_ratio(shifts: Sequence[Shift]) -> list[tuple[Fraction, Decimal]]:
    """Return the law of L over all cells, from the largest value down."""
    tables = [_log_ratios(shift) for shift in shifts]
    unit = math.lcm(*(log.denominator for table in tables for log, _ in table))
    law = {0: Decimal(1)}
    for table in tables:
        if len(law) * len(table) > MOST:
            raise BadInput(
                "these cells have too many log-ratios to be added up; use normalised-renyi or "
                "renyi, which add over cells."
            )
        steps = [(int(log * unit), p) for log, p in table]
        added: dict[int, Decimal] = {}
        for log, p in law.items():
            for step, q in steps:
                added[log + step] = added.get(log + step, _ZERO) + p * q
        law = added
    return [(Fraction(log, unit), law[log]) for log in sorted(law, reverse=True)]


def _total_variation(_: OutputPremetric, shifts: Sequence[Shift]) -> divergences.Distance:
    """Return the sum of [p - q]+, over values of L: P(L) (1 - exp(-L)) for L above 0."""
    law = [(_decimal(log), p) for log, p in _law_of_log_ratio(shifts) if log > 0]
    total = sum((p * (1 - (-log).exp()) for log, p in law), _ZERO)
    return divergences.Distance(divergences.enclose(total))


def _approximate(output: OutputPremetric, shifts: Sequence[Shift]) -> divergences.Distance:
    """Return the smallest e >= 0 with sum of [p - exp(e) q]+ at most delta.

    As for finite laws: exp(e) is the largest (P(A) - delta) / Q(A) over the events
    A = {L >= l}, l >= 0, or 1. What the windows leave out of A has at most the slack under
    p, and under q at most exp(-l) times that.
    """
    assert output.delta is not None  # by the model
    delta = _decimal(output.delta)
    slack = divergences.SLACK
    if delta < slack * 10**10:
        raise BadInput("delta: below 1e-30 the sums over a window are not precise enough.")
    lower = upper = Decimal(1)
    p = q = _ZERO
    for log, chance in _law_of_log_ratio(shifts):
        if log < 0:
            break
        inverse = (-_decimal(log)).exp()
        p, q = p + chance, q + chance * inverse
        if p > delta - slack:
            lower = max(lower, (p - slack - delta) / (q + slack * inverse))
            upper = max(upper, (p + slack - delta) / q * (1 + slack))
    low, high = divergences.enclose(lower.ln()), divergences.enclose(upper.ln())
    return divergences.Distance(divergences.Between(low.lower, high.upper))


_RULES = {
    "multiplicative": _multiplicative,
    "approximate": _approximate,
    "renyi": _renyi,
    "normalised-renyi": _normalised_renyi,
    "kullback-leibler": _kullback_leibler,
    "total-variation": _total_variation,
    "hellinger": _hellinger,
}


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
