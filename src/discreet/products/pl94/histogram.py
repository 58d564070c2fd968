"""Count a census once, by block and cell of the histograms; every table is a sum of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import Census
from discreet.config import suggest
from discreet.engine import Engine, Frame
from discreet.errors import BadInput
from discreet.products.pl94.shells import AXES, HOUSEHOLD, SHAPE, UNIT_CELLS

Entries = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class BlockCounts:
    """Counts of a census by block: (block, place, count) of every place that is not empty.

    Blocks are numbered in the order of their code, those without a living quarter are left
    out. Of each level there are the codes of its areas, in order, and the number of each
    block's area, -1 for a block in none.
    """

    codes: Mapping[str, NDArray[Any]] = field(repr=False)
    area_of: Mapping[str, NDArray[np.int64]] = field(repr=False)
    persons: Entries | None = field(repr=False)
    units: Entries | None = field(repr=False)


def block_counts(census: Census, levels: Sequence[str]) -> BlockCounts:
    """Count the persons and housing units of a census by block and place of the histogram."""
    _check_levels(census, levels)
    engine, block = census.engine, census.schema.block
    people = quarters = None
    if census.persons is not None:
        people = engine.materialise(_by_place(census, _persons(census)))
    geography = census.geography.select(*dict.fromkeys([*levels, block]))
    if census.units is not None:
        quarters = engine.materialise(_by_place(census, _units(census)))
        # Persons without a link to a unit may live where there is none.
        counted = [frame.select(block) for frame in (quarters, people) if frame is not None]
        geography = geography.join(engine.distinct(nw.concat(counted)), on=block, how="inner")
        quarters = quarters.filter(~nw.col("place").is_null())
    ranks = {f"{level} number": _rank(level) for level in levels}
    names = {name: _quoted(name) for name in geography.collect_schema().names()}
    ranked = engine.project(geography, {"node": _rank(block), **names, **ranks})
    places = engine.materialise(ranked)
    numbers = engine.to_numpy(places.select("node", *ranks).sort("node"))
    nodes = places.select("node", block)
    return BlockCounts(
        {level: _codes(engine, places, level) for level in levels},
        {level: numbers[f"{level} number"].astype(np.int64) for level in levels},
        None if people is None else _entries(census, people, nodes),
        None if quarters is None else _entries(census, quarters, nodes),
    )


def _check_levels(census: Census, levels: Sequence[str]) -> None:
    known, present = census.schema.area_names, census.geography.collect_schema().names()
    for level in levels:
        if level not in known:
            raise BadInput(
                f"schema {census.schema.name} has no level '{level}'.{suggest(level, known)}"
            )
        if level not in present:
            raise BadInput(f"this census has no column geography.{level}. Ask for another level.")


def _rank(level: str) -> str:
    """Return, as SQL, the number of a row's area in the order of codes, or -1."""
    name = _quoted(level)
    rank = f"dense_rank() over (order by {name} nulls last) - 1"
    return f"case when {name} is null then -1 else {rank} end"


def _codes(engine: Engine, places: Frame, level: str) -> NDArray[Any]:
    """Return the codes of the areas of a level, in order."""
    inside = engine.distinct(places.filter(~nw.col(level).is_null()).select(level))
    return engine.to_numpy(inside.sort(level))[level]


def person_records(census: Census) -> Frame:
    """Return block and categories (AXES) of every person, from either layout of records."""
    block, schema = census.schema.block, census.schema
    quarters = "hhgq" if schema.home("hhgq", "persons") else "gq_major"
    columns = [quarters, *(name for name in AXES if name != "hhgq")]
    for name in columns:
        if schema.home(name, "persons") is None:
            raise BadInput(
                f"the products of Public Law 94-171 need the column '{name}' of persons, and "
                f"schema {schema.name} has none. Use a census of the profile us-decennial or pl94."
            )
    rows = census.frame("persons", [block, *columns])
    if quarters == "gq_major":
        rows = rows.with_columns(hhgq=nw.col("gq_major").fill_null(HOUSEHOLD))
    return rows.select(block, *AXES)


def _persons(census: Census) -> Frame:
    """Return block and place of every person."""
    place: nw.Expr = nw.lit(0, dtype=nw.Int32)
    for name, size in zip(AXES, SHAPE, strict=True):
        place = place * size + _numbered(name, AXES[name])
    return person_records(census).select(census.schema.block, place=place)


def _units(census: Census) -> Frame:
    """Return block and place of every unit; group quarters have none."""
    block = census.schema.block
    return census.frame("units", [block, "kind"]).select(block, place=_numbered("kind", UNIT_CELLS))


def _by_place(census: Census, rows: Frame) -> Frame:
    return rows.group_by(census.schema.block, "place").agg(count=nw.len())


def _numbered(column: str, categories: Sequence[str]) -> nw.Expr:
    """Return the number of a column's category; missing where it is none of them."""
    first, value = categories[0], nw.col(column)
    if first.isdigit():  # codes 01, 02, ...: far faster read as numbers than looked up
        number = value.cast(nw.Int32) - int(first)
        return nw.when((number >= 0) & (number < len(categories))).then(number)
    found: nw.Expr = nw.lit(None, dtype=nw.Int32)
    for number_of, category in reversed(list(enumerate(categories))):
        here = nw.lit(number_of, dtype=nw.Int32)
        found = nw.when(value == category).then(here).otherwise(found)
    return found


def _entries(census: Census, counts: Frame, nodes: Frame) -> Entries:
    """Return counts by block and place as arrays, in order."""
    placed = counts.join(nodes, on=census.schema.block, how="inner")
    placed = placed.select("node", "place", "count").sort("node", "place")
    arrays = census.engine.to_numpy(placed)
    return (
        arrays["node"].astype(np.int64),
        arrays["place"].astype(np.int32),
        arrays["count"].astype(np.int64),
    )


def _quoted(name: str) -> str:
    return f'"{name}"'
