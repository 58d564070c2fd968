"""The domain that all mechanisms on a census share: the whole edited file.

Which records one step changes, persons or households, is said by the input premetric,
not by the domain; so promises of different mechanisms on one file can be combined.
"""

from __future__ import annotations

from discreet.census import Schema
from discreet.spec import Domain


def domain_of(schema: Schema) -> Domain:
    """Return all edited censuses of a schema."""
    kinds = schema.units["kind"].codes if "kind" in schema.units else None
    return Domain(
        records="units with their members",
        schema_name=schema.name,
        steps=("editing", "imputation"),
        spine=tuple(schema.levels),
        places=(*(area.name for area in schema.areas), *schema.geography),
        kinds=tuple(kinds or ()),
    )
