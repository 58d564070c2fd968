"""Simulate a census of any schema from the hints it carries.

The spine is built from the number of children of each level; smallest areas lie on a
1 km grid. Dwellings hold households with ages and roles; everything else is drawn from
the schema's hints (`hints.py`). Add a level or a variable to the schema file and it is
simulated; no code changes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.census import Level, Schema, with_person_key
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.simulate.hints import Column, Tables, listed
from discreet.simulate.pattern import make_codes
from discreet.simulate.profile import Profile
from discreet.simulate.stream import stream

#: Households of 1, 2, ... persons; residents of an institution on average (assumptions).
SIZES = np.array([0.32, 0.32, 0.15, 0.14, 0.05, 0.02])
INSTITUTION = 25.0
#: Where the grid begins and how many kilometres a degree has there.
ORIGIN, KM_PER_DEGREE = (50.0, 10.0), (111.2, 71.5)
ROLES = ("head", "partner", "child", "other_relative", "unrelated")

Ints = npt.NDArray[np.int64]
Generator = np.random.Generator


def simulate_country(
    profile: Profile,
    schema: Schema,
    folder: Path,
    seed: int,
    progress: Callable[[int, int, str], None],
) -> tuple[int, int, int]:
    """Write the three tables of a census; return the numbers of persons, units, areas."""
    engine = Engine(threads=1)
    progress(0, 4, "areas")
    geography, place = _areas(stream(seed, profile.name, "areas"), schema)
    tables = Tables(schema, engine, np.array(ORIGIN) + place / np.array(KM_PER_DEGREE))
    tables.columns["geography"] = geography
    progress(1, 4, "units")
    rng = stream(seed, profile.name, "units")
    area = _dwellings(rng, schema, profile.persons or 0, len(place))
    tables.columns["units"] = {
        "unit_id": np.arange(1, len(area) + 1),
        schema.block: geography[schema.block][area],
    }
    tables.area["units"] = area
    tables.draw("units", rng)
    progress(2, 4, "persons")
    rng = stream(seed, profile.name, "persons")
    unit, people = _people(rng, schema, tables.columns["units"]["kind"])
    columns = {name: people[name] for name in schema.persons if name in people}
    tables.columns["persons"] = {
        "unit_id": unit + 1,
        "person_key": np.arange(len(unit)),
        **columns,
    }
    tables.area["persons"] = area[unit]
    tables.draw("persons", rng)
    in_order = ["unit_id", "person_key", *schema.persons]
    drawn = tables.columns["persons"]
    tables.columns["persons"] = {name: drawn[name] for name in in_order if name in drawn}
    progress(3, 4, "writing")
    if not profile.linked:
        del tables.columns["persons"]["unit_id"]
        tables.columns["persons"][schema.block] = geography[schema.block][area[unit]]
    _write(tables, folder, f"sim{seed}")
    engine.close()
    return len(unit), len(area), len(place)


def _write(tables: Tables, folder: Path, key: str) -> None:
    engine = tables.engine
    for name in ("geography", "units"):
        frame = engine.from_numpy(tables.columns[name])
        engine.write_parquet(frame, folder / f"{name}.parquet")
    columns = {n: c for n, c in tables.columns["persons"].items() if n != "person_key"}
    persons = with_person_key(engine, engine.from_numpy(columns), tables.schema, key)
    home = [name for name in ("unit_id", tables.schema.block) if name in columns]
    persons = persons.select(*home, "person_key", *(n for n in columns if n not in home))
    # Sorted: a window over equal records leaves no order one could rely on.
    engine.write_parquet(persons, folder / "persons.parquet", order_by=["person_key"])


def _areas(rng: Generator, schema: Schema) -> tuple[dict[str, Column], Ints]:
    """Return geography and the place of each smallest area: kilometres north and east."""
    counts = [_children(level.simulate, f"spine.{level.name}", 2) for level in schema.spine]
    if np.prod([float(count) for count in counts]) > 1e6:
        raise BadInput("spine: more than a million smallest areas. Give levels fewer children.")
    *_, in_parent = counts
    side = int(np.ceil(np.sqrt(in_parent)))
    parents = int(np.prod(counts[:-1]))
    across = int(np.ceil(np.sqrt(parents)))
    square = np.arange(parents)
    corner = side * np.stack(np.divmod(square, across), axis=1)
    within = np.stack(np.divmod(np.arange(in_parent), side), axis=1)
    place = (corner[:, None, :] + within).reshape(-1, 2)
    columns: dict[str, Column] = {}
    above, repeat = [""], len(place)
    for level, count in zip(schema.spine, counts, strict=True):
        smallest = place if level.name == schema.block and _grid_like(level.pattern) else None
        codes = _level_codes(level, above, count, smallest)
        above, repeat = codes, len(place) // len(codes)
        columns[level.name] = np.repeat(listed(codes), repeat)
    for area in schema.areas:
        columns[area.name] = _outside_spine(rng, area, place, parents)
    columns |= _attributes(schema, place)
    return columns, place


def _level_codes(level: Level, above: list[str], count: int, place: Ints | None) -> list[str]:
    """Return the codes of a level, `count` in each area above, by their `place` on a grid."""
    where = f"spine.{level.name}"
    if level.codes is not None:
        return _first_codes(level.codes, len(above) * count, where)
    codes: list[str] = []
    for number, code in enumerate(above):
        numbers = list(range(1, count + 1))
        if place is not None:
            first = number * count
            numbers = [int(n * 10_000 + e) for n, e in place[first : first + count]]
        codes += make_codes(level.pattern, code, numbers, where)
    if len(set(codes)) != len(codes):
        raise BadInput(f"{where}: the pattern does not hold the code above it.")
    return codes


def _first_codes(codes: list[str], count: int, where: str) -> list[str]:
    """Return the first of the codes that a schema lists."""
    if count > len(codes):
        raise BadInput(
            f"{where}: fewer codes are listed than the simulator needs. Give fewer children."
        )
    return codes[:count]


def _grid_like(pattern: str) -> bool:
    """Return whether a code has room for its place on the grid: four and four digits."""
    return pattern.count(r"\d{4}") == 2


def _children(hint: dict[str, Any] | None, where: str, usual: int) -> int:
    children = (hint or {}).get("children", usual)
    if isinstance(children, bool) or not isinstance(children, int) or not 1 <= children <= 10_000:
        raise BadInput(f"{where}.simulate.children: needs a whole number from 1 to 10,000.")
    return children


def _outside_spine(rng: Generator, area: Level, place: Ints, parents: int) -> Column:
    """Return areas that do not nest: the nearest of some centres, none where that is far."""
    count = _children(area.simulate, f"areas.{area.name}", max(2, parents // 8))
    centre = place[rng.permutation(len(place))[:count]]
    squared = ((place[:, None, :] - centre[None, :, :]) ** 2).sum(axis=2)
    nearest = squared.argmin(axis=1)
    distance = squared.min(axis=1)
    where = f"areas.{area.name}"
    if area.codes is not None:
        codes = _first_codes(area.codes, count, where)
    else:
        codes = make_codes(area.pattern, "", list(range(1, count + 1)), where)
    column: Column = listed(codes)[nearest]
    column[distance > np.quantile(distance, 0.75)] = None
    return column


def _attributes(schema: Schema, place: Ints) -> dict[str, Column]:
    """Return coordinates, and codes by distance from the middle (first code: the middle)."""
    columns: dict[str, Column] = {}
    point = np.round(np.array(ORIGIN) + (place + 0.5) / np.array(KM_PER_DEGREE), 6)
    middle = np.abs(place - place.mean(axis=0)).max(axis=1)
    order = np.argsort(np.argsort(middle, kind="stable"), kind="stable")
    for name, variable in schema.geography.items():
        if name in ("latitude", "longitude"):
            columns[name] = point[:, int(name == "longitude")].copy()
        elif variable.codes is not None:
            codes = listed(variable.leaves)
            columns[name] = codes[order * len(codes) // len(place)]
    return columns


def _dwellings(rng: Generator, schema: Schema, persons: int, areas: int) -> Ints:
    """Return the smallest area of every dwelling, enough of them for `persons`."""
    shares = (schema.units["kind"].simulate or {}).get("shares") or {}
    total = sum(shares.values()) or 1.0
    occupied = sum(shares.get(code, 0) for code in schema.kinds.occupied) / total or 1.0
    collective = sum(shares.get(code, 0) for code in schema.kinds.collective) / total
    mean = SIZES @ np.arange(1, len(SIZES) + 1)
    count = max(areas, round(persons / (occupied * mean + collective * INSTITUTION)))
    weight = rng.lognormal(0, 0.8, areas)
    per_area = 1 + rng.multinomial(count - areas, weight / weight.sum())
    return np.repeat(np.arange(areas), per_area)


def _people(rng: Generator, schema: Schema, kind: Column) -> tuple[Ints, dict[str, Column]]:
    """Return the dwelling (from zero) of every person, and ages and roles."""
    occupied = np.isin(kind.astype(str), schema.kinds.occupied)
    collective = np.isin(kind.astype(str), schema.kinds.collective)
    size = np.where(occupied, 1 + rng.choice(len(SIZES), len(kind), p=SIZES), 0)
    residents = 1 + rng.poisson(INSTITUTION - 1, len(kind))
    size = np.where(collective, residents, size)
    unit = np.repeat(np.arange(len(kind)), size)
    rank = np.arange(len(unit)) - np.repeat(np.cumsum(size) - size, size)
    couple = rng.random(len(kind)) < 0.68
    role = _roles(rng, size[unit], rank, couple[unit])
    age = _ages(rng, unit, rank, role, size)
    institutional = collective[unit]
    age[institutional] = rng.triangular(18, 88, 100, institutional.sum()).astype(np.int64)
    people: dict[str, Column] = {}
    number = schema.persons.get("age")
    if number is not None and number.kind == "integer":
        low, high = number.min or 0, number.max if number.max is not None else 110
        people["age"] = np.clip(age, int(low), int(high))
    variable = schema.persons.get("household_role")
    if variable is not None and variable.codes and set(ROLES) <= set(variable.codes):
        names = listed(ROLES)[role]
        others = [code for code in variable.leaves if code not in ROLES]
        names[institutional] = others[0] if others else "unrelated"
        people["household_role"] = names
    return unit, people


def _roles(rng: Generator, size: Ints, rank: Ints, couple: npt.NDArray[np.bool_]) -> Ints:
    """Return the place in `ROLES` of each person: the first is the head, and so on."""
    further = 2 + (rng.random(len(rank)) > 0.86) + (rng.random(len(rank)) > 0.96)
    role = np.where(rank == 0, 0, further)
    return np.where((rank == 1) & couple & (size > 1), 1, role)


def _ages(rng: Generator, unit: Ints, rank: Ints, role: Ints, size: Ints) -> Ints:
    """Return ages: heads by size of household, the others in a likely distance from them."""
    young = (size <= 2) & (rng.random(len(size)) < 0.27)
    usual = np.where(young, 27.0, np.where(size <= 2, 61.0, 46.0))
    head = np.clip(rng.normal(usual, np.where(young, 5.0, np.where(size <= 2, 14.0, 9.0))), 18, 98)
    head = head[unit]
    noise = rng.standard_normal(len(unit))
    child = np.clip(head - 31 - 5.5 * noise, 0, 60)
    # A grown child has mostly moved out; draw most of those anew as minors.
    moved = (child > 22) & (rng.random(len(unit)) < 0.7)
    child = np.where(moved, rng.integers(0, 22, len(unit)), child)
    child = np.minimum(child, head - 16)
    choices = [head, head - 1 + 4 * noise, child, rng.uniform(0, 85, len(unit)), head + 8 * noise]
    age = np.choose(role, choices)
    adult = np.isin(role, (0, 1, 4))
    result: Ints = np.clip(age, np.where(adult, 18, 0), 108).astype(np.int64)
    return result
