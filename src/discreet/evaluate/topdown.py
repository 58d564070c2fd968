"""Compare a census with a release of redistricting data, TopDown's or any other.

Every level, every size of area; the bias of small and large counts; the fitness target of
the 2020 system; and beside the errors of totals those that theory expects. What comes out
compares with the truth, so it is internal: it never goes into a release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.census import Census, Schema
from discreet.errors import BadInput
from discreet.evaluate.accuracy import (
    AREA_SIZES,
    BLOCK_SIZES,
    Counts,
    Fitness,
    Integers,
    Measure,
    fitness,
    measure,
)
from discreet.evaluate.totals_theory import expected_variances
from discreet.mechanisms import Release, topdown
from discreet.products import pl94

#: What is counted, by name, with the words for it.
MEASURES = {
    "total": "total population",
    "adults": "population 18 and over",
    "cells": "race by Hispanic origin (126 cells)",
    "occupied": "occupied housing units",
}

#: The words for the detailed cells, and for the groups of the fitness target.
CELLS = "race by Hispanic origin"
GROUPS = "six races, each with its combination with white, and the rest, by Hispanic origin"

SHAPE = tuple(len(categories) for categories in pl94.AXES.values())
RACES = SHAPE[3]

#: Seven race groups of the fitness target: each race with its combination with white.
GROUP_OF_RACE = np.full(RACES, 6)
GROUP_OF_RACE[:11] = [0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5]

WHOLE = "all"


@dataclass(frozen=True)
class LevelErrors:
    """The errors of one level; `expected` is the root mean square of totals by theory."""

    level: str
    areas: int
    measures: Mapping[str, Measure]
    fitness: tuple[Fitness, ...]
    expected: float | None

    def as_data(self) -> dict[str, Any]:
        """Return the errors as plain data."""
        return {
            "areas": self.areas,
            "measures": {name: one.as_data() for name, one in self.measures.items()},
            "expected_root_mean_square_of_totals": self.expected,
            "fitness": [one.as_data() for one in self.fitness],
        }


@dataclass(frozen=True)
class TopDownStudy:
    """All errors of one release; `strategy` is that of its persons, if it is TopDown's."""

    schema: Schema
    origin: str
    persons: int
    strategy: str | None
    levels: tuple[LevelErrors, ...]

    def at(self, level: str) -> LevelErrors:
        """Return the errors of one level."""
        for one in self.levels:
            if one.level == level:
                return one
        raise BadInput(f"level '{level}' was not compared.")

    @property
    def smallest(self) -> LevelErrors:
        """Return the errors of the smallest areas."""
        return self.at(self.schema.block)

    def as_data(self) -> dict[str, Any]:
        """Return the study as plain data."""
        return {
            "schema": self.schema.name,
            "origin": self.origin,
            "internal": "compares with the truth; no part of a release",
            "persons": self.persons,
            "strategy": self.strategy,
            "levels": {one.level: one.as_data() for one in self.levels},
        }


def study_topdown(
    census: Census, released: Census, strategy: topdown.Strategy | None = None
) -> TopDownStudy:
    """Return the errors of released records at every level both have.

    With the strategy that persons were measured by, errors of totals are set beside those
    that theory expects.
    """
    block = census.schema.block
    _check_same_blocks(census, released)
    levels = _levels(census, released)
    before, after = (pl94.block_counts(one, levels) for one in (census, released))
    if before.persons is None or after.persons is None:
        raise BadInput("evaluate topdown: census and release must both have persons.")
    expected = {} if strategy is None else _expected(strategy, before)
    found = [_level(level, block, before, after, expected.get(level)) for level in levels]
    return TopDownStudy(
        census.schema,
        census.origin,
        int(before.persons[2].sum()),
        None if strategy is None else strategy.name,
        tuple(found),
    )


def persons_strategy(release: Release) -> topdown.Strategy | None:
    """Return the strategy by which a release's persons were measured, if it is TopDown's."""
    parameters = release.header.parameters
    if release.header.mechanism != "topdown" or parameters.get("persons") is None:
        return None
    strategy = topdown.load_strategy(parameters["persons"])
    root = parameters.get("root")
    return strategy if root is None else strategy.rooted(root)


def _check_same_blocks(census: Census, released: Census) -> None:
    """Refuse a release of another geography: every error would be nonsense."""
    block = census.schema.block
    if released.schema.block != block:
        raise BadInput("evaluate topdown: census and release have different smallest areas.")
    # A hash of each side: the two need not share an engine, and a nation has eight million.
    marked = {"areas": "count(*)", "mark": f'bit_xor(hash("{block}"))'}
    sides = [one.engine.project(one.geography, marked) for one in (census, released)]
    if census.engine.rows(sides[0]) != released.engine.rows(sides[1]):
        raise BadInput(
            f"evaluate topdown: census and release have not the same areas of level '{block}'. "
            f"Give the census that the release was made from."
        )


