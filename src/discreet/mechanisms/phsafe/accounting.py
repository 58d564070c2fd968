"""What the noise of each table costs, derived from how its query is built.

Neighbours are two censuses that differ in one person; with the person, the record of the
household may change, and counts as one record removed and one added. Stability counts by
how many rows the input of the counts may then differ:

    join of persons, truncated to tau a unit, with units     2 tau + 2
    units                                                    2

(Sexton et al. 2024, Theorems 1 and 2). Rows are counted whether they come or go, so this is
at least the L2 distance of the counts of one level, where each row lies in one cell at most.
The discrete Gaussian with sigma^2 = D^2 / (2 rho) then loses rho^2 = rho (Canonne, Kamath
and Steinke 2020, Theorem 4), and levels and tables add up.

The distance of the counts themselves is smaller (ours, proved here): the counts of one
household before and after, v and w, are not negative and add up to tau at most, so

    |v - w|^2 <= |v|^2 + |w|^2 <= 2 tau^2,        |v - w|_1 <= 2 tau,

for units with tau = 1; a changed person alters two households at most, so both norms
double. This tight account is shown and never charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Literal, NamedTuple

from discreet.errors import BadInput
from discreet.products import sdhc

Noise = Literal["gaussian", "geometric"]
Change = Literal["add-remove", "replace"]

#: Rows of persons and of units that differ when one person is added or removed.
PERSON_ROWS, UNIT_ROWS = 1, 2

#: Half the width of a 90 % interval in standard deviations, as the 2020 budgets were set.
Z = Fraction("1.645")


class Truncation(NamedTuple):
    """Keep at most `threshold` rows of a key; one row more or less changes `stability` rows."""

    threshold: int
    stability: int


def keep_first(threshold: int) -> Truncation:
    """Return the truncation that keeps the first rows of a key in a fixed order.

    A row that comes first pushes another one out: two rows change.
    """
    return Truncation(threshold, stability=2)


#: Drop the rows of every key that is there more than once: keys of units.
KEEP_UNIQUE = Truncation(threshold=1, stability=1)


def join_stability(left: Truncation, right: Truncation, left_rows: int, right_rows: int) -> int:
    """Return by how many rows a truncated join changes.

    Each row that changes on one side after its truncation meets at most so many rows as the
    threshold of the other side.
    """
    return (
        right.threshold * left.stability * left_rows + left.threshold * right.stability * right_rows
    )


def stability(table: str, threshold: int | None = None) -> int:
    """Return by how much the counts of one level of a table change at most, in rows.

    >>> stability("PH1_num", 10), stability("PH6", 6), stability("PH8_denom")
    (22, 14, 2)
    """
    shell = sdhc.shell_of(table)
    rows = UNIT_ROWS
    if shell.counts == "persons":
        if threshold is None or threshold < 1:
            raise BadInput(f"{table}: the threshold must be a whole number from 1 on.")
        rows = join_stability(keep_first(threshold), KEEP_UNIQUE, PERSON_ROWS, UNIT_ROWS)
    return rows * max(overlap(table, level) for level in shell.levels)


def overlap(table: str, level: str) -> int:
    """Return in how many cells of a level one row may be counted, by trying all of them."""
    return _cells_of_a_row(table) * _groups_of_a_row(tuple(sdhc.LEVELS[level].iterations))


@lru_cache(maxsize=64)
def _cells_of_a_row(table: str) -> int:
    return _most([cell.where for cell in sdhc.SHELLS[table].cells.values()])


@lru_cache(maxsize=64)
def _groups_of_a_row(groups: tuple[str, ...]) -> int:
    return _most([sdhc.ITERATIONS[code] for code in groups])


def _most(conditions: list[sdhc.Condition]) -> int:
    """Return how many of the conditions one row can meet."""
    columns = sorted({column for where in conditions for column in where})
    values = {**sdhc.PERSON_COLUMNS, **sdhc.UNIT_COLUMNS}
    rows = (
        dict(zip(columns, row, strict=True))
        for row in product(*(values[column] for column in columns))
    )
    return max(
        sum(all(row[c] in allowed for c, allowed in where.items()) for where in conditions)
        for row in rows
    )


def tight_square(table: str, threshold: int | None, change: Change) -> int:
    """Return the square of the largest L2 distance of the counts of one level.

    >>> tight_square("PH1_num", 10, "add-remove"), tight_square("PH8_denom", None, "replace")
    (200, 8)
    """
    most = 1 if sdhc.shell_of(table).counts == "units" else threshold
    if most is None:
        raise BadInput(f"{table}: the threshold must be a whole number from 1 on.")
    return 2 * most**2 * households(change) ** 2


def households(change: Change) -> int:
    """Return how many households one person alters: those it leaves and those it joins."""
    return 1 if change == "add-remove" else 2


# -- the account of a run ----------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One level of one table: what is spent on it, and what that buys."""

    table: str
    level: str
    #: rho (Gaussian) or epsilon (geometric) for one person added or removed.
    budget: Fraction
    threshold: int | None
    noise: Noise

    @property
    def stability(self) -> int:
        """Return by how many rows the counts may change."""
        return stability(self.table, self.threshold)

    @property
    def parameter(self) -> Fraction:
        """Return sigma^2 of the discrete Gaussian, or the scale of the geometric noise."""
        if self.noise == "gaussian":
            return self.stability**2 / (2 * self.budget)
        return self.stability / self.budget

    def published(self, change: Change) -> Fraction:
        """Return the loss as published: for a changed person twice that for an added one.

        Gaussian: Sexton et al. 2024, Theorems 3 and 4. Their proof overlooks that a
        household may leave a cell, but the factor holds, by the tight account. Geometric:
        to change a person is to remove one and to add one.
        """
        return self.budget * households(change)

    def tight(self, change: Change) -> Fraction:
        """Return the loss counted directly (ours, proved here); never charged."""
        most = tight_square(self.table, self.threshold, change)
        if self.noise == "gaussian":
            return most / (2 * self.parameter)
        root = 1 if self.threshold is None else self.threshold
        return 2 * root * households(change) / self.parameter


