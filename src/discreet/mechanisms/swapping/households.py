"""Households of a census as arrays, and numbers for what they have in common.

Rows are the occupied units, sorted by area and then by `unit_id`, so that nothing drawn
for them depends on the order of rows in the input. Codes become whole numbers here; what
they mean stays in the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import Census
from discreet.engine import Engine, Frame
from discreet.errors import BadInput
from discreet.mechanisms.coded import CodedUnits
from discreet.mechanisms.numbering import Codes, Integers, numbered, rows_in_order

Floats = NDArray[np.float64]

#: Households read at a time, areas kept whole: bounds memory at some hundred bytes each.
MOST_HOUSEHOLDS = 8_000_000

#: Stands for a missing number; no count or code is as small.
MISSING = -(2**31)

#: Columns of the geography that say where a block is, and their largest value.
POINT = {"latitude": 90.0, "longitude": 180.0}


@dataclass(frozen=True)
class Places:
    """The blocks in the order of their codes: block number b is row b of every array.

    `codes` are the codes of the areas of `within` in the order of their numbers.
    """

    frame: Frame
    within: str
    codes: tuple[str, ...]
    areas: Mapping[str, Integers]
    latitude: Floats | None
    longitude: Floats | None


@dataclass(frozen=True)
class Households:
    """Occupied units of some whole areas.

    Area number a holds rows `offsets[a]` to `offsets[a + 1]`; `area_codes[a]` is its code.
    Households with equal `stratum` lie in one area and agree on the matching columns;
    those with equal `leave` lie in one area that swapping must leave.
    """

    places: Places
    area_codes: tuple[str, ...]
    offsets: Integers
    unit_id: Integers
    place: Integers
    stratum: Integers
    leave: Integers
    columns: Mapping[str, Codes]

    @property
    def size(self) -> int:
        """Return the number of households."""
        return int(self.unit_id.size)

    def level(self, name: str) -> Integers:
        """Return the number of each household's area of a level."""
        return self.places.areas[name][self.place]


@dataclass(frozen=True)
class Swap:
    """Who trades places with whom: `partner[h]` is h where a household stays.

    `targets` were chosen to be swapped; those in `without_partner` were, but found nobody.
    `notes` counts what a method did beside that, for the internal report. `stay` marks
    households that may not move whatever is drawn; None: there are none.
    """

    partner: Integers
    targets: Integers
    without_partner: Integers
    notes: Mapping[str, int] = field(default_factory=dict)
    stay: NDArray[np.bool_] | None = None


def read_places(
    census: Census, within: str, levels: Sequence[str], *, points: bool = False
) -> Places:
    """Return the blocks with the numbers of their areas, and their points if asked for."""
    engine, block = census.engine, census.schema.block
    if points:
        need_points(census)
    names = list(dict.fromkeys([within, *levels, block]))
    wanted = {f"n_{n}": f'dense_rank() over (order by "{n}") - 1' for n in names}
    wanted |= {column: f"coalesce({column}, 'nan'::double)" for column in POINT if points}
    geography = engine.materialise(
        engine.project(census.geography, {block: f'"{block}"', within: f'"{within}"', **wanted})
    )
    arrays = engine.to_numpy(geography.select(*wanted).sort(f"n_{block}"))
    listed = engine.distinct(geography.select(within)).sort(within)
    frame = geography.select(nw.col(block), nw.col(f"n_{block}").alias("_place"))
    return Places(
        frame=engine.materialise(frame),
        within=within,
        codes=tuple(str(row[0]) for row in engine.rows(listed)),
        areas={name: arrays[f"n_{name}"].astype(np.int64) for name in names},
        latitude=arrays["latitude"] if points else None,
        longitude=arrays["longitude"] if points else None,
    )


def need_points(census: Census) -> None:
    """Refuse a geography without columns for points."""
    present = census.geography.collect_schema().names()
    for column in POINT:
        if column not in present:
            raise BadInput(
                f"geography.{column} is missing: partners are chosen by distance, so every block "
                f"needs a latitude and a longitude. Add both to the geography."
            )


def points_by_number(
    census: Census, numbered: Frame, number: str
) -> tuple[Floats | None, Floats | None]:
    """Return where blocks are in the order of a number given to them, which begins at 1.

    None where the geography has no points at all, not a number where it lacks one.
    """
    engine, block = census.engine, census.schema.block
    if not set(POINT) <= set(census.geography.collect_schema().names()):
        return None, None
    rows = numbered.select(block, number).join(census.geography, on=block, how="inner")
    told = {name: f"coalesce({name}::double, 'nan'::double)" for name in POINT}
    arrays = engine.to_numpy(engine.project(rows, {number: number, **told}).sort(number))
    return arrays["latitude"], arrays["longitude"]


