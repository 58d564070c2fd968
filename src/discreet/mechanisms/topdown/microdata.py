"""Write estimates of the smallest areas as records: protected microdata.

A count of five in a cell of a block becomes five equal records with that block. Persons and
living quarters are estimated apart, so no record names a unit. Rows are sorted by released
values and ids are positions in that order; both tell nothing that the counts do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.census import Schema, write_header
from discreet.engine import Engine, Frame
from discreet.mechanisms.topdown.histogram import Histogram
from discreet.mechanisms.topdown.released import (
    person_cells,
    quarters_cells,
    released_schema,
    unit_cells,
)

Integers = NDArray[np.int64]

#: Cells expanded at a time: bounds the memory, and the size of a part of a table.
CELLS_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class Blocks:
    """Counts of the smallest areas: `cell[start[k]:start[k + 1]]` are those of node k."""

    histogram: Histogram
    start: Integers
    cell: NDArray[np.int32]
    count: Integers


@dataclass(frozen=True)
class Rows:
    """Counted records: node and cell of each count, and the values of a cell's records."""

    node: Integers
    cell: Integers
    count: Integers
    values: Mapping[str, NDArray[Any]]


def write_release(
    engine: Engine,
    folder: Path,
    census_schema: Schema,
    geography: Frame,
    nodes: Frame,
    persons: Blocks | None = None,
    units: Blocks | None = None,
    quarters: Integers | None = None,
    note: str = "",
) -> Schema:
    """Write a census folder of protected records and return its schema.

    Parameters
    ----------
    geography
        The public geography.
    nodes
        `node` and `code` of the smallest areas, as estimates number them.
    quarters
        The exact number of units by category of quarters of persons and node. Collective
        units are written from these; all other units come from the estimate of units.
        Without that estimate there are no units.
    """
    schema = released_schema(
        census_schema,
        None if persons is None else persons.histogram,
        None if units is None else units.histogram,
    )
    codes = engine.materialise(nodes.select("node", "code"))
    if persons is not None:
        rows = _estimated(persons, person_cells(schema, persons.histogram))
        _write(engine, folder, schema, "persons", codes, rows)
    if units is not None:
        listed = [_estimated(units, unit_cells(schema, units.histogram))]
        if persons is not None and quarters is not None:
            cells = quarters_cells(schema, persons.histogram, units.histogram)
            listed.append(_invariant(quarters, cells))
        _write(engine, folder, schema, "units", codes, _together(listed))
    _write_geography(engine, folder, census_schema, schema, geography)
    write_header(folder, schema, "released", note)
    return schema


def _write_geography(
    engine: Engine, folder: Path, census_schema: Schema, schema: Schema, geography: Frame
) -> None:
    """Write areas and attributes; what the census calls confidential is not for the release."""
    present = geography.collect_schema().names()
    secret = {name for name, column in census_schema.geography.items() if column.confidential}
    names = [*schema.area_names, *(name for name in schema.geography if name not in secret)]
    columns = {name: name for name in names if name in present}
    engine.write_parquet(geography, folder / "geography.parquet", [schema.block], columns)


def _estimated(estimate: Blocks, values: Mapping[str, NDArray[Any]]) -> Rows:
    node = np.repeat(np.arange(estimate.start.size - 1), np.diff(estimate.start))
    return Rows(node, estimate.cell.astype(np.int64), estimate.count, values)


def _invariant(quarters: Integers, values: Mapping[str, NDArray[Any]]) -> Rows:
    """Return the collective units: cells are categories of quarters, in their order."""
    # A category that is not collective has no kind here and is left out.
    collective = np.array([kind is not None for kind in values["kind"]])
    counts = np.where(collective[:, None], quarters[: collective.size], 0).T
    node, cell = np.nonzero(counts)
    return Rows(node, cell, counts[node, cell], values)


def _together(listed: list[Rows]) -> Rows:
    """Return all counts in the order of node and cell; cells of the second follow the first's."""
    names = dict.fromkeys(name for rows in listed for name in rows.values)
    sizes = [len(next(iter(rows.values.values()))) for rows in listed]
    before = np.concatenate([[0], np.cumsum(sizes)])
    empty = {rows_size: np.full(rows_size, None, dtype=object) for rows_size in sizes}
    values = {
        name: np.concatenate(
            [rows.values.get(name, empty[size]) for rows, size in zip(listed, sizes, strict=True)]
        )
        for name in names
    }
    node = np.concatenate([rows.node for rows in listed])
    cell = np.concatenate([rows.cell + first for rows, first in zip(listed, before, strict=False)])
    count = np.concatenate([rows.count for rows in listed])
    order = np.lexsort((cell, node))
    return Rows(node[order], cell[order], count[order], values)


def _write(
    engine: Engine, folder: Path, schema: Schema, table: str, codes: Frame, rows: Rows
) -> None:
    """Write one record for each of the counted, in parts if there are many cells."""
    rows = _by_code(engine, codes, rows)
    cells = {"_cell": np.arange(len(next(iter(rows.values.values())))), **rows.values}
    texts = engine.from_numpy(cells)
    places = codes.select(_node="node", _code="code")
    key = "person_key" if table == "persons" else "unit_id"
    # Ids come from the counts before, not from the order in which parts are worked on.
    last = np.cumsum(rows.count)
    record = "unnest(range(_last - _count + 1, _last + 1))"
    ids = {schema.block: "_code", key: record}
    columns = ids if table == "persons" else {key: record, schema.block: "_code"}
    columns |= {name: f'"{name}"' for name in rows.values}
    starts = range(0, max(rows.node.size, 1), CELLS_AT_A_TIME)
    for part, begin in enumerate(starts):
        some = slice(begin, begin + CELLS_AT_A_TIME)
        lent = {
            "_node": rows.node[some],
            "_cell": rows.cell[some],
            "_count": rows.count[some],
            "_last": last[some],
        }
        name = f"{table}/part-{part:05d}.parquet" if len(starts) > 1 else f"{table}.parquet"
        with engine.lend(lent) as counted:
            named = counted.join(places, on="_node", how="inner")
            named = named.join(texts, on="_cell", how="inner").sort("_last")
            engine.write_parquet(engine.project(named, columns), folder / name)


def _by_code(engine: Engine, codes: Frame, rows: Rows) -> Rows:
    """Return the rows in the order of the areas' codes: that of nodes may be another."""
    order = engine.to_numpy(codes.sort("code").select("node"))["node"].astype(np.int64)
    if np.array_equal(order, np.arange(order.size)):
        return rows
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    place = np.argsort(rank[rows.node], kind="stable")
    return Rows(rows.node[place], rows.cell[place], rows.count[place], rows.values)
