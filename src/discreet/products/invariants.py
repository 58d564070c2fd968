"""Recompute invariants from microdata, and say where two data sets differ on them."""

from __future__ import annotations

import math

import narwhals as nw

from discreet.census import Census, Condition, kind_of, unit_records
from discreet.engine import Frame
from discreet.errors import BadInput
from discreet.spec import (
    WHOLE,
    Indicator,
    Inequality,
    Invariant,
    LinearCombination,
    MarginalTable,
    Specification,
)


def invariant_counts(census: Census, invariant: Invariant) -> Frame:
    """Return `_cell, count`: the exact numbers an invariant fixes, one text per cell.

    Cells without rows are left out and stand for 0. Of an inequality 1 is counted where
    it holds differently from an empty cell, so that empty cells need no list of areas.
    """
    if isinstance(invariant, LinearCombination):
        return _weighted(census, invariant)
    counted = _counted(census, invariant)
    if isinstance(invariant, Indicator):
        return counted.with_columns(count=nw.lit(1, dtype=nw.Int64))
    if isinstance(invariant, Inequality):
        enough = nw.col("count") >= (invariant.at_least if invariant.at_least is not None else 0)
        if invariant.at_most is not None:
            enough = nw.col("count") <= invariant.at_most
        differs = ~enough if invariant.holds(0) else enough
        return counted.filter(differs).with_columns(count=nw.lit(1, dtype=nw.Int64))
    return counted


def _weighted(census: Census, invariant: LinearCombination) -> Frame:
    """Return the weighted sum per area, in whole multiples of one over the common denominator."""
    scale = math.lcm(*(weight.denominator for weight in invariant.weights.values()))
    columns = _cell_columns(invariant)
    rows = census.frame(invariant.of, columns, where=_where(census, invariant))
    areas = [column for column in columns if column == invariant.level]
    total = nw.lit(0, dtype=nw.Int64)
    for cell, weight in invariant.weights.items():
        chosen = nw.lit(True)
        for column, code in zip(invariant.by, cell.split("|"), strict=False):
            chosen = chosen & (nw.col(column).cast(nw.String) == code)
        total = total + nw.when(chosen).then(int(weight * scale)).otherwise(0)
    summed = census.engine.fingerprint(rows.with_columns(count=total), areas, "_cell")
    sums = summed.group_by("_cell").agg(count=nw.col("count").sum().cast(nw.Int64))
    return sums.filter(nw.col("count") != 0)


def _cell_columns(invariant: Invariant) -> list[str]:
    area = [] if invariant.level == WHOLE else [invariant.level]
    return list(dict.fromkeys([*area, *invariant.by]))


def _counted(census: Census, invariant: Invariant) -> Frame:
    columns, where = _cell_columns(invariant), _where(census, invariant)
    if isinstance(invariant, MarginalTable) and invariant.whole_record:
        if invariant.of != "units":
            raise BadInput("only whole records of units can be counted.")
        wanted = ["unit_id", *dict.fromkeys(columns)]
        rows = census.frame("units", wanted, where=where)
        records = unit_records(census, invariant.without).select("unit_id", _record="record")
        rows = rows.join(records, on="unit_id", how="left")
        columns = [*columns, "_record"]
    else:
        any_column = census.table(invariant.of).collect_schema().names()[0]
        rows = census.frame(invariant.of, columns or [any_column], where=where)
    cells = census.engine.fingerprint(rows, list(dict.fromkeys(columns)), "_cell")
    return cells.group_by("_cell").agg(count=nw.len())


def _where(census: Census, invariant: Invariant) -> Condition:
    """Return the condition of an invariant, which states all values as text, for its columns."""

    where: dict[str, list[str] | list[int]] = {}
    for column, codes in invariant.where.items():
        where[column] = codes
        if kind_of(census.schema, invariant.of, column) != "text":
            try:
                where[column] = [int(code) for code in codes]
            except ValueError:
                raise BadInput(
                    f"invariant '{invariant.name}': '{column}' holds numbers. List integers."
                ) from None
    return where


def differing_cells(invariant: Invariant, before: Census, after: Census) -> int:
    """Return in how many cells of an invariant two data sets differ.

    Both must be opened on one engine.
    """
    left = invariant_counts(before, invariant)
    right = invariant_counts(after, invariant).rename({"count": "count_after"})
    joined = left.join(right, on="_cell", how="full").with_columns(
        nw.col("count").fill_null(0), nw.col("count_after").fill_null(0)
    )
    differing = joined.filter(nw.col("count") != nw.col("count_after")).select(cells=nw.len())
    return int(before.engine.rows(differing)[0][0])


def check_invariants(specification: Specification, before: Census, after: Census) -> dict[str, int]:
    """Return the number of differing cells per declared invariant (0 where it holds)."""
    return {
        invariant.name: differing_cells(invariant, before, after)
        for invariant in specification.multiverse.invariants
    }
