"""Refuse records that a table or a histogram has no cell for: nobody is left out silently."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

import narwhals as nw

from discreet.census.census import Census
from discreet.census.condition import Condition
from discreet.errors import BadInput


def check_placed(
    census: Census,
    table: Literal["units", "persons"],
    values: Mapping[str, Collection[str | None]],
    where: Condition,
    used_by: str,
) -> None:
    """Refuse rows that satisfy `where` and have another value than those of each column.

    `values` are given as text; None stands for a missing value. A schema says which values
    there are, but a file may break it, so the data are looked at before anything is charged.
    """
    if not values:
        return
    rows = census.frame(table, list(values), where=where or None)
    marks: dict[str, nw.Expr] = {}
    for place, (column, listed) in enumerate(values.items()):
        known, value = [v for v in listed if v is not None], nw.col(column).cast(nw.String)
        marks[f"_absent{place}"] = value.is_null()
        marks[f"_unlisted{place}"] = ~value.is_in(known).fill_null(True)
    sums = {name: mark.cast(nw.Int64).sum() for name, mark in marks.items()}
    counts = census.engine.rows(rows.select(**sums))[0]
    for column, absent, unlisted in zip(values, counts[::2], counts[1::2], strict=True):
        if absent and None not in values[column]:
            raise BadInput(
                f"{used_by}: {absent} {table} have no value of '{column}', which the schema "
                f"requires of them. Run `discreet validate` and fix the census, or let the "
                f"schema say `missing: true`."
            )
        if unlisted:
            raise BadInput(
                f"{used_by}: {unlisted} {table} have a value of '{column}' that the schema does "
                f"not list. Run `discreet validate` and fix the census or the schema."
            )
