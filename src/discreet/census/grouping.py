"""Put rows of numbers together that are equal, and choose units that stand for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.census.linked import Numbers, Places

#: An odd factor, to hash rows of numbers.
FACTOR = np.uint64(0x9E3779B97F4A7C15)


def alike(kinds: Places, columns: Sequence[Places]) -> tuple[Numbers, Numbers] | None:
    """Return the group of each row, such that rows of one group are equal, and their firsts.

    Most rows of a kind are equal to its first; only the others are sorted, by a hash. None if
    two different rows have one hash.
    """
    first, group = firsts(kinds), kinds.astype(np.int64)
    apart = np.zeros(len(kinds), dtype=bool)
    for column in columns:
        apart |= column != column[first][kinds]
    others = np.flatnonzero(apart)
    code = np.zeros(len(others), dtype=np.uint64)
    for column in (kinds, *columns):
        code = (code ^ column[others].astype(np.uint64)) * FACTOR
        code ^= code >> np.uint64(32)
    _, start, number = np.unique(code, return_index=True, return_inverse=True)
    group[others] = len(first) + number
    first = np.concatenate([first, others[start]])
    same = all(
        (column[others] == column[first[group[others]]]).all() for column in (kinds, *columns)
    )
    return (group, first) if same else None


def firsts(numbers: Places | Numbers) -> Numbers:
    """Return the first place of each number; all from 0 to the largest stand somewhere."""
    found = np.empty(int(numbers.max()) + 1, dtype=np.int64)
    found[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return found


def mark_firsts(numbers: Places | Numbers) -> Places:
    """Return the numbers where each stands for the first time, and -1 elsewhere."""
    first = firsts(numbers)
    marked = np.full(len(numbers), -1, dtype=np.int32)
    marked[first] = np.arange(len(first))
    return marked


@dataclass(frozen=True)
class Chosen:
    """Units that stand for all: from which unit each was taken, and its area and id.

    The area is not that of the unit, but of a class with it; the id is that of any unit.
    """

    unit: Numbers
    area: Numbers
    ids: Numbers
    #: Of each group of units, where among the chosen it stands.
    group: Numbers


def choose(first: Numbers, class_of_group: Places, class_of_area: Places, ids: Numbers) -> Chosen:
    """Return units such that every group and every area is there, and the ends of the ids.

    A group and an area meet if they are of one class: nothing tells areas of a class apart but
    what is checked of areas alone. Of numbers made of the id only the range is checked.
    """
    many = int(class_of_area.max()) + 1
    sides = []
    for classes in (class_of_group, class_of_area):
        counts = np.bincount(classes, minlength=many)
        sides.append((np.argsort(classes, kind="stable"), counts, np.cumsum(counts) - counts))
    rows = np.maximum(sides[0][1], sides[1][1])
    if rows.sum() == 1 and len(ids) > 1:
        rows[0] += 1  # room for both ends
    of_class = np.repeat(np.arange(many), rows)
    place = np.arange(len(of_class)) - np.repeat(np.cumsum(rows) - rows, rows)
    group, area = (
        order[start[of_class] + place % counts[of_class]] for order, counts, start in sides
    )
    ends = np.unique([ids.argmin(), ids.argmax()])
    others = np.setdiff1d(np.arange(min(len(ids), len(group) + 2)), ends, assume_unique=True)
    named = np.concatenate([ends, others])[: len(group)]
    return Chosen(first[group], area, ids[named], firsts(group))
