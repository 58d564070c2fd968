"""Permutation swapping of units without members, at the size of a nation.

Such a unit is its block and a few codes, so it fits into one number, and a release is a
sorted list of numbers: nothing is joined by identifier, and no text is compared. Units
are worked in batches of whole areas, read and written one after the other. Same tapes,
same records: the same release as by the general way (`strata.permute`), as the tests
check.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import Census, made_from, unit_columns
from discreet.engine import Engine, Texts
from discreet.errors import DiscreetError
from discreet.mechanisms.microdata import write_places
from discreet.mechanisms.numbering import different
from discreet.mechanisms.swapping.kernel import permute_strata
from discreet.mechanisms.swapping.moves import Moves
from discreet.mechanisms.swapping.packed_places import Batch, Blocks, batches_of_blocks
from discreet.mechanisms.swapping.packing import Packing, packing_of
from discreet.mechanisms.swapping.strata import Swapped
from discreet.noise import Randomness, key_of

Integers = NDArray[np.int64]

#: Units read at a time, areas kept whole.
MOST_UNITS = 4_000_000


def fits(census: Census, swapped: Swapped) -> bool:
    """Tell whether a census can be worked this way: units alone, and only their block moves.

    Every value must have a code; that takes a look at all units.
    """
    if census.persons is not None or swapped.swap != (census.schema.block,):
        return False
    # Units are read without their block, so nothing of their area can be matched on.
    sources = (made_from(census.schema, name, "units") for name in swapped.match)
    if any(table == "geography" for found in sources for table, _ in found):
        return False
    packing = packing_of(census)
    # A census may keep a value outside its code list, waived for a reason. It has no number,
    # so it takes the general way: what is found here must not be found after the charge.
    return packing is not None and packing.holds(census)


def permute_packed(
    census: Census,
    swapped: Swapped,
    rate: Fraction,
    rng: Randomness,
    folder: Path,
    threads: int = 1,
    most_units: int = MOST_UNITS,
) -> Moves:
    """Permute blocks in each stratum, write the microdata, and tell what moved."""
    packing = packing_of(census)
    if packing is None:  # `fits` said otherwise
        raise DiscreetError("these units cannot be packed into numbers.")
    units = int(census.engine.rows(census.table("units").select(n=nw.len()))[0][0])
    draw = _Draw(rate, rng, threads, Moves(rate, units))
    places = Blocks.of(census, swapped)
    batches = list(batches_of_blocks(census, places, units, most_units))
    writer, written = Engine(threads=threads), 0
    # One batch is written while the next one is read and permuted.
    with ThreadPoolExecutor(1) as pool:
        writing: Future[None] | None = None
        for number, batch in enumerate(batches):
            sheet = _work_batch(census, swapped, packing, places, batch, draw)
            if writing is not None:
                writing.result()
            part = "units.parquet" if len(batches) == 1 else f"units/part-{number:04d}.parquet"
            path = folder / "microdata" / part
            writing = pool.submit(
                _write, writer, census.schema.block, packing, sheet, path, written
            )
            written += sheet.place.size
        if writing is not None:
            writing.result()
    writer.close()
    write_places(census, folder / "microdata")
    return draw.moves


def _work_batch(
    census: Census,
    swapped: Swapped,
    packing: Packing,
    places: Blocks,
    batch: Batch,
    draw: _Draw,
) -> _Sheet:
    """Return the units of a batch after swapping, in the order of their values."""
    rows = _read(census, packing, places, batch)
    codes, record = different(rows["_code"])
    book = _Book.of(census, swapped, packing, codes)
    moving = book.swapped[record]
    traded = _trade(places, book, rows["_place"][moving], record[moving], draw)
    place = np.concatenate([rows["_place"][~moving], traded[0]])
    record = np.concatenate([record[~moving], traded[1]])
    place, released = _sorted(place, book.released[record])
    first, last = (int(place[0]), int(place[-1])) if place.size else (0, -1)
    blocks = places.codes(census, first, last)
    return _Sheet(place - first, released, blocks, codes[np.argsort(book.released)])


# -- units as numbers -------------------------------------------------------------------------


def _read(census: Census, packing: Packing, places: Blocks, batch: Batch) -> dict[str, Integers]:
    """Return `_place` and `_code` of every unit of a batch."""
    engine, block = census.engine, census.schema.block
    # A range of codes skips most of a file that is sorted by block, as files usually are.
    low, high = nw.lit(batch.low), nw.lit(batch.high)
    units = census.table("units").filter((nw.col(block) >= low) & (nw.col(block) <= high))
    inside = places.frame.select(block, "_top", _place=nw.col("_n") - 1)
    if batch.mixed:
        inside = inside.filter(nw.col("_top").is_in(batch.tops))
    rows = units.join(inside, on=block, how="inner")
    arrays = engine.to_numpy(engine.project(rows, {"_place": "_place", "_code": packing.sql()}))
    packing.check(arrays["_code"])
    return arrays


@dataclass(frozen=True)
class _Book:
    """The different records of a batch; record r has code `codes[r]`."""

    codes: Integers
    swapped: NDArray[np.bool_]
    #: Where a stratum lists the record, and where a release does.
    listed: Integers
    released: Integers
    #: Records of one class agree on the matching columns, which `labels` tells as text.
    match: Integers
    labels: list[str]

    @classmethod
    def of(cls, census: Census, swapped: Swapped, packing: Packing, codes: Integers) -> _Book:
        engine, own = census.engine, unit_columns(census)
        records = replace(census, units=packing.unpacked(census.engine, codes))
        rows = records.frame("units", dict.fromkeys(["unit_id", *own, *swapped.match]))
        rows = engine.fingerprint(rows, own, "_text")
        rows = engine.fingerprint(rows, swapped.match, "_label")
        rows = engine.number_rows(rows, ["_text"], "_listed")
        rows = engine.materialise(engine.number_rows(rows, own, "_released"))
        labels = sorted(row[0] for row in engine.rows(engine.distinct(rows.select("_label"))))
        kinds = nw.col("kind").is_in(swapped.where(census)["kind"])
        wanted = rows.select("unit_id", "_label", "_listed", "_released", _moving=kinds)
        listed = engine.rows(wanted.sort("unit_id"))
        number = {label: n for n, label in enumerate(labels)}
        return cls(
            codes=codes,
            swapped=np.array([row[4] for row in listed], dtype=np.bool_),
            listed=np.array([row[2] - 1 for row in listed], dtype=np.int64),
            released=np.array([row[3] - 1 for row in listed], dtype=np.int64),
            match=np.array([number[row[1]] for row in listed], dtype=np.int64),
            labels=labels,
        )


@dataclass(frozen=True)
class _Draw:
    """How strata are permuted, and what moved in all batches."""

    rate: Fraction
    rng: Randomness
    threads: int
    moves: Moves


def _trade(
    places: Blocks, book: _Book, place: Integers, record: Integers, draw: _Draw
) -> tuple[Integers, Integers]:
    """Return place and record of every swapped unit after its stratum was permuted."""
    stratum = places.area[place] * len(book.labels) + book.match[record]
    stratum, listed, ranked = _sorted(stratum, places.listed[place], book.listed[record])
    starts = np.flatnonzero(np.diff(stratum, prepend=-1))
    offsets = np.append(starts, stratum.size)
    names = [divmod(int(number), len(book.labels)) for number in stratum[starts]]
    labels = [places.prefix[area] + book.labels[match] for area, match in names]
    source = permute_strata(offsets, key_of(labels), draw.rate, draw.rng, threads=draw.threads)
    received = listed[source]
    numbers = np.argsort(places.listed)
    if starts.size:
        alike = np.minimum.reduceat(ranked, starts) == np.maximum.reduceat(ranked, starts)
        changed = draw.moves.add(offsets, source, listed, alike)
        before, after = numbers[listed[changed]], numbers[received[changed]]
        draw.moves.measure(places.latitude, places.longitude, before, after)
    return numbers[received], np.argsort(book.listed)[ranked]


def _sorted(*columns: Integers) -> tuple[Integers, ...]:
    """Return the columns in their common order, the first one first; none is negative."""
    widths = [int(column.max(initial=0)).bit_length() for column in columns]
    if sum(widths) > 63:
        order = np.lexsort(columns[::-1])
        return tuple(column[order] for column in columns)
    key = np.zeros(columns[0].size, dtype=np.int64)
    for column, width in zip(columns, widths, strict=True):
        key <<= width  # in place: there are many rows
        key |= column
    key.sort()
    found = []
    for width in reversed(widths):
        found.append(key & ((1 << width) - 1))
        key >>= width
    return tuple(reversed(found))


@dataclass(frozen=True)
class _Sheet:
    """Units in the order of their values, told by the numbers of their block and record."""

    place: Integers
    released: Integers
    blocks: NDArray[np.object_]
    codes: Integers


def _write(
    engine: Engine, block: str, packing: Packing, sheet: _Sheet, path: Path, before: int
) -> None:
    """Write the units of a batch under fresh ids that follow those written before."""
    digits = packing.digits(sheet.codes)
    # Texts and digits are taken in order here: no join, and no sort after it.
    columns = {name: _small(digit)[sheet.released] for name, digit in digits.items()}
    ids = np.arange(before + 1, before + 1 + sheet.place.size)
    blocks = Texts.of(sheet.blocks.tolist()).part(sheet.place)
    with engine.lend_lists({"unit_id": ids, block: blocks, **columns}) as rows:
        engine.write_parquet(packing.values(engine, rows, ["unit_id", block]), path)


def _small(digits: Integers) -> NDArray[np.signedinteger]:
    """Return digits in a type of one byte if they fit."""
    return digits.astype(np.int8) if digits.max(initial=0) < 128 else digits
