"""Targeted swapping draws from its exact law, which no finite budget bounds."""

import functools
import itertools
import json
import math
from collections import Counter
from dataclasses import replace

import narwhals as nw
import numpy as np
import pytest

from discreet.audit import verify_mechanism
from discreet.census import Census, load_schema
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism, protect
from discreet.mechanisms.swapping import nearest
from discreet.mechanisms.swapping.targeted import PRESETS
from discreet.noise import system, trial
from discreet.spec import NoFiniteBudget
from towns import TINY, Town, make_town, single, tiny_town, town_census

NAME = "targeted-swapping"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


@pytest.fixture(scope="module")
def schema():
    return load_schema("us-decennial")


@functools.cache
def tiny_census(engine: Engine, world: str) -> Census:
    return town_census(engine, tiny_town(TINY[world]))


def swapping(census: Census, rate: str = "1/10", preset: str = "paper", **more):
    return mechanism(NAME, census.schema, {"rate": rate, "preset": preset, **more})


# -- the exact law ---------------------------------------------------------------------------


VARIANTS = {
    "paper": {"preset": "paper"},
    "published-code": {"preset": "published-code"},
    "chances": {
        "preset": "paper",
        "tiers": [{"share": "1", "chance": "2/3"}, {"chance": "1/4"}],
        "candidates": 1,
    },
    "first come": {"preset": "paper", "tiers": [{"chance": "1"}], "candidates": 1},
    "random riskiest": {
        "preset": "published-code",
        "ties": "random",
        "candidates": 1,
        "tiers": [{"share": "1", "chance": "1/2"}, {"chance": "1"}],
    },
}


def fits(counts: Counter, law: dict, alpha: float) -> bool:
    """Tell whether counts fit a law by chi-square, rare outcomes pooled.

    The limit is an upper bound on the chi-square quantile (Laurent and Massart 2000, Lemma 1).
    """
    if not set(counts) <= {outcome for outcome, chance in law.items() if chance}:
        return False
    total = sum(counts.values())
    cells = [(counts[z], float(chance * total)) for z, chance in law.items() if chance]
    common = [cell for cell in cells if cell[1] >= 10]
    rare = [cell for cell in cells if cell[1] < 10]
    if sum(expected for _, expected in rare) >= 5:
        common.append((sum(seen for seen, _ in rare), sum(expected for _, expected in rare)))
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in common)
    degrees, t = max(len(common) - 1, 1), math.log(1 / alpha)
    return statistic < degrees + 2 * math.sqrt(degrees * t) + 2 * t


def drawn_pairs(prepared, rng, draws: int) -> Counter:
    return Counter(
        tuple(nearest.pair(prepared, rng, replicate).partner.tolist()) for replicate in range(draws)
    )


def pair_laws(made, prepared):
    from discreet.mechanisms.swapping.pair_law import targeted_law

    return dict(targeted_law(prepared, made.distance, 0))


# Seeds are fixed, so this gives one answer for ever; had they been chosen at random, each
# comparison would raise a false alarm at most once in a million times.
ALPHA = 1e-6


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("world", TINY)
def test_pairs_follow_the_exact_law(engine, world, variant):
    census = tiny_census(engine, world)
    made = swapping(census, "4/5", **VARIANTS[variant])
    prepared = made.prepare(census)
    law = pair_laws(made, prepared)
    assert sum(law.values()) == 1
    assert len(law) > 1
    assert fits(drawn_pairs(prepared, trial(1), 800), law, ALPHA)


def test_releases_follow_the_exact_law(engine):
    """As drawn from the operating system: a false alarm once in 10^9 runs."""
    census = tiny_census(engine, "all differ")
    made = swapping(census, "4/5", **VARIANTS["chances"])
    prepared = made.prepare(census)
    assert fits(drawn_pairs(prepared, system(), 1000), pair_laws(made, prepared), 1e-9)


class Mistaken:
    """Randomness with a mistake: a purpose whose words are always the same."""

    mode = "trial"

    def __init__(self, what: str) -> None:
        self.what, self.rng = what, trial(1)

    def words(self, purpose, keys, start, length):
        words = self.rng.words(purpose, keys, start, length)
        if purpose.endswith(self.what):
            words[:] = np.arange(words.size)
        return words


