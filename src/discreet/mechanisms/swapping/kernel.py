"""Draw the permutation of the Permutation Swapping Algorithm, stratum by stratum.

Algorithm 1 of Bailie, Gong and Meng, as written: select each record of a stratum
independently with the swap rate; if exactly one is selected, select anew;
otherwise give the selected a uniformly random derangement. Strata of fewer than
two records are left alone.

Each stratum reads its own tape (see `discreet.noise.tape`). Strata are worked in
batches, and a stratum whose tape runs out waits, with all it has drawn, until
its tape has been extended. Hence the result is a function of the tapes alone:
not of batches, of how much tape is fetched at a time, or of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled
from discreet.errors import BadInput
from discreet.noise import (
    LARGEST_BOUND,
    PIECES_PER_WORD,
    Chance,
    Randomness,
    Words,
    select_each,
    shuffle,
)

Integers = NDArray[np.int64]
Places = NDArray[np.int32]

PIECE_BITS = 16
SELECTING, DERANGING, DONE = 0, 1, 2
# Columns of the state of a batch: where each stratum stands, and its window of the tape.
STAGE, PLACE, COUNT, CURSOR, END, RECEIVED = 0, 1, 2, 3, 4, 5


def permute_strata(
    offsets: Integers,
    stratum_keys: Words,
    rate: Fraction,
    rng: Randomness,
    purpose: str = "permutation-swap",
    *,
    threads: int = 1,
    batch_records: int = 1 << 18,
    tape_words: int = 1 << 16,
) -> Integers:
    """Return, for each record, the record whose swapping value it receives.

    Parameters
    ----------
    offsets
        Records lie stratum by stratum; stratum g holds `offsets[g]` to `offsets[g + 1]`.
    stratum_keys
        One key per stratum, all different: strata with one key would share a tape
        and no longer be swapped independently.
    batch_records, tape_words
        Bounds on memory: records worked at a time (a larger stratum is worked
        alone) and words of one tape fetched at a time. Small enough for what is drawn to
        be used while it is still in the cache: a fixed number of growing strata then costs
        in proportion to its records.
    """
    _check(offsets, stratum_keys, rate)
    sizes = np.diff(offsets)
    live = np.flatnonzero(sizes >= 2)
    _check_keys(stratum_keys[live])
    source = np.arange(int(offsets[-1]), dtype=np.int64)
    lead, rest, denominator = Chance.of(rate, PIECE_BITS)
    plan = _Plan((lead, rest, denominator), rng, purpose, tape_words)

    def work(part: Integers) -> None:
        _work_batch(plan, offsets[part], sizes[part], stratum_keys[part], source)

    batches = (live[start:stop] for start, stop in _batches(sizes[live], batch_records))
    if threads == 1:
        for part in batches:
            work(part)
    else:
        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(work, batches):  # iterating raises what a thread raised
                pass
    return source


@dataclass(frozen=True)
class _Plan:
    """What all batches have in common."""

    chance: tuple[int, int, int]
    rng: Randomness
    purpose: str
    tape_words: int


def _work_batch(
    plan: _Plan, first: Integers, sizes: Integers, keys: Words, source: Integers
) -> None:
    """Permute the strata of one batch, extending tapes until every stratum is done."""
    rooms = np.concatenate(([0], np.cumsum(sizes)))[:-1]
    chosen = np.empty(int(sizes.sum()), dtype=np.int32)
    order = np.empty_like(chosen)
    state = np.zeros((sizes.size, 6), dtype=np.int64)
    waiting = np.arange(sizes.size)
    words = np.empty(0, dtype=np.uint64)
    while waiting.size:
        ask = _words_to_ask(state, waiting, sizes, plan.chance[0], plan.tape_words)
        begun = state[waiting, RECEIVED]
        fresh = plan.rng.words(plan.purpose, keys[waiting], begun, ask)
        words = _extend(words, fresh, ask, state, waiting)
        _advance(words, state, waiting, first, sizes, rooms, chosen, order, source, plan.chance)
        waiting = waiting[state[waiting, STAGE] != DONE]


@compiled
def _words_to_ask(
    state: Integers, waiting: Integers, sizes: Integers, lead: int, most: int
) -> Integers:
    """Return how many words each waiting stratum will probably need, at most `most`.

    A guess that saves words and rounds; the result of the draw does not depend on it.
    """
    ask = np.empty(waiting.size, dtype=np.int64)
    for i in range(waiting.size):
        g = waiting[i]
        if state[g, STAGE] == SELECTING:
            selected = (sizes[g] * (lead + 1)) >> PIECE_BITS
            pieces = sizes[g] - state[g, PLACE]
            shuffled = 7 * selected // 4  # e - 1 shuffles on average
        else:
            selected = state[g, COUNT]
            pieces = 0
            shuffled = 5 * state[g, PLACE] // 4
        pieces += shuffled * (2 if selected > 1 << PIECE_BITS else 1) + 6
        ask[i] = min(most, pieces // PIECES_PER_WORD + 1)
    return ask


@compiled
def _extend(words: Words, fresh: Words, ask: Integers, state: Integers, waiting: Integers) -> Words:
    """Return the unread words of each waiting stratum followed by its fresh ones.

    Moves the windows in `state` to the new tape. Unread words are kept: see the
    tape's docstring for what throwing them away would do.
    """
    unread = 0
    for g in waiting:
        unread += state[g, END] // PIECES_PER_WORD - state[g, CURSOR] // PIECES_PER_WORD
    joined = np.empty(unread + fresh.size, dtype=np.uint64)
    at = 0
    taken = 0
    for i in range(waiting.size):
        g = waiting[i]
        begin = at
        for old in range(state[g, CURSOR] // PIECES_PER_WORD, state[g, END] // PIECES_PER_WORD):
            joined[at] = words[old]
            at += 1
        joined[at : at + ask[i]] = fresh[taken : taken + ask[i]]
        at += ask[i]
        taken += ask[i]
        state[g, CURSOR] = begin * PIECES_PER_WORD + state[g, CURSOR] % PIECES_PER_WORD
        state[g, END] = at * PIECES_PER_WORD
        state[g, RECEIVED] += ask[i]
    return joined


@compiled
def _advance(
    words: Words,
    state: Integers,
    waiting: Integers,
    first: Integers,
    sizes: Integers,
    rooms: Integers,
    chosen: Places,
    order: Places,
    source: Integers,
    chance: tuple[int, int, int],
) -> None:
    """Carry each waiting stratum on until it is done or its tape ends."""
    for g in waiting:
        room = rooms[g]
        mine = chosen[room : room + sizes[g]]
        stage, place, count, cursor, end = (
            state[g, STAGE],
            state[g, PLACE],
            state[g, COUNT],
            state[g, CURSOR],
            state[g, END],
        )
        while stage == SELECTING:
            cursor, place, count = select_each(
                words, cursor, end, place, sizes[g], count, mine, chance, PIECE_BITS
            )
            if place < sizes[g]:
                break
            if count == 1:  # no derangement of one record exists: select anew
                place, count = 0, 0
            elif count == 0:
                stage = DONE
            else:
                stage, place = DERANGING, count - 1
                order[room : room + count] = np.arange(count)
        if stage == DERANGING:
            among = order[room : room + count]
            cursor, place = shuffle(words, cursor, end, place, among, True)
            if place == 0:
                for i in range(count):
                    source[first[g] + mine[i]] = first[g] + mine[among[i]]
                stage = DONE
        state[g, STAGE], state[g, PLACE], state[g, COUNT] = stage, place, count
        state[g, CURSOR] = cursor


def _batches(sizes: Integers, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of strata that hold at most `most` records, or a single stratum."""
    ends = np.cumsum(sizes)
    start = 0
    while start < sizes.size:
        done = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield start, stop
        start = stop


def _check(offsets: Integers, stratum_keys: Words, rate: Fraction) -> None:
    if not 0 < rate < 1:
        raise BadInput(
            f"swap rate {rate}: must lie strictly between 0 and 1, "
            "as no budget is finite at either end. Give a fraction such as 1/20."
        )
    sizes = np.diff(offsets)
    if offsets.size == 0 or offsets[0] != 0 or (sizes < 0).any():
        raise BadInput("stratum offsets: must start at 0 and never fall. Sort records by stratum.")
    if stratum_keys.size != sizes.size:
        raise BadInput("stratum keys: need exactly one per stratum. Make them with key_of.")
    if sizes.size and sizes.max() >= LARGEST_BOUND:
        raise BadInput("a stratum has 2^31 records or more. Match on one more variable.")


def _check_keys(keys: Words) -> None:
    ranked = np.sort(keys)  # np.unique would do, at six times the cost
    if (ranked[1:] == ranked[:-1]).any():
        raise BadInput(
            "stratum keys: two strata share a key and would be swapped alike. "
            "Make keys with key_of from all matching variables."
        )
