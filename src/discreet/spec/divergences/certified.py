"""Numbers that are known for certain: exact forms, and floats that enclose a value.

Logarithms, exponentials and roots are taken with the decimal module at 60 digits,
where each single operation is correctly rounded. A chain of them is wrong by a few
units of the last place, times the size of the numbers involved; every use below stays
under 10^9 in size and 10^6 in length, so that less than `SLACK` covers all of it.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from statistics import NormalDist
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

#: Sixty digits, and exponents without a limit that matters.
DIGITS = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)

#: More than the sum of all rounding errors of any computation here; see above.
SLACK = Decimal("1e-40")

#: Relative error allowed for the normal distribution function above 1e-300. The C library's
#: erfc is good to a few 2^-53; rounding its argument, below 27, adds less than 1e-12.
_ERFC = Fraction(1, 10**11)


@dataclass(frozen=True)
class Between:
    """A number that lies between two floats, both included."""

    lower: float
    upper: float

    def __float__(self) -> float:
        """Return the middle, for display."""
        if self.upper == math.inf:
            return math.inf
        return self.lower + (self.upper - self.lower) / 2

    def over(self, divisor: Fraction) -> Between:
        """Return bounds on the number divided by a positive one."""
        if self.lower == math.inf:
            return self
        upper = Fraction(self.upper) / divisor if self.upper < math.inf else math.inf
        return Between(_down(Fraction(self.lower) / divisor), _up(upper))

    def squared(self) -> Between:
        """Return bounds on the square of a number that is not negative."""
        if self.lower == math.inf:
            return self
        upper = Fraction(self.upper) ** 2 if self.upper < math.inf else math.inf
        return Between(_down(Fraction(self.lower) ** 2), _up(upper))


INFINITE = Between(math.inf, math.inf)


@dataclass(frozen=True)
class LogOf:
    """The number ln(`of`) / `over`, exactly; `of` is at least 1."""

    of: Fraction
    over: Fraction = Fraction(1)

    def bounds(self) -> Between:
        """Return floats around the number."""
        if self.of == 1:
            return Between(0.0, 0.0)
        return enclose(DIGITS.divide(ln(self.of), decimal_of(self.over)))

    def __str__(self) -> str:
        """Return the number as a formula."""
        return f"ln({self.of})" if self.over == 1 else f"ln({self.of})/{_divisor(self.over)}"


@dataclass(frozen=True)
class RootOf:
    """The number sqrt(`of`), exactly."""

    of: Fraction

    def bounds(self) -> Between:
        """Return floats around the number."""
        return enclose(DIGITS.sqrt(decimal_of(self.of)))

    def __str__(self) -> str:
        """Return the number as a formula."""
        return f"sqrt({self.of})"


#: A number in a form that can be compared without rounding.
Exact = Fraction | LogOf | RootOf


def bounds_of(number: Exact) -> Between:
    """Return floats around an exact number."""
    if isinstance(number, Fraction):
        return Between(_down(number), _up(number))
    return number.bounds()


def divided(number: Exact, divisor: Fraction) -> Exact:
    """Return an exact number divided by a positive one."""
    if isinstance(number, LogOf):
        return LogOf(number.of, number.over * divisor)
    if isinstance(number, RootOf):
        return RootOf(number.of / divisor**2)
    return number / divisor


def at_most(one: Exact, other: Exact) -> bool:
    """Tell whether one number is at most the other, without rounding; none is negative.

    Logarithms with small divisors are compared as powers of whole numbers; anything else
    with as many digits as it takes. That ends: the logarithm of a rational other than 1
    is transcendental (Hermite and Lindemann), so it equals no rational and no root of one.
    """
    if isinstance(one, LogOf):
        return _log_at_most(one, other) if isinstance(other, LogOf) else _sign(one, other) <= 0
    if isinstance(other, LogOf):
        return _sign(other, one) >= 0
    return _square(one) <= _square(other)


def _log_at_most(one: LogOf, other: LogOf) -> bool:
    """Tell whether ln(a) / x <= ln(b) / y, that is a^y <= b^x, with x and y made whole.

    If a^y = b^x with x and y coprime, a is the x-th and b the y-th power of one rational,
    so x and y are at most the lengths of a and b. Then the powers are short enough to be
    compared; otherwise they differ, and digits are added until that shows.
    """
    if one.of == 1 or other.of == 1:
        return one.of == 1
    quotient = one.over / other.over
    x, y = quotient.numerator, quotient.denominator
    if x <= one.of.numerator.bit_length() and y <= other.of.numerator.bit_length():
        first, second = bounds_of(one), bounds_of(other)
        if first.upper < second.lower or first.lower > second.upper:
            return first.upper < second.lower
        return bool(one.of**y <= other.of**x)
    context = DIGITS.copy()
    while True:
        left = context.multiply(context.ln(_ratio(one.of, context)), Decimal(y))
        right = context.multiply(context.ln(_ratio(other.of, context)), Decimal(x))
        gap = context.subtract(left, right)
        if abs(gap) > max(left, right, Decimal(max(x, y))).scaleb(4 - context.prec):
            return gap < 0
        context.prec *= 2


def _square(number: Fraction | RootOf) -> Fraction:
    return number.of if isinstance(number, RootOf) else number**2


def _sign(log: LogOf, plain: Fraction | RootOf) -> int:
    """Return the sign of a logarithm minus a rational or a root, none of them negative."""
    square = _square(plain) * log.over**2  # ln(of) against the root of this
    if log.of == 1 or square == 0:
        return (log.of > 1) - (square > 0)
    context = DIGITS.copy()
    while True:
        one = context.ln(_ratio(log.of, context))
        other = context.sqrt(_ratio(square, context))
        gap = context.subtract(one, other)
        # Each side is at most three roundings, of numbers below 1 or below itself.
        if abs(gap) > max(one, other, Decimal(1)).scaleb(4 - context.prec):
            return 1 if gap > 0 else -1
        context.prec *= 2


def _ratio(value: Fraction, context: decimal.Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _divisor(over: Fraction) -> str:
    return str(over) if over.denominator == 1 else f"({over})"


# -- decimals ------------------------------------------------------------------------------


def precise(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let every decimal operation inside a function carry sixty digits."""

    @wraps(function)
    def inside(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with decimal.localcontext(DIGITS):
            return function(*args, **kwargs)

    return inside


def decimal_of(value: Fraction) -> Decimal:
    """Return a fraction rounded to sixty digits."""
    return _ratio(value, DIGITS)


def ln(value: Fraction) -> Decimal:
    """Return the logarithm of a positive fraction, within `SLACK`."""
    return DIGITS.ln(decimal_of(value))


def enclose(value: Decimal, slack: Decimal = SLACK) -> Between:
    """Return floats around a number that is not negative and known within `slack`."""
    low = max(Fraction(value) - Fraction(slack), Fraction(0))
    return Between(_down(low), _up(Fraction(value) + Fraction(slack)))


def root_between(low: Decimal, high: Decimal) -> Between:
    """Return floats around the root of a number that lies between two decimals."""
    return Between(enclose(DIGITS.sqrt(low)).lower, enclose(DIGITS.sqrt(high)).upper)


def _down(value: Fraction) -> float:
    """Return a float that is at most `value`: the nearest one, or that below."""
    try:
        near = float(value)
    except OverflowError:
        return math.nextafter(math.inf, 0)
    return near if near <= value else math.nextafter(near, -math.inf)


def _up(value: Fraction | float) -> float:
    """Return a float that is at least `value`: the nearest one, or that above."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf
    return near if near >= value else math.nextafter(near, math.inf)


def normal_quantile(chance: Fraction) -> Between:
    """Return floats around the normal quantile of a probability strictly between 0 and 1.

    A guess is widened until the normal distribution function, taken from the C library
    with a relative error of at most 1e-11, is certainly below and above the probability.
    Below 1e-300 only the bound P(N < -x) <= exp(-x^2 / 2) / 2 is used.
    """
    if chance > Fraction(1, 2):
        mirrored = normal_quantile(1 - chance)
        return Between(-mirrored.upper, -mirrored.lower)
    if chance < Fraction(1, 10**300):
        return Between(-bounds_of(RootOf(-2 * Fraction(ln(chance)))).upper, -37.0)
    guess = NormalDist().inv_cdf(float(chance))
    step = 1e-14 * max(1.0, abs(guess))
    while True:
        low, high = guess - step, guess + step
        if _normal(low) * (1 + _ERFC) <= chance <= _normal(high) * (1 - _ERFC):
            return Between(low, high)
        step *= 4


def _normal(x: float) -> Fraction:
    return Fraction(math.erfc(-x / math.sqrt(2)) / 2)
