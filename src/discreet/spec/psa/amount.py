"""Numbers of the form ln(rational) / root, kept exact: budgets and losses of swapping.

Odds, table laws and derangement numbers are rational, and every bound here is a
logarithm of them divided by a number of records. Keeping the rational makes
comparisons exact and lets a figure be rounded upwards safely.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log, log1p

#: How finely upper bounds are rounded upwards.
GRID = Fraction(1, 10**15)


@dataclass(frozen=True)
class LogAmount:
    """The number ln(`ratio`) / `root` with `ratio` at least 1; infinite where `ratio` is None.

    >>> LogAmount(Fraction(9), 2).value == LogAmount(Fraction(3)).value
    True
    """

    ratio: Fraction | None
    root: int = 1

    @property
    def value(self) -> float:
        """Return the nearest number, for display."""
        return inf if self.ratio is None else log_fraction(self.ratio) / self.root

    def upper_bound(self) -> Fraction | None:
        """Return a rational just above the number (by at most about `GRID`); None if infinite."""
        if self.ratio is None or self.ratio == 1:
            return None if self.ratio is None else Fraction(0)
        with decimal.localcontext(prec=40):
            top = decimal.Decimal(self.ratio.numerator).ln()
            bottom = decimal.Decimal(self.ratio.denominator).ln()
            # Three correct roundings of numbers below 1e9: together less than 1e-30.
            above = Fraction(top - bottom) / self.root + Fraction(1, 10**25)
        return rounded_up(above)

    def __lt__(self, other: LogAmount) -> bool:
        """Compare exactly: ln(a)/i < ln(b)/j exactly when a^j < b^i."""
        if self.ratio is None or other.ratio is None:
            return self.ratio is not None
        near, far = self.value, other.value
        if abs(near - far) > 1e-9 * max(near, far, 1.0):  # logarithms err far less
            return near < far
        return bool(self.ratio**other.root < other.ratio**self.root)

    def __str__(self) -> str:
        """Return the exact form, or its size where it is too long to read."""
        if self.ratio is None:
            return "infinite"
        shown = str(self.ratio)
        if len(shown) > 60:
            shown = f"a rational of {len(shown)} digits"
        return f"ln({shown})" + (f"/{self.root}" if self.root > 1 else "")


ZERO = LogAmount(Fraction(1))
INFINITE = LogAmount(None)


def size_of_log(ratio: Fraction, root: int = 1) -> LogAmount:
    """Return |ln(ratio)| / root."""
    return LogAmount(max(ratio, 1 / ratio), root)


def rounded_up(value: Fraction) -> Fraction:
    """Return the next multiple of `GRID`."""
    steps = value / GRID
    return -(-steps.numerator // steps.denominator) * GRID


def log_fraction(value: Fraction) -> float:
    """Return the natural logarithm of a positive fraction of any size."""
    if abs(value - 1) < Fraction(1, 2):  # where a difference of logarithms would lose digits
        return log1p(float(value - 1))
    return log(value.numerator) - log(value.denominator)
