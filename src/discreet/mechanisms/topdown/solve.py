"""Estimate the children of many parents: least squares, then controlled rounding.

Each parent is a problem of its own. Threads take parents in turn; a problem that is large
by itself is solved alone with all threads inside. No result depends on the threads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled
from discreet.mechanisms.topdown.active import Active, Estimate, Integers, Numbers, block_start
from discreet.mechanisms.topdown.least_squares import solve
from discreet.mechanisms.topdown.rounding import (
    DEPLOYED,
    DEPLOYED_TOGETHER,
    IMPOSSIBLE,
    LOOSE,
    OURS,
    round_children,
)
from discreet.mechanisms.topdown.totals import solve_totals

Floats = NDArray[np.float64]

#: Least squares stop when no count would move by more than this.
TOLERANCE = 1e-6

#: From so many unknowns on, a problem is worth all threads.
LARGE = 60_000

OK, NOT_CONVERGED, INFEASIBLE, NOT_ROUNDED, LOOSELY_ROUNDED = 0, 1, 2, 3, 4


class Rules(NamedTuple):
    """What holds at the nodes of a level, and how it was measured.

    row_of[q, cell] is the row of query q that counts a cell; weights[q, node] is one over
    the variance of its answers. If `total_first`, query 0 is the total and is fitted alone
    before all others. Groups are the categories that live in quarters of their own kind:
    at least `lower[g, node]` records, none where `allowed[g, node]` is 0. totals[node] is
    exact, or NaN. tree[t] are ever finer partitions of the cells that rounding respects.
    """

    row_of: Numbers
    weights: Floats
    total_first: bool
    group_of: Numbers
    lower: Integers
    allowed: NDArray[np.uint8]
    totals: Floats
    tree: Numbers
    deployed: bool


class Problem(NamedTuple):
    """The least squares problem of one parent; see `least_squares.solve`."""

    row_of: Numbers
    query_of: Numbers
    answers: Floats
    weights: Floats
    parent: Integers
    group_of: Numbers
    lower: Integers
    allowed: NDArray[np.uint8]
    totals: Floats


class Batch(NamedTuple):
    """Parents of one part of a level: their counts, their children, and the answers."""

    parents: Estimate
    child_start: Integers
    active: Active
    answer_start: Integers
    answers: Floats
    rules: Rules


def batch(
    parents: Estimate, child_start: Integers, active: Active, answers: Floats, rules: Rules
) -> Batch:
    """Return a batch; `answers` are laid out as `active.place_answers` does."""
    start = block_start(active, child_start, rules.row_of.shape[0])
    return Batch(parents, child_start, active, start, answers, rules)


def problem_of(p: int, batch: Batch) -> Problem:
    """Return the problem of parent p, with all its queries."""
    rules, active = batch.rules, batch.active
    queries = rules.row_of.shape[0]
    begin, end = batch.parents.start[p], batch.parents.start[p + 1]
    cells = batch.parents.cell[begin:end]
    first, last = batch.child_start[p], batch.child_start[p + 1]
    at = (p - active.first) * queries
    start = active.start[at : at + queries + 1]
    row_of, query_of = local_rows(start, active.row, rules.row_of, cells)
    where = batch.answer_start[p - active.first]
    shape = query_of.size, last - first
    return Problem(
        row_of,
        query_of,
        batch.answers[where : where + shape[0] * shape[1]].reshape(shape),
        rules.weights[:, first:last].copy(),
        batch.parents.counted[begin:end],
        rules.group_of[cells],
        rules.lower[:, first:last].copy(),
        rules.allowed[:, first:last].copy(),
        rules.totals[first:last].copy(),
    )


@compiled
def local_rows(
    start: Integers, row: Numbers, row_of: Numbers, cells: Numbers
) -> tuple[Numbers, Numbers]:
    """Give the rows row[start[q]:start[q + 1]] of all queries numbers from 0 on.

    Returns the number of the row that counts each cell, by query, and the query of each row.
    """
    queries = row_of.shape[0]
    local = np.empty((queries, cells.size), dtype=np.int32)
    query_of = np.empty(start[queries] - start[0], dtype=np.int32)
    for q in range(queries):
        for r in range(start[q], start[q + 1]):
            query_of[r - start[0]] = q
        for j in range(cells.size):
            wanted = row_of[q, cells[j]]
            low, high = start[q], start[q + 1]
            while low < high:
                middle = (low + high) >> 1
                if row[middle] < wanted:
                    low = middle + 1
                else:
                    high = middle
            local[q, j] = low - start[0]
    return local, query_of


def without_total(problem: Problem) -> Problem:
    """Return the problem of the second pass: the totals fitted from query 0, then held.

    The first pass stands alone so that the noise of detailed answers does not reach the
    totals (Abowd et al. 2022, section 6).
    """
    by_group = np.zeros(problem.lower.shape[0], dtype=np.int64)
    np.add.at(by_group, problem.group_of, problem.parent)
    totals = solve_totals(
        by_group,
        problem.lower,
        problem.allowed,
        problem.answers[0],
        problem.weights[0],
        problem.totals,
    )
    return problem._replace(
        row_of=problem.row_of[1:] - np.int32(1),
        query_of=problem.query_of[1:] - np.int32(1),
        answers=problem.answers[1:],
        weights=problem.weights[1:],
        totals=totals,
    )


def tree_of(tree: Numbers, cells: Numbers) -> Numbers:
    """Return the partitions of a tree on some cells."""
    return np.take(tree, cells, axis=1)


def way_of_rounding(rules: Rules) -> int:
    """Return the mode of the rounder: as deployed, totals go first where they were fitted first."""
    if not rules.deployed:
        return OURS
    return DEPLOYED if rules.total_first else DEPLOYED_TOGETHER


class Solved(NamedTuple):
    """Counts of the children of each parent, cells by children, and how each problem ended.

    The status is -1 for a parent with one child or without records.
    """

    start: Integers
    counts: Integers
    status: Integers


def solve_batch(batch: Batch, threads: int = 1) -> Solved:
    """Return whole counts for the children of all parents of a batch."""
    active, out_start = batch.active, sizes_of(batch)
    size = np.diff(out_start)
    out = np.zeros(int(out_start[-1]), dtype=np.int64)
    solved = Solved(out_start, out, np.full(size.size, -1, dtype=np.int64))
    alone = size >= (LARGE if threads > 1 else np.inf)
    for k in np.flatnonzero(alone):
        _solve_parent(active.first + int(k), batch, solved, threads)
    together = np.flatnonzero((size > 0) & ~alone)
    if threads <= 1:
        _solve_parents(active.first + together, batch, solved)
        return solved
    with ThreadPoolExecutor(threads) as pool:
        pieces = _pieces(together, size, 8 * threads)
        waiting = [
            pool.submit(_solve_parents, active.first + piece, batch, solved) for piece in pieces
        ]
        for one in waiting:
            one.result()
    return solved


def sizes_of(batch: Batch) -> Integers:
    """Return where the counts of each parent's children begin; only children have none."""
    first, last = batch.active.first, batch.active.last
    cells = np.diff(batch.parents.start[first : last + 1])
    children = np.diff(batch.child_start[first : last + 1])
    size = np.where(children > 1, cells * children, 0)
    return np.concatenate([[0], np.cumsum(size)]).astype(np.int64)


