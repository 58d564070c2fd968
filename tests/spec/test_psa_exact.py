"""The exact loss of the Permutation Swapping Algorithm, and what it obeys."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import inf, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import BadInput
from discreet.spec import psa
from strata import counts, distance, loss_of

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


@pytest.mark.parametrize("line", ORACLES.strip().splitlines())
def test_oracle(line: str) -> None:
    rows, columns, universe, rate, loss, published, ours = (
        part.strip() for part in line.split("|")
    )
    r, c, p = counts(rows), counts(columns), Fraction(rate)
    b = psa.largest_stratum([sum(r)])
    exact = psa.exact_loss(r, c, p)
    assert exact.universe == int(universe)
    assert exact.value == pytest.approx(float(loss), abs=TO_SIX_DECIMALS)
    assert psa.theorem_1(b, p).value == pytest.approx(float(published), abs=TO_SIX_DECIMALS)
    assert psa.sharpened(b, p).value == pytest.approx(float(ours), abs=TO_SIX_DECIMALS)
    # Exactly, not up to rounding: the order of all bounds.
    lower, bound = psa.lower_bound(r, c, p), psa.sharpened(b, p)
    assert not exact.amount < lower
    assert not bound < exact.amount
    assert not psa.theorem_1(b, p) < bound


@pytest.mark.parametrize(
    ("margins", "loss"),
    [((2, 2), 0.693147), ((3, 2), 0.490415), ((5, 5), 0.223144), ((1, 1), inf), ((4, 1), inf)],
)
def test_swapping_everything_can_have_a_finite_loss(margins: tuple[int, int], loss: float) -> None:
    exact = psa.exact_loss(margins, margins, Fraction(1))
    assert exact.value == pytest.approx(loss, abs=TO_SIX_DECIMALS)
    assert (exact.ratio is None) == (loss == inf)
    assert psa.theorem_1(sum(margins), Fraction(1)).value == inf


def test_nothing_swapped_is_an_infinite_loss() -> None:
    assert psa.exact_loss([2, 1], [2, 1], Fraction(0)).value == inf


@pytest.mark.parametrize(
    ("rows", "columns", "p"),
    [([2, 2], [2, 2], "1/2"), ([2, 1, 1], [2, 1, 1], "1/10"), ([2, 2, 1], [3, 2], "1/20")],
)
def test_the_witness_shows_the_loss(rows: list[int], columns: list[int], p: str) -> None:
    loss = psa.exact_loss(rows, columns, Fraction(p))
    likely = psa.table_law(loss.x, Fraction(p))[loss.outcome]
    unlikely = psa.table_law(loss.other, Fraction(p))[loss.outcome]
    assert likely / unlikely == loss.ratio
    assert loss.distance == distance(loss.x, loss.other)
    assert loss.value == pytest.approx(log(likely / unlikely) / loss.distance)
    largest = loss_of(rows, columns, lambda x: psa.table_law(x, Fraction(p)))
    assert largest == pytest.approx(loss.value, abs=1e-12)
    assert str(loss.amount) in loss.describe()[0]


def test_one_table_means_no_loss_and_no_protection() -> None:
    for rows, columns in ([5], [2, 3]), ([1], [1]), ([4, 0], [1, 3]):
        loss = psa.exact_loss(rows, columns, Fraction(1, 20))
        assert (loss.value, loss.universe) == (0, 1)
        assert "disclose" in loss.describe()[0]


def test_close_losses_are_compared_exactly() -> None:
    """A pair that floats cannot tell apart: 10^40 + 1 against 10^40."""
    big = Fraction(10**40 + 1, 10**20)
    near = psa.LogAmount(Fraction(10**20))
    assert near.value == psa.LogAmount(big).value
    assert near < psa.LogAmount(big)
    assert not psa.LogAmount(big) < near
    assert not psa.LogAmount(Fraction(9), 2) < psa.LogAmount(Fraction(3))
    assert psa.LogAmount(Fraction(3)) < psa.LogAmount(None)
    assert not psa.LogAmount(None) < psa.LogAmount(None)


# -- properties ----------------------------------------------------------------------------------

margin = st.lists(st.integers(1, 3), min_size=2, max_size=3)
rates = st.sampled_from([Fraction(1, 20), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)])


@st.composite
def strata(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Return the margins of a small stratum."""
    rows = draw(margin)
    cuts = sorted(draw(st.sets(st.integers(1, sum(rows) - 1), min_size=1, max_size=2)))
    return rows, [b - a for a, b in zip([0, *cuts], [*cuts, sum(rows)], strict=True)]


