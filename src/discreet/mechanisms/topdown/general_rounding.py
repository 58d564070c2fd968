"""Rounding with rows of one's own, by a general solver of mixed integer programs.

Linear rows over cells of several children that are not nested like the tree may break total
unimodularity: the relaxed optimum need not be whole, and there may be no whole table at all.
Such problems go to HiGHS (Huangfu and Hall 2018; package highspy, needed only here).

The model is written from the definition of the distance, not from the network of `tree`, so
that without rows of one's own the relaxed optimum is an independent check of `rounding`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from discreet.errors import BadInput
from discreet.mechanisms.topdown.flow import Int64s
from discreet.mechanisms.topdown.rounding import (
    DONE,
    IMPOSSIBLE,
    LOOSE,
    OURS,
    Floats,
    kept,
    weights_of,
)
from discreet.mechanisms.topdown.rounding_cost import Table, classes_of, lowered, terms_of
from discreet.mechanisms.topdown.tree import ONE


class Rows(NamedTuple):
    """Rows of one's own: low <= sum of coefficient times count <= high.

    Row i has the entries from `start[i]` to `start[i + 1]`; `place` is cell * children + child.
    """

    start: Int64s
    place: Int64s
    coefficient: Floats
    low: Floats
    high: Floats


class Model(NamedTuple):
    """A mixed integer program; entries are (row, column, value)."""

    cost: Floats
    upper: Floats
    entries: tuple[Int64s, Int64s, Floats]
    low: Floats
    high: Floats


def no_rows() -> Rows:
    """Return rows of one's own when there are none."""
    whole, real = np.zeros(0, np.int64), np.zeros(0)
    return Rows(np.zeros(1, np.int64), whole, real, real, real)


class _Builder:
    """Collects columns and rows. The first columns are the changes of cells."""

    def __init__(self, table: Table, loose: bool) -> None:
        self.table, self.loose = table, loose
        self.whole, self.fractions, may = lowered(table)
        every = table.mode != OURS
        chosen = may if every or loose else may & (self.fractions > 0)
        self.place = np.flatnonzero(chosen.ravel())
        self.cost: list[Floats] = []
        self.upper: list[Floats] = []
        self.entries: list[tuple[Int64s, Int64s, Floats]] = []
        self.low: list[Floats] = []
        self.high: list[Floats] = []
        self.columns = self.rows = 0
        terms = terms_of(self.fractions.ravel()[self.place], 2 if every else 1, table.mode, 0)
        blocks = [(terms.slope.astype(np.float64), np.ones(self.place.size), 1.0)]
        if loose:
            beyond = np.full(self.place.size, float(terms.outer))
            down = np.minimum(1.0, self.whole.ravel()[self.place])
            blocks += [(beyond, np.ones(self.place.size), 1.0), (beyond, down, -1.0)]
        for cost, upper, _ in blocks:
            self.add_columns(cost, upper)
        self.signs = np.repeat([sign for *_, sign in blocks], self.place.size)
        self.owner = np.tile(self.place, len(blocks))

    def add_columns(self, cost: Floats, upper: Floats) -> Int64s:
        """Add columns between 0 and `upper`; return their numbers."""
        self.cost.append(cost)
        self.upper.append(upper)
        self.columns += cost.size
        return np.arange(self.columns - cost.size, self.columns)

    def add_sums(self, row_of: Int64s, low: Floats, high: Floats) -> None:
        """Add rows that sum the changes of the cells that belong to each (-1: to none)."""
        rows = row_of[self.owner]
        used = np.flatnonzero(rows >= 0)
        self.entries.append((self.rows + rows[used], used, self.signs[used]))
        self.low.append(low)
        self.high.append(high)
        self.rows += low.size

    def add_level(self, level: int, weight: int) -> None:
        """Add the nodes of a level: the sum is base + middle + more - less."""
        nodes, many = classes_of(self.table, level)
        totals = np.bincount(nodes.ravel(), self.fractions.ravel(), many).astype(np.float64)
        terms = terms_of(totals, weight, self.table.mode)
        first = self.rows
        self.add_sums(nodes.ravel(), terms.base.astype(float), terms.base.astype(float))
        whole_already = (np.rint(totals * ONE) == terms.base * ONE) & (self.table.mode == OURS)
        beyond = self.loose or self.table.mode != OURS
        shut = whole_already & (not beyond)
        pieces = [(terms.slope.astype(float), np.where(shut, 0.0, 1.0), -1.0)]
        if beyond:
            outer = np.full(many, float(terms.outer))
            pieces += [(outer, np.full(many, np.inf), sign) for sign in (-1.0, 1.0)]
        for cost, upper, sign in pieces:
            columns = self.add_columns(cost, upper)
            self.entries.append((np.arange(first, first + many), columns, np.full(many, sign)))

    def add_limits(self) -> None:
        """Add the parent's counts, the lower bounds and the exact totals."""
        table, children = self.table, self.table.x.shape[1]
        cell = np.repeat(np.arange(table.x.shape[0]), children)
        child = np.tile(np.arange(children), table.x.shape[0])
        if table.parent.size:
            missing = (table.parent - self.whole.sum(axis=1)).astype(float)
            self.add_sums(cell, missing, missing)
        group = table.group_of.astype(np.int64)[cell] * children + child
        held = np.bincount(group, self.whole.ravel(), table.lower.size)
        needed = (table.lower.ravel() - held).astype(np.float64)
        self.add_sums(group, needed, np.full(needed.size, np.inf))
        exact = np.rint(table.totals) - self.whole.sum(axis=0)
        free = np.isnan(exact)
        self.add_sums(child, np.where(free, -np.inf, exact), np.where(free, np.inf, exact))

    def add_rows(self, rows: Rows) -> None:
        """Add rows of one's own."""
        row = np.repeat(np.arange(rows.low.size), np.diff(rows.start))
        fixed = np.bincount(row, rows.coefficient * self.whole.ravel()[rows.place], rows.low.size)
        order = np.argsort(self.owner, kind="stable")
        left = np.searchsorted(self.owner[order], rows.place, "left")
        count = np.searchsorted(self.owner[order], rows.place, "right") - left
        entry = np.repeat(np.arange(row.size), count)
        within = np.arange(entry.size) - np.repeat(np.cumsum(count) - count, count)
        column = order[left[entry] + within]
        value = rows.coefficient[entry] * self.signs[column]
        self.entries.append((self.rows + row[entry], column, value))
        self.low.append(rows.low - fixed)
        self.high.append(rows.high - fixed)
        self.rows += rows.low.size

    def model(self) -> Model:
        """Return the program."""
        row, column, value = (np.concatenate(part) for part in zip(*self.entries, strict=True))
        return Model(
            np.concatenate(self.cost),
            np.concatenate(self.upper),
            (row, column, value),
            np.concatenate(self.low),
            np.concatenate(self.high),
        )

    def result(self, solution: Floats) -> Int64s:
        """Return the whole table that a solution stands for."""
        found = self.whole.ravel().copy()
        change = np.rint(solution[: self.owner.size]).astype(np.int64) * self.signs.astype(int)
        np.add.at(found, self.owner, change)
        return found.reshape(self.whole.shape)


