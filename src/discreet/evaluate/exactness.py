"""Which tables are exact because the promise says so, and whether it was kept.

A count that came out unchanged is no proof that it always will. Only what follows from
the declared invariants is exact for every draw; this file works that out, and checks
the invariants themselves on the records.
"""

from __future__ import annotations

from dataclasses import dataclass

import narwhals as nw

from discreet.census import Census, Schema, Table
from discreet.products import invariant_counts
from discreet.spec import Invariant, MarginalTable, Specification


@dataclass(frozen=True)
class InvariantCheck:
    """One declared invariant, recomputed from the records before and after."""

    invariant: Invariant
    cells: int
    differing: int

    @property
    def holds(self) -> bool:
        """Tell whether not a single cell differs."""
        return self.differing == 0


def check_each_invariant(
    specification: Specification, before: Census, after: Census
) -> list[InvariantCheck]:
    """Return, for every declared invariant, the cells compared and how many differ."""
    return [_check(invariant, before, after) for invariant in specification.multiverse.invariants]


def _check(invariant: Invariant, before: Census, after: Census) -> InvariantCheck:
    zero, count = nw.lit(0, dtype=nw.Int64), nw.col("count").cast(nw.Int64)
    left = invariant_counts(before, invariant).select("_cell", left=count, right=zero)
    right = invariant_counts(after, invariant).select("_cell", left=zero, right=count)
    sums = nw.concat([left, right]).group_by("_cell")
    cells = sums.agg(left=nw.col("left").sum(), right=nw.col("right").sum())
    differs = nw.when(nw.col("left") != nw.col("right")).then(1).otherwise(0)
    counted = cells.with_columns(differs=differs)
    totals = counted.select(cells=nw.len(), differing=nw.col("differs").sum())
    found, differing = before.engine.rows(totals)[0]
    return InvariantCheck(invariant, int(found), int(differing or 0))


def promised_exact(specification: Specification, census: Census, table: Table, level: str) -> bool:
    """Tell whether a table at a level follows from the declared invariants alone.

    Ours, proved here: a table counts units (or their members), and every unit is of one
    kind. If for each kind counted some invariant fixes, in areas of which every `level`
    area is a union, columns that determine the counted ones, then the table is a sum of
    invariant counts. The converse does not hold: False means "not shown to be exact".
    """
    if table.count == "persons" and not census.linked:
        return False  # what is fixed of units says nothing about persons without one
    schema = census.schema
    kinds = _kinds(schema, table)
    return all(
        any(_covers(i, schema, table, level, kind) for i in specification.multiverse.invariants)
        for kind in kinds
    )


def _kinds(schema: Schema, table: Table) -> list[str]:
    """Return the kinds of unit a table may count."""
    codes = schema.units["kind"].codes or {}
    asked = table.where.get("kind")
    if isinstance(asked, str):
        asked = [asked]
    return [kind for kind in codes if not isinstance(asked, list) or kind in asked]


def _covers(invariant: Invariant, schema: Schema, table: Table, level: str, kind: str) -> bool:
    if not isinstance(invariant, MarginalTable):
        return False
    fixed_kinds = invariant.where.get("kind")
    others = set(invariant.where) - {"kind"}
    if invariant.of != "units" or others or (fixed_kinds is not None and kind not in fixed_kinds):
        return False
    if not _union_of(schema, level, invariant.level):
        return False
    columns = [*table.by, *(name for name in table.where if name != "kind")]
    if invariant.whole_record:
        # Everything of the unit and its members; of the location only what lies above.
        return all(_of_record(invariant, schema, table, column) for column in columns)
    if table.count == "persons":
        return not columns and "size" in invariant.by and "size" in schema.computed_units
    return all(_determined(invariant, schema, column) for column in columns)


def _union_of(schema: Schema, level: str, finer: str) -> bool:
    """Tell whether every area of `level` is a union of areas of `finer`."""
    if level == finer or finer == schema.block:
        return True
    levels = schema.levels
    return level in levels and finer in levels and levels.index(level) < levels.index(finer)


def _of_record(invariant: Invariant, schema: Schema, table: Table, column: str) -> bool:
    if column in schema.area_names:
        return _union_of(schema, column, invariant.level)
    if schema.home(column, table.count) == "geography":
        return invariant.level == schema.block
    return column not in ("any", "all", "not", "same")


def _determined(invariant: Invariant, schema: Schema, column: str) -> bool:
    """Tell whether a unit column is one the invariant fixes, or a recode of one."""
    if column in (*invariant.by, "kind"):
        return True
    of = getattr(schema.computed_units.get(column), "of", None)
    return of is not None and _determined(invariant, schema, of)