@pytest.mark.parametrize(
    ("what", "world", "variant"),
    [
        ("ties", "all differ", "chances"),
        ("visit", "two alike", "first come"),
        ("accept", "all differ", "chances"),
        ("choice", "all differ", "paper"),
        ("priority", "one block", "chances"),
    ],
)
def test_every_planted_mistake_is_seen(engine, what, world, variant):
    census = tiny_census(engine, world)
    made = swapping(census, "1/2", **VARIANTS[variant])
    prepared = made.prepare(census)
    law = pair_laws(made, prepared)
    assert fits(drawn_pairs(prepared, trial(1), 800), law, ALPHA)
    assert not fits(drawn_pairs(prepared, Mistaken(what), 800), law, ALPHA)


def test_the_law_of_a_release_covers_what_is_written(engine, tmp_path):
    houses = [*TINY["all differ"], *((5 + block, members) for block, members in TINY["one block"])]
    census = town_census(engine, tiny_town(houses, states=2))
    made = swapping(census, "1/2", **VARIANTS["chances"])
    law = made.law(census)
    assert sum(law.values()) == 1
    for seed in range(3):
        made.draw(census, trial(seed), tmp_path / str(seed))
        written = Census.open(tmp_path / str(seed) / "microdata", engine)
        assert law[made.outcome(written)] > 0


def test_a_law_too_long_to_write_is_refused(engine):
    census = town_census(engine, make_town(40, seed=1))
    with pytest.raises(BadInput, match="cannot be written down"):
        swapping(census).law(census)


# -- the promise: none -----------------------------------------------------------------------


def arrangements(census: Census, town: Town) -> list[Census]:
    """Return every data set in which the households live in the same blocks, in any order."""
    engine = census.engine
    ids = [house.unit_id for house in town.houses]
    rows = dict(engine.rows(census.table("units").select("unit_id", "block")))
    blocks = [rows[unit] for unit in ids]
    found = []
    for arranged in sorted(set(itertools.permutations(blocks))):
        new = engine.from_numpy({"unit_id": np.array(ids), "new": np.array(arranged, dtype=object)})
        moved = census.table("units").join(new, on="unit_id", how="inner")
        units = engine.materialise(moved.drop("block").rename({"new": "block"}))
        found.append(replace(census, units=units))
    return found


@pytest.mark.parametrize("preset", PRESETS)
def test_the_loss_is_infinite_and_a_witness_shows_it(engine, preset):
    town = tiny_town([(0, single("01")), (2, single("02")), (4, single("03"))])
    census = town_census(engine, town)
    census = replace(census, units=census.table("units").filter(nw_occupied()))
    made = swapping(census, "7/10", preset)
    verdict = verify_mechanism(made, arrangements(census, town))
    assert verdict.loss.bounds.lower == math.inf
    assert verdict.loss.witness is not None
    assert verdict.loss.witness.apart > 0
    assert verdict.answer == "satisfied"  # it promises nothing, and keeps that


def nw_occupied():
    return nw.col("kind") == "occupied"


@pytest.mark.parametrize("preset", PRESETS)
def test_no_number_stands_in_for_a_budget(engine, tmp_path, preset):
    census = town_census(engine, make_town(100, seed=8))
    made = swapping(census, "1/10", preset)
    release = protect(made, census, trial(1), tmp_path / "release")
    assert isinstance(release.specification.budget.amount, NoFiniteBudget)
    assert release.specification == made.specify(made.facts(census)) == made.specify()
    told = release.specification.describe()
    assert "no finite budget exists" in told
    assert PRESETS[preset].label in told
    assert "epsilon =" not in told


def test_public_facts_name_rate_variables_and_invariants(schema):
    made = mechanism(NAME, schema, {"rate": "1/50"})
    told = made.public_facts()
    assert told["rate"] == "1/50"
    assert told["matched"] == ["size", "adults"]
    assert len(told["exact"]) == len(made.specify().multiverse.invariants) == 3
    json.dumps(told)


def test_presets_say_what_they_are():
    assert PRESETS["high-variance"].label == "our reconstruction"
    assert PRESETS["published-code"].label == "parity with the choices of the published program"
