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
from typing import NamedTuple

import numpy as np

from discreet.compiled import compiled, compiled_within
from discreet.mechanisms.numbering import Integers, order_of
from discreet.mechanisms.swapping.geometry import FIRST, LEAVE, Tree, take_one
from discreet.mechanisms.swapping.households import Households, Swap
from discreet.mechanisms.swapping.risk import Risk, Tier, settle_ties
from discreet.mechanisms.swapping.search import (
    Nodes,
    Scratch,
    Standing,
    Turn,
    gather,
    pick,
    possible,
    requested,
    riskiest,
    scratch,
)
from discreet.noise import Randomness, Words, key_of

#: From so many pairs on that are still to be made, strata are worked one after the other.
MANY = 1024

#: Turns words into signed numbers of the same order.
SIGN = np.uint64(2**63)


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
        self.partner = np.arange(households.size, dtype=np.int64)
        by_risk = np.empty(0, dtype=np.int64)
        if rules.riskiest:
            by_stratum = order_of([households.stratum[self.order]])
            by_risk = tree.slots[self.order[by_stratum]]
        priority = self._words("priority")[tree.members] ^ SIGN
        self.standing = Standing(
            home=tree.home,
            nodes=tree.nodes.copy(),
            left=tree.counts.copy(),
            crowds=tree.crowds.copy(),
            free=np.ones(households.size, dtype=np.bool_),
            priority=priority.view(np.int64),
            by_risk=by_risk,
            cursor=tree.nodes[tree.roots, FIRST].astype(np.int64),
        )

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
        tree, stratum = self.prepared.tree, self.prepared.households.stratum[visited]
        turns = Turns(tree.slots[visited], stratum, self.choice[visited])
        candidates = self.prepared.rules.candidates
        paired, alone = pair_up(tree.roots, self.standing, turns, candidates, most)
        one, other = tree.members[paired.T]
        self.partner[one], self.partner[other] = other, one
        return one, tree.members[alone]

    def _visited(self, members: Integers, chance: Fraction) -> Integers:
        """Return the accepted members of a tier in the order they are visited.

        A member is accepted if its word is below chance * 2^64, rounded up: exactly for
        chances of so many binary digits, else more often by less than 2^-64.
        """
        limit = ceil(chance * 2**64)
        if limit < 2**64:
            members = members[self.accept[members] < np.uint64(limit)]
        return members[np.argsort(self.visit[members], kind="stable")]


class Turns(NamedTuple):
    """Those who look for a partner, in turn: their slots, strata and words of choice."""

    slot: Integers
    stratum: Integers
    choice: Words


@compiled
def pair_up(
    roots: Integers, standing: Standing, turns: Turns, candidates: int, most: int
) -> tuple[Integers, Integers]:
    """Give households partners in turn, until `most` pairs are made.

    Returns pairs of target and partner, and those that found no partner, as slots.
    """
    paired = np.empty((min(most, turns.slot.size), 2), dtype=np.int64)
    lonely = np.empty(turns.slot.size, dtype=np.int64)
    pairs, alone = 0, 0
    room = scratch(largest(roots, standing.nodes, turns.stratum))
    for i in range(turns.slot.size):
        target, stratum = turns.slot[i], turns.stratum[i]
        if pairs == most:
            break
        if not standing.free[target]:
            continue
        here = standing.nodes[standing.home[target]]
        turn = Turn(roots[stratum], roots[stratum + 1], here)
        other = partner_of(standing, turn, stratum, turns.choice[i], candidates, room)
        if other < 0:
            lonely[alone] = target
            alone += 1
            continue
        take(standing, turn, target)
        take(standing, turn, other)
        paired[pairs, 0], paired[pairs, 1] = target, other
        pairs += 1
    return paired[:pairs].copy(), lonely[:alone].copy()


@compiled
def largest(roots: Integers, nodes: Nodes, strata: Integers) -> int:
    """Return the households of the largest of some strata."""
    most = 0
    for g in strata:
        most = max(most, nodes[roots[g + 1], FIRST] - nodes[roots[g], FIRST])
    return most


@compiled_within
def partner_of(
    standing: Standing, turn: Turn, stratum: int, choice: np.uint64, candidates: int, room: Scratch
) -> int:
    """Return the slot of the partner, -1 if there is none.

    The rank of the partner among the candidates is the remainder of a 64-bit word: no
    candidate is more likely than another by a factor of 1 + 2^-50, as they are at most
    10,000. Strata too small for the request of the published program take the riskiest.
    """
    partners = possible(standing, turn)
    if partners == 0:
        return -1
    rank = 1 + int(np.int64(choice % np.uint64(min(candidates, partners))))
    if not standing.by_risk.size:
        return pick(standing, gather(standing, turn, rank, room), rank, room)
    if partners >= candidates:
        size = gather(standing, turn, candidates, room)
        last = pick(standing, size, candidates, room)
        if requested(standing, turn, candidates, last, room):
            return pick(standing, size, rank, room)
    return riskiest(standing, turn, stratum, rank)


@compiled
def take(standing: Standing, turn: Turn, slot: int) -> None:
    """Let a household be free no more."""
    p = standing.home[slot]
    standing.free[slot] = False
    standing.left[p] -= 1
    standing.crowds[standing.nodes[p, LEAVE]] -= 1
    take_one(standing.nodes, turn.low, turn.high, p)
