"""Targeted swapping as a mechanism: what stays exact, its law, its report, its refusals."""

import functools
import itertools
import json
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import narwhals as nw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.audit import verify_mechanism
from discreet.census import Census, load_schema
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import Enumerable, Mechanism, make_draw, mechanism, protect, publish_draw
from discreet.mechanisms.swapping import nearest
from discreet.mechanisms.swapping.households import batches, read_places
from discreet.mechanisms.swapping.targeted import PRESETS
from discreet.noise import system, trial
from discreet.products import check_invariants
from discreet.spec import NoFiniteBudget
from towns import House, Town, make_town, town_census
from worlds import folder_bytes, register_census, us_census

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


# -- what stays exact ------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
def test_declared_invariants_hold_exactly(engine, tmp_path, preset):
    census = town_census(engine, make_town(200, states=2, seed=1))
    for seed, rate in enumerate(["1/20", "1/2"]):
        made = swapping(census, rate, preset)
        release = protect(made, census, trial(seed), tmp_path / str(seed))
        differing = check_invariants(release.specification, census, release.microdata(engine))
        assert len(differing) == 3
        assert not any(differing.values()), differing
        assert made.outcome(release.microdata(engine)) != made.outcome(census)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("leave", ["tract", "block_group", "block"])
def test_pairs_agree_and_leave_their_area(engine, preset, leave):
    census = town_census(engine, make_town(500, states=2, seed=2))
    made = swapping(census, "3/10", preset, leave=leave)
    prepared = made.prepare(census)
    households = prepared.households
    for seed in range(5):
        swap = nearest.pair(prepared, trial(seed))
        partner, here = swap.partner, np.arange(households.size)
        moved = partner != here
        assert (partner[partner] == here).all()
        assert (households.stratum[partner] == households.stratum).all()
        for column in ("size", "adults"):
            values = households.columns[column]
            assert (values[partner] == values).all()
        area = households.level(leave)
        assert (area[partner[moved]] != area[moved]).all()
        assert (households.level("state")[partner] == households.level("state")).all()
        assert 2 * swap.targets.size == moved.sum()
        assert moved[swap.targets].all()
        assert not set(swap.targets) & set(partner[swap.targets])
        for a, n in enumerate(np.diff(households.offsets).tolist()):
            inside = moved[households.offsets[a] : households.offsets[a + 1]].sum()
            assert inside <= Fraction(3, 10) * n + (2 if made.cap == "overshoot" else 0)


def test_the_cap_is_reached_while_there_are_partners(engine):
    census = town_census(engine, make_town(501, seed=3))
    for rate in (Fraction(1, 50), Fraction(1, 10)):
        swap = nearest.pair(swapping(census, str(rate)).prepare(census), trial(1))
        assert swap.targets.size == math.floor(rate * 501 / 2)
    # The published program goes on until the rate is reached, here one household over.
    code = swapping(census, "1/10", "published-code").prepare(census)
    assert nearest.pair(code, trial(1)).targets.size == math.ceil(0.1 * 501 / 2) == 26


def test_tiny_and_huge_rates_end(engine, tmp_path):
    census = town_census(engine, make_town(60, seed=4))
    made = swapping(census, "1/1000")
    assert (nearest.pair(made.prepare(census), trial(1)).partner == np.arange(60)).all()
    with pytest.raises(BadInput, match="released as it is"):
        protect(made, census, trial(1), tmp_path / "tiny")
    assert not (tmp_path / "tiny").exists()
    for preset in PRESETS:
        made = swapping(census, "999/1000", preset, tiers=[{"chance": "1"}])
        prepared = made.prepare(census)
        swap = nearest.pair(prepared, trial(1))
        # Everybody was visited, so nobody who is left has a partner among those left.
        left = np.flatnonzero(swap.partner == np.arange(60))
        areas: dict[int, set[int]] = {}
        for h in left:
            areas.setdefault(prepared.households.stratum[h], set()).add(
                prepared.households.leave[h]
            )
        assert all(len(found) == 1 for found in areas.values())
        assert swap.targets.size > 20


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    households=st.integers(30, 120),
    rate=st.fractions("1/20", "19/20", max_denominator=20),
    preset=st.sampled_from(list(PRESETS)),
    match=st.sampled_from([(), ("size",), ("size", "tenure"), ("household_type",)]),
    within=st.sampled_from(["state", "county"]),
    seed=st.integers(0, 2**32),
)
def test_invariants_hold_for_any_town(
    engine, tmp_path_factory, households, rate, preset, match, within, seed
):
    census = town_census(engine, make_town(households, states=2, seed=seed))
    made = swapping(census, str(rate), preset, match=list(match), within=within)
    occupied = census.frame("units", [within], where={"kind": ["occupied"]})
    largest = max(Counter(row[0] for row in engine.rows(occupied)).values())
    if made.capped and rate * largest < 2:
        with pytest.raises(BadInput, match="released as it is"):
            made.check(census)
        return
    release = protect(made, census, trial(seed), tmp_path_factory.mktemp("any") / "release")
    told = check_invariants(release.specification, census, release.microdata(engine))
    assert not any(told.values())


