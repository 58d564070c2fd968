"""The cells a table may have, from the schema alone: empty cells count too."""

from __future__ import annotations

from discreet.census.declarations import Cases, MemberValue, Recode, Table, TableName
from discreet.census.schema import Schema
from discreet.errors import BadInput

#: A range of whole numbers longer than this is no set of categories.
LONGEST_RANGE = 1000


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


def cells_per_area(schema: Schema, table: Table) -> int:
    """Return the number of cells a table has in each area."""
    total = 1
    for column in table.by:
        total *= len(categories(schema, table.count, column))
    return total
