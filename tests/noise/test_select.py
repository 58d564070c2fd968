"""Exact draws: counted over all bit strings wherever that is possible."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import floor, log, sqrt

import numpy as np
import pytest

from discreet.errors import BadInput
from discreet.noise import Chance, Words, select_each, shuffle, trial, uniform_below
from discreet.noise.select import piece, scale

RATES = [Fraction(1, 3), Fraction(1, 20), Fraction(1, 65537), Fraction(1, 2), Fraction(19, 20)]
OUT_OF_TAPE = -1


def tape(*pieces: int) -> Words:
    """Return a tape that holds these 16-bit pieces."""
    words = [0] * (-(-len(pieces) // 4))
    for at, bits in enumerate(pieces):
        words[at // 4] |= bits << 16 * (at % 4)
    return np.array(words, dtype=np.uint64)


def decide(bits: list[int], p: Fraction, width: int) -> tuple[int, int]:
    """Return whether one record is selected on this tape (-1: not decided), and pieces read."""
    chosen = np.empty(1, dtype=np.int32)
    cursor, place, count = select_each(
        tape(*bits), 0, len(bits), 0, 1, 0, chosen, tuple(Chance.of(p, width)), width
    )
    return (count if place == 1 else OUT_OF_TAPE), cursor


def test_pieces_are_read_low_bits_first() -> None:
    words = np.array([0x4444333322221111, 0x8888777766665555], dtype=np.uint64)
    assert [f"{piece(words, at):x}" for at in range(8)] == [str(d) * 4 for d in range(1, 9)]


@pytest.mark.parametrize("p", RATES, ids=str)
@pytest.mark.parametrize(("width", "pieces"), [(1, 12), (2, 6), (4, 3), (6, 2)])
def test_selection_counts_exactly_the_bit_strings_below_p(
    p: Fraction, width: int, pieces: int
) -> None:
    """Of all 4096 strings those below p select; only the one equal to p's digits may be open."""
    strings = 2 ** (width * pieces)
    outcomes = Counter(
        decide(
            [number >> width * (pieces - 1 - i) & (2**width - 1) for i in range(pieces)], p, width
        )[0]
        for number in range(strings)
    )
    dyadic = strings % p.denominator == 0
    assert outcomes[1] == floor(p * strings)
    assert outcomes[OUT_OF_TAPE] == (0 if dyadic else 1)


@pytest.mark.parametrize("p", RATES, ids=str)
def test_selection_by_16_bits_and_its_tie(p: Fraction) -> None:
    lead = floor(p * 2**16)
    digit = floor(p * 2**32) % 2**16
    assert decide([lead - 1 if lead else lead + 1, 0], p, 16) == (int(lead > 0), 1)
    assert decide([lead + 1, 0], p, 16) == (0, 1)
    if p == Fraction(1, 2):  # its digits end: equal bits are not below
        assert decide([lead], p, 16) == (0, 1)
        return
    assert decide([lead], p, 16) == (OUT_OF_TAPE, 0)  # cut short: read again from the start
    assert decide([lead, digit], p, 16) == (OUT_OF_TAPE, 0)
    if digit < 2**16 - 1:
        assert decide([lead, digit + 1], p, 16) == (0, 2)
    if digit > 0:
        assert decide([lead, digit - 1], p, 16) == (1, 2)


def test_selection_is_exact_for_a_denominator_near_the_limit() -> None:
    p = Fraction(2**61 - 3, 2**62 - 1)
    digits = [floor(p * 2 ** (16 * i)) % 2**16 for i in range(1, 9)]
    for decided in range(8):
        below = [*digits[:decided], digits[decided] - 1]
        above = [*digits[:decided], digits[decided] + 1]
        if digits[decided] > 0:
            assert decide(below, p, 16) == (1, decided + 1)
        if digits[decided] < 2**16 - 1:
            assert decide(above, p, 16) == (0, decided + 1)


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(1, 2**62)])
def test_impossible_chances_are_refused(p: Fraction) -> None:
    with pytest.raises(BadInput, match="1/20"):
        Chance.of(p)


@pytest.mark.parametrize("bits", [1, 4, 8])
def test_scaling_gives_every_integer_from_equally_many_draws(bits: int) -> None:
    for bound in range(1, 2**bits + 1):
        results = Counter(scale(draw, bound, bits) for draw in range(2**bits))
        refused = results.pop(-1, 0)
        assert set(results) == set(range(bound))
        assert set(results.values()) == {2**bits // bound}
        assert refused == 2**bits % bound


@pytest.mark.parametrize("bound", [3, 40_000, 65_536])
def test_16_bit_integers_are_exact(bound: int) -> None:
    results = Counter(uniform_below(tape(draw), 0, 1, bound)[0] for draw in range(0, 65_536))
    results.pop(-1, None)
    assert set(results.values()) == {65_536 // bound}
    assert len(results) == bound


def test_32_bit_integers_use_both_pieces() -> None:
    bound = 2**31
    assert uniform_below(tape(0xFFFF, 0xFFFF), 0, 2, bound) == (bound - 1, 2)
    assert uniform_below(tape(0xFFFF, 0xFFFF), 0, 1, bound) == (OUT_OF_TAPE, 0)
    assert uniform_below(tape(0, 0x8000), 0, 2, bound) == (2**30, 2)


def test_32_bit_integers_fit_uniform_bins() -> None:
    """Chi-square on 500 bins with the bound of Laurent and Massart (2000, Lemma 1), alpha 1e-6."""
    bound, bins, draws = 100_000, 500, 50_000
    words = fixed_words(draws)
    cursor, counts = 0, np.zeros(bins)
    for _ in range(draws):
        value, cursor = uniform_below(words, cursor, 4 * draws, bound)
        counts[value // (bound // bins)] += 1
    statistic = ((counts - draws / bins) ** 2 / (draws / bins)).sum()
    assert statistic < chi_square_limit(bins - 1)


@pytest.mark.parametrize("deranged", [False, True])
@pytest.mark.parametrize("stop_every", [1, 1000])
def test_shuffles_are_uniform_and_do_not_mind_stops(deranged: bool, stop_every: int) -> None:
    """Chi-square over all arrangements of five, alpha 1e-6."""
    runs, size = 6_000, 5
    words = fixed_words(10 * runs)
    cursor, found = 0, Counter[tuple[int, ...]]()
    for _ in range(runs):
        order = np.arange(size, dtype=np.int32)
        place = size - 1
        while place > 0:
            cursor, place = shuffle(words, cursor, cursor + stop_every, place, order, deranged)
        found[tuple(order.tolist())] += 1
    allowed = [
        order
        for order in permutations(range(size))
        if not deranged or all(i != v for i, v in enumerate(order))
    ]
    expected = runs / len(allowed)
    assert set(found) <= set(allowed)
    statistic = sum((found[order] - expected) ** 2 / expected for order in allowed)
    assert statistic < chi_square_limit(len(allowed) - 1)


def fixed_words(count: int) -> Words:
    one = np.array([1], dtype=np.uint64)
    return trial(20).words("test", one, np.array([0]), np.array([count]))


def chi_square_limit(degrees: int, alpha: float = 1e-6) -> float:
    t = log(1 / alpha)
    return degrees + 2 * sqrt(degrees * t) + 2 * t
