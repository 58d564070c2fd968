"""Write units that are nothing but codes and whole numbers, sorted in memory.

One number for each row has the order of all its columns together, so that rows are sorted
in a fraction of the time that an engine takes to sort texts. Missing values come first, as
in the engine's own order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import Census
from discreet.engine import Frame
from discreet.mechanisms.numbering import packed, sort_keys

#: Units sorted in memory; more are sorted by the engine, which can spill to disk.
MOST_UNITS = 20_000_000

#: Number of a text that is not in its list.
STRANGE = -1

Masked = np.ma.MaskedArray[Any, Any]


def can_be_coded(census: Census, columns: Sequence[str]) -> bool:
    """Say whether units have columns of codes and whole numbers only, and are not too many."""
    variables = [census.schema.units[name] for name in columns]
    if not all(v.codes is not None or v.number == "integer" for v in variables):
        return False
    (units,) = census.engine.rows(census.kinds_by_block.select(nw.col("rows").sum()))[0]
    return int(units or 0) <= MOST_UNITS


def write_coded(
    census: Census, places: Frame, moved: Frame, columns: Sequence[str], path: Path
) -> bool:
    """Write the units in the order of block and `columns`, numbered from 1.

    `places` numbers the blocks from 0 in their order (`place`), and `moved` has the new place
    of the units (`unit_id`) that move. Where a value is not in its list of codes, which
    somebody must have waived, False is returned and nothing written.
    """
    engine, block = census.engine, census.schema.block
    lists = {name: sorted(census.schema.units[name].codes or ()) for name in columns}
    rows = census.table("units").join(places, on=block, how="inner")
    rows = rows.join(moved.rename({"place": "given"}), on="unit_id", how="left")
    coded = {name: _code(name, lists[name]) for name in columns}
    found = engine.to_masked(engine.project(rows, {"place": "coalesce(given, place)", **coded}))
    missing = {name: _below(found[name]) for name in columns}
    if any(below is None for below in missing.values()) or _strange(found, lists):
        return False
    arrays = {name: _filled(array, missing.get(name)) for name, array in found.items()}
    order = sort_keys(*packed(list(arrays.values())))
    ids = np.arange(1, order.size + 1)
    with engine.lend({"unit_id": ids, **{n: a[order] for n, a in arrays.items()}}) as lent:
        placed = engine.with_text(lent, "place", places.select(block, "place"), block)
        values = {name: _value(name, lists[name], missing[name]) for name in columns}
        told = {"unit_id": "unit_id", block: f'"{block}"', **values}
        engine.write_parquet(engine.project(placed, told), path)
    return True


def _code(name: str, codes: Sequence[str]) -> str:
    """Return a column as a number: of a text, its 1-based place in the list."""
    if not codes:
        return f'"{name}"'
    place = f'coalesce(list_position({_listed(codes)}, "{name}"), {STRANGE})'
    return f'case when "{name}" is not null then {place}::integer end'


def _value(name: str, codes: Sequence[str], missing: int | None) -> str:
    """Return what a number stood for."""
    value = f'nullif("{name}", {missing})'
    return f"{_listed(codes)}[{value}]" if codes else value


def _listed(codes: Sequence[str]) -> str:
    texts = ", ".join("'" + code.replace("'", "''") + "'" for code in codes)
    return f"[{texts}]"


def _strange(found: Mapping[str, Masked], lists: Mapping[str, Sequence[str]]) -> bool:
    """Say whether a text is not in its list."""
    return any(bool((found[name] == STRANGE).any()) for name, codes in lists.items() if codes)


def _below(column: Masked) -> int | None:
    """Return a number below all that occur, of the same type; None: there is none."""
    low = int(column.min()) if column.count() else 0
    return low - 1 if low > np.iinfo(column.dtype).min else None


def _filled(column: Masked, missing: int | None) -> NDArray[Any]:
    return column.data if missing is None else column.filled(missing)
