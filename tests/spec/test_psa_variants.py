"""Uniform shuffle, Mallows swapping, and what happens without vacuous swaps."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb, inf, log

import pytest

from discreet.errors import BadInput
from discreet.spec import psa
from strata import law_by_algorithm, law_by_permutations, loss_of

MARGINS = [
    ([1, 1], [1, 1]),
    ([2, 1], [1, 1, 1]),
    ([2, 2], [2, 2]),
    ([2, 1, 1], [2, 1, 1]),
    ([1, 1, 1, 1], [1, 1, 1, 1]),
    ([2, 2, 1], [3, 2]),
    ([1, 1, 1, 1, 1], [1, 1, 1, 1, 1]),
    ([5, 5], [5, 5]),
]
RATES = [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)]


@pytest.mark.parametrize("n", [0, 1, 2, 5, 12])
@pytest.mark.parametrize("p", [Fraction(0), *RATES, Fraction(1)], ids=str)
def test_weights_sum_to_one(n: int, p: Fraction) -> None:
    numbers = psa.derangement_numbers(n)
    for weights in (psa.shuffle_weights(n, p), psa.mallows_weights(n, p or Fraction(1, 7))):
        assert sum(comb(n, k) * numbers[k] * w for k, w in enumerate(weights)) == 1


# -- uniform shuffle -----------------------------------------------------------------------------


@pytest.mark.parametrize("margins", MARGINS, ids=str)
@pytest.mark.parametrize("p", RATES, ids=str)
def test_the_shuffle_stays_below_its_budget(
    margins: tuple[list[int], list[int]], p: Fraction
) -> None:
    n = sum(margins[0])
    loss = psa.weighted_loss(*margins, psa.shuffle_weights(n, p)).amount
    budget = psa.shuffle_budget(n, p)
    assert not budget < loss
    if max(margins[0] + margins[1]) == 1:  # n = 2, 4, 5: attained exactly
        assert loss.ratio == budget.ratio


@pytest.mark.parametrize("b", [2, 3, 4, 5, 10, 40])
def test_the_budget_of_the_shuffle_is_the_widest_ratio_of_weights(b: int) -> None:
    for p in RATES:
        logs = [log(weight) for weight in psa.shuffle_weights(b, p)]
        moved = [0, *range(2, b + 1)]
        widest = max(abs(logs[j] - logs[k]) / max(2, k - j) for j, k in combinations(moved, 2))
        if b == 3:  # nobody moves alone: the ratio that gives the bound has no permutations
            assert widest < psa.shuffle_budget(b, p).value
        else:
            assert psa.shuffle_budget(b, p).value == pytest.approx(widest, abs=1e-12)


def test_the_shuffle_has_one_rate_for_each_budget_and_no_floor() -> None:
    for b in (2, 10, 264_331):
        for epsilon in (1e-3, 0.5, 3.0, 17.0, 250.0):
            rate = psa.shuffle_rate_for(epsilon, b)
            back = psa.shuffle_budget(b, Fraction(rate)).value
            assert back == pytest.approx(epsilon, rel=1e-6)
        assert psa.shuffle_budget(b, Fraction(1)).value == 0
    assert psa.shuffle_rate_for(0, 10) == 1
    assert psa.shuffle_budget(10, Fraction(0)).value == inf
    assert psa.shuffle_budget(0, Fraction(1, 2)).value == psa.shuffle_rate_for(1, 0) == 0


def test_the_shuffle_beats_theorem_1_and_crosses_the_sharpened_bound() -> None:
    for b in (10, 1000, 264_331):
        low = Fraction(1, 20)
        assert psa.sharpened(b, low) < psa.shuffle_budget(b, low) < psa.theorem_1(b, low)
    for percent, better in ((75, False), (78, False), (80, True), (95, True)):
        p = Fraction(percent, 100)
        assert (psa.shuffle_budget(10, p) < psa.sharpened(10, p)) == better


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("p", [*RATES, Fraction(1)], ids=str)
def test_moved_shares_are_those_of_the_weights(n: int, p: Fraction) -> None:
    numbers = psa.derangement_numbers(n)

    def share(weights: list[Fraction]) -> float:
        return float(sum(k * comb(n, k) * numbers[k] * w for k, w in enumerate(weights)) / n)

    assert psa.shuffle_moved_share(n, p) == pytest.approx(share(psa.shuffle_weights(n, p)))
    theta = -log(p)
    assert psa.mallows_moved_share(n, theta) == pytest.approx(share(psa.mallows_weights(n, p)))


# -- Mallows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("margins", MARGINS, ids=str)
@pytest.mark.parametrize("t", [Fraction(1, 50), Fraction(1, 2), Fraction(1)], ids=str)
def test_mallows_never_loses_more_than_theta(
    margins: tuple[list[int], list[int]], t: Fraction
) -> None:
    n = sum(margins[0])
    loss = psa.weighted_loss(*margins, psa.mallows_weights(n, t)).amount
    assert not psa.mallows_budget(t) < loss
    if max(margins[0] + margins[1]) == 1:
        assert loss.ratio == psa.mallows_budget(t).ratio ** loss.root


@pytest.mark.parametrize(
    ("n", "share", "theta"),
    [
        (264_331, 0.01, 12.47),
        (264_331, 0.5, 11.79),
        (3_650_000, 0.04, 15.07),
        (3_650_000, 0.02, 15.09),
    ],
)
def test_mallows_at_the_rates_of_the_papers(n: int, share: float, theta: float) -> None:
    found = psa.mallows_theta_for(n, share)
    assert found == pytest.approx(theta, abs=0.005)
    assert found == pytest.approx(log(n * (1 - share)), abs=1e-4)
    assert psa.mallows_moved_share(n, found) == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize("n", [2, 10, 1000])
def test_theta_and_share_are_inverse(n: int) -> None:
    for share in (1e-6, 0.01, 0.3, (n - 1) / n):
        theta = psa.mallows_theta_for(n, share)
        assert psa.mallows_moved_share(n, theta) == pytest.approx(share, rel=1e-6)
    shares = [psa.mallows_moved_share(n, theta / 4) for theta in range(200)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == (n - 1) / n
    # The two ways to compute it meet.
    near = log(2 * n)
    before, after = (psa.mallows_moved_share(n, near + step) for step in (-1e-9, 1e-9))
    assert before == pytest.approx(after, rel=1e-6)


def test_impossible_arguments_are_refused() -> None:
    for call in (
        lambda: psa.mallows_weights(3, Fraction(0)),
        lambda: psa.mallows_budget(Fraction(2)),
        lambda: psa.mallows_moved_share(3, -1.0),
        lambda: psa.mallows_theta_for(2, 0.6),
        lambda: psa.mallows_theta_for(1, 0.5),
        lambda: psa.shuffle_rate_for(-1, 5),
        lambda: psa.shuffle_weights(3, Fraction(2)),
    ):
        with pytest.raises(BadInput):
            call()


def test_laws_of_variants_are_the_enumerated_ones() -> None:
    x = ((2, 0), (1, 1))
    for weights in (psa.shuffle_weights(4, RATES[0]), psa.mallows_weights(4, RATES[1])):
        assert psa.weighted_law(x, weights) == law_by_permutations(x, weights)


# -- vacuous swaps -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("margin", "p", "loss"),
    [
        ((2, 1), "0.9", 3.3961),
        ((2, 2), "0.9", 4.3830),
        ((3, 3), "0.5", 1.7853),
        ((3, 3), "0.9", 6.8044),
    ],
)
def test_prohibiting_vacuous_swaps_breaks_the_budget(
    margin: tuple[int, int], p: str, loss: float
) -> None:
    """Excluding permutations that change nothing raises the loss, even above Theorem 1."""
    rate = Fraction(p)
    found = loss_of(margin, margin, lambda x: law_by_algorithm(x, rate, vacuous=False))
    assert found == pytest.approx(loss, abs=5e-5)
    assert found > psa.exact_loss(margin, margin, rate).value
    if rate > Fraction(1, 2):
        assert found > psa.theorem_1(sum(margin), rate).value