@dataclass(frozen=True)
class Account:
    """All that a run spends; sums over its parts."""

    parts: tuple[Part, ...]

    def published(self, change: Change) -> Fraction:
        """Return what is charged."""
        return sum((part.published(change) for part in self.parts), Fraction(0))

    def tight(self, change: Change) -> Fraction:
        """Return what the noise really loses at most (ours, proved here); never charged."""
        return sum((part.tight(change) for part in self.parts), Fraction(0))


def account(
    budgets: Mapping[str, Mapping[str, Fraction]],
    thresholds: Mapping[str, int],
    noise: Noise = "gaussian",
) -> Account:
    """Return the account of tables, levels and budgets; a budget of 0 leaves a level out."""
    return Account(
        tuple(
            Part(table, level, budgets[table][level], thresholds.get(table), noise)
            for table, shell in sdhc.SHELLS.items()
            for level in shell.levels
            if budgets.get(table, {}).get(level, 0) > 0
        )
    )


def budget_for_margin(
    margin: Fraction | int, distance: int, z: Fraction = Z, digits: int | None = 6
) -> Fraction:
    """Return rho for which z sigma is the margin of error: z^2 D^2 / (2 margin^2), rounded.

    >>> budget_for_margin(500, 22)
    Fraction(2619, 1000000)
    """
    if margin <= 0 or distance <= 0:
        raise BadInput("the margin of error and the stability must be above 0.")
    exact = z**2 * distance**2 / (2 * Fraction(margin) ** 2)
    if digits is None:
        return exact
    shown = Decimal(exact.numerator) / Decimal(exact.denominator)
    return Fraction(shown.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN))
