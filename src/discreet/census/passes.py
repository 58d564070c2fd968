"""Passes over all persons of linked files: what of their kinds comes together in a unit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled

# As in `linked`, which is not imported: compiled code depends on all that its module imports.
Numbers = NDArray[np.int64]
Places = NDArray[np.int32]


@compiled
def add_up(home: Places, kinds: Places, numbers: Numbers, totals: Numbers) -> None:
    """Add to each unit the numbers of the kinds of its members."""
    for person in range(home.size):
        totals[home[person]] += numbers[kinds[person]]


@compiled
def keep_largest(home: Places, kinds: Places, codes: Places, largest: Places) -> None:
    """Keep in each unit the largest code of its members, if it is larger than what is there."""
    for person in range(home.size):
        code = codes[kinds[person]]
        if code > largest[home[person]]:
            largest[home[person]] = code


@compiled
def mark_pairs(home: Places, kinds: Places, classes: Numbers, there: NDArray[np.bool_]) -> None:
    """Mark which kinds of persons live in which classes of units; `classes` are those of units."""
    for person in range(home.size):
        there[kinds[person], classes[home[person]]] = True
