"""The tree of areas that TopDown walks down, and the share of the budget each area has.

Every branch reaches the smallest level. Nodes of a level are numbered in the order of
their paths, so the children of a node are neighbours. The tree is public, so which blocks
are in it must follow from declared invariants (`discreet.mechanisms.topdown.universe`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import Census
from discreet.engine import Engine, Frame
from discreet.errors import BadInput
from discreet.spec import WHOLE

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Spine:
    """Levels from the root down; `parents[i][k]` is the parent of node k of level i.

    The parents of the first level are all 0 and mean nothing. `codes` holds `node, code,
    parent` of each level.
    """

    levels: tuple[str, ...]
    parents: tuple[Integers, ...]
    codes: tuple[Frame, ...] = field(repr=False)

    def size(self, level: int) -> int:
        """Return the number of nodes of a level."""
        return int(self.parents[level].size)

    def child_start(self, level: int) -> Integers:
        """Return where the children of each node of a level begin; one more entry for the end."""
        inside = np.bincount(self.parents[level + 1], minlength=self.size(level))
        return np.concatenate([[0], np.cumsum(inside)]).astype(np.int64)

    def upwards(self, values: Integers, level: int) -> Integers:
        """Return the sums over children: `values` has the nodes of `level` along its last axis."""
        start = self.child_start(level - 1)
        return np.add.reduceat(values, start[:-1], axis=-1)

    def write(self, folder: Path, engine: Engine) -> None:
        """Write one file per level."""
        for level, nodes in zip(self.levels, self.codes, strict=True):
            engine.write_parquet(nodes, folder / f"{level}.parquet", ["node"])

    @classmethod
    def read(cls, folder: Path, levels: Sequence[str], engine: Engine) -> Spine:
        """Return the spine that `write` wrote."""
        tables = [engine.read_parquet(folder / f"{level}.parquet") for level in levels]
        return _spine(engine, levels, tables)


def spine_of(census: Census, levels: Sequence[str], blocks: Frame | None = None) -> Spine:
    """Return the tree over `blocks`, or over all blocks of the geography.

    `levels` go from the root to the block; "all" as the first stands for one root.
    """
    engine, block = census.engine, census.schema.block
    named = [level for level in levels if level != WHOLE]
    present = census.geography.collect_schema().names()
    for level in named:
        if level not in present:
            raise BadInput(f"topdown: this census has no areas of level '{level}'.")
    used = census.geography if blocks is None else blocks
    listed = engine.distinct(used.select(block))
    paths = census.geography.select(*named).join(listed, on=block, how="inner")
    rows = _numbered(engine, paths, named)
    tables = [_root(engine)] if levels[0] == WHOLE else []
    for depth, level in enumerate(named):
        parent = nw.col(f"_node{depth - 1}") if depth else nw.lit(0, dtype=nw.Int64)
        first = rows.filter(nw.col(f"_first{depth}"))
        tables.append(first.select(node=f"_node{depth}", parent=parent, code=level))
    _check_codes(engine, rows, named)
    return _spine(engine, levels, tables)


def _numbered(engine: Engine, paths: Frame, levels: Sequence[str]) -> Frame:
    """Return the paths sorted, with the node of each level and whether its area begins here.

    One sort for all levels: each area has its paths one after the other.
    """
    rows = engine.sort_and_number(paths, levels, "_row")
    names, firsts, first = {level: f'"{level}"' for level in levels}, {}, "_row = 1"
    for depth, level in enumerate(levels):
        first += f' or "{level}" is distinct from lag("{level}") over (order by _row)'
        firsts[f"_first{depth}"] = first
    rows = engine.project(rows, {**names, "_row": "_row", **firsts})
    nodes = {
        f"_node{depth}": f"(sum({name}::int) over (order by _row rows unbounded preceding))"
        "::bigint - 1"
        for depth, name in enumerate(firsts)
    }
    return engine.materialise(engine.project(rows, {**names, **{n: n for n in firsts}, **nodes}))


def _check_codes(engine: Engine, rows: Frame, levels: Sequence[str]) -> None:
    """Refuse a code that stands in two areas above: areas are known by their own code alone."""
    counts = {level: f'count(distinct "{level}")' for level in levels}
    counts |= {
        f"_node{depth}": f"coalesce(max(_node{depth}) + 1, 0)" for depth in range(len(levels))
    }
    told = engine.rows(engine.project(rows, counts))[0]
    for level, codes, nodes in zip(levels, told, told[len(levels) :], strict=False):
        if codes != nodes:
            raise BadInput(f"topdown: the areas of level '{level}' do not nest in those above.")


def _root(engine: Engine) -> Frame:
    zero = np.zeros(1, dtype=np.int64)
    return engine.from_numpy({"node": zero, "parent": zero, "code": np.array([WHOLE], object)})


def _spine(engine: Engine, levels: Sequence[str], tables: Sequence[Frame]) -> Spine:
    parents = []
    for level, table in zip(levels, tables, strict=True):
        arrays = engine.to_numpy(table.select("node", "parent").sort("node"))
        nodes, above = arrays["node"], arrays["parent"].astype(np.int64)
        if not np.array_equal(nodes, np.arange(nodes.size)) or np.any(np.diff(above) < 0):
            raise BadInput(f"topdown: the areas of level '{level}' do not nest in those above.")
        parents.append(above)
    if not parents[-1].size:  # the root is there in any case if it is the whole
        # Only exact statistics leave blocks out, so saying so tells nothing more.
        raise BadInput(
            f"topdown: by the exact statistics no {levels[-1]} holds anything that is counted. "
            f"Change `where`, or leave out `total` or `quarters`."
        )
    return Spine(tuple(levels), tuple(parents), tuple(tables))


@dataclass(frozen=True)
class Shares:
    """The share of the budget of every node: `values[i][index[i][k]]` for node k of level i.

    A share of 0 means that the node is not measured.
    """

    values: tuple[tuple[Fraction, ...], ...]
    index: tuple[NDArray[np.int8], ...]

    def measured(self, level: int) -> NDArray[np.bool_]:
        """Return which nodes of a level are measured."""
        positive = np.array([value > 0 for value in self.values[level]])
        return np.asarray(positive[self.index[level]], dtype=np.bool_)


def bypass(spine: Spine, by_level: Sequence[Fraction]) -> Shares:
    """Return the shares, where an only child gives its own to its parent.

    An only child must equal its parent, so measuring it apart would waste its share: the
    parent is measured with both (Abowd et al., Geographic Spines in the 2020 Census
    Disclosure Avoidance System). The shares on each path add up to the same whole.
    """
    bottom = len(spine.levels) - 1
    carried = [np.full(spine.size(level), level, np.int64) for level in range(bottom + 1)]
    gives = [np.zeros(spine.size(level), np.bool_) for level in range(bottom + 1)]
    for level in range(bottom - 1, -1, -1):
        start = spine.child_start(level)
        alone = np.diff(start) == 1
        only = start[:-1][alone]
        carried[level][alone] = carried[level + 1][only]
        gives[level + 1][only] = True
    values, index = [], []
    for level in range(bottom + 1):
        sums = [sum(by_level[level : last + 1], Fraction(0)) for last in range(level, bottom + 1)]
        values.append((Fraction(0), *sums))
        own = np.where(gives[level], 0, carried[level] - level + 1)
        index.append(own.astype(np.int8))
    shares = Shares(tuple(values), tuple(index))
    _check_paths(spine, shares, sum(by_level, Fraction(0)))
    return shares


def _check_paths(spine: Spine, shares: Shares, whole: Fraction) -> None:
    """Refuse shares that do not add up to the whole on every path from the root to a block.

    The proof of the budget rests on this: a record is counted once at each node of one path.
    """
    scale = lcm(whole.denominator, *(v.denominator for row in shares.values for v in row))
    kind = np.int64 if scale < 2**62 else np.object_  # whole numbers of any size, but slower
    sums: NDArray[Any] = np.zeros(1, dtype=kind)
    for level, parents in enumerate(spine.parents):
        own = np.array([int(value * scale) for value in shares.values[level]], dtype=kind)
        above = sums[parents] if level else 0
        sums = own[shares.index[level]] + above
    if np.any(sums != int(whole * scale)):
        raise ArithmeticError("the shares on a path do not add up to the whole budget")
