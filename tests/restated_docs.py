"""The swapping after public documents re-stated slowly: household by household, in fractions."""

import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np

from discreet.noise import key_of, trial
from listed_towns import imputed_members, owns
from towns import House, Town


class Restated:
    """One state, worked by hand with the default parameters."""

    def __init__(self, town: Town, state: str, **parameters) -> None:
        self.town = town
        self.houses = [h for h in town.houses if town.blocks[h.block][0] == state]
        self.state = state
        self.parameters = parameters
        self.members = Counter()
        self.neighbours = defaultdict(list)
        for house in self.houses:
            self.neighbours[house.block].append(house)
            self.members.update((house.block, race) for _, race, _ in house.members)
        for block, residents in town.residents.items():
            self.members[block, "01"] += residents

    def tract(self, i: int) -> str:
        return self.town.blocks[self.houses[i].block][1]

    def county(self, i: int) -> str:
        return self.tract(i)[:5]

    def never(self, i: int) -> bool:
        return imputed_members(self.houses[i]) >= self.houses[i].size

    def weight(self, i: int) -> Fraction:
        house = self.houses[i]
        neighbours = self.neighbours[house.block]
        if self.never(i):
            return Fraction(0)
        rate = Fraction(sum(map(imputed_members, neighbours)), sum(h.size for h in neighbours))
        most = self.parameters.get("most_imputed")
        if most is not None and rate > Fraction(most):
            return Fraction(0)
        share = Fraction(imputed_members(house), house.size)
        race = 4 if self.lonely_race(house) else 1
        return Fraction(race, len(neighbours)) * (1 - rate) * (1 - share)

    def lonely_race(self, house: House) -> bool:
        own = Counter(race for _, race, _ in house.members)
        return any(self.members[house.block, race] == own[race] for race in own)

    def values(self, i: int) -> tuple:
        return self.county(i), self.houses[i].races, self.houses[i].hispanics

    def words(self, what: str, seed: int) -> list[int]:
        keys = key_of([self.state], ["0"])
        start, length = np.zeros(1, dtype=np.int64), np.array([len(self.houses)])
        return trial(seed).words(f"public-docs-swap-{what}", keys, start, length).tolist()

    def swap(self, seed: int, rate: Fraction) -> tuple[list[tuple[int, int]], list[int], set[int]]:
        """Return pairs of target and partner in order, who found nobody, and the selected."""
        everybody = range(len(self.houses))
        select, ties = self.words("select", seed), self.words("ties", seed)
        weight = [self.weight(i) for i in everybody]
        alike_in_county = Counter(map(self.values, everybody))
        unique = [weight[i] > 0 and alike_in_county[self.values(i)] == 1 for i in everybody]

        def arrival(i: int) -> float:
            return -math.log(((select[i] >> 11) + 0.5) / 2**53) / float(weight[i])

        drawn = sorted(
            (i for i in everybody if weight[i]), key=lambda i: (not unique[i], arrival(i))
        )
        most = int(rate * len(self.houses) / 2)
        selected = set(drawn[: 2 * most])

        def preference(target: int, other: int) -> tuple:
            near = 2
            if self.county(target) == self.county(other):
                near = 1
            if self.tract(target) == self.tract(other):
                near = 0
            first, second = other not in selected, near
            if self.parameters.get("ranking") == "closeness-first":
                first, second = second, first
            return first, second, not unique[other], -weight[other], ties[other]

        def alike(i: int) -> tuple:
            return self.houses[i].adults, self.houses[i].size, owns(self.houses[i])

        pairs: list[tuple[int, int]] = []
        alone, swapped = [], set()
        for target in drawn:
            if len(pairs) == most:
                break
            if target in swapped:
                continue
            possible = [
                other
                for other in everybody
                if other not in swapped
                and not self.never(other)
                and alike(other) == alike(target)
                and self.houses[other].block != self.houses[target].block
            ]
            if not possible:
                alone.append(target)
                continue
            partner = min(possible, key=lambda other: preference(target, other))
            pairs.append((target, partner))
            swapped |= {target, partner}
        return pairs, alone, selected
