"""Order two amounts exactly: the last step of a comparison, after everything else agrees.

Amounts of different units are never set side by side here; the caller brings both
promises to one flavor first.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from discreet.spec.budget import Amount, Exactly, FunctionOfUniverse, LogRational

#: Above so many bits a power is not written out.
LARGEST_POWER = 2_000_000


def lower_bound(amount: LogRational | Exactly) -> Fraction:
    """Return a rational that is at most the number, and below it by at most 1e-25 `times`."""
    if isinstance(amount, Exactly) or amount.of == 1:
        return amount.upper_bound()
    return max(Fraction(0), amount.upper_bound() - amount.times / 10**25)


def at_most(one: Amount, other: Amount) -> bool | None:
    """Tell whether one amount is at most the other; None if that cannot be told.

    An infinite budget is at least everything. Two functions of the universe can be told
    only if they are the same. Logarithms are compared as whole numbers:
    (p/q) ln a <= (r/s) ln b exactly if a^(ps) <= b^(rq).
    """
    if one == other or other.kind == "none":
        return True
    if one.kind == "none":
        return False
    if isinstance(one, LogRational | Exactly) and one.upper_bound() == 0:
        return True
    if not isinstance(one, LogRational | Exactly) or not isinstance(other, LogRational | Exactly):
        return None
    if one.upper_bound() <= lower_bound(other):
        return True
    if lower_bound(one) > other.upper_bound():
        return False
    if isinstance(one, LogRational) and isinstance(other, LogRational):
        return _logarithms(one, other)
    return None


def _logarithms(one: LogRational, other: LogRational) -> bool | None:
    common = lcm(one.times.denominator, other.times.denominator)
    left, right = int(one.times * common), int(other.times * common)
    bits = max(
        left * max(one.of.numerator.bit_length(), one.of.denominator.bit_length()),
        right * max(other.of.numerator.bit_length(), other.of.denominator.bit_length()),
    )
    if bits > LARGEST_POWER:
        return None
    return one.of**left <= other.of**right


def is_finite(amount: Amount) -> bool:
    """Tell whether the amount is a number in every universe, known or not."""
    return isinstance(amount, LogRational | Exactly | FunctionOfUniverse)
