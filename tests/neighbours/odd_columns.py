"""Computed columns and conditions drawn at random, over the columns that there are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from neighbours.draws import Draw, chance, pick, several

Place = Literal["units", "persons"]
Value = str | int

#: Chains of computed columns are no longer than this.
LONGEST = 3

#: The simplest first; what is computed or confidential is read more often.
GROUPS = ("persons", "units", "public", "secret", "computed", "areas", "computed", "secret")

LABELS = ("low", "high", "rest")


@dataclass(frozen=True)
class Column:
    """What a condition or a computed column has to know of the columns that it reads.

    `values` are those that may be spoken of. `group` says where it comes from, so that every
    kind is read about equally often.
    """

    name: str
    group: Literal["persons", "units", "public", "secret", "areas", "computed"]
    values: tuple[Value, ...]
    #: No other values occur.
    closed: bool = True
    #: A table may be made by it: the schema alone tells all its values.
    listed: bool = True
    #: It may be missing.
    lacks: bool = False
    #: What its own code list rolls up to; empty where it has none.
    roots: tuple[str, ...] = ()
    #: How many computed columns lie between it and variables, itself included.
    depth: int = 0

    @property
    def number(self) -> bool:
        return isinstance(self.values[0], int)


@dataclass
class Sketch:
    """A schema under construction: its text so far, and the columns of each of its tables."""

    names: Iterator[str]
    data: dict[str, Any]
    columns: dict[str, dict[str, Column]] = field(
        default_factory=lambda: {"geography": {}, "units": {}, "persons": {}}
    )

    def add(self, place: str, column: Column) -> None:
        self.columns[place][column.name] = column

    def seen_from(self, place: Place) -> list[Column]:
        """Return what rows of a table see; their own columns hide those of the same name above."""
        above = self.columns["geography"] | self.columns["units"]
        return [*(above | self.columns["persons"] if place == "persons" else above).values()]


def choose(draw: Draw, columns: Sequence[Column]) -> Column:
    """Return one column: first the kind of it, since some kinds have few."""
    there = {column.group for column in columns}
    group = pick(draw, [group for group in GROUPS if group in there])
    return pick(draw, [column for column in columns if column.group == group])


def alike(columns: Sequence[Column], other: Column) -> list[Column]:
    """Return the columns that hold numbers, or text, as another does."""
    return [column for column in columns if column.number == other.number]


def shallow(columns: Sequence[Column]) -> list[Column]:
    """Return the columns from which another one may be computed."""
    return [column for column in columns if column.depth < LONGEST]


# -- conditions --------------------------------------------------------------------------------


def condition(draw: Draw, columns: Sequence[Column], nested: bool = True) -> dict[str, Any]:
    """Return a condition on one column, or one made of such conditions."""
    way = draw_way(draw) if nested else "entry"
    if way in ("any", "all"):
        return {way: [condition(draw, columns, False) for _ in range(1 + chance(draw))]}
    if way == "not":
        return {"not": condition(draw, columns, chance(draw, 4))}
    first = choose(draw, columns)
    if way == "same":
        return {"same": [first.name, choose(draw, alike(columns, first)).name]}
    found = {first.name: entry(draw, first)}
    if way == "two":
        second = choose(draw, columns)
        found.setdefault(second.name, entry(draw, second))
    return found


def draw_way(draw: Draw) -> str:
    return pick(draw, ("entry", "entry", "entry", "two", "two", "any", "all", "not", "same"))


def entry(draw: Draw, column: Column) -> Any:
    """Return what a condition asks of one column."""
    if chance(draw, 3 if column.lacks else 9):
        return {"missing": not chance(draw)}
    if not column.number:
        codes = several(draw, column.values, 1, 2)
        return codes[0] if len(codes) == 1 and chance(draw) else codes
    value = pick(draw, column.values)
    return pick(draw, ({"min": value}, {"max": value}, value, [value], {"min": 1, "max": value}))


def depth_of(names: Collection[str], columns: Sequence[Column]) -> int:
    """Return the depth of a column that reads those of these names."""
    return 1 + max((column.depth for column in columns if column.name in names), default=0)


def names_in(found: Any) -> set[str]:
    """Return every text in a condition: the names of its columns are among them."""
    if isinstance(found, dict):
        return {*found}.union(*map(names_in, found.values()))
    if isinstance(found, list):
        return set().union(*map(names_in, found))
    return {found} if isinstance(found, str) else set()


# -- computed columns --------------------------------------------------------------------------


def compute(draw: Draw, sketch: Sketch, place: Place) -> Column:
    """Add a computed column to a table of the sketch."""
    name, ways = next(sketch.names), ["recode", "cases", "recode"]
    ways += ["members", "member", "members"] if place == "units" else []
    way = pick(draw, ways)
    columns = shallow(sketch.seen_from(place))
    if way == "recode":
        text, column = recode(draw, name, choose(draw, columns))
    elif way == "cases":
        text, column = cases(draw, name, columns)
    else:
        people = shallow(sketch.seen_from("persons"))
        own = [person for person in people if person.name in sketch.data["persons"]]
        take = pick(draw, own) if way == "member" else None
        # Most of them by what is computed, perhaps from the unit: that is easily overlooked.
        made = [person for person in people if person.name in sketch.data["computed_persons"]]
        text, column = of_members(draw, name, people if chance(draw, 4) else made or people, take)
    sketch.data[f"computed_{place}"][name] = text
    sketch.add(place, column)
    return column


def recode(draw: Draw, name: str, source: Column) -> tuple[dict[str, Any], Column]:
    """Return a recode of a column: bins of numbers, groups or roots of codes."""
    made = Column(name, "computed", LABELS, lacks=source.lacks, depth=source.depth + 1)
    if source.roots and chance(draw, 3 if source.roots == source.values else 2):
        return {"of": source.name, "roll_up": True}, replace(made, values=source.roots)
    found = bins(draw, source) if source.number else groups(draw, source)
    text: dict[str, Any] = {"of": source.name, "bins" if source.number else "groups": found}
    labels = [*found]
    if chance(draw):
        text["otherwise"] = pick(draw, ("rest", labels[0]))
        labels.append(text["otherwise"])
    lacks = source.lacks or "otherwise" not in text
    return text, replace(made, values=tuple(dict.fromkeys(labels)), lacks=lacks)


def bins(draw: Draw, source: Column) -> dict[str, Any]:
    """Return one or two bins of a column of numbers, perhaps with a gap between them."""
    low = min(map(int, source.values))
    cut = max(low + 1, int(pick(draw, source.values)))
    above = {"high": [cut + chance(draw, 4), pick(draw, (None, cut + 2))]}
    return above if chance(draw, 4) else {"low": [low, cut - 1], **above}


def groups(draw: Draw, source: Column) -> dict[str, Any]:
    """Return one or two groups of the values of a column of text."""
    first = several(draw, source.values, 1, 2)
    rest = [value for value in source.values if value not in first]
    return {"low": first} if not rest or chance(draw, 4) else {"low": first, "high": rest}


def cases(draw: Draw, name: str, columns: Sequence[Column]) -> tuple[dict[str, Any], Column]:
    """Return one or two cases that give text or numbers, their own or those of a column."""
    number = chance(draw, 3)
    literals: tuple[Value, ...] = (0, 1, 2) if number else LABELS
    taken: list[Column] = []
    branches = []
    for place in range(1 + chance(draw)):
        branch = {"when": condition(draw, columns), "then": pick(draw, literals)}
        same = [column for column in columns if column.number == number]
        # A schema sees that cases are numbers by one that is written out.
        if same and chance(draw, 3) and not (number and place == 0):
            taken.append(choose(draw, same))
            branch = {"when": branch["when"], "take": taken[-1].name}
        branches.append(branch)
    text: dict[str, Any] = {"cases": branches}
    if chance(draw):
        text["otherwise"] = pick(draw, literals)
    own = [branch["then"] for branch in branches if "then" in branch]
    own += [text["otherwise"]] if "otherwise" in text else []
    values = tuple(dict.fromkeys([*own, *(value for c in taken for value in c.values)]))
    return text, Column(
        name,
        "computed",
        values,
        closed=all(column.closed for column in taken),
        listed=not taken,
        lacks="otherwise" not in text or any(column.lacks for column in taken),
        depth=depth_of(names_in(branches), columns),
    )


def of_members(
    draw: Draw, name: str, people: Sequence[Column], take: Column | None
) -> tuple[dict[str, Any], Column]:
    """Return a count of members, or one variable of the member who meets a condition."""
    if take is None and chance(draw, 4):
        return {"members": {}}, Column(name, "computed", (0, 1, 2, 3), listed=False, depth=1)
    met = condition(draw, people)
    depth = depth_of(names_in(met), people)
    if take is None:
        counts = Column(name, "computed", (0, 1, 2, 3), listed=False, depth=depth)
        return {"members": met}, counts
    value = replace(take, name=name, group="computed", roots=(), lacks=True)
    return {"member": met, "take": take.name}, replace(value, depth=max(depth, take.depth + 1))
