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


def with_person_key(
    engine: Engine, persons: Frame, schema: Schema, key: str, few: bool = False
) -> Frame:
    """Return persons with `person_key`, a keyed hash of the record and of its ordinal.

    Identical records of one unit are numbered from 1 so that their keys differ; which of
    them gets which number is immaterial because they are identical. Of many persons, those
    that may be identical are sought first; of a `few` it is as quick to number all.
    """
    columns = key_columns(schema, persons.collect_schema().names())
    if few:
        numbered = engine.number_within(persons, columns, "_ordinal")
        keyed = engine.order_key(numbered, [*columns, "_ordinal"], key, "person_key")
        return keyed.drop("_ordinal")
    first = persons.with_columns(_ordinal=nw.lit(1, dtype=nw.Int64))
    keyed = engine.materialise(engine.order_key(first, [*columns, "_ordinal"], key, "person_key"))
    if not engine.repeated(keyed, "person_key"):
        return keyed.drop("_ordinal")
    # Only records that share a key with another can be identical to another.
    times = keyed.group_by("person_key").agg(_times=nw.len())
    shared = engine.materialise(times.filter(nw.col("_times") > 1).select("person_key"))
    others = keyed.join(shared, on="person_key", how="anti")
    # Ranking any constant gives identical records 1, 2, ...; ties cannot matter.
    alike = keyed.join(shared, on="person_key", how="semi").drop("person_key")
    ordinal = nw.col("_ordinal").rank("ordinal").over(*columns).cast(nw.Int64)
    alike = alike.with_columns(_ordinal=ordinal)
    again = engine.order_key(alike, [*columns, "_ordinal"], key, "person_key")
    both = nw.concat([others, again.select(*others.collect_schema().names())])
    return engine.materialise(both.drop("_ordinal"))