def _solve_parents(parents: Integers, batch: Batch, solved: Solved) -> None:
    for p in parents:
        _solve_parent(int(p), batch, solved, 1)


def _solve_parent(p: int, batch: Batch, solved: Solved, threads: int) -> None:
    """Estimate the children of one parent.

    The steps are compiled, their sequence is not: one function with all of them inside would
    take longer to compile than all of them together, and a parent is worth the few calls.
    """
    k, rules = p - batch.active.first, batch.rules
    whole = problem_of(p, batch)
    task = without_total(whole) if rules.total_first else whole
    if rules.total_first and np.isnan(task.totals).any():
        solved.status[k] = INFEASIBLE
        return
    x, _, solved.status[k] = solve(*task, TOLERANCE, threads)
    if solved.status[k] != OK:
        return
    cells = batch.parents.cell[batch.parents.start[p] : batch.parents.start[p + 1]]
    counts, wrong = round_children(
        x,
        whole.parent,
        tree_of(rules.tree, cells),
        whole.lower,
        whole.allowed,
        whole.group_of,
        whole.totals,
        way_of_rounding(rules),
    )
    solved.counts[solved.start[k] : solved.start[k + 1]] = counts.ravel()
    if wrong == IMPOSSIBLE:
        solved.status[k] = NOT_ROUNDED
    elif wrong == LOOSE and not rules.deployed:
        # Our way promises every query of the tree within one; the deployed way does not.
        solved.status[k] = LOOSELY_ROUNDED


def _pieces(parents: Integers, size: Integers, wanted: int) -> list[Integers]:
    """Cut a list of parents into runs of about equal work."""
    work = np.cumsum(size[parents] + 1)
    marks = np.linspace(0, work[-1] if work.size else 0, wanted + 1)[1:-1]
    cuts = np.unique(np.searchsorted(work, marks, side="right"))
    return [piece for piece in np.split(parents, cuts) if piece.size]


def gather(batch: Batch, solved: Solved) -> tuple[Integers, Numbers, Integers]:
    """Return number of cells per child, and cells and counts of all children, one by one."""
    low, high = batch.active.first, batch.active.last
    child_start, parents = batch.child_start[low : high + 1], batch.parents
    start = parents.start[low : high + 1]
    only = np.diff(child_start) == 1
    room = int(np.diff(start)[only].sum()) + int(np.count_nonzero(solved.counts > 0))
    cell, count = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int64)
    filled = np.zeros(child_start[-1] - child_start[0], dtype=np.int64)
    _gather(
        start, parents.cell, parents.counted, child_start, solved.start, solved.counts,
        filled, cell, count,
    )  # fmt: skip
    return filled, cell, count


@compiled
def _gather(
    start: Integers, cells: Numbers, counted: Integers, child_start: Integers,
    out_start: Integers, out: Integers, filled: Integers, cell: Numbers, count: Integers,
) -> None:  # fmt: skip
    """Write what `gather` returns, for the parents whose cells begin at `start`."""
    size = 0
    for p in range(start.size - 1):
        begin, end = start[p], start[p + 1]
        children = child_start[p + 1] - child_start[p]
        for c in range(children):
            before = size
            for j in range(end - begin):
                if children == 1:
                    value = counted[begin + j]
                else:
                    value = out[out_start[p] + j * children + c]
                if value > 0:
                    cell[size] = cells[begin + j]
                    count[size] = value
                    size += 1
            filled[child_start[p] + c - child_start[0]] = size - before
