"""The cells a table may have, from the schema alone: empty cells count too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from discreet.census.condition import COMBINERS, Condition
from discreet.census.declarations import (
    Cases,
    MemberCount,
    MemberValue,
    Recode,
    Table,
    TableName,
)
from discreet.census.schema import Schema
from discreet.errors import BadInput

#: A range of whole numbers longer than this is no set of categories.
LONGEST_RANGE = 1000

#: The category of records without a value, in tables.
MISSING = "missing"


def categories(schema: Schema, table: TableName, column: str) -> list[str]:
    """Return every value a column can take, as text, in the order of the schema."""
    home = schema.home(column, table)
    if home is None:
        raise BadInput(f"{table} have no column '{column}'.")
    variable = schema.variables(home).get(column)
    if variable is not None:
        if variable.codes is not None:
            return variable.leaves
        if variable.number == "integer" and variable.min is not None and variable.max is not None:
            low, high = int(variable.min), int(variable.max)
            if high - low < LONGEST_RANGE:
                return [str(value) for value in range(low, high + 1)]
        raise _endless(column)
    computed = schema.computed(home).get(column)
    if isinstance(computed, Recode):
        return _recoded(schema, home, column, computed)
    if isinstance(computed, MemberValue):
        return categories(schema, "persons", computed.take)
    if isinstance(computed, Cases) and all(case.then is not None for case in computed.cases):
        results = [str(case.then) for case in computed.cases]
        if computed.otherwise is not None:
            results.append(str(computed.otherwise))
        return list(dict.fromkeys(results))
    raise _endless(column)


def _recoded(schema: Schema, home: TableName, column: str, recode: Recode) -> list[str]:
    if recode.roll_up:
        source = schema.home(recode.of, home)
        variable = None if source is None else schema.variables(source).get(recode.of)
        if variable is None:
            raise _endless(column)
        return list(dict.fromkeys(variable.top_code(code) for code in variable.leaves))
    labels = [*(recode.bins or recode.groups or {})]
    if recode.otherwise is not None:
        labels.append(recode.otherwise)
    return list(dict.fromkeys(labels))


def _endless(column: str) -> BadInput:
    return BadInput(
        f"column '{column}' has no finite list of values. Give the schema a recode of it."
    )


def table_categories(schema: Schema, table: Table, column: str) -> list[str]:
    """Return the categories of a column in a table; the last is that of missing values.

    It is there if the schema lets records of the table have no value. So every record is in
    one cell, whoever it is.
    """
    values = categories(schema, table.count, column)
    if not may_be_missing(schema, table.count, column, table.where):
        return values
    if MISSING in values:
        raise BadInput(
            f"table {table.name}: '{column}' may be missing, and has a value of its own called "
            f"'{MISSING}', too. Give that value another name."
        )
    return [*values, MISSING]


def cells_per_area(schema: Schema, table: Table) -> int:
    """Return the number of cells a table has in each area."""
    return math.prod(len(table_categories(schema, table, column)) for column in table.by)


# -- values that may be missing -------------------------------------------------------------


def listed_in(where: Condition, column: str) -> set[str] | None:
    """Return the values of a column that a condition leaves; None if it lists none."""
    listed = None if column in COMBINERS else where.get(column)
    if isinstance(listed, str | int):
        return {str(listed)}
    return {str(value) for value in listed} if isinstance(listed, list) else None


def may_be_missing(schema: Schema, table: TableName, column: str, where: Condition) -> bool:
    """Return whether rows of a table that satisfy `where` may have no value, by the schema."""
    return _may_be_missing(schema, table, table, column, where)


def _may_be_missing(
    schema: Schema, table: TableName, seen_from: TableName, column: str, where: Condition
) -> bool:
    home = schema.home(column, seen_from) or "geography"
    if column in where and schema.home(column, table) == home:
        # A missing value never satisfies a list or a range.
        limits = where[column]
        return isinstance(limits, Mapping) and bool(limits.get("missing", False))
    variable, computed = schema.variables(home).get(column), schema.computed(home).get(column)
    if variable is not None:
        if variable.missing or variable.only is None:
            return variable.missing
        return not all(
            schema.home(name, table) == schema.home(name, home)
            and _limited(listed_in(where, name), listed_in(variable.only, name))
            for name in variable.only
        )
    if isinstance(computed, Recode):
        lost = _leaves_out(schema, home, computed)
        return lost or _may_be_missing(schema, table, home, computed.of, where)
    if isinstance(computed, Cases):
        taken = [case.take for case in computed.cases if case.take is not None]
        absent = (_may_be_missing(schema, table, home, column, where) for column in taken)
        return computed.otherwise is None or any(absent)
    return not isinstance(computed, MemberCount)


def _limited(values: set[str] | None, to: set[str] | None) -> bool:
    """Return whether rows have only values among those listed."""
    return values is not None and to is not None and values <= to


def _leaves_out(schema: Schema, home: TableName, recode: Recode) -> bool:
    """Return whether a recode has values without a group."""
    if recode.otherwise is not None or recode.roll_up:
        return False
    if recode.groups is not None:
        listed = {code for group in recode.groups.values() for code in group}
        try:
            return not set(categories(schema, home, recode.of)) <= listed
        except BadInput:  # of endlessly many values no list has all
            return True
    bins = sorted((recode.bins or {}).values(), key=lambda limits: limits[0])
    least, most = _range(schema, home, recode.of)
    gaps = any(high is None or high + 1 < low for (_, high), (low, _) in pairwise(bins))
    last = math.inf if bins[-1][1] is None else bins[-1][1]
    return gaps or bins[0][0] > least or last < most


def _range(schema: Schema, home: TableName, column: str) -> tuple[float, float]:
    """Return the least and the largest value of a column of whole numbers, as far as known."""
    place = schema.home(column, home) or home
    if isinstance(schema.computed(place).get(column), MemberCount):
        return 0, math.inf
    variable = schema.variables(place).get(column)
    if variable is None or variable.number != "integer":
        return -math.inf, math.inf
    least = -math.inf if variable.min is None else variable.min
    return least, math.inf if variable.max is None else variable.max
