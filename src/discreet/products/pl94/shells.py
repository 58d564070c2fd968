"""The shells of tables P1 to P5 and H1: their 301 cells as data.

A cell has the code of the published files (P0010001 is the first cell of P1), a label, the
cell it is a part of, and the places of a histogram it adds up. Tables of persons rest on one
histogram of 2016 places, H1 on one of two; so a table of any area is a sum over places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from discreet.config import suggest
from discreet.errors import BadInput

#: The seven major types of group quarters, as the profile `us-decennial` names them.
QUARTERS = {
    "correctional": "Correctional facilities for adults",
    "juvenile": "Juvenile facilities",
    "nursing": "Nursing facilities/Skilled-nursing facilities",
    "other institutional": "Other institutional facilities",
    "college": "College/University student housing",
    "military": "Military quarters",
    "other noninstitutional": "Other noninstitutional facilities",
}
INSTITUTIONAL, HOUSEHOLD = 4, "household"

#: The histogram of persons, row-major: the axis named last moves fastest.
AXES: Mapping[str, tuple[str, ...]] = {
    "hhgq": (HOUSEHOLD, *QUARTERS),
    "voting_age": ("under 18", "18 and over"),
    "hispanic": ("1", "2"),
    "race": tuple(f"{number:02d}" for number in range(1, 64)),
}
SHAPE = tuple(len(categories) for categories in AXES.values())

#: The histogram of housing units: the codes of `kind`.
UNIT_CELLS = ("vacant", "occupied")

#: Race groups in the order the codes 01 to 63 combine them: by number, then in this order.
RACES = (
    "White",
    "Black or African American",
    "American Indian and Alaska Native",
    "Asian",
    "Native Hawaiian and Other Pacific Islander",
    "Some Other Race",
)
NUMBERS = ("one race", "two races", "three races", "four races", "five races", "six races")

#: Of a line of an outline: depth, label, and the places it adds up.
Line = tuple[int, str, NDArray[np.bool_]]


@dataclass(frozen=True)
class ShellCell:
    """One column of a published table."""

    code: str
    label: str
    depth: int
    parent: str | None
    places: tuple[int, ...]


@dataclass(frozen=True)
class Shell:
    """One table: what it counts, and its cells in published order."""

    name: str
    title: str
    counts: Literal["persons", "units"]
    cells: tuple[ShellCell, ...]

    @property
    def codes(self) -> list[str]:
        """Names of the columns."""
        return [cell.code for cell in self.cells]

    def columns_of_places(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return, place after place, which columns a record there is counted in.

        The columns of place p are `columns[start[p]:start[p + 1]]`.
        """
        size = int(np.prod(SHAPE)) if self.counts == "persons" else len(UNIT_CELLS)
        column = np.repeat(np.arange(len(self.cells)), [len(c.places) for c in self.cells])
        place = np.concatenate([np.array(cell.places, dtype=np.int64) for cell in self.cells])
        inside = np.bincount(place, minlength=size)
        start = np.concatenate([[0], np.cumsum(inside)]).astype(np.int64)
        return start, column[np.argsort(place, kind="stable")].astype(np.int32)


def shell_of(name: str) -> Shell:
    """Return a shell by the name of its table."""
    if name not in SHELLS:
        raise BadInput(f"Public Law 94-171 has no table '{name}'.{suggest(name, SHELLS)}")
    return SHELLS[name]


def _where(**chosen: Sequence[int]) -> NDArray[np.bool_]:
    """Return the places whose axes are among the chosen categories, by their number."""
    grid = np.indices(SHAPE).reshape(len(SHAPE), -1)
    found = np.ones(grid.shape[1], dtype=bool)
    for axis, name in enumerate(AXES):
        if name in chosen:
            found &= np.isin(grid[axis], list(chosen[name]))
    return found


def _races(depth: int, universe: NDArray[np.bool_]) -> Iterator[Line]:
    """Yield the lines from "one race" to all six combinations of a universe."""
    first, several = 0, "Population of two or more races:"
    for number, words in enumerate(NUMBERS, start=1):
        groups = list(combinations(RACES, number))
        codes = range(first, first + len(groups))
        if number == 2:
            yield depth, several, universe & _where(race=range(first, SHAPE[3]))
        below = depth + (number > 1)
        yield below, f"Population of {words}:", universe & _where(race=codes)
        for code, group in zip(codes, groups, strict=True):
            label = f"{group[0]} alone" if number == 1 else "; ".join(group)
            yield below + 1, label, universe & _where(race=[code])
        first += len(groups)


def _by_race(universe: NDArray[np.bool_]) -> Iterator[Line]:
    yield 0, "Total:", universe
    yield from _races(1, universe)


def _by_origin_and_race(universe: NDArray[np.bool_]) -> Iterator[Line]:
    yield 0, "Total:", universe
    yield 1, "Hispanic or Latino", universe & _where(hispanic=[1])
    rest = universe & _where(hispanic=[0])
    yield 1, "Not Hispanic or Latino:", rest
    yield from _races(2, rest)


def _by_quarters() -> Iterator[Line]:
    labels = list(QUARTERS.values())
    yield 0, "Total:", _where(hhgq=range(1, SHAPE[0]))
    for name, inside in {
        "Institutionalized population:": range(INSTITUTIONAL),
        "Noninstitutionalized population:": range(INSTITUTIONAL, len(labels)),
    }.items():
        yield 1, name, _where(hhgq=[number + 1 for number in inside])
        for number in inside:
            yield 2, labels[number], _where(hhgq=[number + 1])


def _by_occupancy() -> Iterator[Line]:
    yield 0, "Total:", np.array([True, True])
    yield 1, "Occupied", np.array([False, True])
    yield 1, "Vacant", np.array([True, False])


def _shell(
    name: str, title: str, counts: Literal["persons", "units"], lines: Iterator[Line]
) -> Shell:
    """Give the lines of an outline their codes and parents."""
    cells: list[ShellCell] = []
    above: list[str] = []
    for number, (depth, label, places) in enumerate(lines, start=1):
        code = f"{name[0]}{int(name[1:]):03d}{number:04d}"
        parent = above[depth - 1] if depth else None
        cells.append(ShellCell(code, label, depth, parent, tuple(np.flatnonzero(places).tolist())))
        above[depth:] = [code]
    return Shell(name, title, counts, tuple(cells))


def _shells() -> dict[str, Shell]:
    everybody, adults = _where(), _where(voting_age=[1])
    origin = "Hispanic or Latino, and not Hispanic or Latino by race"
    of_age = "for the population 18 years and over"
    shells = [
        _shell("P1", "Race", "persons", _by_race(everybody)),
        _shell("P2", origin, "persons", _by_origin_and_race(everybody)),
        _shell("P3", f"Race {of_age}", "persons", _by_race(adults)),
        _shell("P4", f"{origin}, {of_age}", "persons", _by_origin_and_race(adults)),
        _shell("P5", "Group quarters population by type", "persons", _by_quarters()),
        _shell("H1", "Occupancy status", "units", _by_occupancy()),
    ]
    return {shell.name: shell for shell in shells}


SHELLS: Mapping[str, Shell] = _shells()
