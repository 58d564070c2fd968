"""What a column is computed from, and what the contribution of a record may depend on.

A mechanism promises something about one person or one household. A column that depends on
more than that, and on public geography, would let one of them change many counts. So every
mechanism says what it tolerates, as a `Contribution`, and whatever else is refused here, with
the chain of columns that leads there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from discreet.census import condition
from discreet.census.declarations import Cases, MemberCount, MemberValue, Recode, TableName
from discreet.errors import BadInput

if TYPE_CHECKING:
    from discreet.census.schema import Schema

#: A column of a table.
Source = tuple[TableName, str]
#: Columns, each of which is made from the next.
Chain = tuple[Source, ...]


class Dependence(Enum):
    """What the value of a column depends on, as seen from one record; the gravest last."""

    RECORD = "the record itself"
    UNIT = "the unit of the person"
    MEMBERS = "the members of the unit"
    PUBLIC = "public geography"
    CONFIDENTIAL = "confidential geography"
    OTHERS = "other records"


#: What would happen if such a column were used all the same.
_WHY = {
    Dependence.RECORD: "its own values count for nothing there",
    Dependence.UNIT: "a change of one unit would change it for several persons",
    Dependence.MEMBERS: "one person could change it for the others of the unit",
    Dependence.PUBLIC: "it changes with the place",
    # It may be a sum over all records of an area.
    Dependence.CONFIDENTIAL: "one record could change it for many others",
    Dependence.OTHERS: "one record could change it for many others",
}


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
        todo += [(table, need, chain) for table, need in inputs_of(schema, home, name)]
    return found


def inputs_of(schema: Schema, home: TableName, name: str) -> list[Source]:
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


def dependences(schema: Schema, column: str, place: TableName) -> dict[Dependence, Chain]:
    """Return what a column seen from `place` depends on, with a chain of columns to each.

    Recodes, conditions, counts, values of members, derived variables and lookups in the unit
    or the geography are all followed.
    """
    found: dict[Dependence, Chain] = {}
    for what, chain in _walk(schema, column, place):
        found.setdefault(what, chain)
    return found


def _walk(schema: Schema, column: str, place: TableName) -> Iterator[tuple[Dependence, Chain]]:
    """Yield what a column depends on, the nearest first.

    Seen from a person, a column of persons is the person's own, or that of all members of the
    unit if a count or a value of members lies between.
    """
    seen: set[tuple[Source, bool]] = set()
    todo: deque[tuple[Source, bool, Chain]] = deque([((place, column), False, ())])
    while todo:
        (seen_from, name), of_members, before = todo.popleft()
        home = schema.home(name, seen_from)
        if home is None or ((home, name), of_members) in seen:
            continue
        seen.add(((home, name), of_members))
        chain = (*before, (home, name))
        counted = isinstance(schema.computed(home).get(name), MemberCount | MemberValue)
        if counted:  # who is a member at all, whatever is asked of them
            yield Dependence.MEMBERS, chain
        if name not in schema.computed(home):
            yield _dependence(schema, place, (home, name), of_members), chain
        inside = of_members or counted
        todo += [(need, inside, chain) for need in inputs_of(schema, home, name)]


def _dependence(schema: Schema, place: TableName, source: Source, of_members: bool) -> Dependence:
    """Return what a declared variable, or a level, is to a record of `place`."""
    home, name = source
    variable = schema.variables(home).get(name)
    if home == "geography":
        secret = variable is not None and variable.confidential
        return Dependence.CONFIDENTIAL if secret else Dependence.PUBLIC
    if variable is not None and variable.from_others:
        return Dependence.OTHERS
    if home == "persons" and of_members:
        return Dependence.MEMBERS
    return Dependence.RECORD if home == place else Dependence.UNIT


@dataclass(frozen=True)
class Contribution:
    """What the contribution of one protected unit to a count may depend on."""

    unit: str
    tolerated: frozenset[Dependence]

    def check(self, schema: Schema, place: TableName, columns: Iterable[str], used_as: str) -> None:
        """Refuse columns seen from `place` that depend on anything else."""
        for column in columns:
            found = dependences(schema, column, place)
            refused = [what for what in Dependence if what in found and what not in self.tolerated]
            if refused:
                what = refused[-1]  # the gravest
                raise BadInput(
                    f"{used_as}: '{column}' depends on {what.value} ({chain_text(found[what])}): "
                    f"{_WHY[what]}. What is counted for a {self.unit} may depend on "
                    f"{self.described()} only."
                )

    def described(self) -> str:
        """Return what is tolerated, in words."""
        named = [one.value for one in Dependence if one in self.tolerated]
        return ", ".join(named[:-1]) + (" and " if named[1:] else "") + named[-1]


#: A household is one record: its unit with all members.
OF_HOUSEHOLD = Contribution(
    "household", frozenset({Dependence.RECORD, Dependence.MEMBERS, Dependence.PUBLIC})
)
#: A person alone: when somebody else of the unit changes, nothing of the person does.
OF_PERSON = Contribution("person", frozenset({Dependence.RECORD, Dependence.PUBLIC}))
#: A person whose record holds the columns of the unit that do not look at its members.
OF_PERSON_IN_UNIT = Contribution("person", OF_PERSON.tolerated | {Dependence.UNIT})
#: Whatever belongs to the household in which a record is found.
OF_RECORD_IN_UNIT = Contribution("record", OF_HOUSEHOLD.tolerated | {Dependence.UNIT})

#: A record that is moved to another place: nothing of it may change with the place.
OF_RECORD_THAT_MOVES = Contribution(
    "record that moves", OF_RECORD_IN_UNIT.tolerated - {Dependence.PUBLIC}
)


def check_matched(schema: Schema, place: TableName, columns: Iterable[str], used_as: str) -> None:
    """Refuse columns that would change when records trade places with others that match.

    A column of public geography alone has one value in all places of those that match, so it
    stays; one that depends on the record as well may not.
    """
    mixed = [one for one in columns if {*dependences(schema, one, place)} != {Dependence.PUBLIC}]
    OF_RECORD_THAT_MOVES.check(schema, place, mixed, used_as)


def chain_text(chain: Iterable[Source]) -> str:
    """Return a chain of columns in words."""
    return " from ".join(f"{table}.{name}" for table, name in chain)
