"""Number the kinds of persons and of units that the tables tell apart.

Two values of a column are of one class if no condition of any table tells them apart, so
classes follow from the shells. Class 0 is a value that is missing or not legal. The
classes of all columns of a record together are one number, its *kind*; a census is counted
by kinds once, and every table is a sum over kinds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.engine import list_literal
from discreet.products.sdhc.groups import ITERATIONS, PERSON_COLUMNS, UNIT_COLUMNS, Condition
from discreet.products.sdhc.shells import SHELLS

Values = Collection[str] | range
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Axis:
    """A column with the classes of its values, numbered from 1."""

    column: str
    classes: tuple[tuple[str, ...] | range, ...]

    @property
    def size(self) -> int:
        """Return the number of classes, with the class 0 of values that are not legal."""
        return len(self.classes) + 1

    def sql(self) -> str:
        """Return the class of the column in SQL, for `Engine.project`."""
        if isinstance(self.classes[0], range):
            cases = (
                f'when "{self.column}" between {of[0]} and {of[-1]} then {number}'
                for number, of in enumerate(self.classes, start=1)
            )
            return f"(case {' '.join(cases)} else 0 end)"
        numbers = [number for number, of in enumerate(self.classes, start=1) for _ in of]
        codes = list_literal(str(code) for of in self.classes for code in of)
        # A list is searched once for every code of a file; cases are gone through by every row.
        return f'coalesce(({numbers}::int[])[list_position({codes}, "{self.column}")], 0)'

    def meant(self, values: Values) -> list[int]:
        """Return the numbers of the classes that a condition allows."""
        return [n for n, of in enumerate(self.classes, start=1) if of[0] in values]


def _axis(column: str, legal: Values, conditions: list[Condition]) -> Axis:
    """Return the axis of a column: values are of one class if all conditions treat them alike."""
    asked = [where[column] for where in conditions if column in where]
    groups: dict[tuple[bool, ...], list[Any]] = {}
    for value in legal:
        groups.setdefault(tuple(value in values for values in asked), []).append(value)
    if isinstance(legal, range):
        return Axis(column, tuple(range(min(g), max(g) + 1) for g in groups.values()))
    return Axis(column, tuple(tuple(group) for group in groups.values()))


def _conditions() -> Iterator[Condition]:
    for shell in SHELLS.values():
        yield from (shell.persons, shell.units, *(cell.where for cell in shell.cells.values()))
    for where in ITERATIONS.values():
        yield where
        yield {f"householder_{column}": values for column, values in where.items()}


@dataclass(frozen=True)
class Kinds:
    """All combinations of classes of some columns, numbered."""

    axes: tuple[Axis, ...]

    @cached_property
    def number(self) -> int:
        """Return how many there are."""
        return math.prod(axis.size for axis in self.axes)

    def axis(self, column: str) -> Axis:
        """Return the axis of a column."""
        return next(axis for axis in self.axes if axis.column == column)

    def sql(self, *columns: str) -> str:
        """Return what these columns contribute to the kind of a record, in SQL."""
        terms = (f"{self.axis(column).sql()} * {self._after(column)}" for column in columns)
        return " + ".join(terms)

    def class_of(self, kinds: Numbers, column: str) -> Numbers:
        """Return the class of a column in each of some kinds."""
        return self._classes[column][kinds]

    @cached_property
    def _classes(self) -> dict[str, Numbers]:
        """The class of each column in all kinds: looked up faster than divided out."""
        kinds = np.arange(self.number)
        sizes = {axis.column: axis.size for axis in self.axes}
        return {column: kinds // self._after(column) % size for column, size in sizes.items()}

    def class_sql(self, kind: str, column: str) -> str:
        """Return the class of a column in SQL, from the column `kind`."""
        return f"{kind} // {self._after(column)} % {self.axis(column).size}"

    def _after(self, column: str) -> int:
        names = [axis.column for axis in self.axes]
        return math.prod(axis.size for axis in self.axes[names.index(column) + 1 :])

    def meets(self, kinds: Numbers, where: Condition) -> NDArray[np.bool_]:
        """Return which of some kinds satisfy a condition; columns of others do not matter."""
        met = np.ones(kinds.size, dtype=np.bool_)
        for axis in self.axes:
            if axis.column in where:
                allowed = np.zeros(axis.size, dtype=np.bool_)
                allowed[axis.meant(where[axis.column])] = True
                met &= allowed[self.class_of(kinds, axis.column)]
        return met


def _kinds(columns: Condition) -> Kinds:
    conditions = list(_conditions())
    return Kinds(tuple(_axis(name, legal, conditions) for name, legal in columns.items()))


PERSON_KINDS = _kinds(PERSON_COLUMNS)
UNIT_KINDS = _kinds(UNIT_COLUMNS)
