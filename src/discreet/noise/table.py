"""Draw from a law by looking up random bits in a table: for few different laws.

A draw is the rank whose step of the ladder (`law.Ladder`) an endless binary fraction
falls on. Sixteen bits decide it unless a step's edge lies within them, once in some
hundred draws or less often; then more bits are read, and edges are computed more
exactly once the bits come within the error of an edge. So the law is met exactly,
tails included, however far.

Element i reads its bits at fixed places (`discreet.noise.share`):

    bits 1 to 16                piece i of the tape of `purpose`
    the 64 bits after these     word i of the tape of `purpose/1`
    the 64 bits after those     word i of the tape of `purpose/2`, and so on

Hence a draw is a function of (randomness, purpose, key, i, law): not of batches, of
order, or of the other elements.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within
from discreet.noise.law import Ladder, Law
from discreet.noise.select import piece
from discreet.noise.share import PIECE_BITS, Index, Shares
from discreet.noise.tape import Words

Integers = NDArray[np.int64]
Guides = NDArray[np.int32] | NDArray[np.int16]

UNIT_BITS = 62  # edges are kept in units of 2^-62, so that sums of two stay within a signed word
WORD_BITS = 64
GUARD = 8
UNDECIDED = -1

_LEAD_SHIFT = UNIT_BITS - PIECE_BITS
_MORE_SHIFT = np.uint64(WORD_BITS - _LEAD_SHIFT)
_BATCH = 1 << 17
_FIRST, _END, _SLACK = 0, 1, 2  # columns of `Tables.where`


class Edges(NamedTuple):
    """A law's ladder in machine words: P(rank <= r) is within `slack` above `low[r]`, in 2^-62."""

    low: Integers
    slack: int


class Tables(NamedTuple):
    """The edges of several laws end to end, where each law's begin and end, and their guides.

    `guide[law, c]` belongs to the fractions that begin with the bits of c: their rank
    if it is the same for all of them, otherwise -1 - r, where no rank below r is possible.
    """

    guide: Guides
    low: Integers
    where: Integers


class Prepared(NamedTuple):
    """Laws and what is needed to draw from them."""

    laws: Sequence[Law]
    tables: Tables


def draw_ranks(shares: Shares, prepared: Prepared, index: Index) -> Integers:
    """Return one rank per element: that of element i drawn from law `index[i]`."""
    ranks = np.empty(index.size, dtype=np.int64)
    pending = np.empty(min(_BATCH, index.size), dtype=np.int64)
    for begin in range(0, index.size, _BATCH):
        end = min(begin + _BATCH, index.size)
        which = index[begin:end].astype(np.int64, copy=False)
        out = ranks[begin:end]
        mine = shares.skip(begin)
        words, first = mine.pieces(which.size)
        left = look_up(words, first, prepared.tables, which, out, pending)
        if left:
            _settle(mine, prepared, which, out, pending[:left])
    return ranks


def _settle(
    shares: Shares, prepared: Prepared, which: Integers, out: Integers, elements: Integers
) -> None:
    """Draw the elements that sixteen bits left open; `out` holds those bits."""
    laws, tables = prepared
    leads, more = out[elements], shares.some("1", elements, 1)
    for j in look_up_more(more, leads, tables, which, out, elements):
        element = int(elements[j])
        bits = int(leads[j]) << WORD_BITS | int(more[j])
        out[element] = _rank_of(laws[which[element]], shares, element, bits)


def _rank_of(law: Law, shares: Shares, element: int, bits: int) -> int:
    """Return the rank of the fraction that begins with these 80 bits, reading on as needed."""
    depth, width = 1, PIECE_BITS + WORD_BITS
    while (rank := decide(law.ladder(width + GUARD), bits)) == UNDECIDED:
        depth, width = depth + 1, width + WORD_BITS
        word = shares.some(str(depth), np.array([element]), 1)
        bits = bits << WORD_BITS | int(word[0])
    return rank


def decide(ladder: Ladder, bits: int) -> int:
    """Return the rank of all fractions that begin with these bits, or -1 if undecided.

    The ladder is finer than the bits by GUARD.
    """
    begin, end = bits << GUARD, (bits + 1) << GUARD
    rank = bisect_left(ladder.low, end)
    if rank == len(ladder.low) or (rank > 0 and begin < ladder.low[rank - 1] + ladder.slack):
        return UNDECIDED
    return rank


