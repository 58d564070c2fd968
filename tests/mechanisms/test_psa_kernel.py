"""The sampler of the Permutation Swapping Algorithm against its exact law.

`literal` below reads the same tapes as the kernel, but one record at a time and
in fractions; it can also be told to make a mistake. The kernel must agree with
it to the last record, both must pass the chi-square tests, and every planted
mistake must fail them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from discreet.errors import BadInput
from discreet.mechanisms.swapping.kernel import permute_strata
from discreet.noise import Randomness, Words, key_of, system, trial
from discreet.spec.psa import Table, moved_probability, table_law

Integers = NDArray[np.int64]
Sampler = Callable[[Integers, Words, Fraction, Randomness], Integers]

HALF = Fraction(1, 2)
# Seeds are fixed, so tests with trial randomness give one answer for ever; had the seed been
# chosen at random, each would raise a false alarm at most once in a million times.
ALPHA_TRIAL = 1e-6
# Every run draws anew from the operating system: a false alarm once in 10^9 runs.
ALPHA_SYSTEM = 1e-9


class OutOfTape(Exception):
    pass


class Reader:
    """One stratum's tape, read in pieces of 16 bits and extended word by word."""

    def __init__(self, rng: Randomness, key: np.uint64, most: int | None = None) -> None:
        self.rng, self.key, self.most = rng, np.array([key]), most
        self.pieces: list[int] = []
        self.received = 0

    def piece(self) -> int:
        if not self.pieces:
            if self.received == self.most:
                raise OutOfTape
            at, one = np.array([self.received]), np.array([1])
            word = int(self.rng.words("permutation-swap", self.key, at, one)[0])
            self.received += 1
            self.pieces = [word >> shift & 0xFFFF for shift in (0, 16, 32, 48)]
        return self.pieces.pop(0)

    def below(self, p: Fraction) -> bool:
        low, width = Fraction(0), Fraction(1)
        while True:
            width /= 2**16
            low += self.piece() * width
            if low >= p or low + width <= p:
                return low < p

    def integer(self, bound: int) -> int:
        bits = 16 if bound <= 2**16 else 32
        while True:
            draw = self.piece() if bits == 16 else self.piece() + (self.piece() << 16)
            result, low = divmod(draw * bound, 2**bits)
            if low >= 2**bits % bound:
                return result


def derange(k: int, reader: Reader, cyclic: bool) -> list[int]:
    order = list(range(k))
    place = k - 1
    while place > 0:
        other = reader.integer(place if cyclic else place + 1)
        order[place], order[other] = order[other], order[place]
        fixed = order[place] == place or (place == 1 and order[0] == 0)
        place = k - 1 if fixed else place - 1
    return order


def one_stratum(n: int, p: Fraction, reader: Reader, bug: str) -> list[int]:
    chosen = [i for i in range(n) if reader.below(p)]
    while len(chosen) == 1 and bug != "no reselection":
        chosen = [i for i in range(n) if reader.below(p)]
    moved = list(range(n))
    order = derange(len(chosen), reader, cyclic=bug == "cyclic derangements")
    for i, j in enumerate(order):
        moved[chosen[i]] = chosen[j]
    return moved


def literal(
    offsets: Integers, keys: Words, rate: Fraction, rng: Randomness, bug: str = ""
) -> Integers:
    """Run Algorithm 1 record by record, with a planted mistake if `bug` names one."""
    source: list[int] = []
    for g, first in enumerate(offsets[:-1].tolist()):
        n = int(offsets[g + 1]) - first
        tape = keys[g - g % 2] if bug == "shared tapes" else keys[g]
        moved = list(range(n))
        if n >= 2 and bug == "tape replaced when it runs out":
            reader = Reader(rng, tape, most=2)
            while True:
                try:
                    moved = one_stratum(n, rate, reader, bug)
                    break
                except OutOfTape:
                    reader.most = reader.received + 2
        elif n >= 2:
            moved = one_stratum(n, rate, Reader(rng, tape), bug)
        source.extend(first + j for j in moved)
    return np.array(source, dtype=np.int64)


def equal_strata(n: int, strata: int) -> tuple[Integers, Words]:
    return np.arange(strata + 1) * n, key_of([str(g) for g in range(strata)])


def tables_drawn(x: Table, p: Fraction, strata: int, rng: Randomness, run: Sampler) -> list[Table]:
    """Swap many copies of one stratum and return the table of each."""
    listed = [
        (h, s) for h, row in enumerate(x) for s, count in enumerate(row) for _ in range(count)
    ]
    n, wide = len(listed), len(x[0])
    offsets, keys = equal_strata(n, strata)
    giver = run(offsets, keys, p, rng) % n
    h, s = np.array(listed).T
    cell = np.tile(h, strata) * wide + s[giver]
    where = np.repeat(np.arange(strata), n) * (len(x) * wide) + cell
    counted = np.bincount(where, minlength=strata * len(x) * wide).reshape(strata, len(x), wide)
    return [tuple(map(tuple, table)) for table in counted.tolist()]


