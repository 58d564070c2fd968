"""Compare two censuses table by table: which counts changed, and by how much.

What comes out compares with the truth, so it is internal: it never goes into a release.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw

from discreet.census import Census, Table
from discreet.engine import Frame
from discreet.errors import BadInput
from discreet.products import tabulate

#: Size classes of areas by their true total in the table: label and lowest total.
SIZE_CLASSES = (
    ("0", 0),
    ("1-9", 1),
    ("10-99", 10),
    ("100-999", 100),
    ("1,000-9,999", 1_000),
    ("10,000+", 10_000),
)

PERCENTILE = 0.9


@dataclass(frozen=True)
class Errors:
    """How far the counts of a group of cells are from the truth (after minus before).

    `percentile_90` of the absolute error interpolates linearly between cells.
    """

    cells: int
    changed: int
    mean_count: float
    mean_absolute: float
    root_mean_square: float
    mean: float
    percentile_90: float
    largest: int

    @property
    def share_changed(self) -> float:
        """Part of the cells that differ at all, 0 to 1."""
        return self.changed / self.cells if self.cells else 0.0

    @property
    def relative(self) -> float:
        """Mean absolute error per counted unit: 0.1 means off by a tenth, in the mean."""
        return self.mean_absolute / self.mean_count if self.mean_count else 0.0


@dataclass(frozen=True)
class TableErrors:
    """The comparison of one table at one level.

    A cell counts if it is nonempty before or after; cells empty in both are no news.
    `by_size` groups cells by the true total of their area in this table; `cells` holds
    `area, <by columns>, before, after, total`, computed once.
    """

    table: Table
    level: str
    errors: Errors
    by_size: dict[str, Errors]
    cells: Frame = field(repr=False, compare=False)


@dataclass(frozen=True)
class Comparison:
    """Two censuses compared; `missing` says why a table (at a level) could not be counted."""

    tables: tuple[TableErrors, ...]
    missing: dict[str, str]

    def at(self, table: str, level: str) -> TableErrors:
        """Return the comparison of one table at one level."""
        for found in self.tables:
            if (found.table.name, found.level) == (table, level):
                return found
        raise BadInput(f"table '{table}' was not compared at level '{level}'.")


def compare(before: Census, after: Census, tables: Iterable[str] | None = None) -> Comparison:
    """Return the errors of every table of the schema (or of those named) at its levels.

    Both censuses must be opened on one engine. A table that needs an optional column
    this census does not have is listed in `missing`.
    """
    if before.engine is not after.engine:
        raise BadInput("open both censuses on one engine to compare them.")
    schema = before.schema
    wanted = schema.tables if tables is None else [schema.table(name) for name in tables]
    areas = before.geography.collect_schema().names()
    compared: list[TableErrors] = []
    missing: dict[str, str] = {}
    for table in wanted:
        for level in table.levels:
            if level not in areas:
                missing[f"{table.name} ({level})"] = f"this census has no column '{level}'."
                continue
            try:
                cells = paired_cells(before, after, table, level)
            except BadInput as problem:
                missing[table.name] = str(problem)
                break
            compared.append(_table_errors(before, table, level, cells))
    return Comparison(tuple(compared), missing)


def paired_cells(before: Census, after: Census, table: Table, level: str) -> Frame:
    """Return `area, <by columns>, before, after`; a cell missing on one side counts 0."""
    zero, count = nw.lit(0, dtype=nw.Int64), nw.col("count").cast(nw.Int64)
    columns = ["area", *table.by]
    left = tabulate(before, table, level).select(*columns, before=count, after=zero)
    right = tabulate(after, table, level).select(*columns, before=zero, after=count)
    # Stacked and summed rather than joined: a missing code equals itself in a group only.
    stacked = nw.concat([left, right])
    sums = {name: nw.col(name).sum().cast(nw.Int64) for name in ("before", "after")}
    return stacked.group_by(*columns).agg(**sums)


def _table_errors(census: Census, table: Table, level: str, cells: Frame) -> TableErrors:
    totals = cells.with_columns(total=nw.col("before").sum().over("area").cast(nw.Int64))
    kept = census.engine.materialise(totals)
    measured = _measured(kept)
    overall = census.engine.rows(measured.select(**_summary()))[0]
    grouped = measured.group_by("size_class").agg(**_summary())
    found = {row[0]: row[1:] for row in census.engine.rows(grouped)}
    by_size = {label: _errors(found[label]) for label, _ in SIZE_CLASSES if label in found}
    return TableErrors(table, level, _errors(overall), by_size, kept)


def _measured(cells: Frame) -> Frame:
    """Add the error of each cell, its size and square, and the size class of its area."""
    error = (nw.col("after") - nw.col("before")).cast(nw.Float64)
    label: nw.Expr = nw.lit(SIZE_CLASSES[0][0])
    for name, lowest in SIZE_CLASSES[1:]:
        label = nw.when(nw.col("total") >= lowest).then(nw.lit(name)).otherwise(label)
    return cells.with_columns(
        error=error,
        absolute=error.abs(),
        square=error * error,
        changed=nw.when(nw.col("before") != nw.col("after")).then(1).otherwise(0),
        size_class=label,
    )


def _summary() -> dict[str, nw.Expr]:
    """Return the expressions of `Errors`, in its order."""
    return {
        "n_cells": nw.len(),
        "n_changed": nw.col("changed").sum(),
        "mean_count": nw.col("before").mean(),
        "mean_absolute": nw.col("absolute").mean(),
        "mean_square": nw.col("square").mean(),
        "mean_error": nw.col("error").mean(),
        "percentile": nw.col("absolute").quantile(PERCENTILE, interpolation="linear"),
        "largest": nw.col("absolute").max(),
    }


def _errors(row: tuple[Any, ...]) -> Errors:
    cells, changed, count, absolute, square, mean, percentile, largest = row
    if not cells:
        return Errors(0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)
    return Errors(
        int(cells),
        int(changed),
        float(count),
        float(absolute),
        float(square) ** 0.5,
        float(mean),
        float(percentile),
        int(largest),
    )
