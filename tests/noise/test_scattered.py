"""Draws at scattered places: each is the one that the whole array has there."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import BadInput
from discreet.noise import discrete_gaussian, system, trial
from discreet.noise import reject as rejection
from discreet.noise import table as tables
from discreet.noise.draw import MOST_TABLES
from discreet.noise.law import DiscreteGaussian
from noise.oracle import ODD, Written

SIZE = 6000
FEW = [Fraction(1, 10), ODD, Fraction(500), 10_000]
MANY = [Fraction(1, 10) + Fraction(100 * k, 7919) for k in range(2 * MOST_TABLES)]
both_methods = pytest.mark.parametrize("values", [FEW, MANY], ids=["tables", "rejection"])

_choose = np.random.default_rng(5)
PLACES = {
    "all": np.arange(SIZE),
    "none": np.arange(0),
    "the last": np.array([SIZE - 1]),
    "every other": np.arange(0, SIZE, 2),
    "every fifth": np.arange(3, SIZE, 5),
    "two runs": np.concatenate([np.arange(7, 95), np.arange(2001, 4003)]),
    "at random": np.flatnonzero(_choose.random(SIZE) < 0.3),
    "rare": np.flatnonzero(_choose.random(SIZE) < 0.01),
}


@both_methods
@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("batch", [1 << 17, 111])
def test_a_place_has_what_the_whole_array_has_there(
    monkeypatch: pytest.MonkeyPatch, values: list, places: str, batch: int
) -> None:
    index = np.arange(SIZE) * 31 % len(values)
    whole = discrete_gaussian(trial(1), "x", 5, (values, index))
    monkeypatch.setattr(tables, "_BATCH", batch)
    monkeypatch.setattr(rejection, "_BATCH", batch)
    at = PLACES[places]
    some = discrete_gaussian(trial(1), "x", 5, (values, index[at]), at=at)
    assert np.array_equal(some, whole[at])


def test_places_far_beyond_any_memory_are_reached() -> None:
    first = 2**40 + 3
    near = discrete_gaussian(trial(1), "x", 5, ODD, 2000, start=first)
    at = first + np.arange(0, 2000, 3)
    assert np.array_equal(discrete_gaussian(trial(1), "x", 5, ODD, at=at), near[::3])


def test_no_word_is_asked_for_twice_and_none_in_vain() -> None:
    tape = Written(lambda purpose, at: hash((purpose, at)) % 2**64)
    at = PLACES["at random"]
    discrete_gaussian(tape, "x", 0, Fraction(500), at=at)
    assert len(set(tape.read)) == len(tape.read)
    first = [place for purpose, place in tape.read if purpose == "x"]
    assert first == np.unique(at // 4).tolist()


@both_methods
def test_fresh_noise_has_the_law(values: list) -> None:
    """Counts of each value against the law: a false alarm once in about 10^8 runs.

    Each of 15 counts may be 6.5 standard deviations off.
    """
    wanted = values.index(ODD) if ODD in values else 1
    at = np.cumsum(1 + np.arange(60_000) % 9)
    index = np.full(at.size, wanted)
    drawn = discrete_gaussian(system(), "x", 0, (values, index), at=at)
    law = DiscreteGaussian(Fraction(values[wanted]))
    seen = Counter(drawn.tolist())
    for x in range(-7, 8):
        p = float(law.probability(x))
        expected = p * at.size
        assert abs(seen[x] - expected) <= 6.5 * max(1, (expected * (1 - p)) ** 0.5) + 3


@pytest.mark.parametrize(
    ("at", "more"),
    [
        ([3, 3], {}),
        ([4, 3], {}),
        ([-1, 3], {}),
        ([1, 2], {"start": 1}),
        ([1, 2], {"size": 2}),
        ([1.0, 2.0], {}),
        ([[1, 2]], {}),
    ],
    ids=str,
)
def test_places_that_repeat_or_go_back_are_refused(at: list, more: dict) -> None:
    with pytest.raises(BadInput, match=r"^at: "):
        discrete_gaussian(trial(1), "x", 0, Fraction(10), at=np.array(at), **more)


def test_every_place_needs_its_parameter() -> None:
    with pytest.raises(BadInput, match=r"^index: "):
        discrete_gaussian(trial(1), "x", 0, (FEW, np.zeros(3, np.int64)), at=np.arange(2))
