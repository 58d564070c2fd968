"""The histogram of a strategy over the categories of a schema: cells, queries, empty cells.

Cells are numbered row-major over the axes in the order of the strategy. Everything here
follows from the strategy and the schema, which are public.
"""

from __future__ import annotations

import functools
import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.census import Schema
from discreet.config import suggest
from discreet.errors import BadInput
from discreet.mechanisms.topdown.axes import Scale, check_levels, check_where, scale_of
from discreet.mechanisms.topdown.strategy import Strategy

#: More cells than this do not fit the memory of one area.
MOST_CELLS = 1 << 24

Rows = NDArray[np.int32]


class Partition(NamedTuple):
    """A query: the row of each cell, the number of rows, and the shape of the answer."""

    row_of: Rows
    rows: int
    shape: tuple[int, ...]


class Histogram:
    """The cells of a strategy, and its queries as partitions of them."""

    def __init__(self, strategy: Strategy, schema: Schema) -> None:
        check_levels(strategy, schema)
        check_where(strategy, schema)
        self.strategy, self.schema = strategy, schema
        self.axes = tuple(scale_of(strategy, schema, axis) for axis in strategy.axes)
        self.shape = tuple(len(scale.categories) for scale in self.axes)
        self.size = math.prod(self.shape)
        if self.size > MOST_CELLS:
            raise BadInput(
                f"strategy {strategy.name} has {self.size:,} cells, more than {MOST_CELLS:,}. "
                f"Use coarser axes."
            )
        self._check_recodes()
        self._check_quarters()
        self._check_chain()

    def scale(self, axis: str) -> Scale:
        """Return an axis by name."""
        return self.axes[self._position(axis)]

    def _position(self, axis: str) -> int:
        self.strategy.axis(axis)
        return [scale.name for scale in self.axes].index(axis)

    # -- cells ------------------------------------------------------------------------

    def cell(self, **named: str) -> int:
        """Return the number of the cell with these categories, one for each axis."""
        places = [self._place(scale.name, named[scale.name]) for scale in self.axes]
        return int(np.ravel_multi_index(places, self.shape))

    def places(self, cells: NDArray[np.integer]) -> tuple[NDArray[np.intp], ...]:
        """Return, for each axis, the places of cells among its categories."""
        return np.unravel_index(cells, self.shape)

    def label(self, cell: int) -> str:
        """Return the categories of a cell in words."""
        places = self.places(np.array([cell]))
        named = zip(self.axes, places, strict=True)
        return ", ".join(f"{scale.name}={scale.categories[place[0]]}" for scale, place in named)

    @functools.cached_property
    def zeros(self) -> NDArray[np.bool_]:
        """Return which cells are empty in every census (structural zeros)."""
        empty = np.zeros(self.shape, dtype=np.bool_)
        for zero in self.strategy.zeros:
            chosen = [np.arange(length) for length in self.shape]
            for axis, names in zero.items():
                places = [self._place(axis, name) for name in names]
                chosen[self._position(axis)] = np.array(places, dtype=np.intp)
            empty[np.ix_(*chosen)] = True
        return empty.reshape(-1)

    def _place(self, axis: str, category: str) -> int:
        known = self.scale(axis).categories
        if category not in known:
            hint = suggest(category, known)
            raise BadInput(f"strategy {self.strategy.name}: {axis} has no '{category}'.{hint}")
        return known.index(category)

    # -- queries ----------------------------------------------------------------------

    def partition(self, query: str) -> Partition:
        """Return a query as a partition of the cells, rows row-major in the order of its name."""
        factors = self.strategy.factors(query)
        row_of = np.zeros(self.shape, dtype=np.int32)
        shape = []
        for factor in factors:
            place = self._position(self.strategy.axis_of(factor))
            groups = self._group_of(factor)
            shape.append(int(groups.max()) + 1)
            along = [1] * len(self.shape)
            along[place] = len(groups)
            row_of = row_of * np.int32(shape[-1]) + groups.reshape(along)
        rows = np.broadcast_to(row_of, self.shape).reshape(-1)
        return Partition(np.ascontiguousarray(rows), math.prod(shape), tuple(shape))

    def _group_of(self, factor: str) -> Rows:
        """Return the group of each category of the axis that a factor is or recodes."""
        if factor not in self.strategy.recodes:
            return np.arange(len(self.scale(factor).categories), dtype=np.int32)
        recode = self.strategy.recodes[factor]
        groups = np.full(len(self.scale(recode.of).categories), -1, dtype=np.int32)
        for number, names in enumerate(recode.groups.values()):
            groups[[self._place(recode.of, name) for name in names]] = number
        return groups

    @functools.cached_property
    def group_of(self) -> Rows:
        """Return the category of quarters of each cell; 0 everywhere if there are none."""
        quarters = self.strategy.quarters
        return self.partition("total" if quarters is None else quarters.axis).row_of

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the categories of quarters; one without a name if there are none."""
        quarters = self.strategy.quarters
        return ("",) if quarters is None else self.scale(quarters.axis).categories

    @property
    def at_least_one(self) -> NDArray[np.bool_]:
        """Return which categories of quarters hold at least one record per unit."""
        quarters = self.strategy.quarters
        listed = [] if quarters is None else quarters.at_least_one
        return np.array([group in listed for group in self.groups], dtype=np.bool_)

    @functools.cached_property
    def tree(self) -> tuple[Partition, ...]:
        """Return the chain of rounding from coarse to fine; the cells below it are implied."""
        return tuple(self.partition(query) for query in self.strategy.rounding)

    # -- checks -----------------------------------------------------------------------

    def _check_recodes(self) -> None:
        for name, recode in self.strategy.recodes.items():
            if any(not group for group in recode.groups.values()):
                raise BadInput(f"recode {name}: a group is empty. Leave it out.")
            if (self._group_of(name) < 0).any():
                raise BadInput(
                    f"recode {name} does not cover every category of {recode.of}, so it is no "
                    f"partition. Add a group for the rest."
                )
        for zero in self.strategy.zeros:
            for axis, names in zero.items():
                for category in names:
                    self._place(axis, category)

    def _check_quarters(self) -> None:
        quarters = self.strategy.quarters
        if quarters is None:
            return
        column = self.scale(quarters.axis).column
        if self.strategy.count != "persons" or self.schema.home(column, "persons") != "units":
            raise BadInput(
                f"quarters: persons are bounded by their units, so '{quarters.axis}' must be an "
                f"axis of persons that is a column of the unit."
            )
        for category in quarters.at_least_one:
            self._place(quarters.axis, category)

    def _check_chain(self) -> None:
        names = pairwise(self.strategy.rounding)
        for (coarse, fine), (above, below) in zip(names, pairwise(self.tree), strict=True):
            parent = np.zeros(below.rows, dtype=np.int32)
            parent[below.row_of] = above.row_of
            if (parent[below.row_of] != above.row_of).any():
                raise BadInput(
                    f"rounding: '{fine}' does not subdivide '{coarse}'. Each query of the chain "
                    f"must be finer than the one before."
                )
