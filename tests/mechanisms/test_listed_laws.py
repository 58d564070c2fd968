"""Exact laws of the mechanisms that pair by lists, and what they show: the loss is infinite."""

import functools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import narwhals as nw
import numpy as np
import pytest

from discreet.audit import verify_mechanism
from discreet.census import Census
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import Enumerable, mechanism
from discreet.mechanisms.swapping import public_docs_pass, record_pass
from discreet.mechanisms.swapping.listed_law import orders_drawn, public_docs_law, record_law
from discreet.noise import system, trial
from discreet.spec import LogRational
from worlds import us_census

DRAWS = 1000


def single(block: int, race: str) -> tuple:
    return (block, "1", [(40, "1", race)])


PAIR = [(40, "1", "01"), (38, "2", "02")]

#: Blocks 0 and 1 are one county, 2 and 3 another.
WORLDS = {
    "all differ": [single(0, "01"), single(0, "02"), single(1, "03"), single(2, "04")],
    "some alike": [single(0, "01"), single(1, "01"), single(2, "01"), single(2, "02")],
    "two sizes": [single(0, "01"), (1, "1", PAIR), single(2, "02"), (3, "1", PAIR), (3, "1", PAIR)],
    "five": [single(b, r) for b, r in ((0, "01"), (0, "01"), (1, "02"), (2, "02"), (3, "03"))],
}
#: All weights the same, nobody unique.
EVEN = {"block_size": 0, "unique_race": "1", "unique_area": None}
DOCS = {"rate": "9/10", "match": ["size"], "near": ["county"]}
RECORD = {
    "rate": "9/10",
    "within": "state",
    "hierarchy": ["block"],
    "similar": [["size"]],
    "risk_variables": ["race_group"],
    "k_anonymity": 0,
}
DEEP = {"hierarchy": ["county", "block"], "k_anonymity": 2}

