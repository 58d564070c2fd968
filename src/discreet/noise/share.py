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

from discreet.compiled import compiled
from discreet.noise.select import PIECES_PER_WORD, piece
from discreet.noise.tape import Randomness, Words

Integers = NDArray[np.int64]
Index = NDArray[np.integer]  # which law each element has; made a full word batch by batch

PIECE_BITS = 16


class Shares(NamedTuple):
    """The tapes of an array, named by purpose and key, and which of its elements are drawn.

    They are those from `start` on, or those whose numbers `at` lists, which must increase.
    """

    rng: Randomness
    purpose: str
    key: int
    start: int = 0
    at: Integers | None = None

    def skip(self, elements: int) -> Shares:
        """Return the shares of the array that begins so many elements later."""
        if self.at is not None:
            return self._replace(at=self.at[elements:])
        return self._replace(start=self.start + elements)

    def pieces(self, count: int) -> tuple[Words, int]:
        """Return words that hold one piece of 16 bits for each element, and the first's place."""
        if self.at is not None:
            return self._gathered(self.at[:count]), 0
        word, first = divmod(self.start, PIECES_PER_WORD)
        length = -(-(first + count) // PIECES_PER_WORD)
        return self._words(self.purpose, np.array([word]), np.array([length])), first

    def run(self, tape: str, count: int, width: int) -> Words:
        """Return `width` words for each of the first `count` elements."""
        if self.at is not None:
            return self.some(tape, np.arange(count), width)
        begin, length = np.array([self.start * width]), np.array([count * width])
        return self._words(f"{self.purpose}/{tape}", begin, length)

    def some(self, tape: str, elements: Integers, width: int) -> Words:
        """Return `width` words for each of some elements, one after the other."""
        numbers = elements + self.start if self.at is None else self.at[elements]
        lengths = np.full(elements.size, width)
        return self._words(f"{self.purpose}/{tape}", numbers * width, lengths)

    def _gathered(self, at: Integers) -> Words:
        """Return the pieces of the elements at these places, moved together.

        A word is asked for once, however many of its pieces are wanted.
        """
        begin, length = word_runs(at)
        return gather(self._words(self.purpose, begin, length), at)

    def _words(self, purpose: str, begin: Integers, length: Integers) -> Words:
        keys = np.full(begin.size, self.key, dtype=np.uint64)
        return self.rng.words(purpose, keys, begin, length)


def pieces_of(words: Words) -> Iterator[int]:
    """Yield the 16-bit pieces of words, low bits of a word first."""
    for word in words.tolist():
        for at in range(PIECES_PER_WORD):
            yield word >> PIECE_BITS * at & (1 << PIECE_BITS) - 1


@compiled
def word_runs(at: Integers) -> tuple[Integers, Integers]:
    """Return begin and length of the runs of words that hold the pieces at these places."""
    begin = np.empty(at.size, dtype=np.int64)
    length = np.empty(at.size, dtype=np.int64)
    runs, last = 0, -2
    for i in range(at.size):
        word = at[i] // PIECES_PER_WORD
        if word == last + 1:
            length[runs - 1] += 1
        elif word != last:
            begin[runs], length[runs] = word, 1
            runs += 1
        last = word
    return begin[:runs].copy(), length[:runs].copy()


@compiled
def gather(words: Words, at: Integers) -> Words:
    """Return the pieces at these places one after the other; `words` are those of their runs."""
    out = np.zeros(-(-at.size // PIECES_PER_WORD), dtype=np.uint64)
    read = -1
    last = -1
    for i in range(at.size):
        word = at[i] // PIECES_PER_WORD
        read += word != last
        last = word
        bits = np.uint64(piece(words, read * PIECES_PER_WORD + at[i] % PIECES_PER_WORD))
        out[i // PIECES_PER_WORD] |= bits << np.uint64(PIECE_BITS * (i % PIECES_PER_WORD))
    return out
