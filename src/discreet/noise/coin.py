"""Coins of probability exp(-y): tossed exactly, and nearly always in machine words.

A coin is tossed by comparing an endless binary fraction, read from the tape in pieces
of sixteen bits, with exp(-y). It is below with probability exactly exp(-y), and one
piece tells unless it equals the first sixteen bits of exp(-y). Canonne, Kamath and
Steinke (2020) toss the same coin by their Algorithm 1, from more bits.

`toss` is the definition, for any fraction y. `toss_fixed` does the same in machine
words: it knows exp(-y) to within 2^-40, and where that does not tell what `toss` would
do, and how far it would read, it says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled
from discreet.noise.exponential import exp_minus
from discreet.noise.select import piece
from discreet.noise.share import PIECE_BITS
from discreet.noise.tape import Words

Integers = NDArray[np.int64]

UNIT = 62  # exp(-y) is computed in units of 2^-62
FINE = 44  # its argument y in units of 2^-44
COIN_ENDED, COIN_UNKNOWN = -1, -2  # in place of 0 or 1: the tape ended; `toss` must be asked

_HALF = (1 << 31) - 1
_ERROR = 1 << (UNIT - 40)  # the bound on the error of exp(-y), see `discreet.noise.recipe`
_COMPARED = 2 * PIECE_BITS
_SERIES = 12  # bits of y below 1 that the table takes care of


def toss(y: Fraction, pieces: Iterator[int]) -> bool:
    """Return whether the fraction written by the pieces lies below exp(-y).

    Goes on as long as its bits are the first ones of exp(-y).
    """
    bits, width = 0, 0
    while True:
        bits, width = bits << PIECE_BITS | next(pieces), width + PIECE_BITS
        first = first_bits(y, width)
        if bits != first:
            return bits < first


def first_bits(y: Fraction, width: int) -> int:
    """Return the whole part of exp(-y) 2^width; exp(-y) is irrational unless y = 0."""
    guard = 64
    while True:
        low, high = exp_minus(y, width + guard)
        if low >> guard == high >> guard:
            return low >> guard
        guard *= 2


@cache
def exponentials() -> Integers:
    """Return exp(-i), exp(-i / 64) and exp(-i / 4096) for i below 64, rounded down to 2^-62."""
    return np.array(
        [[exp_minus(Fraction(i, d), UNIT).low for i in range(64)] for d in (1, 64, 4096)],
        dtype=np.int64,
    )


@compiled
def multiply(a: int, b: int) -> int:
    """Return a b / 2^62 rounded down, for whole numbers from 0 to 2^62.

    By halves of 31 bits; the middle sum is at most 2 (2^31 - 1)^2 + 2^31 < 2^63.
    """
    a1, a0, b1, b0 = a >> 31, a & _HALF, b >> 31, b & _HALF
    return a1 * b1 + ((a1 * b0 + a0 * b1 + (a0 * b0 >> 31)) >> 31)


@compiled
def exp_fixed(y: int, table: Integers) -> int:
    """Return exp(-y) in 2^-62, for y in 2^-44; too small or too large by less than 2^-56.

    exp(-y) is the product of three entries of the table, by the first bits of y, and of
    1 - z + z^2/2 - z^3/6 + z^4/24 for the rest z < 2^-12, which lacks z^5/120 < 2^-66.
    All factors are at most 1, so that the errors of the nine roundings add up.
    """
    if y >> FINE >= 43:
        return 0  # less than 2^-62
    z = (y & ((1 << (FINE - _SERIES)) - 1)) << (UNIT - FINE)
    z2 = multiply(z, z)
    z3 = multiply(z2, z)
    rest = (1 << UNIT) - z + (z2 >> 1) - z3 // 6 + multiply(z3, z) // 24
    coarse = multiply(table[0, y >> FINE], table[1, (y >> (FINE - 6)) & 63])
    return multiply(multiply(coarse, table[2, (y >> (FINE - _SERIES)) & 63]), rest)


@compiled
def toss_fixed(words: Words, cursor: int, end: int, chance: int) -> tuple[int, int]:
    """Return what `toss` would, or -1 at the end of the tape, or -2 if unknown; and the new cursor.

    The chance is known to within 2^-40. With its bounds in 2^-32: where their first
    sixteen bits agree they are the first of the chance; where they do not and the
    tape's sixteen lie between them, it is not known whether `toss` would read on.
    """
    low = max(chance - _ERROR, 0) >> (UNIT - _COMPARED)
    high = (chance + _ERROR) >> (UNIT - _COMPARED)
    if cursor >= end:
        return COIN_ENDED, cursor
    bits = piece(words, cursor)
    if bits < low >> PIECE_BITS:
        return 1, cursor + 1
    if bits > high >> PIECE_BITS:
        return 0, cursor + 1
    if low >> PIECE_BITS != high >> PIECE_BITS:
        return COIN_UNKNOWN, cursor
    if cursor + 1 >= end:
        return COIN_ENDED, cursor
    bits = bits << PIECE_BITS | piece(words, cursor + 1)
    if bits < low:
        return 1, cursor + 2
    if bits > high:
        return 0, cursor + 2
    return COIN_UNKNOWN, cursor
