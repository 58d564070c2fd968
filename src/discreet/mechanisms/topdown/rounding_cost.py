"""What a rounded table costs: its distance to the fractional one, from the definition.

The general solver is given these costs; the rounding by flow has its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.topdown.flow import Int32s, Int64s
from discreet.mechanisms.topdown.rounding import OURS, SNAP, Flags, Floats
from discreet.mechanisms.topdown.tree import ONE, OUTSIDE


class Table(NamedTuple):
    """What is rounded: the arguments of `rounding.round_children`."""

    x: Floats
    parent: Int64s
    tree: Int32s
    lower: Int64s
    allowed: Flags
    group_of: Int32s
    totals: Floats
    mode: int


class Terms(NamedTuple):
    """Quantities with a convex cost: `slope` from `base` to the next, `outer` beyond the two."""

    base: Int64s
    slope: Int64s
    outer: int


def terms_of(values: Floats, weight: int, mode: int, most: int | None = None) -> Terms:
    """Return the cost of being away from `values`, in units of 1 / ONE for our way."""
    counted = np.rint(values * ONE).astype(np.int64)
    base = counted // ONE if most is None else np.minimum(counted // ONE, most)
    above = counted - base * ONE
    if mode == OURS:
        return Terms(base, weight * (ONE - 2 * above), weight * OUTSIDE)
    up = (2 * above > ONE) | ((2 * above == ONE) & (base % 2 == 1))
    return Terms(base, weight * np.where(up, -1, 1), weight)


def lowered(table: Table) -> tuple[Int64s, Floats, NDArray[np.bool_]]:
    """Return whole parts, fractions, and which cells may hold anything."""
    may = table.allowed[table.group_of] > 0
    values = np.where(may & (table.x > SNAP), table.x, 0.0)
    whole = np.floor(values + SNAP).astype(np.int64)
    fractions = values - whole
    return whole, np.where(fractions > SNAP, fractions, 0.0), may


def classes_of(table: Table, level: int) -> tuple[Int64s, int]:
    """Return the node of every cell of every child at a level, and the number of nodes."""
    children = table.x.shape[1]
    rows = table.tree[level].astype(np.int64)
    return rows[:, None] * children + np.arange(children), (int(rows.max()) + 1) * children