# -- repeating -------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["paper", "published-code"])
def test_results_depend_on_the_seed_alone(tmp_path, preset):
    town = make_town(150, states=2, seed=5)
    order = np.random.default_rng(1).permutation(len(town.houses) + 1 + len(town.residents))
    runs = []
    for number, (seed, threads, rows) in enumerate(
        [(1, 1, None), (1, 2, None), (1, 1, order), (2, 1, None)]
    ):
        census = town_census(Engine(threads=threads), town, rows)
        out = tmp_path / str(number)
        protect(swapping(census, "1/5", preset), census, trial(seed), out, threads)
        runs.append(folder_bytes(out))
    assert runs[0] == runs[1] == runs[2] != runs[3]


def test_batches_of_areas_change_nothing(engine, tmp_path, monkeypatch):
    census = town_census(engine, make_town(300, states=3, seed=6))
    made = swapping(census, "1/5")
    places = read_places(census, "state", ["tract"])
    assert list(batches(census, places, most=150)) == [["10"], ["11"], ["12"]]
    assert list(batches(census, places, most=10**6)) == [["10", "11", "12"]]
    whole = folder_bytes(protect(made, census, trial(1), tmp_path / "whole").folder)
    monkeypatch.setattr(
        "discreet.mechanisms.swapping.exchange.batches", lambda c, p: batches(c, p, most=150)
    )
    parts = folder_bytes(protect(made, census, trial(1), tmp_path / "parts").folder)
    assert whole == parts


def test_publishing_does_not_need_the_census(tmp_path):
    engine = Engine(threads=1)
    census = town_census(engine, make_town(100, seed=7))
    draw = make_draw(swapping(census), census, trial(1), tmp_path / "draw", "design")
    publish_draw(draw, tmp_path / "with")
    engine.close()
    publish_draw(draw, tmp_path / "without")
    assert folder_bytes(tmp_path / "with") == folder_bytes(tmp_path / "without")


# -- the exact law ---------------------------------------------------------------------------

ONE = ((40, "01", "1"),)
PAIR = ((40, "01", "1"), (38, "02", "1"))


def tiny_town(houses: list[tuple[int, tuple]], states: int = 1) -> Town:
    """Return households in blocks 0, 1, ...: two to a tract, some at equal distances."""
    points = [(32.0, -60.0), (32.0, -60.0), (32.0, -60.5), (32.5, -60.0), (31.0, -60.0)]
    blocks = [
        (f"{10 + s}", f"{10 + s}001{number // 2:06d}", *point)
        for s in range(states)
        for number, point in enumerate(points)
    ]
    listed = [House(i + 1, block, members) for i, (block, members) in enumerate(houses)]
    return Town(tuple(listed), tuple(blocks), {})


def single(race: str, age: int = 40) -> tuple:
    return ((age, race, "1"),)


#: Households that differ, so that every pair can be seen in the release.
TINY = {
    "all differ": [(0, single("01")), (2, single("02")), (3, single("03")), (4, single("04"))],
    "two alike": [(0, ONE), (1, single("02")), (2, ONE), (3, single("05")), (4, single("06"))],
    "two strata": [(0, ONE), (2, single("02")), (4, single("03")), (1, PAIR), (2, PAIR[::-1])],
    "one block": [(2, single("01")), (2, single("02")), (2, single("03")), (0, single("04"))],
}
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


# -- the promise: none ------------------------------------------------------------------------


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


# -- the internal report ------------------------------------------------------------------------


