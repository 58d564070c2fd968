"""Number and order rows by some columns of whole numbers, in time proportional to the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled

Integers = NDArray[np.int64]
Codes = NDArray[np.signedinteger]

#: Bits a pass of the sort looks at: its counters fit the innermost cache.
DIGIT = 11


def numbered(columns: Sequence[Codes]) -> tuple[Integers, Integers]:
    """Return the number of each row among the different rows, in order, and how often each occurs.

    >>> numbers, counts = numbered([np.array([3, 1, 3, 1]), np.array([0, 5, 0, 6])])
    >>> numbers.tolist(), counts.tolist()
    ([2, 0, 2, 1], [1, 1, 2])
    """
    key, span = packed(columns)
    if span <= 4 * key.size:  # few enough to count without sorting
        counts = np.bincount(key, minlength=span)
        return (np.cumsum(counts > 0) - 1)[key], counts[counts > 0]
    order = sort_keys(key, span)
    starts = run_starts(key[order])
    counts = np.diff(np.append(starts, key.size))
    number = np.empty(key.size, dtype=np.int64)
    number[order] = np.repeat(np.arange(starts.size), counts)
    return number, counts


def different(column: Codes) -> tuple[Integers, Integers]:
    """Return the different values of a column in order, and the place of each row's among them.

    >>> values, places = different(np.array([7, 5, 7]))
    >>> values.tolist(), places.tolist()
    ([5, 7], [1, 0, 1])
    """
    key, span = packed([column])
    if span > 4 * key.size:
        values, places = np.unique(column, return_inverse=True)
        return values, places
    counts = np.bincount(key, minlength=span)
    values = np.flatnonzero(counts)
    return values + (int(column.min()) if column.size else 0), (np.cumsum(counts > 0) - 1)[key]


def order_of(columns: Sequence[Codes]) -> Integers:
    """Return the places of the rows in the order of the columns; equal rows stay in theirs."""
    rows = rows_in_order(columns)
    return np.arange(columns[0].size) if isinstance(rows, slice) else rows


def rows_in_order(columns: Sequence[Codes]) -> Integers | slice:
    """Return an index that takes rows in the order of the columns.

    Rows that are in order already, as in most files that are read, are taken uncopied.
    """
    key, span = packed(columns)
    return slice(None) if (key[:-1] <= key[1:]).all() else sort_keys(key, span)


@compiled
def run_starts(ranked: Codes) -> Integers:
    """Return where each run of equal values begins."""
    starts = np.empty(ranked.size, dtype=np.int64)
    many = 0
    for i in range(ranked.size):
        if i == 0 or ranked[i] != ranked[i - 1]:
            starts[many] = i
            many += 1
    return starts[:many].copy()


def packed(columns: Sequence[Codes]) -> tuple[Integers, int]:
    """Return one number per row that orders and tells rows apart as the columns do, and a bound.

    Mixed radix over the ranges that occur; where that would pass 62 bits, over the values
    that occur, of which there are no more than rows.
    """
    key, span = np.zeros(columns[0].size, dtype=np.int64), 1
    if not key.size:
        return key, span
    for column in columns:
        low, digit = int(column.min()), column
        width = int(column.max()) - low + 1
        if span * width >= 2**62:
            values, digit = np.unique(column, return_inverse=True)
            low, width = 0, values.size
            if span * width >= 2**62:
                key, counts = numbered([key])
                span = counts.size
        # In place: there are many rows. What passes 64 bits in between wraps around and back.
        key *= width
        key -= low
        key += digit
        span *= width
    return key, span


@compiled
def sort_keys(key: Integers, span: int) -> Integers:
    """Return the places of keys from 0 to `span` in ascending order, equal ones in theirs.

    Radix sort from the lowest digit, a few bits at a time.
    """
    order = np.arange(key.size)
    other = np.empty_like(order)
    shift = 0
    while span > 1 and (span - 1) >> shift:
        starts = np.zeros((1 << DIGIT) + 1, dtype=np.int64)
        mask = (1 << DIGIT) - 1
        for k in key:
            starts[((k >> shift) & mask) + 1] += 1
        for digit in range(1 << DIGIT):
            starts[digit + 1] += starts[digit]
        for place in order:
            digit = (key[place] >> shift) & mask
            other[starts[digit]] = place
            starts[digit] += 1
        order, other = other, order
        shift += DIGIT
    return order
