"""Small censuses at random under any schema, kept as plain records until a census is asked for.

Confidential geography is not drawn: it is computed from the records of its block, so that it
changes when they do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import narwhals as nw
import numpy as np
from hypothesis import strategies as st

from discreet.census import (
    Census,
    Schema,
    TableName,
    Variable,
    with_person_key,
)
from discreet.engine import Engine, Frame
from neighbours.draws import Draw, chance, pick, written
from neighbours.forms import Form, Record, Value

#: Codes of the one person of a household that a schema with rules asks for.
HEADS = {"relationship": "20", "household_role": "head", "role": "head"}


@dataclass(frozen=True)
class Unit:
    """A unit: its number, the number of its block, its own values and those of its members."""

    number: int
    block: int
    values: Record
    members: tuple[Record, ...] = ()


@dataclass(frozen=True)
class Secret:
    """How a confidential variable of geography is computed from the records of a block.

    `counts` says what is counted: persons, units of the kind `of`, or the sum of the number
    `of` over units or persons. The count is divided by `by` and cut to what the variable
    may be. With `blank` nothing counted is a missing value.
    """

    counts: Literal["persons", "units", "sum of units", "sum of persons"]
    of: str = ""
    by: int = 1
    blank: bool = False

    def measure(self, units: Sequence[Unit]) -> int:
        """Return the count for the units of one block."""
        members = [member for unit in units for member in unit.members]
        if self.counts == "persons":
            return len(members)
        if self.counts == "units":
            return sum(unit.values["kind"] == self.of for unit in units)
        rows = [unit.values for unit in units] if self.counts == "sum of units" else members
        return sum(int(row.get(self.of) or 0) for row in rows)

    def value(self, variable: Variable, units: Sequence[Unit]) -> Value:
        """Return the value of the variable for the units of one block."""
        count = self.measure(units) // self.by
        if self.blank and count == 0:
            return None
        if variable.codes is not None:
            return variable.leaves[min(count, len(variable.leaves) - 1)]
        if variable.pattern is not None:
            return written(variable.pattern, count)
        low = count if variable.min is None else variable.min
        high = count if variable.max is None else variable.max
        inside = max(low, min(high, count))
        return int(inside) if variable.number == "integer" else float(inside)


@dataclass(frozen=True)
class World:
    """The records of a small census; `columns` are the variables its tables have.

    `blocks` carry the codes of their areas and public geography.
    """

    schema: Schema = field(repr=False)
    blocks: tuple[Record, ...]
    secrets: Mapping[str, Secret]
    units: tuple[Unit, ...]
    columns: Mapping[TableName, tuple[str, ...]] = field(repr=False)

    @property
    def geography(self) -> list[Record]:
        """Return the blocks with confidential geography as the records make it."""
        living = [[u for u in self.units if u.block == place] for place in range(len(self.blocks))]
        return [
            {
                **block,
                **{
                    name: secret.value(self.schema.geography[name], units)
                    for name, secret in self.secrets.items()
                },
            }
            for block, units in zip(self.blocks, living, strict=True)
        ]

    def census(self, engine: Engine, keyed: bool = True) -> Census:
        """Return the census of these records, in memory.

        Unless `keyed`, persons get their keys when somebody asks for them, which saves half
        of the time.
        """
        schema, block = self.schema, self.schema.block
        units = [
            {
                "unit_id": unit.number,
                block: self.blocks[unit.block][block],
                **self._among_others("units", unit, unit.values),
            }
            for unit in self.units
        ]
        persons = [
            {"unit_id": unit.number, **self._among_others("persons", unit, member)}
            for unit in self.units
            for member in unit.members
        ]
        areas = [name for name in schema.area_names if name in self.blocks[0]]
        frames = {
            "geography": self._frame(engine, "geography", self.geography, areas),
            "units": self._frame(engine, "units", units, ["unit_id", block]),
            "persons": self._frame(engine, "persons", persons, ["unit_id"]),
        }
        if not keyed:
            return Census(schema, engine, **frames, origin="simulated", key="test")
        # All are numbered: there are few of them.
        with_keys = with_person_key(engine, frames["persons"], schema, "test", few=True)
        frames["persons"] = engine.materialise(with_keys)
        return Census(schema, engine, **frames, origin="simulated")

    def _among_others(self, table: TableName, unit: Unit, values: Record) -> Record:
        """Return a record with what is made from others as they make it.

        It tells how many records of the table its block has, cut to the codes of the variable.
        """
        made = [n for n, v in self.schema.variables(table).items() if v.from_others and n in values]
        if not made:
            return values
        near = [one for one in self.units if one.block == unit.block]
        number = len(near) if table == "units" else sum(len(one.members) for one in near)
        leaves = {name: self.schema.variables(table)[name].leaves for name in made}
        told = {name: codes[min(number, len(codes)) - 1] for name, codes in leaves.items()}
        return {**values, **told}

    def _frame(
        self, engine: Engine, table: TableName, rows: Sequence[Record], first: Sequence[str]
    ) -> Frame:
        """Return a table with the columns `first` and the variables that this world has."""
        variables = self.schema.variables(table)
        kinds = dict.fromkeys(first, "text") | {n: variables[n].kind for n in self.columns[table]}
        kinds |= {"unit_id": "integer"} if "unit_id" in kinds else {}
        arrays = {name: _array([row[name] for row in rows], kind) for name, kind in kinds.items()}
        frame = engine.from_numpy(arrays)
        # The engine knows text by its values; where there are none it has to be told.
        silent = [n for n, kind in kinds.items() if kind == "text" and not arrays[n].any()]
        return frame.with_columns(nw.col(*silent).cast(nw.String)) if silent else frame


def _array(values: Sequence[Value], kind: str) -> np.ndarray:
    """Return a column: text as objects, numbers with a mask that says which are missing."""
    if kind == "text":
        return np.array(values, dtype=object)
    absent = [value is None for value in values]
    numbers = [0 if value is None else value for value in values]
    dtype = np.int64 if kind == "integer" else np.float64
    return (
        np.ma.array(numbers, mask=absent, dtype=dtype)
        if any(absent)
        else np.array(numbers, dtype=dtype)
    )


# -- records ----------------------------------------------------------------------------------


def form(world: World, table: TableName) -> Form:
    """Return the form of a table of a world."""
    return Form.of(world.schema, table, world.columns[table])


def head(schema: Schema) -> tuple[str, str] | None:
    """Return the variable and the code of heads, where a schema has rules on households."""
    for name, code in HEADS.items():
        if schema.rules and name in schema.persons and code in (schema.persons[name].codes or {}):
            return name, code
    return None


def draw_person(draw: Draw, world: World, unit: Unit, as_head: bool = False) -> Record:
    """Return a person of a unit, a head or not where the schema asks for heads."""
    persons, above = form(world, "persons"), {**world.blocks[unit.block], **unit.values}
    wanted = head(world.schema)
    if wanted is None or wanted[0] not in persons.order:
        return persons.draw(draw, above)
    name, code = wanted
    others = [value for value in persons.choices[name] if value != code]
    return persons.draw(draw, above, {name: code if as_head else pick(draw, others)})


def draw_unit(draw: Draw, world: World, number: int) -> Unit:
    """Return a unit with its members."""
    block = pick(draw, range(len(world.blocks)))
    unit = Unit(number, block, form(world, "units").draw(draw, world.blocks[block]))
    kinds = world.schema.kinds
    if unit.values["kind"] in kinds.vacant:
        return unit
    occupied = unit.values["kind"] in kinds.occupied
    least = 1 if occupied and world.schema.rules else 0
    size = least + pick(draw, range(5 - least))
    members = [draw_person(draw, world, unit, occupied and place == 0) for place in range(size)]
    return Unit(number, block, unit.values, tuple(members))


# -- worlds ------------------------------------------------------------------------------------


def worlds(schema: Schema, whole: bool = False) -> st.SearchStrategy[World]:
    """Return small valid censuses of a schema, as a strategy."""
    return st.composite(draw_world)(schema, whole)


def draw_world(draw: Draw, schema: Schema, whole: bool = False) -> World:
    """Return a small valid census of a schema, whose rules need not hold.

    Optional columns are absent now and then, unless the world is to be `whole`. An `only` is
    followed if it looks at variables and areas, not at computed columns.
    """
    columns = {
        table: tuple(_present(draw, schema.variables(table), whole))
        for table in ("geography", "units", "persons")
    }
    secret = [name for name in columns["geography"] if schema.geography[name].confidential]
    secrets = {name: draw_secret(draw, schema, schema.geography[name]) for name in secret}
    empty = World(
        schema, tuple(draw_blocks(draw, schema, columns["geography"])), secrets, (), columns
    )
    units = [draw_unit(draw, empty, number + 1) for number in range(1 + pick(draw, range(8)))]
    return World(schema, empty.blocks, secrets, tuple(units), columns)


def _present(draw: Draw, variables: Mapping[str, Variable], whole: bool) -> Iterator[str]:
    """Yield the variables that a table has: nearly all, but often not what can be derived."""
    fewer = not whole and chance(draw, 4)
    for name, variable in variables.items():
        if variable.required or whole:
            yield name
        elif variable.derive is not None:
            if not chance(draw):
                yield name
        elif not (fewer and chance(draw, 3)):
            yield name


def draw_secret(draw: Draw, schema: Schema, variable: Variable) -> Secret:
    """Return a way to compute a confidential variable."""
    ways = [("persons", ""), *(("units", code) for code in schema.units["kind"].leaves)]
    for table in ("units", "persons"):
        numbers = [n for n, v in schema.variables(table).items() if v.number == "integer"]
        ways += [(f"sum of {table}", name) for name in numbers]
    counts, of = pick(draw, ways)
    by = 1 + pick(draw, range(3))
    return Secret(counts, of, by, blank=variable.missing and chance(draw))


def draw_blocks(draw: Draw, schema: Schema, present: Sequence[str]) -> Iterator[Record]:
    """Yield 2 to 5 blocks in one or two areas of each area above them."""
    public = [name for name in present if not schema.geography[name].confidential]
    geography = Form.of(schema, "geography", public)
    for number in range(2 + pick(draw, range(4))):
        block: dict[str, Value] = {}
        code = ""
        for level in schema.spine:
            # Blocks are told apart by their number; areas above them may be the same.
            place = number if level.name == schema.block else pick(draw, range(2))
            code = level.codes[place] if level.codes else written(level.pattern, place, code)
            block[level.name] = code
        for area in schema.areas:
            place = pick(draw, (0, 1, None))
            codes = area.codes or [written(area.pattern, number) for number in range(2)]
            block[area.name] = None if place is None else codes[place]
        yield {**block, **geography.draw(draw, block)}