@settings(max_examples=40, deadline=None)
@given(strata(), rates)
def test_no_universe_exceeds_the_bounds(margins: tuple[list[int], list[int]], p: Fraction) -> None:
    b = sum(margins[0])
    loss, lower = psa.exact_loss(*margins, p).amount, psa.lower_bound(*margins, p)
    assert not loss < lower
    assert not psa.sharpened(b, p) < loss
    assert not psa.theorem_1(b, p) < psa.sharpened(b, p)


@settings(max_examples=40, deadline=None)
@given(strata(), rates, st.data())
def test_merging_categories_never_raises_the_loss(
    margins: tuple[list[int], list[int]], p: Fraction, data: st.DataObject
) -> None:
    holding, swapping = margins
    full = psa.exact_loss(holding, swapping, p).amount
    one, two = data.draw(st.permutations(range(len(holding))))[:2]
    groups = [[one, two], *([k] for k in range(len(holding)) if k not in (one, two))]
    merged = psa.coarsened_loss(holding, swapping, p, holding_groups=groups)
    assert not full < merged.amount
    turned = psa.coarsened_loss(swapping, holding, p, swapping_groups=groups)
    assert turned.amount.ratio == merged.amount.ratio
    assert merged.condition == psa.ONLY_COARSE


def test_the_loss_of_a_coarse_table_is_that_of_the_coarse_mechanism() -> None:
    """Enumerate it: full inputs at full distances, merged outputs."""
    holding, swapping, p = [1, 1, 2], [1, 1, 2], Fraction(1, 20)
    groups = [[0, 1], [2]]

    def coarse_law(x: psa.Table) -> dict[psa.Table, Fraction]:
        law: dict[psa.Table, Fraction] = {}
        for z, chance in psa.table_law(x, p).items():
            merged = tuple(tuple(sum(z[h][s] for h in group) for s in range(3)) for group in groups)
            law[merged] = law.get(merged, Fraction(0)) + chance
        return law

    laws = {x: coarse_law(x) for x in psa.tables_with_margins(holding, swapping)}
    largest = max(
        abs(log(laws[x][z]) - log(laws[other][z])) / distance(x, other)
        for x, other in product(laws, laws)
        if x != other
        for z in laws[x]
    )
    told = psa.coarsened_loss(holding, swapping, p, holding_groups=groups)
    assert told.value == pytest.approx(largest, abs=1e-12)
    assert told.value < psa.exact_loss(holding, swapping, p).value
    with pytest.raises(BadInput, match="exactly one group"):
        psa.coarsened_loss(holding, swapping, p, holding_groups=[[0], [2]])


@pytest.mark.parametrize("p", [Fraction(1, 20), Fraction(1, 2)], ids=str)
def test_two_strata_have_the_larger_of_their_losses(p: Fraction) -> None:
    one, two = ([2, 1], [2, 1]), ([2, 2], [2, 2])
    laws = [{x: psa.table_law(x, p) for x in psa.tables_with_margins(*m)} for m in (one, two)]
    pairs = list(product(*laws))
    largest = 0.0
    for x, other in product(pairs, pairs):
        if x == other:
            continue
        apart = distance(x[0], other[0]) + distance(x[1], other[1])
        for z in pairs:
            likely, unlikely = (
                laws[0][table[0]][z[0]] * laws[1][table[1]][z[1]] for table in (x, other)
            )
            largest = max(largest, log(likely / unlikely) / apart)
    single = max(psa.exact_loss(*margins, p).value for margins in (one, two))
    assert largest == pytest.approx(single, abs=1e-12)
