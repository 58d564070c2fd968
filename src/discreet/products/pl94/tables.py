"""Add the counts of a census up to tables P1 to P5 and H1, wide as they are published."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.census import Census
from discreet.compiled import compiled
from discreet.engine import Frame
from discreet.errors import BadInput
from discreet.files import atomic_folder, write_text
from discreet.products.pl94.histogram import BlockCounts, block_counts
from discreet.products.pl94.shells import SHELLS, Shell, shell_of

Columns = dict[str, NDArray[Any]]


def tables(census: Census, table: str, level: str) -> Frame:
    """Return one table for all areas of a level: `area`, then one column per cell.

    Every area with a living quarter has a row, in the order of its code; areas without
    persons have zeros.
    """
    shell = shell_of(table)
    counted = block_counts(census, [level])
    return census.engine.from_numpy(_table(counted, shell, level))


def countable(census: Census) -> list[str]:
    """Return the tables whose records a census has: without units there is no H1."""
    return [name for name, shell in SHELLS.items() if getattr(census, shell.counts) is not None]


def write_tables(
    census: Census,
    folder: Path,
    levels: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> None:
    """Write tables as `folder`/level/table.parquet, and what their columns mean as cells.csv.

    `levels` are kinds of areas, on the spine or not; None takes all the geography has, as
    None for `names` takes all tables that can be counted. Tables of confidential data and of
    trials are readable by their owner only.
    """
    shells = [shell_of(name) for name in (countable(census) if names is None else names)]
    present = census.geography.collect_schema().names()
    chosen = levels or [name for name in census.schema.area_names if name in present]
    counted = block_counts(census, chosen)
    with atomic_folder(folder, 0o700 if census.private else 0o755) as inside:
        for level in chosen:
            for shell in shells:
                with census.engine.lend(_table(counted, shell, level)) as frame:
                    census.engine.write_parquet(frame, inside / level / f"{shell.name}.parquet")
        write_text(inside / "cells.csv", _dictionary(shells))


def _table(counted: BlockCounts, shell: Shell, level: str) -> Columns:
    """Return the columns of a table."""
    codes, area_of = counted.codes[level], counted.area_of[level]
    entries = counted.persons if shell.counts == "persons" else counted.units
    if entries is None:
        raise BadInput(f"table {shell.name} counts {shell.counts}, and this census has none.")
    block, place, count = entries
    start, columns = shell.columns_of_places()
    # Half the width of the counts: no area of this layout has two thousand million persons.
    cells = np.zeros((len(shell.cells), codes.size), dtype=np.int32)
    _add_up(area_of, block, place, count, start, columns, cells)
    return {"area": codes, **dict(zip(shell.codes, cells, strict=True))}


@compiled
def _add_up(
    area_of: NDArray[np.int64],
    block: NDArray[np.int64],
    place: NDArray[np.int32],
    count: NDArray[np.int64],
    start: NDArray[np.int64],
    columns: NDArray[np.int32],
    cells: NDArray[np.int32],
) -> None:
    """Add every count to the cells of its area that it belongs to."""
    for entry in range(block.size):
        area = area_of[block[entry]]
        if area < 0:
            continue
        for at in range(start[place[entry]], start[place[entry] + 1]):
            cells[columns[at], area] += count[entry]


def _dictionary(shells: Sequence[Shell]) -> str:
    """Return a line for every column: table, code, label, and the column it is a part of."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["table", "title", "code", "depth", "parent", "label"])
    for shell in shells:
        for cell in shell.cells:
            row = [shell.name, shell.title, cell.code, cell.depth, cell.parent or "", cell.label]
            writer.writerow(row)
    return text.getvalue()