def test_the_report_counts_what_was_done(engine, tmp_path):
    town = make_town(400, states=2, seed=9)
    census = town_census(engine, town)
    made = swapping(census, "2/5", "published-code")
    draw = make_draw(made, census, trial(1), tmp_path / "draw", "design")
    file = draw / "internal.json"
    assert file.stat().st_mode & 0o777 == 0o600
    told = json.loads(file.read_text())
    swap = nearest.pair(made.prepare(census), trial(1))
    houses = sorted(town.houses, key=lambda h: (town.blocks[h.block][0], h.unit_id))
    assert told["households"] == 400
    assert PRESETS["published-code"].label in told["method"]
    assert told["targets"] == told["partners"] == swap.targets.size
    assert told["swapped"] == told["changed_block"] == 2 * swap.targets.size
    assert told["rate_realised"] == told["swapped"] / 400
    assert told["no_partner_exists"] + told["no_partner_left"] == swap.without_partner.size > 0
    state = [town.blocks[h.block][0] for h in houses]
    tract = [town.blocks[h.block][1] for h in houses]
    strata: dict[tuple, set] = {}
    for h, s, t in zip(houses, state, tract, strict=True):
        strata.setdefault((s, h.size, h.adults), set()).add(t)
    stuck = sum(len(strata[s, h.size, h.adults]) == 1 for h, s in zip(houses, state, strict=True))
    assert told["cannot_change"] == stuck > 0
    assert told["share_that_cannot_change"] == stuck / 400
    hit = [houses[t] for t in swap.targets]
    assert told["households_by_size"]["targets"] == {
        str(size): count for size, count in sorted(Counter(h.size for h in hit).items())
    }
    races = np.array([h.races for h in hit]).sum(axis=0)
    assert list(told["persons_by_group"]["targets"].values()) == sorted_by_name(made, races)
    mixed = sum(sum(r > 0 for r in h.races) > 1 for h in hit) / len(hit)
    assert told["share_of_mixed_households"]["targets"] == pytest.approx(mixed)
    distances = told["kilometres_between_partners"]
    assert 0 < distances["5%"] <= distances["50%"] <= distances["95%"]
    release = publish_draw(draw, tmp_path / "out")
    assert not list(release.folder.rglob("internal.json"))


def sorted_by_name(made, counts) -> list[int]:
    """Return counts as the report writes them: keys of JSON are sorted."""
    return [int(count) for _, count in sorted(zip(made.groups, counts, strict=True))]


# -- parameters -----------------------------------------------------------------------------


def test_it_is_a_mechanism_with_a_law(engine):
    made = swapping(town_census(engine, make_town(20, seed=1)))
    assert isinstance(made, Mechanism)
    assert isinstance(made, Enumerable)


@pytest.mark.parametrize("preset", PRESETS)
def test_parameters_read_back_and_override_presets(schema, preset):
    made = mechanism(NAME, schema, {"rate": "1/50", "preset": preset})
    assert mechanism(NAME, schema, made.parameters()) == made
    json.dumps(made.parameters())
    other = mechanism(NAME, schema, {**made.parameters(), "candidates": 7})
    assert other.candidates == 7
    assert mechanism(NAME, schema, {"rate": "1/50", "preset": preset, "candidates": 7}) == other


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"rate": "0"}, "strictly between 0 and 1"),
        ({"rate": "1"}, "strictly between 0 and 1"),
        ({"rate": "-1/2"}, "strictly between 0 and 1"),
        ({"rate": 0.1}, "must be exact"),
        ({}, "rate"),
        ({"rate": "1/2", "preset": "papers"}, "Did you mean 'paper'"),
        ({"rate": "1/2", "match": ["sise"]}, "Did you mean 'size'"),
        ({"rate": "1/2", "match": ["tract"]}, "units have no column"),
        ({"rate": "1/2", "flags": ["size", "size"]}, "twice"),
        ({"rate": "1/2", "flags": ["age"]}, "units have no column 'age'"),
        ({"rate": "1/2", "persons": "sizes"}, "Did you mean 'size'"),
        ({"rate": "1/2", "within": "block"}, "within must be one of"),
        ({"rate": "1/2", "within": "nation"}, "within must be one of"),
        ({"rate": "1/2", "leave": "state"}, "leave must be one of"),
        ({"rate": "1/2", "within": "county", "leave": "county"}, "leave must be one of"),
        ({"rate": "1/2", "within": "county", "flag_area": "state"}, "flag_area must be one of"),
        ({"rate": "1/2", "candidates": 0}, "candidates"),
        ({"rate": "1/2", "tiers": []}, "tiers"),
        ({"rate": "1/2", "tiers": [{"share": "1", "chance": "1"}]}, "the last takes the rest"),
        ({"rate": "1/2", "tiers": [{"chance": "1"}, {"chance": "1"}]}, "every tier but the last"),
        ({"rate": "1/2", "tiers": [{"chance": "3/2"}]}, "between 0 and 1"),
        (
            {"rate": "1/2", "tiers": [{"share": "-1", "chance": "1"}, {"chance": "1"}]},
            "must not be negative",
        ),
        ({"rate": "1/2", "distance": "miles"}, "distance"),
        ({"rate": "1/2", "swaprate": "1/2"}, "unknown key"),
    ],
)
def test_bad_parameters_get_one_clear_error(schema, parameters, says):
    with pytest.raises(BadInput, match=says) as caught:
        mechanism(NAME, schema, parameters)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("missing", ["column", "value", "null", "range"])
