"""What the estimates of every level must satisfy: bounds of quarters and exact totals.

A bound of a block is summed over the blocks of an area, so whatever satisfies the bounds
of a parent can be split among its children: the problems below the root are feasible by
construction, because the sums of the children's bounds are what bound the parent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.census import Census
from discreet.engine import Engine
from discreet.errors import BadInput, DiscreetError
from discreet.mechanisms.topdown.active import Numbers
from discreet.mechanisms.topdown.counts import Counts, totals_of, units_by_quarters
from discreet.mechanisms.topdown.histogram import Histogram
from discreet.mechanisms.topdown.spine import Integers, Spine


class Impossible(DiscreetError):
    """Constraints that no data satisfy, or that an estimate breaks."""


class Held(NamedTuple):
    """A statistic that is exact at a level: values[node, row], row_of[cell], and its name."""

    name: str
    row_of: Numbers
    values: Integers


@dataclass(frozen=True)
class Bounds:
    """Per level: lower[g, node], allowed[g, node], totals[node] (NaN where not exact), and held."""

    lower: tuple[Integers, ...]
    allowed: tuple[NDArray[np.uint8], ...]
    totals: tuple[NDArray[np.float64], ...]
    held: tuple[list[Held], ...]


@dataclass(frozen=True)
class Facts:
    """Invariant counts: units by quarters [categories, blocks], and exact totals by level.

    `held` are the statistics that the user holds, nodes by rows, by their number and level.
    """

    units: Integers
    totals: dict[int, Integers]
    held: dict[tuple[int, int], Integers]

    def write(self, folder: Path, engine: Engine) -> None:
        """Write all of them as small tables."""
        group, node = np.nonzero(self.units)
        rows = {"node": node, "category": group, "units": self.units[group, node]}
        engine.write_parquet(
            engine.from_numpy(rows), folder / "quarters.parquet", ["node", "category"]
        )
        for level, totals in self.totals.items():
            rows = {"node": np.arange(totals.size), "total": totals}
            engine.write_parquet(
                engine.from_numpy(rows), folder / f"totals-{level}.parquet", ["node"]
            )
        for (number, level), values in self.held.items():
            node, row = np.nonzero(values)
            rows = {"node": node, "row": row, "count": values[node, row]}
            path = folder / f"held-{number}-{level}.parquet"
            engine.write_parquet(engine.from_numpy(rows), path, ["node", "row"])

    @classmethod
    def read(cls, folder: Path, engine: Engine, histogram: Histogram, spine: Spine) -> Facts:
        """Return what `write` wrote."""
        groups = len(histogram.groups)
        found = engine.to_numpy(engine.read_parquet(folder / "quarters.parquet"))
        units = np.zeros((groups, spine.size(-1)), dtype=np.int64)
        units[found["category"], found["node"]] = found["units"]
        totals = {}
        for level in range(len(spine.levels)):
            path = folder / f"totals-{level}.parquet"
            if path.exists():
                read = engine.to_numpy(engine.read_parquet(path).sort("node"))
                totals[level] = read["total"].astype(np.int64)
        held = {}
        for number, one in enumerate(histogram.strategy.hold):
            for level in range(spine.levels.index(one.level) + 1):
                rows = engine.read_parquet(folder / f"held-{number}-{level}.parquet")
                found = engine.to_numpy(rows)
                size = (spine.size(level), histogram.partition(one.query).rows)
                held[number, level] = np.zeros(size, dtype=np.int64)
                held[number, level][found["node"], found["row"]] = found["count"]
        return cls(units, totals, held)


def facts_of(census: Census, histogram: Histogram, spine: Spine, counts: Counts) -> Facts:
    """Return the invariant counts of a census."""
    units = units_by_quarters(census, histogram, spine)
    held = _held_of(histogram, spine, counts)
    totals = totals_of(counts, spine, histogram.strategy.total)
    # A statistic counts every record, so holding it fixes the totals.
    totals |= {level: values.sum(axis=1) for (_, level), values in held.items()}
    return Facts(units, totals, held)


def _held_of(histogram: Histogram, spine: Spine, counts: Counts) -> dict[tuple[int, int], Integers]:
    """Return the statistics that are held, at their level and at all above it."""
    found = {}
    for number, one in enumerate(histogram.strategy.hold):
        part, deepest = histogram.partition(one.query), spine.levels.index(one.level)
        node = counts.node.astype(np.int64)
        for level in range(len(spine.levels) - 1, deepest, -1):
            node = spine.parents[level][node]
        values = np.zeros((spine.size(deepest), part.rows), dtype=np.int64)
        np.add.at(values, (node, part.row_of[counts.cell]), counts.counted)
        for level in range(deepest, -1, -1):
            found[number, level] = values
            values = spine.upwards(values.T, level).T if level else values
    return found


def held_at(
    histogram: Histogram, level: int, values: dict[tuple[int, int], Integers]
) -> list[Held]:
    """Return what is held at a level; `values` are by number of the statistic and level."""
    return [
        Held(one.query, histogram.partition(one.query).row_of, values[number, level])
        for number, one in enumerate(histogram.strategy.hold)
        if (number, level) in values
    ]


def bounds_of(facts: Facts, histogram: Histogram, spine: Spine) -> Bounds:
    """Return the bounds of every level."""
    blocks = len(spine.levels) - 1
    lower = np.where(histogram.at_least_one[:, None], facts.units, 0)
    allowed = (facts.units > 0).astype(np.int64)
    if histogram.strategy.quarters is None:
        allowed[:] = 1
    lowers, alloweds = [lower], [allowed]
    for level in range(blocks, 0, -1):
        lower = spine.upwards(lower, level)
        allowed = np.minimum(spine.upwards(allowed, level), 1)
        lowers.insert(0, lower)
        alloweds.insert(0, allowed)
    totals = [
        facts.totals[level].astype(np.float64)
        if level in facts.totals
        else np.full(spine.size(level), np.nan)
        for level in range(blocks + 1)
    ]
    return Bounds(
        tuple(np.ascontiguousarray(one) for one in lowers),
        tuple(np.ascontiguousarray(one, dtype=np.uint8) for one in alloweds),
        tuple(totals),
        tuple(held_at(histogram, level, facts.held) for level in range(blocks + 1)),
    )


def check_facts(facts: Facts, histogram: Histogram, spine: Spine, counts: Counts) -> None:
    """Refuse invariants that no records can satisfy together.

    Whether a census has records in cells declared empty, or a type of quarters with fewer
    residents than units, decides nothing here: such a census is in one universe with others
    that have not, and a refusal would tell them apart for certain. Bounds and empty cells
    are public, so the estimate keeps them whatever the records are, and the promise holds.
    """
    bounds = bounds_of(facts, histogram, spine)
    for level, name in enumerate(spine.levels):
        if not _possible(bounds, level, histogram):
            raise BadInput(
                f"topdown, {histogram.strategy.name}: the exact statistics of every {name} leave "
                f"no place for their own records: fewer residents than `at_least_one` asks for, "
                f"or records where `zeros` allows none. Mend the census or the strategy."
            )
    # A person has the type of quarters of the own unit, so this is a link that is broken.
    held = np.zeros((len(histogram.groups), spine.size(-1)), dtype=np.int64)
    np.add.at(held, (histogram.group_of[counts.cell], counts.node), counts.counted)
    if np.any(held[bounds.allowed[-1] == 0]):
        raise BadInput("topdown: persons live in quarters of a type that their block has not.")


def _possible(bounds: Bounds, level: int, histogram: Histogram) -> bool:
    """Tell whether bounds, exact totals and held statistics of a level leave room for each other.

    Necessary conditions only: that held statistics fit together is for the solvers to find.
    """
    lower, allowed = bounds.lower[level], bounds.allowed[level].astype(np.int64)
    cells = np.flatnonzero(~histogram.zeros)
    total = Held("total", np.zeros(histogram.size, np.int32), _known(bounds.totals[level]))
    for one in (total, *bounds.held[level]):
        known = one.values[:, 0] >= 0
        reach = np.zeros((one.values.shape[1], len(histogram.groups)), dtype=np.int64)
        reach[one.row_of[cells], histogram.group_of[cells]] = 1
        wanted = one.values[known].T
        if np.any(wanted[reach @ allowed[:, known] == 0]):
            return False
        if np.any(reach.T @ wanted < lower[:, known]):
            return False
        if np.any(wanted.sum(axis=0) < lower[:, known].sum(axis=0)):
            return False
    return True


def _known(totals: NDArray[np.float64]) -> Integers:
    """Return exact totals as one row, -1 where they are not exact."""
    return np.where(np.isnan(totals), -1, totals).astype(np.int64)[:, None]
