"""How few are alike: the smallest number of records that share a household's risk values.

The risk of a record is one over the number of records of the same area with the same risk
values, and that of a household the largest of its members; so the risk of a household is
one over the smallest such number, which stays a whole number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np

from discreet.census import Census
from discreet.mechanisms.numbering import Codes, Integers, numbered
from discreet.mechanisms.swapping.factors import rows_of
from discreet.mechanisms.swapping.households import Households


@dataclass(frozen=True)
class Records:
    """Records with a number for their risk values, and the household (its row) of each."""

    household: Integers
    values: Codes


def of_units(households: Households, columns: Sequence[str]) -> Records:
    """Return the households themselves as records."""
    values = [households.columns[name] for name in columns]
    return Records(np.arange(households.size), numbered(values)[0])


def of_persons(census: Census, households: Households, columns: Sequence[str]) -> Records:
    """Return the members of the households as records."""
    engine, names = census.engine, list(columns)
    where = None
    if len(households.area_codes) < len(households.places.codes):
        where = {households.places.within: list(households.area_codes)}
    persons = census.frame("persons", ["unit_id", *names], where=where)
    # Grouped, not made unique: of few combinations that is far quicker.
    found = engine.materialise(persons.group_by(*names).agg(_alike=nw.len()))
    texts = engine.fingerprint(found, names, "_text").select("_text")
    numbers = engine.materialise(engine.number_rows(texts, ["_text"], "_number"))
    coded = engine.fingerprint(persons, names, "_text").select("unit_id", "_text")
    coded = coded.join(numbers, on="_text", how="inner").select("unit_id", "_number")
    arrays = engine.to_numpy(coded)
    row, inside = rows_of(households, arrays["unit_id"])
    return Records(row, arrays["_number"][inside])


def fewest_alike(households: Households, records: Records, level: str) -> Integers:
    """Return the smallest number of records of its area that are like one of a household's."""
    area = households.level(level)[records.household]
    number, counts = numbered([area, records.values])
    fewest = np.full(households.size, np.iinfo(np.int64).max)
    np.minimum.at(fewest, records.household, counts[number])
    return fewest


def must_swap(alike: Sequence[Integers], k: int) -> Integers:
    """Return the number of the first level at which fewer than `k` are alike.

    Levels go from the largest areas to the smallest; their number means that none is. With
    `k` of 0 or 1 nobody must.
    """
    level = np.full(alike[0].size, len(alike), dtype=np.int64)
    for number in reversed(range(len(alike))):
        level[alike[number] < k] = number
    return level
