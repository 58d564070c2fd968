"""The person key: a fixed order of persons that every engine agrees on.

Truncation keeps "the first tau persons of a household". First in which order? A
keyed hash of the record, stored once when the data are read: it does not depend on
the row order of the input, on the engine, or on the run.
"""

from __future__ import annotations

import narwhals as nw

from discreet.census.schema import Schema
from discreet.engine import Engine, Frame


def key_columns(schema: Schema, present: list[str]) -> list[str]:
    """Return the columns of a person record the key is made from, in schema order."""
    return [name for name in ("unit_id", schema.block, *schema.persons) if name in present]


def with_person_key(engine: Engine, persons: Frame, schema: Schema, key: str) -> Frame:
    """Add `person_key`, a keyed hash of the record and its ordinal among identical records.

    Identical records of one unit are numbered so that their keys differ; which of them
    gets which number is immaterial because they are identical.
    """
    columns = key_columns(schema, persons.collect_schema().names())
    # Ranking any constant gives identical records 1, 2, ...; ties cannot matter.
    numbered = persons.with_columns(_constant=nw.lit(1)).with_columns(
        _ordinal=nw.col("_constant").rank("ordinal").over(*columns)
    )
    keyed = engine.order_key(numbered, [*columns, "_ordinal"], key, "person_key")
    return keyed.drop("_constant", "_ordinal")
