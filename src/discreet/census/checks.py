"""The checks of one table, built from the schema as expressions that mark the rows at fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import narwhals as nw

from discreet.census import condition
from discreet.census.declarations import Level, MemberCount, MemberValue, TableName, Variable
from discreet.census.findings import BUILT_IN
from discreet.census.provenance import needs
from discreet.census.schema import Schema

#: Blanks and invisible characters where an id or a code begins or ends.
BLANK_ENDS = r"^[\s\p{Z}\p{C}]|[\s\p{Z}\p{C}]$"

#: Columns of a loaded table that are not data: row in its file, text that could not be read.
ROW = "_row"
FILE = "_file"


def unread(name: str) -> str:
    """Return the name of the column that holds the texts of `name` that could not be read."""
    return f"_unread_{name}"


@dataclass(frozen=True)
class Check:
    """Mark the rows that break one rule."""

    rule: str
    violated: nw.Expr
    columns: tuple[str, ...] = ()
    title: str = ""
    severity: Literal["error", "warn"] = "error"
    #: Whether rows have to be marked before they are counted: those that are compared with
    #: others, or that may be judged without a look at them.
    mark_first: bool = False
    #: Columns besides its own that tell whether a row is concerned, or whether it is right.
    looked_at: frozenset[str] = frozenset()

    @property
    def says(self) -> str:
        """Return what must hold."""
        return self.title or BUILT_IN[self.rule]


class Sight:
    """Know which columns can be had from a table, as `Columns` would find them."""

    def __init__(self, schema: Schema, present: Mapping[TableName, Iterable[str]]) -> None:
        self.schema = schema
        self.present = {place: set(names) for place, names in present.items()}

    @property
    def linked(self) -> bool:
        """Whether persons name a unit that could be looked up."""
        return all("unit_id" in self.present.get(place, ()) for place in ("units", "persons"))

    def lacks(self, place: TableName, names: Iterable[str]) -> str | None:
        """Return the first column that is not there to give `names`, or None."""
        return next((lack for name in sorted(names) if (lack := self._lack(place, name))), None)

    def _lack(self, place: TableName, name: str) -> str | None:
        if name in self.present.get(place, ()):
            return None
        home = self.schema.home(name, place)
        if home != place:
            return self._lack_above(place, name, home)
        variable = self.schema.variables(place).get(name)
        if variable is not None:
            return (
                f"{place}.{name}" if variable.derive is None else self._lack(place, variable.derive)
            )
        computed = self.schema.computed(place).get(name)
        if isinstance(computed, MemberCount | MemberValue):
            if not self.linked:
                return "persons.unit_id"
            member = computed.members if isinstance(computed, MemberCount) else computed.member
            taken = {computed.take} if isinstance(computed, MemberValue) else set()
            return self.lacks("persons", condition.columns_of(member) | taken)
        inputs = needs(self.schema, place, name)
        return self.lacks(place, inputs) if inputs else f"{place}.{name}"

    def _lack_above(self, place: TableName, name: str, home: TableName | None) -> str | None:
        if home is None or place == "geography":
            return f"{place}.{name}"
        if place == "persons" and self.linked:
            return self._lack("units", name)
        if home == "units":
            return "persons.unit_id"
        block = self.schema.block
        if block not in self.present[place] or block not in self.present["geography"]:
            return f"{place}.{block}"
        return self._lack("geography", name)


def value_checks(schema: Schema, place: TableName, sight: Sight) -> Iterator[Check]:
    """Yield the checks of each column by itself: readable, there, in its list or range."""
    present = sight.present[place]
    for level in [*schema.spine, *schema.areas]:
        if level.name in present:
            yield from _level(level, present, required=level.name in schema.levels)
    for name in ("unit_id", "person_key", "donor_id"):
        if name in present:
            yield from _unread(name, present)
            if name != "donor_id":
                yield from _missing(name, {}, present)
    for name, variable in schema.variables(place).items():
        if name not in present:
            continue
        if variable.only is None or sight.lacks(place, condition.columns_of(variable.only)):
            yield from _variable(name, variable, present)
        else:
            yield from _variable(name, variable, present, variable.only)
            outside = ~condition.to_expression(variable.only) & ~nw.col(name).is_null()
            yield Check("only", outside, (name,), looked_at=condition.columns_of(variable.only))


def _level(level: Level, present: set[str], required: bool) -> Iterator[Check]:
    """Yield the checks of an area's code: listed or of its form, and without blanks around it."""
    name, column = level.name, nw.col(level.name)
    yield from _unread(name, present)
    if level.codes is not None:
        unknown = ~column.is_in(level.codes).fill_null(True)
        yield Check("code", unknown, (name,))
    else:
        fits = column.str.contains(anchored(level.pattern)) & ~column.str.contains(BLANK_ENDS)
        yield Check("pattern", ~fits.fill_null(True), (name,))
    if required:
        yield from _missing(name, {}, present)


