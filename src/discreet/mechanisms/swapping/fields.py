"""Checks of single parameters against the schema."""

from __future__ import annotations

from discreet.census import OF_HOUSEHOLD, Schema
from discreet.config import suggest


def check_level(field: str, level: str, allowed: list[str]) -> None:
    """Refuse a level of the spine that is not among those allowed."""
    if level not in allowed:
        raise ValueError(f"{field} must be one of the levels {', '.join(allowed)}")


def check_columns(field: str, columns: tuple[str, ...], schema: Schema) -> None:
    """Refuse columns that units do not have, that are no units' own, or are named twice."""
    for column in columns:
        if schema.home(column, "units") != "units":
            known = {*schema.units, *schema.computed_units}
            raise ValueError(f"{field}: units have no column '{column}'.{suggest(column, known)}")
    OF_HOUSEHOLD.check(schema, "units", columns, field)
    if len(set(columns)) != len(columns):
        raise ValueError(f"{field} names a column twice")