def prepare(laws: Sequence[Law]) -> Prepared:
    """Return laws with their tables, whose guides fit the processor's cache together.

    A law of many ranks needs wider entries, and more of them or its search is long.
    """
    edges = [edges_of(law) for law in laws]
    sizes = np.array([each.low.size for each in edges], dtype=np.int64)
    ends = np.cumsum(sizes)
    slack = np.array([each.slack for each in edges], dtype=np.int64)
    bits = 13 if len(laws) <= 64 else 10
    long = bool(sizes.max() > 1 << 14)
    if long:
        bits = min(PIECE_BITS, max(bits, 21 - len(laws).bit_length()))
    low = np.concatenate([each.low for each in edges])
    where = np.stack([ends - sizes, ends, slack], axis=1)
    guide = build_guide(low, where, bits)
    return Prepared(laws, Tables(guide if long else guide.astype(np.int16), low, where))


def edges_of(law: Law) -> Edges:
    """Return the edges of a law; they are kept until they fill the room set aside."""
    with _keeping:
        edges = _kept.get(law)
    if edges is None:
        # Not under the lock: two threads may compute the same edges, but none has to wait.
        ladder = law.ladder(UNIT_BITS)
        edges = Edges(np.array(ladder.low, dtype=np.int64), ladder.slack)
        with _keeping:
            if sum(kept.low.size for kept in _kept.values()) > _ROOM:
                _kept.clear()
            _kept[law] = edges
    return edges


_kept: dict[Law, Edges] = {}
_keeping = Lock()
_ROOM = 1 << 23  # edges, of eight bytes each


@compiled
def find(low: Integers, where: Integers, rank: int, begin: int, width: int) -> int:
    """Return the rank of the fractions from `begin` to `begin + width` (units), or -1 if undecided.

    `where` says which edges are the law's. Searches upwards from `rank`, which must
    not lie above the answer.
    """
    first, end, slack = where[_FIRST], where[_END], where[_SLACK]
    at = first + rank
    while at < end and low[at] - width < begin:
        at += 1
    if at == end or (at > first and begin < low[at - 1] + slack):
        return UNDECIDED
    return int(at - first)


@compiled
def build_guide(low: Integers, where: Integers, bits: int) -> Guides:
    """Return for each law the guide on the first `bits` bits of a fraction."""
    guide = np.empty((len(where), 1 << bits), dtype=np.int32)
    width = 1 << (UNIT_BITS - bits)
    for law in range(len(where)):
        at = where[law, _FIRST]
        for cell in range(1 << bits):
            begin = cell * width
            while at < where[law, _END] and low[at] <= begin:
                at += 1
            least = at - where[law, _FIRST]
            rank = find(low, where[law], least, begin, width)
            guide[law, cell] = rank if rank != UNDECIDED else -1 - least
    return guide


@compiled_within
def guide_shift(guide: Guides) -> int:
    """Return by how much sixteen bits are shifted to find their cell of the guide."""
    shift = PIECE_BITS
    while guide.shape[1] >> (PIECE_BITS - shift) > 1:
        shift -= 1
    return shift


@compiled
def look_up(
    words: Words, first: int, tables: Tables, which: Integers, out: Integers, pending: Integers
) -> int:
    """Write the rank of each element whose sixteen bits decide it; return how many do not.

    The places of those left open go to `pending`, and their bits to `out`.
    """
    guide, low, where = tables
    shift = guide_shift(guide)
    left = 0
    for i in range(which.size):
        lead = piece(words, first + i)
        rank = int(guide[which[i], lead >> shift])
        if rank < 0:
            begin = lead << _LEAD_SHIFT
            rank = find(low, where[which[i]], -1 - rank, begin, 1 << _LEAD_SHIFT)
            if rank == UNDECIDED:
                rank = lead
                pending[left] = i
                left += 1
        out[i] = rank
    return left


@compiled
def look_up_more(
    words: Words, leads: Integers, tables: Tables, which: Integers, out: Integers, places: Integers
) -> Integers:
    """Write the rank of each open place that 62 bits decide; return the numbers of the others."""
    guide, low, where = tables
    shift = guide_shift(guide)
    left = np.empty(places.size, dtype=np.int64)
    count = 0
    for j in range(places.size):
        law = which[places[j]]
        least = -1 - int(guide[law, leads[j] >> shift])  # open at 16 bits, so open here
        begin = (leads[j] << _LEAD_SHIFT) | np.int64(words[j] >> _MORE_SHIFT)
        rank = find(low, where[law], least, begin, 1)
        if rank == UNDECIDED:
            left[count] = j
            count += 1
        else:
            out[places[j]] = rank
    return left[:count]
