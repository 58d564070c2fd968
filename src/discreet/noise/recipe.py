"""What drawing by rejection needs to know of a law, in machine words and with bounded error."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within
from discreet.noise.coin import FINE, UNIT
from discreet.noise.law import DiscreteGaussian, DiscreteLaplace

Integers = NDArray[np.int64]
NoiseLaw = DiscreteGaussian | DiscreteLaplace

RATE = 55  # g in units of 2^-55
T, G, SHIFT, CENTRE, FLATNESS = 0, 1, 2, 3, 4  # columns of an array of recipes
_SHIFTS = 57  # shift + bit length of t
_FLAT = 2 * UNIT + FINE  # flatness is in units of 2^-(_FLAT - 2 shift)
_WORD = 1 << 62  # numerators and denominators below this are worked in machine words


class Recipe(NamedTuple):
    """A law in whole numbers below 2^62; the algorithm is in `discreet.noise.reject`.

    With b the bit length of t: `rate` is g in 2^-55, `centre` is sigma2 / t in 2^-s
    with s = `shift` = 57 - b, and `flatness` is 1 / (2 sigma2) in 2^-(168 - 2 s). Each
    is rounded down, so too small by less than one unit.

    For |x| < 2^(b + 5), y = (|x| - centre)^2 flatness is then off by less than 2^-41:
    the centre's unit contributes 2 ||x| - centre| 2^-s / (2 sigma2), which is at most
    2^-48 for t > 1 (as sigma >= t / 2 >= 2^(b - 2)) and 2^-43.3 for t = 1 (as sigma2 >=
    1/100), and the three roundings 2^-44 each. y = u g, u <= t < 2^14, is off by less
    than 2^14 units of 2^-55 and one of 2^-44. exp(-y) changes by no more than y does and
    is itself computed to 2^-56, so all its values are known to within 2^-40.
    """

    t: int
    rate: int
    shift: int
    centre: int
    flatness: int


def recipe_of(law: NoiseLaw) -> Recipe:
    """Return the recipe of a law; a Laplace law has flatness 0, so every proposal is kept."""
    if isinstance(law, DiscreteLaplace):
        n, d = law.scale.as_integer_ratio()
        return Recipe(n // d + 1, (d << RATE) // n, 0, 0, 0)
    n, d = law.sigma2.as_integer_ratio()
    t = isqrt(n // d) + 1
    shift = _SHIFTS - t.bit_length()
    flatness = (d << (_FLAT - 1 - 2 * shift)) // n
    return Recipe(t, (1 << RATE) // t, shift, (n << shift) // (d * t), flatness)


def recipes_of(kind: type[NoiseLaw], parameters: Sequence[Fraction]) -> Integers:
    """Return the recipes of many laws of one kind, one per row."""
    pairs = _pairs(parameters)
    if pairs is None:
        return np.array([recipe_of(kind(parameter)) for parameter in parameters], dtype=np.int64)
    outside = first_outside(pairs, kind.LARGEST)
    if outside >= 0:
        kind(parameters[outside])  # says what is wrong
    return _gaussian_rows(pairs) if kind is DiscreteGaussian else _laplace_rows(pairs)


def _pairs(parameters: Sequence[Fraction]) -> Integers | None:
    """Return numerators and denominators, or nothing if one does not fit a machine word."""
    ratios = chain.from_iterable(parameter.as_integer_ratio() for parameter in parameters)
    try:
        pairs = np.fromiter(ratios, dtype=np.int64, count=2 * len(parameters))
    except OverflowError:
        return None
    return pairs.reshape(-1, 2) if pairs.max() < _WORD else None


@compiled
def first_outside(pairs: Integers, largest: int) -> int:
    """Return the first ratio that is not between 1/100 and `largest`, or -1."""
    for i in range(len(pairs)):
        n, d = pairs[i]
        if n <= 0 or d // 100 > n or (d // 100 == n and d % 100 > 0):
            return i
        if n // d > largest or (n // d == largest and n % d > 0):
            return i
    return -1


@compiled_within
def shifted_quotient(n: int, d: int, shift: int) -> int:
    """Return n 2^shift / d rounded down, for n and d below 2^62 and a result below 2^62."""
    quotient, rest = n // d, n % d
    for _ in range(shift):
        bit = int(2 * rest >= d)  # a branch would be guessed wrong half of the time
        quotient, rest = 2 * quotient + bit, 2 * rest - d * bit
    return quotient


@compiled
def _gaussian_rows(pairs: Integers) -> Integers:
    """Return what `recipe_of` does, without numbers above 2^63."""
    rows = np.empty((len(pairs), 5), dtype=np.int64)
    for i in range(len(pairs)):
        n, d = pairs[i]
        whole, rest = n // d, n % d
        t, step = 0, 1 << 14  # sigma is at most 10^4
        while step > 0:
            if (t + step) * (t + step) <= whole:
                t += step
            step >>= 1
        t += 1
        shift = _SHIFTS
        while t >> (_SHIFTS - shift) > 0:
            shift -= 1
        # sigma2 = t a + b + rest / d with whole numbers a and b < t
        a, b = whole // t, whole % t
        part = ((b << shift) + shifted_quotient(rest, d, shift)) // t
        rows[i, T], rows[i, G], rows[i, SHIFT] = t, (1 << RATE) // t, shift
        rows[i, CENTRE] = (a << shift) + part
        rows[i, FLATNESS] = shifted_quotient(d, n, _FLAT - 1 - 2 * shift)
    return rows


@compiled
def _laplace_rows(pairs: Integers) -> Integers:
    """Return what `recipe_of` does, without numbers above 2^63."""
    rows = np.zeros((len(pairs), 5), dtype=np.int64)
    for i in range(len(pairs)):
        n, d = pairs[i]
        rows[i, T], rows[i, G] = n // d + 1, shifted_quotient(d, n, RATE)
    return rows
