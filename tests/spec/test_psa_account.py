"""All figures of swapping at once, as commands show them."""

from __future__ import annotations

import json
from fractions import Fraction
from math import log

import pytest

from discreet.spec import psa


def test_the_account_of_massachusetts_1940() -> None:
    told = psa.account(264_331, Fraction(1, 100))
    assert told.epsilon == pytest.approx(17.0801, abs=5e-5)
    assert told.epsilon_sharpened == pytest.approx(17.0801, abs=5e-5)
    assert told.epsilon_sharpened < told.epsilon
    assert told.rho2 == pytest.approx(told.epsilon / 2)
    assert told.rho2_loose == pytest.approx(145.8646, abs=5e-5)
    assert told.minimum_epsilon == pytest.approx(log(264_332) / 2)
    assert told.best_rate == pytest.approx(0.998059, abs=1e-6)
    assert told.moved_share == pytest.approx(0.01)
    data = json.loads(json.dumps(told.as_data()))
    assert data["epsilon"] == told.epsilon
    assert data["epsilon_exact"] == "ln(26168868)"
    assert float(Fraction(data["rho2_upper"])) >= told.rho2
    assert {"epsilon_sharpened", "rho2", "minimum_epsilon", "best_rate"} <= data.keys()


def test_infinite_figures_are_null_in_files() -> None:
    data = psa.account(5, Fraction(1)).as_data()
    assert data["epsilon"] is data["rho2"] is data["rho2_upper"] is None
    assert data["epsilon_exact"] == "infinite"


def test_a_census_without_strata_to_swap_is_free() -> None:
    told = psa.account(0, Fraction(1, 2))
    assert (told.epsilon, told.epsilon_sharpened, told.rho2, told.moved_share) == (0, 0, 0, 0)
    assert psa.invert(0, 1.0).rates == (0.0, 1.0)


def test_the_inversion_tells_both_rates_and_what_they_move() -> None:
    told = psa.invert(10, 3)
    assert told.rates == pytest.approx((0.35386, 0.95257), abs=1e-5)
    for rate, share in zip(told.rates, told.moved_shares, strict=True):
        assert share == pytest.approx(psa.moved_probability(10, Fraction(rate)))
    for one in (told.low, told.high):
        assert one.epsilon == pytest.approx(3)
    text = "\n".join(told.describe())
    assert "35.38" in text
    assert "95.25" in text
    assert "not more private" in text
    assert told.as_data()["rates"] == list(told.rates)
    with pytest.raises(psa.BudgetTooSmall):
        psa.invert(10, 1)


def test_rates_too_near_to_0_or_1_are_not_told_as_0_and_1() -> None:
    for epsilon in (36.5, 40.0, 800.0):
        told = psa.invert(10, epsilon)
        assert 0 < told.rates[0] < told.rates[1] < 1
        assert max(told.low.epsilon, told.high.epsilon) <= epsilon + 1e-9
        text = "\n".join(told.describe())
        assert "too near to 1 to be told exactly" in text
        assert "rate 0.0000%" not in text
        assert "rate 100.0000%" not in text
        assert told.as_data()["notes"] == told.notes
    assert len(psa.invert(10, 800.0).notes) == 2
    assert psa.invert(10, 3).notes == []


def test_one_rate_is_told_once() -> None:
    text = psa.invert(10, psa.minimum_epsilon(10)).describe()
    assert sum(line.startswith("rate ") for line in text) == 1
    assert "at one rate only" in text[0]


def test_without_a_stratum_there_is_nothing_to_choose() -> None:
    (text,) = psa.invert(0, 1.0).describe()
    assert "Every rate has epsilon 0" in text
    assert "two rates" not in text


def test_infinite_bounds_are_upper_limits_only() -> None:
    told = psa.account(10, Fraction(1))
    assert "the exact loss may be finite" in "\n".join(told.describe())
    assert told.as_data()["notes"]
    assert psa.account(10, Fraction(1, 2)).notes == []


def test_shown_budgets_are_rounded_up() -> None:
    """ln of 13,475,624 times 19 is 19.360842: catalog and account show the same number."""
    told = psa.account(13_475_623, "0.05")
    assert "epsilon 19.3609 (published" in told.describe()[1]
    assert "certifies for this stratum is 1.1990" in psa.account(10, "0.05").describe()[4]


def test_the_words_say_what_a_budget_is_given() -> None:
    text = "\n".join(psa.account(10, Fraction(1, 20)).describe())
    for word in ("published", "ours, proved here", "exact publication", "universe", "rho^2"):
        assert word in text
