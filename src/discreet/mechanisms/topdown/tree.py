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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled
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

#: Cost of a unit outside the two neighbouring whole numbers, where that is let happen at all.
OUTSIDE = 2**8 * ONE

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
    counts. `shift` leaves room below the costs for `tie`.
    """

    tree: Int32s
    group_level: int
    group_of: Int32s
    needed: Int64s
    exact: NDArray[np.float64]
    weight: Int64s
    leaf_weight: int
    shift: int
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


@compiled
def classes(numbers: Int32s) -> int:
    """Return how many classes there can be: one more than the highest number."""
    highest = 0
    for j in range(numbers.size):
        highest = max(highest, int(numbers[j]))
    return highest + 1


@compiled
def order_of_tree(tree: Int32s) -> Int64s:
    """Return the cells ordered so that each class of each level is contiguous."""
    levels, cells = tree.shape
    order, other = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
    for j in range(cells):
        order[j] = j
    for level in range(levels - 1, -1, -1):
        place = np.zeros(classes(tree[level]) + 1, np.int64)
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


@compiled
def level_of_groups(tree: Int32s, group_of: Int32s) -> int:
    """Return the level whose classes are exactly the groups, or -1."""
    for level in range(tree.shape[0]):
        group_in = np.zeros(classes(tree[level]), np.int64)
        row_in = np.zeros(classes(group_of), np.int64)
        same = True
        for j in range(tree.shape[1]):
            row, group = tree[level, j], group_of[j]
            if group_in[row] == 0 and row_in[group] == 0:
                group_in[row], row_in[group] = group + 1, row + 1
            same = same and group_in[row] == group + 1 and row_in[group] == row + 1
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


@compiled
def outer_slope(rules: Rules) -> int:
    """Return the cost of a unit outside the two neighbouring whole numbers."""
    return (1 if rules.deployed else OUTSIDE) << rules.shift


@compiled
def set_leaf(making: Making, a: int, tail: int, leaves: Leaves, rules: Rules) -> None:
    """Make arc `a` the leaf of that number: raised by one or not."""
    arcs = making.arcs
    above = min(int(np.rint(leaves.fraction[a] * ONE)), ONE)
    arcs[a, UNIT] = slope(above, 0, rules)
    arcs[a, TAIL], arcs[a, LOW], arcs[a, HIGH], arcs[a, BASE] = tail, 0, 1, 0
    arcs[a, MIDDLE] = rules.leaf_weight * arcs[a, UNIT] + leaves.tie[a]
    arcs[a, OUTER] = rules.leaf_weight * outer_slope(rules)


@compiled
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
def close(making: Making, level: int, c: int, most: int, rules: Rules) -> int:
    """Finish the open node of a level; return the arc that carries its flow upwards."""
    arcs = making.arcs
    a = int(making.open[level, LAST])
    if making.open[level, ENTERING] > 1:
        a = set_node(making, level, most, rules)
    arcs[a, MIDDLE] += rules.weight[level] * arcs[a, UNIT]
    arcs[a, OUTER] += rules.weight[level] * outer_slope(rules)
    if level == rules.group_level:
        needed = rules.needed[rules.group_of[making.open[level, CELL]], c]
        arcs[a, LOW] = max(arcs[a, LOW], needed)
    if level == 0 and not np.isnan(rules.exact[c]):
        arcs[a, LOW] = max(arcs[a, LOW], np.int64(rules.exact[c]))
        arcs[a, HIGH] = min(arcs[a, HIGH], np.int64(rules.exact[c]))
    return a


@compiled
def enter(making: Making, level: int, a: int, total: float, cell: int) -> None:
    """Let arc `a`, which carries fractions of sum `total`, enter the open node of a level."""
    making.arcs[a, LINK] = making.open[level, LAST]
    making.open[level, LAST] = a
    making.open[level, ENTERING] += 1
    making.total[level] += total
    making.open[level, CELL] = cell


@compiled
def close_down_to(making: Making, keep: int, c: int, most: int, rules: Rules) -> None:
    """Close the open nodes below the first `keep` levels, the finest first."""
    levels, ground = rules.tree.shape
    for level in range(levels - 1, keep - 1, -1):
        a = close(making, level, c, most, rules)
        if level > 0:
            enter(making, level - 1, a, making.total[level], making.open[level, CELL])
        else:
            making.arcs[a, HEAD] = ground
        making.open[level, LAST], making.open[level, ENTERING], making.total[level] = -1, 0, 0.0


@compiled
def common_levels(tree: Int32s, one: int, other: int) -> int:
    """Return how many levels, from the total, two cells share a class."""
    level = 1
    while level < tree.shape[0] and tree[level, one] == tree[level, other]:
        level += 1
    return level


@compiled
def nothing_made(leaves: int, cells: int, levels: int) -> Making:
    """Return room for a network of so many leaves, none of them set."""
    made, nodes = np.zeros(2, np.int64), np.zeros((levels, 3), np.int64)
    made[ARCS], made[NODES] = leaves, cells + 1
    nodes[:, LAST] = -1
    return Making(np.zeros((2 * leaves, 10), np.int64), made, nodes, np.zeros(levels))


@compiled
def network(leaves: Leaves, rules: Rules, rooted: bool) -> tuple[Int64s, int]:
    """Build the network; return its arcs and the number of nodes.

    Nodes are the cells, the ground, and then those of the trees. With `rooted` no cell has a
    given sum: every leaf then leaves the ground itself.
    """
    levels, cells = rules.tree.shape
    making = nothing_made(leaves.cell.size, cells, levels)
    for c in range(leaves.start.size - 1):
        begin, end = leaves.start[c], leaves.start[c + 1]
        for a in range(begin, end):
            j = leaves.cell[a]
            set_leaf(making, a, cells if rooted else j, leaves, rules)
            enter(making, levels - 1, a, leaves.fraction[a], j)
            keep = 0
            if a + 1 < end:
                keep = common_levels(rules.tree, j, leaves.cell[a + 1])
            close_down_to(making, keep, c, end - begin, rules)
    return making.arcs[: making.made[ARCS]], making.made[NODES]
