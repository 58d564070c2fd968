"""Exact counts of a census in the cells of a histogram: the confidential input of TopDown."""

from __future__ import annotations

from typing import NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import Census, chain_text, check_placed, sources
from discreet.engine import Frame
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
    cell = "0::bigint"
    for scale in histogram.axes:
        cell = f"({cell}) * {len(scale.categories)} + {place_in(scale)}"
    rows = census.engine.project(rows, {"_block": f'"{block}"', "_cell": cell})
    rows = rows.group_by("_block", "_cell").agg(_count=nw.len())
    rows = rows.join(_nodes(spine, "_block"), on="_block", how="left")
    rows = rows.select(nw.col("_node").fill_null(-1), nw.col("_cell").fill_null(-1), "_count")
    arrays = census.engine.to_numpy(rows.sort("_node", "_cell"))
    if arrays["_node"].size and arrays["_node"][0] < 0:
        raise BadInput("topdown: records lie in blocks that the geography or the units lack.")
    if np.any(arrays["_cell"] < 0):
        _name_the_axis(census, histogram)
    return Counts(
        arrays["_node"].astype(np.int32),
        arrays["_cell"].astype(np.int32),
        arrays["_count"].astype(np.int64),
    )


def _name_the_axis(census: Census, histogram: Histogram) -> None:
    """Refuse a census some of whose records are in no cell, and name the column at fault."""
    strategy = histogram.strategy
    values = {scale.column: scale.place_of for scale in histogram.axes}
    check_placed(census, strategy.count, values, strategy.where, f"strategy {strategy.name}")
    raise AssertionError("a record in no cell has a value that no axis lists")


def check_types(census: Census, histogram: Histogram) -> None:
    """Refuse units whose type of quarters does not fit their kind.

    Units of each type are exact, and declared as the collective units by type. A type of
    another unit would be published and not declared; quarters without one would be in no
    category of the release.
    """
    quarters = histogram.strategy.quarters
    if quarters is None or histogram.scale(quarters.axis).column == "kind":
        return
    column, collective = histogram.scale(quarters.axis).column, census.schema.kinds.collective
    by_kind = census.frame("units", ["kind", column]).group_by("kind")
    counted = by_kind.agg(_units=nw.len(), _typed=nw.col(column).count())
    found = census.engine.rows(counted.select("kind", "_units", "_typed"))
    others = sum(typed for kind, _, typed in found if kind not in collective)
    untyped = sum(units - typed for kind, units, typed in found if kind in collective)
    chain = chain_text(list(sources(census.schema, column, "units").values())[-1])
    if others:
        raise BadInput(
            f"{chain}: {others} units that are not collective have a value, but by the schema "
            f"(`only`) it is for collective units, whose number by type is published exactly. "
            f"Run `discreet validate` and fix the census."
        )
    if untyped:
        raise BadInput(
            f"{chain}: {untyped} collective units have no value, or one that the schema does not "
            f"list; their number by type is published exactly. Run `discreet validate` and fix "
            f"the census."
        )


def place_in(scale: Scale) -> str:
    """Return SQL for the place of a row among the categories of an axis; null if in none.

    A list is faster than a join: the engine looks each different text up once.
    """
    known = {value: place for value, place in scale.place_of.items() if value is not None}
    texts = ", ".join("'" + value.replace("'", "''") + "'" for value in known)
    places = ", ".join(map(str, known.values()))
    place = f'([{places}]::bigint[])[list_position([{texts}], "{scale.column}"::varchar)]'
    missing = scale.place_of.get(None)
    return place if missing is None else f"coalesce({place}, {missing})"


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
    rows = census.engine.project(rows, {block: f'"{block}"', "_place": place_in(scale)})
    rows = rows.group_by(block, "_place").agg(_count=nw.len())
    rows = rows.join(_nodes(spine, block), on=block, how="inner")
    # Units of no category are those that `where` leaves out.
    rows = rows.filter(~nw.col("_place").is_null()).select("_node", "_place", "_count")
    arrays = census.engine.to_numpy(rows)
    np.add.at(counted, (arrays["_place"], arrays["_node"]), arrays["_count"])
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
