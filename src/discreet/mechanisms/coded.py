"""Units that are nothing but codes and whole numbers: read once, sorted and written in memory.

One number for each row has the order of all its columns together, so that rows are sorted
in a fraction of the time that an engine takes to sort texts. Missing values come first, as
in the engine's own order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import Census, unit_columns
from discreet.engine import Frame, Texts, list_literal
from discreet.mechanisms.numbering import Codes, Integers, order_of, packed, sort_keys

#: Units held in memory, at about a hundred bytes each beside what the engine may use; more
#: are sorted by the engine, which can spill to disk.
MOST_UNITS = 20_000_000

#: Number of a text that is not in its list.
STRANGE = -1

Masked = np.ma.MaskedArray[Any, Any]


@dataclass(frozen=True)
class CodedUnits:
    """All units as arrays: `unit_id`, the number of the block, and every column.

    Of a column of codes, `lists` has the codes in order and an entry is the 1-based place of
    its code; of numbers the list is empty. `missing` is what stands for a missing value.
    """

    unit_id: Integers
    place: Integers
    columns: Mapping[str, Codes]
    lists: Mapping[str, Sequence[str]]
    missing: Mapping[str, int]

    def of_codes(self, name: str, codes: Sequence[str]) -> NDArray[np.bool_]:
        """Return which units have one of some codes."""
        wanted = [self.lists[name].index(code) + 1 for code in codes]
        return np.isin(self.columns[name], wanted)

    def write(self, census: Census, places: Frame, new_place: Integers, path: Path) -> None:
        """Write the units in their new blocks, sorted by block and columns, numbered from 1."""
        engine, block = census.engine, census.schema.block
        order = sort_keys(*packed([new_place, *self.columns.values()]))
        ids = np.arange(1, order.size + 1)
        arrays = {name: column[order] for name, column in self.columns.items()}
        codes = Texts.of([row[0] for row in engine.rows(places.sort("_place").select(block))])
        blocks = codes.part(new_place[order])
        with engine.lend_lists({"unit_id": ids, block: blocks, **arrays}) as lent:
            told = {"unit_id": "unit_id", block: f'"{block}"'}
            told |= {n: _value(n, self.lists[n], self.missing[n]) for n in self.columns}
            engine.write_parquet(engine.project(lent, told), path)

    def moved(self, unit_id: Integers, place: Integers) -> Integers:
        """Return the place of every unit after some have got a new one."""
        order = order_of([self.unit_id])
        new = self.place.copy()
        new[order[np.searchsorted(self.unit_id, unit_id, sorter=order)]] = place
        return new


def read_coded(census: Census, places: Frame) -> CodedUnits | None:
    """Return the units of a census without persons, if codes and whole numbers are all they have.

    `places` numbers the blocks from 0 in their order (`_place`). None where units are too
    many, or a value is not in its list of codes, which somebody must have waived.
    """
    columns = unit_columns(census)
    if census.persons is not None or not can_be_coded(census, columns):
        return None
    lists = {name: sorted(census.schema.units[name].codes or ()) for name in columns}
    # Only what the schema knows: the file may have a column of any other name.
    block = census.schema.block
    units = census.table("units").select("unit_id", block, *columns)
    rows = units.join(places.select(block, "_place"), on=block, how="inner")
    told = {name: _code(name, lists[name]) for name in columns}
    told |= {"unit_id": "unit_id", "_place": "_place"}
    found = census.engine.to_masked(census.engine.project(rows, told))
    below = {name: _below(found[name]) for name in columns}
    missing = {name: number for name, number in below.items() if number is not None}
    if len(missing) < len(columns) or _strange(found, lists):
        return None
    filled = {name: found[name].filled(missing[name]) for name in columns}
    return CodedUnits(found["unit_id"].data, found["_place"].data, filled, lists, missing)


def can_be_coded(census: Census, columns: Sequence[str]) -> bool:
    """Say whether units have columns of codes and whole numbers only, and are not too many."""
    variables = [census.schema.units[name] for name in columns]
    if not all(v.codes is not None or v.number == "integer" for v in variables):
        return False
    (units,) = census.engine.rows(census.kinds_by_block.select(nw.col("rows").sum()))[0]
    return int(units or 0) <= MOST_UNITS


def _code(name: str, codes: Sequence[str]) -> str:
    """Return a column as a number: of a text, its 1-based place in the list."""
    if not codes:
        return f'"{name}"'
    place = f'coalesce(list_position({list_literal(codes)}, "{name}"), {STRANGE})'
    small = "tinyint" if len(codes) < 127 else "integer"
    return f'case when "{name}" is not null then {place}::{small} end'


def _value(name: str, codes: Sequence[str], missing: int) -> str:
    """Return what a number stood for."""
    value = f'nullif("{name}", {missing})'
    return f"{list_literal(codes)}[{value}]" if codes else value


def _strange(found: Mapping[str, Masked], lists: Mapping[str, Sequence[str]]) -> bool:
    """Say whether a text is not in its list."""
    return any(bool((found[name] == STRANGE).any()) for name, codes in lists.items() if codes)


def _below(column: Masked) -> int | None:
    """Return a number below all that occur, of the same type; None: there is none."""
    low = int(column.min()) if column.count() else 0
    return low - 1 if low > np.iinfo(column.dtype).min else None
