"""What changed: the numbers and pictures of the table in focus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.census import Census, Table
from discreet.evaluate import Comparison, TableErrors
from discreet.report import pictures
from discreet.report.focus import (
    MOST_CATEGORIES,
    Category,
    Focus,
    choose,
    collect,
    coordinates,
    entropy_changes,
)
from discreet.report.words import count, decimal, fine_signed, level_title, plain

#: Part of the areas whose change fits on the colour scale; the rest take the last colour.
ON_SCALE = 0.98


@dataclass(frozen=True)
class CategoryErrors:
    """How the counts of one category changed over the areas that have any of it."""

    label: str
    areas: int
    mean: float
    changed: int
    mean_absolute: float
    percentile_90: float
    largest: int
    mean_error: float


@dataclass(frozen=True)
class TopTable:
    """The table in focus at its largest level, summed over all areas of that level."""

    level: str
    chosen: TableErrors
    categories: list[Category]


@dataclass(frozen=True)
class Mixing:
    """Change of entropy per area: how many rose and fell, and its two pictures."""

    rose: int
    fell: int
    same: int
    mean: float
    histogram: str
    map: str | None


@dataclass(frozen=True)
class Changes:
    """Everything the section on changes shows."""

    chosen: TableErrors
    variable: str
    level: str
    counted: str
    areas: int
    top: TopTable | None
    categories: list[CategoryErrors]
    facets: str
    sizes: str
    mixing: Mixing | None


def changes(before: Census, after: Census, comparison: Comparison) -> Changes | None:
    """Return what the section on changes shows; None if no table can be shown."""
    chosen = choose(comparison, before.schema)
    if chosen is None:
        return None
    focus = collect(before, chosen)
    shown = [_category_errors(category) for category in focus.categories]
    return Changes(
        chosen=chosen,
        variable=plain(focus.variable),
        level=level_title(before.schema, focus.level),
        counted=chosen.table.count,
        areas=len(focus.areas),
        top=_top(before, comparison, chosen),
        categories=shown,
        facets=_facets(focus, shown),
        sizes=_sizes(before, comparison, chosen.table),
        mixing=_mixing(before, after, focus),
    )


def _top(census: Census, comparison: Comparison, chosen: TableErrors) -> TopTable | None:
    """Return the table at the largest level of the spine it has, if not the level in focus."""
    levels = [level for level in census.schema.levels if level in chosen.table.levels]
    if not levels or levels[0] == chosen.level:
        return None
    found = comparison.at(chosen.table.name, levels[0])
    focus = collect(census, found)
    return TopTable(level_title(census.schema, levels[0]), found, focus.categories)


def _category_errors(category: Category) -> CategoryErrors:
    before, after = category.before[category.seen], category.after[category.seen]
    error = after - before
    size = np.abs(error)
    return CategoryErrors(
        label=category.label,
        areas=len(before),
        mean=float(before.mean()),
        changed=int((error != 0).sum()),
        mean_absolute=float(size.mean()),
        percentile_90=float(np.quantile(size, 0.9)),
        largest=int(size.max()),
        mean_error=float(error.mean()),
    )


def _facets(focus: Focus, errors: list[CategoryErrors]) -> str:
    panels = [
        pictures.Panel(
            category.label,
            f"mean absolute error {decimal(found.mean_absolute)}",
            category.before[category.seen],
            category.after[category.seen],
        )
        for category, found in zip(focus.categories, errors, strict=True)
    ]
    return pictures.before_and_change(panels[:MOST_CATEGORIES])


def _sizes(census: Census, comparison: Comparison, table: Table) -> str:
    """Draw the errors by size at every level where the table changed."""
    levels = {
        level_title(census.schema, found.level): found.by_size
        for found in comparison.tables
        if found.table.name == table.name and found.errors.changed
    }
    return pictures.errors_by_size(levels, table.count) if levels else ""


def _mixing(before: Census, after: Census, focus: Focus) -> Mixing | None:
    changed = entropy_changes(before, after, focus)
    # Sums in another order differ in the last digits: that is no change.
    changed = np.where(np.abs(changed) < 1e-12, 0.0, changed)
    limit = _limit(changed)
    if limit == 0:
        return None
    areas = level_title(before.schema, focus.level) + " areas"
    return Mixing(
        rose=int((changed > 0).sum()),
        fell=int((changed < 0).sum()),
        same=int((changed == 0).sum()),
        mean=float(changed.mean()),
        histogram=pictures.histogram(changed, limit, "entropy", areas),
        map=_map(before, focus, changed, limit),
    )


def _limit(changed: npt.NDArray[np.float64]) -> float:
    """Return a round end of the colour scale that holds nearly all changes."""
    if not changed.size or not np.abs(changed).max() > 0:
        return 0.0
    wanted = float(np.quantile(np.abs(changed), ON_SCALE)) or float(np.abs(changed).max())
    # Seven equal steps with round borders: the limit is a round number times 7/2.
    power = 10.0 ** np.floor(np.log10(wanted / 3.5))
    step = next(f * power for f in (1, 2, 4, 6, 8, 10) if f * power * 3.5 >= wanted)
    return float(step * 3.5)


def _map(
    census: Census, focus: Focus, changed: npt.NDArray[np.float64], limit: float
) -> str | None:
    where = coordinates(census, focus.level)
    totals = focus.totals
    places = [
        pictures.Place(
            *where[area],
            size=float(totals[index]),
            change=float(changed[index]),
            told=f"{area}: {count(int(totals[index]))}, {fine_signed(float(changed[index]))}",
        )
        for index, area in enumerate(focus.areas)
        if area in where
    ]
    return pictures.dot_map(places, limit, "entropy") if places else None
