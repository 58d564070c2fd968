"""The greedy pass of targeted swapping against a slow re-statement in plain Python.

`restate` below reads the same words, but household by household, with lists, dictionaries
and (for the published program) the doubling request written out. The compiled pass must
agree with it to the last pair, and every planted mistake must be seen.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.engine import Engine
from discreet.mechanisms import mechanism
from discreet.mechanisms.swapping import nearest
from discreet.noise import key_of, trial
from towns import House, Town, great_circle, make_town, town_census

CHANCES = {4: Fraction(1), 3: Fraction(3, 5), 2: Fraction(3, 10), 1: Fraction(1, 10)}


@dataclass
class Turn:
    """What a target could choose from, and what it chose."""

    target: int
    candidates: list[int]
    partner: int


@dataclass
class Restated:
    tier: dict[int, int] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    without_partner: list[int] = field(default_factory=list)

    @property
    def partners(self) -> dict[int, int]:
        one = {turn.target: turn.partner for turn in self.turns}
        return one | {partner: target for target, partner in one.items()}


def words_of(state: str, houses: int, seed: int, replicate: int = 0) -> dict[str, list[int]]:
    """Return one word per household and purpose, households in the order of their ids."""
    keys = key_of([state], [str(replicate)])
    zero, length = np.zeros(1, dtype=np.int64), np.array([houses])
    return {
        what: trial(seed).words(f"targeted-swap-{what}", keys, zero, length).tolist()
        for what in ("ties", "visit", "accept", "choice", "priority")
    }


def degrees(one: tuple[float, float], other: tuple[float, float]) -> float:
    return (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2


def restate(town: Town, state: str, seed: int, rate: Fraction, preset: str, k: int = 10):
    """Swap one state as the paper tells (`paper`) or as its program does (`published-code`)."""
    peer = preset == "published-code"
    houses = [h for h in town.houses if town.blocks[h.block][0] == state]
    word, n, s = words_of(state, len(houses), seed), len(houses), float(rate)

    def tract(i: int) -> str:
        return town.blocks[houses[i].block][1]

    def point(i: int) -> tuple[float, float]:
        return town.blocks[houses[i].block][2:]

    def flags(house: House) -> tuple:
        if peer:
            return tract_of(house), house.races, house.hispanics
        return house.block, house.races, house.hispanics, house.size, house.adults

    def tract_of(house: House) -> str:
        return town.blocks[house.block][1]

    frequency = Counter(map(flags, houses))

    def risk(i: int) -> tuple:
        rare = frequency[flags(houses[i])]
        if peer:  # a stable sort: what is left of ties stays in the order of the file
            return rare, town.persons_of_block(houses[i].block)
        return rare, word["ties"][i]

    by_risk = sorted(range(n), key=risk)
    made = Restated()
    q = s / 1.6 if peer else rate / Fraction(8, 5)
    shares = [q, 2 * q, 3 * q] if s < 1.6 / 6 else [q, 2 * q, 1 - 3 * q]
    place = 0
    for number, share in zip((4, 3, 2), shares, strict=True):
        for i in by_risk[place : place + int(share * n)]:
            made.tier[i] = number
        place += int(share * n)
    for i in by_risk[place:]:
        made.tier[i] = 1

    visiting = sorted(range(n), key=lambda i: (-made.tier[i], word["visit"][i]))
    swapped: set[int] = set()
    for target in visiting:
        if (peer and len(swapped) >= s * n) or (not peer and len(swapped) + 2 > rate * n):
            break
        if target in swapped or word["accept"][target] >= CHANCES[made.tier[target]] * 2**64:
            continue
        own = houses[target].size, houses[target].adults
        stratum = [i for i in by_risk if (houses[i].size, houses[i].adults) == own]
        measure = degrees if peer else great_circle

        def distance(i: int, target: int = target, measure=measure) -> tuple:
            return measure(point(i), point(target)), word["priority"][i]

        def eligible(found: list[int], own: str = tract(target), gone=frozenset(swapped)):
            return [i for i in found if i not in gone and tract(i) != own]

        ranked = sorted(stratum, key=distance)
        candidates = eligible(ranked)[:k]
        if peer:
            request = k + 1
            candidates = []
            while request <= len(stratum) and len(candidates) < k:
                candidates = eligible(ranked[:request])[:k]
                request *= 2
            if len(candidates) < k:
                candidates = eligible(stratum)[:k]
        if not candidates:
            made.without_partner.append(target)
            continue
        partner = candidates[word["choice"][target] % len(candidates)]
        swapped |= {target, partner}
        made.turns.append(Turn(target, candidates, partner))
    return made


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


def prepared_of(engine: Engine, town: Town, rate: Fraction | str, preset: str, **more):
    census = town_census(engine, town)
    parameters = {"rate": str(rate), "preset": preset, **more}
    return mechanism("targeted-swapping", census.schema, parameters).prepare(census)


def partners_by_state(prepared, swap) -> list[tuple[dict[int, int], set[int], set[int]]]:
    """Return pairs, targets and those left over of each state, by place in the state."""
    found = []
    for a, first in enumerate(prepared.households.offsets[:-1].tolist()):
        last = int(prepared.households.offsets[a + 1])
        pairs = {h - first: int(swap.partner[h]) - first for h in range(first, last)}
        moved = {h: p for h, p in pairs.items() if h != p}
        inside = [
            {int(h) - first for h in part if first <= h < last}
            for part in (swap.targets, swap.without_partner)
        ]
        found.append((moved, *inside))
    return found


def lopsided(town: Town, most: int) -> Town:
    """Return the town with households of more than `most` in one tract: they have no partner."""
    moved = [replace(h, block=h.block % 4) if h.size > most else h for h in town.houses]
    return replace(town, houses=tuple(moved))


TOWNS = {
    "two states": (make_town(700, states=2, tracts=5, blocks=8, seed=1), Fraction(1, 10)),
    "low rate": (make_town(600, tracts=6, seed=2), Fraction(1, 50)),
    "few, many alike": (make_town(90, tracts=2, blocks=2, seed=3), Fraction(1, 4)),
    "high rate": (make_town(200, tracts=3, seed=4), Fraction(2, 5)),
    "exhausted": (make_town(150, tracts=3, seed=5), Fraction(53, 100)),
    "few have a partner": (lopsided(make_town(400, tracts=3, seed=6), 1), Fraction(1, 10)),
    "last tier": (lopsided(make_town(500, tracts=3, seed=9), 1), Fraction(1, 40)),
    "half have a partner": (lopsided(make_town(300, tracts=2, seed=7), 2), Fraction(1, 5)),
}


@pytest.mark.parametrize("preset", ["paper", "published-code"])
@pytest.mark.parametrize("name", TOWNS)
def test_the_pass_agrees_with_its_restatement(engine, name, preset):
    town, rate = TOWNS[name]
    prepared = prepared_of(engine, town, rate, preset)
    for seed in range(4):
        swap = nearest.pair(prepared, trial(seed))
        for a, (pairs, targets, alone) in enumerate(partners_by_state(prepared, swap)):
            told = restate(town, prepared.households.area_codes[a], seed, rate, preset)
            assert targets == {turn.target for turn in told.turns}
            assert alone == set(told.without_partner)
            assert pairs == told.partners
            assert pairs  # the comparison is of something


@pytest.mark.parametrize("candidates", [1, 30, 100])
@pytest.mark.parametrize("name", ["two states", "few, many alike", "exhausted"])
def test_the_pass_agrees_for_any_number_of_candidates(engine, name, candidates):
    town, rate = TOWNS[name]
    for preset in ("paper", "published-code"):
        prepared = prepared_of(engine, town, rate, preset, candidates=candidates)
        swap = nearest.pair(prepared, trial(1))
        for a, (pairs, _, alone) in enumerate(partners_by_state(prepared, swap)):
            state = prepared.households.area_codes[a]
            told = restate(town, state, 1, rate, preset, k=candidates)
            assert pairs == told.partners
            assert alone == set(told.without_partner)
            assert pairs


@pytest.mark.parametrize("preset", ["paper", "published-code"])
def test_the_restatement_meets_every_branch(preset):
    """Candidates fewer than asked for, nobody at all, lower tiers and the fallback all occur."""
    lengths, tiers, alone = set(), set(), 0
    for town, rate in TOWNS.values():
        for state in sorted({block[0] for block in town.blocks}):
            told = restate(town, state, 0, rate, preset)
            lengths |= {len(turn.candidates) for turn in told.turns}
            tiers |= {told.tier[turn.target] for turn in told.turns}
            alone += len(told.without_partner)
    assert 10 in lengths
    assert min(lengths) < 10
    assert tiers == {1, 2, 3, 4}
    assert alone


def test_another_word_for_one_purpose_changes_the_pairs(engine):
    """Planted: every purpose matters, and zeros in its place are seen."""
    town, rate = TOWNS["few, many alike"]
    more = {"tiers": [{"share": "1", "chance": "3/5"}, {"chance": "1/2"}], "candidates": 3}
    prepared = prepared_of(engine, town, rate, "paper", **more)
    usual = nearest.pair(prepared, trial(1)).partner
    for what in ("ties", "visit", "accept", "choice", "priority"):
        other = nearest.pair(prepared, Silenced(trial(1), what)).partner
        assert (usual != other).any(), what


class Silenced:
    """Randomness that has nothing but zeros for one purpose."""

    mode = "trial"

    def __init__(self, rng, what: str) -> None:
        self.rng, self.what = rng, what

    def words(self, purpose, keys, start, length):
        words = self.rng.words(purpose, keys, start, length)
        return np.zeros_like(words) if purpose.endswith(self.what) else words


def test_working_by_stratum_or_in_turn_is_the_same(engine, monkeypatch):
    town, _ = TOWNS["two states"]
    for preset in ("paper", "published-code", "high-variance"):
        for rate in ("1/10", "9/10"):
            prepared = prepared_of(engine, town, rate, preset)
            results = []
            for many in (1, 20, 10**9):
                monkeypatch.setattr(nearest, "MANY", many)
                results.append(nearest.pair(prepared, trial(3)))
            for other in results[1:]:
                assert (results[0].partner == other.partner).all()
                assert set(results[0].targets.tolist()) == set(other.targets.tolist())


def test_replicates_differ_and_threads_do_not(engine):
    town, rate = TOWNS["two states"]
    prepared = prepared_of(engine, town, rate, "paper")
    one = nearest.pair(prepared, trial(1), 0).partner
    assert (one == nearest.pair(prepared, trial(1), 0, threads=2).partner).all()
    assert (one != nearest.pair(prepared, trial(1), 1).partner).any()
    assert (one != nearest.pair(prepared, trial(2), 0).partner).any()


def test_a_point_counts_wherever_its_block_has_households(engine):
    """A block nobody lives in needs no point."""
    town = make_town(60, tracts=3, seed=8)
    empty = (*town.blocks, ("10", "10001000000", float("nan"), float("nan")))
    prepared = prepared_of(engine, replace(town, blocks=empty), "1/5", "paper")
    assert nearest.pair(prepared, trial(0)).targets.size
