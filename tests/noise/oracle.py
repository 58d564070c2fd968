"""The laws once more, computed by other means: sums of `decimal` exponentials.

Also a tape on which a test writes what it wants to be read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from discreet.noise import DiscreteGaussian, DiscreteLaplace, Mode, Words

Law = DiscreteGaussian | DiscreteLaplace

DIGITS = 120
ODD = Fraction(214437516707, 177339451520)
SIGMA2 = [Fraction(1, 10), Fraction(1, 3), Fraction(1), ODD, Fraction(10), Fraction(500)]
SIGMA2 = [*SIGMA2, Fraction(7963)]
SCALES = [Fraction(1, 4), Fraction(1, 3), Fraction(1), ODD, Fraction(10), Fraction(80)]
GAUSSIANS = [DiscreteGaussian(value) for value in SIGMA2]
LAPLACES = [DiscreteLaplace(value) for value in SCALES]
LAWS: list[Law] = [*GAUSSIANS, *LAPLACES]


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


@cache
def probabilities(law: Law) -> list[Fraction]:
    """Return P(0), P(1), P(2), ... to about 110 decimals, as far as they go."""
    weights = []
    with localcontext() as context:
        context.prec = DIGITS
        x, weight = 0, Decimal(1)
        while weight > Decimal(10) ** (2 - DIGITS):
            if isinstance(law, DiscreteGaussian):
                weight = (-decimal(Fraction(x * x) / (2 * law.sigma2))).exp()
            else:
                weight = (-decimal(x / law.scale)).exp()
            weights.append(weight)
            x += 1
        total = 2 * sum(weights) - weights[0]
        return [Fraction(weight / total) for weight in weights]


@cache
def edges(law: Law) -> list[Fraction]:
    """Return P(rank <= 0), P(rank <= 1), ... where ranks are 0, -1, 1, -2, 2, ..."""
    mass = probabilities(law)
    sums = [mass[0]]
    for p in mass[1:]:
        sums += [sums[-1] + p, sums[-1] + 2 * p]
    return sums


@cache
def floors(law: Law, width: int) -> list[int]:
    """Return the first `width` bits of each edge; edges are irrational."""
    return [int(edge * 2**width) for edge in edges(law)]


def rank_of(law: Law, bits: int, width: int) -> int:
    """Return the rank on which the number bits / 2^width falls."""
    return bisect_left(floors(law, width), bits)


def parameter(law: Law) -> Fraction:
    return law.sigma2 if isinstance(law, DiscreteGaussian) else law.scale


def name(law: Law) -> str:
    value = parameter(law)
    shown = "1.2092" if value == ODD else str(value)
    return f"{'gaussian' if isinstance(law, DiscreteGaussian) else 'laplace'}-{shown}"


class Written:
    """Tapes whose word at (purpose, position) a test decides."""

    mode: Mode = "trial"

    def __init__(self, word: Callable[[str, int], int]) -> None:
        self.word = word
        self.read: list[tuple[str, int]] = []

    def words(
        self, purpose: str, keys: Words, start: NDArray[np.int64], length: NDArray[np.int64]
    ) -> Words:
        spans = zip(start.tolist(), length.tolist(), strict=True)
        places = [at for begin, count in spans for at in range(begin, begin + count)]
        self.read += [(purpose, at) for at in places]
        return np.array([self.word(purpose, at) for at in places], dtype=np.uint64)


def fraction_tape(bits: int, width: int) -> Written:
    """Return tapes on which element 0 of array "x" reads these bits, then zeros for ever.

    As the table method reads: 16 bits, then words of 64.
    """
    depth = -(-max(width - 16, 0) // 64)
    whole = bits << 16 + 64 * depth - width
    chunks = {f"x/{k + 1}": whole >> 64 * (depth - 1 - k) & 2**64 - 1 for k in range(depth)}
    chunks["x"] = whole >> 64 * depth
    return Written(lambda purpose, at: chunks.get(purpose, 0) if at == 0 else 0)
