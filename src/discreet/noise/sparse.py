"""Select few of many positions, each with the same chance, without looking at each.

The number of positions passed over before the next one selected is geometric: g with
probability p (1 - p)^g. Positions are then independent, each selected with chance p.

A geometric law of small p has a long ladder, so g is drawn by its digits: with q =
1 - p and g = m + B d, 0 <= m < B, the probability p q^m (q^B)^d is a product, so m and d
are independent, m with weights q^m on 0, ..., B - 1 and d geometric with q^B in place of
q (ours, the line above is the proof). Each digit is a law with a short ladder and is
drawn exactly by `discreet.noise.table`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadInput
from discreet.noise.exponential import Enclosure, power
from discreet.noise.law import Ladder, Law, ladder_of
from discreet.noise.share import Shares
from discreet.noise.table import draw_ranks, prepare
from discreet.noise.tape import Randomness, check_purpose

Integers = NDArray[np.int64]

LARGEST_SIZE = 1 << 40
_BASE = 1024
_BATCH = 1 << 22  # gaps of at most 2^40 each: their sum stays within a word


def select_sparse(rng: Randomness, purpose: str, key: int, chance: Fraction, size: int) -> Integers:
    """Return the positions selected among 0, ..., size - 1, in ascending order.

    Gap j reads its digits at place j of the tapes of `purpose/digit/0`, `.../1`, ...

    >>> from discreet.noise import trial
    >>> select_sparse(trial(1), "example", 0, Fraction(1, 10**6), 5 * 10**6)
    array([  68499, 1570066, 2118823])
    """
    check_purpose(purpose)
    if not 0 < chance < 1:
        raise BadInput("a chance must lie strictly between 0 and 1: give a fraction like 1/20")
    if not 0 <= size <= LARGEST_SIZE:
        raise BadInput("size: must lie between 0 and 2^40; select in parts")
    laws = digits_of(chance)
    found: list[Integers] = []
    position, drawn = -1, 0
    while position < size:
        mean = int((size - position) * chance)
        count = min(_BATCH, mean + 4 * isqrt(mean) + 16)
        gaps = _gaps(Shares(rng, purpose, int(key), drawn), laws, count, size)
        places = position + np.cumsum(gaps + 1)
        found.append(places)
        position, drawn = int(places[-1]), drawn + count
    places = np.concatenate([np.empty(0, dtype=np.int64), *found])
    return places[: int(np.searchsorted(places, size))]


def _gaps(shares: Shares, laws: list[Digit], count: int, most: int) -> Integers:
    """Return `count` gaps, none above `most`: what lies beyond the last position is not needed."""
    gaps = np.zeros(count, dtype=np.int64)
    index = np.zeros(count, dtype=np.int64)
    for place, law in enumerate(laws):
        mine = shares._replace(purpose=f"{shares.purpose}/digit/{place}")
        digits = draw_ranks(mine, prepare([law]), index)
        worth = min(law.exponent, most + 1)
        gaps += np.minimum(digits, most // worth + 1) * worth
    return np.minimum(gaps, most)


def digits_of(chance: Fraction) -> list[Digit]:
    """Return the laws of the digits of a gap, lowest first; the last is not limited to the base."""
    laws: list[Digit] = []
    exponent = 1
    while chance * exponent < Fraction(1, 64):
        laws.append(Digit(1 - chance, exponent, limited=True))
        exponent *= _BASE
    return [*laws, Digit(1 - chance, exponent, limited=False)]


@dataclass(frozen=True)
class Digit(Law):
    """Weights 1, a, a^2, ... with a = keep^exponent, on 0, ..., 1023 if `limited`."""

    keep: Fraction
    exponent: int
    limited: bool

    def ladder(self, bits: int) -> Ladder:
        """Return bounds on P(rank <= 0), P(rank <= 1), ... in units of 2^-bits."""
        # Raising to a power multiplies the relative error by the exponent.
        extra = 96 + self.exponent.bit_length()
        carried = bits + extra
        scaled = (self.keep.numerator << carried) // self.keep.denominator
        ratio = power(Enclosure(scaled, scaled + 1), self.exponent, carried)
        one, little = 1 << carried, 1 << (extra - 1)
        weight = Enclosure(one, one)
        low, high = [], []
        finished = False
        while not finished:
            low.append(weight.low)
            high.append(weight.high)
            weight = weight.times(ratio, carried)
            beyond = 0 if self.limited else (weight.high << carried) // (one - ratio.high) + 1
            finished = len(low) == _BASE if self.limited else beyond < little
        total = Enclosure(sum(low), sum(high) + beyond)
        return ladder_of(low, sum(high), total, bits, carried)
