"""Columns with their legal values, and the population groups of the tables, as data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

#: For each column the values that are meant, whole numbers as a range; all must hold.
Condition = Mapping[str, Collection[str] | range]


def _codes(first: int, last: int, width: int) -> tuple[str, ...]:
    return tuple(f"{number:0{width}d}" for number in range(first, last + 1))


#: The legal values of every column the tables look at: of persons, and of units.
PERSON_COLUMNS: Condition = {
    "relationship": _codes(20, 38, 2),
    "age": range(116),
    "race": _codes(1, 63, 2),
    "hispanic": ("1", "2"),
}
UNIT_COLUMNS: Condition = {
    "kind": ("occupied", "vacant"),
    "household_type": _codes(1, 7, 1),
    "household_type2": _codes(1, 12, 2),
    "couple_type": _codes(1, 5, 1),
    "tenure": _codes(1, 4, 1),
    "householder_race": PERSON_COLUMNS["race"],
    "householder_hispanic": PERSON_COLUMNS["hispanic"],
}

#: Iteration codes: conditions on the race and Hispanic origin of the person or householder.
ITERATIONS: dict[str, Condition] = {
    "*": {},
    "A": {"race": ("01",)},
    "B": {"race": ("02",)},
    "C": {"race": ("03",)},
    "D": {"race": ("04",)},
    "E": {"race": ("05",)},
    "F": {"race": ("06",)},
    "G": {"race": _codes(7, 63, 2)},
    "H": {"hispanic": ("2",)},
    "I": {"race": ("01",), "hispanic": ("1",)},
}

ITERATION_TITLES = {
    "*": "Everybody",
    "A": "White alone",
    "B": "Black or African American alone",
    "C": "American Indian and Alaska Native alone",
    "D": "Asian alone",
    "E": "Native Hawaiian and Other Pacific Islander alone",
    "F": "Some Other Race alone",
    "G": "Two or more races",
    "H": "Hispanic or Latino",
    "I": "White alone, not Hispanic or Latino",
}

RegionType = Literal["USA", "STATE"]

#: The one region of type USA.
NATION = "1"


@dataclass(frozen=True)
class Level:
    """A population group level: regions of one type, crossed with some iteration codes."""

    region_type: RegionType
    iterations: tuple[str, ...]


_GROUPS = {"*": ("*",), "A-G": tuple("ABCDEFG"), "H,I": ("H", "I")}

#: `usa_*`, `usa_A-G`, `usa_H,I`, `state_*`, `state_A-G`, `state_H,I`.
LEVELS: dict[str, Level] = {
    f"{region.lower()}_{name}": Level(region, codes)
    for region in ("USA", "STATE")
    for name, codes in _GROUPS.items()
}

#: Fifty states and the District of Columbia; Puerto Rico is a run of its own.
STATES: tuple[str, ...] = tuple(
    code for code in _codes(1, 56, 2) if code not in ("03", "07", "14", "43", "52")
)
PUERTO_RICO = "72"


def regions_of(level: str, states: Collection[str]) -> tuple[str, ...]:
    """Return the regions of a level, in order."""
    return (NATION,) if LEVELS[level].region_type == "USA" else tuple(sorted(states))