def test_points_must_be_there(engine, tmp_path, missing):
    town = make_town(50, seed=2)
    census = town_census(engine, town)
    if missing == "column":
        census = replace(census, geography=census.geography.drop("longitude"))
    elif missing == "null":
        kept = nw.when(nw.col("longitude") < -1000).then(nw.col("longitude"))
        census = replace(census, geography=census.geography.with_columns(longitude=kept))
    else:
        lost = float("nan") if missing == "value" else 500.0
        lived_in = town.houses[0].block
        blocks = [(*b[:3], lost) if i == lived_in else b for i, b in enumerate(town.blocks)]
        census = town_census(engine, replace(town, blocks=tuple(blocks)))
    with pytest.raises(BadInput, match=r"geography\.longitude") as caught:
        protect(swapping(census), census, trial(1), tmp_path / "release")
    assert caught.value.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_census_in_one_tract_is_refused(engine, tmp_path):
    census = town_census(engine, make_town(50, tracts=1, seed=2))
    with pytest.raises(BadInput, match="no household has a possible partner"):
        protect(swapping(census), census, trial(1), tmp_path / "release")
    assert list(tmp_path.iterdir()) == []
    protect(swapping(census, leave="block"), census, trial(1), tmp_path / "release")


def test_matching_on_everything_leaves_nobody(engine, tmp_path):
    town = tiny_town([(0, ONE), (2, PAIR), (4, single("03", 70))])
    census = town_census(engine, replace(town, residents={0: 1}))
    made = swapping(
        census, "1/2", match=["size", "minors", "members_black", "householder_race_group"]
    )
    with pytest.raises(BadInput, match="no household has a possible partner"):
        made.check(census)


def test_a_census_without_households_or_links_is_refused(engine):
    town = make_town(30, seed=1)
    census = town_census(engine, town)
    vacant = replace(census, units=census.table("units").filter(~nw_occupied()))
    with pytest.raises(BadInput, match="no occupied unit"):
        swapping(census).check(vacant)
    unlinked = replace(census, persons=census.table("persons").drop("unit_id"))
    with pytest.raises(BadInput, match="no link to units"):
        swapping(census).check(unlinked)


def test_another_schema_needs_its_own_columns(engine, tmp_path):
    households = [(n % 3, "owner", [(40 + n, "f", "national")]) for n in range(9)]
    census = register_census(engine, households)
    with pytest.raises(BadInput, match="within must be one of"):
        mechanism(NAME, census.schema, {"rate": "1/2"})
    geography = engine.from_numpy(
        {
            "cell": np.array(
                sorted(r[0] for r in engine.rows(census.geography.select("cell"))), dtype=object
            ),
            "latitude": np.array([47.0, 47.1, 47.3]),
            "longitude": np.array([8.0, 8.1, 8.0]),
        }
    )
    joined = engine.materialise(census.geography.join(geography, on="cell"))
    census = replace(census, geography=joined)
    parameters = {
        "rate": "1/2",
        "match": ["size", "tenure"],
        "within": "municipality",
        "leave": "cell",
        "groups": [],
        "flags": ["size"],
        "flag_area": "cell",
    }
    made = mechanism(NAME, census.schema, parameters)
    release = protect(made, census, trial(1), tmp_path / "release")
    told = check_invariants(release.specification, census, release.microdata(engine))
    assert not any(told.values())
    assert made.outcome(release.microdata(engine)) != made.outcome(census)


def test_a_geography_without_points_is_named(engine):
    census = us_census(engine, [(0, "1", [(40, "1", "01")]), (1, "1", [(40, "1", "01")])])
    census = replace(census, geography=census.geography.drop("latitude", strict=False))
    with pytest.raises(BadInput, match=r"geography\.latitude is missing"):
        swapping(census, leave="block").check(census)
