"""Targeted swapping as a mechanism: what stays exact, what repeats, its report."""

import json
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.census import Census
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import make_draw, mechanism, protect, publish_draw
from discreet.mechanisms.swapping import nearest
from discreet.mechanisms.swapping.households import batches, read_places
from discreet.mechanisms.swapping.targeted import PRESETS
from discreet.noise import trial
from discreet.products import check_invariants
from towns import make_town, town_census
from worlds import folder_bytes

NAME = "targeted-swapping"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


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


# -- the internal report ---------------------------------------------------------------------


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
