"""Drawing by rejection: machine words against fractions of any size, on the same tapes."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import cycle, islice

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.errors import BadInput
from discreet.noise import DiscreteGaussian, DiscreteLaplace, Words, trial
from discreet.noise import reject as rejection
from discreet.noise.coin import (
    COIN_ENDED,
    COIN_UNKNOWN,
    exp_fixed,
    exponentials,
    first_bits,
    multiply,
    toss,
    toss_fixed,
)
from discreet.noise.exponential import exp_minus
from discreet.noise.recipe import Recipe, recipe_of, recipes_of
from discreet.noise.reject import WORDS, draw_by_rejection, draw_exactly
from discreet.noise.share import Shares, pieces_of
from noise.oracle import LAWS, ODD, Law, Written, name, parameter

compiles = settings(deadline=None)  # the first example waits for the compiler

HUGE = Fraction(10**40 + 7, 3 * 10**39 + 1)  # does not fit machine words
PARAMETERS = [
    Fraction(1, 100),
    Fraction(1, 3),
    Fraction(1),
    ODD,
    Fraction(2),
    HUGE,
    Fraction(500),
    Fraction(10**4),
]
ALL: list[Law] = [
    *(DiscreteGaussian(value) for value in [*PARAMETERS, Fraction(10**8)]),
    *(DiscreteLaplace(value) for value in PARAMETERS),
]
sigma2s = st.fractions(Fraction(1, 100), 10**8, max_denominator=10**12) | st.fractions(
    Fraction(1, 100), 3, max_denominator=10**12
)
scales = st.fractions(Fraction(1, 100), 10**4, max_denominator=10**12)


def tape_of(pieces: list[int]) -> Words:
    padded = [*pieces, *[0] * (-len(pieces) % 4)]
    rows = np.array(padded, dtype=np.uint64).reshape(-1, 4)
    return (rows << (16 * np.arange(4, dtype=np.uint64))).sum(axis=1, dtype=np.uint64)


def share_of(shares: Shares, element: int) -> Iterator[int]:
    """Yield all pieces of an element's share, as the module's docstring describes them."""
    rounds = 0
    while True:
        words = shares.some(f"try/{rounds}", np.array([element]), WORDS)
        yield from pieces_of(words)
        rounds += 1


# --- arithmetic in machine words ----------------------------------------------------------------


@compiles
@given(a=st.integers(0, 2**62), b=st.integers(0, 2**62))
@example(a=2**62, b=2**62)
@example(a=2**62 - 1, b=2**62 - 1)
def test_products_are_rounded_down_and_do_not_overflow(a: int, b: int) -> None:
    assert multiply(a, b) == a * b >> 62


@compiles
@given(y=st.integers(0, 50 << 44) | st.integers(0, 2**61) | st.integers(0, 2**33))
@example(y=0)
@example(y=(43 << 44) - 1)
def test_exponentials_in_machine_words_are_as_exact_as_they_say(y: int) -> None:
    low, high = exp_minus(Fraction(y, 2**44), 62)
    assert low - 2**6 < exp_fixed(y, exponentials()) < high + 2**6


@compiles
@given(sigma2=sigma2s, share=st.fractions(0, 1))
@example(sigma2=Fraction(1, 100), share=Fraction(1))
@example(sigma2=Fraction(10**8), share=Fraction(1))
@example(sigma2=ODD, share=Fraction(1))
def test_a_gaussian_recipe_is_as_exact_as_it_says(sigma2: Fraction, share: Fraction) -> None:
    recipe = recipe_of(DiscreteGaussian(sigma2))
    assert max(recipe) < 2**62
    assert (recipe.t - 1) ** 2 <= sigma2 < recipe.t**2
    x = int(share * (2 ** (recipe.t.bit_length() + 5) - 1))
    away = abs((x << recipe.shift) - recipe.centre)
    assert away < 2**62
    y = multiply(multiply(away, away), recipe.flatness)
    true = (x - sigma2 / recipe.t) ** 2 / (2 * sigma2)
    assert abs(Fraction(y, 2**44) - true) < Fraction(1, 2**41)


@given(scale=scales, share=st.fractions(0, 1))
@example(scale=Fraction(1, 100), share=Fraction(1))
@example(scale=Fraction(10**4), share=Fraction(1))
def test_a_laplace_recipe_is_as_exact_as_it_says(scale: Fraction, share: Fraction) -> None:
    recipe = recipe_of(DiscreteLaplace(scale))
    u = int(share * recipe.t)
    assert u * recipe.rate < 2**62
    assert abs(Fraction(u * recipe.rate >> 11, 2**44) - u / scale) < Fraction(1, 2**40)


@compiles
@given(values=st.lists(sigma2s | scales, min_size=1, max_size=20))
def test_recipes_in_machine_words_are_those_of_whole_numbers(values: list[Fraction]) -> None:
    rows = recipes_of(DiscreteGaussian, values)
    assert [Recipe(*row) for row in rows.tolist()] == [
        recipe_of(DiscreteGaussian(value)) for value in values
    ]
    values = [min(value, Fraction(10**4)) for value in values]
    rows = recipes_of(DiscreteLaplace, values)
    assert [Recipe(*row) for row in rows.tolist()] == [
        recipe_of(DiscreteLaplace(value)) for value in values
    ]


def test_a_fraction_too_long_for_a_word_is_worked_all_the_same() -> None:
    rows = recipes_of(DiscreteGaussian, [Fraction(1), HUGE, Fraction(2**63, 10**12)])
    assert Recipe(*rows[1].tolist()) == recipe_of(DiscreteGaussian(HUGE))


@pytest.mark.parametrize(
    "value",
    [Fraction(0), Fraction(-1), Fraction(1, 101), Fraction(10**8 + 1), Fraction(10**30, 7)],
)
@pytest.mark.parametrize("others", [[Fraction(1)], [HUGE]], ids=["words", "any-size"])
def test_parameters_outside_the_range_are_refused(value: Fraction, others: list[Fraction]) -> None:
    for kind in (DiscreteGaussian, DiscreteLaplace):
        with pytest.raises(BadInput, match="1/100"):
            recipes_of(kind, [*others, value])
    edges = [Fraction(1, 100), Fraction(10**4)]
    assert len(recipes_of(DiscreteLaplace, edges)) == 2


# --- coins --------------------------------------------------------------------------------------


def near(chance: int, width: int, offset: int) -> list[int]:
    """Return the pieces of a fraction close to the first bits of a chance."""
    bits = min(max(chance + offset, 0), 2**width - 1)
    return [bits >> 16 * (width // 16 - 1 - k) & 0xFFFF for k in range(width // 16)]


@compiles
@given(
    y=st.fractions(0, 45, max_denominator=10**9),
    error=st.integers(-(2**22) + 2**7, 2**22 - 2**7),
    offset=st.integers(-3, 3),
    width=st.sampled_from([16, 32, 48]),
)
@example(y=Fraction(0), error=0, offset=0, width=16)
def test_a_coin_in_machine_words_does_as_the_exact_coin_or_says_so(
    y: Fraction, error: int, offset: int, width: int
) -> None:
    """With any error in the chance that the bound allows, on tapes close to the chance."""
    pieces = [*near(first_bits(y, width), width, offset), *[7] * 8]
    fixed = exp_fixed(int(y * 2**44), exponentials()) + error
    outcome, cursor = toss_fixed(tape_of(pieces), 0, len(pieces), fixed)
    assert outcome in (0, 1, COIN_UNKNOWN)
    if outcome != COIN_UNKNOWN:
        rest = iter(pieces)
        assert toss(y, rest) == bool(outcome)
        assert len(list(rest)) == len(pieces) - cursor


@compiles
@given(y=st.fractions(0, 20, max_denominator=1000), bits=st.integers(0, 2**16 - 1))
def test_a_coin_is_seldom_unknown(y: Fraction, bits: int) -> None:
    """Only where the first sixteen bits are those of the chance, or next to them."""
    chance = exp_fixed(int(y * 2**44), exponentials())
    outcome, _ = toss_fixed(tape_of([bits, 30_000]), 0, 2, chance)
    assert outcome != COIN_UNKNOWN or abs(bits - first_bits(y, 16)) <= 1


def test_a_coin_waits_at_the_end_of_the_tape() -> None:
    half = 1 << 61
    assert toss_fixed(tape_of([0]), 1, 1, half) == (COIN_ENDED, 1)
    assert toss_fixed(tape_of([32_768]), 0, 1, half + 2**45) == (COIN_ENDED, 0)
    assert toss_fixed(tape_of([32_768, 0]), 0, 2, half + 2**45) == (1, 2)


@pytest.mark.parametrize("y", [Fraction(1, 2), Fraction(1), Fraction(7, 3)], ids=str)
def test_pieces_below_the_first_bits_of_the_chance_succeed_and_those_above_fail(
    y: Fraction,
) -> None:
    """So that of 2^16 pieces exactly the whole part of 2^16 exp(-y) succeed, and one is open."""
    own = first_bits(y, 16)
    low, high = exp_minus(y, 16)
    assert low <= own < high
    for bits in {0, 1, own - 1, own + 1, 2**16 - 1, *range(5, 2**16, 4099)}:
        assert toss(y, iter([bits])) == (bits < own)
    with pytest.raises(StopIteration):
        toss(y, iter([own]))


# --- whole draws --------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ALL, ids=name)
def test_draws_in_machine_words_are_those_of_the_definition(law: Law) -> None:
    """Also for elements that need several helpings of words."""
    shares, count = Shares(trial(3), "x", 7, start=11), 400
    index = np.zeros(count, dtype=np.int64)
    drawn = draw_by_rejection(shares, type(law), [parameter(law)], index)
    assert drawn.tolist() == [draw_exactly(law, share_of(shares, i)) for i in range(count)]


def test_batches_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    values, index = [law.sigma2 for law in ALL if isinstance(law, DiscreteGaussian)], np.arange(999)
    shares, index = Shares(trial(3), "x", 7), index % len(values)
    whole = draw_by_rejection(shares, DiscreteGaussian, values, index)
    monkeypatch.setattr(rejection, "_BATCH", 100)
    assert np.array_equal(draw_by_rejection(shares, DiscreteGaussian, values, index), whole)


SUCCESS, FAILURE = 0, 0xFFFF
ANY = 12_345
TIE = first_bits(Fraction(1), 32)


def draw_written(law: Law, start: list[int]) -> tuple[int, int]:
    """Return the draw from a tape that begins with these pieces, and the definition's."""
    rest = islice(cycle([ANY, SUCCESS, FAILURE, 1, 40_000, 3]), 400)
    words = tape_of([*start, *rest])

    def word(purpose: str, at: int) -> int:
        return int(words[WORDS * int(purpose.rsplit("/", 1)[1]) + at])

    shares = Shares(Written(word), "x", 0)
    drawn = draw_by_rejection(shares, type(law), [parameter(law)], np.zeros(1, dtype=np.int64))
    return int(drawn[0]), draw_exactly(law, pieces_of(words))


