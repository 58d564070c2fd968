"""Samplers against exact probabilities, and the same tests against planted bugs.

See `battery` for the tests and their rate of false alarms.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.noise import DiscreteGaussian, DiscreteLaplace, Randomness, system, trial
from discreet.noise.draw import unfold
from discreet.noise.exponential import Enclosure
from discreet.noise.law import Ladder, ladder_of
from discreet.noise.reject import draw_by_rejection
from discreet.noise.share import Shares
from discreet.noise.table import draw_ranks, prepare
from noise.battery import complaints, shared
from noise.oracle import GAUSSIANS, LAWS, ODD, Law, name, parameter

BY_TABLE, BY_REJECTION = 4_000_000, 400_000
one_by_one = pytest.mark.parametrize("law", LAWS, ids=name)


def from_table(law: Law, size: int, rng: Randomness, key: int = 0, start: int = 0) -> np.ndarray:
    index = np.zeros(size, dtype=np.int64)
    draws = draw_ranks(Shares(rng, "x", key, start), prepare([law]), index)
    unfold(draws)
    return draws


def by_rejection(law: Law, size: int, rng: Randomness, key: int = 0) -> np.ndarray:
    index = np.zeros(size, dtype=np.int64)
    kind = DiscreteGaussian if isinstance(law, DiscreteGaussian) else DiscreteLaplace
    return draw_by_rejection(Shares(rng, "x", key), kind, [parameter(law)], index)


# --- right samplers -----------------------------------------------------------------------------


@one_by_one
def test_tables_draw_from_the_law(law: Law) -> None:
    assert complaints(from_table(law, BY_TABLE, trial(11)), law) == []


@one_by_one
def test_rejection_draws_from_the_law(law: Law) -> None:
    assert complaints(by_rejection(law, BY_REJECTION, trial(12)), law) == []


def test_many_laws_in_one_array_each_keep_theirs() -> None:
    laws = [DiscreteGaussian(Fraction(100) + Fraction(k, 10)) for k in range(1000)]
    checked = {0: laws[0], 999: laws[999]}
    index = np.arange(BY_TABLE) * 7 % 1000
    index[::2] = np.where(np.arange(BY_TABLE // 2) % 2, 0, 999)
    draws = draw_ranks(Shares(trial(13), "x", 0), prepare(laws), index)
    unfold(draws)
    for which, law in checked.items():
        assert complaints(draws[index == which], law) == []


@pytest.mark.parametrize("law", [GAUSSIANS[3], LAWS[-2]], ids=name)
def test_the_systems_randomness_gives_the_law_too(law: Law) -> None:
    """The only tests whose outcome can change: about one false alarm in 10^5 runs in all."""
    assert complaints(from_table(law, 300_000, system()), law) == []
    assert complaints(by_rejection(law, 100_000, system()), law) == []


def test_workers_with_their_own_keys_or_places_share_nothing() -> None:
    law = DiscreteGaussian(Fraction(10))
    size = 1 << 16
    first = from_table(law, size, trial(14), key=1)
    assert not shared(first, from_table(law, size, trial(14), key=2))
    assert not shared(first, from_table(law, size, trial(14), key=1, start=size))
    assert not shared(
        by_rejection(law, size, trial(14), key=1), by_rejection(law, size, trial(14), key=2)
    )


# --- planted bugs -------------------------------------------------------------------------------


@pytest.mark.parametrize("law", GAUSSIANS, ids=name)
@pytest.mark.parametrize("factor", [Fraction(101, 100), Fraction(99, 100)], ids=["more", "less"])
def test_a_sigma2_off_by_one_percent_is_found(law: DiscreteGaussian, factor: Fraction) -> None:
    wrong = DiscreteGaussian(law.sigma2 * factor)
    assert complaints(from_table(wrong, BY_TABLE, trial(15)), law)


@pytest.mark.parametrize("law", LAWS[len(GAUSSIANS) :], ids=name)
def test_a_scale_off_by_one_percent_is_found(law: DiscreteLaplace) -> None:
    wrong = DiscreteLaplace(law.scale * Fraction(101, 100))
    assert complaints(from_table(wrong, BY_TABLE, trial(15)), law)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sigma2", [Fraction(1, 10), ODD, Fraction(500)], ids=["1/10", "odd", "500"]
)
def test_a_sigma2_off_by_one_percent_is_found_in_rejection(sigma2: Fraction) -> None:
    wrong = DiscreteGaussian(sigma2 * Fraction(101, 100))
    draws = by_rejection(wrong, 8 * BY_REJECTION, trial(15))
    assert complaints(draws, DiscreteGaussian(sigma2))


class ZeroTwice(DiscreteGaussian):
    """The classical slip: a fair sign on |x|, so that 0 has the weight of both its signs."""

    def ladder(self, bits: int) -> Ladder:
        return zero_twice(super().ladder(bits), bits)


class LaplaceZeroTwice(DiscreteLaplace):
    def ladder(self, bits: int) -> Ladder:
        return zero_twice(super().ladder(bits), bits)


def zero_twice(right: Ladder, bits: int) -> Ladder:
    weights = [a - b for a, b in zip(right.low, [0, *right.low], strict=False)]
    weights[0] *= 2
    total = sum(weights)
    return ladder_of(weights, total, Enclosure(total, total + 1), bits, bits)


@one_by_one
def test_a_zero_counted_twice_is_found(law: Law) -> None:
    kind = ZeroTwice if isinstance(law, DiscreteGaussian) else LaplaceZeroTwice
    draws = from_table(kind(parameter(law)), BY_REJECTION, trial(16))
    assert "zeros" in complaints(draws, law)


@pytest.mark.parametrize("law", GAUSSIANS[:5], ids=name)
def test_a_rounded_continuous_gaussian_is_found(law: DiscreteGaussian) -> None:
    """Its variance is larger by 1/12; above sigma2 = 10 that is too little for this sample."""
    normal = np.random.default_rng(17).normal(size=BY_TABLE) * float(law.sigma2) ** 0.5
    assert complaints(np.rint(normal).astype(np.int64), law)


@pytest.mark.parametrize("shift", [0, 1, 1000, 40_000])
def test_a_stream_shared_by_two_workers_is_found(shift: int) -> None:
    """Also when the second worker joins the stream later."""
    law = DiscreteGaussian(Fraction(10))
    size = 1 << 16
    first = from_table(law, size, trial(18), key=1)
    assert shared(first, from_table(law, size, trial(18), key=1, start=shift))


def test_a_stream_used_twice_within_an_array_is_found() -> None:
    law = DiscreteGaussian(Fraction(10))
    draws = from_table(law, BY_REJECTION, trial(19))
    assert complaints(np.repeat(draws, 2), law)
    assert complaints(np.concatenate([draws.reshape(-1, 64)] * 2, axis=1).ravel(), law)


def test_a_sign_taken_from_the_same_bits_as_the_size_is_found() -> None:
    law = DiscreteGaussian(Fraction(10))
    draws = np.abs(from_table(law, BY_REJECTION, trial(20)))
    assert complaints(np.where(draws & 1, draws, -draws), law)
