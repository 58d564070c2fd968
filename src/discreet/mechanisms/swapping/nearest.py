"""The greedy pass: each target trades places with one of the nearest households like it.

Targets are visited one after the other. A household that was swapped before, as a target
or as a partner, is passed over; another takes one of the `candidates` nearest households
of its stratum that are not swapped yet and lie outside the area it must leave, each
equally likely. Households at equal distance are ranked by a random priority.

Every household has one word of each tape of its area, so the pass is a function of the
tapes: areas may be worked in any order and by any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from discreet.compiled import compiled
from discreet.mechanisms.swapping.geometry import FIRST, Tree, take_one
from discreet.mechanisms.swapping.households import Households, Swap
from discreet.mechanisms.swapping.numbering import Integers, order_of
from discreet.mechanisms.swapping.risk import Risk, Tier, settle_ties
from discreet.mechanisms.swapping.search import (
    DEEPEST,
    Flags,
    Heap,
    Nodes,
    drop_farthest,
    requested,
    riskiest,
    search,
)
from discreet.noise import Randomness, Words, key_of

#: From so many pairs on that are still to be made, strata are worked one after the other.
MANY = 1024


@dataclass(frozen=True)
class Rules:
    """How targets and partners are chosen; sizes of tiers and pairs allowed per area."""

    tiers: Sequence[Tier]
    sizes: Sequence[Sequence[int]]
    most: Sequence[int]
    candidates: int
    random_ties: bool
    riskiest: bool


@dataclass(frozen=True)
class Prepared:
    """All that does not change from one draw to the next."""

    households: Households
    tree: Tree
    risk: Risk
    rules: Rules


def pair(prepared: Prepared, rng: Randomness, replicate: int = 0, threads: int = 1) -> Swap:
    """Draw the pairs once; each replicate reads tapes of its own."""
    run = _Run(prepared, rng, replicate)
    areas = range(prepared.households.offsets.size - 1)
    if threads == 1 or len(areas) == 1:
        found = [run.area(a) for a in areas]
    else:
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(run.area, areas))
    targets = np.concatenate([target for target, _ in found])
    return Swap(run.partner, targets, np.concatenate([lonely for _, lonely in found]))


class _Run:
    """One draw: its words, who is still free, and the pairs so far."""

    def __init__(self, prepared: Prepared, rng: Randomness, replicate: int) -> None:
        self.prepared, self.rng = prepared, rng
        households, rules, tree = prepared.households, prepared.rules, prepared.tree
        self.offsets = households.offsets
        self.keys = key_of(households.area_codes, [str(replicate)] * len(households.area_codes))
        self.order = prepared.risk.order
        if rules.random_ties:
            cuts = None if rules.riskiest else self._cuts()
            self.order = settle_ties(prepared.risk, self._words("ties"), cuts)
        self.visit, self.accept, self.choice = map(self._words, ("visit", "accept", "choice"))
        self.priority = self._words("priority")[tree.members]
        self.free = np.ones(households.size, dtype=np.bool_)
        self.nodes = tree.nodes.copy()
        self.partner = np.arange(households.size, dtype=np.int64)
        self.by_risk = np.empty(0, dtype=np.int64)
        if rules.riskiest:
            by_stratum = order_of([households.stratum[self.order]])
            self.by_risk = tree.slots[self.order[by_stratum]]
        self.cursor = tree.nodes[tree.roots, FIRST].astype(np.int64)

    def _words(self, what: str) -> Words:
        sizes = np.diff(self.offsets)
        return self.rng.words(f"targeted-swap-{what}", self.keys, np.zeros_like(sizes), sizes)

    def _cuts(self) -> Integers:
        parts = zip(self.offsets[:-1], self.prepared.rules.sizes, strict=True)
        cuts = [first + np.cumsum(sizes[:-1]) for first, sizes in parts]
        return np.concatenate(cuts).astype(np.int64)

    def area(self, a: int) -> tuple[Integers, Integers]:
        """Pair the households of one area; return targets and those without a partner."""
        rules = self.prepared.rules
        most, at = rules.most[a], int(self.offsets[a])
        targets, lonely = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for tier, size in zip(rules.tiers, rules.sizes[a], strict=True):
            visited = self._visited(self.order[at : at + size], tier.chance)
            at += size
            while most and visited.size:
                # So many at once cannot make too many pairs, and strata do not touch each
                # other: worked stratum by stratum they stay in the processor's cache.
                many = most if most >= MANY else visited.size
                now, visited = visited[:many], visited[many:]
                if most >= MANY:
                    stratum = self.prepared.households.stratum[now]
                    now = now[np.argsort(stratum, kind="stable")]
                found, alone = self._pair_up(now, most)
                most -= found.size
                targets.append(found)
                lonely.append(alone)
            if not most:
                break
        return np.concatenate(targets), np.concatenate(lonely)

    def _pair_up(self, visited: Integers, most: int) -> tuple[Integers, Integers]:
        """Give households partners one after the other; return targets and the others."""
        tree = self.prepared.tree
        paired, alone = pair_up(
            tree,
            self.nodes,
            self.free,
            tree.slots[visited],
            self.prepared.households.stratum[visited],
            self.choice[visited],
            self.priority,
            self.prepared.rules.candidates,
            most,
            self.by_risk,
            self.cursor,
        )
        one, other = tree.members[paired.T]
        self.partner[one], self.partner[other] = other, one
        return one, tree.members[alone]

    def _visited(self, members: Integers, chance: Fraction) -> Integers:
        """Return the accepted members of a tier in the order they are visited."""
        if chance < 1:
            limit = np.uint64(ceil(chance * 2**64))
            members = members[self.accept[members] < limit]
        return members[np.argsort(self.visit[members], kind="stable")]


@compiled
def pair_up(
    tree: Tree,
    nodes: Nodes,
    free: Flags,
    visited: Integers,
    stratum: Integers,
    choice: Words,
    priority: Words,
    candidates: int,
    most: int,
    by_risk: Integers,
    cursor: Integers,
) -> tuple[Integers, Integers]:
    """Give the visited slots partners until `most` pairs are made.

    Returns pairs of target and partner, and those that found no partner. With `by_risk`
    (the slots of each stratum, the most at risk first) strata too small for the request
    of the published program take the riskiest.
    """
    heap = Heap(
        np.empty(candidates, dtype=np.int64),
        np.empty(candidates, dtype=np.uint64),
        np.empty(candidates, dtype=np.int64),
    )
    waiting = np.empty((DEEPEST, 6), dtype=np.int64)
    paired = np.empty((min(most, visited.size), 2), dtype=np.int64)
    lonely = np.empty(visited.size, dtype=np.int64)
    pairs, alone = 0, 0
    for i in range(visited.size):
        t = visited[i]
        if pairs == most:
            break
        if not free[t]:
            continue
        low, high = tree.roots[stratum[i]], tree.roots[stratum[i] + 1]
        here = nodes[tree.home[t]]
        size = search(nodes, free, priority, low, high, here, heap, waiting)
        ranked = False
        if by_risk.size and not requested(nodes, priority, low, high, here, heap, size, waiting):
            end = nodes[high, FIRST]
            size = riskiest(nodes, free, tree.home, here, by_risk, cursor, stratum[i], end, heap)
            ranked = True
        if size == 0:
            lonely[alone] = t
            alone += 1
            continue
        j = np.int64(choice[i] % np.uint64(size))
        while not ranked and size > j + 1:
            size = drop_farthest(heap, size)
        other = heap.slot[j if ranked else 0]
        for s in (t, other):
            free[s] = False
            take_one(nodes, low, high, tree.home[s])
        paired[pairs, 0], paired[pairs, 1] = t, other
        pairs += 1
    return paired[:pairs].copy(), lonely[:alone].copy()