def households_by_area(census: Census, level: str) -> dict[str, int]:
    """Return the number of occupied units of every area of a level that has any."""
    block, kinds = census.schema.block, census.schema.kinds.occupied
    occupied = census.kinds_by_block.filter(nw.col("kind").is_in(list(kinds)))
    areas = census.geography.select(*dict.fromkeys([block, level]))
    counted = occupied.join(areas, on=block, how="inner").group_by(level).agg(nw.col("rows").sum())
    return {str(code): int(number) for code, number in census.engine.rows(counted)}


def batches(census: Census, places: Places, most: int = MOST_HOUSEHOLDS) -> Iterator[list[str]]:
    """Yield codes of areas in order, at most `most` households at a time or a single area."""
    if len(places.codes) == 1:
        yield list(places.codes)
        return
    counts = households_by_area(census, places.within)
    batch: list[str] = []
    held = 0
    for code in places.codes:
        more = counts.get(code, 0)
        if batch and held + more > most:
            yield batch
            batch, held = [], 0
        batch.append(code)
        held += more
    yield batch


def read_households(
    census: Census,
    places: Places,
    match: Sequence[str],
    leave: str,
    columns: Sequence[str] = (),
    only: Sequence[str] | None = None,
    units: CodedUnits | None = None,
) -> Households:
    """Return the occupied units, of the areas `only` or of all.

    `columns` are columns of units to bring along; those of `match` always come. They are
    taken from `units`, where these are at hand and the columns are numbers of theirs.
    """
    names = list(dict.fromkeys([*match, *columns]))
    if only is not None and len(only) == len(places.codes):
        only = None
    if units is not None and all(units.lists.get(name) == [] for name in names):
        arrays = _chosen(census, places, units, names, only)
    else:
        arrays = _queried(census, places, names, only)
    place = arrays["_place"]
    area = places.areas[places.within][place]
    order = rows_in_order([area, arrays["unit_id"]])
    place, area = place[order], area[order]
    held = {name: _small(arrays[name])[order] for name in names}
    first = np.flatnonzero(np.append(True, area[1:] != area[:-1])) if area.size else area
    return Households(
        places=places,
        area_codes=tuple(places.codes[a] for a in area[first]),
        offsets=np.append(first, area.size),
        unit_id=arrays["unit_id"][order],
        place=place,
        stratum=numbered([area, *(held[name] for name in match)])[0],
        leave=places.areas[leave][place],
        columns=held,
    )


def _queried(
    census: Census, places: Places, names: Sequence[str], only: Sequence[str] | None
) -> dict[str, Codes]:
    """Return `unit_id`, `place` and columns of the households, read from the census."""
    where = {"kind": list(census.schema.kinds.occupied)}
    if only is not None:
        where[places.within] = list(only)
    block = census.schema.block
    rows = census.frame("units", ["unit_id", block, *names], where=where)
    rows = rows.join(places.frame, on=block, how="inner")
    return census.engine.to_numpy(_coded(census.engine, rows, names))


def _chosen(
    census: Census,
    places: Places,
    units: CodedUnits,
    names: Sequence[str],
    only: Sequence[str] | None,
) -> dict[str, Codes]:
    """Return the same from units at hand."""
    chosen = units.of_codes("kind", census.schema.kinds.occupied)
    if only is not None:
        areas = [places.codes.index(code) for code in only]
        chosen &= np.isin(places.areas[places.within], areas)[units.place]
    rows = slice(None) if chosen.all() else chosen
    arrays = {"unit_id": units.unit_id[rows], "_place": units.place[rows]}
    for name in names:
        column, missing = units.columns[name][rows], units.missing[name]
        absent = column == missing
        arrays[name] = np.where(absent, np.int64(MISSING), column) if absent.any() else column
    return arrays


def _coded(engine: Engine, rows: Frame, names: Sequence[str]) -> Frame:
    """Return `unit_id, _place` and the named columns as whole numbers."""
    types = rows.collect_schema()
    numbers = [name for name in names if types[name].is_integer()]
    for name in (name for name in names if name not in numbers):
        rows = engine.fingerprint(rows, [name], "_text")
        values = engine.distinct(rows.select("_text"))
        coded = engine.materialise(engine.number_rows(values, ["_text"], "_number"))
        rows = rows.join(coded, on="_text", how="inner").drop("_text", name)
        rows = rows.rename({"_number": name})
    rows = rows.with_columns(*(nw.col(name).fill_null(MISSING) for name in numbers))
    return rows.select("unit_id", "_place", *names)


def _small(values: Codes) -> Codes:
    """Return whole numbers in the smallest type that holds them all."""
    if not values.size:
        return values.astype(np.int8)
    low, high = int(values.min()), int(values.max())
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind)
    return values.astype(np.int64)
