"""What must fit together in a schema: names, codes, kinds of values, conditions."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from discreet.census import condition
from discreet.census.declarations import (
    Cases,
    MemberCount,
    MemberValue,
    Recode,
    TableName,
)
from discreet.census.provenance import Source, inputs_of
from discreet.config import suggest

if TYPE_CHECKING:
    from discreet.census.schema import Schema

#: Columns the model itself owns; a schema may not declare them.
RESERVED = frozenset(
    {"unit_id", "person_key", "donor_id", "row", "any", "all", "not", "same"}
    | {"area", "count", "value", "variance"}
)


def problems(schema: Schema) -> Iterator[str]:
    """Yield what does not fit together: unknown columns, codes, levels."""
    for place in ("geography", "units", "persons"):
        declared = [*schema.variables(place), *schema.computed(place)]
        for name in declared:
            if name in RESERVED or (name in schema.area_names):
                yield f"{place}.{name}: the name is taken by the model"
        for name in set(schema.variables(place)) & set(schema.computed(place)):
            yield f"{place}.{name}: both a variable and computed"
    for level in schema.area_names:
        if level in RESERVED or level == "rows":
            yield f"level '{level}': the name is taken by the model"
    yield from _misplaced(schema)
    kind = schema.units.get("kind")
    if kind is None or kind.codes is None or not kind.required:
        yield "units.kind: must be a required variable with codes"
    else:
        kinds = schema.kinds
        named = [*kinds.occupied, *kinds.vacant, *kinds.collective]
        # Every unit is swapped or declared fixed: a kind outside all groups would be neither.
        if sorted(named) != sorted(kind.leaves):
            yield "kinds: must name every code of units.kind exactly once"
    wrong = list(_condition_problems(schema))
    yield from wrong
    if wrong:  # what they read cannot be said
        return
    yield from _computed_problems(schema)
    for table in schema.tables:
        for level in table.levels:
            if level not in schema.area_names:
                yield f"tables.{table.name}: no level '{level}'.{suggest(level, schema.area_names)}"
        for column in table.by:
            if schema.home(column, table.count) is None:
                yield _unknown(schema, table.count, f"tables.{table.name}", column)
        if len(set(table.by)) != len(table.by):
            yield f"tables.{table.name}: names a column twice"


def _misplaced(schema: Schema) -> Iterator[str]:
    """Yield what a variable may not say in its table."""
    for place in ("units", "persons"):
        for name, variable in schema.variables(place).items():
            if variable.confidential:
                yield (
                    f"{place}.{name}.confidential: only geography is marked so; variables of "
                    f"{place} are all confidential, and protected by the mechanism"
                )
    for name, variable in schema.geography.items():
        if variable.derive is not None:
            yield f"geography.{name}.derive: only units and persons have computed columns"
        if variable.from_others:
            yield f"geography.{name}.from_others: made from records, so mark it `confidential`"


def _unknown(schema: Schema, table: TableName, where: str, column: str) -> str:
    return f"{where}: no column '{column}'.{suggest(column, schema.visible(table))}"


def _condition_problems(schema: Schema) -> Iterator[str]:
    for place, where, cond in _conditions(schema):
        for problem in condition.check(cond, functools.partial(_entry, schema, place)):
            yield f"{where}: {problem}"


def _conditions(schema: Schema) -> Iterator[tuple[TableName, str, Any]]:
    """Yield every condition of the schema with the table it is read in and its place."""
    for place in ("geography", "units", "persons"):
        for name, variable in schema.variables(place).items():
            if variable.only is not None:
                yield place, f"{place}.{name}.only", variable.only
        for name, computed in schema.computed(place).items():
            where = f"computed_{place}.{name}"
            if isinstance(computed, MemberCount):
                yield "persons", where, computed.members
            elif isinstance(computed, MemberValue):
                yield "persons", where, computed.member
            elif isinstance(computed, Cases):
                for case in computed.cases:
                    yield place, where, case.when
    for rule in schema.rules:
        yield rule.table, f"rules.{rule.id}.if", rule.if_
        yield rule.table, f"rules.{rule.id}.then", rule.then
    for table in schema.tables:
        yield table.count, f"tables.{table.name}.where", table.where


def _entry(schema: Schema, table: TableName, column: str, value: Any) -> str | None:
    home = schema.home(column, table)
    if home is None:
        return f"no column '{column}'.{suggest(column, schema.visible(table))}"
    if value is None:
        return None
    kind = kind_of(schema, table, column)
    if isinstance(value, Mapping):
        if kind == "text" and set(value) & {"min", "max"}:
            return f"'{column}' has codes, not a range"
        return None
    values = value if isinstance(value, list) else [value]
    if kind != "text":
        return None if all(isinstance(v, int) for v in values) else f"'{column}' holds numbers"
    if not all(isinstance(v, str) for v in values):
        return f"codes of '{column}' are text: put them in quotes"
    variable = schema.variables(home).get(column)
    codes = variable.codes if variable is not None else None
    if codes is not None and any(v not in codes for v in values):
        return f"'{column}' has no such code"
    return None


def kind_of(schema: Schema, table: TableName, column: str) -> Literal["text", "integer", "real"]:
    """Return how the values of a column seen from `table` are stored."""
    home = schema.home(column, table)
    variable = None if home is None else schema.variables(home).get(column)
    if variable is not None:
        return variable.kind
    computed = None if home is None else schema.computed(home).get(column)
    if isinstance(computed, MemberValue) and computed.take in schema.persons:
        return schema.persons[computed.take].kind
    if isinstance(computed, Cases):
        results = [*(case.then for case in computed.cases), computed.otherwise]
        return "integer" if any(isinstance(result, int) for result in results) else "text"
    return "integer" if isinstance(computed, MemberCount) else "text"


def _kind_problems(schema: Schema, place: TableName, name: str) -> Iterator[str]:
    """Yield where a computed column mixes text with numbers."""
    computed, where = schema.computed(place)[name], f"computed_{place}.{name}"
    if isinstance(computed, Recode):
        number = kind_of(schema, place, computed.of) != "text"
        if number != (computed.bins is not None):
            yield f"{where}: bins are for numbers, groups and roll_up for codes"
    elif isinstance(computed, Cases):
        number = kind_of(schema, place, name) != "text"
        literals = [case.then for case in computed.cases if case.then is not None]
        literals += [] if computed.otherwise is None else [computed.otherwise]
        taken = [case.take for case in computed.cases if case.take is not None]
        kinds = {isinstance(literal, int) for literal in literals}
        kinds |= {kind_of(schema, place, column) != "text" for column in taken}
        if kinds != {number}:
            yield f"{where}: cases give either text or whole numbers"


def _pairs(cond: Any) -> Iterator[tuple[str, str]]:
    """Yield the pairs of columns that a condition compares."""
    for key, value in cond.items() if isinstance(cond, Mapping) else ():
        if key == "same" and isinstance(value, list) and len(value) == 2:
            yield str(value[0]), str(value[1])
        for part in value if key in ("any", "all") and isinstance(value, list) else [value]:
            if key in ("any", "all", "not"):
                yield from _pairs(part)


def _computed_problems(schema: Schema) -> Iterator[str]:
    for place in ("units", "persons"):
        for name, computed in schema.computed(place).items():
            where = f"computed_{place}.{name}"
            if isinstance(computed, Recode):
                if schema.home(computed.of, place) is None:
                    yield _unknown(schema, place, where, computed.of)
            elif isinstance(computed, MemberValue):
                if computed.take not in schema.persons:
                    yield _unknown(schema, "persons", where, computed.take)
            elif isinstance(computed, Cases):
                for case in computed.cases:
                    if case.take is not None and schema.home(case.take, place) is None:
                        yield _unknown(schema, place, where, case.take)
            if isinstance(computed, MemberCount | MemberValue) and place != "units":
                yield f"{where}: only units have members"
            yield from _kind_problems(schema, place, name)
        for name, variable in schema.variables(place).items():
            if variable.derive is not None and variable.derive not in schema.computed(place):
                yield f"{place}.{name}.derive: no computed column '{variable.derive}'"
            elif variable.derive is not None:
                derived = kind_of(schema, place, variable.derive)
                if (derived == "text") != (variable.kind == "text"):
                    yield f"{place}.{name}.derive: '{variable.derive}' is of another kind"
        yield from _circles(schema, place)


def _circles(schema: Schema, place: TableName) -> Iterator[str]:
    """Yield a computed column that needs itself, through members of the unit as well."""
    for start in schema.computed(place):
        seen: set[Source] = set()
        todo: list[Source] = [(place, start)]
        while todo:
            table, name = todo.pop()
            for needed in inputs_of(schema, table, name):
                home = schema.home(needed[1], needed[0])
                if (home, needed[1]) == (place, start):
                    yield f"computed_{place}.{start}: needs itself"
                    return
                if home is not None and (home, needed[1]) not in seen:
                    seen.add((home, needed[1]))
                    todo.append((home, needed[1]))
