"""The exact law of the Permutation Swapping Algorithm."""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial, prod

import pytest

from discreet.errors import BadInput
from discreet.spec import psa
from discreet.spec.psa import Table
from strata import law_by_algorithm, law_by_permutations

RATES = [Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)]
SMALL_TABLES: list[Table] = [
    ((2, 0), (0, 2)),
    ((1, 1), (1, 1)),
    ((2, 1), (1, 1)),
    ((1, 0, 1), (0, 2, 1)),
    ((1, 0), (0, 2), (1, 1)),
    ((1, 0, 0), (0, 1, 0), (1, 0, 2)),
]


def test_weights_of_the_worked_examples() -> None:
    assert psa.permutation_weights(2, Fraction(1, 2)) == [Fraction(1, 2), 0, Fraction(1, 2)]
    third = [Fraction(27, 37), 0, Fraction(3, 37), Fraction(1, 74)]
    assert psa.permutation_weights(3, Fraction(1, 4)) == third
    fourth = [Fraction(1, 12), 0, Fraction(1, 12), Fraction(1, 24), Fraction(1, 108)]
    assert psa.permutation_weights(4, Fraction(1, 2)) == fourth
    assert [psa.permutation_weights(n, Fraction(1, 2)) for n in (0, 1)] == [[1], [1, 0]]


def test_derangement_numbers_are_the_known_ones() -> None:
    known = [1, 0, 1, 2, 9, 44, 265, 1854, 14833, 133496, 1334961]
    assert psa.derangement_numbers(10) == known


@pytest.mark.parametrize("n", [2, 3, 4, 7, 30])
@pytest.mark.parametrize("p", [Fraction(0), *RATES, Fraction(1)], ids=str)
def test_weights_sum_to_one(n: int, p: Fraction) -> None:
    moved = psa.derangement_numbers(n)
    weights = psa.permutation_weights(n, p)
    assert sum(comb(n, k) * moved[k] * weights[k] for k in range(n + 1)) == 1


def test_counts_and_law_of_the_worked_examples() -> None:
    diagonal, ones, opposite = ((2, 0), (0, 2)), ((1, 1), (1, 1)), ((0, 2), (2, 0))
    assert psa.moving_counts(diagonal, diagonal) == [1, 0, 2, 0, 1]
    assert psa.moving_counts(diagonal, ones) == [0, 0, 4, 8, 4]
    assert psa.moving_counts(diagonal, opposite) == [0, 0, 0, 0, 4]
    half = Fraction(1, 2)
    law = psa.table_law(diagonal, half)
    assert [law[z] for z in (diagonal, ones, opposite)] == [
        Fraction(7, 27),
        Fraction(19, 27),
        Fraction(1, 27),
    ]
    law = psa.table_law(ones, half)
    assert [law[z] for z in (diagonal, ones, opposite)] == [
        Fraction(19, 108),
        Fraction(35, 54),
        Fraction(19, 108),
    ]


@pytest.mark.parametrize("x", SMALL_TABLES, ids=str)
@pytest.mark.parametrize("p", RATES, ids=str)
def test_law_is_the_enumerated_one(x: Table, p: Fraction) -> None:
    law = psa.table_law(x, p)
    weights = psa.permutation_weights(sum(map(sum, x)), p)
    assert sum(law.values()) == 1
    assert law == law_by_permutations(x, weights) == law_by_algorithm(x, p)


@pytest.mark.parametrize("x", SMALL_TABLES, ids=str)
def test_every_permutation_is_counted_once(x: Table) -> None:
    rows, columns = [sum(row) for row in x], [sum(column) for column in zip(*x, strict=True)]
    ways = prod(map(factorial, rows)) * prod(map(factorial, columns))
    for z in psa.tables_with_margins(rows, columns):
        moving = psa.moving_counts(x, z)
        assert sum(moving) == ways // prod(factorial(v) for row in z for v in row)
        # The same permutations, backwards.
        back = psa.moving_counts(z, x)
        swap = [prod(factorial(v) for row in table for v in row) for table in (x, z)]
        assert [n * swap[1] for n in moving] == [n * swap[0] for n in back]


