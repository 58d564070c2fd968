"""Whole records as text: equal exactly where two units agree on everything but location."""

from __future__ import annotations

from collections.abc import Collection

import narwhals as nw

from discreet.census.census import Census
from discreet.engine import Frame


def person_columns(census: Census) -> list[str]:
    """Return the variables of persons this census has, in schema order."""
    present = census.table("persons").collect_schema().names()
    return [name for name in census.schema.persons if name in present]


def unit_columns(census: Census) -> list[str]:
    """Return the variables of units this census has, in schema order."""
    present = census.table("units").collect_schema().names()
    return [name for name in census.schema.units if name in present]


def unit_records(census: Census, without: Collection[str] = ()) -> Frame:
    """Return `unit_id, record` for every unit, members included, location left out.

    The text of a unit is its variables followed by its members' texts in sorted order,
    so it does not depend on the order of rows or on identifiers. Columns in `without` are
    left out; those of members are written `persons.name`.
    """
    engine = census.engine
    own = [name for name in unit_columns(census) if name not in without]
    units = engine.fingerprint(census.table("units"), own, "_unit_text")
    if not census.linked:
        return units.select("unit_id", record=nw.col("_unit_text"))
    theirs = [name for name in person_columns(census) if f"persons.{name}" not in without]
    persons = engine.fingerprint(census.table("persons"), theirs, "_text")
    members = engine.join_text(persons.select("unit_id", "_text"), "unit_id", "_text", "_members")
    joined = units.select("unit_id", "_unit_text").join(members, on="unit_id", how="left")
    record = nw.concat_str(nw.col("_unit_text"), nw.col("_members").fill_null(""), separator="#")
    return joined.select("unit_id", record=record)
