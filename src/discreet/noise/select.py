"""Exact draws from random bits: selections, uniform integers, shuffles, derangements.

Integers only: no probability is ever rounded. Every step reads the tape in
pieces of 16 bits from `cursor` up to `end` (both counted in pieces) and stops
when the tape ends; the caller then extends the tape and calls again. A draw cut
short in the middle is read again from its first piece, and as its outcome is a
function of the tape alone, stopping does not change it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within
from discreet.errors import BadInput
from discreet.noise.tape import Words

PIECES_PER_WORD = 4
LARGEST_BOUND = 2**31  # a 32-bit draw times the bound must fit 63 bits

_PIECE = np.uint64(0xFFFF)
_OUT_OF_TAPE = -1


class Chance(NamedTuple):
    """A probability as its first binary digits and what remains of it.

    p = (lead + rest / denominator) / 2^width, with 0 <= rest < denominator.
    """

    lead: int
    rest: int
    denominator: int

    @classmethod
    def of(cls, p: Fraction, width: int = 16) -> Chance:
        """Return `p` split after its first `width` binary digits."""
        if not 0 < p < 1:
            raise BadInput("a chance must lie strictly between 0 and 1: give a fraction like 1/20")
        if p.denominator >= 2**62:
            raise BadInput(
                "a chance must have a denominator below 2^62: write it as a fraction like 1/20"
            )
        lead, rest = divmod(p.numerator << width, p.denominator)
        return cls(lead, rest, p.denominator)


@compiled
def piece(words: Words, at: int) -> int:
    """Return the 16 bits of the tape at position `at`, low bits of a word first."""
    return np.int64((words[at >> 2] >> np.uint64((at & 3) << 4)) & _PIECE)  # type: ignore[return-value]


@compiled_within
def chance_digit(rest: int, denominator: int, width: int) -> tuple[int, int]:
    """Return the next `width` binary digits of rest / denominator, and the new rest."""
    digit = 0
    for _ in range(width):
        rest *= 2
        digit *= 2
        if rest >= denominator:
            rest -= denominator
            digit += 1
    return digit, rest


@compiled_within
def break_tie(
    words: Words, cursor: int, end: int, rest: int, denominator: int, width: int
) -> tuple[int, int]:
    """Return whether the bits from `cursor` on lie below rest / denominator, and where they end.

    The bits are an endless binary fraction, uniform on [0, 1); it is below p with
    probability exactly p. Equal digits decide nothing, so the next are compared;
    where the digits of p end, equal bits are at least p.
    """
    mask = (1 << width) - 1
    while rest > 0:
        if cursor >= end:
            return _OUT_OF_TAPE, cursor
        digit, rest = chance_digit(rest, denominator, width)
        bits = piece(words, cursor) & mask
        cursor += 1
        if bits != digit:
            return int(bits < digit), cursor
    return 0, cursor


@compiled
def select_each(
    words: Words,
    cursor: int,
    end: int,
    place: int,
    size: int,
    count: int,
    chosen: NDArray[np.int32],
    chance: tuple[int, int, int],
    width: int,
) -> tuple[int, int, int]:
    """Select records `place` to `size` independently; return the new cursor, place and count.

    Appends the places of the selected to `chosen`, of which `count` are filled.
    One piece decides a record unless it equals the chance's first digits (once in
    2^width); only then are more compared. `width` is 16; less makes ties common.
    """
    lead, rest, denominator = chance
    mask = (1 << width) - 1
    while place < size and cursor < end:
        bits = piece(words, cursor) & mask
        after = cursor + 1
        below = int(bits < lead)
        if bits == lead:
            below, after = break_tie(words, after, end, rest, denominator, width)
            if below == _OUT_OF_TAPE:
                break
        chosen[count] = place  # written over unless the record is selected
        count += below
        place += 1
        cursor = after
    return cursor, place, count


@compiled
def scale(draw: int, bound: int, bits: int) -> int:
    """Return an integer below `bound` from a uniform draw of `bits` bits, or -1 to draw again.

    Lemire (2019), "Fast random integer generation in an interval". Of the
    2^bits draws, 2^bits mod bound are refused, so that each result comes from
    equally many.
    """
    product = draw * bound
    low = product & ((1 << bits) - 1)
    if low < bound and low < (1 << bits) % bound:
        return -1
    return product >> bits


@compiled
def uniform_below(words: Words, cursor: int, end: int, bound: int) -> tuple[int, int]:
    """Return a uniform integer below `bound`, or -1 at the end of the tape, and the new cursor.

    Reads 16 bits where they suffice and 32 otherwise; `bound` is at most 2^31. A
    refused draw leaves nothing behind, so the next call goes on after it.
    """
    if bound <= 1 << 16:
        while cursor < end:
            value = scale(piece(words, cursor), bound, 16)
            cursor += 1
            if value >= 0:
                return value, cursor
    else:
        while cursor + 1 < end:
            draw = piece(words, cursor) | (piece(words, cursor + 1) << 16)
            value = scale(draw, bound, 32)
            cursor += 2
            if value >= 0:
                return value, cursor
    return _OUT_OF_TAPE, cursor


@compiled
def shuffle(
    words: Words, cursor: int, end: int, place: int, order: NDArray[np.int32], deranged: bool
) -> tuple[int, int]:
    """Shuffle `order` (Fisher-Yates, last place first); return the new cursor and place.

    `order` holds 0, 1, ... in any arrangement. Places above `place` are settled;
    start with `place = order.size - 1`, done when it comes back as 0.

    With `deranged` the result is uniform among arrangements without a fixed
    point, by rejection. A shuffle may be given up at its first fixed point: the
    settled places alone decide that it will be refused, the draws it did not make
    are independent of everything kept, and so the accepted law is the same while
    e - 1 instead of e shuffles are drawn on average. The next attempt starts from
    the arrangement left behind, since a shuffle is uniform from any start.
    """
    while place > 0:
        other, cursor = uniform_below(words, cursor, end, place + 1)
        if other == _OUT_OF_TAPE:
            break
        settled = order[other]
        order[other] = order[place]
        order[place] = settled
        if deranged and (settled == place or (place == 1 and order[0] == 0)):
            place = order.size - 1
        else:
            place -= 1
    return cursor, place
