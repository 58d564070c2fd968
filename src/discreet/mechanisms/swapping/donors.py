"""Pairing by lists: every household takes the first that is free in the best list it has.

Possible partners stand in lists, one for each set of values that must agree, best first.
A household looks through its lists in turn and takes the first free member that lies
outside the area it must leave.

Two places are remembered per list: its first free member, and the first free one of
another area than that one's. Whoever looks takes one of the two, and neither ever moves
back, so that all searches together read a list at most twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within
from discreet.mechanisms.numbering import Integers, sort_keys
from discreet.mechanisms.swapping.households import Floats, Households
from discreet.noise import Randomness, Words, key_of

Flags = NDArray[np.bool_]


class Lists(NamedTuple):
    """Families of lists, all lists one after the other in `members`.

    `list_of[f, h]` is the list that household h looks through in family f. `first` and
    `other` are the places remembered, `end` is where a list ends.
    """

    list_of: NDArray[np.int32]
    members: Integers
    first: Integers
    other: Integers
    end: Integers


class Free(NamedTuple):
    """What a pass uses up: free households, pairs left per area, quotas per home.

    `area` and `home` number the areas of each household; a quota may become negative.
    """

    free: Flags
    area: Integers
    pairs: Integers
    home: Integers
    quota: Integers


class Found(NamedTuple):
    """Pairs of target and partner, the family each was found in, and who found nobody."""

    targets: Integers
    partners: Integers
    family: Integers
    alone: Integers


def line_up(families: Sequence[tuple[Integers, Integers]]) -> Lists:
    """Return the lists of some families, searched in this order.

    A family is the number of the list of each household, and its members, best first.
    """
    list_of = np.empty((len(families), families[0][0].size), dtype=np.int32)
    members, sizes = [], []
    lists = 0
    for f, (number, ranked) in enumerate(families):
        span = int(number.max()) + 1 if number.size else 0
        list_of[f] = number + lists
        listed = number[ranked]
        members.append(ranked[sort_keys(listed, span)])
        sizes.append(np.bincount(listed, minlength=span))
        lists += span
    end = np.cumsum(np.concatenate(sizes))
    first = np.concatenate([np.zeros(1, dtype=np.int64), end[:-1]])
    return Lists(list_of, np.concatenate(members), first, first.copy(), end)


@compiled
def pair_up(visited: Integers, lists: Lists, leave: Integers, left: Free, bound: bool) -> Found:
    """Give each visited household, one after the other, the first partner its lists have.

    Those already swapped are passed over, and so are those of an area with no pairs left.
    With `bound` a household is visited only while the quota of its home is not used up.
    """
    made = np.empty((3, visited.size), dtype=np.int64)
    alone = np.empty(visited.size, dtype=np.int64)
    pairs, lonely = 0, 0
    for t in visited:
        if not left.free[t] or left.pairs[left.area[t]] <= 0:
            continue
        if bound and left.quota[left.home[t]] <= 0:
            continue
        found = -1
        for f in range(lists.list_of.shape[0]):
            found = first_free(lists, lists.list_of[f, t], left.free, leave, leave[t])
            if found >= 0:
                made[0, pairs], made[1, pairs], made[2, pairs] = t, found, f
                break
        if found < 0:
            alone[lonely] = t
            lonely += 1
            continue
        pairs += 1
        left.free[t] = left.free[found] = False
        left.pairs[left.area[t]] -= 1
        left.quota[left.home[t]] -= 1
    targets, partners, family = made[0, :pairs], made[1, :pairs], made[2, :pairs]
    return Found(targets.copy(), partners.copy(), family.copy(), alone[:lonely].copy())


@compiled_within
def first_free(lists: Lists, number: int, free: Flags, leave: Integers, own: int) -> int:
    """Return the first free member of a list that is not in the area `own`, or -1."""
    members, end = lists.members, lists.end[number]
    at = lists.first[number]
    while at < end and not free[members[at]]:
        at += 1
    lists.first[number] = at
    if at == end:
        return -1
    if leave[members[at]] != own:
        return members[at]  # type: ignore[no-any-return]
    # Whoever is free between the two places lies in the area of the first, so that what was
    # found for an earlier first of that area still holds.
    other = max(lists.other[number], at + 1)
    while other < end and (not free[members[other]] or leave[members[other]] == own):
        other += 1
    lists.other[number] = other
    return members[other] if other < end else -1


def words_of(households: Households, rng: Randomness, purpose: str, replicate: int) -> Words:
    """Return one word per household, from one tape per area in the order of `unit_id`."""
    sizes = np.diff(households.offsets)
    keys = key_of(households.area_codes, [str(replicate)] * len(households.area_codes))
    return rng.words(purpose, keys, np.zeros_like(sizes), sizes)


def arrivals(words: Words, weight: Floats) -> Floats:
    """Return exponential times at which households arrive, with rate `weight`.

    Taken in the order of arrival they are a sample without replacement, each next one in
    proportion to its weight among those left (Efraimidis and Spirakis 2006). In double
    precision: chances are right to about 15 digits. Who has no weight never arrives.
    """
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    times = np.full(words.size, np.inf)
    times[weight > 0] = -np.log(uniform[weight > 0]) / weight[weight > 0]
    return times
