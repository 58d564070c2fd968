"""Pairing by lists: what a plain scan finds, in a time that does not depend on blocks."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.mechanisms.swapping import donors


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 40),
    areas=st.integers(1, 5),
    families=st.integers(1, 3),
    bound=st.booleans(),
)
def test_lists_find_what_a_scan_finds(seed, n, areas, families, bound):
    random = np.random.default_rng(seed)
    leave = random.integers(0, areas, n)
    area = random.integers(0, 2, n)
    made_of = []
    for _ in range(families):
        group = 2 * random.integers(0, 3, n) + area
        made_of.append((group, random.permutation(n)[: random.integers(0, n + 1)]))
    visited = random.integers(0, n, 2 * n)
    pairs, quota = random.integers(0, n, 2), random.integers(-1, 3, areas)

    free, left, wanted = [True] * n, pairs.tolist(), quota.tolist()
    expected, alone = [], []
    for t in visited.tolist():
        if not free[t] or not left[area[t]] or (bound and wanted[leave[t]] <= 0):
            continue
        choices = [
            (f, h)
            for f, (group, ranked) in enumerate(made_of)
            for h in ranked.tolist()
            if free[h] and group[h] == group[t] and leave[h] != leave[t]
        ]
        if not choices:
            alone.append(t)
            continue
        f, h = choices[0]
        expected.append((t, h, f))
        free[t] = free[h] = False
        left[area[t]] -= 1
        wanted[leave[t]] -= 1

    state = donors.Free(np.ones(n, dtype=bool), area, pairs, leave, quota)
    found = donors.pair_up(visited, donors.line_up(made_of), leave, state, bound)
    assert list(zip(*(part.tolist() for part in found[:3]), strict=True)) == expected
    assert found.alone.tolist() == alone
    assert state.free.tolist() == free


def test_a_block_that_holds_nearly_everybody_takes_no_longer():
    """Planted: looking past the own block again and again would take hours."""
    n = 300_000
    leave = np.zeros(n, dtype=np.int64)
    leave[-10:] = 1
    everybody, group = np.arange(n), np.zeros(n, dtype=np.int64)
    state = donors.Free(
        np.ones(n, dtype=bool), group, np.array([n]), group, np.zeros(1, dtype=np.int64)
    )
    found = donors.pair_up(everybody, donors.line_up([(group, everybody)]), leave, state, False)
    assert found.targets.size == 10
    assert found.alone.size == n - 20
