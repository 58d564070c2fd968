"""Draw arrays of discrete Gaussian or discrete Laplace noise, exactly.

Two methods draw from the same laws. Tables (`discreet.noise.table`) serve arrays with
few different parameters, rejection (`discreet.noise.reject`) all others. Which one is
used depends on the list of parameters alone, so that an array may be drawn in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled
from discreet.errors import BadInput
from discreet.noise.law import DiscreteGaussian, DiscreteLaplace
from discreet.noise.recipe import NoiseLaw
from discreet.noise.reject import draw_by_rejection
from discreet.noise.share import Index, Shares
from discreet.noise.table import Prepared, draw_ranks, prepare
from discreet.noise.tape import Randomness, check_purpose, trial

Integers = NDArray[np.int64]
Parameter = Fraction | int
Parameters = Parameter | tuple[Sequence[Parameter], Index]

MOST_TABLES = 1024
MOST_EDGES = 1 << 21  # of all tables of an array together; a second or two to compute, once


def discrete_gaussian(
    rng: Randomness,
    purpose: str,
    key: int,
    sigma2: Parameters,
    size: int | None = None,
    *,
    start: int = 0,
    at: Integers | None = None,
) -> Integers:
    """Return independent draws x with probability proportional to exp(-x^2 / (2 sigma2)).

    Parameters
    ----------
    purpose, key
        The name of the array: two arrays of one name would carry the same noise. A purpose
        must not contain a slash.
    sigma2
        One fraction for all `size` elements, or a list of the different fractions and an
        array that says for each element which of them is its own.
    start
        The number of the first element, to draw a long array in parts: with the same
        list of fractions, elements are the same however the array is cut.
    at
        The numbers of the elements to draw, increasing, in place of `start` and `size`: only
        these are drawn, and each is the same as in the whole array.

    Examples
    --------
    >>> from discreet.noise import trial
    >>> discrete_gaussian(trial(1), "example", 0, Fraction(100), 5)
    array([-1,  0,  5, 26, 18])
    >>> discrete_gaussian(trial(1), "example", 0, Fraction(100), at=np.array([2, 4]))
    array([ 5, 18])
    >>> which = np.array([0, 1, 1, 0])
    >>> discrete_gaussian(trial(1), "example", 1, ([Fraction(1, 10), 400], which))
    array([  0, -13,  -7,   0])
    """
    if at is not None:
        _check_places(at, start, size)
        size = at.size
    return _draw(Shares(rng, purpose, int(key), start, at), DiscreteGaussian, sigma2, size)


def load_compiled() -> None:
    """Load the compiled code of draws: a while, the first time. Nothing is drawn for anybody."""
    discrete_gaussian(trial(0), "load", 0, 1, 1)


def discrete_laplace(
    rng: Randomness,
    purpose: str,
    key: int,
    scale: Parameters,
    size: int | None = None,
    *,
    start: int = 0,
) -> Integers:
    """Return independent draws x with probability proportional to exp(-|x| / scale).

    Parameters are as those of `discrete_gaussian`, with scales in place of sigma2.

    Examples
    --------
    >>> from discreet.noise import trial
    >>> discrete_laplace(trial(1), "example", 0, Fraction(10), 5)
    array([ 0,  0, -5, 47, 26])
    """
    return _draw(Shares(rng, purpose, int(key), start), DiscreteLaplace, scale, size)


def _draw(
    shares: Shares, kind: type[NoiseLaw], parameter: Parameters, size: int | None
) -> Integers:
    check_purpose(shares.purpose)
    values, index = _split(parameter, size)
    if shares.start < 0 or not 0 <= shares.key < 1 << 64:
        raise BadInput("start and key: must not be negative, and the key must be below 2^64")
    if not index.size:
        return np.empty(0, dtype=np.int64)
    if not use_tables(kind, values):
        return draw_by_rejection(shares, kind, values, index)
    draws = draw_ranks(shares, _prepared(kind, tuple(values)), index)
    unfold(draws)
    return draws


def _check_places(at: Integers, start: int, size: int | None) -> None:
    """Refuse places that would give two elements the same noise, or none."""
    if at.ndim != 1 or at.dtype != np.int64 or start != 0 or size is not None:
        raise BadInput("at: must be a list of whole numbers of 64 bits; omit start and size")
    if at.size and not (at[0] >= 0 and increases(at)):
        raise BadInput("at: numbers must increase from 0 on, or elements would draw alike")


@compiled
def increases(numbers: Integers) -> bool:
    """Return whether each number is larger than the one before."""
    falls = 0
    for i in range(1, numbers.size):
        falls += numbers[i] <= numbers[i - 1]
    return falls == 0


@lru_cache(maxsize=4)
def _prepared(kind: type[NoiseLaw], values: tuple[Fraction, ...]) -> Prepared:
    return prepare([kind(value) for value in values])


def _split(parameter: Parameters, size: int | None) -> tuple[Sequence[Fraction], Index]:
    """Return the different parameters as fractions, and which of them each element has."""
    if not isinstance(parameter, tuple):
        if size is None or size < 0:
            raise BadInput("size: say how many to draw; one parameter serves any number")
        return _fractions([parameter]), np.zeros(size, dtype=np.int8)
    values, index = parameter
    index = np.asarray(index)
    if index.ndim != 1 or index.dtype.kind not in "iu" or size not in (None, index.size):
        raise BadInput("index: must be a list of whole numbers, one per element; omit size")
    if index.size and not (index.min() >= 0 and index.max() < len(values)):
        raise BadInput("index: every number must be that of a parameter in the list, from 0 on")
    return _fractions(values), index


def _fractions(values: Sequence[Parameter]) -> Sequence[Fraction]:
    kinds = set(map(type, values))
    if not kinds <= {Fraction, int}:
        raise BadInput("a noise parameter must be a fraction, not a float: write Fraction(1, 10)")
    return [Fraction(value) for value in values] if int in kinds else values  # type: ignore[return-value]


def use_tables(kind: type[NoiseLaw], values: Sequence[Fraction]) -> bool:
    """Return whether the tables of these parameters are few and small enough to be worth it."""
    if len(values) > MOST_TABLES:
        return False
    return sum(table_size(kind, value) for value in values) <= MOST_EDGES


def table_size(kind: type[NoiseLaw], value: Fraction) -> int:
    """Return a bound on the edges of a table: about 20 sigma, or 107 scales of the Laplace law."""
    return 21 * (isqrt(int(value)) + 1) if kind is DiscreteGaussian else 108 * (int(value) + 1)


@compiled
def unfold(ranks: Integers) -> None:
    """Turn ranks into the values that stand there: 0, -1, 1, -2, 2, ..."""
    for i in range(ranks.size):
        ranks[i] = (ranks[i] >> 1) ^ -(ranks[i] & 1)
