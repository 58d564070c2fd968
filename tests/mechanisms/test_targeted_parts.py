"""What targeted swapping is made of: tree, search, sizes of tiers, numbering."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.mechanisms.numbering import numbered, order_of
from discreet.mechanisms.swapping.geometry import LEAF, kilometres, plant, segments_of
from discreet.mechanisms.swapping.households import Households, Places
from discreet.mechanisms.swapping.nearest import take
from discreet.mechanisms.swapping.pool import cut
from discreet.mechanisms.swapping.risk import Tier, most_pairs, tier_sizes
from discreet.mechanisms.swapping.search import Standing, Turn, gather, pick, possible, scratch
from towns import great_circle


def scattered(
    random: np.random.Generator, n: int, strata: int, blocks: int, grid: int = 8
) -> Households:
    places = Places(
        frame=None,
        within="state",
        codes=("10",),
        areas={"state": np.zeros(blocks, np.int64)},
        latitude=random.integers(-grid, grid + 1, blocks) / 4,
        longitude=random.integers(-grid, grid + 1, blocks) / 4,
    )
    place = random.integers(0, blocks, n)
    stratum = numbered([random.integers(0, strata, n)])[0]
    return Households(
        places, ("10",), np.array([0, n]), np.arange(n), place, stratum, place % 5, {}
    )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 400),
    strata=st.integers(1, 4),
    blocks=st.integers(1, 120),
    k=st.integers(1, 30),
    distance=st.sampled_from(["great-circle", "degrees"]),
)
def test_the_search_finds_the_nearest(seed, n, strata, blocks, k, distance):
    random = np.random.default_rng(seed)
    households = scattered(random, n, strata, blocks)
    free = random.random(n) < random.random()
    priority = random.integers(0, 3, n)  # few, so that many are equal
    check_ranks(households, distance, free, priority, random.integers(0, n, 5), k)


def test_equal_distances_count_wherever_they_are_found():
    """Many points at one distance, some of them met after there are enough."""
    random = np.random.default_rng(1)
    households = scattered(random, 500, 1, 150, grid=3)
    priority = random.permutation(500)
    check_ranks(households, "degrees", priority < 450, priority, np.arange(40), 6)


def check_ranks(households, distance, free, priority, looking, k: int) -> None:
    """Compare those of rank 1 to k with a sorted list of all who are free, by slot."""
    tree, n = plant(households, distance), free.size
    standing = standing_of(tree, households, free, priority)
    room = scratch(n)
    point = tree.nodes[tree.home, :3].astype(np.int64)
    for h in looking.tolist():
        slot, g = tree.slots[h], households.stratum[h]
        turn = Turn(tree.roots[g], tree.roots[g + 1], standing.nodes[tree.home[slot]])
        all_of_them = sorted(
            (int(((point[s] - point[slot]) ** 2).sum()), int(priority[s]), s)
            for s in range(n)
            if free[s]
            and households.stratum[tree.members[s]] == g
            and households.leave[tree.members[s]] != households.leave[h]
        )
        need = min(k, len(all_of_them))
        assert possible(standing, turn) == len(all_of_them)
        found = [pick(standing, gather(standing, turn, r, room), r, room) for r in ranks(need)]
        assert found == [all_of_them[r - 1][2] for r in ranks(need)]
        if need:  # gathered once, any rank up to there may be picked, in any order
            size = gather(standing, turn, need, room)
            for r in (need, *ranks(need)):
                assert pick(standing, size, r, room) == all_of_them[r - 1][2]


def ranks(need: int) -> range:
    return range(1, need + 1)


def standing_of(tree, households, free, priority) -> Standing:
    """Return where a draw stands when only some slots are free."""
    nothing = np.empty(0, np.int64)
    standing = Standing(
        home=tree.home,
        nodes=tree.nodes.copy(),
        left=tree.counts.copy(),
        crowds=tree.crowds.copy(),
        free=np.ones(free.size, np.bool_),
        priority=priority,
        by_risk=nothing,
        cursor=nothing,
    )
    for slot in np.flatnonzero(~free):
        g = households.stratum[tree.members[slot]]
        here = standing.nodes[tree.home[slot]]
        take(standing, Turn(tree.roots[g], tree.roots[g + 1], here), slot)
    assert (standing.free == free).all()
    return standing


@pytest.mark.parametrize("n", [0, 1, 8, 9, 17, 19, 35, 1000, 12345])
def test_segments_cover_every_point(n):
    """A point is the middle of one segment that is split, or lies in one that is not."""
    segments = segments_of(np.array([0, n, n + 5])).tolist()
    whole = [(low, high) for low, high in segments if high - low <= LEAF]
    split = [(low + high) // 2 for low, high in segments if high - low > LEAF]
    covered = split + [p for low, high in whole for p in range(low, high)]
    assert sorted(covered) == list(range(n + 5))


@given(
    rows=st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 4)), min_size=1, max_size=60),
    data=st.data(),
)
def test_a_pool_is_cut_at_a_rank(rows, data):
    total = sum(count for _, count in rows)
    need = data.draw(st.integers(1, total))
    pool = np.array([(key, what, count) for what, (key, count) in enumerate(rows)])
    end, first, before = cut(pool, len(rows), need)
    ranked = sorted(key for key, count in rows for _ in range(count))
    limit = ranked[need - 1]
    assert set(pool[first:end, 0].tolist()) == {limit}
    assert before == sum(key < limit for key in ranked)
    assert (pool[:first, 0] < limit).all()
    assert (pool[end:, 0] > limit).all()
    assert sorted(pool.tolist()) == sorted(
        [key, what, count] for what, (key, count) in enumerate(rows)
    )


def test_chords_rank_as_the_great_circle():
    random = np.random.default_rng(5)
    blocks = 300
    places = Places(
        None,
        "state",
        ("10",),
        {"state": np.zeros(blocks, np.int64)},
        random.uniform(60, 72, blocks),
        random.uniform(-179.99, 180, blocks),
    )
    place = np.arange(blocks)
    households = Households(
        places, ("10",), np.array([0, blocks]), place, place, np.zeros(blocks, np.int64), place, {}
    )
    tree = plant(households, "great-circle")
    point = tree.nodes[tree.slots, :3].astype(np.int64)
    for h in range(0, blocks, 30):
        chord = ((point - point[h]) ** 2).sum(axis=1)
        told = kilometres(places, np.full(blocks, h), place)
        exact = [
            6371.0088 * great_circle(*((places.latitude[b], places.longitude[b]) for b in (h, o)))
            for o in range(blocks)
        ]
        assert np.allclose(told, exact, atol=1e-3)
        assert (np.argsort(chord, kind="stable") == np.argsort(told, kind="stable")).all()


def test_sizes_of_tiers_follow_the_published_table():
    tiers = [Tier(share=str(m), chance="1") for m in (1, 2, 3)] + [Tier(chance="1")]
    unit = Fraction(8, 5)

    def sizes(n: int, rate: str, rounding: str) -> list[int]:
        return tier_sizes(n, Fraction(rate), tiers, unit, rounding)

    assert sizes(20_000, "0.02", "exact") == [250, 500, 750, 18_500]
    assert sizes(20_000, "0.02", "floating-point") == [249, 499, 750, 18_502]
    assert sizes(16_000, "0.1", "exact") == [1000, 2000, 3000, 10_000]
    assert sizes(1600, "0.4", "exact") == [400, 800, 400, 0]
    assert sizes(1600, "0.9", "exact") == [900, 700, 0, 0]  # the published program fails here
    assert sizes(0, "0.1", "exact") == [0, 0, 0, 0]


@given(n=st.integers(0, 10**9), rate=st.fractions("1/1000", "999/1000", max_denominator=1000))
def test_the_cap_is_exact(n, rate):
    most = most_pairs(n, rate, overshoot=False)
    assert 2 * most <= rate * n < 2 * (most + 1)
    assert most_pairs(n, rate, overshoot=True) - most in (0, 1)


@given(st.data(), st.integers(1, 50), st.integers(1, 4))
def test_rows_are_numbered_and_ordered(data, n, columns):
    values = st.sampled_from([-(2**31), -1, 0, 1, 5, 2**40, 2**62, -(2**62)])
    arrays = [np.array(data.draw(st.lists(values, min_size=n, max_size=n))) for _ in range(columns)]
    rows = list(zip(*(array.tolist() for array in arrays), strict=True))
    number, counts = numbered(arrays)
    different = sorted(set(rows))
    assert [different[i] for i in number] == rows
    assert counts.tolist() == [rows.count(row) for row in different]
    assert order_of(arrays).tolist() == sorted(range(n), key=lambda i: rows[i])