def test_the_law_of_forty_records_adds_up() -> None:
    x = ((13, 7), (7, 13))
    law = psa.table_law(x, Fraction(1, 20))
    assert len(law) == 21
    assert sum(law.values()) == 1
    turned = psa.table_law(tuple(zip(*x, strict=True)), Fraction(1, 20))
    assert {tuple(zip(*z, strict=True)): chance for z, chance in turned.items()} == law


@pytest.mark.parametrize("x", SMALL_TABLES, ids=str)
def test_moments_are_those_of_the_law(x: Table) -> None:
    p = Fraction(1, 5)
    law = psa.table_law(x, p)
    expected = psa.expected_table(x, p)
    estimates = {z: psa.unswapped(z, p) for z in law}
    for h, row in enumerate(x):
        for s, count in enumerate(row):
            assert sum(chance * z[h][s] for z, chance in law.items()) == expected[h][s]
            assert sum(chance * estimates[z][h][s] for z, chance in law.items()) == count


def test_a_uniform_permutation_cannot_be_undone() -> None:
    assert psa.moved_probability(2, Fraction(1, 2)) == 1 / 2
    with pytest.raises(BadInput, match="same mean"):
        psa.unswapped(((1, 0), (0, 1)), Fraction(1, 2))


@pytest.mark.parametrize("n", [2, 3, 5, 9])
@pytest.mark.parametrize("p", RATES, ids=str)
def test_moved_probability_is_the_enumerated_one(n: int, p: Fraction) -> None:
    moved, weights = psa.derangement_numbers(n), psa.permutation_weights(n, p)
    exact = sum(comb(n - 1, k - 1) * moved[k] * weights[k] for k in range(1, n + 1))
    assert psa.moved_probability(n, p) == pytest.approx(float(exact), rel=1e-13)


def test_moved_probability_at_the_edges() -> None:
    assert psa.moved_probability(1, Fraction(1, 2)) == 0
    assert psa.moved_probability(5, Fraction(1)) == 1
    assert psa.moved_probability(10**9, Fraction(1, 20)) == 0.05


def test_too_much_is_refused_at_once() -> None:
    with pytest.raises(psa.UniverseTooLarge, match="1,000 tables"):
        psa.tables_with_margins([1] * 7, [1] * 7)
    with pytest.raises(psa.UniverseTooLarge, match="products"):
        psa.exact_loss([40, 40], [27, 27, 26], Fraction(1, 2))


def test_impossible_arguments_are_refused() -> None:
    for call in (
        lambda: psa.permutation_weights(3, Fraction(-1, 2)),
        lambda: psa.tables_with_margins([1, 2], [2]),
        lambda: psa.tables_with_margins([3, -1], [2]),
        lambda: psa.weighted_law(((1, 0), (0, 1)), [Fraction(1)]),
        lambda: psa.weighted_loss([1, 1], [1, 1], [Fraction(1)]),
        lambda: psa.expected_table(((1,),), Fraction(1, 2)),
    ):
        with pytest.raises(BadInput):
            call()


@pytest.mark.parametrize("half", ["1/2", "0.5", Fraction(1, 2)])
def test_rates_are_exact_numbers_or_their_text(half: Fraction | str) -> None:
    expected = psa.theorem_1(10, Fraction(1, 2))
    assert psa.theorem_1(10, half) == expected
    assert psa.sharpened(10, half) == psa.sharpened(10, Fraction(1, 2))
    assert psa.account(10, half).theorem_1 == expected
    assert psa.permutation_weights(3, half) == psa.permutation_weights(3, Fraction(1, 2))
    assert psa.largest_stratum_for(3, half) == 19
    assert psa.variable_rates(10, half, "3/4") == psa.variable_rates(10, "0.5", Fraction(3, 4))


@pytest.mark.parametrize("wrong", [0.5, True, None, "half", "1/0", "3/2", -1])
def test_other_rates_are_refused_in_words(wrong: object) -> None:
    for ask in (
        lambda rate: psa.theorem_1(10, rate),
        lambda rate: psa.account(10, rate),
        lambda rate: psa.permutation_weights(3, rate),
        lambda rate: psa.binary_loss((2, 2), rate),
        lambda rate: psa.moved_probability(10, rate),
    ):
        with pytest.raises(BadInput, match="swap rate"):
            ask(wrong)
