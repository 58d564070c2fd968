"""Binomial draws and sparse selection: counted over all coins, and against exact probabilities."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import comb, sqrt

import numpy as np
import pytest

from discreet.errors import BadInput
from discreet.noise import binomial, key_of, select_sparse, system, trial
from discreet.noise.binomial import ones_in, toss_each
from discreet.noise.sparse import digits_of
from discreet.noise.table import GUARD, UNDECIDED, decide
from noise.battery import NORMAL_LIMIT, chi_square, dependence
from noise.oracle import decimal

CHANCES = [Fraction(1, 3), Fraction(1, 20), Fraction(5, 8), Fraction(19, 20), Fraction(1, 65537)]


def items(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint64)


@pytest.mark.parametrize("p", CHANCES[:4], ids=str)
@pytest.mark.parametrize("trials", [1, 2, 3])
def test_all_coins_together_give_exactly_the_binomial_law(p: Fraction, trials: int) -> None:
    """Four coins per trial, all combinations: settled ones fit the law up to the open ones."""
    rounds = 4
    settled, opened = [0] * (trials + 1), 0
    for coins in product(range(2**trials), repeat=rounds):
        state = np.array([[trials, 0, p.numerator, 0, 0]], dtype=np.int64)
        words = np.array(coins, dtype=np.uint64)
        one = np.zeros(1, dtype=np.int64)
        toss_each(words, one, one + rounds, state, one, p.denominator)
        if state[0, 0] > 0 and state[0, 2] > 0:
            opened += 1
        else:
            settled[state[0, 1]] += 1
    total = 2 ** (trials * rounds)
    assert sum(settled) + opened == total
    for k in range(trials + 1):
        exact = comb(trials, k) * p**k * (1 - p) ** (trials - k) * total
        assert settled[k] <= exact <= settled[k] + opened
    assert (opened == 0) == (16 % p.denominator == 0)


def test_ones_are_counted() -> None:
    words = trial(1).words("x", np.array([1], dtype=np.uint64), np.array([0]), np.array([500]))
    for word in [0, 1, 2**63, 2**64 - 1, *words.tolist()]:
        assert ones_in(np.uint64(word)) == int(word).bit_count()


@pytest.mark.parametrize("p", CHANCES[:4], ids=str)
@pytest.mark.parametrize("trials", [5, 64, 200])
def test_binomial_draws_have_the_exact_law(p: Fraction, trials: int) -> None:
    count = 100_000
    drawn = binomial(trial(21), "x", items(count), np.full(count, trials), p)
    exact = [comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]
    expected = np.array([float(e) for e in exact]) * count
    order = np.argsort(-expected)  # the common ones first, the rare ones in one cell
    counts = np.bincount(drawn, minlength=trials + 1)
    assert chi_square(counts[order], expected[order]) < 1
    assert dependence(drawn[:-1] - round(trials * p), drawn[1:] - round(trials * p)) < 1


@pytest.mark.parametrize("p", CHANCES, ids=str)
def test_large_numbers_of_trials_have_the_right_mean_and_variance(p: Fraction) -> None:
    trials, count = 10**6 + 7, 400
    drawn = binomial(trial(22), "x", items(count), np.full(count, trials), p)
    deviation = sqrt(trials * p * (1 - p))
    assert abs(drawn.mean() - float(trials * p)) < NORMAL_LIMIT * deviation / sqrt(count)
    assert abs(drawn.std() / deviation - 1) < NORMAL_LIMIT / sqrt(count)


@pytest.mark.parametrize("tape_words", [1, 50, 10_000])
def test_binomial_draws_do_not_depend_on_how_much_tape_is_fetched(tape_words: int) -> None:
    trials = np.array([0, 1, 7, 5000, 64, 63, 65])
    whole = binomial(trial(23), "x", items(7), trials, Fraction(2, 7))
    cut = binomial(trial(23), "x", items(7), trials, Fraction(2, 7), tape_words=tape_words)
    assert np.array_equal(whole, cut)
    alone = binomial(trial(23), "x", items(7)[3:4], trials[3:4], Fraction(2, 7))
    assert alone[0] == whole[3]


def test_binomial_refuses_what_it_cannot_draw() -> None:
    one = np.ones(1, dtype=np.int64)
    with pytest.raises(BadInput, match="different"):
        binomial(
            trial(1), "x", np.array([1, 1], dtype=np.uint64), np.ones(2, dtype=int), CHANCES[0]
        )
    with pytest.raises(BadInput, match="negative"):
        binomial(trial(1), "x", items(1), -one, CHANCES[0])
    with pytest.raises(BadInput, match="slash"):
        binomial(trial(1), "x/1", items(1), one, CHANCES[0])
    with pytest.raises(BadInput, match="between 0 and 1"):
        binomial(trial(1), "x", items(1), one, Fraction(1))
    assert binomial(system(), "x", key_of(["a"]), one, CHANCES[0])[0] in (0, 1)


# --- sparse selection ---------------------------------------------------------------------------


@pytest.mark.parametrize("p", [Fraction(1, 2), *CHANCES, Fraction(1, 10**9)], ids=str)
def test_the_digits_of_a_gap_have_the_probabilities_of_the_geometric_law(p: Fraction) -> None:
    """Edges of every digit against (1 - a^(k + 1)) / (1 - a^1024), a = q^(1024^j), in decimals."""
    laws = digits_of(p)
    unit = Decimal(2) ** -80
    with localcontext() as context:
        context.prec = 120
        a = decimal(1 - p)
        for law in laws:
            ladder = law.ladder(80)
            whole = 1 - a**1024 if law.limited else Decimal(1)
            for k, low in enumerate(ladder.low):
                edge = (1 - a ** (k + 1)) / whole
                assert low * unit <= edge + Decimal(10) ** -60
                assert edge - Decimal(10) ** -60 <= (low + ladder.slack) * unit
            assert ladder.slack <= 4
            assert len(ladder.low) == 1024 if law.limited else len(ladder.low) < 4096
            a = a**1024
    assert [law.limited for law in laws] == [True] * (len(laws) - 1) + [False]


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 3), Fraction(3, 4)], ids=str)
def test_small_gaps_are_exact(p: Fraction) -> None:
    """All prefixes of twelve bits: what is decided fits p q^g exactly."""
    (law,) = digits_of(p)
    ladder = law.ladder(12 + GUARD)
    decided = [decide(ladder, bits) for bits in range(2**12)]
    for gap in range(6):
        share = Fraction(decided.count(gap), 2**12)
        assert share <= p * (1 - p) ** gap < share + Fraction(2, 2**12) + Fraction(1, 2**16)
    assert decided.count(UNDECIDED) < 40


@pytest.mark.parametrize(
    ("p", "size"),
    [
        (Fraction(1, 3), 10**6),
        (Fraction(19, 20), 10**5),
        (Fraction(1, 50), 10**6),
        (Fraction(1, 3000), 10**8),
        (Fraction(1, 10**7), 10**12),
    ],
    ids=str,
)
def test_positions_are_selected_with_their_chance(p: Fraction, size: int) -> None:
    places = select_sparse(trial(24), "x", 0, p, size)
    assert (np.diff(places) > 0).all()
    assert places[0] >= 0
    assert places[-1] < size
    expected, deviation = float(size * p), sqrt(size * p * (1 - p))
    assert abs(places.size - expected) < NORMAL_LIMIT * deviation
    tenths = np.bincount(places * 10 // size, minlength=10)
    spread = ((tenths - expected / 10) ** 2).sum() / (deviation**2 / 10)
    assert spread < 10 + 2 * sqrt(10 * 16) + 32
    gaps = np.diff(places) - 1
    limits = np.array([0, 0.1, 0.3, 0.5, 0.8, 1.2, 2, 3]) / -np.log1p(-float(p))
    edges = np.unique(np.append(np.ceil(limits), np.inf))
    counts, _ = np.histogram(gaps, edges)
    tail = np.exp(edges * np.log1p(-float(p)))
    assert chi_square(counts, (tail[:-1] - tail[1:]) * gaps.size) < 1
    assert dependence(gaps[:-1] - int(1 / p), gaps[1:] - int(1 / p)) < 1


def test_a_longer_range_begins_like_a_shorter_one() -> None:
    p = Fraction(1, 100)
    long = select_sparse(trial(25), "x", 0, p, 10**6)
    for size in (0, 1, 1000, 10**5):
        assert np.array_equal(select_sparse(trial(25), "x", 0, p, size), long[long < size])


def test_sparse_selection_refuses_what_it_cannot_do() -> None:
    for p in (Fraction(0), Fraction(1)):
        with pytest.raises(BadInput, match="between 0 and 1"):
            select_sparse(trial(1), "x", 0, p, 10)
    for size in (-1, 2**41):
        with pytest.raises(BadInput, match="size"):
            select_sparse(trial(1), "x", 0, Fraction(1, 2), size)
    with pytest.raises(BadInput, match="slash"):
        select_sparse(trial(1), "x/1", 0, Fraction(1, 2), 10)
    assert select_sparse(system(), "x", 0, Fraction(1, 10**9), 2**40).size > 500
