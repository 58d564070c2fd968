"""What the codes in the published tables mean, as a table."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.products.sdhc.estimates.tables import AVERAGES, COUNTS, Average
from discreet.products.sdhc.groups import ITERATION_TITLES, NATION, PUERTO_RICO, STATES
from discreet.products.sdhc.shells import DERIVED, SHELLS, Derived, Shell

COLUMNS = ("TABLE", "COLUMN", "CODE", "MEANING", "SUM_OF")

#: Table, column, code, meaning, and the cells that add up to a total or subtotal.
Row = tuple[str, str, str, str, str]

#: Columns of all tables with noise; that of cells has the name of its table before it.
NOISY = {
    "REGION_ID": "Region; the same as GEOID in estimates",
    "REGION_TYPE": "USA or STATE",
    "ITERATION_CODE": "Population group, by race and Hispanic origin",
    "COUNT": "The count with noise, which may be negative",
    "NOISE_DISTRIBUTION": "Law of the noise",
    "VARIANCE": "Variance of the noise",
}

#: Columns of tables of estimates; of averages, those of counts stand twice, with a suffix.
ESTIMATED = {
    "GEOID": "Region; the same as REGION_ID in tables with noise",
    "DATA_CELL": "Cell; numbered as in the table with noise, totals and subtotals too",
    "COUNT_NOISY": "The count with noise, of a total the sum over its cells",
    "VARIANCE": "Variance of the noise of COUNT_NOISY",
    "MOE_NOISY": "Margin of error of COUNT_NOISY at 90 percent",
    "PRED": "Estimate: never negative; of a total the sum of the estimates of its cells",
    "PRED_LO": "Lower end of the 90 percent credible interval",
    "PRED_HI": "Upper end of the 90 percent credible interval",
    "_NUM": "Suffix: of the numerator of an average",
    "_DENOM": "Suffix: of the denominator of an average",
    "RATIO_NOISY": "Noisy numerator by noisy denominator; not a number if that is 0",
    "RATIO_PRED": "Estimate of the average: its posterior mean",
    "RATIO_PRED_LO": "Lower end of the 90 percent credible interval of the average",
    "RATIO_PRED_HI": "Upper end of the 90 percent credible interval of the average",
    "PRED_NUM": "Posterior mean of the numerator; by PRED_DENOM it is not RATIO_PRED",
    "PRED_DENOM": "Posterior mean of the denominator",
}

AVERAGE_TITLES = {
    "PH1": "Average household size by age",
    "PH5": "Average family size by age",
    "PH8": "Average household size by owner and renter",
}


def codebook(
    tables: Collection[str], states: Collection[str], estimated: bool = True
) -> dict[str, NDArray[Any]]:
    """Return the columns of the codebook of some published tables, and of estimates from them.

    A row without a column is the title of its table, and one without a code tells what a
    column holds. Rows for all tables with noise have `*` for the table, those for all tables of
    estimates `estimates`. Totals and subtotals are in the tables of estimates only.
    """
    rows: list[Row] = [("*", column, "", told, "") for column, told in NOISY.items()]
    if PUERTO_RICO not in states:
        rows.append(("*", "REGION_ID", NATION, _nation(states), ""))
    rows += [("*", "REGION_ID", "01 to 72", "State, DC or Puerto Rico (two-digit FIPS code)", "")]
    rows += [("*", "ITERATION_CODE", code, told, "") for code, told in ITERATION_TITLES.items()]
    if estimated:
        rows += [("estimates", column, "", told, "") for column, told in ESTIMATED.items()]
    for name in tables:
        rows += _of_any(name)
    for name, made in AVERAGES.items() if estimated else ():
        if {made.numerator, made.denominator} <= {*tables}:
            rows += _of_average(name, made)
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
    # Of what is divided, only the quotients are estimated, and they have totals of their own.
    totals = shell.aggregates if shell.name in COUNTS else {}
    told += [(number, one.label, " ".join(map(str, one.parts))) for number, one in totals.items()]
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


def _of_average(name: str, made: Average) -> Iterator[Row]:
    """Yield the rows of a table of averages: of all, and of the two kinds of its numerator."""
    yield name, "", "", f"{AVERAGE_TITLES[name]}: {made.numerator} by {made.denominator}", ""
    above = {code: label for _, column, code, label, _ in _of_any(made.numerator) if column}
    for number, label in {"1": "All", **above}.items():
        yield name, "DATA_CELL", number, label, ""


def _of_any(table: str) -> Iterator[Row]:
    return _of_shell(SHELLS[table]) if table in SHELLS else _of_derived(DERIVED[table])
