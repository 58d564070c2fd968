"""The pass of record swapping: who is visited when, and who takes whom.

Steps 3 to 6 of the method; what does not change from one draw to the next is prepared.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from discreet.mechanisms.numbering import Integers
from discreet.mechanisms.swapping.donors import (
    Flags,
    Found,
    Free,
    arrivals,
    line_up,
    pair_up,
    words_of,
)
from discreet.mechanisms.swapping.households import Households, Swap
from discreet.noise import Randomness, key_of


@dataclass(frozen=True)
class Prepared:
    """All that does not change from one draw to the next.

    `alike` has the smallest number of like records per level, `must` the level at which a
    household must be swapped, `profiles` a number per household and profile.
    """

    households: Households
    hierarchy: tuple[str, ...]
    alike: tuple[Integers, ...]
    must: Integers
    profiles: tuple[Integers, ...]
    rate: Fraction
    allowed: Integers | None


def pair(prepared: Prepared, rng: Randomness, replicate: int = 0) -> Swap:
    """Draw the pairs once; each replicate reads tapes of its own."""
    households, must = prepared.households, prepared.must
    last = len(prepared.hierarchy) - 1
    left = _left(prepared, _quotas(prepared, rng, replicate))
    passes: list[Found] = []
    for number, level in enumerate(prepared.hierarchy):
        words = words_of(households, rng, f"record-swap-{level}", replicate)
        order = np.argsort(arrivals(words, 1 / prepared.alike[number]), kind="stable")
        lists = line_up([(profile, order) for profile in prepared.profiles])
        area = households.level(level)
        # Who found nobody outside a large area may find somebody outside the smallest.
        due = must[order] <= last if number == last else must[order] == number
        passes.append(pair_up(order[due], lists, area, left, False))
        if number == last:
            passes.append(pair_up(order[~due], lists, area, left, True))
            if prepared.allowed is not None:  # pairs an area could not make go to others
                passes.append(pair_up(order[~due], lists, area, left, False))
    targets, partners, family, alone = (
        np.concatenate(parts) for parts in zip(*passes, strict=True)
    )
    partner = np.arange(households.size)
    partner[targets], partner[partners] = partners, targets
    alone = np.unique(alone)
    alone = alone[left.free[alone]]
    return Swap(partner, targets, alone, _notes(prepared, family, alone, left.free))


def _left(prepared: Prepared, quota: Integers) -> Free:
    """Return what there is before the first pass: everybody free, all pairs to be made."""
    households, allowed = prepared.households, prepared.allowed
    if allowed is None:
        allowed = np.full(len(households.places.codes), households.size)
    free = np.ones(households.size, dtype=np.bool_)
    area = households.level(households.places.within)
    return Free(free, area, allowed.copy(), households.level(prepared.hierarchy[-1]), quota)


def _quotas(prepared: Prepared, rng: Randomness, replicate: int) -> Integers:
    """Return how many pairs each of the smallest areas should make, by the number of the area.

    Where the rate is a cap the number of pairs is rounded down; elsewhere by a coin.
    """
    households = prepared.households
    codes, sizes = households.area_codes, np.diff(households.offsets)
    keys = key_of(codes, [str(replicate)] * len(codes))
    two = np.full(len(codes), 2)
    words = rng.words("record-swap-rounding", keys, np.zeros_like(two), two).tolist()
    home = households.level(prepared.hierarchy[-1])
    quota = np.zeros(int(home.max(initial=0)) + 1, dtype=np.int64)
    for a, size in enumerate(sizes.tolist()):
        first, coin, word = int(households.offsets[a]), words[2 * a], words[2 * a + 1]
        wanted = prepared.rate * size / 2
        up = prepared.allowed is None and coin < 2**63
        homes, counts = np.unique(home[first : first + size], return_counts=True)
        quota[homes] = spread(ceil(wanted) if up else int(wanted), counts, word)
    return quota


def spread(pairs: int, sizes: Integers, word: int) -> Integers:
    """Spread pairs over areas in proportion to their sizes, rounded up or down by one word.

    Systematic sampling: each area has pairs * size / all on average, and they add up.

    >>> spread(7, np.array([10, 20, 5]), 2**63).tolist()
    [2, 4, 1]
    """
    total = int(sizes.sum())
    reached = (np.cumsum(sizes) * pairs + (word * total >> 64)) // max(total, 1)
    return np.diff(reached, prepend=0)


def _notes(prepared: Prepared, family: Integers, alone: Integers, free: Flags) -> Counter[str]:
    """Return counts of what was done, for the internal report."""
    must, last = prepared.must, len(prepared.hierarchy) - 1
    notes = Counter[str]()
    for number, level in enumerate(prepared.hierarchy):
        notes[f"must_be_swapped_by_{level}"] = int((must == number).sum())
    notes["must_be_swapped_but_left"] = int(((must <= last) & free).sum())
    notes["must_be_swapped_but_without_partner"] = int((must[alone] <= last).sum())
    for number in range(len(prepared.profiles)):
        notes[f"pairs_by_profile_{number + 1}"] = int((family == number).sum())
    return notes
