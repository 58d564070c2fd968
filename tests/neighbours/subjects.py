"""Mechanisms under random promises: for each name, how a configuration and two censuses are drawn.

A mechanism joins by an entry in `MEASURING` or `ENUMERATED`. What it refuses is drawn again:
only what it accepts can break a promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hypothesis import reject

from discreet.census import (
    Census,
    Schema,
    Table,
    categories,
    load_schema,
    may_be_missing,
)
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import Mechanism, mechanism
from discreet.products import sdhc
from discreet.spec import InputPremetric, hamming_of_multisets
from neighbours import steps
from neighbours.draws import Draw, chance, pick, several
from neighbours.odd_schemas import draw_schema
from neighbours.small_worlds import World, draw_world
from phsafe.homes import Home, census_of
from phsafe.moves import STATES, moves

#: Cells of one histogram or table at most: enough for everything that can go wrong.
MOST_CELLS = 60
#: Steps between two censuses: mostly one, since what breaks a promise shows there best.
NUMBERS_OF_STEPS = (1, 1, 1, 2, 3)


@dataclass(frozen=True)
class Case:
    """A mechanism and two worlds, `distance` apart by the input premetric of its promise."""

    made: Mechanism
    one: World | Town
    other: World | Town
    distance: int


def configured(name: str, schema: Schema, parameters: dict[str, Any]) -> Mechanism:
    """Return a mechanism, or draw again if it refuses its configuration."""
    try:
        return mechanism(name, schema, parameters)
    except BadInput:
        reject()


def case_of(draw: Draw, made: Mechanism, taken: tuple[steps.Step, ...], apart: Any) -> Case:
    """Return a mechanism with two worlds, as far apart as `apart` says."""
    one = other = draw_world(draw, made.census_schema)
    for _ in range(pick(draw, NUMBERS_OF_STEPS)):
        other = pick(draw, taken)(draw, other)
    distance = apart(one, other, made.specify().input_premetric)
    if not 0 < distance < math.inf:
        reject()
    return Case(made, one, other, int(distance))


def shares(draw: Draw, many: int) -> list[str]:
    """Return so many fractions that add up to 1."""
    parts = [1 + pick(draw, range(4)) for _ in range(many)]
    return [str(Fraction(part, sum(parts))) for part in parts]


# -- noisy tables -----------------------------------------------------------------------------


def noisy_tables(draw: Draw) -> Case:
    """Return tables of a schema with noise, and two censuses some records apart."""
    count = pick(draw, ("units", "persons", "persons"))
    schema = draw_schema(draw)
    if chance(draw):
        schema = with_tables_of_one_column(schema, count)
    usable = [table for table in schema.tables if table.count == count and accepted(schema, table)]
    offered = [(table.name, level) for table in usable for level in table.levels]
    if not offered:
        reject()
    asked = several(draw, offered, 1, 3)
    parts = shares(draw, len(asked))
    change = pick(draw, ("add-remove", "replace"))
    parameters = {
        "noise": pick(draw, ("gaussian", "laplace")),
        "budget": pick(draw, ("1", "1/3", "2")),
        "change": change,
        "queries": [
            {"table": table, "level": level, "share": share}
            for (table, level), share in zip(asked, parts, strict=True)
        ],
    }
    made = configured("noisy-tables", schema, parameters)
    if count == "persons":
        # Mostly persons: a unit that changes takes all its members along, and with them d.
        taken = (*steps.PERSON_STEPS, *steps.PERSON_STEPS, *steps.STEPS)
        return case_of(draw, made, taken, steps.persons_apart)
    return case_of(draw, made, steps.STEPS, steps.households_apart)


def accepted(schema: Schema, table: Table) -> bool:
    """Return whether noise may be added to a table: each is asked for by itself."""
    query = {"table": table.name, "level": table.levels[0], "share": "1"}
    try:
        mechanism("noisy-tables", schema, {"noise": "gaussian", "budget": "1", "queries": [query]})
    except BadInput:
        return False
    return True


def with_tables_of_one_column(schema: Schema, count: str) -> Schema:
    """Return the schema with a table by each column that has categories: each one by itself."""
    tables = []
    for column in sorted(schema.visible(count)):
        try:
            categories(schema, count, column)
        except BadInput:
            continue
        name, levels = f"by-{column}", [schema.levels[0], schema.block]
        tables.append(Table(name=name, title="", count=count, by=[column], levels=levels))
    return schema.model_copy(update={"tables": tables})


# -- TopDown ----------------------------------------------------------------------------------


def topdown(draw: Draw) -> Case:
    """Return strategies of any kind, and two censuses some records apart."""
    schema = draw_schema(draw)
    runs = pick(draw, (["persons"], ["units"], ["persons", "units"]))
    parameters = {run: strategy(draw, schema, run) for run in runs}
    lazy = chance(draw, 4)
    made = configured("topdown", schema, {**parameters, "measurements": "lazy" if lazy else "full"})

    def apart(one: World, other: World, premetric: InputPremetric) -> float:
        found = {
            "persons": steps.persons_apart(one, other, hamming_of_multisets("person")),
            "units": steps.households_apart(one, other, hamming_of_multisets("household")),
        }
        # A person alters one record of a unit: whoever alters two counts twice.
        return max(found[run] for run in runs)

    return case_of(draw, made, STEPS_OF_EQUALS, apart)


#: Steps that leave the numbers of units and persons as they are, more or less.
STEPS_OF_EQUALS: tuple[steps.Step, ...] = (
    steps.change_person,
    steps.replace_person,
    steps.move_person,
    steps.exchange_persons,
    steps.exchange_person_values,
    steps.change_unit,
    steps.move_unit,
    steps.exchange_blocks,
    steps.replace_unit,
    steps.exchange_unit_values,
)


def strategy(draw: Draw, schema: Schema, count: str) -> dict[str, Any]:
    """Return a strategy of persons or units: axes, what is exact, and queries of some levels."""
    axes = draw_axes(draw, schema, count)
    names = [axis["name"] for axis in axes]
    chosen = [level for level in schema.levels[:-1] if chance(draw)]
    levels = [*(["all"] if chance(draw, 3) else []), *chosen, schema.block]
    told = {
        "name": f"odd-{count}",
        "title": "An odd strategy",
        "count": count,
        "rho": pick(draw, ("1", "1/5", "3")),
        "axes": axes,
        "where": draw_where(draw, schema, count),
        "total": pick(draw, (None, *levels)),
        "rounding": ["total"],
        "levels": [
            {"level": level, "share": share, "queries": draw_queries(draw, names)}
            for level, share in zip(levels, shares(draw, len(levels)), strict=True)
        ],
    }
    if chance(draw, 3):
        told["hold"] = [{"query": pick(draw, ["total", *names]), "level": pick(draw, levels)}]
    return told if count == "units" or not chance(draw, 3) else with_quarters(schema, told)


def draw_axes(draw: Draw, schema: Schema, count: str) -> list[dict[str, Any]]:
    """Return one to three axes of columns of any kind, with few cells together."""
    columns = [*sorted(schema.visible(count))]
    axes: list[dict[str, Any]] = []
    cells = 1
    for column in several(draw, columns, 1, 3):
        try:
            found = len(categories(schema, count, column)) + 1
        except BadInput:
            continue
        if cells * found > MOST_CELLS:
            continue
        cells *= found
        absent = may_be_missing(schema, count, column, {}) or chance(draw, 4)
        axes.append({"name": column, "column": column, **({"missing": "absent"} if absent else {})})
    return axes


def draw_where(draw: Draw, schema: Schema, count: str) -> dict[str, Any]:
    """Return a condition on one column that lists some of its values, or none at all."""
    if not chance(draw, 3):
        return {}
    column = pick(draw, sorted({*schema.variables(count), *schema.computed(count)}))
    try:
        values = categories(schema, count, column)
    except BadInput:
        return {}
    return {column: [value for value in values if chance(draw)] or values[:1]}


def draw_queries(draw: Draw, names: list[str]) -> dict[str, str]:
    """Return queries with their parts: all cells, and perhaps totals and products of axes."""
    asked = ["detailed"]
    if chance(draw):
        asked.append("total")
    if len(names) > 1 and chance(draw):
        asked.append("*".join(several(draw, names, 1, len(names))))
    asked = list(dict.fromkeys(asked))
    return dict(zip(asked, shares(draw, len(asked)), strict=True))


def with_quarters(schema: Schema, told: dict[str, Any]) -> dict[str, Any]:
    """Return a strategy of persons whose quarters are told by the kind of their unit."""
    kinds = schema.kinds
    groups = {"housing": [*kinds.occupied, *kinds.vacant]}
    groups |= {f"of {kind}": [kind] for kind in kinds.collective}
    axis = {"name": "kind", "column": "kind", "groups": groups}
    axes = [axis, *(one for one in told["axes"] if one["name"] != "kind")]
    return {
        **told,
        "axes": axes,
        "where": {},
        "hold": [],
        "quarters": {"axis": "kind"},
        "rounding": ["total", "kind"],
    }


# -- PHSafe -----------------------------------------------------------------------------------

US = load_schema("us-decennial")


@dataclass(frozen=True)
class Town:
    """Homes as the tests of PHSafe draw them: its tables know households of some sense only."""

    homes: tuple[Home, ...]

    def census(self, engine: Engine) -> Census:
        """Return the census of these homes."""
        return census_of(engine, self.homes, states=STATES, residents=1)


def phsafe(draw: Draw) -> Case:
    """Return some tables of households with low thresholds, and two censuses a person apart.

    More changes than the promise counts: if a householder goes, the records of others follow.
    """
    change = pick(draw, ("add-remove", "replace"))
    offered = [(table, level) for table, shell in sdhc.SHELLS.items() for level in shell.levels]
    asked = set(pick(draw, (offered, several(draw, offered, 1, 6))))
    truncated = [table for table, shell in sdhc.SHELLS.items() if shell.counts == "persons"]
    parameters = {
        "states": STATES,
        "budgets": {
            table: {level: "1/2" if (table, level) in asked else "0" for level in shell.levels}
            for table, shell in sdhc.SHELLS.items()
        },
        "thresholds": {table: 1 + pick(draw, range(4)) for table in truncated},
        "noise": pick(draw, ("gaussian", "geometric")),
        "change": change,
    }
    one, other = draw(moves(change))
    made = configured("phsafe", US, parameters)
    return Case(made, Town(tuple(one)), Town(tuple(other)), 1)


# -- permutation swapping -----------------------------------------------------------------------

#: Units at most, or the law takes too long to write down.
MOST_TRADED = 4
ENGINE = Engine(threads=1)


def permutation_swapping(draw: Draw) -> Case:
    """Return a swap of anything with anything, and two censuses of one universe."""
    schema = draw_schema(draw)
    records = pick(draw, ("units", "units", "persons"))
    own = [*schema.variables(records), *schema.computed(records)]
    swap = several(draw, [*schema.variables(records)], 1, 2)
    if records == "units":
        swap = pick(draw, ([], [], swap, [schema.block, *swap]))
    made = configured(
        "permutation-swapping",
        schema,
        {
            "rate": pick(draw, ("1/2", "1/5", "3/4")),
            "match": several(draw, own, 0, 2),
            "within": pick(draw, ["all", *schema.levels]),
            "records": records,
            "swap": swap,
        },
    )
    one = draw_world(draw, schema)
    one = other = replace(one, units=one.units[:MOST_TRADED])
    for _ in range(1 + pick(draw, range(2))):
        other = trade(draw, made, other)
    apart = steps.households_apart if records == "units" else steps.persons_apart
    distance = apart(one, other, made.specify().input_premetric)
    if not 0 < distance < math.inf or len(steps.seats(one)) > 2 * MOST_TRADED:
        reject()
    return Case(made, one, other, int(distance))


def trade(draw: Draw, made: Any, world: World) -> World:
    """Exchange what is swapped between two records that match, in one area."""
    places = seats_by_stratum(made, world)
    strata = [seats for seats in places.values() if len(seats) > 1]
    if not strata:
        reject()
    one, other = several(draw, pick(draw, strata), 2, 2)
    if made.records == "persons":
        for name in made.swapped:
            left, right = steps.person_at(world, one), steps.person_at(world, other)
            world = steps.with_person(world, one, {**left, name: right[name]})
            world = steps.with_person(world, other, {**right, name: left[name]})
        return world
    first, second = world.units[one[0]], world.units[other[0]]
    own = [name for name in made.swapped if name != made.census_schema.block]
    if set(own) - set(world.columns["units"]):
        reject()
    blocks = (second.block, first.block) if len(own) < len(made.swapped) else ()
    for (place, _), unit, donor in ((one, first, second), (other, second, first)):
        values = {**unit.values, **{name: donor.values[name] for name in own}}
        block = donor.block if blocks else unit.block
        world = steps.with_unit(world, place, replace(unit, block=block, values=values))
    return world


def seats_by_stratum(made: Any, world: World) -> dict[Any, list[steps.Seat]]:
    """Return where records are that agree on what is matched, and on the area."""
    columns = list(dict.fromkeys([*made.match, *([] if made.within == "all" else [made.within])]))
    found: dict[Any, list[steps.Seat]] = {}
    own = [n for n in world.columns[made.records] if n not in columns]
    if made.records == "persons" and set(made.swapped) - set(world.columns["persons"]):
        reject()
    census, read = world.census(ENGINE, keyed=False), ["unit_id", *columns, *own]
    try:
        rows = ENGINE.rows(census.frame(made.records, read).select(*read))
    except BadInput:  # a column that this census lacks
        reject()
    taken: set[steps.Seat] = set()
    for number, *values in rows:
        agreed, told = (
            tuple(values[: len(columns)]),
            dict(zip(own, values[len(columns) :], strict=True)),
        )
        place = next(p for p, unit in enumerate(world.units) if unit.number == number)
        if made.records == "units":
            if world.units[place].values["kind"] in made.census_schema.kinds.occupied:
                found.setdefault(agreed, []).append((place, 0))
            continue
        for member, person in enumerate(world.units[place].members):
            if (place, member) not in taken and all(person[n] == told[n] for n in told):
                taken.add((place, member))
                found.setdefault(agreed, []).append((place, member))
                break
    return found


#: Mechanisms that add noise: what they lose is seen where counts and noise meet.
MEASURING: dict[str, Callable[[Draw], Case]] = {
    "noisy-tables": noisy_tables,
    "topdown": topdown,
    "phsafe": phsafe,
}
#: Mechanisms whose law on a tiny census can be written down.
ENUMERATED: dict[str, Callable[[Draw], Case]] = {"permutation-swapping": permutation_swapping}
#: Mechanisms that promise no budget; what they leave exact is reported.
WITHOUT_BUDGET = ("targeted-swapping", "public-docs-2010", "record-swapping")