@pytest.mark.parametrize(
    ("sigma2", "start"),
    [
        pytest.param(Fraction(1, 2), [ANY, 0xFFFF], id="a coin of chance 1"),
        pytest.param(Fraction(500), [ANY, SUCCESS, TIE >> 16, TIE & 0xFFFF], id="32 equal bits"),
        pytest.param(Fraction(2), [ANY, *[SUCCESS] * 90, FAILURE, 0], id="a proposal far out"),
    ],
)
def test_an_undecided_element_is_drawn_by_the_definition_on_its_own_tape(
    monkeypatch: pytest.MonkeyPatch, sigma2: Fraction, start: list[int]
) -> None:
    """Tapes written so that machine words cannot know what the exact coin would do."""
    asked = []
    monkeypatch.setattr(
        rejection, "draw_exactly", lambda law, tape: asked.append(law) or draw_exactly(law, tape)
    )
    drawn, true = draw_written(DiscreteGaussian(sigma2), start)
    assert drawn == true
    assert len(asked) == 1


def test_a_laplace_draw_may_lie_any_number_of_scales_out() -> None:
    law = DiscreteLaplace(Fraction(7, 3))
    drawn, true = draw_written(law, [ANY, *[SUCCESS] * 90, FAILURE, 0])
    assert drawn == true >= 3 * 89


@pytest.mark.parametrize("law", LAWS[:4], ids=name)
def test_no_bits_are_read_twice(law: Law) -> None:
    source = trial(5)
    tape = Written(lambda purpose, at: int(Shares(source, purpose, 0, at).run("", 1, 1)[0]))
    draw_by_rejection(
        Shares(tape, "x", 0), type(law), [parameter(law)], np.zeros(200, dtype=np.int64)
    )
    assert len(set(tape.read)) == len(tape.read)
