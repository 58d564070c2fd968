"""Bounds on exp(-x) in whole numbers, for any rational x and to any precision.

Everything the samplers know about an exponential comes from here. No floating
point: each step rounds the lower bound down and the upper bound up, so what comes
back encloses the true value whatever the precision.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Enclosure(NamedTuple):
    """Two whole numbers around a value, in units of 2^-bits fixed by whoever made them."""

    low: int
    high: int

    def times(self, other: Enclosure, bits: int) -> Enclosure:
        """Return bounds on the product of two values that are not negative."""
        return Enclosure(self.low * other.low >> bits, -(-self.high * other.high >> bits))


def exp_minus(x: Fraction, bits: int) -> Enclosure:
    """Return bounds on exp(-x), in units of 2^-bits, for `x` at least 0.

    exp(-x) = exp(-x / 2^k)^(2^k) with x / 2^k < 1. There the terms of the
    exponential series fall and alternate in sign, so what is left out is at most
    the first term left out (Leibniz). Each squaring doubles the error, which is
    why k more bits are carried.

    >>> exp_minus(Fraction(1), 16), 2**16 * 0.36787944
    (Enclosure(low=24109, high=24110), 24109.34697984)
    """
    if x == 0:
        return Enclosure(1 << bits, 1 << bits)
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 1)
    carried = bits + halvings + 16
    result = _series(x.numerator, x.denominator << halvings, carried)
    for _ in range(halvings):
        result = result.times(result, carried)
    extra = carried - bits
    return Enclosure(result.low >> extra, min(1 << bits, -(-result.high >> extra)))


def power(base: Enclosure, exponent: int, bits: int) -> Enclosure:
    """Return bounds on a value of at most 1 raised to `exponent`, by repeated squaring."""
    result = Enclosure(1 << bits, 1 << bits)
    while exponent:
        if exponent & 1:
            result = result.times(base, bits)
        base = base.times(base, bits)
        exponent >>= 1
    return result


def _series(numerator: int, denominator: int, bits: int) -> Enclosure:
    """Return bounds on exp(-numerator / denominator), for an argument below 1."""
    low = high = 0
    term = Enclosure(1 << bits, 1 << bits)
    place = 0
    while term.high > 1:
        if place % 2 == 0:
            low, high = low + term.low, high + term.high
        else:
            low, high = low - term.high, high - term.low
        place += 1
        divisor = denominator * place
        term = Enclosure(term.low * numerator // divisor, -(-term.high * numerator // divisor))
    return Enclosure(max(0, low - term.high), high + term.high)
