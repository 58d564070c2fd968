"""What the codes in the published tables mean, as a table."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.products.sdhc.groups import ITERATION_TITLES, NATION, PUERTO_RICO, STATES
from discreet.products.sdhc.shells import DERIVED, SHELLS, Derived, Shell

COLUMNS = ("TABLE", "COLUMN", "CODE", "MEANING", "SUM_OF")

#: Table, column, code, meaning, and the cells that add up to a total or subtotal.
Row = tuple[str, str, str, str, str]


def codebook(tables: Collection[str], states: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return the columns of the codebook of some published tables.

    A row without a column is the title of its table. Totals and subtotals are in the tables
    of estimates only; rows for all tables have `*` for the table.
    """
    rows: list[Row] = []
    if PUERTO_RICO not in states:
        rows.append(("*", "REGION_ID", NATION, _nation(states), ""))
    rows += [("*", "REGION_ID", "01 to 72", "State, DC or Puerto Rico (two-digit FIPS code)", "")]
    rows += [("*", "ITERATION_CODE", code, told, "") for code, told in ITERATION_TITLES.items()]
    for name in tables:
        rows += _of_shell(SHELLS[name]) if name in SHELLS else _of_derived(DERIVED[name])
    return {
        column: np.array(values, dtype=object)
        for column, values in zip(COLUMNS, zip(*rows, strict=True), strict=True)
    }


def _nation(states: Collection[str]) -> str:
    """Return what the rows of region type USA count: not always the nation."""
    if len(states) == len(STATES):
        return "The United States: 50 states and DC"
    return f"Not the nation: {len(states)} of {len(STATES)} states, {', '.join(sorted(states))}"


def _of_shell(shell: Shell) -> Iterator[Row]:
    yield shell.name, "", "", shell.title, ""
    told = [(number, cell.label, "") for number, cell in shell.cells.items()]
    told += [
        (number, one.label, " ".join(map(str, one.parts)))
        for number, one in shell.aggregates.items()
    ]
    for number, label, parts in sorted(told):
        yield shell.name, shell.column, str(number), label, parts


def _of_derived(derived: Derived) -> Iterator[Row]:
    """Yield the rows of a table made from another, whose cells are named."""
    yield derived.name, "", "", derived.title, ""
    source = SHELLS[derived.source]
    for number, parts in derived.cells.items():
        first, *more = (source.cells[part].label for part in parts)
        label = ", or ".join([first, *(one[0].lower() + one[1:] for one in more)])
        told = " ".join(f"{source.name}:{part}" for part in parts)
        yield derived.name, derived.column, str(number), label, told
