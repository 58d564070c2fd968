"""Statistics published exactly: the parts that the second building block is made of.

An invariant is a deterministic function of the data. Two data sets are compared only if
they agree on every invariant, so nothing is promised about what an invariant tells.

Four kinds occur in practice: tables of counts, linear combinations of counts,
inequalities, and indicators of cells that are not empty. For an inequality the function
is its indicator: data sets that break it form a universe of their own (Bailie, Gong and
Meng, equation 2.4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from discreet.config import Strict
from discreet.spec.budget import Rational
from discreet.spec.domain import WHOLE

#: One unit of a data set small enough to write down: its columns, and under `members` a
#: list of persons. Area codes of all levels are columns.
TinyUnit = Mapping[str, Any]

#: The value of an invariant: what it counts per cell, cells with 0 left out.
Value = dict[tuple[str, ...], Fraction]


class _Counts(Strict):
    """What all kinds share: rows of `of` satisfying `where`, by `by`, in the areas of `level`."""

    name: str
    of: Literal["units", "persons"]
    by: tuple[str, ...] = ()
    level: str
    where: dict[str, list[str]] = Field(default_factory=dict)

    def _rows(self) -> str:
        kinds = "; ".join(f"{name}: {', '.join(codes)}" for name, codes in self.where.items())
        return f"{self.of} ({kinds})" if kinds else self.of

    def _cells(self) -> str:
        by = f" by {', '.join(self.by)}" if self.by else ""
        return by if self.level == WHOLE else f"{by}, in every {self.level}"


class MarginalTable(_Counts):
    """A table of counts.

    With `whole_record` the complete records are counted: all their variables, members
    included, but location finer than `level` and the columns in `without` left out
    (columns of members as `persons.name`).
    """

    kind: Literal["marginal"] = "marginal"
    whole_record: bool = False
    without: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _of_records(self) -> MarginalTable:
        if self.without and not self.whole_record:
            raise ValueError("without: only columns of complete records can be left out")
        if self.whole_record and self.of != "units":
            raise ValueError("whole_record: only units, with their members, have complete records")
        return self

    def describe(self) -> str:
        """Return the invariant as a phrase."""
        what = "complete records of" if self.whole_record else "number of"
        but = f" (all but {', '.join(self.without)})" if self.without else ""
        return f"{what} {self._rows()}{but}{self._cells()}"


class LinearCombination(_Counts):
    """A weighted sum of the cells of a table; `weights` by the codes of `by` joined with '|'."""

    kind: Literal["linear"] = "linear"
    weights: dict[str, Rational] = Field(min_length=1)

    @model_validator(mode="after")
    def _named(self) -> LinearCombination:
        if any(len(cell.split("|")) != len(self.by) for cell in self.weights if self.by):
            raise ValueError("weights: each cell names one code per column of `by`")
        return self

    def describe(self) -> str:
        """Return the invariant as a phrase."""
        terms = " + ".join(f"{weight} x [{cell}]" for cell, weight in self.weights.items())
        return f"the sum {terms} of the number of {self._rows()}{self._cells()}"


class Inequality(_Counts):
    """Whether the count in each cell is at least, or at most, a given number."""

    kind: Literal["inequality"] = "inequality"
    at_least: int | None = None
    at_most: int | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> Inequality:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("give one of at_least and at_most")
        return self

    def holds(self, count: int) -> bool:
        """Tell whether a count satisfies the inequality."""
        if self.at_least is not None:
            return count >= self.at_least
        return self.at_most is not None and count <= self.at_most

    def describe(self) -> str:
        """Return the invariant as a phrase."""
        least = self.at_least is not None
        bound = f"at least {self.at_least}" if least else f"at most {self.at_most}"
        return f"whether the number of {self._rows()} is {bound}{self._cells()}"


class Indicator(_Counts):
    """Whether each cell of a table has anything in it."""

    kind: Literal["indicator"] = "indicator"

    def describe(self) -> str:
        """Return the invariant as a phrase."""
        return f"whether there are any {self._rows()}{self._cells()}"


def _kind(value: Any) -> str:
    """Return the kind of an invariant; in files a table of counts need not say so.

    What is no invariant at all is read as a table, and refused as one.
    """
    if isinstance(value, Mapping):
        return str(value.get("kind", "marginal"))
    return str(getattr(value, "kind", "marginal"))


Invariant = Annotated[
    Annotated[MarginalTable, Tag("marginal")]
    | Annotated[LinearCombination, Tag("linear")]
    | Annotated[Inequality, Tag("inequality")]
    | Annotated[Indicator, Tag("indicator")],
    Discriminator(_kind),
]


def value(
    invariant: Invariant,
    units: Sequence[TinyUnit],
    spine: Sequence[str] = (),
    places: Sequence[str] = (),
) -> Value:
    """Return what an invariant publishes about a data set that is written out.

    Areas and cells without rows are left out; an inequality counts 1 where it holds
    differently from an empty cell, so that left-out cells need no list of areas.
    """
    counts = Counter[tuple[str, ...]]()
    for row in _rows(invariant, units, [*spine], places):
        if all(row.get(name) in codes for name, codes in invariant.where.items()):
            counts[_cell(invariant, row)] += 1
    if isinstance(invariant, LinearCombination):
        return _weighted(invariant, counts)
    if isinstance(invariant, Indicator):
        return {cell: Fraction(1) for cell in counts}
    if isinstance(invariant, Inequality):
        empty = invariant.holds(0)
        return {c: Fraction(1) for c, n in counts.items() if invariant.holds(n) != empty}
    return {cell: Fraction(count) for cell, count in counts.items()}


def _rows(
    invariant: Invariant, units: Sequence[TinyUnit], spine: list[str], places: Sequence[str]
) -> list[dict[str, Any]]:
    if invariant.of == "persons":
        own = [{k: v for k, v in unit.items() if k != "members"} for unit in units]
        return [
            {**unit, **person}
            for unit, whole in zip(own, units, strict=True)
            for person in whole.get("members", ())
        ]
    below = spine[spine.index(invariant.level) + 1 :] if invariant.level in spine else spine
    left_out = {*below, *places, *getattr(invariant, "without", ())}
    return [{**unit, "": _written(unit, left_out)} for unit in units]


def _written(unit: TinyUnit, left_out: Set[str]) -> str:
    """Return a whole record as text, without some columns."""
    kept = {k: v for k, v in unit.items() if k not in left_out and k != "members"}
    persons = [
        {k: v for k, v in person.items() if f"persons.{k}" not in left_out}
        for person in unit.get("members", ())
    ]
    members = sorted(str(sorted(person.items())) for person in persons)
    return f"{sorted(kept.items())}{members}"


def _cell(invariant: Invariant, row: Mapping[str, Any]) -> tuple[str, ...]:
    columns = [] if invariant.level == WHOLE else [invariant.level]
    columns += invariant.by
    if isinstance(invariant, MarginalTable) and invariant.whole_record:
        columns.append("")
    return tuple(str(row.get(column)) for column in columns)


def _weighted(invariant: LinearCombination, counts: Mapping[tuple[str, ...], int]) -> Value:
    sums: Value = {}
    width = len(invariant.by)
    for cell, count in counts.items():
        area, codes = cell[: len(cell) - width], "|".join(cell[len(cell) - width :])
        weight = invariant.weights.get(codes, Fraction(0))
        sums[area] = sums.get(area, Fraction(0)) + weight * count
    return {area: total for area, total in sums.items() if total}
