"""Give a table the columns somebody asks for: joined upwards, recoded, counted, derived."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import narwhals as nw

from discreet.census import condition
from discreet.census.declarations import (
    Cases,
    MemberCount,
    MemberValue,
    Recode,
    TableName,
    Variable,
)
from discreet.census.provenance import needs
from discreet.census.schema import Schema
from discreet.config import suggest
from discreet.engine import Frame
from discreet.errors import BadInput

Opener = Callable[[TableName], Frame]


class Columns:
    """Resolve column names of one schema against the tables at hand."""

    def __init__(self, schema: Schema, table: Opener) -> None:
        self.schema = schema
        self._table = table

    def add(self, place: TableName, names: Iterable[str]) -> Frame:
        """Return table `place` with (at least) the columns `names`."""
        frame = self._table(place)
        return self._extend(frame, place, list(dict.fromkeys(names)))

    def _extend(self, frame: Frame, place: TableName, names: list[str]) -> Frame:
        """Add what is missing: all from above in one join, all of members in one aggregation."""
        present = set(frame.collect_schema().names())
        wanted = self._with_inputs(place, names, present)
        upwards = [name for name in wanted if self.schema.home(name, place) != place]
        if upwards:
            frame = self._join_above(frame, place, upwards)
        own = [name for name in wanted if name not in upwards]
        members = [name for name in own if self._is_member(place, name)]
        frame = self._members(frame, place, members)
        present |= {*upwards, *members}
        rest = [name for name in own if name not in members]
        while rest:
            now = [name for name in rest if present.issuperset(self._inputs(place, name))]
            if not now:
                raise ValueError(f"{place}.{rest[0]} is made from itself")
            frame = frame.with_columns(**{name: self._expression(place, name) for name in now})
            present |= {*now}
            rest = [name for name in rest if name not in now]
        return frame

    def _with_inputs(self, place: TableName, names: list[str], present: set[str]) -> list[str]:
        """Return the columns that are not there, with those they are made from before them."""
        found: list[str] = []
        for name in names:
            if name in present or name in found:
                continue
            home = self.schema.home(name, place)
            if home is None:
                known = self.schema.visible(place)
                raise BadInput(f"{place} have no column '{name}'.{suggest(name, known)}")
            if home == place:
                found += self._with_inputs(place, self._inputs(place, name), present | {*found})
            found.append(name)
        return found

    def _inputs(self, place: TableName, name: str) -> list[str]:
        variable = self.schema.variables(place).get(name)
        if variable is not None or name in self.schema.area_names:
            return [self._derivation(place, name, variable)]
        return sorted(needs(self.schema, place, name))

    def _derivation(self, place: TableName, name: str, variable: Variable | None) -> str:
        if variable is None or variable.derive is None:
            raise BadInput(
                f"this census has no column {place}.{name} (optional in schema "
                f"{self.schema.name}). Add it to the data or ask for another column."
            )
        return variable.derive

    def _join_above(self, frame: Frame, place: TableName, names: list[str]) -> Frame:
        """Join columns of the unit or of the geography; every row finds one parent at most."""
        linked = "unit_id" in frame.collect_schema().names()
        if place == "persons" and linked:
            above = self.add("units", names).select("unit_id", *names)
            return frame.join(above, on="unit_id", how="left")
        block = self.schema.block
        lost = [name for name in names if self.schema.home(name, place) == "units"]
        if place == "persons" and lost:
            raise BadInput(
                f"persons of this census have no link to units: '{lost[0]}' is not known for them."
            )
        if place == "geography":
            raise BadInput(f"geography has no column '{names[0]}'.")
        above = self.add("geography", names).select(block, *(n for n in names if n != block))
        return frame.join(above, on=block, how="left")

    def _is_member(self, place: TableName, name: str) -> bool:
        return isinstance(self.schema.computed(place).get(name), MemberCount | MemberValue)

    def _members(self, frame: Frame, place: TableName, names: list[str]) -> Frame:
        """Join counts and values of members, all from one aggregation of persons."""
        wanted = {n: self.schema.computed(place)[n] for n in names if self._is_member(place, n)}
        if not wanted:
            return frame
        columns: set[str] = set()
        totals: dict[str, nw.Expr] = {}
        for name, computed in wanted.items():
            if isinstance(computed, MemberCount):
                columns |= condition.columns_of(computed.members)
                totals[name] = _count(computed.members).cast(nw.Int32)
            elif isinstance(computed, MemberValue):
                columns |= condition.columns_of(computed.member) | {computed.take}
                # A valid unit has one such member; max only makes invalid ones repeatable.
                met = condition.to_expression(computed.member)
                totals[name] = nw.when(met).then(nw.col(computed.take)).max()
        persons = self._extend(self._persons(next(iter(wanted))), "persons", sorted(columns))
        if "unit_id" not in persons.collect_schema().names():
            raise BadInput(
                f"persons of this census have no link to units, so '{names[0]}' cannot be counted."
            )
        counted = persons.group_by("unit_id").agg(**totals)
        counts = [n for n, c in wanted.items() if isinstance(c, MemberCount)]
        joined = frame.join(counted, on="unit_id", how="left")
        filled = [nw.col(name).fill_null(0) for name in counts]
        return joined.with_columns(*filled) if filled else joined

    def _persons(self, needed: str) -> Frame:
        """Return the persons, or say which column of units cannot be had without them."""
        try:
            return self._table("persons")
        except BadInput:
            raise BadInput(
                f"'{needed}' is counted from persons, and this census has no persons table. Add "
                f"persons.parquet, or name columns that the units table has."
            ) from None

    def _expression(self, place: TableName, name: str) -> nw.Expr:
        variable = self.schema.variables(place).get(name)
        if variable is not None:
            return nw.col(self._derivation(place, name, variable))
        computed = self.schema.computed(place)[name]
        if isinstance(computed, Recode):
            return _recode(computed, self._source(place, computed.of))
        if isinstance(computed, Cases):
            return _cases(computed)
        raise TypeError(f"{name} is not an expression of its own row")

    def _source(self, place: TableName, name: str) -> Variable | None:
        home = self.schema.home(name, place)
        return None if home is None else self.schema.variables(home).get(name)


def _count(members: condition.Condition) -> nw.Expr:
    if not members:
        return nw.len()
    return nw.when(condition.to_expression(members)).then(nw.lit(1)).count()


def _recode(recode: Recode, source: Variable | None) -> nw.Expr:
    """Return the recoded column; a missing value stays missing."""
    column = nw.col(recode.of)
    result: nw.Expr = nw.lit(recode.otherwise, dtype=nw.String)
    if recode.bins is not None:
        for label, (low, high) in recode.bins.items():
            inside = column >= low if high is None else (column >= low) & (column <= high)
            result = nw.when(inside).then(nw.lit(label)).otherwise(result)
    else:
        for label, codes in _groups(recode, source).items():
            result = nw.when(column.is_in(codes)).then(nw.lit(label)).otherwise(result)
    return nw.when(~column.is_null()).then(result)


def _groups(recode: Recode, source: Variable | None) -> dict[str, list[str]]:
    if not recode.roll_up:
        return recode.groups or {}
    if source is None or source.codes is None:
        raise BadInput(f"'{recode.of}' has no code list to roll up.")
    groups: dict[str, list[str]] = {}
    for code in source.leaves:
        groups.setdefault(source.top_code(code), []).append(code)
    return groups


def _cases(cases: Cases) -> nw.Expr:
    numbers = any(isinstance(case.then, int) for case in cases.cases)
    dtype = nw.Int32 if numbers or isinstance(cases.otherwise, int) else nw.String
    result: nw.Expr = nw.lit(cases.otherwise, dtype=dtype)
    for case in reversed(cases.cases):
        value = nw.col(case.take) if case.take is not None else nw.lit(case.then, dtype=dtype)
        result = nw.when(condition.to_expression(case.when)).then(value).otherwise(result)
    return result
