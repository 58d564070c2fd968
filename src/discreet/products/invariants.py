"""Recompute invariants from microdata, and say where two data sets differ on them."""

from __future__ import annotations

import narwhals as nw

from discreet.census import Census, unit_records
from discreet.engine import Frame
from discreet.errors import BadInput
from discreet.spec import Invariant, Specification


def invariant_counts(census: Census, invariant: Invariant) -> Frame:
    """Return `cell, count`: the exact counts an invariant fixes, one text per cell."""
    columns = [invariant.level, *invariant.by]
    if invariant.whole_record:
        if invariant.of != "units":
            raise BadInput("only whole records of units can be counted.")
        wanted = ["unit_id", *dict.fromkeys(columns)]
        rows = census.frame("units", wanted, where=invariant.where)
        rows = rows.join(unit_records(census), on="unit_id", how="left")
        columns = [*columns, "record"]
    else:
        rows = census.frame(invariant.of, columns, where=invariant.where)
    cells = census.engine.fingerprint(rows, list(dict.fromkeys(columns)), "cell")
    return cells.group_by("cell").agg(count=nw.len())


def differing_cells(invariant: Invariant, before: Census, after: Census) -> int:
    """Return in how many cells of an invariant two data sets differ.

    Both must be opened on one engine.
    """
    left = invariant_counts(before, invariant)
    right = invariant_counts(after, invariant).rename({"count": "count_after"})
    joined = left.join(right, on="cell", how="full").with_columns(
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
