"""Steps from one small world to another, and how far apart two worlds are.

A step that cannot be taken leaves the world as it is: nobody can be removed where nobody
lives. Distances are computed from the records of both worlds, whatever steps lie between.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from discreet.census import Schema
from discreet.spec import InputPremetric
from neighbours.draws import Draw, pick, several
from neighbours.forms import Record
from neighbours.small_worlds import Unit, World, draw_person, draw_unit, draw_world, form, head

Step = Callable[[Draw, World], World]

#: Where a person is: the place of the unit in the world, and of the person in the unit.
Seat = tuple[int, int]


# -- worlds with another unit or person --------------------------------------------------------


def with_unit(world: World, place: int, *units: Unit) -> World:
    """Return the world with others in the place of one unit: none, one, or more."""
    return replace(world, units=(*world.units[:place], *units, *world.units[place + 1 :]))


def with_members(world: World, place: int, members: Sequence[Record]) -> World:
    """Return the world with other members of one unit."""
    return with_unit(world, place, replace(world.units[place], members=tuple(members)))


def with_person(world: World, seat: Seat, *persons: Record) -> World:
    """Return the world with others in the place of one person: none, one, or more."""
    place, member = seat
    members = world.units[place].members
    return with_members(world, place, (*members[:member], *persons, *members[member + 1 :]))


def seats(world: World) -> list[Seat]:
    """Return where persons are."""
    return [(p, m) for p, unit in enumerate(world.units) for m in range(len(unit.members))]


def person_at(world: World, seat: Seat) -> Record:
    """Return one person."""
    return world.units[seat[0]].members[seat[1]]


def homes(world: World, but: int | None = None) -> list[int]:
    """Return the places of the units that may have members, all but one."""
    vacant = world.schema.kinds.vacant
    found = [p for p, unit in enumerate(world.units) if unit.values["kind"] not in vacant]
    return [place for place in found if place != but]


# -- steps of persons --------------------------------------------------------------------------


def change_person(draw: Draw, world: World) -> World:
    """Give one person values of its own anew; a head remains one."""
    if not seats(world):
        return world
    seat = pick(draw, seats(world))
    return with_person(world, seat, _another(draw, world, seat[0], person_at(world, seat)))


def _another(draw: Draw, world: World, place: int, person: Record) -> Record:
    """Return a person for a unit in place of another."""
    wanted = head(world.schema)
    as_head = wanted is not None and person.get(wanted[0]) == wanted[1]
    return draw_person(draw, world, world.units[place], as_head)


def remove_person(draw: Draw, world: World) -> World:
    """Remove one person."""
    return with_person(world, pick(draw, seats(world))) if seats(world) else world


def add_person(draw: Draw, world: World) -> World:
    """Add one person to a unit."""
    if not homes(world):
        return world
    place = pick(draw, homes(world))
    unit = world.units[place]
    first = not unit.members and unit.values["kind"] in world.schema.kinds.occupied
    person = draw_person(draw, world, unit, first)
    return with_members(world, place, (*unit.members, person))


def replace_person(draw: Draw, world: World) -> World:
    """Remove one person and add another, there or elsewhere."""
    return add_person(draw, remove_person(draw, world)) if seats(world) else world


def move_person(draw: Draw, world: World) -> World:
    """Move one person to another unit."""
    open_to = [seat for seat in seats(world) if homes(world, but=seat[0])]
    if not open_to:
        return world
    seat = pick(draw, open_to)
    place = pick(draw, homes(world, but=seat[0]))
    members = (*world.units[place].members, person_at(world, seat))
    return with_person(with_members(world, place, members), seat)


def exchange_persons(draw: Draw, world: World) -> World:
    """Exchange the places of two persons of different units."""
    if len({seat[0] for seat in seats(world)}) < 2:
        return world
    one = pick(draw, seats(world))
    other = pick(draw, [seat for seat in seats(world) if seat[0] != one[0]])
    moved = with_person(world, one, person_at(world, other))
    return with_person(moved, other, person_at(world, one))


def exchange_person_values(draw: Draw, world: World) -> World:
    """Exchange the values of one variable between two persons, where both may have them."""
    if len(seats(world)) < 2:
        return world
    one, other = several(draw, seats(world), 2, 2)
    persons, found = form(world, "persons"), []
    above = [{**world.blocks[unit.block], **unit.values} for unit in world.units]
    for name in world.columns["persons"]:
        left, right = _exchanged(person_at(world, one), person_at(world, other), name)
        if persons.fits(left, above[one[0]]) and persons.fits(right, above[other[0]]):
            found.append((left, right))
    if not found:
        return world
    left, right = pick(draw, found)
    return with_person(with_person(world, one, left), other, right)


def _exchanged(one: Record, other: Record, name: str) -> tuple[Record, Record]:
    """Return two records with the values of one variable exchanged."""
    return {**one, name: other[name]}, {**other, name: one[name]}


# -- steps of units ----------------------------------------------------------------------------


def change_unit(draw: Draw, world: World) -> World:
    """Give one unit values of its own anew; with members it does not become vacant."""
    if not world.units:
        return world
    place = pick(draw, range(len(world.units)))
    unit, units = world.units[place], form(world, "units")
    vacant = world.schema.kinds.vacant if unit.members else []
    kind = pick(draw, [kind for kind in units.choices["kind"] if kind not in vacant])
    values = units.draw(draw, world.blocks[unit.block], {"kind": kind})
    return with_unit(world, place, replace(unit, values=values))


def move_unit(draw: Draw, world: World) -> World:
    """Move one unit with its members to another block."""
    if not world.units:
        return world
    place = pick(draw, range(len(world.units)))
    unit = world.units[place]
    block = pick(draw, [block for block in range(len(world.blocks)) if block != unit.block])
    return with_unit(world, place, replace(unit, block=block))


def exchange_blocks(draw: Draw, world: World) -> World:
    """Exchange the blocks of two units in different blocks."""
    if len({unit.block for unit in world.units}) < 2:
        return world
    one = pick(draw, range(len(world.units)))
    first = world.units[one]
    other = pick(draw, [p for p, unit in enumerate(world.units) if unit.block != first.block])
    second = world.units[other]
    moved = with_unit(world, one, replace(first, block=second.block))
    return with_unit(moved, other, replace(second, block=first.block))


def remove_unit(draw: Draw, world: World) -> World:
    """Remove one unit with its members, the last one as well."""
    return with_unit(world, pick(draw, range(len(world.units)))) if world.units else world


def add_unit(draw: Draw, world: World) -> World:
    """Add one unit with members, of a number that no other has."""
    number = 1 + max((unit.number for unit in world.units), default=0)
    return replace(world, units=(*world.units, draw_unit(draw, world, number)))


def replace_unit(draw: Draw, world: World) -> World:
    """Give another unit, with its members and in any block, the number of one."""
    if not world.units:
        return world
    place = pick(draw, range(len(world.units)))
    return with_unit(world, place, draw_unit(draw, world, world.units[place].number))


def exchange_unit_values(draw: Draw, world: World) -> World:
    """Exchange the values of one variable between two units, where both may have them."""
    if len(world.units) < 2:
        return world
    one, other = several(draw, range(len(world.units)), 2, 2)
    first, second = world.units[one], world.units[other]
    found = []
    for name in world.columns["units"]:
        values = _exchanged(first.values, second.values, name)
        if _may_have(world, first, values[0]) and _may_have(world, second, values[1]):
            found.append(values)
    if not found:
        return world
    left, right = pick(draw, found)
    changed = with_unit(world, one, replace(first, values=left))
    return with_unit(changed, other, replace(second, values=right))


def _may_have(world: World, unit: Unit, values: Record) -> bool:
    """Return whether a unit may have these values with the members that it has."""
    if unit.members and values["kind"] in world.schema.kinds.vacant:
        return False
    return form(world, "units").fits(values, world.blocks[unit.block])


#: Steps that leave units and their values alone.
PERSON_STEPS: tuple[Step, ...] = (
    change_person,
    remove_person,
    add_person,
    replace_person,
    move_person,
    exchange_persons,
    exchange_person_values,
)
#: Steps that leave the values of persons alone, or take whole units.
UNIT_STEPS: tuple[Step, ...] = (
    change_unit,
    move_unit,
    exchange_blocks,
    remove_unit,
    add_unit,
    replace_unit,
    exchange_unit_values,
)
STEPS = (*PERSON_STEPS, *UNIT_STEPS)


def pairs(
    schema: Schema, steps: Sequence[Step] = STEPS, most: int = 3, whole: bool = False
) -> st.SearchStrategy[tuple[World, World]]:
    """Return neighbours in a schema, as a strategy."""
    return st.composite(draw_pair)(schema, steps, most, whole)


def draw_pair(
    draw: Draw, schema: Schema, steps: Sequence[Step] = STEPS, most: int = 3, whole: bool = False
) -> tuple[World, World]:
    """Return two worlds with 1 to `most` of the given steps between them."""
    world = other = draw_world(draw, schema, whole)
    for _ in range(1 + pick(draw, range(most))):
        other = pick(draw, steps)(draw, other)
    return world, other


# -- distances ---------------------------------------------------------------------------------


def _values(record: Record) -> Hashable:
    return tuple(sorted(record.items()))


def person_records(world: World) -> list[Hashable]:
    """Return each person with its block and the variables of its unit."""
    return [
        (_values(member), unit.block, _values(unit.values))
        for unit in world.units
        for member in unit.members
    ]


def household_records(world: World) -> list[Hashable]:
    """Return each unit with its block and its members, in whatever order they are."""
    return [
        (_values(unit.values), unit.block, tuple(sorted(map(_values, unit.members), key=repr)))
        for unit in world.units
    ]


def persons_apart(x: World, y: World, premetric: InputPremetric) -> float:
    """Return how far apart two worlds are in records of persons."""
    return premetric.distance(person_records(x), person_records(y))


def households_apart(x: World, y: World, premetric: InputPremetric) -> float:
    """Return how far apart two worlds are in records of households."""
    return premetric.distance(household_records(x), household_records(y))
