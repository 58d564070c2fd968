"""What a column is computed from: every source of it, and the chain that leads there.

A mechanism promises something about one record. A column that depends on more than that
record, its unit and public geography would let one record change many counts, so every
mechanism asks here before it uses one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from discreet.census import condition
from discreet.census.declarations import Cases, MemberCount, MemberValue, Recode, TableName
from discreet.errors import BadInput

if TYPE_CHECKING:
    from discreet.census.schema import Schema

#: A column of a table.
Source = tuple[TableName, str]


def needs(schema: Schema, place: TableName, name: str) -> frozenset[str]:
    """Return the columns (seen from `place`) a computed column is made from.

    Member counts and values are made from persons, not from columns of the unit.
    """
    computed = schema.computed(place).get(name)
    if isinstance(computed, Recode):
        return frozenset({computed.of})
    if isinstance(computed, Cases):
        taken = {case.take for case in computed.cases if case.take is not None}
        return frozenset(taken).union(*(condition.columns_of(c.when) for c in computed.cases))
    return frozenset()


def sources(
    schema: Schema, column: str, place: TableName = "persons"
) -> dict[Source, tuple[Source, ...]]:
    """Return every source of a column seen from `place`, and the shortest chain to each.

    The column itself is the first; other tables are followed, members of a unit, too. A
    chain begins with the column and ends with the source.
    """
    found: dict[Source, tuple[Source, ...]] = {}
    todo: deque[tuple[TableName, str, tuple[Source, ...]]] = deque([(place, column, ())])
    while todo:
        seen_from, name, before = todo.popleft()
        home = schema.home(name, seen_from)
        if home is None or (home, name) in found:
            continue
        chain = found[home, name] = (*before, (home, name))
        todo += [(table, need, chain) for table, need in _inputs(schema, home, name)]
    return found


def _inputs(schema: Schema, home: TableName, name: str) -> list[Source]:
    """Return the columns that a column is made from directly, with the table that sees them."""
    computed, variable = schema.computed(home).get(name), schema.variables(home).get(name)
    inputs: list[Source] = [(home, need) for need in sorted(needs(schema, home, name))]
    if variable is not None and variable.derive is not None:
        inputs.append((home, variable.derive))
    if isinstance(computed, MemberCount):
        inputs += [("persons", need) for need in sorted(condition.columns_of(computed.members))]
    elif isinstance(computed, MemberValue):
        read = {computed.take, *condition.columns_of(computed.member)}
        inputs += [("persons", need) for need in sorted(read)]
    return inputs


def made_from(schema: Schema, column: str, place: TableName = "persons") -> frozenset[Source]:
    """Return every source of a column seen from `place`, itself included."""
    return frozenset(sources(schema, column, place))


def refuse_confidential(
    schema: Schema, place: TableName, columns: Iterable[str], used_as: str
) -> None:
    """Refuse columns seen from `place` that are computed from confidential geography.

    What geography marks as confidential may be a sum over all records of an area: when one
    of them changes, the column would change for all the others.
    """
    secret = {("geography", name) for name, v in schema.geography.items() if v.confidential}
    for column in columns:
        for source, chain in sources(schema, column, place).items():
            if source in secret:
                raise BadInput(
                    f"{used_as}: '{column}' is computed from confidential geography "
                    f"({chain_text(chain)}), so that one record could change it for many others. "
                    f"Use columns of the records, or public geography."
                )


def chain_text(chain: Iterable[Source]) -> str:
    """Return a chain of columns in words."""
    return " from ".join(f"{table}.{name}" for table, name in chain)
