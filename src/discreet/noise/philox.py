"""Philox4x32-10: random words as a function of a key and a counter.

Salmon, Moraes, Dror and Shaw (2011), "Parallel random numbers: as easy as
1, 2, 3". Nothing is carried from one word to the next, so any word of any tape
can be had without the ones before it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled

Lanes = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

# Each constant is used as 64 bits: Numba turns a sum of signed and unsigned into a float.
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLY_0 = np.uint64(0xD2511F53)
_MULTIPLY_2 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)


@compiled
def philox(c0: np.uint64, c1: np.uint64, c2: np.uint64, c3: np.uint64, key: np.uint64) -> Lanes:
    """Return the four 32-bit lanes of one counter; the low half of `key` is its first word."""
    k0 = key & _LOW
    k1 = key >> _HALF
    for _ in range(10):
        first = _MULTIPLY_0 * c0
        third = _MULTIPLY_2 * c2
        c0, c1, c2, c3 = (
            (third >> _HALF) ^ c1 ^ k0,
            third & _LOW,
            (first >> _HALF) ^ c3 ^ k1,
            first & _LOW,
        )
        k0 = (k0 + _WEYL_0) & _LOW
        k1 = (k1 + _WEYL_1) & _LOW
    return c0, c1, c2, c3


@compiled
def fill(
    out: NDArray[np.uint64],
    key: np.uint64,
    tapes: NDArray[np.uint64],
    start: NDArray[np.int64],
    length: NDArray[np.int64],
) -> None:
    """Write words `start` to `start + length` of each tape one after the other into `out`.

    The counter is (block, tape); a block holds two 64-bit words, so word w of a
    tape is half `w % 2` of block `w // 2`.
    """
    at = 0
    for i in range(tapes.size):
        low = tapes[i] & _LOW
        high = tapes[i] >> _HALF
        word = start[i]
        stop = start[i] + length[i]
        while word < stop:
            block = np.uint64(word >> 1)
            c0, c1, c2, c3 = philox(block & _LOW, block >> _HALF, low, high, key)
            if word & 1 == 0:
                out[at] = c0 | (c1 << _HALF)
                at += 1
                word += 1
            if word < stop:
                out[at] = c2 | (c3 << _HALF)
                at += 1
                word += 1
