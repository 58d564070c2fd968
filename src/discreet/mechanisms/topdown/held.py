"""Exact statistics that users declare: solved by general solvers, parent by parent.

Answers that are held exact cut across the groups and the tree that the compiled solvers
know, so these problems go to PIQP and HiGHS. Statistics of several columns at once may be
impossible to keep together with whole counts; then the statistic and the area are named.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.mechanisms.topdown.active import Estimate, Integers, Numbers
from discreet.mechanisms.topdown.constraints import Held
from discreet.mechanisms.topdown.general import packages, solve_general
from discreet.mechanisms.topdown.general_rounding import Rows, highs, round_with_rows
from discreet.mechanisms.topdown.rounding import IMPOSSIBLE
from discreet.mechanisms.topdown.rounding_cost import Table
from discreet.mechanisms.topdown.solve import (
    INFEASIBLE,
    NOT_ROUNDED,
    OK,
    Batch,
    Problem,
    Solved,
    problem_of,
    sizes_of,
    tree_of,
    way_of_rounding,
    without_total,
)


def check_solvers() -> None:
    """Refuse to begin if a solver that held statistics need is not installed."""
    packages()
    highs()


class Equalities(NamedTuple):
    """Sums of places (cell * children + child) that are exact: row i has place[start[i]:...]."""

    start: Integers
    place: Integers
    value: Integers


def equalities(held: list[Held], cells: Numbers, first: int, children: int) -> Equalities | str:
    """Return the sums that children from `first` on must have, or the statistic that cannot hold.

    A row none of whose cells the parent has must be empty in every child.
    """
    starts, places, values = [0], [], []
    for one in held:
        rows = one.row_of[cells]
        wanted = one.values[first : first + children]
        present = np.unique(rows)
        if wanted.sum() != wanted[:, present].sum():
            return one.name
        for row in present:
            inside = np.flatnonzero(rows == row)
            for child in range(children):
                places.append(inside * children + child)
                starts.append(starts[-1] + inside.size)
                values.append(wanted[child, row])
    placed = np.concatenate(places) if places else np.zeros(0, np.int64)
    return Equalities(np.array(starts), placed.astype(np.int64), np.array(values, dtype=np.int64))


def solve_held(batch: Batch, held: list[Held]) -> tuple[Solved, str]:
    """Return whole counts as `solve.solve_batch` does, and the statistic that failed, if any."""
    out_start = sizes_of(batch)
    low, high = batch.active.first, batch.active.last
    out = np.zeros(int(out_start[-1]), dtype=np.int64)
    status = np.full(high - low, -1, dtype=np.int64)
    for p in range(low, high):
        cells = batch.parents.cell[batch.parents.start[p] : batch.parents.start[p + 1]]
        first, last = int(batch.child_start[p]), int(batch.child_start[p + 1])
        if last - first == 1 or not cells.size:
            continue
        kept = equalities(held, cells, first, last - first)
        if isinstance(kept, str):
            status[p - low] = INFEASIBLE
            return Solved(out_start, out, status), kept
        whole = problem_of(p, batch)
        task = without_total(whole) if batch.rules.total_first else whole
        counts, status[p - low] = solve_one(
            task, whole, tree_of(batch.rules.tree, cells), kept, way_of_rounding(batch.rules)
        )
        if status[p - low] != OK:
            return Solved(out_start, out, status), " or ".join(one.name for one in held)
        begin = out_start[p - low]
        out[begin : begin + counts.size] = counts.ravel()
    return Solved(out_start, out, status), ""


def solve_one(
    task: Problem, whole: Problem, tree: Numbers, kept: Equalities, mode: int
) -> tuple[Integers, int]:
    """Return whole counts [cell, child] of one problem under further equalities, and a status."""
    _, sparse = packages()
    children = task.totals.size
    ones = np.ones(kept.place.size)
    shape = (kept.value.size, task.parent.size * children)
    rows = sparse.csr_array((ones, kept.place, kept.start), shape)
    x, found = solve_general(*task, rows, kept.value.astype(np.float64))
    if found != OK:
        return np.zeros(x.shape, np.int64), found
    exact = kept.value.astype(np.float64)
    parent = whole.parent if (whole.parent >= 0).all() else np.zeros(0, np.int64)
    table = Table(x, parent, tree, whole.lower, whole.allowed, whole.group_of, whole.totals, mode)
    counts, wrong = round_with_rows(table, Rows(kept.start, kept.place, ones, exact, exact))
    return counts, NOT_ROUNDED if wrong == IMPOSSIBLE else OK


def check_held(held: list[Held], made: Estimate, nodes: int) -> str:
    """Return the name of a statistic that whole counts do not meet, or nothing."""
    for one in held:
        sums = np.zeros((nodes, one.values.shape[1]), dtype=np.int64)
        np.add.at(sums, (made.node(), one.row_of[made.cell]), made.counted)
        if not np.array_equal(sums, one.values):
            return one.name
    return ""
