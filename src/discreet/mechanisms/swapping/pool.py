"""A pool of things with keys and numbers of households, cut at the household of a given rank.

To choose one of the nearest nobody need put them in order: it is enough to know which
entries hold the household of that rank (Hoare 1961, "Find").
"""

from __future__ import annotations

from discreet.compiled import compiled, compiled_within
from discreet.mechanisms.numbering import Integers

# Columns of a pool: what its entries are ranked by, what each stands for (a node or a slot),
# and how many households it has.
KEY, WHAT, COUNT = 0, 1, 2


@compiled
def cut(pool: Integers, size: int, need: int) -> tuple[int, int, int]:
    """Move the entries of lowest key that have `need` households to the front of a pool.

    Returns how many these are (all that share the highest of their keys among them), where
    those of the highest key begin, and how many households come before them. Hoare (1961),
    "Find", with weights.
    """
    low, high, before = 0, size, 0
    while True:
        pivot = middle_key(pool, low, high)
        first, end, at = low, high, low
        lower, equal = 0, 0
        while at < end:
            key = pool[at, KEY]
            if key < pivot:
                lower += pool[at, COUNT]
                exchange(pool, first, at)
                first += 1
                at += 1
            elif key > pivot:
                end -= 1
                exchange(pool, at, end)
            else:
                equal += pool[at, COUNT]
                at += 1
        if before + lower >= need:
            high = first
        elif before + lower + equal >= need:
            return end, first, before + lower
        else:
            low = end
            before += lower + equal


@compiled_within
def middle_key(pool: Integers, low: int, high: int) -> int:
    """Return the median key of the first, the middle and the last of some entries."""
    a, b, c = pool[low, KEY], pool[(low + high) // 2, KEY], pool[high - 1, KEY]
    return max(min(a, b), min(max(a, b), c))  # type: ignore[no-any-return]


@compiled
def exchange(pool: Integers, one: int, other: int) -> None:
    """Exchange two entries of a pool."""
    for column in range(3):
        pool[one, column], pool[other, column] = pool[other, column], pool[one, column]
