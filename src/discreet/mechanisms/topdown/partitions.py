"""The queries of a least squares problem, brought into the form that is quickest to apply.

On the active cells of a parent many queries coincide, and most follow from a finer one.
Queries with one cell per row fold into the diagonal; those with the same rows are merged;
each of the rest is computed from the finest other query whose rows lie within its own.
So the cells themselves are read once or twice, not once per query. Ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Numbers = NDArray[np.int32]

#: The source of a partition that is computed from the cells.
CELLS = -1


class Partitions(NamedTuple):
    """Merged queries, finest first.

    Rows of partition p are first_row[p] to first_row[p + 1]. Its `source` is a finer
    partition or CELLS; entry k of it (a row of the source, or a cell) belongs to row
    into[first_entry[p] + k]. `weights` [p, child] and `targets` [row, child] are the
    weights and weighted mean answers of what was merged; `diagonal` [child] and `aims`
    [cell, child] those of queries with one cell per row.
    """

    source: Integers
    first_row: Integers
    first_entry: Integers
    into: Numbers
    weights: Floats
    targets: Floats
    diagonal: Floats
    aims: Floats


@compiled_within
def rows_of_queries(query_of: Numbers, queries: int) -> tuple[Integers, Integers]:
    """Return the first row of each query and its number of rows."""
    first = np.zeros(queries, dtype=np.int64)
    size = np.zeros(queries, dtype=np.int64)
    for row in range(query_of.size - 1, -1, -1):
        first[query_of[row]] = row
        size[query_of[row]] += 1
    return first, size


@compiled
def refines(fine: Numbers, coarse: Numbers, first: int, found: Numbers) -> bool:
    """Tell whether each row of `fine` lies within one of `coarse`; write which to `found`.

    `fine` and `coarse` give the rows of the cells; `first` is the first row of `fine`.
    """
    found.fill(-1)
    for cell in range(fine.size):
        row = fine[cell] - first
        if found[row] < 0:
            found[row] = coarse[cell]
        elif found[row] != coarse[cell]:
            return False
    return True


@compiled_within
def by_rows(size: Integers) -> Integers:
    """Return queries in the order of their number of rows, most first (by insertion)."""
    order = np.empty(size.size, dtype=np.int64)
    for query in range(size.size):
        place = query
        while place > 0 and size[order[place - 1]] < size[query]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = query
    return order


@compiled
def largest(values: Floats) -> float:
    """Return the largest of some numbers."""
    most = values[0]
    for value in values:
        most = max(most, value)
    return float(most)


@compiled
def merge(
    row_of: Numbers, first: Integers, size: Integers, used: NDArray[np.bool_]
) -> tuple[Integers, Integers, Integers]:
    """Merge queries with equal rows.

    Returns the kept queries, those with most rows first, and for every query the kept one
    it is part of (its own number if kept, CELLS if it has one cell per row, and
    also if it is not used: its weights are 0) with the source of every query.
    """
    queries, cells = row_of.shape
    part_of = np.full(queries, CELLS, dtype=np.int64)
    source = np.full(queries, CELLS, dtype=np.int64)
    kept = np.empty(queries, dtype=np.int64)
    count = 0
    found = np.empty(cells, dtype=np.int32)
    for query in by_rows(size):
        if not used[query] or size[query] == cells:
            continue
        part_of[query] = query
        # From the coarsest kept so far to the finest: the first that refines is the best.
        for place in range(count - 1, -1, -1):
            other = kept[place]
            if refines(row_of[other], row_of[query], first[other], found[: size[other]]):
                if size[other] == size[query]:
                    part_of[query] = other
                else:
                    source[query] = other
                break
        if part_of[query] == query:
            kept[count] = query
            count += 1
    return kept[:count].copy(), part_of, source


@compiled
def arrange(row_of: Numbers, query_of: Numbers, answers: Floats, weights: Floats) -> Partitions:
    """Bring the queries of one parent into the quickest form."""
    queries, cells = row_of.shape
    first, size = rows_of_queries(query_of, queries)
    used = np.empty(queries, dtype=np.bool_)
    for query in range(queries):
        used[query] = size[query] > 0 and largest(weights[query]) > 0.0
    kept, part_of, source = merge(row_of, first, size, used)
    place = np.full(queries, CELLS, dtype=np.int64)
    first_row = np.zeros(kept.size + 1, dtype=np.int64)
    first_entry = np.zeros(kept.size + 1, dtype=np.int64)
    for k in range(kept.size):
        place[kept[k]] = k
        first_row[k + 1] = first_row[k] + size[kept[k]]
        origin = source[kept[k]]
        first_entry[k + 1] = first_entry[k] + (cells if origin == CELLS else size[origin])
    into = np.empty(first_entry[-1], dtype=np.int32)
    sources = np.full(kept.size, CELLS, dtype=np.int64)
    for k in range(kept.size):
        query = kept[k]
        entries = into[first_entry[k] : first_entry[k + 1]]
        if source[query] == CELLS:
            for cell in range(cells):
                entries[cell] = row_of[query, cell]
        else:
            sources[k] = place[source[query]]
            refines(row_of[source[query]], row_of[query], first[source[query]], entries)
        for entry in range(entries.size):
            entries[entry] += first_row[k] - first[query]
    summed, targets, diagonal, aims = mean_answers(
        row_of, answers, weights, part_of, place, first_row, first
    )
    return Partitions(sources, first_row, first_entry, into, summed, targets, diagonal, aims)


@compiled_within
def mean_answers(
    row_of: Numbers,
    answers: Floats,
    weights: Floats,
    part_of: Integers,
    place: Integers,
    first_row: Integers,
    first: Integers,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the weights and weighted mean answers of partitions, and those of cells.

    The sum of w_i (x - y_i)^2 differs from (sum w_i) (x - mean)^2 by a constant.
    """
    queries, cells = row_of.shape
    children = answers.shape[1]
    summed = np.zeros((first_row.size - 1, children))
    targets = np.zeros((first_row[-1], children))
    diagonal = np.zeros(children)
    aims = np.zeros((cells, children))
    known = np.empty(first_row[-1] + 1, dtype=np.bool_)
    for query in range(queries):
        if largest(weights[query]) <= 0.0:
            continue
        owner = part_of[query]
        known.fill(False)
        for child in range(children):
            if owner == CELLS:
                diagonal[child] += weights[query, child]
            else:
                summed[place[owner], child] += weights[query, child]
        for cell in range(cells):
            if owner == CELLS:
                mean = aims[cell]
                share = diagonal
            else:
                row = first_row[place[owner]] + row_of[owner, cell] - first[owner]
                if known[row]:
                    continue
                known[row] = True
                mean = targets[row]
                share = summed[place[owner]]
            answer = answers[row_of[query, cell]]
            for child in range(children):
                if weights[query, child] > 0.0:
                    part = weights[query, child] / share[child]
                    mean[child] += part * (answer[child] - mean[child])
    return summed, targets, diagonal, aims
