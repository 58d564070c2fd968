"""Write protected microdata so that neither ids nor order tell what was changed.

Rows are sorted by released values only, and ids are positions in that order. Units
that agree on every released value, members included, are interchangeable, so their
order tells nothing either. Keys and donors of the input are not released: they would
link released rows to confidential ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import narwhals as nw

from discreet.census import Census, person_columns, unit_columns, unit_records, write_header
from discreet.engine import Frame
from discreet.mechanisms.coded import CodedUnits
from discreet.mechanisms.numbering import Integers


def with_values(
    census: Census,
    table: Literal["units", "persons"],
    keys: Sequence[str],
    columns: Sequence[str],
    given: Frame,
) -> Census:
    """Return the census with `columns` of `table` replaced for the rows whose keys are in `given`.

    `given` has the keys, once each, and the columns; other rows keep their values.
    """
    fresh = {column: f"_given_{column}" for column in columns}
    added = given.rename(fresh).with_columns(_given=nw.lit(True))
    rows = census.table(table).join(added, on=list(keys), how="left")
    # Not a coalesce: the value given may be missing.
    chosen = [
        nw.when(nw.col("_given")).then(nw.col(new)).otherwise(nw.col(old)).alias(old)
        for old, new in fresh.items()
    ]
    rows = rows.with_columns(*chosen).drop("_given", *fresh.values())
    return replace(census, units=rows) if table == "units" else replace(census, persons=rows)


def write_microdata(census: Census, places: Frame, moved: Frame, folder: Path) -> None:
    """Write the census with new blocks for the units in `moved` (`unit_id`, `_place`).

    `places` numbers the blocks from 0 in their order (`_place`); other units keep their block.
    """
    block = census.schema.block
    located = moved.join(places, on="_place", how="inner").select("unit_id", block)
    protected = with_values(census, "units", ["unit_id"], [block], located)
    write_records(protected, folder, records=unit_records(census))


def write_coded(
    census: Census, places: Frame, units: CodedUnits, new_place: Integers, folder: Path
) -> None:
    """Write a census without persons, whose units are at hand, with a new place for each."""
    units.write(census, places, new_place, folder / "units.parquet")
    write_places(census, folder)


def write_records(census: Census, folder: Path, records: Frame | None = None) -> None:
    """Write all released columns of a protected census under fresh ids.

    `records` (`unit_id`, `record`) saves computing them again where they are known.
    """
    engine, block, own = census.engine, census.schema.block, unit_columns(census)
    units, order = census.table("units"), [block, *own]
    if census.persons is None:
        columns = {name: name for name in order}
        engine.write_parquet(units, folder / "units.parquet", order, columns, number="unit_id")
        write_places(census, folder)
        return
    if census.linked:
        members = unit_records(census) if records is None else records
        members = members.select("unit_id", _record="record")
        units, order = units.join(members, on="unit_id", how="left"), [*order, "_record"]
    units = engine.sort_and_number(units.select("unit_id", *order), order, "_fresh_id")
    engine.write_parquet(
        units,
        folder / "units.parquet",
        columns={"unit_id": "_fresh_id", block: block, **{c: c for c in own}},
    )
    if census.persons is not None:
        theirs = person_columns(census)
        numbers = units.select("unit_id", "_fresh_id")
        persons = census.persons.select("unit_id", *theirs).join(numbers, on="unit_id", how="inner")
        engine.write_parquet(
            persons,
            folder / "persons.parquet",
            order_by=["_fresh_id", *theirs],
            columns={"unit_id": "_fresh_id", **{c: c for c in theirs}},
        )
    write_places(census, folder)


def write_places(census: Census, folder: Path) -> None:
    """Write the public geography and the header that make a folder of tables a census."""
    # Only what the schema calls public geography: the file may hold anything beside it.
    present = census.geography.collect_schema().names()
    attributes = census.schema.geography.items()
    public = [*census.schema.area_names, *(n for n, v in attributes if not v.confidential)]
    columns = {name: name for name in public if name in present}
    block = census.schema.block
    census.engine.write_parquet(census.geography, folder / "geography.parquet", [block], columns)
    # The note of the input stays inside: nobody has checked what it says.
    write_header(folder, census.schema, "released", census.banner)
