"""Where blocks are, and a tree that finds the nearest ones.

Coordinates are whole numbers, so distances are exact, ties are ties, and no result
depends on how a processor rounds. Great-circle distance grows with the straight line
through the Earth, so points on the unit sphere, in steps of 2^-30 of the Earth's radius
(6 mm), rank neighbours as the great circle does. `degrees` takes latitude and longitude
as plane coordinates, in steps of 2^-22 degree (3 cm).

The tree is a k-d tree (Bentley 1975) without pointers: a segment of points has its median
in the middle, the points at or below it in the widest direction to the left and those at
or above to the right. Each stratum has a segment of its own.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import Census
from discreet.compiled import compiled, compiled_within
from discreet.errors import BadInput
from discreet.mechanisms.numbering import (
    Integers,
    numbered,
    packed,
    run_starts,
    sort_keys,
)
from discreet.mechanisms.swapping.households import (
    POINT,
    Floats,
    Households,
    Places,
    need_points,
    read_places,
)

Distance = Literal["great-circle", "degrees"]

EARTH_KM = 6371.0088
SPHERE_STEPS = 2**30
DEGREE_STEPS = 2**22


#: A tree of 2^31 points has fewer levels.
DEEPEST = 64

#: Segments of at most so many points are not split further: looking at all is faster.
LEAF = 8

# Columns of a node of the tree, 32 bytes in all, so that a look at a point costs one access.
X, Y, Z, AXIS, LEAVE, FIRST, BELOW, ONLY = range(8)


#: Stands where a segment lies in more than one area to leave.
SEVERAL = -1


class Tree(NamedTuple):
    """Points with households, stratum by stratum.

    Stratum g holds nodes `roots[g]` to `roots[g + 1]`. A node is a point: its coordinates,
    the direction it splits its segment in, its area to leave, its first slot, how many
    free households its segment has, and the area to leave if there is only one in it. One
    node more closes the list.
    A slot is a household in the order of the tree: `members` says which, `slots` the
    reverse, `home` at which node. `counts` are the households of each node, `crowds` those
    of each area to leave of a stratum; areas to leave are numbered stratum by stratum.
    """

    roots: Integers
    nodes: NDArray[np.int32]
    members: Integers
    slots: Integers
    home: Integers
    counts: NDArray[np.int32]
    crowds: Integers


def coordinates(places: Places, used: Integers, distance: Distance) -> Integers:
    """Return three whole-number coordinates per block; of blocks not in `used` they mean nothing.

    Chords on the unit sphere stay below 2^31 steps and differences of degrees below
    360 * 2^22, so squared distances fit 63 bits.
    """
    latitude, longitude = points_of(places, used)
    if distance == "degrees":
        plane = np.stack([latitude, longitude, np.zeros_like(latitude)], axis=1)
        steps: Integers = np.rint(plane * DEGREE_STEPS).astype(np.int64)
    else:
        steps = np.rint(on_sphere(latitude, longitude) * SPHERE_STEPS).astype(np.int64)
    return steps


def points_of(places: Places, used: Integers) -> tuple[Floats, Floats]:
    """Return latitude and longitude of every block after checking those in `used`."""
    if places.latitude is None or places.longitude is None:
        raise BadInput("geography was read without its points.")
    lives = np.zeros(places.latitude.size, dtype=bool)
    lives[used] = True
    problem = missing_points(places, np.flatnonzero(lives))
    if problem:
        raise BadInput(problem)
    return np.where(lives, places.latitude, 0.0), np.where(lives, places.longitude, 0.0)


def missing_points(places: Places, used: Integers) -> str:
    """Return what is wrong with the points of some blocks, or nothing."""
    for column, values in (("latitude", places.latitude), ("longitude", places.longitude)):
        if values is None or np.isnan(values[used]).any():
            return (
                f"geography.{column} is missing for blocks with households: partners are chosen "
                f"by distance. Fill it in."
            )
        if (np.abs(values[used]) > POINT[column]).any():
            return (
                f"geography.{column} of blocks with households lies outside -{POINT[column]:.0f} "
                f"to {POINT[column]:.0f} degrees. Mend it."
            )
    return ""


def check_points(census: Census) -> None:
    """Refuse a geography without usable points, before anything is drawn."""
    block = census.schema.block
    need_points(census)
    # False of a missing value, and of one that is not a number.
    usable = [(nw.col(c) >= -most) & (nw.col(c) <= most) for c, most in POINT.items()]
    good = nw.all_horizontal(*usable, ignore_nulls=False).fill_null(False)
    bad = census.geography.filter(~good).select(rows=nw.len())
    if census.engine.rows(bad)[0][0]:
        # Blocks nobody lives in need no point; the others are named by the usual check.
        occupied = {"kind": list(census.schema.kinds.occupied)}
        lived_in = census.engine.distinct(census.frame("units", [block], where=occupied))
        places = read_places(census, block, [], points=True)
        joined = lived_in.join(places.frame, on=block, how="inner").select("_place")
        points_of(places, census.engine.to_numpy(joined)["_place"])


def on_sphere(latitude: Floats, longitude: Floats) -> Floats:
    """Return points on the unit sphere."""
    phi, theta = np.radians(latitude), np.radians(longitude)
    return np.stack([np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)], axis=1)


def kilometres(places: Places, one: Integers, other: Integers) -> Floats:
    """Return great-circle distances between two lists of blocks."""
    return between(*points_of(places, np.concatenate([one, other])), one, other)


def between(latitude: Floats, longitude: Floats, one: Integers, other: Integers) -> Floats:
    """Return great-circle distances in kilometres between two lists of points."""
    here, there = (on_sphere(latitude[rows], longitude[rows]) for rows in (one, other))
    chord = np.sqrt(((here - there) ** 2).sum(axis=1))
    arc: Floats = 2 * np.arcsin(np.minimum(chord / 2, 1.0))
    return EARTH_KM * arc


def plant(households: Households, distance: Distance) -> Tree:
    """Return the tree of all households."""
    key, span = packed([households.stratum, households.place])
    members = sort_keys(key, span)
    starts = run_starts(key[members])
    lead = members[starts]
    strata = households.stratum[lead]
    roots = np.searchsorted(strata, np.arange(int(strata[-1]) + 2))
    nodes = np.zeros((lead.size + 1, 8), dtype=np.int32)
    place = coordinates(households.places, households.place, distance)
    nodes[:-1, X : Z + 1] = place[households.place[lead]]
    nodes[:-1, LEAVE] = numbered([strata, households.leave[lead]])[0]
    nodes[:-1, FIRST] = starts
    nodes[:-1, BELOW] = np.diff(np.append(starts, members.size))
    segments = segments_of(roots)
    order_all(segments, nodes)
    # Slots follow the tree, so that what is near lies near in memory.
    counts = nodes[:-1, BELOW].astype(np.int64)
    first = np.append(0, np.cumsum(counts))
    shift = np.repeat(nodes[:-1, FIRST] - first[:-1], counts)
    members = members[np.arange(members.size) + shift]
    nodes[:, FIRST] = first
    sum_up(segments, nodes)
    slots = np.empty(members.size, dtype=np.int64)
    slots[members] = np.arange(members.size)
    home = np.repeat(np.arange(lead.size), counts)
    crowds = np.bincount(nodes[home, LEAVE])
    return Tree(roots, nodes, members, slots, home, counts.astype(np.int32), crowds)


@compiled
def segments_of(roots: Integers) -> Integers:
    """Return the segments of all strata, each before the two it is split into.

    A segment lies from its first column up to, but without, its second.
    """
    most = 0
    for g in range(roots.size - 1):
        # Each split takes a point, and leaves at least half of LEAF on either side.
        most += 1 + 2 * ((roots[g + 1] - roots[g]) // (1 + LEAF // 2))
    found = np.empty((most, 2), dtype=np.int64)
    waiting = np.empty((2 * DEEPEST, 2), dtype=np.int64)
    number = 0
    for g in range(roots.size - 1):
        waiting[0, 0], waiting[0, 1] = roots[g], roots[g + 1]
        segments = 1
        while segments:
            segments -= 1
            low, high = waiting[segments, 0], waiting[segments, 1]
            found[number, 0], found[number, 1] = low, high
            number += 1
            if high - low > LEAF:
                middle = (low + high) // 2
                waiting[segments, 0], waiting[segments, 1] = low, middle
                waiting[segments + 1, 0], waiting[segments + 1, 1] = middle + 1, high
                segments += 2
    return found[:number]


@compiled
def order_all(segments: Integers, nodes: NDArray[np.int32]) -> None:
    """Order the nodes of every segment as a tree."""
    for low, high in segments:
        if high - low > LEAF:
            middle = (low + high) // 2
            wide = widest(nodes, low, high)
            select_middle(nodes, low, high - 1, middle, wide)
            nodes[middle, AXIS] = wide


@compiled
def sum_up(segments: Integers, nodes: NDArray[np.int32]) -> None:
    """Set, for every segment, the households in it and the area to leave if it is only one."""
    for low, high in segments:
        middle = (low + high) // 2
        only = nodes[low, LEAVE]
        for p in range(low + 1, high):
            if nodes[p, LEAVE] != only:
                only = SEVERAL
                break
        nodes[middle, ONLY] = only
        nodes[middle, BELOW] = nodes[high, FIRST] - nodes[low, FIRST]


@compiled
def widest(nodes: NDArray[np.int32], low: int, high: int) -> int:
    """Return the direction in which nodes `low` to `high` are spread most."""
    best, spread = 0, np.int64(-1)
    for d in range(3):
        least = most = np.int64(nodes[low, d])
        for p in range(low + 1, high):
            least = min(least, np.int64(nodes[p, d]))
            most = max(most, np.int64(nodes[p, d]))
        if most - least > spread:
            best, spread = d, most - least
    return best


@compiled_within
def select_middle(nodes: NDArray[np.int32], low: int, high: int, middle: int, d: int) -> None:
    """Move nodes until none before `middle` lies above it, and none after it below.

    Hoare (1961), "Find". `high` is the last place of the segment.
    """
    while low < high:
        pivot = nodes[(low + high) // 2, d]
        left, right = low, high
        while left <= right:
            while nodes[left, d] < pivot:
                left += 1
            while nodes[right, d] > pivot:
                right -= 1
            if left <= right:
                for c in range(8):
                    nodes[left, c], nodes[right, c] = nodes[right, c], nodes[left, c]
                left += 1
                right -= 1
        if middle <= right:
            high = right
        elif middle >= left:
            low = left
        else:
            return


@compiled_within
def take_one(nodes: NDArray[np.int32], low: int, high: int, p: int) -> None:
    """Count one free household less in every segment of a stratum around node `p`."""
    while True:
        middle = (low + high) // 2
        nodes[middle, BELOW] -= 1
        if p == middle or high - low <= LEAF:
            return
        if p < middle:
            high = middle
        else:
            low = middle + 1
