"""Persons by group as arrays: of every household, and of every block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import numpy.typing as npt

from discreet.census import Census
from discreet.config import suggest
from discreet.engine import Frame
from discreet.errors import BadInput

Integers = npt.NDArray[np.int64]

#: What a missing value is called.
NOT_STATED = "not stated"

#: More groups than this are no grouping, and arrays would grow.
MOST_GROUPS = 64


@dataclass(frozen=True, eq=False)
class People:
    """Persons of a census by group, the largest group first.

    `members[i]` counts the members of unit `unit_id[i]`, ascending; `blocks[b]` the persons
    of block number b, in units of all kinds. Blocks are numbered in the order of their codes;
    `areas` has the number of each block's area of some levels.
    """

    groups: tuple[str, ...]
    unit_id: Integers
    members: Integers
    blocks: Integers
    areas: Mapping[str, Integers]

    def of_units(self, unit_id: Integers) -> Integers:
        """Return the members by group of some units; nobody of units without persons."""
        place = np.minimum(np.searchsorted(self.unit_id, unit_id), self.unit_id.size - 1)
        found = self.unit_id[place] == unit_id
        members: Integers = self.members[place] * found[:, None]
        return members

    def at(self, level: str, by_block: Integers) -> Integers:
        """Return sums over the areas of a level of counts by block and group."""
        area = self.areas[level]
        return summed(area, by_block, int(area.max()) + 1)


def read_people(census: Census, group: str, levels: Sequence[str]) -> People:
    """Return the persons of a census by the column `group`, a variable or computed."""
    check_group(census, group)
    engine, block = census.engine, census.schema.block
    rows = census.frame("persons", ["unit_id", block, group]).with_columns(
        nw.col(group).cast(nw.String).fill_null(NOT_STATED)
    )
    counted = engine.materialise(rows.group_by("unit_id", block, group).agg(persons=nw.len()))
    by_group = counted.group_by(group).agg(persons=nw.col("persons").sum())
    sizes = {str(name): int(persons) for name, persons in engine.rows(by_group)}
    groups = tuple(sorted(sizes, key=lambda name: (-sizes[name], name)))
    if not groups or len(groups) > MOST_GROUPS:
        raise BadInput(
            f"persons.{group} must have 1 to {MOST_GROUPS} values that occur. Choose a column "
            f"with fewer, such as a recode."
        )
    numbers = engine.from_numpy(
        {group: np.array(groups, dtype=object), "number": np.arange(len(groups))}
    )
    areas, places = _number_areas(census, levels)
    joined = counted.join(numbers, on=group, how="inner").join(places, on=block, how="inner")
    arrays = engine.to_numpy(joined.select("unit_id", "place", "number", "persons"))
    persons, number = arrays["persons"].astype(np.int64), arrays["number"]
    unit_id, row = np.unique(arrays["unit_id"], return_inverse=True)
    members = np.zeros((unit_id.size, len(groups)), dtype=np.int64)
    members[row, number] = persons
    blocks = np.zeros((next(iter(areas.values())).size, len(groups)), dtype=np.int64)
    np.add.at(blocks, (arrays["place"], number), persons)
    return People(groups, unit_id, members, blocks, areas)


def check_group(census: Census, group: str) -> None:
    """Refuse a census without linked persons, or a column they do not have."""
    if not census.linked:
        raise BadInput("swapping moves households, but this census has no persons linked to units.")
    schema = census.schema
    if schema.home(group, "persons") != "persons":
        known = {*schema.persons, *schema.computed_persons}
        raise BadInput(f"persons have no column '{group}'.{suggest(group, known)}")


def _number_areas(census: Census, levels: Sequence[str]) -> tuple[dict[str, Integers], Frame]:
    """Return the areas of each block by number, and a frame `block, place`."""
    engine, block = census.engine, census.schema.block
    names = list(dict.fromkeys([block, *levels]))
    wanted = {f"n_{name}": f'dense_rank() over (order by "{name}") - 1' for name in names}
    numbered = engine.project(census.geography, {block: f'"{block}"', **wanted})
    frame = engine.materialise(numbered)
    arrays = engine.to_numpy(frame.select(*wanted).sort(f"n_{block}"))
    areas = {name: arrays[f"n_{name}"].astype(np.int64) for name in names}
    return areas, frame.select(nw.col(block), nw.col(f"n_{block}").alias("place"))


def summed(number: Integers, counts: Integers, most: int) -> Integers:
    """Return, column by column, the sums of the rows of `counts` with equal `number`.

    >>> summed(np.array([0, 2, 0]), np.array([[1, 5], [2, 6], [3, 7]]), 3).tolist()
    [[4, 12], [0, 0], [2, 6]]
    """
    sums = np.zeros((most, counts.shape[1]), dtype=np.int64)
    for column in range(counts.shape[1]):
        # Sums of counts stay far below 2^53, so doubles are exact.
        sums[:, column] = np.bincount(number, weights=counts[:, column], minlength=most)
    return sums
