"""Find the nearest free households of a stratum: a search of the tree, and a heap of the best.

Distances are whole numbers. Where two are equal the lower priority is nearer, and should
these be equal too, the slot that comes first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled
from discreet.mechanisms.swapping.geometry import AXIS, BELOW, FIRST, LEAF, LEAVE, ONLY, X, Y, Z
from discreet.mechanisms.swapping.numbering import Integers
from discreet.noise import Words

Flags = NDArray[np.bool_]
Nodes = NDArray[np.int32]

#: Segments waiting in a search: a tree is at most 64 levels deep, two segments each.
DEEPEST = 128

# Columns of a waiting segment: its nodes, its least squared distance, and the parts of it.
LOW, HIGH, BOUND, GAP = 0, 1, 2, 3


class Heap(NamedTuple):
    """The nearest slots found so far, the farthest of them on top."""

    distance: Integers
    priority: Words
    slot: Integers


@compiled
def search(
    nodes: Nodes,
    free: Flags,
    priority: Words,
    low: int,
    high: int,
    here: NDArray[np.int32],
    heap: Heap,
    waiting: Integers,
) -> int:
    """Fill the heap with the nearest free slots outside the area to leave; return how many.

    A segment is passed over if nobody in it is free or outside, or if it lies beyond the
    farthest slot of a full heap; at equal distance it is searched, as priorities decide.
    """
    most, size = heap.slot.size, 0
    segments = begin(low, high, waiting)
    while segments:
        segments -= 1
        low, high = waiting[segments, LOW], waiting[segments, HIGH]
        if size == most and waiting[segments, BOUND] > heap.distance[0]:
            continue
        middle = (low + high) // 2
        if low >= high or nodes[middle, BELOW] == 0 or nodes[middle, ONLY] == here[LEAVE]:
            continue
        if high - low > LEAF:
            segments = split(nodes, low, middle, high, here, waiting, segments)
            low, high = middle, middle + 1
        for p in range(low, high):
            if nodes[p, LEAVE] == here[LEAVE]:
                continue
            distance = squared(nodes, p, here)
            if size == most and distance > heap.distance[0]:
                continue
            for slot in range(nodes[p, FIRST], nodes[p + 1, FIRST]):
                if free[slot]:
                    size = keep_nearest(heap, size, distance, priority[slot], slot)
    return size


@compiled
def begin(low: int, high: int, waiting: Integers) -> int:
    """Put a whole stratum on the pile."""
    for column in range(BOUND, GAP + 3):
        waiting[0, column] = 0
    waiting[0, LOW], waiting[0, HIGH] = low, high
    return 1


@compiled
def split(
    nodes: Nodes,
    low: int,
    middle: int,
    high: int,
    here: NDArray[np.int32],
    waiting: Integers,
    segments: int,
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
def squared(nodes: Nodes, p: int, here: NDArray[np.int32]) -> int:
    """Return the squared distance of a node."""
    x = np.int64(nodes[p, X]) - here[X]
    y = np.int64(nodes[p, Y]) - here[Y]
    z = np.int64(nodes[p, Z]) - here[Z]
    return x * x + y * y + z * z  # type: ignore[no-any-return]


@compiled
def requested(
    nodes: Nodes,
    priority: Words,
    low: int,
    high: int,
    here: NDArray[np.int32],
    heap: Heap,
    size: int,
    waiting: Integers,
) -> bool:
    """Tell whether the published program would have found the candidates in the heap.

    It asks for one household more than there are to be candidates, swapped ones and those
    of the own area included, then for twice as many, and gives up when it would have to
    ask for more than the stratum holds.
    """
    most = heap.slot.size
    request = most + 1
    members = nodes[high, FIRST] - nodes[low, FIRST]
    if size < most or request > members:
        return False
    while 2 * request <= members:
        request *= 2
    found = 0
    segments = begin(low, high, waiting)
    while segments and found <= request:
        segments -= 1
        low, high = waiting[segments, LOW], waiting[segments, HIGH]
        if low >= high or waiting[segments, BOUND] > heap.distance[0]:
            continue
        if high - low > LEAF:
            middle = (low + high) // 2
            segments = split(nodes, low, middle, high, here, waiting, segments)
            low, high = middle, middle + 1
        for p in range(low, high):
            distance = squared(nodes, p, here)
            if distance < heap.distance[0]:
                found += nodes[p + 1, FIRST] - nodes[p, FIRST]
            elif distance == heap.distance[0]:
                for slot in range(nodes[p, FIRST], nodes[p + 1, FIRST]):
                    if not comes_before(
                        distance, heap.priority[0], heap.slot[0], distance, priority[slot], slot
                    ):
                        found += 1
    return found <= request


@compiled
def riskiest(
    nodes: Nodes,
    free: Flags,
    home: Integers,
    here: NDArray[np.int32],
    by_risk: Integers,
    cursor: Integers,
    g: int,
    end: int,
    heap: Heap,
) -> int:
    """Put the free slots most at risk outside the area to leave into the heap, in order."""
    while cursor[g] < end and not free[by_risk[cursor[g]]]:
        cursor[g] += 1  # swapped for good: nobody need look at it again
    size, at = 0, cursor[g]
    while at < end and size < heap.slot.size:
        slot = by_risk[at]
        if free[slot] and nodes[home[slot], LEAVE] != here[LEAVE]:
            heap.slot[size] = slot
            size += 1
        at += 1
    return size


@compiled
def comes_before(
    distance: int, priority: np.uint64, slot: int, d: int, p: np.uint64, h: int
) -> bool:
    """Tell whether the first slot is nearer; at equal distance the lower priority is."""
    if distance != d:
        return distance < d
    if priority != p:
        return bool(priority < p)
    return slot < h


@compiled
def keep_nearest(heap: Heap, size: int, distance: int, priority: np.uint64, slot: int) -> int:
    """Add a slot to the heap, in place of the farthest if it is full; return its size."""
    if size == heap.slot.size:
        if not comes_before(
            distance, priority, slot, heap.distance[0], heap.priority[0], heap.slot[0]
        ):
            return size
        size = drop_farthest(heap, size)
    child = size
    while child > 0:
        parent = (child - 1) // 2
        if not comes_before(
            heap.distance[parent],
            heap.priority[parent],
            heap.slot[parent],
            distance,
            priority,
            slot,
        ):
            break
        copy(heap, parent, child)
        child = parent
    heap.distance[child] = distance
    heap.priority[child] = priority
    heap.slot[child] = slot
    return size + 1


@compiled
def drop_farthest(heap: Heap, size: int) -> int:
    """Take the farthest slot off the heap; return its new size."""
    size -= 1
    distance, priority, slot = heap.distance[size], heap.priority[size], heap.slot[size]
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        other = child + 1
        if other < size and comes_before(
            heap.distance[child],
            heap.priority[child],
            heap.slot[child],
            heap.distance[other],
            heap.priority[other],
            heap.slot[other],
        ):
            child = other
        if not comes_before(
            distance,
            priority,
            slot,
            heap.distance[child],
            heap.priority[child],
            heap.slot[child],
        ):
            break
        copy(heap, child, hole)
        hole = child
    heap.distance[hole], heap.priority[hole] = distance, priority
    heap.slot[hole] = slot
    return size


@compiled
def copy(heap: Heap, one: int, other: int) -> None:
    """Copy one entry of the heap over another."""
    heap.distance[other] = heap.distance[one]
    heap.priority[other] = heap.priority[one]
    heap.slot[other] = heap.slot[one]
