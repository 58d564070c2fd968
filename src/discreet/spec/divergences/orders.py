"""The largest normalised Renyi divergence over all orders, by branch and bound.

For two laws p, q let L = ln p/q and psi(a) = ln(sum of p^a q^(1-a)) = (a - 1) D_a. Wanted is
the supremum over a > 1 of D_a / a = psi(a) / (a (a - 1)). What is used:

- psi is convex with psi(1) = 0, and psi''(a) is the variance of L under the law with
  weights p^a q^(1-a). The third derivative is a third central moment, at most psi'' times
  the spread of L (its largest minus its smallest value); so psi''(t) is at least
  psi''(1) exp(-spread (t - 1)). Call such a lower bound on [a, b] v: then psi(t) - v t^2 / 2
  is convex too, hence psi(t) <= chord(t) - v (t - a)(b - t) / 2.
- D_a tends to the Kullback-Leibler divergence for a -> 1, so that is a lower bound.
- D_a is at most D_inf, the largest value of L, so orders above D_inf / best are out.

The bounds returned hold whatever the tolerance reached. Ours, proved by the above.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from discreet.spec.divergences.certified import SLACK, precise

#: Relative width at which the search ends, and evaluations after which it ends anyway.
TOLERANCE = Decimal("1e-11")
EVALUATIONS = 2000

#: Orders times the spread of L up to which `SLACK` covers the rounding of exponentials.
LARGEST = Decimal(10) ** 8

_ONE = Decimal(1)


@dataclass(frozen=True)
class LogMoments:
    """What the search needs to know of two laws, each number within `SLACK`."""

    psi: Callable[[Decimal], Decimal]
    relative_entropy: Decimal
    #: The largest value of ln p/q, and the largest minus the smallest.
    largest: Decimal
    spread: Decimal
    #: The variance of ln p/q under p, or any number below; 0 costs time only.
    variance: Decimal = Decimal(0)


class Supremum(NamedTuple):
    """Bounds on a supremum over orders, and an order at which the lower one is attained."""

    lower: Decimal
    upper: Decimal
    order: Decimal


class _Piece(NamedTuple):
    """The orders from a to b with psi at both ends; pieces sort by their bound, largest first."""

    minus_bound: Decimal
    a: Decimal
    b: Decimal
    psi_a: Decimal
    psi_b: Decimal


@precise
def largest_over_orders(laws: LogMoments) -> Supremum:
    """Return the supremum of D_a / a over orders a > 1; order 1 stands for the limit there."""
    best, order = laws.relative_entropy, _ONE
    pieces: list[_Piece] = []
    a, psi_a = _ONE, Decimal(0)
    while best * a < laws.largest and a * laws.spread < LARGEST:
        b = 2 * a
        psi_b = laws.psi(b)
        best, order = max((best, order), (_quotient(b, psi_b), b))
        heapq.heappush(pieces, _piece(laws, a, b, psi_a, psi_b))
        a, psi_a = b, psi_b
    beyond = laws.largest / a
    for _ in range(EVALUATIONS):
        if not pieces or -pieces[0].minus_bound <= max(best * (1 + TOLERANCE), beyond):
            break
        _, a, b, psi_a, psi_b = heapq.heappop(pieces)
        middle = (a + b) / 2
        psi_middle = laws.psi(middle)
        best, order = max((best, order), (_quotient(middle, psi_middle), middle))
        heapq.heappush(pieces, _piece(laws, a, middle, psi_a, psi_middle))
        heapq.heappush(pieces, _piece(laws, middle, b, psi_middle, psi_b))
    bound = max(best, beyond, *(-piece.minus_bound for piece in pieces))
    return Supremum(max(best - _error(order), Decimal(0)), bound + _error(order), order)


def _quotient(a: Decimal, psi_a: Decimal) -> Decimal:
    return psi_a / (a * (a - 1))


def _error(a: Decimal) -> Decimal:
    """Return the error of a quotient at an order of at least `a`."""
    return SLACK if a == 1 else SLACK / min(a - 1, _ONE)


def _piece(laws: LogMoments, a: Decimal, b: Decimal, psi_a: Decimal, psi_b: Decimal) -> _Piece:
    """Bound the wanted function on [a, b] by that of a parabola above psi.

    The parabola is A t^2 + B t + C, and its quotient with t^2 - t is largest at an end or
    where (A + B) t^2 + 2 C t - C = 0. If a is 1, the parabola is 0 there and the quotient
    is A - C / t, largest at an end; at 1 that is A - C, as A + B + C = 0.
    """
    # A is v / 2, a little less to be safe.
    square = laws.variance * (laws.spread * (1 - b)).exp() * Decimal("0.499999")
    linear = (psi_b - psi_a) / (b - a) - square * (a + b)
    constant = psi_a - (square * a + linear) * a
    candidates = [_quotient(b, psi_b)]
    if a == 1:
        candidates.append(square - constant)
    else:
        candidates.append(_quotient(a, psi_a))
        for t in _roots(square + linear, constant):
            if a < t < b:
                candidates.append(_quotient(t, (square * t + linear) * t + constant))
    bound = max(candidates) + _error(a if a > 1 else b)
    return _Piece(-bound, a, b, psi_a, psi_b)


def _roots(m: Decimal, k: Decimal) -> list[Decimal]:
    """Return the real solutions of m t^2 + 2 k t - k = 0."""
    if m == 0:
        return [Decimal("0.5")]
    inside = k * (k + m)
    if inside < 0:
        return []
    return [(sign - k) / m for sign in (inside.sqrt(), -inside.sqrt())]