def built(table: Table, rows: Rows, loose: bool) -> _Builder:
    """Return the builder with everything in it."""
    builder = _Builder(table, loose)
    weights = weights_of(table.mode, *table.tree.shape[::-1])
    for level, weight in enumerate(weights):
        builder.add_level(level, int(weight))
    builder.add_limits()
    builder.add_rows(rows)
    return builder


def highs() -> Any:
    """Return the package of HiGHS."""
    try:
        return import_module("highspy")
    except ImportError:
        raise BadInput(
            "rounding with rows of your own needs the package highspy, which is not installed. "
            "Install discreet with the extra 'solvers'."
        ) from None


def solve(model: Model, whole: bool) -> Floats | None:
    """Return an optimal solution, whole or relaxed, or None if there is none."""
    highspy = highs()
    row, column, value = model.entries
    order = np.lexsort((column, row))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = model.cost.size, model.low.size
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = model.cost, np.zeros(model.cost.size), model.upper
    lp.row_lower_, lp.row_upper_ = model.low, model.high
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.searchsorted(row[order], np.arange(model.low.size + 1))
    lp.a_matrix_.index_, lp.a_matrix_.value_ = column[order], value[order]
    if whole:
        lp.integrality_ = [highspy.HighsVarType.kInteger] * model.cost.size
    program = highspy.Highs()
    for option, setting in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0)):
        program.setOptionValue(option, setting)
    program.passModel(lp)
    program.run()
    if program.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(program.getSolution().col_value)


def round_with_rows(table: Table, rows: Rows) -> tuple[Int64s, int]:
    """Round a table with rows of one's own; the endings are those of `rounding`.

    If no table within one of every node keeps the rows, nodes and cells may be one further
    away at a high cost (`LOOSE`).
    """
    for loose in (False, True):
        builder = built(table, rows, loose)
        solution = solve(builder.model(), whole=True)
        if solution is None:
            continue
        result = builder.result(solution)
        limits = (table.parent, table.lower, table.group_of, table.totals)
        if kept(result, *limits) and _rows_kept(result, rows):
            return result, LOOSE if loose else DONE
    return builder.whole, IMPOSSIBLE


def _rows_kept(result: Int64s, rows: Rows) -> bool:
    row = np.repeat(np.arange(rows.low.size), np.diff(rows.start))
    sums = np.bincount(row, rows.coefficient * result.ravel()[rows.place], rows.low.size)
    return bool(((sums >= rows.low - 1e-6) & (sums <= rows.high + 1e-6)).all())