def _levels(census: Census, released: Census) -> list[str]:
    """Return the levels of the spine and other areas that both geographies have."""
    both = set(census.geography.collect_schema().names())
    both &= set(released.geography.collect_schema().names())
    return [name for name in census.schema.area_names if name in both]


# -- one level --------------------------------------------------------------------------------


def _level(
    level: str, block: str, before: pl94.BlockCounts, after: pl94.BlockCounts, theory: float | None
) -> LevelErrors:
    codes = np.union1d(before.codes[level], after.codes[level])
    sides = (_side(before, level, codes), _side(after, level, codes))
    areas, classes = codes.size, BLOCK_SIZES if level == block else AREA_SIZES
    every = np.arange(areas)

    def dense(keep: Callable[[Side], NDArray[np.bool_]]) -> Counts:
        found = [_sums(one.area, one.count, areas, keep(one)) for one in sides]
        return Counts(every, found[0], found[1])

    total = dense(lambda one: np.ones(one.area.size, dtype=np.bool_))
    counts = {"total": total, "adults": dense(lambda one: one.axis[1] == 1)}
    counts["cells"] = _cells(sides)
    occupied = [_occupied(one, level, codes) for one in (before, after)]
    if occupied[0] is not None and occupied[1] is not None:
        counts["occupied"] = Counts(every, occupied[0], occupied[1])
    return LevelErrors(
        level,
        areas,
        {name: measure(one, total.before, classes) for name, one in counts.items()},
        tuple(fitness(_groups(sides[0], areas), _groups(sides[1], areas))),
        theory,
    )


@dataclass(frozen=True)
class Side:
    """Persons of one side: the area, the place on each axis and the number of each entry."""

    area: Integers
    axis: tuple[Integers, ...]
    count: Integers


def _side(counted: pl94.BlockCounts, level: str, codes: NDArray[Any]) -> Side:
    if counted.persons is None:
        raise AssertionError("checked before")
    block, place, count = counted.persons
    area = _areas(counted, level, codes)[block]
    inside = area >= 0
    axes = np.unravel_index(place[inside], SHAPE)
    return Side(area[inside], tuple(one.astype(np.int64) for one in axes), count[inside])


def _areas(counted: pl94.BlockCounts, level: str, codes: NDArray[Any]) -> Integers:
    """Return the number of each block's area among `codes`, -1 for a block in none."""
    number = np.append(np.searchsorted(codes, counted.codes[level]), -1)
    return np.asarray(number[counted.area_of[level]], dtype=np.int64)


def _sums(area: Integers, count: Integers, areas: int, keep: NDArray[np.bool_]) -> Integers:
    # Sums of whole numbers below 2^53 are exact as doubles.
    return np.bincount(area[keep], weights=count[keep], minlength=areas).astype(np.int64)


def _occupied(counted: pl94.BlockCounts, level: str, codes: NDArray[Any]) -> Integers | None:
    if counted.units is None:
        return None
    block, place, count = counted.units
    area = _areas(counted, level, codes)[block]
    keep = (area >= 0) & (place == pl94.UNIT_CELLS.index("occupied"))
    return _sums(area, count, codes.size, keep)


def _cells(sides: tuple[Side, Side]) -> Counts:
    """Return race by Hispanic origin in every area, without the cells that are empty in both."""
    width = SHAPE[2] * RACES
    keys = [one.area * width + one.axis[2] * RACES + one.axis[3] for one in sides]
    found, place = np.unique(np.concatenate(keys), return_inverse=True)
    cut = keys[0].size
    parts = ((place[:cut], sides[0].count), (place[cut:], sides[1].count))
    sums = [_sums(at, n, found.size, np.ones(at.size, dtype=np.bool_)) for at, n in parts]
    return Counts(found // width, sums[0], sums[1], width)


def _groups(side: Side, areas: int) -> Integers:
    """Return the 14 groups of the fitness target: seven race groups by Hispanic origin."""
    group = side.axis[2] * 7 + GROUP_OF_RACE[side.axis[3]]
    every = np.ones(group.size, dtype=np.bool_)
    return _sums(side.area * 14 + group, side.count, areas * 14, every).reshape(areas, 14)


# -- theory -----------------------------------------------------------------------------------


def _expected(strategy: topdown.Strategy, counted: pl94.BlockCounts) -> dict[str, float]:
    """Return the root mean square error of totals by theory, on the tree of a census."""
    parents: list[Integers] = []
    above: Integers | None = None
    for level in strategy.level_names:
        if level == WHOLE:
            parents.append(np.zeros(1, dtype=np.int64))
            continue
        if level not in counted.codes:
            raise BadInput(f"evaluate topdown: the strategy measures '{level}', which is missing.")
        own = counted.area_of[level]
        parent = np.zeros(counted.codes[level].size, dtype=np.int64)
        parent[own] = 0 if above is None else above
        parents.append(parent)
        above = own
    found = expected_variances(strategy, parents)
    return {level: float(np.sqrt(variance.mean())) for level, variance in found.items()}
