"""One strategy on one tree: all that is public before anything is measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.topdown.constraints import Bounds
from discreet.mechanisms.topdown.histogram import Histogram
from discreet.mechanisms.topdown.measurement import Asked
from discreet.mechanisms.topdown.solve import Floats, Rules
from discreet.mechanisms.topdown.spine import Shares, Spine, bypass
from discreet.mechanisms.topdown.strategy import TOTAL, Strategy
from discreet.noise import DiscreteGaussian


class Query(NamedTuple):
    """A query by name: the row of every cell, the number of rows, the shape of the answer."""

    name: str
    row_of: NDArray[np.int32]
    rows: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Design:
    """The histogram that is measured, the tree of areas, and the way of rounding."""

    histogram: Histogram
    spine: Spine
    deployed: bool = False

    @property
    def strategy(self) -> Strategy:
        """Return the strategy."""
        return self.histogram.strategy

    @cached_property
    def shares(self) -> Shares:
        """Return the share of the budget of every node."""
        return bypass(self.spine, [measured.share for measured in self.strategy.levels])

    def queries(self, level: int) -> list[Query]:
        """Return the queries of a level; the total comes first."""
        asked = self.strategy.levels[level].queries
        names = sorted(asked, key=lambda name: name != TOTAL)
        return [Query(name, *self.histogram.partition(name)) for name in names]

    def weights(self, level: int) -> Floats:
        """Return one over the variance of each query at each node; 0 where it is not measured."""
        rows = []
        for query in self.queries(level):
            asked = self.asked(level, query)
            known = [
                0.0 if sigma2 is None else 1 / float(DiscreteGaussian(sigma2).variance())
                for sigma2 in asked.sigma2
            ]
            rows.append(np.array(known)[asked.law])
        return np.ascontiguousarray(rows)

    def asked(self, level: int, query: Query) -> Asked:
        """Return a query of a level with its noise: sigma^2 from the share of each node."""
        name = self.spine.levels[level]
        return Asked(
            level=name,
            query=query.name,
            row_of=query.row_of,
            rows=query.rows,
            sigma2=tuple(
                None if share == 0 else self.strategy.sigma2(name, query.name, share)
                for share in self.shares.values[level]
            ),
            law=self.shares.index[level],
        )

    def rules(self, level: int, bounds: Bounds) -> Rules:
        """Return what holds at a level."""
        queries = self.queries(level)
        return Rules(
            row_of=np.ascontiguousarray([query.row_of for query in queries]),
            weights=self.weights(level),
            total_first=self.spine.levels[level] in self.strategy.total_first,
            group_of=self.histogram.group_of,
            lower=bounds.lower[level],
            allowed=bounds.allowed[level],
            totals=bounds.totals[level],
            tree=np.ascontiguousarray([part.row_of for part in self.histogram.tree]),
            deployed=self.deployed,
        )