def fits(counts: Counter[object], law: dict[object, Fraction], alpha: float) -> bool:
    """Tell whether counts fit a law by chi-square, rare outcomes pooled.

    The limit is an upper bound on the chi-square quantile (Laurent and Massart 2000, Lemma 1).
    """
    total = sum(counts.values())
    assert set(counts) <= set(law)
    cells = [(counts[z], float(chance * total)) for z, chance in law.items()]
    common = [cell for cell in cells if cell[1] >= 10]
    rare = [cell for cell in cells if cell[1] < 10]
    pooled = (sum(seen for seen, _ in rare), sum(expected for _, expected in rare))
    if pooled[1] >= 5:
        common.append(pooled)
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in common)
    degrees, t = len(common) - 1, log(1 / alpha)
    return statistic < degrees + 2 * sqrt(degrees * t) + 2 * t


def singletons(n: int) -> Table:
    return tuple(tuple(int(h == s) for s in range(n)) for h in range(n))


def pair_law(x: Table, p: Fraction) -> dict[object, Fraction]:
    law = table_law(x, p)
    return {(a, b): law[a] * law[b] for a in law for b in law}


def pairs(tables: list[Table]) -> Counter[object]:
    return Counter(zip(tables[::2], tables[1::2], strict=True))


@pytest.mark.parametrize(
    ("x", "p"),
    [
        (singletons(2), Fraction(1, 3)),
        (singletons(4), HALF),
        (singletons(5), HALF),
        (singletons(4), Fraction(9, 10)),
        (((2, 0), (0, 2)), HALF),
        (((1, 1), (1, 1)), Fraction(1, 20)),
        (((2, 1, 0), (0, 1, 2)), Fraction(1, 4)),
        (((4, 1), (1, 4)), Fraction(1, 3)),
    ],
    ids=str,
)
def test_tables_follow_the_exact_law(x: Table, p: Fraction) -> None:
    drawn = tables_drawn(x, p, 100_000, trial(1), permute_strata)
    assert fits(Counter(drawn), dict(table_law(x, p)), ALPHA_TRIAL)
    assert fits(pairs(drawn), pair_law(x, p), ALPHA_TRIAL)


@pytest.mark.parametrize("x", [singletons(4), singletons(5), ((2, 0), (0, 2))], ids=str)
def test_releases_follow_the_exact_law(x: Table) -> None:
    drawn = tables_drawn(x, HALF, 100_000, system(), permute_strata)
    assert fits(Counter(drawn), dict(table_law(x, HALF)), ALPHA_SYSTEM)
    assert fits(pairs(drawn), pair_law(x, HALF), ALPHA_SYSTEM)


@pytest.mark.parametrize(
    ("bug", "caught_by"),
    [
        ("", "neither"),
        ("no reselection", "law"),
        ("cyclic derangements", "law"),
        ("tape replaced when it runs out", "law"),
        ("shared tapes", "pairs"),
    ],
)
def test_the_same_tests_catch_planted_mistakes(bug: str, caught_by: str) -> None:
    def run(offsets: Integers, keys: Words, rate: Fraction, rng: Randomness) -> Integers:
        return literal(offsets, keys, rate, rng, bug)

    drawn = tables_drawn(singletons(4), HALF, 8_000, trial(2), run)
    law_holds = fits(Counter(drawn), dict(table_law(singletons(4), HALF)), ALPHA_TRIAL)
    independent = fits(pairs(drawn), pair_law(singletons(4), HALF), ALPHA_TRIAL)
    assert law_holds == (caught_by != "law")
    assert caught_by == "law" or independent == (caught_by != "pairs")


@pytest.mark.parametrize("rate", [Fraction(1, 20), HALF, Fraction(12345, 65537)], ids=str)
def test_the_kernel_is_algorithm_1_to_the_letter(rate: Fraction) -> None:
    sizes = np.random.default_rng(4).integers(0, 60, 120)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    keys = key_of([f"stratum {g}" for g in range(120)])
    expected = literal(offsets, keys, rate, trial(3))
    assert np.array_equal(permute_strata(offsets, keys, rate, trial(3)), expected)


def test_a_large_stratum_is_algorithm_1_to_the_letter() -> None:
    """More than 2^16 selected records, so integers of 32 bits; and ties among the selections."""
    offsets, keys = equal_strata(100_000, 1)
    rate = Fraction(9, 10)
    expected = literal(offsets, keys, rate, trial(8))
    assert np.array_equal(permute_strata(offsets, keys, rate, trial(8)), expected)


