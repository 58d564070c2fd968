"""What every promise rests on: blocks and units that exist once, and links that lead somewhere."""

from __future__ import annotations

import narwhals as nw

from discreet.census.census import Census
from discreet.census.declarations import TableName
from discreet.census.examine import TABLES, Loaded
from discreet.census.validate import structure_findings
from discreet.engine import Frame
from discreet.errors import BadInput


def check_structure(census: Census) -> None:
    """Refuse a census in which a record could be counted twice or nowhere.

    One household in two rows of a join would count twice, and a promise made for a
    sensitivity of one would not hold.
    """
    block = census.schema.block
    _columns(census)
    _once(census, census.geography, block, "geography", block)
    _enclosed(census)
    if census.units is not None:
        _once(census, census.units, "unit_id", "units", "unit_id")
        _known(census, census.kinds_by_block, census.geography, block, "units")
        _sorted_out(census)
    if census.persons is not None and census.linked:
        if census.units is None:
            raise BadInput("persons name units, but this census has no units table.")
        _known(census, _each(census.persons, "unit_id"), census.units, "unit_id", "persons")
    elif census.persons is not None:
        _known(census, _each(census.persons, block), census.geography, block, "persons")


def _columns(census: Census) -> None:
    """Refuse a table without the columns that place its rows, or with one of another type."""
    schema = census.schema
    frames = {"geography": census.geography, "units": census.units, "persons": census.persons}
    tables: dict[TableName, Loaded] = {
        place: Loaded(frame, place) for place in TABLES if (frame := frames[place]) is not None
    }
    needed = {*schema.levels, "unit_id", "kind"}
    for found in structure_findings(schema, tables):
        where = f"{found.table}.{found.column}"
        if found.rule == "type" and _holds_values(census, tables[found.table].frame, found.column):
            raise BadInput(
                f"{where}: does not have the type its schema says. "
                f"Run `discreet validate` and write the column again."
            )
        if found.rule != "column" or found.column not in needed:
            continue
        if found.table == "persons":
            raise BadInput(
                f"persons have neither unit_id nor {schema.block}: every person must name the unit "
                f"or the {schema.block} it lives in. Add one of these columns."
            )
        raise BadInput(f"{where}: is missing, and no row can be placed without it. Add it.")


def _holds_values(census: Census, frame: Frame, column: str) -> bool:
    """Tell whether a column holds anything: one that does not may have any type."""
    # Counted, not fetched: some types have no value in Python without further libraries.
    return bool(census.engine.rows(frame.select(nw.col(column).count()))[0][0])


def _sorted_out(census: Census) -> None:
    """Refuse units of no known kind: they would be neither protected nor declared as fixed."""
    kinds = census.schema.kinds
    named = [*kinds.occupied, *kinds.vacant, *kinds.collective]
    strange = census.kinds_by_block.filter(~nw.col("kind").is_in(named).fill_null(False))
    rows = census.engine.rows(strange.select(nw.col("rows").sum()))[0][0]
    if rows:
        raise BadInput(f"units: {rows} rows have a kind the schema does not know. Mend them.")


def _once(census: Census, frame: Frame, key: str, table: str, column: str) -> None:
    rows = census.engine.repeated(frame, key)
    if rows:
        raise BadInput(
            f"{table}: {rows} rows repeat a {column} or lack one. "
            f"Run `discreet validate` and mend the census."
        )


def _enclosed(census: Census) -> None:
    """Refuse blocks without an area of the spine: their records would be counted nowhere."""
    levels = census.schema.levels
    absent = {level: nw.col(level).is_null().cast(nw.Int64).sum() for level in levels}
    counts = census.engine.rows(census.geography.select(**absent))[0]
    for level, rows in zip(levels, counts, strict=True):
        if rows:
            raise BadInput(
                f"geography.{level}: {rows} rows have no value, but every {census.schema.block} is "
                f"in an area of each level. Run `discreet validate` and fix the census."
            )


def _each(frame: Frame, key: str) -> Frame:
    return frame.select(key, rows=nw.lit(1))


def _known(census: Census, frame: Frame, home: Frame, key: str, table: str) -> None:
    """Refuse `rows` of a frame, one by one or counted, whose key is not at home."""
    lost = frame.join(home.select(key), on=key, how="anti").select(nw.col("rows").sum())
    rows = census.engine.rows(lost)[0][0]
    if rows:
        raise BadInput(
            f"{table}: {rows} rows name a {key} that does not exist. "
            f"Run `discreet validate` and mend the census."
        )
