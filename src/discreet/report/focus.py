"""Choose the table and level the pictures show, and bring their numbers together.

No variable or level is named here: a schema with other variables gets pictures of those.
"""

from __future__ import annotations

from dataclasses import dataclass

import narwhals as nw
import numpy as np
import numpy.typing as npt

from discreet.census import Census, Schema, Table
from discreet.evaluate import Comparison, TableErrors, entropy
from discreet.report.words import code_label

Numbers = npt.NDArray[np.int64]

#: Categories shown one by one; the smallest beyond these are left to the full list.
MOST_CATEGORIES = 8


@dataclass(frozen=True)
class Category:
    """One value of the variable: its counts per area (areas in the order of `Focus.areas`)."""

    label: str
    before: Numbers
    after: Numbers

    @property
    def seen(self) -> npt.NDArray[np.bool_]:
        """Which areas have any of it, before or after."""
        return (self.before > 0) | (self.after > 0)


@dataclass(frozen=True)
class Focus:
    """The counts of one variable in the areas of one level, before and after."""

    table: Table
    variable: str
    level: str
    areas: list[str]
    categories: list[Category]

    @property
    def totals(self) -> Numbers:
        """True total of every area."""
        totals = np.zeros(len(self.areas), dtype=np.int64)
        for category in self.categories:
            totals += category.before
        return totals


def choose(comparison: Comparison, schema: Schema) -> TableErrors | None:
    """Return the comparison that shows most simply what changed, or None.

    Wanted: persons by one variable, all of them, at the finest level above the smallest
    areas at which anything changed. The smallest areas are too many to draw.
    """
    levels = schema.levels[:-1] or schema.levels

    def badness(found: TableErrors) -> tuple[bool, bool, bool, int, int]:
        return (
            found.errors.changed == 0,
            found.table.count != "persons",
            bool(found.table.where),
            len(found.table.by),
            -levels.index(found.level),
        )

    usable = [found for found in comparison.tables if found.table.by and found.level in levels]
    return min(usable, key=badness, default=None)


def collect(census: Census, chosen: TableErrors) -> Focus:
    """Return the counts of the chosen table's first variable, one array per category."""
    variable = chosen.table.by[0]
    sums = {name: nw.col(name).sum().cast(nw.Int64) for name in ("before", "after")}
    summed = chosen.cells.group_by("area", variable).agg(**sums)
    rows = census.engine.rows(summed.select("area", variable, "before", "after"))
    areas = sorted({row[0] for row in rows})
    place = {area: position for position, area in enumerate(areas)}
    values = {row[1] for row in rows}
    counts = {value: np.zeros((2, len(areas)), dtype=np.int64) for value in values}
    for area, value, before, after in rows:
        counts[value][:, place[area]] = before, after
    ordered = sorted(counts, key=lambda value: (value is None, -int(counts[value][0].sum())))
    categories = [
        Category(
            code_label(census.schema, chosen.table, variable, _text(value)),
            counts[value][0],
            counts[value][1],
        )
        for value in ordered
    ]
    return Focus(chosen.table, variable, chosen.level, areas, categories)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def entropy_changes(before: Census, after: Census, focus: Focus) -> npt.NDArray[np.float64]:
    """Return the change of entropy of the focus variable, one per area; 0 for empty ones."""
    old = entropy(before, focus.level, focus.variable, focus.table.count)
    new = entropy(after, focus.level, focus.variable, focus.table.count)
    return np.array([new.get(area, 0.0) - old.get(area, 0.0) for area in focus.areas])


def coordinates(census: Census, level: str) -> dict[str, tuple[float, float]]:
    """Return longitude and latitude of the areas of a level; empty if there are none."""
    present = census.geography.collect_schema().names()
    if not {"longitude", "latitude"} <= set(present):
        return {}
    wanted = (level, "longitude", "latitude")
    rows = census.frame("geography", wanted)
    known = rows.filter(*(~nw.col(name).is_null() for name in wanted))
    means = known.group_by(level).agg(
        longitude=nw.col("longitude").mean(), latitude=nw.col("latitude").mean()
    )
    found = census.engine.rows(means.select(*wanted))
    return {area: (float(x), float(y)) for area, x, y in found}
