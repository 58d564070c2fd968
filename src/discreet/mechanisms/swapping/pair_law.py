"""Exact laws of mechanisms that swap pairs, for audits on tiny censuses.

Everything random is enumerated, in fractions and in plain Python: who comes first among
equals, in which order targets are visited, whether they are accepted, and which candidate
is taken. Written apart from the compiled pass, so that each can be checked by the other.

The law is that of ideal random numbers, in exact fractions. The pass draws 64-bit words: a
target is accepted if its word is below ceil(chance 2^64), which exceeds the chance by less
than 2^-64; one of k candidates is taken by the remainder of a word modulo k, which is off
1/k by less than 2^-64, for 10,000 candidates a relative bias below 2^-50; equal words, with
probability below n^2 / 2^65 among n households, leave the order of `unit_id`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import factorial, prod

from discreet.census import Census, unit_records
from discreet.errors import BadInput
from discreet.mechanisms.swapping.geometry import Distance, coordinates
from discreet.mechanisms.swapping.households import Households
from discreet.mechanisms.swapping.nearest import Prepared

#: How often each (block, record) pair occurs in a data set.
Counts = frozenset[tuple[tuple[str, str], int]]

#: Pairs of one area with their probabilities: the partner of every household, by place.
PairLaw = Mapping[tuple[int, ...], Fraction]

#: Steps an enumeration may take, about; seven households that differ in everything need 10^5.
LONGEST = 2_000_000


def law_of_release(
    census: Census, households: Households, area_law: Callable[[int], PairLaw]
) -> dict[Counts, Fraction]:
    """Return the probability of every released data set, areas being independent.

    `area_law` gives the law of the pairs of an area by its number.
    """
    block = census.schema.block
    rows = census.frame("units", ["unit_id", block]).join(unit_records(census), on="unit_id")
    listed = census.engine.rows(rows.select("unit_id", block, "record"))
    text = {unit: (place, record) for unit, place, record in listed}
    own = [text[unit] for unit in households.unit_id.tolist()]
    stays = records_by_block(census) - Counter(own)
    law: dict[Counts, Fraction] = {frozenset(stays.items()): Fraction(1)}
    for a, first in enumerate(households.offsets[:-1].tolist()):
        here = own[first : int(households.offsets[a + 1])]
        part: dict[Counts, Fraction] = {}
        for partner, chance in area_law(a).items():
            moved = Counter((here[p][0], here[h][1]) for h, p in enumerate(partner))
            outcome = frozenset(moved.items())
            part[outcome] = part.get(outcome, Fraction(0)) + chance
        law = _combine(law, part)
    return law


def records_by_block(census: Census) -> Counter[tuple[str, str]]:
    """Return how often each (block, record) occurs."""
    block = census.schema.block
    rows = census.frame("units", ["unit_id", block])
    joined = rows.join(unit_records(census), on="unit_id", how="inner")
    return Counter(census.engine.rows(joined.select(block, "record")))


def _combine(one: dict[Counts, Fraction], other: dict[Counts, Fraction]) -> dict[Counts, Fraction]:
    """Return the law of the union of two independent parts."""
    law: dict[Counts, Fraction] = {}
    for left, p in one.items():
        for right, q in other.items():
            union = frozenset((Counter(dict(left)) + Counter(dict(right))).items())
            law[union] = law.get(union, Fraction(0)) + p * q
    return law


# -- the greedy pass ------------------------------------------------------------------------


def targeted_law(prepared: Prepared, distance: Distance, area: int) -> PairLaw:
    """Return the law of the pairs that the greedy pass makes in one area."""
    tiny = _Area(prepared, distance, area)
    tiers = Counter(map(tiny.tiers, tiny.orders()))
    ranks = list(tiny.rankings())
    bounded(len(tiers) * len(ranks) * 3**tiny.size)
    each = Fraction(1, tiers.total() * len(ranks))
    law: dict[tuple[int, ...], Fraction] = {}
    for members, times in tiers.items():
        for rank in ranks:
            for partner, chance in tiny.visit(members, rank).items():
                law[partner] = law.get(partner, Fraction(0)) + each * times * chance
    return law


def bounded(steps: int) -> None:
    """Refuse an enumeration of too many steps."""
    if steps > LONGEST:
        raise BadInput(
            "the law of so many households, or of so many that are alike, cannot be written down: "
            "give areas of fewer households, or audit by sampling."
        )


Tiers = tuple[tuple[int, ...], ...]


class _Area:
    """One area with its rules; households are known by their place in it."""

    def __init__(self, prepared: Prepared, distance: Distance, area: int) -> None:
        households = prepared.households
        first, last = households.offsets[area : area + 2].tolist()
        self.rules, self.size = prepared.rules, last - first
        self.sizes, self.most = prepared.rules.sizes[area], prepared.rules.most[area]
        points = coordinates(households.places, households.place, distance)
        self.point = points[households.place[first:last]].tolist()
        self.stratum = households.stratum[first:last].tolist()
        self.leave = households.leave[first:last].tolist()
        self.order = (prepared.risk.order[first:last] - first).tolist()
        edges = [edge - first for edge in prepared.risk.edges.tolist()]
        self.edges = [edge for edge in edges if 0 <= edge <= self.size]

    def orders(self) -> Iterator[tuple[int, ...]]:
        """Yield every order of risk; all are equally likely."""
        groups = [self.order[a:b] for a, b in zip(self.edges, self.edges[1:], strict=False)]
        if not self.rules.random_ties:
            yield tuple(self.order)
            return
        bounded(prod(factorial(len(group)) for group in groups))
        for arranged in product(*map(permutations, groups)):
            yield tuple(h for group in arranged for h in group)

    def rankings(self) -> Iterator[tuple[int, ...]]:
        """Yield every ranking by priority; all are equally likely.

        Only households that can be equally far from somebody are ever compared by it.
        """
        group = list(range(self.size))
        for target, one, other in product(range(self.size), repeat=3):
            alike = self.stratum[target] == self.stratum[one] == self.stratum[other]
            if alike and self.squared(target, one) == self.squared(target, other):
                old, new = group[one], group[other]
                group = [new if g == old else g for g in group]
        groups = [[h for h in range(self.size) if group[h] == g] for g in sorted(set(group))]
        bounded(prod(factorial(len(members)) for members in groups))
        for arranged in product(*map(permutations, groups)):
            order = [h for members in arranged for h in members]
            yield tuple(order.index(h) for h in range(self.size))

    def squared(self, one: int, other: int) -> int:
        """Return the squared distance of two households."""
        pairs = zip(self.point[one], self.point[other], strict=True)
        return sum((a - b) ** 2 for a, b in pairs)

    def tiers(self, order: tuple[int, ...]) -> Tiers:
        """Return the members of each tier; in the order of risk where that matters."""
        parts, at = [], 0
        for size in self.sizes:
            part = order[at : at + size]
            parts.append(part if self.rules.riskiest else tuple(sorted(part)))
            at += size
        return tuple(parts)

    def visit(self, tiers: Tiers, rank: Sequence[int]) -> PairLaw:
        """Return the law of the pairs, given the tiers and the priorities."""
        chances = [tier.chance for tier in self.rules.tiers]
        order = [h for tier in tiers for h in tier]

        @cache
        def after(number: int, waiting: frozenset[int], partner: tuple[int, ...]) -> PairLaw:
            waiting = frozenset(h for h in waiting if partner[h] == h)
            if sum(p != h for h, p in enumerate(partner)) // 2 == self.most:
                return {partner: Fraction(1)}
            if not waiting:
                if number + 1 == len(tiers):
                    return {partner: Fraction(1)}
                return after(number + 1, frozenset(tiers[number + 1]), partner)
            law: dict[tuple[int, ...], Fraction] = {}

            def add(more: PairLaw, weight: Fraction) -> None:
                for outcome, chance in more.items():
                    law[outcome] = law.get(outcome, Fraction(0)) + weight * chance

            for target in sorted(waiting):
                rest, turn = waiting - {target}, Fraction(1, len(waiting))
                chance = chances[number]
                found = self.candidates(target, partner, rank, order) if chance else []
                if chance < 1 or not found:
                    stays = 1 if not found else 1 - chance
                    add(after(number, rest, partner), turn * stays)
                for other in found:
                    new = list(partner)
                    new[target], new[other] = other, target
                    weight = turn * chance / len(found)
                    add(after(number, rest - {other}, tuple(new)), weight)
            return law

        return after(0, frozenset(tiers[0]), tuple(range(self.size)))

    def candidates(
        self, target: int, partner: Sequence[int], rank: Sequence[int], order: Sequence[int]
    ) -> list[int]:
        """Return the households the target may trade places with at its turn."""

        def near(h: int) -> tuple[int, int]:
            return self.squared(h, target), rank[h]

        most = self.rules.candidates
        stratum = [h for h in range(self.size) if self.stratum[h] == self.stratum[target]]
        eligible = {h for h in stratum if partner[h] == h and self.leave[h] != self.leave[target]}
        nearest = sorted(stratum, key=near)
        if not self.rules.riskiest:
            return [h for h in nearest if h in eligible][:most]
        request = most + 1
        while request <= len(stratum):
            found = [h for h in nearest[:request] if h in eligible]
            if len(found) >= most:
                return found[:most]
            request *= 2
        return [h for h in order if h in eligible][:most]
