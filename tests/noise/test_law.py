"""Laws: every bound against sums of decimal exponentials and against closed forms."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import BadInput
from discreet.noise import DiscreteGaussian, DiscreteLaplace
from discreet.noise.exponential import Enclosure, exp_minus, power
from noise.oracle import LAPLACES, LAWS, Law, decimal, edges, name, probabilities

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
EXTREMES: list[Law] = [
    DiscreteGaussian(Fraction(1, 100)),
    DiscreteGaussian(Fraction(10**8)),
    DiscreteLaplace(Fraction(1, 100)),
    DiscreteLaplace(Fraction(10**4)),
]
TINY = Fraction(1, 10**100)  # the oracle's error is smaller


def exp_of(x: Fraction) -> Fraction:
    """Return exp(-x) to 150 digits."""
    with localcontext() as context:
        context.prec = 150
        return Fraction((-decimal(x)).exp())


@given(
    x=st.fractions(min_value=0, max_value=20_000, max_denominator=10**15),
    bits=st.integers(1, 300),
)
def test_exponentials_are_enclosed_within_two_units(x: Fraction, bits: int) -> None:
    low, high = exp_minus(x, bits)
    true, error = exp_of(x) * 2**bits, Fraction(2**bits, 10**140)
    assert low <= true + error
    assert high >= true - error
    assert high - low <= 2


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 10**30), Fraction(10**30)])
def test_extreme_arguments(x: Fraction) -> None:
    low, high = exp_minus(x, 64)
    assert (low, high) == (2**64, 2**64) if x == 0 else low <= high <= 2**64
    assert x < 10**20 or low == 0


@given(base=st.fractions(0, 1, max_denominator=10**6), exponent=st.integers(0, 3000))
def test_powers_are_enclosed(base: Fraction, exponent: int) -> None:
    bits = 100
    scaled = base * 2**bits
    low, high = power(Enclosure(int(scaled), -int(-scaled // 1)), exponent, bits)
    assert low <= base**exponent * 2**bits <= high
    assert high - low < 2**16


@pytest.mark.parametrize("law", LAWS, ids=name)
@pytest.mark.parametrize("bits", [8, 62, 144])
def test_every_edge_is_enclosed_and_the_ladder_reaches_the_last_unit(law: Law, bits: int) -> None:
    ladder = law.ladder(bits)
    unit = Fraction(1, 2**bits)
    for low, true in zip(ladder.low, edges(law), strict=False):
        assert low * unit <= true + TINY
        assert true - TINY <= (low + ladder.slack) * unit
    assert ladder.slack <= 4
    assert 1 - edges(law)[len(ladder.low) - 1] < unit
    assert all(a <= b for a, b in pairwise(ladder.low))


@pytest.mark.parametrize("law", EXTREMES, ids=name)
def test_ladders_are_narrow_at_both_ends_of_the_range(law: Law) -> None:
    ladder = law.ladder(62)
    assert ladder.slack <= 4
    assert ladder.low[-1] + ladder.slack >= 2**62 - 1
    zero = law.probability(0)
    assert zero.lower <= Fraction(ladder.low[0] + ladder.slack, 2**62)
    assert zero.upper >= Fraction(ladder.low[0], 2**62)


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_probabilities_and_tails_are_enclosed(law: Law) -> None:
    mass = probabilities(law)
    for x in (0, 1, 2, min(40, len(mass) - 1)):
        for bound, true in [
            (law.probability(x, 200), mass[x]),
            (law.probability(-x, 200), mass[x]),
            *([(law.tail(x, 200), sum(mass[x:]))] if x else []),
        ]:
            assert bound.lower <= true + TINY
            assert bound.upper >= true - TINY
            assert bound.upper - bound.lower <= Fraction(1, 2**200)


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_variances_are_enclosed(law: Law) -> None:
    true = 2 * sum(x * x * p for x, p in enumerate(probabilities(law)))
    bound = law.variance(80)
    assert bound.lower - TINY <= true <= bound.upper + Fraction(1, 10**90)
    assert bound.upper - bound.lower <= Fraction(1, 2**80)


@pytest.mark.parametrize("law", [*LAPLACES, *EXTREMES[2:]], ids=name)
def test_laplace_laws_have_their_closed_forms(law: DiscreteLaplace) -> None:
    a = exp_of(1 / law.scale)
    error = Fraction(1, 2**60)
    for bound, true in [
        (law.probability(0), (1 - a) / (1 + a)),
        (law.tail(3), a**3 / (1 + a)),
        (law.variance(), 2 * a / (1 - a) ** 2),
    ]:
        assert bound.lower - error <= true <= bound.upper + error
        assert bound.upper - bound.lower <= Fraction(1, 2**64)


def test_a_wide_gaussian_meets_poissons_summation() -> None:
    """For large sigma2, total = sqrt(2 pi sigma2) (1 + 2 exp(-2 pi^2 sigma2) + ...)."""
    law = EXTREMES[1]
    with localcontext() as context:
        context.prec = 70
        zero = Fraction(1 / (2 * PI * 10**8).sqrt())
    bound = law.probability(0)
    assert bound.lower <= zero + Fraction(1, 10**60)
    assert bound.upper >= zero - Fraction(1, 10**60)
    assert bound.upper - bound.lower < Fraction(1, 2**64)
    variance = law.variance()
    assert variance.lower <= 10**8 <= variance.upper
    assert variance.upper - variance.lower <= Fraction(1, 2**64)


def test_the_variance_of_a_narrow_gaussian_is_not_sigma2() -> None:
    assert [round(float(law.variance()), 6) for law in LAWS[:4]] == [
        0.013297,
        0.321188,
        1.0,
        1.209192,
    ]
    assert DiscreteGaussian(Fraction(1)).variance().upper < 1


@pytest.mark.parametrize("law", LAWS, ids=name)
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(9, 10), 1 - Fraction(1, 10**30)])
def test_margins_are_the_least_that_hold(law: Law, confidence: Fraction) -> None:
    m = law.margin(confidence)
    inside = edges(law)[::2]  # P(|X| <= 0), P(|X| <= 1), ...
    assert inside[m] >= confidence
    assert m == 0 or inside[m - 1] < confidence


@pytest.mark.parametrize("value", [Fraction(0), Fraction(-1), Fraction(1, 101), Fraction(10**9)])
def test_parameters_outside_the_range_are_refused(value: Fraction) -> None:
    with pytest.raises(BadInput, match="1/100"):
        DiscreteGaussian(value)
    with pytest.raises(BadInput, match="1/100"):
        DiscreteLaplace(value)


def test_questions_without_an_answer_are_refused() -> None:
    with pytest.raises(BadInput, match="above 0"):
        LAWS[0].tail(0)
    with pytest.raises(BadInput, match="between 0 and 1"):
        LAWS[0].margin(Fraction(1))
