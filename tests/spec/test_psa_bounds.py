"""Budgets of the Permutation Swapping Algorithm: published, sharpened, from below."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import exp, inf, log

import pytest

from discreet.errors import BadInput
from discreet.spec import psa
from strata import law_by_algorithm, loss_of

RATES = [Fraction(percent, 100) for percent in (1, 5, 20, 50, 75, 90, 99)]


# -- printed numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "printed"), [("0.01", 17.08), ("0.05", 15.43), ("0.10", 14.68), ("0.50", 12.48)]
)
def test_table_2_massachusetts_1940(rate: str, printed: float) -> None:
    assert round(psa.theorem_1(264_331, Fraction(rate)).value, 2) == printed


@pytest.mark.parametrize(
    ("b", "five", "fifty"),
    [
        (13_475_623, 19.36, 16.42),
        (3_948_028, 18.13, 15.19),
        (3_420_628, 17.99, 15.05),
        (939_185, 16.70, 13.75),
        (6_204, 11.68, 8.73),
        (4_549, 11.37, 8.42),
    ],
)
def test_table_5_counterfactual_2020(b: int, five: float, fifty: float) -> None:
    assert round(psa.theorem_1(b, Fraction(1, 20)).value, 2) == five
    assert round(psa.theorem_1(b, Fraction(1, 2)).value, 2) == fifty


def test_the_stand_in_for_2010() -> None:
    budgets = [psa.theorem_1(3_650_000, Fraction(rate)) for rate in ("0.02", "0.04")]
    assert [round(budget.value, 2) for budget in budgets] == [19.0, 18.29]
    assert [round(psa.rho2(budget.value), 2) for budget in budgets] == [9.50, 9.14]
    assert [round(psa.rho2_loose(budget.value)) for budget in budgets] == [181, 167]


def test_best_rates_in_the_text() -> None:
    assert round(psa.minimum_epsilon(10), 2) == 1.20
    assert round(psa.best_rate(10), 2) == 0.77
    assert round(psa.minimum_epsilon(10**6), 2) == 6.91
    assert round(psa.best_rate(10**6), 3) == 0.999
    low, high = psa.rates_for(3, 10)
    assert round(low, 3) == 0.354
    assert round(high, 5) == 0.95257  # printed as 95.2 %


# -- Theorem 1 and its inversion -----------------------------------------------------------------


def test_theorem_1_is_exact() -> None:
    assert psa.theorem_1(0, Fraction(1, 20)).ratio == 1
    assert psa.theorem_1(3_653_802, Fraction(1, 50)).ratio == 3_653_803 * 49
    assert psa.theorem_1(3, Fraction(9, 10)).ratio == 9
    assert psa.theorem_1(3, Fraction(0)).value == inf


def test_upper_bounds_are_above_and_close() -> None:
    for b, p in [(2, Fraction(1, 2)), (264_331, Fraction(1, 100)), (5, Fraction(9, 10))]:
        for amount in (psa.theorem_1(b, p), psa.sharpened(b, p)):
            above = amount.upper_bound()
            assert above is not None
            assert 0 <= float(above) - amount.value < 1e-14 * max(1, amount.value)
            assert above.denominator <= 10**15
    assert psa.theorem_1(2, Fraction(0)).upper_bound() is None
    assert psa.sharpened(2, Fraction(1, 2)).upper_bound() == 0


@pytest.mark.parametrize("b", [2, 3, 10, 3_653_802])
def test_the_best_rate_has_the_smallest_budget(b: int) -> None:
    best = psa.theorem_1(b, Fraction(psa.best_rate(b))).value
    assert best == pytest.approx(psa.minimum_epsilon(b))
    for nearby in (0.99, 1.01):
        odds = psa.best_rate(b) / (1 - psa.best_rate(b)) * nearby
        assert psa.theorem_1(b, Fraction(odds / (1 + odds))).value > best


@pytest.mark.parametrize("b", [2, 10, 3_653_802])
@pytest.mark.parametrize("p", [Fraction(1, 100), Fraction(1, 2), Fraction(99999, 100000)], ids=str)
def test_inversion_finds_the_rate_again(b: int, p: Fraction) -> None:
    low, high = psa.rates_for(psa.theorem_1(b, p).value, b)
    assert low <= high
    assert min(abs(low - float(p)), abs(high - float(p))) < 1e-12
    for rate in (low, high):
        assert psa.theorem_1(b, Fraction(rate)).value == pytest.approx(psa.theorem_1(b, p).value)


def test_inversion_refuses_what_theorem_1_cannot_certify() -> None:
    with pytest.raises(psa.BudgetTooSmall, match=r"1\.198948") as raised:
        psa.rates_for(1.1, 10)
    assert exp(2 * raised.value.smallest) == pytest.approx(11)
    with pytest.raises(BadInput):
        psa.rates_for(-1, 0)
    assert psa.rates_for(0.0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("p", [Fraction(1, 100), Fraction(1, 2), Fraction(9, 10)], ids=str)
@pytest.mark.parametrize("epsilon", [0.5, 1.25, 3.0, 12.5, 17.08])
def test_the_largest_stratum_for_a_budget(epsilon: float, p: Fraction) -> None:
    b = psa.largest_stratum_for(epsilon, p)
    if b:
        assert psa.theorem_1(b, p).value <= epsilon
    larger = max(b + 1, 2)
    assert psa.theorem_1(larger, p).value > epsilon


def test_the_largest_stratum_ignores_what_cannot_change() -> None:
    assert [psa.largest_stratum(s) for s in ([], [0, 1, 1], [1, 2], [7, 3])] == [0, 0, 2, 7]
    strata = [([9], [4, 5]), ([4, 5], [9, 0]), ([2, 1], [1, 2]), ([1], [1])]
    assert psa.largest_open_stratum(strata) == 3
    assert psa.largest_open_stratum(strata[:2]) == 0


# -- the sharpened bound -------------------------------------------------------------------------


@pytest.mark.parametrize("b", [*range(2, 40), 60, 100, 200])
def test_sharpened_bound_is_the_widest_ratio_of_weights(b: int) -> None:
    """Two tables at distance D >= 2 compare permutations whose moved counts differ by at most D."""
    logs = [log(number) if number else inf for number in psa.derangement_numbers(b)]
    for p in RATES:
        log_odds = log(p / (1 - p))
        weight = [k * log_odds - logs[k] for k in range(b + 1)]
        widest = max(
            abs(weight[j] - weight[k]) / max(2, k - j)
            for j, k in combinations([0, *range(2, b + 1)], 2)
        )
        assert widest <= psa.sharpened(b, p).value + 1e-9
        if b >= 4:
            two_step = (logs[b] - logs[b - 2]) / 2 - log_odds
            assert psa.sharpened(b, p).value == pytest.approx(max(log_odds, two_step), abs=1e-12)


@pytest.mark.parametrize("b", [2, 3, 4, 5, 10, 60, 264_331])
def test_the_best_sharpened_rate(b: int) -> None:
    best = psa.sharpened(b, Fraction(psa.sharpened_best_rate(b))).value
    assert best == pytest.approx(psa.sharpened_minimum(b), abs=1e-12)
    for nearby in (0.99, 1.01):
        odds = psa.sharpened_best_rate(b) / (1 - psa.sharpened_best_rate(b)) * nearby
        assert psa.sharpened(b, Fraction(odds / (1 + odds))).value > best
    assert psa.sharpened_minimum(10) == pytest.approx(1.12495, abs=5e-6)
    assert psa.sharpened_best_rate(10) == pytest.approx(0.7549, abs=5e-5)


@pytest.mark.parametrize("b", [4, 41, 42, 1000, 13_475_623])
@pytest.mark.parametrize("p", [Fraction(1, 50), Fraction(1, 2)], ids=str)
def test_sharpened_is_below_theorem_1_by_at_most_the_gap(b: int, p: Fraction) -> None:
    published, ours = psa.theorem_1(b, p), psa.sharpened(b, p)
    assert ours < published
    assert published.value - ours.value <= psa.gap(b) + 1e-14


# -- from below ----------------------------------------------------------------------------------


def test_the_gap_of_theorem_4() -> None:
    known = {2: 1.7502, 3: 1.0480, 4: 0.6554, 5: 0.4017, 6: 0.2738, 10: 0.148007, 20: 0.07444}
    for b, value in known.items():
        assert psa.gap(b) == pytest.approx(value, abs=5e-5)
    assert psa.gap(10) > 0.148
    gaps = [psa.gap(b) for b in [*range(2, 60), 10**6]]
    assert gaps == sorted(gaps, reverse=True)


def partitions(n: int) -> list[list[int]]:
    return [
        list(parts)
        for count in range(1, n + 1)
        for parts in combinations_with_replacement(range(1, n + 1), count)
        if sum(parts) == n
    ]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_margins_that_attain_the_lower_bounds(n: int) -> None:
    """Where the hypotheses hold, the loss equals the sharpened bound and is near Theorem 1."""
    p, attained = Fraction(1, 20), 0
    for holding, swapping in combinations_with_replacement(partitions(n), 2):
        if max(len(holding), len(swapping)) > 5:  # 720 tables: another test has them
            continue
        lower = psa.lower_bound(holding, swapping, p)
        loss = psa.exact_loss(holding, swapping, p).amount
        assert not loss < lower
        if psa.can_all_move(holding, swapping):
            attained += 1
            assert loss.value == pytest.approx(psa.sharpened(n, p).value, abs=1e-12)
            assert lower.value == pytest.approx(loss.value, abs=1e-12)
            assert psa.theorem_1(n, p).value <= lower.value + psa.gap(n)
    assert attained == {2: 1, 3: 0, 4: 1, 5: 1, 6: 3}[n]


@pytest.mark.parametrize("p", RATES, ids=str)
def test_all_distinct_strata_attain_the_bound_at_every_rate(p: Fraction) -> None:
    for n in (2, 3, 4, 5):
        ones = [1] * n
        loss = psa.exact_loss(ones, ones, p).amount
        bound = psa.sharpened(n, p)
        assert loss.ratio is not None
        assert bound.ratio is not None
        assert loss.ratio**bound.root == bound.ratio**loss.root
        if n != 3:
            assert psa.lower_bound(ones, ones, p).value == pytest.approx(bound.value, abs=1e-12)


def test_the_printed_hypotheses_are_not_enough() -> None:
    """Counts up to b/2 - 1 beside two single ones on both sides, and yet a smaller loss."""
    holding, swapping, p = [1, 1, 2, 2, 2], [1, 1, 3, 3], Fraction(1, 20)
    assert max(holding + swapping) <= sum(holding) / 2 - 1
    assert not psa.can_all_move(holding, swapping)
    claimed = psa.sharpened(8, p).value
    assert claimed == pytest.approx(4.956879, abs=1e-6)
    assert psa.exact_loss(holding, swapping, p).value == pytest.approx(4.642222, abs=1e-6)


def test_large_strata_with_many_values_attain_the_bound() -> None:
    holding, swapping, p = [1] * 500 + [3] * 200, [50] * 21 + [25, 23, 1, 1], Fraction(1, 20)
    assert psa.can_all_move(holding, swapping)
    difference = psa.sharpened(1100, p).value - psa.lower_bound(holding, swapping, p).value
    assert 0 <= difference < 1e-12


def test_edge_rates_from_below() -> None:
    assert psa.lower_bound([2, 1], [2, 1], Fraction(0)).value == inf
    assert psa.lower_bound([1, 1, 1], [1, 1, 1], Fraction(1)).value == inf
    assert psa.lower_bound([2, 2], [2, 2], Fraction(1)).value == 0
    assert psa.lower_bound([4], [2, 2], Fraction(0)).value == 0


# -- rates that vary -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "columns", "rates"),
    [
        ([1, 1], [1, 1], ["1/20", "1/2"]),
        ([1, 1, 1], [1, 1, 1], ["1/20", "1/5", "9/10"]),
        ([1, 1, 1], [2, 1], ["1/3", "1/2", "2/3"]),
        ([2, 2], [2, 2], ["1/20", "3/10"]),
        ([2, 1, 1], [2, 1, 1], ["1/2", "1/20", "4/5"]),
        ([1, 1, 1, 1], [1, 1, 1, 1], ["1/20", "1/10", "1/2", "9/10"]),
    ],
)
def test_variable_rates_stay_below_their_bound(
    rows: list[int], columns: list[int], rates: list[str]
) -> None:
    exact = [Fraction(rate) for rate in rates]
    loss = loss_of(rows, columns, lambda x: law_by_algorithm(x, exact))
    assert loss <= psa.variable_rates(sum(rows), min(exact), max(exact)).value + 1e-12
    same = psa.variable_rates(sum(rows), exact[0], exact[0])
    assert same == psa.sharpened(sum(rows), exact[0])


# -- zero-concentrated ---------------------------------------------------------------------------


@pytest.mark.parametrize(("b", "p"), [(264_331, "0.01"), (2, "0.5"), (10, "0.75")])
def test_rho2_is_rounded_upwards(b: int, p: str) -> None:
    budget = psa.theorem_1(b, Fraction(p))
    for upper, value in (
        (psa.rho2_upper(budget), psa.rho2(budget.value)),
        (psa.rho2_loose_upper(budget), psa.rho2_loose(budget.value)),
    ):
        assert upper is not None
        assert -1e-14 * max(1, value) <= float(upper) - value < 1e-13 * max(1, value)
    assert psa.rho2(budget.value) <= psa.rho2_loose(budget.value)


def test_rho2_of_nothing_and_of_everything() -> None:
    assert psa.rho2_upper(psa.theorem_1(0, Fraction(1, 2))) == 0
    assert psa.rho2_upper(psa.theorem_1(2, Fraction(1))) is None
    assert psa.rho2(inf) == psa.rho2_loose(inf) == inf


@pytest.mark.parametrize(
    ("margins", "p", "exact"),
    [
        ((1, 1), "0.05", 1.464086),
        ((2, 2), "0.05", 1.431145),
        ((2, 2), "0.5", 0.063848),
        ((1, 1, 1, 1), "0.05", 1.458764),
        ((1, 1, 1, 1), "0.5", 0.118314),
        ((5, 5), "0.05", 1.280349),
        ((5, 5), "0.5", 0.045445),
    ],
)
def test_the_concentrated_loss_is_below_its_bound(
    margins: tuple[int, ...], p: str, exact: float
) -> None:
    """Search the order of the divergence, its limit at 1 included."""
    rate = Fraction(p)
    laws = {x: psa.table_law(x, rate) for x in psa.tables_with_margins(margins, margins)}
    largest = 0.0
    for x, other in combinations(laws, 2):
        apart = sum(abs(a - b) for a, b in zip(sum(x, ()), sum(other, ()), strict=True)) // 2
        for one, two in ((x, other), (other, x)):
            pairs = [(float(laws[one][z]), float(laws[two][z])) for z in laws]
            divergences = [sum(a * log(a / b) for a, b in pairs)]
            for order in [1.0 + 0.02 * step for step in range(1, 201)]:
                moment = sum(a**order * b ** (1 - order) for a, b in pairs)
                divergences.append(log(moment) / (order * (order - 1)))
            largest = max(largest, max(divergences) / apart**2)
    assert largest == pytest.approx(exact, abs=2e-6)
    assert largest <= psa.rho2(psa.exact_loss(margins, margins, rate).value) + 1e-12


def test_impossible_arguments_are_refused() -> None:
    for call in (
        lambda: psa.theorem_1(1, Fraction(1, 2)),
        lambda: psa.sharpened(5, Fraction(3, 2)),
        lambda: psa.gap(1),
        lambda: psa.largest_stratum_for(-1, Fraction(1, 2)),
        lambda: psa.variable_rates(5, Fraction(1, 2), Fraction(1, 3)),
    ):
        with pytest.raises(BadInput):
            call()
