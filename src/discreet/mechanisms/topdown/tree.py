"""The network of a rounding: cells on one side, the tree of nested queries of each child above.

A unit that goes to cell j of child c runs from the node of cell j along the leaf (j, c) into
the tree of c, up through the nodes of ever coarser queries to the child's total, and on to
the ground. The columns (one cell over all children) and the nodes of the trees are two
families of sets, each nested in itself; such a pair is a network matrix, hence totally
unimodular, and with whole limits the optimum is whole (Hoffman and Kruskal 1956; for rounding
of tables Cox 1987).

A node that only one arc enters carries the same flow as that arc, so it is left out and its
cost and limits are added to the arc. Thus a child has fewer nodes than leaves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within
from discreet.mechanisms.topdown.flow import (
    BASE,
    HEAD,
    HIGH,
    LOW,
    MIDDLE,
    OUTER,
    TAIL,
    Int32s,
    Int64s,
)

#: Fractions are counted in units of this part of a person: coarser than the error of the least
#: squares (1e-7), so that fractions which are equal but for that error mostly tie exactly.
ONE = 2**20

#: Cost of a unit outside the two neighbouring whole numbers, in ours.
OUTSIDE = 2**8 * ONE

#: The whole number below a leaf. A plain 0 would be a type of its own, and be compiled for too.
EVEN: Any = np.int64(0)

# Two more columns of an arc while the network is made: its slope for weight 1, and the arc that
# entered the same node before it.
UNIT, LINK = 8, 9

# Places in `made`, and columns of `open`.
ARCS, NODES = 0, 1
LAST, ENTERING, CELL = 0, 1, 2


class Leaves(NamedTuple):
    """Cells that may be raised by one, child after child (`start`), in the order of the tree.

    `tie` is added to the cost of raising the cell; it decides between equals.
    """

    start: Int64s
    cell: Int32s
    fraction: NDArray[np.float64]
    tie: Int64s


class Rules(NamedTuple):
    """What the rounding must keep and what it pays for.

    `needed` are units still missing to the lower bound of a group, `exact` those still missing
    to a child's total (NaN: free), `weight` what a level counts, `leaf_weight` what a cell
    counts. `shift` leaves room below the costs for `tie`; `outer` is the cost of a unit outside
    the two neighbouring whole numbers, where that is let happen at all.
    """

    tree: Int32s
    group_level: int
    group_of: Int32s
    needed: Int64s
    exact: NDArray[np.float64]
    weight: Int64s
    leaf_weight: int
    shift: int
    outer: int
    deployed: bool
    wide: bool


class Making(NamedTuple):
    """A network in the making: its arcs, the numbers of arcs and nodes made, and open nodes.

    At each level one node is open: `open` has the last arc that entered it, how many did and
    one of its cells, `total` the sum of its fractions.
    """

    arcs: Int64s
    made: Int64s
    open: Int64s
    total: NDArray[np.float64]


@compiled_within
def order_of_tree(tree: Int32s, classes: int) -> Int64s:
    """Return the cells ordered so that each class of each level is contiguous.

    Numbers of classes are below `classes`.
    """
    levels, cells = tree.shape
    order, other = np.empty(cells, np.int64), np.empty(cells, np.int64)
    place = np.empty(classes + 1, np.int64)
    for j in range(cells):
        order[j] = j
    for level in range(levels - 1, -1, -1):
        for i in range(place.size):
            place[i] = 0
        for j in range(cells):
            place[tree[level, j] + 1] += 1
        for i in range(1, place.size):
            place[i] += place[i - 1]
        for i in range(cells):
            row = tree[level, order[i]]
            other[place[row]] = order[i]
            place[row] += 1
        order, other = other, order
    return order


@compiled_within
def level_of_groups(tree: Int32s, group_of: Int32s, classes: int, groups: int) -> int:
    """Return the level whose classes are exactly the groups, or -1."""
    group_in, row_in = np.empty(classes, np.int64), np.empty(groups, np.int64)
    for level in range(tree.shape[0]):
        for row in range(classes):
            group_in[row] = -1
        for group in range(groups):
            row_in[group] = -1
        same = True
        for j in range(tree.shape[1]):
            row, group = tree[level, j], group_of[j]
            if group_in[row] < 0 and row_in[group] < 0:
                group_in[row], row_in[group] = group, row
            same = same and group_in[row] == group and row_in[group] == row
        if same:
            return level
    return -1


@compiled
def slope(above: int, base: int, rules: Rules) -> int:
    """Return the cost of the unit from `base` to `base + 1` for a value `above` of it.

    In our rounding the change of the distance to the value, in units of 1 / `ONE`; in the
    deployed one the change of the distance to the nearest whole number, a half to the even.
    """
    if not rules.deployed:
        return (ONE - 2 * above) << rules.shift
    up = 2 * above > ONE or (2 * above == ONE and (base & 1) == 1)
    return (-1 if up else 1) << rules.shift


@compiled_within
def set_node(making: Making, level: int, most: int, rules: Rules) -> int:
    """Make a node of the open one, and the arc that leaves it; `most` can go through."""
    arcs, a, node = making.arcs, making.made[ARCS], making.made[NODES]
    making.made[ARCS] += 1
    making.made[NODES] += 1
    entering = making.open[level, LAST]
    while entering >= 0:
        arcs[entering, HEAD] = node
        entering = arcs[entering, LINK]
    value = int(np.rint(making.total[level] * ONE))
    base = value // ONE
    arcs[a, UNIT] = slope(value - base * ONE, base, rules)
    arcs[a, TAIL], arcs[a, BASE], arcs[a, MIDDLE], arcs[a, OUTER] = node, base, 0, 0
    if rules.deployed or rules.wide:
        arcs[a, LOW], arcs[a, HIGH] = 0, most
    else:
        arcs[a, LOW], arcs[a, HIGH] = base, base + (1 if value > base * ONE else 0)
    return int(a)


@compiled
def enter(making: Making, level: int, a: int, total: float, cell: int) -> None:
    """Let arc `a`, which carries fractions of sum `total`, enter the open node of a level."""
    making.arcs[a, LINK] = making.open[level, LAST]
    making.open[level, LAST] = a
    making.open[level, ENTERING] += 1
    making.total[level] += total
    making.open[level, CELL] = cell


@compiled_within
def set_leaf(making: Making, a: int, tail: int, leaves: Leaves, rules: Rules) -> None:
    """Make arc `a` the leaf of that number: raised by one or not."""
    arcs = making.arcs
    above = min(int(np.rint(leaves.fraction[a] * ONE)), ONE)
    arcs[a, UNIT] = slope(above, EVEN, rules)
    arcs[a, TAIL], arcs[a, LOW], arcs[a, HIGH], arcs[a, BASE] = tail, 0, 1, 0
    arcs[a, MIDDLE] = rules.leaf_weight * arcs[a, UNIT] + leaves.tie[a]
    arcs[a, OUTER] = rules.leaf_weight * rules.outer


@compiled_within
def close_down_to(making: Making, keep: int, c: int, most: int, rules: Rules) -> None:
    """Close the open nodes below the first `keep` levels, the finest first.

    What enters a node goes on along one arc: that of the node, or the only one that enters.
    """
    arcs, levels = making.arcs, rules.tree.shape[0]
    for level in range(levels - 1, keep - 1, -1):
        a = making.open[level, LAST]
        if making.open[level, ENTERING] > 1:
            a = set_node(making, level, most, rules)
        arcs[a, MIDDLE] += rules.weight[level] * arcs[a, UNIT]
        arcs[a, OUTER] += rules.weight[level] * rules.outer
        cell = making.open[level, CELL]
        if level == rules.group_level:
            arcs[a, LOW] = max(arcs[a, LOW], rules.needed[rules.group_of[cell], c])
        if level > 0:
            enter(making, level - 1, a, making.total[level], cell)
        else:
            arcs[a, HEAD] = rules.tree.shape[1]
            if not np.isnan(rules.exact[c]):
                arcs[a, LOW] = max(arcs[a, LOW], np.int64(rules.exact[c]))
                arcs[a, HIGH] = min(arcs[a, HIGH], np.int64(rules.exact[c]))
        making.open[level, LAST], making.open[level, ENTERING], making.total[level] = -1, 0, 0.0


@compiled
def network(leaves: Leaves, rules: Rules, rooted: bool) -> tuple[Int64s, int]:
    """Build the network; return its arcs and the number of nodes.

    Nodes are the cells, the ground, and then those of the trees. With `rooted` no cell has a
    given sum: every leaf then leaves the ground itself.
    """
    tree, size = rules.tree, leaves.cell.size
    levels, cells = tree.shape
    arcs = np.zeros((2 * size, 10), np.int64)
    making = Making(arcs, np.zeros(2, np.int64), np.zeros((levels, 3), np.int64), np.zeros(levels))
    making.made[ARCS], making.made[NODES] = size, cells + 1
    for level in range(levels):
        making.open[level, LAST] = -1
    for c in range(leaves.start.size - 1):
        begin, end = leaves.start[c], leaves.start[c + 1]
        for a in range(begin, end):
            j = int(leaves.cell[a])
            set_leaf(making, a, cells if rooted else j, leaves, rules)
            enter(making, levels - 1, a, leaves.fraction[a], j)
            keep = 0  # levels, from the total, at which the next leaf enters the same node
            if a + 1 < end:
                keep = 1
                while keep < levels and tree[keep, j] == tree[keep, leaves.cell[a + 1]]:
                    keep += 1
            close_down_to(making, keep, c, end - begin, rules)
    return arcs[: making.made[ARCS]], making.made[NODES]
