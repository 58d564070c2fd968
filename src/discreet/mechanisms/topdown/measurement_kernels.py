"""Kernels of measuring: add exact counts to noise, for whole nodes or for places in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled

Integers = NDArray[np.int64]
Numbers = NDArray[np.int32]


@compiled
def add_counts(
    table: Integers,
    nodes: Integers,
    start: Integers,
    cell: Numbers,
    count: Integers,
    row_of: Numbers,
) -> None:
    """Add the counts of some nodes to their rows of the table."""
    for i in range(nodes.size):
        for k in range(start[nodes[i]], start[nodes[i] + 1]):
            table[i, row_of[cell[k]]] += count[k]


@compiled
def narrowed(table: Integers, out: Numbers) -> bool:
    """Copy a table; return whether all of it fits 32 bits. One pass, where NumPy takes three."""
    changed = 0
    for i in range(table.shape[0]):
        for row in range(table.shape[1]):
            out[i, row] = table[i, row]
            changed += out[i, row] != table[i, row]
    return changed == 0


@compiled
def noise_at(places: Integers, rows: int, noise_of: Numbers) -> Numbers:
    """Return the noise of the node of each place, -1 where there is none."""
    found = np.empty(places.size, dtype=np.int32)
    begin, end, noise = 0, 0, -1
    for i in range(places.size):
        if places[i] < begin or places[i] >= end:  # a division per node, not per place
            node = places[i] // rows
            begin, end = node * rows, (node + 1) * rows
            noise = noise_of[node] if 0 <= node < noise_of.size else -1
        found[i] = noise
    return found


@compiled
def add_counts_at(
    values: Integers,
    places: Integers,
    rows: int,
    start: Integers,
    cell: Numbers,
    count: Integers,
    row_of: Numbers,
) -> None:
    """Add to the value of each place the counts of its node and row."""
    where = np.full(rows, -1, dtype=np.int64)
    end = 0
    while end < places.size:
        begin, node = end, places[end] // rows
        while end < places.size and places[end] < (node + 1) * rows:
            where[places[end] - node * rows] = end
            end += 1
        for k in range(start[node], start[node + 1]):
            place = where[row_of[cell[k]]]
            if place >= 0:
                values[place] += count[k]
        for i in range(begin, end):
            where[places[i] - node * rows] = -1
