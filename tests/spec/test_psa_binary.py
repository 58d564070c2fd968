"""The loss for a variable with two categories, against oracles, the table law and fractions."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import pytest

from discreet.errors import BadInput
from discreet.spec import psa
from discreet.spec.psa import binary

ORACLES = [
    ((10, 10), "0.05", 3.636550),
    ((10, 20), "0.5", 1.154285),
    ((50, 50), "0.5", 1.089666),
    ((38, 62), "0.5", 1.279185),
    ((20, 80), "0.5", 1.923554),
    ((5, 95), "0.5", 2.236358),
    ((200, 200), "0.05", 3.662245),
    ((80, 320), "0.05", 4.221722),
]
RATES = [Fraction(1, 100), Fraction(1, 20), Fraction(1, 2), Fraction(9, 10), Fraction(1)]


@pytest.mark.parametrize(("margin", "p", "loss"), ORACLES)
def test_oracle(margin: tuple[int, int], p: str, loss: float) -> None:
    assert psa.binary_loss(margin, Fraction(p)) == pytest.approx(loss, abs=6e-7)
    assert psa.binary_loss(margin, Fraction(p)) < psa.theorem_1(sum(margin), Fraction(p)).value


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 12, 25, 40])
def test_the_table_law_says_the_same(n: int) -> None:
    """With the same margin on both sides the formula is the loss, to the last digit."""
    for small in range(1, n // 2 + 1, max(1, n // 8)):
        margin = (small, n - small)
        for p in RATES if n < 40 else RATES[1:3]:
            loss = psa.exact_loss(margin, margin, p).amount
            assert psa.exact_binary_loss(margin, p).ratio == loss.ratio
            if loss.ratio is None:
                assert psa.binary_loss(margin, p) == inf
            else:
                assert psa.binary_loss(margin, p) == pytest.approx(loss.value, abs=binary.ERROR)


@pytest.mark.parametrize("other", [[1, 1, 1, 1, 1, 1], [2, 2, 2], [3, 3], [1, 5], [4, 2]])
def test_it_bounds_the_loss_whatever_the_other_variable(other: list[int]) -> None:
    for margin in ((1, 5), (2, 4), (3, 3)):
        bound = psa.exact_binary_loss(margin, Fraction(1, 20))
        loss = psa.exact_loss(margin, other, Fraction(1, 20)).amount
        assert not bound < loss
        if other == [1] * 6:
            assert loss.ratio == bound.ratio


@pytest.mark.parametrize(
    ("margin", "p"), [((60, 60), "1/100"), ((17, 83), "9/10"), ((1, 119), "1/2")]
)
def test_floats_are_as_close_as_they_say(margin: tuple[int, int], p: str) -> None:
    exact = psa.exact_binary_loss(margin, Fraction(p)).value
    assert psa.binary_loss(margin, Fraction(p)) == pytest.approx(exact, abs=binary.ERROR / 10)


def test_edges() -> None:
    assert psa.binary_loss((0, 5), Fraction(1, 2)) == 0
    assert psa.exact_binary_loss((5, 0), Fraction(1, 2)).value == 0
    assert psa.binary_loss((2, 3), Fraction(0)) == inf
    assert psa.exact_binary_loss((2, 3), Fraction(0)).value == inf
    assert psa.binary_loss((1, 4), Fraction(1)) == inf
    assert psa.binary_loss((3, 2), Fraction(1)) == pytest.approx(0.490415, abs=6e-7)
    for margin in ((-1, 3), (3_000, 3_000)):
        with pytest.raises(BadInput):
            psa.binary_loss(margin, Fraction(1, 2))
    with pytest.raises(BadInput, match="too close"):
        psa.binary_loss((3, 3), Fraction(1, 10**14))
    with pytest.raises(BadInput, match="200 records"):
        psa.exact_binary_loss((150, 150), Fraction(1, 2))
