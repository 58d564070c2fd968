"""The exact law of the Permutation Swapping Algorithm, and the budgets it has to respect."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import combinations, permutations
from math import comb, exp, factorial, inf, log, prod

import pytest

from discreet.errors import BadInput
from discreet.mechanisms.swapping.budget import (
    BudgetTooSmall,
    best_rate,
    largest_stratum,
    moved_probability,
    rates_for,
    sharpened,
    theorem_1,
)
from discreet.mechanisms.swapping.law import (
    Table,
    derangement_numbers,
    exact_loss,
    moving_counts,
    permutation_weights,
    table_law,
    tables_with_margins,
)

# Margins, universe size, rate, exact loss, Theorem 1, sharpened bound.
ORACLES = """
1,1        | 1,1        |   2 | 1/20  | 2.944439 | 4.043051 | 2.944439
1,1        | 1,1        |   2 | 1/2   | 0.000000 | 1.098612 | 0.000000
1,1        | 1,1        |   2 | 9/10  | 2.197225 | 2.197225 | 2.197225
2,1        | 2,1        |   2 | 1/20  | 2.932834 | 4.330733 | 3.175488
2,1        | 1,1,1      |   3 | 1/2   | 0.143841 | 1.386294 | 0.346574
1,1,1      | 1,1,1      |   6 | 1/20  | 3.175488 | 4.330733 | 3.175488
1,1,1      | 1,1,1      |   6 | 1/2   | 0.346574 | 1.386294 | 0.346574
2,2        | 2,2        |   3 | 1/20  | 3.375697 | 4.553877 | 4.043051
2,2        | 2,2        |   3 | 1/2   | 0.779072 | 1.609438 | 1.098612
2,2        | 2,2        |   3 | 9/10  | 0.319540 | 2.197225 | 2.197225
3,1        | 3,1        |   2 | 1/4   | 1.098612 | 2.708050 | 2.197225
2,1,1      | 2,1,1      |   7 | 1/10  | 2.976297 | 3.806662 | 3.295837
2,1,1      | 2,1,1      |   7 | 3/4   | 0.405465 | 1.098612 | 1.098612
1,1,1,1    | 1,1,1,1    |  24 | 1/2   | 1.098612 | 1.609438 | 1.098612
3,2        | 3,2        |   3 | 1/20  | 3.377963 | 4.736198 | 4.489960
3,2        | 3,2        |   3 | 1/2   | 0.803508 | 1.791759 | 1.545521
2,2,1      | 3,2        |   5 | 1/2   | 0.803508 | 1.791759 | 1.545521
2,2,1      | 2,2,1      |  11 | 1/10  | 3.073967 | 3.988984 | 3.742746
2,2,1      | 2,2,1      |  11 | 1/2   | 1.051728 | 1.791759 | 1.545521
1,1,1,1,1  | 1,1,1,1,1  | 120 | 1/2   | 1.545521 | 1.791759 | 1.545521
3,3        | 3,3        |   4 | 1/2   | 0.927588 | 1.945910 | 1.691253
2,2,2      | 2,2,2      |  21 | 1/20  | 3.953242 | 4.890349 | 4.635692
1,1,2,2    | 1,1,2,2    |  58 | 1/20  | 4.635692 | 4.890349 | 4.635692
5,5        | 5,5        |   6 | 1/100 | 5.240062 | 6.993015 | 6.845021
5,5        | 5,5        |   6 | 1/2   | 1.003434 | 2.397895 | 2.249901
8,2        | 8,2        |   3 | 1/2   | 0.964896 | 2.397895 | 2.249901
9,1        | 9,1        |   2 | 1/2   | 1.090723 | 2.397895 | 2.249901
"""
TO_SIX_DECIMALS = 6e-7
RATES = [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)]
SMALL_TABLES: list[Table] = [
    ((2, 0), (0, 2)),
    ((1, 1), (1, 1)),
    ((2, 1), (1, 1)),
    ((1, 0, 1), (0, 2, 1)),
    ((1, 0, 0), (0, 1, 0), (1, 0, 2)),
]


def counts(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


@pytest.mark.parametrize("line", ORACLES.strip().splitlines())
def test_oracle(line: str) -> None:
    rows, columns, universe, rate, loss, published, ours = (
        part.strip() for part in line.split("|")
    )
    r, c, p = counts(rows), counts(columns), Fraction(rate)
    b = largest_stratum([sum(r)])
    exact = exact_loss(r, c, p)
    assert len(tables_with_margins(r, c)) == int(universe)
    assert exact == pytest.approx(float(loss), abs=TO_SIX_DECIMALS)
    assert theorem_1(b, p).epsilon == pytest.approx(float(published), abs=TO_SIX_DECIMALS)
    assert sharpened(b, p) == pytest.approx(float(ours), abs=TO_SIX_DECIMALS)
    assert exact <= sharpened(b, p) + 1e-12 <= theorem_1(b, p).epsilon + 2e-12


@pytest.mark.parametrize(
    ("margins", "loss"),
    [((2, 2), 0.693147), ((3, 2), 0.490415), ((5, 5), 0.223144), ((1, 1), inf), ((4, 1), inf)],
)
def test_swapping_everything_can_have_a_finite_loss(margins: tuple[int, int], loss: float) -> None:
    assert exact_loss(margins, margins, Fraction(1)) == pytest.approx(loss, abs=TO_SIX_DECIMALS)
    assert theorem_1(sum(margins), Fraction(1)).epsilon == inf


def test_weights_of_the_worked_examples() -> None:
    assert permutation_weights(2, Fraction(1, 2)) == [Fraction(1, 2), 0, Fraction(1, 2)]
    third = [Fraction(27, 37), 0, Fraction(3, 37), Fraction(1, 74)]
    assert permutation_weights(3, Fraction(1, 4)) == third
    fourth = [Fraction(1, 12), 0, Fraction(1, 12), Fraction(1, 24), Fraction(1, 108)]
    assert permutation_weights(4, Fraction(1, 2)) == fourth
    assert [permutation_weights(n, Fraction(1, 2)) for n in (0, 1)] == [[1], [1, 0]]


def test_derangement_numbers_are_the_known_ones() -> None:
    known = [1, 0, 1, 2, 9, 44, 265, 1854, 14833, 133496, 1334961]
    assert derangement_numbers(10) == known


@pytest.mark.parametrize("n", [2, 3, 4, 7, 30])
@pytest.mark.parametrize("p", [Fraction(0), *RATES, Fraction(1)], ids=str)
def test_weights_sum_to_one(n: int, p: Fraction) -> None:
    moved = derangement_numbers(n)
    weights = permutation_weights(n, p)
    assert sum(comb(n, k) * moved[k] * weights[k] for k in range(n + 1)) == 1


def test_counts_and_law_of_the_worked_examples() -> None:
    diagonal, ones, opposite = ((2, 0), (0, 2)), ((1, 1), (1, 1)), ((0, 2), (2, 0))
    assert moving_counts(diagonal, diagonal) == [1, 0, 2, 0, 1]
    assert moving_counts(diagonal, ones) == [0, 0, 4, 8, 4]
    assert moving_counts(diagonal, opposite) == [0, 0, 0, 0, 4]
    half = Fraction(1, 2)
    law = table_law(diagonal, half)
    assert [law[z] for z in (diagonal, ones, opposite)] == [
        Fraction(7, 27),
        Fraction(19, 27),
        Fraction(1, 27),
    ]
    law = table_law(ones, half)
    assert [law[z] for z in (diagonal, ones, opposite)] == [
        Fraction(19, 108),
        Fraction(35, 54),
        Fraction(19, 108),
    ]


def records(x: Table) -> list[tuple[int, int]]:
    return [(h, s) for h, row in enumerate(x) for s, count in enumerate(row) for _ in range(count)]


def table_of(x: Table, moved: tuple[int, ...]) -> Table:
    """Return the table after record i receives the swapping value of record moved[i]."""
    listed = records(x)
    grid = [[0] * len(x[0]) for _ in x]
    for (h, _), giver in zip(listed, moved, strict=True):
        grid[h][listed[giver][1]] += 1
    return tuple(map(tuple, grid))


def law_by_permutations(x: Table, p: Fraction) -> dict[Table, Fraction]:
    n = len(records(x))
    weights = permutation_weights(n, p)
    law: dict[Table, Fraction] = defaultdict(Fraction)
    for moved in permutations(range(n)):
        law[table_of(x, moved)] += weights[sum(i != j for i, j in enumerate(moved))]
    return dict(law)


def law_by_algorithm(x: Table, p: Fraction) -> dict[Table, Fraction]:
    """Enumerate Algorithm 1 itself: selections, repetition of single ones, derangements."""
    n = len(records(x))
    law: dict[Table, Fraction] = defaultdict(Fraction)
    accepted = Fraction(0)
    for k in [0, *range(2, n + 1)]:
        for chosen in combinations(range(n), k):
            chance = p**k * (1 - p) ** (n - k)
            accepted += chance
            outcomes = [
                moved
                for moved in permutations(chosen)
                if all(i != j for i, j in zip(chosen, moved, strict=True))
            ]
            for outcome in outcomes:
                moved = list(range(n))
                for i, j in zip(chosen, outcome, strict=True):
                    moved[i] = j
                law[table_of(x, tuple(moved))] += chance / len(outcomes)
    return {z: chance / accepted for z, chance in law.items()}


@pytest.mark.parametrize("x", SMALL_TABLES, ids=str)
@pytest.mark.parametrize("p", RATES, ids=str)
def test_law_is_the_enumerated_one(x: Table, p: Fraction) -> None:
    law = table_law(x, p)
    assert sum(law.values()) == 1
    assert law == law_by_permutations(x, p) == law_by_algorithm(x, p)


@pytest.mark.parametrize("x", SMALL_TABLES, ids=str)
def test_every_permutation_is_counted_once(x: Table) -> None:
    rows, columns = [sum(row) for row in x], [sum(column) for column in zip(*x, strict=True)]
    ways = prod(map(factorial, rows)) * prod(map(factorial, columns))
    for z in tables_with_margins(rows, columns):
        assert sum(moving_counts(x, z)) == ways // prod(factorial(v) for row in z for v in row)


@pytest.mark.parametrize("n", [2, 3, 5, 9])
@pytest.mark.parametrize("p", RATES, ids=str)
def test_moved_probability_is_the_enumerated_one(n: int, p: Fraction) -> None:
    moved, weights = derangement_numbers(n), permutation_weights(n, p)
    exact = sum(comb(n - 1, k - 1) * moved[k] * weights[k] for k in range(1, n + 1))
    assert moved_probability(n, p) == pytest.approx(float(exact), rel=1e-13)


def test_moved_probability_at_the_edges() -> None:
    assert moved_probability(1, Fraction(1, 2)) == 0
    assert moved_probability(5, Fraction(1)) == 1
    assert moved_probability(10**9, Fraction(1, 20)) == 0.05


@pytest.mark.parametrize("b", [*range(4, 40), 60, 100, 200])
def test_sharpened_bound_is_the_widest_ratio_of_weights(b: int) -> None:
    """Two tables at distance D >= 2 compare permutations whose moved counts differ by at most D."""
    moved = derangement_numbers(b)
    logs = [log(number) if number else inf for number in moved]
    for percent in [1, 5, 20, 50, 75, 90, 99]:
        p = Fraction(percent, 100)
        log_odds = log(p / (1 - p))
        weight = [k * log_odds - logs[k] for k in range(b + 1)]
        widest = max(
            abs(weight[j] - weight[k]) / max(2, k - j)
            for j, k in combinations([0, *range(2, b + 1)], 2)
        )
        assert widest <= sharpened(b, p) + 1e-9


def test_theorem_1_is_exact() -> None:
    assert theorem_1(0, Fraction(1, 20)).ratio == 1
    assert theorem_1(3_653_802, Fraction(1, 50)).ratio == 3_653_803 * 49
    assert theorem_1(3, Fraction(9, 10)).ratio == 9
    assert theorem_1(3, Fraction(0)).epsilon == inf


@pytest.mark.parametrize("b", [2, 3, 10, 3_653_802])
def test_the_best_rate_has_the_smallest_budget(b: int) -> None:
    best = theorem_1(b, Fraction(best_rate(b))).epsilon
    assert best == pytest.approx(log(b + 1) / 2)
    for nearby in (0.99, 1.01):
        odds = best_rate(b) / (1 - best_rate(b)) * nearby
        assert theorem_1(b, Fraction(odds / (1 + odds))).epsilon > best


@pytest.mark.parametrize("b", [2, 10, 3_653_802])
@pytest.mark.parametrize("p", [Fraction(1, 100), Fraction(1, 2), Fraction(99999, 100000)], ids=str)
def test_inversion_finds_the_rate_again(b: int, p: Fraction) -> None:
    low, high = rates_for(theorem_1(b, p).epsilon, b)
    assert low <= high
    assert min(abs(low - float(p)), abs(high - float(p))) < 1e-12
    for rate in (low, high):
        assert theorem_1(b, Fraction(rate)).epsilon == pytest.approx(theorem_1(b, p).epsilon)


def test_inversion_refuses_what_theorem_1_cannot_certify() -> None:
    with pytest.raises(BudgetTooSmall, match=r"1\.198948") as raised:
        rates_for(1.1, 10)
    assert exp(2 * raised.value.smallest) == pytest.approx(11)
    with pytest.raises(BadInput):
        rates_for(-1, 0)
    assert rates_for(0.0, 0) == (0.0, 1.0)


def test_the_largest_stratum_ignores_single_records() -> None:
    assert [largest_stratum(s) for s in ([], [0, 1, 1], [1, 2], [7, 3])] == [0, 0, 2, 7]


def test_impossible_arguments_are_refused() -> None:
    for call in (
        lambda: theorem_1(1, Fraction(1, 2)),
        lambda: sharpened(5, Fraction(3, 2)),
        lambda: permutation_weights(3, Fraction(-1, 2)),
        lambda: tables_with_margins([1, 2], [2]),
        lambda: tables_with_margins([3, -1], [2]),
    ):
        with pytest.raises(BadInput):
            call()
