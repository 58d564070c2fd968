"""Find the nearest free households of a stratum: a search of the tree, and a choice by rank.

Distances are whole numbers. Where two are equal the lower priority is nearer, and should
these be equal too, the slot that comes first.

A household of a given rank is found without ordering those before it: the search gathers
points in a pool, each with the number of free households it has, and now and then drops
all that lie beyond the rank asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within
from discreet.mechanisms.numbering import Integers
from discreet.mechanisms.swapping.geometry import (
    AXIS,
    BELOW,
    DEEPEST,
    FIRST,
    LEAF,
    LEAVE,
    ONLY,
    X,
    Y,
    Z,
)
from discreet.mechanisms.swapping.pool import COUNT, KEY, WHAT, cut

Flags = NDArray[np.bool_]
Nodes = NDArray[np.int32]
Node = NDArray[np.int32]

# Columns of a waiting segment: its nodes, its least squared distance, and the parts of it.
LOW, HIGH, BOUND, GAP = 0, 1, 2, 3

#: Farther than anything.
NO_BOUND = np.iinfo(np.int64).max


class Standing(NamedTuple):
    """Where a draw stands: who is still free, by slot, node, segment and area to leave.

    `left` are the free households of each node, `crowds` of each area to leave of a
    stratum; `nodes` has those of segments. With `by_risk`, the slots of each stratum, the
    most at risk first, `cursor` says before which of them nobody is free; else it is empty.
    """

    home: Integers
    nodes: Nodes
    left: NDArray[np.int32]
    crowds: Integers
    free: Flags
    priority: Integers
    by_risk: Integers
    cursor: Integers


class Turn(NamedTuple):
    """Somebody who looks for a partner: the nodes of the stratum, and the own one."""

    low: int
    high: int
    here: Node


class Scratch(NamedTuple):
    """Room to work in: segments waiting, points gathered, households at one distance."""

    waiting: Integers
    pool: Integers
    level: Integers


@compiled
def scratch(households: int) -> Scratch:
    """Return room for strata of at most so many households; what is not used costs nothing."""
    return Scratch(
        np.empty((2 * DEEPEST, GAP + 3), dtype=np.int64),
        np.empty((households, 3), dtype=np.int64),
        np.empty((households, 3), dtype=np.int64),
    )


@compiled
def possible(standing: Standing, turn: Turn) -> int:
    """Return how many free households of the stratum lie outside the area to leave."""
    middle = (turn.low + turn.high) // 2
    found: int = standing.nodes[middle, BELOW] - standing.crowds[turn.here[LEAVE]]
    return found


@compiled
def gather(standing: Standing, turn: Turn, need: int, room: Scratch) -> int:
    """Put the points with the `need` nearest free households outside the area to leave in the pool.

    Returns how many points are there; some may be farther. There must be so many
    households. A segment is passed over if nobody in it is free or outside, or if it lies
    beyond points with enough households; at equal distance it is searched, as priorities
    decide.
    """
    nodes, left, here = standing.nodes, standing.left, turn.here
    waiting, pool = room.waiting, room.pool
    size, held, bound = 0, 0, NO_BOUND
    enough = need + max(need // 2, 8)
    segments = begin(turn, waiting)
    while segments:
        segments -= 1
        low, high = waiting[segments, LOW], waiting[segments, HIGH]
        if low >= high or waiting[segments, BOUND] > bound:
            continue
        middle = (low + high) // 2
        if nodes[middle, BELOW] == 0 or nodes[middle, ONLY] == here[LEAVE]:
            continue
        if high - low > LEAF:
            segments = split(nodes, low, middle, high, here, waiting, segments)
            low, high = middle, middle + 1
        for p in range(low, high):
            if left[p] == 0 or nodes[p, LEAVE] == here[LEAVE]:
                continue
            distance = squared(nodes, p, here)
            if distance <= bound:
                pool[size, KEY], pool[size, WHAT], pool[size, COUNT] = distance, p, left[p]
                size += 1
                held += left[p]
        if held >= enough:
            size, farthest, held = cut(pool, size, need)
            bound = pool[farthest, KEY]
            for i in range(farthest, size):
                held += pool[i, COUNT]
            enough = held + max(held // 2, 8)
    return size


@compiled
def begin(turn: Turn, waiting: Integers) -> int:
    """Put the whole stratum on the pile."""
    for column in range(BOUND, GAP + 3):
        waiting[0, column] = 0
    waiting[0, LOW], waiting[0, HIGH] = turn.low, turn.high
    return 1


@compiled
def split(
    nodes: Nodes, low: int, middle: int, high: int, here: Node, waiting: Integers, segments: int
) -> int:
    """Put both halves of a segment on the pile, the nearer on top; return its new height.

    The far half is at least as far as the gap to the splitting point in its direction,
    beside the gaps in the two others (Arya and Mount 1993).
    """
    d = nodes[middle, AXIS]
    gap = np.int64(here[d]) - nodes[middle, d]
    far, near = segments, segments + 1
    for column in range(BOUND, GAP + 3):  # the segment itself was just taken from `far`
        waiting[near, column] = waiting[far, column]
    old = waiting[far, GAP + d]
    waiting[far, BOUND] += gap * gap - old * old
    waiting[far, GAP + d] = gap
    if gap < 0:
        waiting[far, LOW], waiting[far, HIGH] = middle + 1, high
        waiting[near, LOW], waiting[near, HIGH] = low, middle
    else:
        waiting[far, LOW], waiting[far, HIGH] = low, middle
        waiting[near, LOW], waiting[near, HIGH] = middle + 1, high
    return segments + 2


@compiled
def squared(nodes: Nodes, p: int, here: Node) -> int:
    """Return the squared distance of a node."""
    x = np.int64(nodes[p, X]) - here[X]
    y = np.int64(nodes[p, Y]) - here[Y]
    z = np.int64(nodes[p, Z]) - here[Z]
    return x * x + y * y + z * z  # type: ignore[no-any-return]


@compiled
def pick(standing: Standing, size: int, rank: int, room: Scratch) -> int:
    """Return the slot of a rank, the nearest being 1, among the first `size` points of the pool."""
    pool, level = room.pool, room.level
    end, first, before = cut(pool, size, rank)
    rank -= before
    alike = 0
    for i in range(first, end):
        p = pool[i, WHAT]
        for slot in range(standing.nodes[p, FIRST], standing.nodes[p + 1, FIRST]):
            if standing.free[slot]:
                level[alike, KEY] = standing.priority[slot]
                level[alike, WHAT], level[alike, COUNT] = slot, 1
                alike += 1
    if alike > 1:
        end, first, before = cut(level, alike, rank)
        rank -= before
        level = level[first:end]
        if end - first > 1:
            level[:, KEY] = level[:, WHAT]
            level = level[cut(level, end - first, rank)[1] :]
    return level[0, WHAT]  # type: ignore[no-any-return]


@compiled_within
def requested(standing: Standing, turn: Turn, most: int, last: int, room: Scratch) -> bool:
    """Tell whether the published program would have found the `most` nearest, slot `last` the end.

    It asks for one household more than there are to be candidates, swapped ones and those
    of the own area included, then for twice as many, and gives up when it would have to
    ask for more than the stratum holds.
    """
    nodes, here, waiting = standing.nodes, turn.here, room.waiting
    members = nodes[turn.high, FIRST] - nodes[turn.low, FIRST]
    request = most + 1
    while 2 * request <= members:
        request *= 2
    farthest = squared(nodes, standing.home[last], here)
    found = 0
    segments = begin(turn, waiting)
    while segments and found <= request:
        segments -= 1
        low, high = waiting[segments, LOW], waiting[segments, HIGH]
        if low >= high or waiting[segments, BOUND] > farthest:
            continue
        if high - low > LEAF:
            middle = (low + high) // 2
            segments = split(nodes, low, middle, high, here, waiting, segments)
            low, high = middle, middle + 1
        for p in range(low, high):
            distance = squared(nodes, p, here)
            if distance < farthest:
                found += nodes[p + 1, FIRST] - nodes[p, FIRST]
            elif distance == farthest:
                found += up_to(standing, p, last)
    return bool(found <= request <= members)


@compiled_within
def up_to(standing: Standing, p: int, last: int) -> int:
    """Return how many households of a node, free or not, rank no farther than slot `last`."""
    found, limit = 0, standing.priority[last]
    for slot in range(standing.nodes[p, FIRST], standing.nodes[p + 1, FIRST]):
        priority = standing.priority[slot]
        if priority < limit or (priority == limit and slot <= last):
            found += 1
    return found


@compiled
def riskiest(standing: Standing, turn: Turn, stratum: int, rank: int) -> int:
    """Return the slot of a rank, the most at risk being 1, outside the area to leave."""
    nodes, free, cursor = standing.nodes, standing.free, standing.cursor
    while not free[standing.by_risk[cursor[stratum]]]:
        cursor[stratum] += 1  # swapped for good: nobody need look at it again
    at = cursor[stratum] - 1
    while rank:
        at += 1
        slot = standing.by_risk[at]
        if free[slot] and nodes[standing.home[slot], LEAVE] != turn.here[LEAVE]:
            rank -= 1
    return standing.by_risk[at]  # type: ignore[no-any-return]