#: Name of the mechanism, its world and parameters.
CASES = {
    "docs": ("public-docs-2010", "five", {"unique_area": None}),
    "docs, unique": ("public-docs-2010", "all differ", {"unique_area": "tract"}),
    "docs, unique first": ("public-docs-2010", "some alike", {"unique_on": ["members_black"]}),
    "docs, near first": ("public-docs-2010", "two sizes", {"ranking": "closeness-first"}),
    "docs, even": ("public-docs-2010", "all differ", EVEN),
    "docs, any tie": ("public-docs-2010", "five", {**EVEN, "near": []}),
    "docs, imputed": (
        "public-docs-2010",
        "five",
        {**EVEN, "near": [], "rate": "1/2", "imputed": {"tenure": ["1"]}},
    ),
    "record": ("record-swapping", "some alike", {}),
    "record, must": ("record-swapping", "five", {"k_anonymity": 3}),
    "record, deep": ("record-swapping", "all differ", DEEP),
    "record, must first": ("record-swapping", "some alike", {**DEEP, "rate": "1/2"}),
    "record, no cap": ("record-swapping", "five", {"cap": "none", "rate": "1/2"}),
    "record, few": ("record-swapping", "five", {"rate": "1/2"}),
    "record, two sizes": (
        "record-swapping",
        "two sizes",
        {"similar": [["size", "county"], ["size"]]},
    ),
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


@functools.cache
def census_of(engine: Engine, world: str) -> Census:
    return us_census(engine, WORLDS[world], blocks=4, per_county=2)


def made(case: str, census: Census):
    name, _, parameters = CASES[case]
    common = DOCS if name == "public-docs-2010" else RECORD
    return mechanism(name, census.schema, {**common, **parameters})


def prepared_and_law(engine: Engine, case: str):
    census = census_of(engine, CASES[case][1])
    if "imputed" in case:  # of the first household only
        first = nw.when(nw.col("unit_id") == 1).then(nw.lit("1")).otherwise(nw.lit("3"))
        units = engine.materialise(census.table("units").with_columns(tenure=first))
        census = replace(census, units=units)
    prepared = made(case, census).prepare(census)
    law = public_docs_law if case.startswith("docs") else record_law
    return prepared, dict(law(prepared, 0))


def drawn_pairs(prepared, rng, draws: int = DRAWS) -> Counter:
    docs = isinstance(prepared, public_docs_pass.Prepared)
    pair = public_docs_pass.pair if docs else record_pass.pair
    return Counter(tuple(pair(prepared, rng, n).partner.tolist()) for n in range(draws))


def fits(counts: Counter, law: dict, alpha: float) -> bool:
    """Tell whether shares lie near a law: sum |share - chance| <= sqrt(2 (m ln 2 + ln 1/alpha) / n)

    for m outcomes and n draws, which is exceeded with probability at most alpha (Weissman,
    Ordentlich, Seroussi, Verdu and Weinberger 2003, Theorem 2.1).
    """
    draws = counts.total()
    apart = sum(abs(counts[z] / draws - float(law.get(z, 0))) for z in {*law, *counts})
    return apart <= math.sqrt(2 * (len(law) * math.log(2) - math.log(alpha)) / draws)


# -- the laws --------------------------------------------------------------------------------

# Seeds are fixed, so this gives one answer for ever; had they been chosen at random, each
# comparison would raise a false alarm at most once in a million times.
ALPHA = 1e-6


def test_orders_are_drawn_in_proportion_to_weight():
    law = dict(orders_drawn({0: Fraction(1), 1: Fraction(2), 2: Fraction(3)}))
    assert law[2, 1, 0] == Fraction(3, 6) * Fraction(2, 3)
    assert len(law) == 6
    assert sum(law.values()) == 1


@pytest.mark.parametrize("case", CASES)
def test_pairs_follow_the_exact_law(engine, case):
    prepared, law = prepared_and_law(engine, case)
    assert sum(law.values()) == 1
    assert len(law) > 1
    counts = drawn_pairs(prepared, trial(1))
    assert set(counts) <= set(law)
    assert fits(counts, law, ALPHA)


@pytest.mark.parametrize("case", ["docs", "record, must"])
def test_system_randomness_follows_the_exact_law(engine, case):
    """As drawn from the operating system: a false alarm once in 10^9 runs."""
    prepared, law = prepared_and_law(engine, case)
    assert fits(drawn_pairs(prepared, system()), law, 1e-9)


class Stuck:
    """Randomness whose words for one purpose never change."""

    mode = "trial"

    def __init__(self, what: str) -> None:
        self.what, self.rng = what, trial(1)

    def words(self, purpose, keys, begin, counts):
        words = self.rng.words(purpose, keys, begin, counts)
        return np.sort(words) if purpose.endswith(self.what) else words


@pytest.mark.parametrize(
    ("what", "case"),
    [
        ("select", "docs"),
        ("ties", "docs, any tie"),
        ("block", "record"),
        ("county", "record, must first"),
        ("rounding", "record, no cap"),
    ],
)
def test_a_planted_mistake_is_seen(engine, what, case):
    prepared, law = prepared_and_law(engine, case)
    assert not fits(drawn_pairs(prepared, Stuck(what)), law, ALPHA)


@pytest.mark.parametrize("case", ["docs", "record, deep"])
def test_the_law_of_a_release_covers_what_is_written(engine, tmp_path, case):
    census = census_of(engine, CASES[case][1])
    swapping = made(case, census)
    assert isinstance(swapping, Enumerable)
    law = swapping.law(census)
    assert sum(law.values()) == 1
    for seed in range(3):
        swapping.draw(census, trial(seed), tmp_path / str(seed))
        written = Census.open(tmp_path / str(seed) / "microdata", engine)
        assert law[swapping.outcome(written)] > 0


@pytest.mark.parametrize("case", ["docs", "record"])
def test_a_law_too_long_to_write_is_refused(engine, case):
    many = us_census(engine, [single(n % 3, "01") for n in range(30)])
    with pytest.raises(BadInput, match="cannot be written down"):
        made(case, many).law(many)


# -- the promise: none -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", ["docs", "docs, unique", "record", "record, must", "record, no cap"]
)
def test_the_loss_is_infinite_and_a_witness_shows_it(engine, case):
    """Three households that match, in three blocks: six data sets make up the universe."""
    races = ("01", "02", "03")
    universe = [
        us_census(engine, list(map(single, blocks, races)), extras=False)
        for blocks in permutations(range(3))
    ]
    swapping = made(case, universe[0])
    promise = swapping.specify()
    finite = promise.budget.model_copy(update={"amount": LogRational(of=Fraction(10**100))})
    verdict = verify_mechanism(swapping, universe, promise.model_copy(update={"budget": finite}))
    assert verdict.answer == "violated"
    assert verdict.loss.bounds.lower == math.inf
    witness = verdict.witness
    assert witness.apart > 0
    laws = [swapping.law(universe[place]) for place in (witness.one, witness.other)]
    chances = sorted(law.get(witness.distance.outcome, 0) for law in laws)
    assert chances[0] == 0 < chances[1]
    # Disjoint pairs do not lead everywhere: some data set of the universe is never released.
    assert {z for z, p in laws[0].items() if p} < {swapping.outcome(one) for one in universe}
