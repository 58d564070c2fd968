"""The generators of schemas, worlds and neighbours make what they say, and all of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from discreet.census import (
    Cases,
    Census,
    MemberCount,
    MemberValue,
    Recode,
    Schema,
    categories,
    check_structure,
    columns_of,
    load_schema,
    made_from,
    needs,
    validate,
)
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.spec import InputPremetric, hamming_of_multisets, symmetric_difference
from neighbours import steps as way
from neighbours.draws import sampled, written
from neighbours.odd_schemas import draw_schema, schemas
from neighbours.small_worlds import Secret, Unit, World, draw_world, form, head, worlds

ENGINE = Engine(threads=1)
MINI = Path(__file__).parent.parent / "fuzz" / "mini" / "schema.yaml"
SHIPPED = ("register-country", "us-decennial", "pl94", "household-rows", "mini")

few = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


# -- schemas -----------------------------------------------------------------------------------


@cache
def many_schemas() -> tuple[Schema, ...]:
    return tuple(sampled(draw_schema, 250))


def origins(schema: Schema, place: str, name: str) -> set[str]:
    """Return what a column of a table is made from, in words."""
    found = set()
    for table, source in made_from(schema, name, place) - {(place, name)}:
        variable = schema.variables(table).get(source)
        if table == "geography":
            secret = variable is not None and variable.confidential
            found.add("areas" if variable is None else "secret" if secret else "public")
        else:
            found.add(f"{table} {'computed' if variable is None else 'variables'}")
    return found


def depth(schema: Schema, place: str, name: str) -> int:
    """Return how many recodes and cases are chained in a column."""
    home = schema.home(name, place)
    inside = [depth(schema, home, need) for need in needs(schema, home, name)] if home else []
    return max(inside, default=0) + (name in schema.computed(home))


def kinds_of_condition(condition: dict) -> Iterator[str]:
    for key, value in condition.items():
        if key in ("any", "all", "not", "same"):
            yield key
        for part in value if key in ("any", "all") else [value] if key == "not" else []:
            yield from kinds_of_condition(part)
        if key not in ("any", "all", "not", "same"):
            yield from value if isinstance(value, dict) else ["listed"]


def kinds_of_columns(schema: Schema) -> Iterator[str]:
    """Yield every kind of computed column and variable that a schema has."""
    for place in ("units", "persons"):
        for name, computed in schema.computed(place).items():
            yield from kinds_of_computed(schema, place, computed)
            yield f"chain of {depth(schema, place, name)}"
            yield from (f"{place} from {origin}" for origin in origins(schema, place, name))
        for variable in schema.variables(place).values():
            marks = {"only": variable.only, "missing": variable.missing, "derive": variable.derive}
            yield from (f"{place} {mark}" for mark, given in marks.items() if given)
    if set(schema.units) & set(schema.persons):
        yield "a name used twice"
    if schema.areas:
        yield "an area outside the spine"


def kinds_of_computed(schema: Schema, place: str, computed) -> Iterator[str]:
    if isinstance(computed, Recode):
        how = "bins" if computed.bins else "groups" if computed.groups else "roll_up"
        yield f"{how} {'with' if computed.otherwise else 'without'} otherwise"
        source = schema.variables(schema.home(computed.of, place)).get(computed.of)
        if how == "roll_up" and any(code.parent for code in source.codes.values()):
            yield "a tree rolled up"
    elif isinstance(computed, Cases):
        for case in computed.cases:
            yield "take" if case.take else "a number" if isinstance(case.then, int) else "a text"
            yield from kinds_of_condition(case.when)
            yield f"{len({schema.home(name, place) for name in columns_of(case.when)})} tables"
    else:
        met = computed.members if isinstance(computed, MemberCount) else computed.member
        yield "member" if isinstance(computed, MemberValue) else "members" if met else "all members"
        for name in columns_of(met):
            if schema.home(name, "persons") == "persons" and name in schema.computed_persons:
                found = origins(schema, "persons", name)
                yield from (f"members by what is from {origin}" for origin in found)


WANTED = (
    *(f"{how} {with_} otherwise" for how in ("bins", "groups") for with_ in ("with", "without")),
    *("roll_up without otherwise", "a tree rolled up", "take", "a number", "a text"),
    *("any", "all", "not", "same", "listed", "min", "max", "missing", "1 tables", "2 tables"),
    *("member", "members", "all members", "chain of 1", "chain of 2", "chain of 3"),
    *(f"units from {source}" for source in ("units variables", "units computed", "public")),
    *(f"units from {source}" for source in ("secret", "areas", "persons variables")),
    *(f"persons from {source}" for source in ("persons variables", "persons computed", "public")),
    *(f"persons from {source}" for source in ("units variables", "units computed", "secret")),
    *(f"members by what is from {source}" for source in ("units variables", "public", "secret")),
    *("units only", "units missing", "units derive", "persons missing", "persons derive"),
    *("a name used twice", "an area outside the spine"),
)


def test_schemas_have_columns_of_every_kind():
    found = Counter(kind for schema in many_schemas() for kind in set(kinds_of_columns(schema)))
    assert {kind: found[kind] for kind in WANTED if found[kind] < 3} == {}


def test_tables_are_by_columns_of_every_kind_and_have_finite_lists():
    by, where = Counter(), Counter()
    for schema in many_schemas():
        assert 2 <= len(schema.tables) <= 5
        assert 3 <= len(schema.computed_units) + len(schema.computed_persons) <= 8
        for table in schema.tables:
            for column in table.by:
                assert categories(schema, table.count, column)
                by.update(origins(schema, schema.home(column, table.count), column))
            for column in columns_of(table.where):
                where.update(origins(schema, schema.home(column, table.count), column))
    for found in (by, where):
        assert min(found[origin] for origin in ("public", "secret", "persons variables")) >= 3


# -- worlds ------------------------------------------------------------------------------------


def errors(census: Census) -> list:
    """Return what breaks a schema besides its rules."""
    rules = {rule.id for rule in census.schema.rules}
    return [f for f in validate(census).items if f.severity == "error" and f.rule not in rules]


@given(schemas().flatmap(way.pairs))
@few
def test_worlds_and_their_neighbours_are_valid(pair):
    for world in pair:
        census = world.census(ENGINE)
        check_structure(census)
        assert errors(census) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_worlds_of_shipped_schemas_are_valid_up_to_their_rules(name):
    schema = load_schema(MINI if name == "mini" else name)
    for world in sampled(lambda draw: draw_world(draw, schema), 4):
        census = world.census(ENGINE)
        check_structure(census)
        assert errors(census) == []


@pytest.mark.parametrize("name", ["register-country", "us-decennial"])
def test_households_of_shipped_schemas_have_one_head(name):
    schema = load_schema(name)
    role, code = head(schema)
    for world in sampled(lambda draw: draw_world(draw, schema, whole=True), 20):
        for unit in world.units:
            heads = sum(member[role] == code for member in unit.members)
            assert heads == (unit.values["kind"] in schema.kinds.occupied)


@given(schemas().flatmap(lambda schema: worlds(schema, whole=True)))
@few
def test_every_column_can_be_computed_and_has_values_of_its_list(world):
    census = world.census(ENGINE)
    for place in ("units", "persons"):
        names = sorted(world.schema.visible(place))
        rows = ENGINE.rows(census.frame(place, names))
        assert len(rows) == (
            len(world.units) if place == "units" else len(way.person_records(world))
        )
        for name, values in zip(names, zip(*rows, strict=True), strict=False):
            try:
                listed = categories(world.schema, place, name)
            except BadInput:
                continue
            assert {str(value) for value in values if value is not None} <= set(listed)


def test_worlds_have_branches_only_children_and_absent_columns():
    seen = Counter()
    for world in sampled(lambda draw: draw_world(draw, draw_schema(draw)), 150):
        levels = world.schema.levels
        assert 2 <= len(world.blocks) <= 5
        assert 1 <= len(world.units) <= 8
        assert all(len(unit.members) <= 4 for unit in world.units)
        tops = {block[levels[0]] for block in world.blocks}
        blocks = Counter(block[levels[-2]] for block in world.blocks)
        seen.update(
            {
                "branches": len(tops) > 1,
                "only child": 1 in blocks.values(),
                "brothers": max(blocks.values()) > 1,
                "absent": len(world.columns["units"]) < len(world.schema.units),
                "nobody": not any(unit.members for unit in world.units),
                "secret": bool(world.secrets),
            }
        )
    assert min(seen.values()) >= 3


def test_whole_worlds_have_every_column():
    for world in sampled(lambda draw: draw_world(draw, draw_schema(draw), whole=True), 20):
        for table in ("geography", "units", "persons"):
            assert world.columns[table] == tuple(world.schema.variables(table))


# -- confidential geography --------------------------------------------------------------------


def test_one_person_changes_what_geography_says_of_others():
    """Without one person some areas are others to those who stay there."""
    changed = []
    for x, y in pairs_of(way.remove_person):
        stay = {unit.block for unit in y.units if unit.members}
        if way.persons_apart(x, y, symmetric_difference("person")) == 1:
            changed += [(x, y)] if any(x.geography[b] != y.geography[b] for b in stay) else []
    assert len(changed) >= 5
    x, y = changed[0]
    told = [ENGINE.rows(world.census(ENGINE).geography) for world in (x, y)]
    assert sorted(told[0], key=repr) != sorted(told[1], key=repr)


def test_secrets_are_counts_of_their_block_cut_to_what_the_variable_may_be():
    schema = next(s for s in many_schemas() if len(s.units["kind"].codes) == 3)
    variable = schema.persons["role"]
    kind = schema.kinds.occupied[0]
    units = [Unit(1, 0, {"kind": kind, "n": 2}, ({"n": 1}, {"n": None})), Unit(2, 0, {"kind": "x"})]
    assert Secret("persons").measure(units) == 2
    assert Secret("units", kind).measure(units) == 1
    assert Secret("sum of units", "n").measure(units) == 2
    assert Secret("sum of persons", "n").measure(units) == 1
    assert Secret("persons").value(variable, []) == "head"
    assert Secret("persons", by=2).value(variable, units) == "other"
    assert Secret("persons", blank=True).value(variable, []) is None


# -- steps and distances -----------------------------------------------------------------------

PERSONS, UNITS = hamming_of_multisets("person"), hamming_of_multisets("household")
PLACES = InputPremetric(name="hamming", unit="household")
FEWER, FEWER_UNITS = symmetric_difference("person"), symmetric_difference("household")

#: For each step: the distances there are between the worlds before and after it, all of which
#: occur. Nought is for steps that cannot be taken, or that change nothing.
FAR = [
    (way.change_person, way.persons_apart, PERSONS, {0, 1}),
    (way.change_person, way.households_apart, UNITS, {0, 1}),
    (way.remove_person, way.persons_apart, FEWER, {0, 1}),
    (way.remove_person, way.households_apart, UNITS, {0, 1}),
    (way.add_person, way.persons_apart, FEWER, {0, 1}),
    (way.replace_person, way.persons_apart, PERSONS, {0, 1}),
    (way.move_person, way.persons_apart, PERSONS, {0, 1}),
    (way.move_person, way.households_apart, UNITS, {0, 1, 2}),
    (way.exchange_persons, way.persons_apart, PERSONS, {0, 1, 2}),
    (way.exchange_persons, way.households_apart, UNITS, {0, 1, 2}),
    (way.exchange_person_values, way.persons_apart, PERSONS, {0, 1, 2}),
    (way.change_unit, way.households_apart, UNITS, {0, 1}),
    (way.change_unit, way.persons_apart, PERSONS, {0, 1, 2, 3, 4}),
    (way.move_unit, way.households_apart, PLACES, {1}),
    (way.move_unit, way.persons_apart, PERSONS, {0, 1, 2, 3, 4}),
    (way.exchange_blocks, way.households_apart, PLACES, {0, 2}),
    (way.remove_unit, way.households_apart, FEWER_UNITS, {1}),
    (way.remove_unit, way.persons_apart, FEWER, {0, 1, 2, 3, 4}),
    (way.add_unit, way.households_apart, FEWER_UNITS, {1}),
    (way.replace_unit, way.households_apart, UNITS, {0, 1}),
    (way.exchange_unit_values, way.households_apart, UNITS, {0, 1, 2}),
]


@cache
def pairs_of(step: way.Step) -> list[tuple[World, World]]:
    return sampled(lambda draw: way.draw_pair(draw, draw_schema(draw), [step], most=1), 120)


@pytest.mark.parametrize(
    ("step", "apart", "premetric", "far"), FAR, ids=lambda part: getattr(part, "__name__", None)
)
def test_steps_are_as_long_as_they_should_be(step, apart, premetric, far):
    assert {apart(x, y, premetric) for x, y in pairs_of(step)} <= far
    assert max(far) in {apart(x, y, premetric) for x, y in pairs_of(step)}


@pytest.mark.parametrize("step", way.STEPS)
def test_steps_keep_to_the_declarations(step):
    for x, y in pairs_of(step):
        assert (y.schema, y.blocks, y.secrets) == (x.schema, x.blocks, x.secrets)
        numbers = [unit.number for unit in y.units]
        assert len(set(numbers)) == len(numbers)
        units, persons = form(y, "units"), form(y, "persons")
        for unit in y.units:
            assert units.fits(unit.values, y.blocks[unit.block])
            assert not (unit.members and unit.values["kind"] in y.schema.kinds.vacant)
            assert all(persons.fits(m, {**unit.values}) for m in unit.members)


def test_the_order_of_members_and_units_is_no_distance_and_a_value_is():
    homes = (
        Unit(1, 0, {"kind": "home"}, ({"n": 1}, {"n": None})),
        Unit(2, 1, {"kind": "home"}, ({"n": 1},)),
    )
    x = World(many_schemas()[0], ({}, {}), {}, homes, {})
    turned = replace(x, units=(homes[1], replace(homes[0], members=homes[0].members[::-1])))
    assert way.households_apart(x, turned, UNITS) == way.persons_apart(x, turned, PERSONS) == 0
    moved = replace(x, units=(replace(homes[0], block=1), homes[1]))
    assert way.households_apart(x, moved, UNITS) == 1
    assert way.persons_apart(x, moved, PERSONS) == 2
    changed = replace(x, units=(homes[0], replace(homes[1], members=({"n": 2},))))
    assert way.persons_apart(x, changed, PERSONS) == way.households_apart(x, changed, UNITS) == 1
    gone = replace(x, units=homes[:1])
    assert way.persons_apart(x, gone, FEWER) == way.households_apart(x, gone, FEWER_UNITS) == 1


# -- texts that fit a pattern ------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern", [".+", r"\d{2}", r"[A-Z]{2}\d{5}N\d{4}E\d{4}", "town-[0-9]{3,9}"]
)
def test_texts_fit_their_pattern(pattern):
    texts = [written(pattern, number) for number in range(5)]
    assert all(re.fullmatch(pattern, text) for text in texts)
    assert len(set(texts)) == 5


def test_codes_of_areas_begin_with_that_of_the_area_above():
    assert written(r"\d{5}", 3, "50") == "50003"
    assert written(r"z\d", 1, "A") == "z1"


def test_a_pattern_that_is_no_row_of_characters_is_refused():
    with pytest.raises(ValueError, match="no text for the pattern"):
        written("(a|b)", 0)