class Watched:
    """Trial randomness that insists on the contract: only ever the continuation of a tape."""

    mode = "trial"

    def __init__(self, seed: int) -> None:
        self.inner = trial(seed)
        self.received: Counter[int] = Counter()
        self.extended = 0

    def words(self, purpose: str, keys: Words, start: Integers, length: Integers) -> Words:
        for key, first, count in zip(keys.tolist(), start.tolist(), length.tolist(), strict=True):
            assert first == self.received[key]
            self.extended += first > 0
            self.received[key] += count
        return self.inner.words(purpose, keys, start, length)


MIXED = np.concatenate(([0], np.cumsum([0, 1, 2, 3, 500, 2, 1, 40, 7, 100] * 6)))
MIXED_KEYS = key_of([str(g) for g in range(60)])


@pytest.mark.parametrize("rate", [Fraction(1, 20), HALF, Fraction(99, 100)], ids=str)
@pytest.mark.parametrize(
    ("threads", "batch_records", "tape_words"),
    [(1, 1 << 20, 1), (1, 1 << 20, 3), (1, 1, 1 << 18), (3, 50, 2), (4, 700, 1 << 18)],
)
def test_batches_threads_and_short_tapes_change_nothing(
    rate: Fraction, threads: int, batch_records: int, tape_words: int
) -> None:
    expected = permute_strata(MIXED, MIXED_KEYS, rate, trial(6))
    got = permute_strata(
        MIXED,
        MIXED_KEYS,
        rate,
        trial(6),
        threads=threads,
        batch_records=batch_records,
        tape_words=tape_words,
    )
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("tape_words", [1, 1 << 18])
def test_tapes_are_only_ever_extended(tape_words: int) -> None:
    rng = Watched(6)
    permute_strata(MIXED, MIXED_KEYS, HALF, rng, tape_words=tape_words)
    assert rng.extended > 0


def test_a_stratum_does_not_depend_on_the_others() -> None:
    together = permute_strata(MIXED, MIXED_KEYS, HALF, trial(6))
    for g in (4, 7, 9):
        first, last = int(MIXED[g]), int(MIXED[g + 1])
        alone = permute_strata(np.array([0, last - first]), MIXED_KEYS[[g]], HALF, trial(6))
        assert np.array_equal(alone + first, together[first:last])


def test_seeds_and_purposes_give_other_permutations() -> None:
    base = permute_strata(MIXED, MIXED_KEYS, HALF, trial(6))
    assert not np.array_equal(base, permute_strata(MIXED, MIXED_KEYS, HALF, trial(7)))
    assert not np.array_equal(base, permute_strata(MIXED, MIXED_KEYS, HALF, trial(6), "other"))


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 30), max_size=20),
    rate=st.fractions(0, 1, max_denominator=10**6).filter(lambda p: 0 < p < 1),
    seed=st.integers(),
)
def test_records_stay_in_their_stratum_and_never_one_moves(
    sizes: list[int], rate: Fraction, seed: int
) -> None:
    offsets = np.concatenate(([0], np.cumsum(np.array(sizes, dtype=np.int64))))
    source = permute_strata(offsets, key_of([str(g) for g in range(len(sizes))]), rate, trial(seed))
    for first, last in pairwise(offsets.tolist()):
        here = source[first:last]
        assert np.array_equal(np.sort(here), np.arange(first, last))
        assert (here != np.arange(first, last)).sum() != 1


def test_the_share_moved_in_a_large_stratum_is_as_predicted() -> None:
    """Hoeffding's bound on the number selected, alpha 1e-6."""
    n, rate = 1_000_000, Fraction(1, 20)
    source = permute_strata(*equal_strata(n, 1), rate, trial(9))
    moved = int((source != np.arange(n)).sum())
    assert abs(moved - n * moved_probability(n, rate)) < sqrt(n * log(2e6) / 2)


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1), Fraction(5, 4), Fraction(-1, 20)])
def test_rates_outside_the_open_interval_are_refused(rate: Fraction) -> None:
    with pytest.raises(BadInput, match="strictly between 0 and 1"):
        permute_strata(*equal_strata(3, 2), rate, trial(1))


def test_bad_strata_are_refused() -> None:
    key = key_of(["a", "b"])
    for offsets, keys, rule in [
        ([0, 3], key, "one per stratum"),
        ([1, 3, 5], key, "start at 0"),
        ([0, 3, 2], key, "never fall"),
        ([], key[:0], "start at 0"),
        ([0, 3, 6], key[[0, 0]], "share a key"),
        ([0, 2**31], key[:1], "one more variable"),
    ]:
        with pytest.raises(BadInput, match=rule):
            permute_strata(np.array(offsets, dtype=np.int64), keys, HALF, trial(1))


def test_no_records_and_no_strata_are_fine() -> None:
    assert permute_strata(np.array([0]), key_of([]), HALF, trial(1)).size == 0
    assert permute_strata(np.array([0, 1, 1]), key_of(["a", "b"]), HALF, trial(1)).tolist() == [0]
