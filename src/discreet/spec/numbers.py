"""Elementary functions of exact numbers, rounded up: a bound may grow but never shrink.

Arguments and results are fractions. Decimal logarithms, exponentials and roots are
correctly rounded to `DIGITS` digits; each function moves its result up by more than all
roundings it makes.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

DIGITS = 60
#: Far above the roundings of one function, far below anything shown.
SLACK = Fraction(1, 10**45)


def to_decimal(value: Fraction) -> Decimal:
    """Return a fraction rounded to the digits of the current context."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def root_up(value: Fraction) -> Fraction:
    """Return at least the square root, above it by less than 1e-40 of it."""
    if value == 0:
        return Fraction(0)
    with decimal.localcontext(prec=DIGITS):
        return Fraction(to_decimal(value).sqrt()) * (1 + SLACK)


def log_up(value: Fraction) -> Fraction:
    """Return at least the natural logarithm of a number of at least 1."""
    if value == 1:
        return Fraction(0)
    with decimal.localcontext(prec=DIGITS):
        return Fraction(to_decimal(value).ln()) + SLACK * 100


def exp_up(value: Fraction) -> Fraction:
    """Return at least the exponential of a number below 1000."""
    with decimal.localcontext(prec=DIGITS):
        return Fraction(to_decimal(value).exp()) * (1 + SLACK * 10**4)


def tanh_up(value: Fraction) -> Fraction:
    """Return at least the hyperbolic tangent of a number that is not negative, at most 1."""
    if value < Fraction(1, 10**15):
        return value  # tanh(v) < v, and the quotient below would lose digits
    if value > 100:
        return Fraction(1)
    with decimal.localcontext(prec=DIGITS):
        small = (-2 * to_decimal(value)).exp()
        return min(Fraction(1), Fraction((1 - small) / (1 + small)) * (1 + SLACK))
