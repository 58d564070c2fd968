"""Fixed shares of a tape: how the elements of an array get random bits without a key each.

The elements of an array are numbered. Element i owns the same place of every tape of
the array, wherever the array is cut: what it reads depends on its number alone, and no
two elements read the same bits. A share that is used up goes on at the same place of
the array's next tape, so it has no end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.noise.select import PIECES_PER_WORD
from discreet.noise.tape import Randomness, Words

Integers = NDArray[np.int64]
Index = NDArray[np.integer]  # which law each element has; made a full word batch by batch

PIECE_BITS = 16


class Shares(NamedTuple):
    """The tapes of an array, named by purpose and key, and the number of its first element."""

    rng: Randomness
    purpose: str
    key: int
    start: int = 0

    def skip(self, elements: int) -> Shares:
        """Return the shares of the array that begins so many elements later."""
        return self._replace(start=self.start + elements)

    def pieces(self, count: int) -> tuple[Words, int]:
        """Return words that hold one piece of 16 bits for each element, and the first's place."""
        word, first = divmod(self.start, PIECES_PER_WORD)
        length = -(-(first + count) // PIECES_PER_WORD)
        return self._words(self.purpose, np.array([word]), np.array([length])), first

    def run(self, tape: str, count: int, width: int) -> Words:
        """Return `width` words for each of the first `count` elements."""
        begin, length = np.array([self.start * width]), np.array([count * width])
        return self._words(f"{self.purpose}/{tape}", begin, length)

    def some(self, tape: str, elements: Integers, width: int) -> Words:
        """Return `width` words for each of some elements, one after the other."""
        begin = (elements + self.start) * width
        return self._words(f"{self.purpose}/{tape}", begin, np.full(elements.size, width))

    def _words(self, purpose: str, begin: Integers, length: Integers) -> Words:
        keys = np.full(begin.size, self.key, dtype=np.uint64)
        return self.rng.words(purpose, keys, begin, length)


def pieces_of(words: Words) -> Iterator[int]:
    """Yield the 16-bit pieces of words, low bits of a word first."""
    for word in words.tolist():
        for at in range(PIECES_PER_WORD):
            yield word >> PIECE_BITS * at & (1 << PIECE_BITS) - 1
