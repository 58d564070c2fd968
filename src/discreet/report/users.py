"""For data users: which tables to trust to the last digit, and how far off the others are."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.census import Census
from discreet.evaluate import Comparison, TableErrors, promised_exact
from discreet.report.words import level_title
from discreet.spec import Specification


@dataclass(frozen=True)
class Entry:
    """One table at one level: exact by promise, the same this time, or changed."""

    status: str
    found: TableErrors | None = None


@dataclass(frozen=True)
class Row:
    """One table with an entry per level; None where it is not published."""

    name: str
    title: str
    entries: list[Entry | None]


@dataclass(frozen=True)
class Users:
    """The guide: levels across, tables down, and the levels at which all is exact."""

    levels: list[str]
    rows: list[Row]
    exact_levels: list[str]
    finest_exact: str | None


def guide(census: Census, specification: Specification, comparison: Comparison) -> Users:
    """Return what is exact by promise and what is not, for every table and level."""
    entries: dict[tuple[str, str], Entry] = {}
    for found in comparison.tables:
        promised = promised_exact(specification, census, found.table, found.level)
        status = "promised" if promised else "changed" if found.errors.changed else "same"
        entries[found.table.name, found.level] = Entry(status, found)
    levels = [name for name in census.schema.area_names if any(at == name for _, at in entries)]
    tables = {found.table.name: found.table for found in comparison.tables}
    rows = [
        Row(name, table.title, [entries.get((name, level)) for level in levels])
        for name, table in tables.items()
    ]
    exact = [level for level in levels if _all_promised(entries, level)]
    on_spine = [level for level in census.schema.levels if level in exact]
    titles = {level: level_title(census.schema, level) for level in levels}
    return Users(
        [titles[level] for level in levels],
        rows,
        [titles[level] for level in exact],
        titles[on_spine[-1]] if on_spine else None,
    )


def _all_promised(entries: dict[tuple[str, str], Entry], level: str) -> bool:
    return all(entry.status == "promised" for (_, at), entry in entries.items() if at == level)
