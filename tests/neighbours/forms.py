"""The values that records of a table may have by the declarations of a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.census import Condition, Schema, TableName, Variable, columns_of
from neighbours.draws import Draw, pick, written

Value = str | int | float | None
Record = Mapping[str, Value]

#: Of longer ranges only some numbers are drawn.
LONGEST_RANGE = 1000


# -- conditions, as far as `only` needs them ---------------------------------------------------


def holds(condition: Condition, row: Record) -> bool:
    """Return whether a record meets a condition; computed columns are not known here."""
    return all(_holds(key, value, row) for key, value in condition.items())


def _holds(key: str, value: Any, row: Record) -> bool:
    if key in ("any", "all"):
        return {"any": any, "all": all}[key](holds(part, row) for part in value)
    if key == "not":
        return not holds(value, row)
    if key == "same":
        return row[value[0]] == row[value[1]]
    found = row[key]
    if not isinstance(value, Mapping):
        return found in (value if isinstance(value, list) else [value])
    if "missing" in value and value["missing"] != (found is None):
        return False
    limits = {"min", "max"} & set(value)
    if limits and found is None:
        return False
    return all(found >= value[k] if k == "min" else found <= value[k] for k in limits)


# -- values ------------------------------------------------------------------------------------


def choices(variable: Variable) -> tuple[Value, ...]:
    """Return the values a record may have, the missing one last."""
    found: Sequence[Value]
    if variable.codes is not None:
        found = variable.leaves
    elif variable.pattern is not None:
        found = [written(variable.pattern, number) for number in range(3)]
    else:
        low = variable.min if variable.min is not None else min(0, variable.max or 0)
        high = variable.max if variable.max is not None else max(low, 0) + 8
        if variable.number == "real":
            found = [low + (high - low) * eighth / 8 for eighth in range(9)]
        elif high - low < LONGEST_RANGE:
            found = range(int(low), int(high) + 1)
        else:
            found = [*range(int(low), int(low) + 9), int(high)]
    return (*found, None) if variable.missing else tuple(found)


@dataclass(frozen=True)
class Form:
    """The variables of one table that a world has, in an order in which they can be drawn."""

    variables: Mapping[str, Variable]
    choices: Mapping[str, tuple[Value, ...]]
    order: tuple[str, ...]

    @classmethod
    def of(cls, schema: Schema, table: TableName, present: Sequence[str]) -> Form:
        """Return the form of a table; a variable comes after those its `only` looks at."""
        variables = {name: schema.variables(table)[name] for name in present}
        order: list[str] = []

        def place(name: str) -> None:
            if name in variables and name not in order:
                for other in sorted(columns_of(variables[name].only or {})):
                    place(other)
                order.append(name)

        for name in variables:
            place(name)
        return cls(variables, {n: choices(v) for n, v in variables.items()}, tuple(order))

    def applies(self, name: str, row: Record) -> bool:
        """Return whether a record has the variable; a condition on absent columns is void."""
        only = self.variables[name].only
        return only is None or not columns_of(only) <= set(row) or holds(only, row)

    def draw(self, draw: Draw, above: Record, fixed: Record | None = None) -> Record:
        """Return the values of a record under those above it; some may be given."""
        row: dict[str, Value] = {}
        for name in self.order:
            if fixed and name in fixed:
                row[name] = fixed[name]
            elif self.applies(name, {**above, **row}):
                row[name] = pick(draw, self.choices[name])
            else:
                row[name] = None
        return row

    def fits(self, row: Record, above: Record) -> bool:
        """Return whether the values of a record are there where they must be, and only there."""
        seen = {**above, **row}
        return all(
            row[name] in self.choices[name] if self.applies(name, seen) else row[name] is None
            for name in self.order
        )
