"""The discrete Gaussian and the discrete Laplace law, and what is known of them exactly.

Both are symmetric laws on the integers: with weights

    discrete Gaussian   exp(-x^2 / (2 sigma2))     Canonne, Kamath and Steinke (2020)
    discrete Laplace    exp(-|x| / scale)          Ghosh, Roughgarden and Sundararajan (2012)

a value x has probability weight(x) / total. Along x = 0, 1, 2, ... each weight is
the one before times a ratio, and the ratio itself is multiplied by a constant
(exp(-1/sigma2), or 1), so all weights follow from two exponentials.

Values are numbered by *rank*: 0, -1, 1, -2, 2, ... are ranks 0, 1, 2, 3, 4. In this
order the only tail lies at the end, near probability 1.

No floating point: a probability, a tail or a variance comes back as two fractions
that enclose it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar, NamedTuple

from discreet.errors import BadInput
from discreet.noise.exponential import Enclosure, exp_minus

LEAST = Fraction(1, 100)  # of either parameter

# Bits carried beyond those asked for. Errors grow with a power of the number of weights (at most
# 2^21): the third for cumulative weights, the fifth for the variance. The bounds hold whatever is
# carried; this makes them narrow.
_CARRIED, _CARRIED_VARIANCE = 96, 160


class Bounds(NamedTuple):
    """Two fractions that enclose a number; `float` of it is for display."""

    lower: Fraction
    upper: Fraction

    def __float__(self) -> float:
        """Return the middle, rounded."""
        return float((self.lower + self.upper) / 2)


class Ladder(NamedTuple):
    """Bounds on P(rank <= 0), P(rank <= 1), ... in units of 2^-bits.

    P(rank <= r) lies between `low[r]` and `low[r] + slack`. The ladder ends where
    less than one unit of the law is left.
    """

    low: list[int]
    slack: int


class Law(ABC):
    """A law that can be drawn from by its ranks 0, 1, 2, ... and their ladder."""

    @abstractmethod
    def ladder(self, bits: int) -> Ladder:
        """Return bounds on the cumulative probabilities, in units of 2^-bits."""


def ladder_of(low: list[int], above: int, total: Enclosure, bits: int, carried: int) -> Ladder:
    """Return the ladder of weights by rank, from what is known of them in units of 2^-carried.

    `low` are lower bounds on the weights, `above` an upper bound on their sum, `total`
    bounds on that of all weights, also those left out.

    A cumulative weight between c and C, over a total between t and T, lies between
    c / T and C / t. Both C - c and c grow with the rank, hence so does the distance of
    these bounds, (C - c) / t + c (1 / t - 1 / T): the last one bounds them all. Rounding
    adds less than two units, one each of `inverse` and of the shift.
    """
    inverse = (1 << 2 * carried) // total.high
    steps = [weight * inverse >> 2 * carried - bits for weight in accumulate(low)]
    highest = -((-above << bits) // total.low)
    return Ladder(steps, highest - steps[-1] + 2)


class SymmetricLaw(Law):
    """A law on the integers, symmetric about 0, whose ratios from weight to weight never rise."""

    @abstractmethod
    def exponent(self, x: int) -> Fraction:
        """Return -log weight(x)."""

    @property
    @abstractmethod
    def bend(self) -> Fraction:
        """Return by how much -log of the ratio grows from one x to the next."""

    def value(self, rank: int) -> int:
        """Return the value that stands at `rank`: 0, -1, 1, -2, 2, ..."""
        return rank >> 1 ^ -(rank & 1)

    def ladder(self, bits: int) -> Ladder:
        """Return bounds on P(rank <= 0), P(rank <= 1), ... in units of 2^-bits."""
        sums = _sums(self, bits)
        ranked = [sums.low[(rank + 1) // 2] for rank in range(2 * len(sums.low) - 1)]
        above = 2 * sum(sums.high) - sums.high[0]  # every weight twice, but that of 0 once
        return ladder_of(ranked, above, sums.total, bits, bits + _CARRIED)

    def probability(self, x: int, bits: int = 64) -> Bounds:
        """Return bounds on P(X = x), at most 2^-bits apart.

        >>> round(float(DiscreteGaussian(Fraction(1)).probability(0)), 6)
        0.398942
        """
        total = _sums(self, bits).total
        weight = exp_minus(self.exponent(x), bits + _CARRIED)
        return Bounds(Fraction(weight.low, total.high), Fraction(weight.high, total.low))

    def tail(self, x: int, bits: int = 64) -> Bounds:
        """Return bounds on P(X >= x) for `x` above 0, at most 2^-bits apart.

        >>> f"{float(DiscreteGaussian(Fraction(100)).tail(61)):.3g}"
        '7.13e-10'
        """
        if x < 1:
            raise BadInput("tail: x must be above 0; below, use the symmetry of the law")
        sums = _sums(self, bits)
        low, high = sum(sums.low[x:]), sum(sums.high[x:]) + sums.beyond
        return Bounds(Fraction(low, sums.total.high), Fraction(high, sums.total.low))

    def variance(self, bits: int = 64) -> Bounds:
        """Return bounds on the exact variance, at most 2^-bits apart; the mean is 0.

        It is not sigma2: a discrete Gaussian's variance is smaller (Canonne, Kamath
        and Steinke 2020), visibly so for small sigma2.

        >>> round(float(DiscreteGaussian(Fraction(1, 10)).variance()), 6)
        0.013297
        """
        return _variance(self, bits)

    def margin(self, confidence: Fraction) -> int:
        """Return the least m such that P(-m <= X <= m) is at least `confidence`.

        >>> DiscreteGaussian(Fraction(100)).margin(Fraction(9, 10))
        16
        """
        if not 0 < confidence < 1:
            raise BadInput("confidence: must lie strictly between 0 and 1, like 9/10")
        bits = 64 + confidence.denominator.bit_length()
        while True:
            ladder = self.ladder(bits)
            wanted = confidence * (1 << bits)
            for m, low in enumerate(ladder.low[::2]):
                if low >= wanted:
                    return m
                if low + ladder.slack >= wanted:
                    break  # too close to tell: look again with more bits
            bits *= 2


@dataclass(frozen=True)
class DiscreteGaussian(SymmetricLaw):
    """The discrete Gaussian with parameter `sigma2`, from 1/100 to 10^8."""

    sigma2: Fraction

    LARGEST: ClassVar[int] = 10**8

    def __post_init__(self) -> None:
        """Refuse a parameter for which nothing was proved."""
        if not LEAST <= self.sigma2 <= self.LARGEST:
            raise BadInput("sigma2: must lie between 1/100 and 10^8; choose another budget")

    def exponent(self, x: int) -> Fraction:
        """Return x^2 / (2 sigma2)."""
        return x * x / (2 * self.sigma2)

    @property
    def bend(self) -> Fraction:
        """Return 1 / sigma2: the ratios are exp(-(2x + 1) / (2 sigma2))."""
        return 1 / self.sigma2


@dataclass(frozen=True)
class DiscreteLaplace(SymmetricLaw):
    """The discrete Laplace law with parameter `scale`, from 1/100 to 10^4.

    Its variance is 2 a / (1 - a)^2 with a = exp(-1 / scale).
    """

    scale: Fraction

    LARGEST: ClassVar[int] = 10**4

    def __post_init__(self) -> None:
        """Refuse a parameter for which nothing was proved."""
        if not LEAST <= self.scale <= self.LARGEST:
            raise BadInput("scale: must lie between 1/100 and 10^4; choose another budget")

    def exponent(self, x: int) -> Fraction:
        """Return |x| / scale."""
        return abs(x) / self.scale

    @property
    def bend(self) -> Fraction:
        """Return 0: all ratios are exp(-1 / scale)."""
        return Fraction(0)


def _steps(law: SymmetricLaw, bits: int) -> Iterator[tuple[int, int, int]]:
    """Yield for x = 0, 1, ... bounds on its weight, and an upper one on the ratio to the next."""
    low = high = 1 << bits
    ratio_low, ratio_high = exp_minus(law.exponent(1), bits)
    bend_low, bend_high = exp_minus(law.bend, bits)
    while True:
        yield low, high, ratio_high
        low = low * ratio_low >> bits
        high = -(-high * ratio_high >> bits)
        ratio_low = ratio_low * bend_low >> bits
        ratio_high = -(-ratio_high * bend_high >> bits)


class _Sums(NamedTuple):
    """Bounds on the weights of 0, 1, ..., on the sum of all that come after, and on the total."""

    low: list[int]
    high: list[int]
    beyond: int
    total: Enclosure


@lru_cache(maxsize=4)
def _sums(law: SymmetricLaw, bits: int) -> _Sums:
    """Return bounds on the weights that matter to the precision of 2^-bits.

    The ratios never rise, so the weights from x on are at most those of a geometric
    series: together at most weight(x) / (1 - ratio(x)). They are left out once that
    is less than a quarter of 2^-bits (there are two tails, and the total is at least 1).
    """
    carried = bits + _CARRIED
    one, little = 1 << carried, 1 << _CARRIED - 2
    lows, highs = [], []
    for low, high, ratio in _steps(law, carried):
        # The bound costs a division, and is not needed while one weight alone is too much.
        if high < little and (beyond := (high << carried) // (one - ratio) + 1) < little:
            break
        lows.append(low)
        highs.append(high)
    total = Enclosure(2 * sum(lows) - lows[0], 2 * (sum(highs) + beyond) - highs[0])
    return _Sums(lows, highs, beyond, total)


@lru_cache(maxsize=1024)
def _variance(law: SymmetricLaw, bits: int) -> Bounds:
    """Return bounds on the variance, summed until the rest is small enough.

    From x on, the terms x^2 weight(x) fall at least as fast as the first two of them
    do, because (x + 1)^2 / x^2 and the ratios of the weights both fall. They are left
    out at 2^-34 of 2^-bits, as they also change the total, which divides a sum of 2^28.
    """
    carried = bits + _CARRIED_VARIANCE
    one, little = 1 << carried, 1 << _CARRIED_VARIANCE - 34
    squares_low = squares_high = total_low = total_high = 0
    for x, (low, high, ratio) in enumerate(_steps(law, carried)):
        if x and x * x * high < little:
            fall = ratio * (x + 1) ** 2 // (x * x) + 1
            if fall < one:
                beyond = (x * x * high << carried) // (one - fall) + 1
                if beyond < little:
                    break
        squares_low += x * x * low
        squares_high += x * x * high
        total_low += low
        total_high += high
    lower = Fraction(2 * squares_low, 2 * (total_high + beyond) - one)
    return Bounds(lower, Fraction(2 * (squares_high + beyond), 2 * total_low - one))
