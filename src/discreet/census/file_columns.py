"""Say which columns of somebody's files a finding is about: findings name columns of the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from discreet.census.declarations import TableName
from discreet.census.examine import TABLES, Loaded
from discreet.census.findings import Finding
from discreet.census.layout import Layout
from discreet.census.sources import Sources


class FileColumns:
    """The columns of files that the columns of mapped tables are made of."""

    def __init__(
        self, sources: Sources, layout: Layout, tables: Mapping[TableName, Loaded]
    ) -> None:
        self._sources, self._layout, self._tables = sources, layout, tables
        self._made_of = {place: dict(self._of_table(place)) for place in tables}

    def tell(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings of mapped tables with the columns of the files."""
        return [self._told(item) for item in findings]

    def _told(self, item: Finding) -> Finding:
        shown = {name: text for name in item.columns if (text := self._shown(name, item.table))}
        title, plan = item.title, self._layout.tables[item.table]
        if item.rule == "missing" and plan.lookup is not None and item.column in shown:
            other = self._sources.open(plan.lookup.table).file
            if other in self._made_of[item.table].get(item.column, {}):
                title += f": {other} has a row with the same {plan.lookup.by}, and the value in it"
        return dataclasses.replace(item, title=title, made_of=shown)

    def _shown(self, name: str, place: TableName) -> str:
        """Return what a column is made of, as a finding about `place` says it, or nothing."""
        for home in TABLES[TABLES.index(place) :: -1]:
            if home in self._tables and name in self._tables[home].columns:
                files = self._made_of[home].get(name, {})
                own = self._tables[place].file
                texts = [
                    ", ".join(columns) + (f" of {file}" if file != own else "")
                    for file, columns in files.items()
                ]
                return "; ".join(texts)
        return ""  # computed from others

    def _of_table(self, place: TableName) -> Iterable[tuple[str, dict[str, list[str]]]]:
        """Yield the columns that are not just taken from their namesake, with files and columns."""
        plan, there = self._layout.tables[place], {*self._sources.open(place).columns}
        if plan.lookup is not None:
            other = self._sources.open(plan.lookup.table)
            there |= {f"{plan.lookup.table}.{name}" for name in other.columns}
        made = {n: [p.column for p in m.for_file(there).from_] for n, m in plan.columns.items()}
        if plan.expand is not None:
            made[plan.expand.into] = [*plan.expand.counts.values()]
            made |= {name: [flag.column] for name, flag in plan.expand.flags.items()}
        for name, columns in made.items():
            if columns not in ([], [name]):
                yield name, self._by_file(place, columns)

    def _by_file(self, place: TableName, columns: list[str]) -> dict[str, list[str]]:
        lookup, found = self._layout.tables[place].lookup, dict[str, list[str]]()
        for column in columns:
            table, _, name = column.partition(".")
            away = lookup is not None and table == lookup.table and name
            file = self._sources.open(lookup.table if lookup and away else place).file
            found.setdefault(file, []).append(name if away else column)
        return found
