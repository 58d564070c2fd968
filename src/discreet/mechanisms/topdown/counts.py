"""Exact counts of a census in the cells of a histogram: the confidential input of TopDown."""

from __future__ import annotations

from typing import NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import Census
from discreet.engine import Engine, Frame
from discreet.errors import BadInput
from discreet.mechanisms.topdown.axes import Scale
from discreet.mechanisms.topdown.histogram import Histogram
from discreet.mechanisms.topdown.spine import Integers, Spine


class Counts(NamedTuple):
    """Cells of a level that are not empty, in the order of nodes and cells."""

    node: NDArray[np.int32]
    cell: NDArray[np.int32]
    counted: Integers


def block_counts(census: Census, histogram: Histogram, spine: Spine) -> Counts:
    """Return the counts of all blocks of the tree."""
    strategy, block = histogram.strategy, census.schema.block
    columns = list(dict.fromkeys(scale.column for scale in histogram.axes))
    rows = census.frame(strategy.count, [block, *columns], where=strategy.where or None)
    rows = rows.group_by(block, *columns).agg(_count=nw.len())
    cell = nw.lit(0, dtype=nw.Int64)
    for scale in histogram.axes:
        rows = with_place(census.engine, rows, scale)
        cell = cell * len(scale.categories) + nw.col(f"_{scale.name}")
    rows = rows.with_columns(_cell=cell).join(_nodes(spine, block), on=block, how="left")
    rows = rows.with_columns(nw.col("_node").fill_null(-1))
    summed = rows.group_by("_node", "_cell").agg(_count=nw.col("_count").sum())
    arrays = census.engine.to_numpy(summed.sort("_node", "_cell"))
    if arrays["_node"].size and arrays["_node"][0] < 0:
        raise BadInput("topdown: records lie in blocks that the geography or the units lack.")
    return Counts(
        arrays["_node"].astype(np.int32),
        arrays["_cell"].astype(np.int32),
        arrays["_count"].astype(np.int64),
    )


def with_place(engine: Engine, rows: Frame, scale: Scale) -> Frame:
    """Add the place of each row among the categories of an axis, in a column `_name`."""
    listed = {value: place for value, place in scale.place_of.items() if value is not None}
    table = engine.from_numpy(
        {
            "_value": np.array(list(listed), dtype=object),
            f"_{scale.name}": np.array(list(listed.values()), dtype=np.int64),
        }
    )
    rows = rows.with_columns(_value=nw.col(scale.column).cast(nw.String))
    rows = rows.join(table, on="_value", how="left").drop("_value")
    if None in scale.place_of:
        rows = rows.with_columns(nw.col(f"_{scale.name}").fill_null(scale.place_of[None]))
    return rows


def _nodes(spine: Spine, block: str) -> Frame:
    return spine.codes[-1].select(nw.col("code").alias(block), _node=nw.col("node"))


def upwards(counts: Counts, parents: Integers, cells: int) -> Counts:
    """Return the counts of the level above."""
    key = parents[counts.node] * cells + counts.cell
    order = np.argsort(key, kind="stable")
    sorted_keys = key[order]
    first = np.flatnonzero(np.diff(sorted_keys, prepend=-1))
    if not first.size:
        return counts
    sums = np.add.reduceat(counts.counted[order], first)
    node, cell = np.divmod(sorted_keys[first], cells)
    return Counts(node.astype(np.int32), cell.astype(np.int32), sums)


def units_by_quarters(census: Census, histogram: Histogram, spine: Spine) -> Integers:
    """Return the number of units in every block by category of quarters, [categories, blocks]."""
    quarters = histogram.strategy.quarters
    counted = np.zeros((len(histogram.groups), spine.size(-1)), dtype=np.int64)
    if quarters is None:
        return counted
    scale, block = histogram.scale(quarters.axis), census.schema.block
    rows = census.frame("units", [block, scale.column])
    rows = rows.group_by(block, scale.column).agg(_count=nw.len())
    rows = with_place(census.engine, rows, scale).join(_nodes(spine, block), on=block, how="inner")
    # Units of no category are those that `where` leaves out.
    rows = rows.filter(~nw.col(f"_{scale.name}").is_null())
    arrays = census.engine.to_numpy(rows.select("_node", f"_{scale.name}", "_count"))
    np.add.at(counted, (arrays[f"_{scale.name}"], arrays["_node"]), arrays["_count"])
    return counted


def totals_of(counts: Counts, spine: Spine, level: str | None) -> dict[int, Integers]:
    """Return the exact totals at a level and at all above it, by number of the level."""
    if level is None:
        return {}
    deepest = spine.levels.index(level)
    sums = np.bincount(counts.node, weights=counts.counted, minlength=spine.size(-1))
    totals = np.rint(sums).astype(np.int64)
    found = {}
    for depth in range(len(spine.levels) - 1, -1, -1):
        if depth <= deepest:
            found[depth] = totals
        if depth:
            totals = spine.upwards(totals, depth)
    return found
