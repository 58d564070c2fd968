"""Write protected microdata so that neither ids nor order tell what was changed.

Rows are sorted by released values only, and ids are positions in that order. Units
that agree on every released value, members included, are interchangeable, so their
order tells nothing either. Keys and donors of the input are not released: they would
link released rows to confidential ones.
"""

from __future__ import annotations

from pathlib import Path

import narwhals as nw

from discreet.census import Census, person_columns, unit_columns, unit_records, write_header
from discreet.engine import Frame


def write_microdata(census: Census, located: Frame, folder: Path) -> None:
    """Write the census with new blocks for the units in `located` (`unit_id`, block).

    Units that are not in `located` keep their block.
    """
    engine, block = census.engine, census.schema.block
    moved = located.rename({block: "new_block"})
    units = census.table("units").join(moved, on="unit_id", how="left")
    units = units.with_columns(nw.coalesce(nw.col("new_block"), nw.col(block)).alias(block))
    units = units.join(unit_records(census), on="unit_id", how="left")
    units = engine.materialise(engine.number_rows(units, [block, "record"], "fresh_id"))
    engine.write_parquet(
        units,
        folder / "units.parquet",
        order_by=["fresh_id"],
        columns={"unit_id": "fresh_id", block: block, **{c: c for c in unit_columns(census)}},
    )
    if census.persons is not None:
        own = person_columns(census)
        persons = engine.fingerprint(census.persons.select("unit_id", *own), own, "text")
        persons = persons.join(units.select("unit_id", "fresh_id"), on="unit_id", how="inner")
        engine.write_parquet(
            persons,
            folder / "persons.parquet",
            order_by=["fresh_id", "text"],
            columns={"unit_id": "fresh_id", **{c: c for c in own}},
        )
    # Only what the schema calls public geography: the file may hold anything beside it.
    present = census.geography.collect_schema().names()
    attributes = census.schema.geography.items()
    public = [*census.schema.area_names, *(n for n, v in attributes if not v.confidential)]
    columns = {name: name for name in public if name in present}
    engine.write_parquet(census.geography, folder / "geography.parquet", [block], columns)
    # The note of the input stays inside: nobody has checked what it says.
    write_header(folder, census.schema, "released", census.banner)
