"""Where random bits come from: one endless tape of 64-bit words per item.

An item (a stratum, a cell, a record) is named by a purpose and a 64-bit key.
What is drawn for it is a function of its own tape and of nothing else, so it
does not depend on the order of items, on batches or on the number of threads.

Tapes are extended, never replaced. A consumer that has used up its words keeps
what it made of them and asks for the words that follow. To start the item again
on a fresh tape would bias the law: how many words a rejection method uses
depends on what it draws (a stratum whose selection had to be repeated, a
derangement accepted late), so "again whenever the words ran out" means "the
result, given that it was cheap", which is another distribution. For the same
reason no bits may be used twice: the operating system cannot repeat them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadInput
from discreet.noise.philox import fill

Words = NDArray[np.uint64]
Mode = Literal["release", "trial"]


class Randomness(Protocol):
    """A source of tapes; `mode` says whether what is drawn from it may be published."""

    @property
    def mode(self) -> Mode:
        """Tell what the draws may be used for."""

    def words(
        self, purpose: str, keys: Words, start: NDArray[np.int64], length: NDArray[np.int64]
    ) -> Words:
        """Return words `start` to `start + length` of the tape of each key, concatenated.

        Make use of each bit of a tape once, going forward; places may be skipped. Only
        where an array is drawn in parts may a word be asked for twice: a part that starts
        off a multiple of four reads the word at its boundary again, for other 16-bit
        pieces of it than the part before used.
        """


class _System:
    """Words of the operating system's generator; it takes no seed and repeats nothing."""

    mode: Mode = "release"

    def words(
        self, purpose: str, keys: Words, start: NDArray[np.int64], length: NDArray[np.int64]
    ) -> Words:
        drawn = np.frombuffer(os.urandom(8 * int(length.sum())), dtype=np.uint64)
        return drawn.copy()  # writable as in a trial, or Numba compiles every kernel twice


class _Trial:
    """Words that are a function of (seed, purpose, key, position)."""

    mode: Mode = "trial"

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def words(
        self, purpose: str, keys: Words, start: NDArray[np.int64], length: NDArray[np.int64]
    ) -> Words:
        key = np.uint64(_digest(str(self._seed), purpose))
        out = np.empty(int(length.sum()), dtype=np.uint64)
        fill(out, key, keys, start, length)
        return out


def system() -> Randomness:
    """Return the randomness of releases: the operating system's, which cannot be seeded."""
    return _System()


def trial(seed: int) -> Randomness:
    """Return repeatable randomness for trials and designs; what it draws is never published.

    Whoever knows the seed can undo the protection.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise BadInput("seed: must be a whole number")
    return _Trial(seed)


def check_purpose(purpose: str) -> None:
    """Refuse a purpose that could be taken for one of another array's further tapes."""
    if "/" in purpose:
        raise BadInput(
            "purpose: must not contain a slash, which names the further tapes of an array "
            "(purpose/1, ...). Use a dash."
        )


def key_of(*columns: Sequence[str | None]) -> Words:
    """Return one 64-bit key per row of the given columns of text.

    Parts are hashed with their lengths, so ("ab", "c") and ("a", "bc") differ; a
    missing part differs from an empty one.

    >>> key_of(["01", "01"], ["a", None]).size
    2
    """
    if any(isinstance(column, str) for column in columns):
        raise BadInput("key_of takes columns: put a single text into a list")
    if len({len(column) for column in columns}) > 1:
        raise BadInput("key_of takes columns of one length: give every row all its parts")
    rows = zip(*columns, strict=True)
    return np.fromiter((_digest(*row) for row in rows), dtype=np.uint64)


def _digest(*parts: str | None) -> int:
    state = blake2b(digest_size=8)
    for part in parts:
        if part is None:
            state.update(b"-")
        else:
            text = part.encode()
            state.update(b"%d:" % len(text))
            state.update(text)
    return int.from_bytes(state.digest(), "little")
