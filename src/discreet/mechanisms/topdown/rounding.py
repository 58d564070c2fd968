"""Controlled rounding: turn the least-squares solution of a parent into whole persons.

Each fractional cell is lowered or raised to a neighbouring whole number. Sums over the children
are the parent's counts, exact totals and lower bounds are kept, and every node of the tree of
queries (total, and ever finer ones) lies within one of its least-squares value. Among all
such tables the one nearest to the least-squares solution is taken: the distances of all cells and
all nodes of the tree, added up. This is a flow problem (see `tree`) and solved exactly (`flow`).

Ways (`mode`):

- `OURS`: as above.
- `DEPLOYED`: the target published for the 2020 census. Cells keep the whole part and get 0 or 1,
  also where the value is whole already; the distance is that of each query's answer to its
  fractional parts added up and rounded (Abowd et al. 2022); a cell counts twice because it stands
  in the list twice. The total goes first: among the tables nearest in totals those nearest
  in the rest. The deployed program fixed totals to whichever first solution it met, one of these.
  A node may be more than one away from its value.
- `DEPLOYED_TOGETHER`: the same with the total in one sum with the others, as for blocks and
  for the top.

Whole values. The least squares are solved to 1e-7, so a value closer than that to a whole number
is meant to be it, and is taken for it. This cannot make the table impossible (ours): all limits
are whole, so by Hoffman's circulation theorem (1960) a table is impossible only if some cut
asks for at least one unit more than it lets through; but the given solution breaks limits
by less than one unit in all, as 2000 cells of 2500 children move by half a unit at the most.

Ties are frequent: a parent's cell shared by children of like noise gives them like fractions.
To each cost a small amount is added, below all differences of true costs, that is mixed from
the cell's number and the child's values. So the choice follows from the contents, whatever
the order of the children; only between children with the same values does their order decide.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within
from discreet.mechanisms.topdown.flow import FLOW, HIGH, LOW, Int32s, Int64s, cheapest_flow
from discreet.mechanisms.topdown.tree import (
    ONE,
    OUTSIDE,
    Leaves,
    Rules,
    level_of_groups,
    network,
    order_of_tree,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.uint8]
Words = NDArray[np.uint64]

#: Ways of rounding.
OURS, DEPLOYED, DEPLOYED_TOGETHER = 0, 1, 2

#: Endings: done; done, but some node is not within one of its value; no such table.
DONE, LOOSE, IMPOSSIBLE = 0, 1, 2

#: A value this near to a whole number is that number.
SNAP = 1e-7

#: Parts of a person by which children are told apart.
PARTS = 4096.0


@compiled
def mixed(word: np.uint64) -> np.uint64:
    """Return a word scrambled by the finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@compiled_within
def lower_all(
    x: Floats, allowed: Flags, group_of: Int32s, whole: Int64s, held: Int64s, words: Words
) -> None:
    """Write whole parts, their sums by group, and a word for each child's values."""
    for j in range(x.shape[0]):
        g = group_of[j]
        factor = mixed(np.uint64(j + 1))
        for c in range(x.shape[1]):
            if x[j, c] > SNAP and allowed[g, c]:
                whole[j, c] = np.int64(np.floor(x[j, c] + SNAP))
                held[g, c] += whole[j, c]
                words[c] += factor * np.uint64(np.int64(np.rint(x[j, c] * PARTS)))


@compiled_within
def tell_apart(words: Words, parent: Int64s) -> None:
    """Give children with equal words different ones, and all of them others for each parent."""
    size = 4
    while size < 2 * words.size:
        size *= 2
    last = size - 1
    owner, again = np.zeros(size, np.int64), np.zeros(size, np.uint64)
    for i in range(size):
        owner[i] = -1
    for c in range(words.size):
        place = np.int64(mixed(words[c]) & np.uint64(last))
        while owner[place] >= 0 and words[owner[place]] != words[c]:
            place = (place + 1) & last
        if owner[place] < 0:
            owner[place] = c
        else:
            again[place] += np.uint64(1)
            words[c] = mixed(words[c] + again[place])
    salt = np.uint64(0)
    for count in parent:
        salt = mixed(salt + np.uint64(count))
    for c in range(words.size):
        words[c] = mixed(words[c] ^ salt)


@compiled_within
def leaves_of(
    x: Floats, whole: Int64s, allowed: Flags, group_of: Int32s, order: Int64s, words: Words,
    bits: int, every: bool,
) -> Leaves:  # fmt: skip
    """Gather the cells that may be raised: the fractional ones, or `every` one."""
    cells, children = x.shape
    start = np.zeros(children + 1, np.int64)
    for j in range(cells):
        for c in range(children):
            if every or x[j, c] - whole[j, c] > SNAP:
                start[c + 1] += allowed[group_of[j], c]
    for c in range(children):
        start[c + 1] += start[c]
    place = start.copy()
    cell, fraction = np.empty(start[-1], np.int32), np.empty(start[-1], np.float64)
    tie = np.zeros(start[-1], np.int64)
    for j in order:
        mark = mixed(np.uint64(j + 1))
        for c in range(children):
            rest = x[j, c] - whole[j, c]
            if (every or rest > SNAP) and allowed[group_of[j], c]:
                i = place[c]
                cell[i], fraction[i] = j, rest if rest > SNAP else 0.0
                if bits > 0:
                    tie[i] = np.int64(mixed(words[c] + mark) >> np.uint64(64 - bits))
                place[c] += 1
    return Leaves(start, cell, fraction, tie)


