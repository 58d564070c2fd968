"""Schemas as users may write them: names, areas, variables and computed columns at random."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from discreet.census import Schema
from neighbours.draws import Draw, between, chance, pick, several
from neighbours.odd_columns import Column, Place, Sketch, compute, condition

AREAS = ("land", "shire", "canton", "parish", "ward", "street", "plot", "estate", "quarter")
#: Words for variables and computed columns; none of them has a meaning to the package.
WORDS = (
    *("amber", "birch", "cedar", "dune", "elm", "fern", "gorse", "heath", "iris", "juniper"),
    *("kelp", "larch", "moss", "nettle", "oak", "pine", "quince", "rush", "sage", "thyme"),
    *("umbel", "vetch", "willow", "yew"),
)
CODES = (("a", "b", "c"), ("1", "2", "3"), ("yes", "no"), ("01", "10"))
#: Records carry the leaves: all but the first.
TREE = {
    "x": {"label": "x"},
    "x1": {"label": "x1", "parent": "x"},
    "x2": {"label": "x2", "parent": "x"},
    "y": {"label": "y"},
}
FIRST = "ABC"


def schemas() -> st.SearchStrategy[Schema]:
    """Return valid schemas, as a strategy."""
    return st.composite(draw_schema)()


def draw_schema(draw: Draw) -> Schema:
    """Return a valid schema with computed columns and tables of every kind."""
    sketch = Sketch(rotated(draw, WORDS), {"name": "odd", "title": "An odd country"})
    add_areas(draw, sketch)
    add_geography(draw, sketch)
    add_units(draw, sketch)
    add_persons(draw, sketch)
    sketch.data |= {"computed_units": {}, "computed_persons": {}}
    derived = False
    for _ in range(between(draw, 3, 8)):
        place: Place = pick(draw, ("units", "persons"))
        column = compute(draw, sketch, place)
        if not derived and (column.number or column.closed) and chance(draw, 6):
            derived = True
            add_derived(sketch, place, column)
    add_tables(draw, sketch)
    return Schema(**sketch.data)


def rotated(draw: Draw, words: tuple[str, ...]) -> itertools.cycle:
    """Return the words from a random one on, without end."""
    start = between(draw, 0, len(words) - 1)
    return itertools.cycle(words[start:] + words[:start])


# -- areas and geography -----------------------------------------------------------------------


def add_areas(draw: Draw, sketch: Sketch) -> None:
    """Add a spine of 2 to 4 levels and perhaps a kind of area outside it."""
    words = rotated(draw, AREAS)
    spine = [
        {"name": next(words), "pattern": f"[{FIRST}]" + r"\d" * place}
        for place in range(between(draw, 2, 4))
    ]
    if chance(draw):
        spine[0]["codes"] = [*FIRST]
    areas = [{"name": next(words), "pattern": r"z\d"}] if chance(draw) else []
    sketch.data |= {"spine": spine, "areas": areas}
    for level in spine[:2] + areas:
        codes = {1: ("A", "B"), 2: ("A0", "B1")}[level["pattern"].count("\\") + 1]
        codes = ("z0", "z1") if level in areas else codes
        # A block may lie in no area outside the spine.
        lacks = level in areas
        column = Column(level["name"], "areas", codes, closed=False, listed=False, lacks=lacks)
        sketch.add("geography", column)


def add_geography(draw: Draw, sketch: Sketch) -> None:
    """Add public codes, and confidential codes or numbers, of blocks."""
    sketch.data["geography"] = {}
    for _ in range(between(draw, 0, 2)):
        add_variable(draw, sketch, "geography", coded(draw), "public")
    for _ in range(between(draw, 0, 2)):
        variable = coded(draw) if chance(draw) else whole(draw)
        add_variable(draw, sketch, "geography", variable | {"confidential": True}, "secret")


# -- variables ---------------------------------------------------------------------------------


def coded(draw: Draw) -> dict[str, Any]:
    return {"codes": [*pick(draw, CODES)]}


def whole(draw: Draw) -> dict[str, Any]:
    return {"number": "integer", "min": 0, "max": pick(draw, (2, 3, 5))}


def add_variable(
    draw: Draw,
    sketch: Sketch,
    place: str,
    variable: dict[str, Any],
    group: Any,
    name: str | None = None,
) -> None:
    """Add a variable, of a name of its own unless one is given."""
    name = name or next(sketch.names)
    if chance(draw, 4):
        variable["missing"] = True
    if not chance(draw, 4):
        variable["required"] = True
    sketch.data[place][name] = variable
    sketch.add(place, column_of(name, group, variable))


def column_of(name: str, group: Any, variable: dict[str, Any]) -> Column:
    """Return what others have to know of a variable."""
    lacks = bool(variable.get("missing") or variable.get("only"))
    if "number" in variable:
        return Column(name, group, tuple(range(variable["max"] + 1)), lacks=lacks)
    if variable["codes"] is TREE:
        return Column(name, group, ("x1", "x2", "y"), lacks=lacks, roots=("x", "y"))
    codes = tuple(variable["codes"])
    return Column(name, group, codes, lacks=lacks, roots=codes)


def add_units(draw: Draw, sketch: Sketch) -> None:
    """Add the kinds of units, one or two codes, and a small number."""
    occupied = [pick(draw, ("home", "occupied"))]
    vacant = ["empty"] if chance(draw) else []
    collective = ["hostel"] if chance(draw) else []
    kinds = [*occupied, *vacant, *collective]
    sketch.data["kinds"] = {"occupied": occupied, "vacant": vacant, "collective": collective}
    sketch.data["units"] = {"kind": {"required": True, "codes": kinds}}
    sketch.add("units", column_of("kind", "units", sketch.data["units"]["kind"]))
    for _ in range(between(draw, 1, 2)):
        only = {"only": {"kind": several(draw, kinds, 1, 2)}} if chance(draw) else {}
        add_variable(draw, sketch, "units", coded(draw) | only, "units")
    add_variable(draw, sketch, "units", whole(draw), "units")
    add_made_from_others(draw, sketch, "units")


def add_made_from_others(draw: Draw, sketch: Sketch, place: Place) -> None:
    """Add, now and then, a variable that was made by looking at other records, too."""
    if chance(draw, 4):
        add_variable(draw, sketch, place, coded(draw) | {"from_others": True}, place)


def add_persons(draw: Draw, sketch: Sketch) -> None:
    """Add roles, one or two codes, and a small number."""
    sketch.data["persons"] = {"role": {"required": True, "codes": ["head", "other"]}}
    sketch.add("persons", column_of("role", "persons", sketch.data["persons"]["role"]))
    # Now and then a variable of persons has the name of one of their unit.
    shadowed = [*sketch.data["units"]][1] if chance(draw, 4) else None
    for _ in range(between(draw, 1, 2)):
        variable = {"codes": TREE} if chance(draw) else coded(draw)
        only = {"only": {"role": ["head"]}} if chance(draw, 6) else {}
        add_variable(draw, sketch, "persons", variable | only, "persons", shadowed)
        shadowed = None
    add_variable(draw, sketch, "persons", whole(draw), "persons")
    add_made_from_others(draw, sketch, "persons")


def add_derived(sketch: Sketch, place: Place, source: Column) -> None:
    """Add a variable that is computed where the data do not have it."""
    name = next(sketch.names)
    # Twelve: no unit gets so many members.
    kind = {"number": "integer", "min": 0, "max": 12} if source.number else {}
    variable = {"derive": source.name, **(kind or {"codes": [*source.values]})}
    if source.lacks:
        variable["missing"] = True
    sketch.data[place][name] = variable
    column = column_of(name, "computed", variable)
    sketch.add(place, replace(column, depth=source.depth + 1))


# -- tables ------------------------------------------------------------------------------------


def add_tables(draw: Draw, sketch: Sketch) -> None:
    """Add 2 to 5 tables by columns that have a list of values."""
    levels = [level["name"] for level in sketch.data["spine"] + sketch.data["areas"]]
    sketch.data["tables"] = []
    for number in range(between(draw, 2, 5)):
        count: Place = pick(draw, ("units", "persons"))
        seen = sketch.seen_from(count)
        listed = several(draw, [column for column in seen if column.listed], 0, 3)
        table = {
            "name": f"T{number}",
            "title": "A table",
            "count": count,
            "by": [column.name for column in listed],
            "levels": several(draw, levels, 1, 3),
        }
        if chance(draw):
            table["where"] = condition(draw, seen)
        sketch.data["tables"].append(table)