def _variable(
    name: str,
    variable: Variable,
    present: set[str],
    applies: condition.Condition | None = None,
) -> Iterator[Check]:
    column = nw.col(name)
    there = ~column.is_null()
    yield from _unread(name, present)
    if variable.codes is not None:
        yield Check("code", there & ~column.is_in(variable.leaves).fill_null(True), (name,))
    if variable.pattern is not None:
        matches = column.str.contains(anchored(variable.pattern)).fill_null(True)
        yield Check("pattern", there & ~matches, (name,))
    if variable.number is not None:
        limits = {"min": variable.min, "max": variable.max}
        given = {key: limit for key, limit in limits.items() if limit is not None}
        if given:
            inside = condition.to_expression({name: given})
            yield Check("range", there & ~inside, (name,))
    if not variable.missing:
        yield from _missing(name, applies or {}, present)


def _unread(name: str, present: set[str]) -> Iterator[Check]:
    if unread(name) in present:
        yield Check("type", ~nw.col(unread(name)).is_null(), (name,))


def _missing(name: str, applies: condition.Condition, present: set[str]) -> Iterator[Check]:
    absent = nw.col(name).is_null() & condition.to_expression(applies)
    if unread(name) in present:
        absent = absent & nw.col(unread(name)).is_null()
    yield Check("missing", absent, (name,), looked_at=condition.columns_of(applies))


def anchored(pattern: str) -> str:
    """Return a pattern that must match the whole text."""
    return f"^(?:{pattern})$"


def rule_checks(
    schema: Schema, place: TableName, sight: Sight
) -> tuple[list[Check], dict[str, str]]:
    """Return the checks of the schema's rules, and for rules left out what they lack."""
    checks, left_out = [], {}
    for rule in schema.rules:
        if rule.table != place:
            continue
        looked_at = condition.columns_of(rule.then)
        lack = sight.lacks(place, looked_at | condition.columns_of(rule.if_))
        if lack is not None:
            left_out[rule.id] = lack
            continue
        broken = condition.to_expression(rule.if_) & ~condition.to_expression(rule.then)
        columns, blind = tuple(sorted(looked_at)), not (looked_at or rule.if_)
        asked = looked_at | condition.columns_of(rule.if_)
        checks.append(Check(rule.id, broken, columns, rule.title, rule.severity, blind, asked))
    return checks, left_out


def columns_looked_at(schema: Schema, place: TableName, sight: Sight) -> set[str]:
    """Return every column the checks of a table look at, where it can be had."""
    conditions = [v.only for n, v in schema.variables(place).items() if n in sight.present[place]]
    found: set[str] = set()
    for only in filter(None, conditions):
        if sight.lacks(place, condition.columns_of(only)) is None:
            found |= condition.columns_of(only)
    for rule in schema.rules:
        names = condition.columns_of(rule.if_) | condition.columns_of(rule.then)
        if rule.table == place and sight.lacks(place, names) is None:
            found |= names
    return found


def columns_above_persons(schema: Schema, sight: Sight) -> set[str]:
    """Return the columns of units and of their areas that the checks of persons look at."""
    found: set[str] = set()
    todo = list(columns_looked_at(schema, "persons", sight)) if sight.linked else []
    while todo:
        name = todo.pop()
        if name in sight.present["persons"] or name in found:
            continue
        if schema.home(name, "persons") != "persons":
            found.add(name)
        else:
            derived = schema.persons[name].derive if name in schema.persons else None
            todo += [derived] if derived else needs(schema, "persons", name)
    return found


def unit_columns_for_persons(schema: Schema, sight: Sight) -> set[str]:
    """Return the columns of units that the checks of persons look at."""
    above = columns_above_persons(schema, sight)
    return {name for name in above if schema.home(name, "persons") == "units"}


def nesting_check(above: str, level: str) -> Check:
    """Return the check that an area lies in one area of the level above."""
    parent = nw.col(above)
    differs = parent.min().over(level) != parent.max().over(level)
    apart = (differs & ~nw.col(level).is_null()).fill_null(False)
    return Check("nesting", apart, (level,), mark_first=True)


def unique_check(name: str, severity: Literal["error", "warn"] = "error") -> Check:
    """Return the check that no value of a column stands in two rows."""
    repeated = (nw.col(name).count().over(name) > 1) & ~nw.col(name).is_null()
    return Check("unique", repeated.fill_null(False), (name,), severity=severity, mark_first=True)