def room_for_ties(cells: int, levels: int) -> tuple[int, int]:
    """Return how many bits a tie may have, and how many lie below the costs.

    A cycle that visits no node twice passes at most two leaves and two nodes per level for each
    cell. So ties along it stay below one unit of cost, and the costs of a path below 2^61.
    """
    leaves, all_arcs = (2 * cells).bit_length(), (2 * cells * (levels + 1)).bit_length()
    bits = min(14, 61 - ONE.bit_length() - all_arcs - leaves)
    return (bits, bits + leaves) if bits > 0 else (0, 0)


def weights_of(mode: int, cells: int, levels: int) -> Int64s:
    """Return what each level counts, the total first."""
    weight = np.ones(levels, np.int64)
    if mode == DEPLOYED:
        # More than all else along a cycle, so that the total goes first.
        weight[0] = 4 * cells * (levels + 2) + 1
    return weight


@compiled
def kept(whole: Int64s, parent: Int64s, lower: Int64s, group_of: Int32s, totals: Floats) -> bool:
    """Tell whether a table keeps the parent's counts, lower bounds and exact totals."""
    held = np.zeros(lower.shape, np.int64)
    for j in range(whole.shape[0]):
        column = 0
        for c in range(whole.shape[1]):
            held[group_of[j], c] += whole[j, c]
            column += whole[j, c]
        if parent.size and column != parent[j]:
            return False
    for c in range(whole.shape[1]):
        total = 0
        for g in range(lower.shape[0]):
            total += held[g, c]
            if held[g, c] < lower[g, c]:
                return False
        if not np.isnan(totals[c]) and total != np.rint(totals[c]):
            return False
    return True


@compiled
def raise_some(leaves: Leaves, rules: Rules, parent: Int64s, whole: Int64s) -> bool:
    """Raise the cells that the cheapest flow passes; false, and nothing done, if there is none."""
    arcs, nodes = network(leaves, rules, parent.size == 0)
    for a in range(arcs.shape[0]):
        if arcs[a, LOW] > arcs[a, HIGH]:
            return False
    supply, cells = np.zeros(nodes, np.int64), whole.shape[0]
    for j in range(parent.size):
        supply[j] = parent[j]
        for c in range(whole.shape[1]):
            supply[j] -= whole[j, c]
        supply[cells] -= supply[j]
    if not cheapest_flow(arcs, supply):
        return False
    for c in range(whole.shape[1]):
        for a in range(leaves.start[c], leaves.start[c + 1]):
            whole[leaves.cell[a], c] += arcs[a, FLOW]
    return True


@compiled
def prepare(
    x: Floats, parent: Int64s, tree: Int32s, lower: Int64s, allowed: Flags, group_of: Int32s,
    classes: int, bits: int, every: bool,
) -> tuple[Int64s, Int64s, Leaves, int]:  # fmt: skip
    """Return whole parts, their sums by group, what may be raised, and the level of groups."""
    whole, held = np.zeros(x.shape, np.int64), np.zeros(lower.shape, np.int64)
    words = np.zeros(x.shape[1], np.uint64)
    lower_all(x, allowed, group_of, whole, held, words)
    tell_apart(words, parent)
    order = order_of_tree(tree, classes)
    leaves = leaves_of(x, whole, allowed, group_of, order, words, bits, every)
    return whole, held, leaves, level_of_groups(tree, group_of, classes, lower.shape[0])


def round_children(
    x: Floats, parent: Int64s, tree: Int32s, lower: Int64s, allowed: Flags, group_of: Int32s,
    totals: Floats, mode: int,
) -> tuple[Int64s, int]:  # fmt: skip
    """Round `x` (cells by children); return the whole table and `DONE`, `LOOSE` or `IMPOSSIBLE`.

    `tree` numbers the classes of each level, the coarsest first: row 0 is the total, one row
    has the groups if any lower bound is above 0, and the level of cells is left out. `totals`
    are whole or NaN (free). An empty `parent` means that cells have no given sums.
    """
    levels, cells = tree.shape
    classes, every = int(tree.max(initial=0)) + 1, mode != OURS
    bits, shift = room_for_ties(cells, levels)
    whole, held, leaves, level = prepare(
        x, parent, tree, lower, allowed, group_of, classes, bits, every
    )
    needed, exact = lower - held, totals.round() - held.sum(axis=0)
    weight = weights_of(mode, cells, levels)
    status = IMPOSSIBLE
    for attempt in (DONE, LOOSE):
        if attempt == LOOSE:
            # Only if the given solution breaks limits by a whole unit in all: nodes give way.
            leaves.tie[:] = 0
            shift = 0
        outer = (1 if every else OUTSIDE) << shift
        rules = Rules(
            tree, level, group_of, needed, exact, weight, 2 if every else 1, shift, outer, every,
            attempt == LOOSE,
        )  # fmt: skip
        if raise_some(leaves, rules, parent, whole):
            status = attempt
            break
    return whole, status if kept(whole, parent, lower, group_of, totals) else IMPOSSIBLE


def round_root(
    x: Floats, tree: Int32s, lower: Int64s, allowed: Flags, group_of: Int32s, total: float,
    mode: int,
) -> tuple[Int64s, int]:  # fmt: skip
    """Round the top of the tree, `x` by cell, where no parent gives sums; `total` may be NaN."""
    whole, status = round_children(
        x.reshape(-1, 1), np.zeros(0, np.int64), tree, lower, allowed, group_of,
        np.full(1, total), mode,
    )  # fmt: skip
    return whole[:, 0].copy(), status
