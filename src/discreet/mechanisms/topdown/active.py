"""Which answers the estimate of a level can depend on.

A cell that is empty in the parent is empty in its children. A row of a query matters to
the children of a parent if it counts one of the parent's other cells; the answers of all
other rows are constants of the least squares problem. An only child equals its parent:
no answer matters to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled

Integers = NDArray[np.int64]
Numbers = NDArray[np.int32]


class Estimate(NamedTuple):
    """Counts of the nodes of a level: cells of node k from start[k] to start[k + 1], ascending."""

    start: Integers
    cell: Numbers
    counted: Integers

    def node(self) -> Integers:
        """Return the node of every entry."""
        return np.repeat(np.arange(self.start.size - 1), np.diff(self.start))


class Active(NamedTuple):
    """Rows that matter for parents `first` to `last` (without it).

    The rows of parent p and query q are `row[start[i]:start[i + 1]]` with
    i = (p - first) * queries + q, ascending.
    """

    first: int
    last: int
    start: Integers
    row: Numbers


def active_rows(
    parents: Estimate, child_start: Integers, row_of: Numbers, first: int, last: int
) -> Active:
    """Return the rows that matter to the children of parents `first` to `last`."""
    start, row = _active_rows(
        parents.start,
        parents.cell,
        child_start,
        row_of,
        int(row_of.max(initial=0)) + 1,
        first,
        last,
    )
    return Active(first, last, start, row)


@compiled
def _active_rows(
    start: Integers,
    cell: Numbers,
    child_start: Integers,
    row_of: Numbers,
    most: int,
    first: int,
    last: int,
) -> tuple[Integers, Numbers]:
    """Return the start and the rows of `Active`.

    A row is put into its place among those of its query at once: they come nearly in order,
    and NumPy's sort would compile for as long as all of this module.
    """
    queries = row_of.shape[0]
    found = np.zeros((last - first) * queries + 1, dtype=np.int64)
    room = 0
    for p in range(first, last):
        if child_start[p + 1] - child_start[p] > 1:
            room += queries * (start[p + 1] - start[p])
    rows = np.empty(room, dtype=np.int32)
    seen = np.full(most, -1, dtype=np.int64)
    size = 0
    for p in range(first, last):
        for q in range(queries):
            i = (p - first) * queries + q
            begin = size
            if child_start[p + 1] - child_start[p] > 1:
                for k in range(start[p], start[p + 1]):
                    row = row_of[q, cell[k]]
                    if seen[row] != i:
                        seen[row] = i
                        at = size
                        while at > begin and rows[at - 1] > row:
                            rows[at] = rows[at - 1]
                            at -= 1
                        rows[at] = row
                        size += 1
            found[i + 1] = size
    return found, rows[:size].copy()


@compiled
def places_of(
    active_start: Integers,
    row: Numbers,
    child_start: Integers,
    first: int,
    last: int,
    queries: int,
    query: int,
    rows: int,
) -> Integers:
    """Return the places node * rows + row of all answers of a query that matter, ascending."""
    size = 0
    for p in range(first, last):
        i = (p - first) * queries + query
        size += (active_start[i + 1] - active_start[i]) * (child_start[p + 1] - child_start[p])
    places = np.empty(size, dtype=np.int64)
    k = 0
    for p in range(first, last):
        i = (p - first) * queries + query
        for child in range(child_start[p], child_start[p + 1]):
            for r in range(active_start[i], active_start[i + 1]):
                places[k] = child * rows + row[r]
                k += 1
    return places


def block_start(active: Active, child_start: Integers, queries: int) -> Integers:
    """Return where the answers of each parent begin, laid out rows by children."""
    rows = np.diff(active.start[::queries])
    children = np.diff(child_start[active.first : active.last + 1])
    return np.concatenate([[0], np.cumsum(rows * children)]).astype(np.int64)


@compiled
def place_answers(
    answers: NDArray[np.float64],
    start: Integers,
    active_start: Integers,
    child_start: Integers,
    first: int,
    last: int,
    queries: int,
    values: Integers,
) -> None:
    """Put the values of all queries, each in the order of `places_of`, into the parents' blocks."""
    k = 0
    for query in range(queries):
        for p in range(first, last):
            i = (p - first) * queries + query
            children = child_start[p + 1] - child_start[p]
            before = active_start[i] - active_start[(p - first) * queries]
            at = start[p - first] + before * children
            for c in range(children):
                for r in range(active_start[i + 1] - active_start[i]):
                    answers[at + r * children + c] = values[k]
                    k += 1
