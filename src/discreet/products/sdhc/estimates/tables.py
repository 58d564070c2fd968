"""Estimates for all tables of a release, from the released noisy numbers alone.

What is consistent: a total or subtotal is the sum of the published estimates of its cells,
and of PH1 and PH5 the mean of all ages is the sum of the other two to one part in a million,
the tolerance of the three integrals, for thresholds near ten and noise of like size in both
tables; to a thousandth, and off by a few percent in rare cells, where households have hundreds
of times the noise of persons. Nothing else is: states do not add up to the nation,
groups not to everybody, and the average of all of PH8 is not tied to those of owners and
renters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.products.sdhc.estimates.counts import estimate_cells, estimate_sums
from discreet.products.sdhc.estimates.normal import Floats
from discreet.products.sdhc.estimates.ratios import averages, averages_by_age
from discreet.products.sdhc.shells import SHELLS

Columns = Mapping[str, NDArray[Any]]

#: Half the width of a 90 percent interval of a normal law.
Z = 1.6448536269514722

#: Tables of counts, and tables of averages with numerator, denominator and least number.
COUNTS = ("PH2", "PH3", "PH4", "PH6", "PH7")


class Average(NamedTuple):
    """A table of averages: what is divided by what, and persons in a household at least."""

    numerator: str
    denominator: str
    least: Literal[1, 2]
    #: The table whose truncation threshold is the largest number of persons.
    threshold: str


AVERAGES: Mapping[str, Average] = {
    "PH1": Average("PH1_num", "PH1_denom", 1, "PH1_num"),
    "PH5": Average("PH5_num", "PH5_denom", 2, "PH4"),
    "PH8": Average("PH8_num", "PH8_denom", 1, "PH7"),
}


def estimate_tables(
    released: Mapping[str, Columns], thresholds: Mapping[str, int]
) -> dict[str, dict[str, NDArray[Any]]]:
    """Return a table of estimates for each of PH1 to PH8 that was released.

    `released` has for each table the columns `region_type`, `region`, `iteration`, `cell`,
    `value` and `variance`, the basis cells of a group one after another; derived numerators
    (PH5_num, PH8_num) too. The largest number of persons in a household is the truncation
    threshold of the numerator. Where it leaves no room for an average, there is none.
    """
    found = {}
    for table in sorted({*COUNTS, *AVERAGES}):
        if table in COUNTS and table in released:
            found[table] = count_table(table, released[table])
        elif table in AVERAGES:
            made = AVERAGES[table]
            room = thresholds.get(made.threshold, 0) > made.least
            if room and {made.numerator, made.denominator} <= released.keys():
                found[table] = average_table(table, released, thresholds[made.threshold])
    return found


def count_table(table: str, columns: Columns) -> dict[str, NDArray[Any]]:
    """Return estimates of every cell of a table of counts, totals and subtotals too."""
    shell = SHELLS[table]
    basis = list(shell.cells)
    value, variance = (_by_group(columns, name, len(basis)) for name in ("value", "variance"))
    sums = {
        number: [basis.index(part) for part in one.parts]
        for number, one in shell.aggregates.items()
    }
    cells = estimate_cells(value, variance)
    totals = estimate_sums(value, variance, list(sums.values()))
    order = np.argsort([*basis, *sums])

    def joined(of_cells: Floats, of_sums: Floats) -> Floats:
        return np.concatenate([of_cells, of_sums], axis=1)[:, order]

    def added(values: Floats) -> Floats:
        return joined(values, np.stack([values[:, part].sum(axis=1) for part in sums.values()], 1))

    noisy, spread = added(value), added(variance)
    return {
        **_labels(columns, len(basis), np.array([*basis, *sums])[order]),
        "COUNT_NOISY": _whole(noisy),
        "VARIANCE": spread.ravel(),
        "MOE_NOISY": Z * np.sqrt(spread.ravel()),
        "PRED": _whole(joined(cells.value, totals.value)),
        "PRED_LO": _whole(joined(cells.low, totals.low)),
        "PRED_HI": _whole(joined(cells.high, totals.high)),
    }


def average_table(
    table: str, released: Mapping[str, Columns], most: float
) -> dict[str, NDArray[Any]]:
    """Return estimates of averages: cell 1 of all, 2 and 3 of the two kinds."""
    made = AVERAGES[table]
    above, below = released[made.numerator], released[made.denominator]
    by_age = table != "PH8"
    many = 1 if by_age else 2
    upper, lower = _shared(above, 2, below, many)
    n, dn = (_with_total(_by_group(above, name, 2)[upper]) for name in ("value", "variance"))
    d, dd = (_by_group(below, name, many)[lower] for name in ("value", "variance"))
    if by_age:
        d, dd = np.repeat(d, 3, axis=1), np.repeat(dd, 3, axis=1)
        found = averages_by_age(n[:, 1:], dn[:, 1:], d[:, 0], dd[:, 0], made.least, most)
    else:
        d, dd = _with_total(d), _with_total(dd)
        found = averages(n, dn, d, dd, made.least, most)
    parts = {"NUM": (n, dn), "DENOM": (d, dd)}
    noisy = {
        f"{what}_{part}": numbers
        for part in (("NUM", "DENOM") if by_age else ("DENOM", "NUM"))
        for what, numbers in _noisy(*parts[part]).items()
    }
    ratio = np.divide(n, d, out=np.full(n.shape, np.nan), where=d != 0)
    means = {"PRED_NUM": found.numerator, "PRED_DENOM": found.denominator} if by_age else {}
    told = {
        "RATIO_NOISY": ratio,
        "RATIO_PRED": found.value,
        **means,
        "RATIO_PRED_LO": found.low,
        "RATIO_PRED_HI": found.high,
    }
    return {
        **_labels(above, 2, np.array([1, 2, 3]), upper),
        **noisy,
        **{name: numbers.ravel() for name, numbers in told.items()},
    }


# -- rows and columns ---------------------------------------------------------------------------


def _by_group(columns: Columns, name: str, many: int) -> Floats:
    """Return a column with a row for each population group and its basis cells side by side."""
    return np.asarray(columns[name], dtype=np.float64).reshape(-1, many)


def _with_total(values: Floats) -> Floats:
    return np.concatenate([values.sum(axis=1, keepdims=True), values], axis=1)


def _noisy(values: Floats, variance: Floats) -> dict[str, NDArray[Any]]:
    return {
        "COUNT_NOISY": _whole(values),
        "VARIANCE": variance.ravel(),
        "MOE_NOISY": Z * np.sqrt(variance.ravel()),
    }


def _whole(values: Floats) -> NDArray[np.int64]:
    return np.rint(values.ravel()).astype(np.int64)


def _labels(
    columns: Columns, many: int, cells: NDArray[Any], groups: NDArray[np.int64] | None = None
) -> dict[str, NDArray[Any]]:
    """Return the columns that say which number a row is about."""
    names = {"GEOID": "region", "REGION_TYPE": "region_type", "ITERATION_CODE": "iteration"}
    first = {told: np.asarray(columns[name])[::many] for told, name in names.items()}
    chosen = slice(None) if groups is None else groups
    rows = {told: np.repeat(values[chosen], len(cells)) for told, values in first.items()}
    size = len(rows["GEOID"]) // len(cells)
    return {**rows, "DATA_CELL": np.tile(cells.astype(np.int64), size)}


def _shared(
    above: Columns, many: int, below: Columns, few: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the groups that two tables have in common, as rows of each."""
    names = ("region_type", "region", "iteration")
    keys = [
        list(zip(*(np.asarray(table[name])[::step].tolist() for name in names), strict=True))
        for table, step in ((above, many), (below, few))
    ]
    place = {key: row for row, key in enumerate(keys[1])}
    pairs = [(row, place[key]) for row, key in enumerate(keys[0]) if key in place]
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
