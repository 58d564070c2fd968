"""Check a whole census against its schema and list everything that is wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import narwhals as nw

from discreet.census.census import Census
from discreet.census.checks import FILE, ROW
from discreet.census.declarations import TableName
from discreet.census.examine import TABLES, Examination, Loaded, write_values
from discreet.census.findings import (
    BUILT_IN,
    Finding,
    Findings,
    Waiver,
    read_waivers,
    recorded_waivers,
)
from discreet.census.schema import Schema, model_columns


def validate(
    census: Census,
    waivers: Path | Iterable[Waiver] | None = None,
    values: Path | None = None,
) -> Findings:
    """Return everything in which `census` breaks its schema.

    Parameters
    ----------
    waivers
        A waiver file, or waivers already read; default: those the folder was made with.
    values
        A folder for `values.csv`, which lists the values at fault and is readable by its
        owner only. Without it no value leaves the engine.
    """
    schema, census = census.schema, census.keyed()
    if waivers is None:
        given = [*census.waivers]
        if census.folder is not None:
            given = recorded_waivers(census.folder)
    else:
        given = read_waivers(waivers, schema) if isinstance(waivers, Path) else list(waivers)
    tables: dict[TableName, Loaded] = {"geography": _with_rows(census, "geography")}
    if census.units is not None:
        tables["units"] = _with_rows(census, "units")
    if census.persons is not None:
        tables["persons"] = _with_rows(census, "persons")
    structure = structure_findings(schema, tables)
    fit = {place: _of_right_type(schema, place, table) for place, table in tables.items()}
    examination = Examination(census.engine, schema, fit, keep_values=values is not None)
    examined = examination.run()
    if values is not None:
        write_values(values, examination.values)
    return Findings((*structure, *examined.items), examined.not_checked).waive(given)


def _with_rows(census: Census, place: TableName) -> Loaded:
    """Return the table with row numbers, which only its files can give."""
    if census.folder is None:
        return Loaded(census.table(place), place)
    single = census.folder / f"{place}.parquet"
    path = single if single.exists() else census.folder / place
    frame = census.engine.read_parquet(path, row=ROW, file=FILE)
    return Loaded(frame, single.name if path == single else f"{place}/")


def structure_findings(schema: Schema, tables: Mapping[TableName, Loaded]) -> list[Finding]:
    """Return missing tables, and missing, unknown and wrongly typed columns."""
    found = [absent_table(place) for place in TABLES if place not in tables]
    for place, table in tables.items():
        found += _column_findings(schema, place, table)
    return with_wanted(found)


def with_wanted(found: Iterable[Finding]) -> list[Finding]:
    """Say of unknown columns which ones their file lacks: one may have another name there."""
    listed = list(found)
    wanted: dict[str, list[str]] = {}
    for item in listed:
        if item.rule == "column":
            wanted.setdefault(item.file, []).append(item.column)
    return [
        dataclasses.replace(
            item, title=f"{item.title}; columns wanted and missing: {', '.join(wanted[item.file])}"
        )
        if item.rule == "unknown-column" and item.file in wanted
        else item
        for item in listed
    ]


def absent_table(place: TableName) -> Finding:
    """Return the finding that a census has no such table."""
    return Finding("table", BUILT_IN["table"], place, place, "warn", 1)


def column_finding(
    rule: str,
    place: TableName,
    file: str,
    column: str,
    severity: Literal["error", "warn"] = "error",
) -> Finding:
    """Return a finding about a column as a whole."""
    return Finding(rule, BUILT_IN[rule], place, file, severity, 1, column)


def _column_findings(schema: Schema, place: TableName, table: Loaded) -> Iterator[Finding]:
    known = model_columns(schema, place, "unit_id" in table.columns)
    for name, required in known.items():
        if name not in table.columns and required:
            yield column_finding("column", place, table.file, name)
        elif name in table.columns and not _fits(schema, place, table, name):
            yield column_finding("type", place, table.file, name)
    columns = [name for name in table.columns if name not in (ROW, FILE)]
    for position, name in enumerate(columns, 1):
        if name not in known:
            # The name is not shown: in a file without header it would be data.
            unnamed = f"column {position}"
            yield column_finding("unknown-column", place, table.file, unnamed, "warn")


def _fits(schema: Schema, place: TableName, table: Loaded, name: str) -> bool:
    dtype, variable = table.columns[name], schema.variables(place).get(name)
    if name in ("unit_id", "person_key", "donor_id"):
        return dtype.is_integer()
    if variable is None or variable.kind == "text":
        return isinstance(dtype, nw.String)
    return dtype.is_integer() or (variable.kind == "real" and dtype.is_float())


def _of_right_type(schema: Schema, place: TableName, table: Loaded) -> Loaded:
    known = model_columns(schema, place, "unit_id" in table.columns)
    fit = [n for n in known if n in table.columns and _fits(schema, place, table, n)]
    rows = [name for name in (ROW, FILE) if name in table.columns]
    return Loaded(table.frame.select(*rows, *fit), table.file)
