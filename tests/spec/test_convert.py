"""Conversions agree with the published figures, round up, and go one way only."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.spec import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    Exactly,
    FunctionOfUniverse,
    InputPremetric,
    LogRational,
    NoConversion,
    NoFiniteBudget,
    OutputPremetric,
    approximate,
    concentrated_to_approximate,
    convert,
    hamming_of_multisets,
    neighbours,
    pure_to_concentrated,
)
from discreet.spec import divergences as laws
from discreet.spec.convert import (
    concentrated_to_total_variation,
    gaussian_to_approximate,
    pure_to_total_variation,
    renyi_to_approximate,
)
from discreet.spec.numbers import exp_up, log_up, root_up, tanh_up
from promises import concentrated, promise, pure

DELTA = Fraction(1, 10**10)
TOTAL_VARIATION = OutputPremetric(name="total-variation")
GAUSSIAN = OutputPremetric(name="gaussian")
PERSONS = hamming_of_multisets("person")


@pytest.mark.parametrize(
    ("rho2", "published", "tight"),
    [
        ("0.07", 2.609, 2.387),
        ("2.56", 17.915, 17.158),
        ("2.63", 18.194, 17.431),
        ("7.70", 34.331, None),
        ("4.96", 26.334, None),
        ("15.29", 52.817, 51.563),
        ("55.371", 126.784, 125.072),
        ("221.484", 364.311, 362.030),
    ],
)
def test_concentrated_to_approximate_at_the_delta_of_2020(rho2, published, tight):
    """Bun and Steinke (2016), Proposition 1.3; Canonne, Kamath and Steinke (2020), Cor. 13."""
    found = concentrated_to_approximate(Fraction(rho2), DELTA)
    assert float(found.amount) == pytest.approx(published, abs=6e-4)
    better = concentrated_to_approximate(Fraction(rho2), DELTA, "tight")
    assert better.amount < found.amount
    assert found.status == better.status == "published"
    if tight is not None:
        assert float(better.amount) == pytest.approx(tight, abs=6e-4)


@settings(max_examples=50, deadline=None)
@given(
    st.fractions(Fraction(1, 100), 50, max_denominator=100),
    st.integers(2, 12).map(lambda k: Fraction(1, 10**k)),
)
def test_the_better_bound_covers_normal_noise_and_stays_below_the_published_one(rho2, delta):
    """Noise N(0, 1) moved by mu has rho^2 = mu^2 / 2: what it needs is no more than promised."""
    tight = concentrated_to_approximate(rho2, delta, "tight").amount
    needed = gaussian_to_approximate(2 * rho2, delta).amount
    assert needed * (1 - Fraction(1, 10**6)) <= tight
    assert tight <= concentrated_to_approximate(rho2, delta).amount


@pytest.mark.parametrize("ratio", [2, 3, 10, 1000])
def test_pure_to_concentrated_is_attained_by_randomised_response(ratio):
    epsilon = LogRational(of=ratio).upper_bound()
    yes = Fraction(ratio, 1 + ratio)
    p, q = {0: yes, 1: 1 - yes}, {0: 1 - yes, 1: yes}
    found = laws.distance("normalised-renyi", p, q).bounds
    tight = pure_to_concentrated(epsilon, "tight").amount
    assert math.sqrt(tight) == pytest.approx(found.upper, rel=1e-6)
    assert found.lower**2 <= float(tight) * (1 + 1e-12)
    assert tight <= pure_to_concentrated(epsilon).amount == epsilon * epsilon / 2
    variation = laws.distance("total-variation", p, q).exact
    assert float(pure_to_total_variation(epsilon).amount) == pytest.approx(float(variation))


@pytest.mark.parametrize(("epsilon", "rho2"), [("18.2883", 9.14), ("19.0021", 9.50)])
def test_the_smallest_distance_of_swapping_is_two(epsilon, rho2):
    """(epsilon/2) tanh(epsilon) instead of epsilon^2/2: 9.14 to 9.50 instead of 167 to 181."""
    told = promise(Exactly(of=epsilon), output=MULTIPLICATIVE)
    close = convert(told, NORMALISED_RENYI, "tight", distance=2)
    value = float(Fraction(epsilon))
    assert close.budget.amount.value() == pytest.approx(value / 2 * math.tanh(value))
    assert close.budget.amount.value() == pytest.approx(rho2, abs=5e-3)
    assert any("closer than 2" in text for text in close.budget.conditions)
    loose = convert(told, NORMALISED_RENYI)
    assert loose.budget.amount.value() == pytest.approx(value**2 / 2)
    assert convert(told, NORMALISED_RENYI, distance=2).budget.amount == loose.budget.amount


@given(st.fractions(Fraction(1, 100), 20, max_denominator=100), st.integers(1, 9))
def test_the_smallest_distance_decides(epsilon, distance):
    """phi(epsilon d)/d falls with d, so at no larger distance is more needed."""
    at_most = convert(
        promise(Exactly(of=epsilon), output=MULTIPLICATIVE), NORMALISED_RENYI, "tight"
    )
    per_step = at_most.budget.amount.upper_bound()
    here = pure_to_concentrated(epsilon * distance, "tight").amount
    assert here <= per_step * distance**2


def test_approximate_promises_hold_for_neighbours_at_the_stated_distance():
    told = concentrated("2.56")
    near = convert(told, approximate(DELTA))
    assert near.input_premetric == neighbours(PERSONS)
    farther = convert(told, approximate(DELTA), distance=3)
    assert farther.input_premetric == neighbours(PERSONS, 3)
    expected = concentrated_to_approximate(Fraction("2.56") * 9, DELTA).amount
    assert farther.budget.amount == Exactly(of=expected)
    assert "up to 3 apart" in farther.budget.conditions[-1]
    again = convert(concentrated(1, premetric=neighbours(PERSONS)), approximate(DELTA))
    assert again.input_premetric == neighbours(PERSONS)


def test_a_pure_promise_holds_at_every_delta_and_distance():
    told = convert(pure(3), approximate(DELTA))
    assert told.budget.amount == LogRational(of=3)
    assert told.input_premetric == PERSONS


def test_the_other_conversions():
    order, delta = Fraction(11), Fraction(1, 1000)
    assert float(renyi_to_approximate(Fraction(1), order, delta).amount) == pytest.approx(
        1 + math.log(1000) / 10
    )
    assert float(concentrated_to_total_variation(Fraction(1, 2)).amount) == pytest.approx(0.5)
    assert concentrated_to_total_variation(Fraction(50)).amount == 1
    mu = promise(Exactly(of=9), output=GAUSSIAN)
    assert convert(mu, NORMALISED_RENYI).budget.amount == Exactly(of="9/2")
    told = convert(
        promise(Exactly(of=1), output=OutputPremetric(name="renyi", order=11)), approximate(delta)
    )
    assert told.budget.amount.value() == pytest.approx(1 + math.log(1000) / 10)


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0, 5.5])
def test_gaussian_privacy_agrees_with_its_profile(mu):
    """delta = Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu): Dong, Roth and Su (2022), Cor. 1."""
    delta = 1e-6
    epsilon = float(gaussian_to_approximate(Fraction(mu) ** 2, Fraction(1, 10**6)).amount)

    def phi(x):
        return math.erfc(-x / math.sqrt(2)) / 2

    left, right = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    found = phi(left) - math.exp(epsilon) * phi(right)
    assert found == pytest.approx(delta, rel=1e-5)
    assert found <= delta * (1 + 1e-9)


def test_no_loss_stays_none():
    assert convert(concentrated(0), approximate(DELTA)).budget.amount == Exactly(of=0)
    assert convert(pure(1), NORMALISED_RENYI).budget.amount == Exactly(of=0)
    assert gaussian_to_approximate(Fraction(0), DELTA).amount == 0


def test_a_conversion_to_itself_changes_nothing():
    assert convert(pure(3), MULTIPLICATIVE) == pure(3)


def test_the_weaker_status_and_both_sources_stay():
    told = promise(LogRational(of=3), status="checked numerically")
    done = convert(told, NORMALISED_RENYI).budget
    assert done.status == "checked numerically"
    assert done.source.startswith("somebody; Bun and Steinke")


@pytest.mark.parametrize(
    ("told", "to"),
    [
        (concentrated(1), MULTIPLICATIVE),
        (promise(Exactly(of=1), output=approximate("1/9")), NORMALISED_RENYI),
        (promise(Exactly(of=1), output=approximate("1/9")), MULTIPLICATIVE),
        (promise(Exactly(of="1/2"), output=TOTAL_VARIATION), MULTIPLICATIVE),
        (concentrated(1), GAUSSIAN),
    ],
)
def test_there_is_no_way_back(told, to):
    with pytest.raises(NoConversion, match="nothing finite follows"):
        convert(told, to)


def test_refusals_say_why():
    unknown = promise(FunctionOfUniverse(formula="ln b"), output=MULTIPLICATIVE)
    with pytest.raises(NoConversion, match="facts"):
        convert(unknown, NORMALISED_RENYI)
    nothing = promise(NoFiniteBudget(reason="pairs"), output=MULTIPLICATIVE)
    with pytest.raises(NoConversion, match="pairs"):
        convert(nothing, NORMALISED_RENYI)
    with pytest.raises(NoConversion, match="positive whole number"):
        convert(pure(3), NORMALISED_RENYI, distance=0)
    close = InputPremetric(name="values", unit="person", detail="metres")
    assert convert(pure(3, premetric=close), NORMALISED_RENYI)
    for to, method in ((NORMALISED_RENYI, "tight"), (TOTAL_VARIATION, "published")):
        with pytest.raises(NoConversion, match="whole numbers"):
            convert(pure(3, premetric=close), to, method)


@given(st.fractions(Fraction(1, 10**6), 500, max_denominator=10**6))
def test_functions_round_up_and_little(x):
    assert root_up(x) ** 2 >= x
    assert float(root_up(x)) == pytest.approx(math.sqrt(x))
    assert float(exp_up(x)) == pytest.approx(math.exp(x))
    assert float(tanh_up(x)) == pytest.approx(math.tanh(x))
    assert tanh_up(x) <= 1
    assert float(log_up(1 + x)) == pytest.approx(math.log1p(x))
    # exp(ln(1 + x)) rounds up twice.
    assert exp_up(log_up(1 + x)) >= 1 + x
