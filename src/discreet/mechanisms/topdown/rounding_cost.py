"""What a rounded table costs: its distance to the fractional one, from the definition.

Used by the general solver and to check the rounding by flow, which has its own costs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.topdown.flow import Int32s, Int64s
from discreet.mechanisms.topdown.rounding import OURS, SNAP, Flags, Floats, weights_of
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


def cost_of(table: Table, result: Int64s) -> int:
    """Return the exact cost of a whole table, counted from all whole parts left as they are."""
    whole, fractions, _ = lowered(table)
    raised = result - whole
    weights = weights_of(table.mode, *table.tree.shape[::-1])
    found = _cost(
        terms_of(fractions.ravel(), 1 if table.mode == OURS else 2, table.mode, 0), raised.ravel()
    )
    for level, weight in enumerate(weights):
        nodes, many = classes_of(table, level)
        totals = np.bincount(nodes.ravel(), fractions.ravel(), many).astype(np.float64)
        sums = np.bincount(nodes.ravel(), raised.ravel(), many).astype(np.int64)
        found += _cost(terms_of(totals, int(weight), table.mode), sums)
    return found


def _cost(terms: Terms, values: Int64s) -> int:
    above = values - terms.base
    middle = np.where(above >= 1, terms.slope, 0).sum()
    return int(middle + terms.outer * (np.maximum(above - 1, 0) + np.maximum(-above, 0)).sum())
