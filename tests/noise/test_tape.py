"""Tapes: published vectors of the generator, and the contract of extension."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from discreet.errors import BadInput
from discreet.noise import Randomness, key_of, system, trial
from discreet.noise.philox import philox

# Random123 known answers for philox4x32-10: counter, key, lanes (Salmon et al. 2011).
KNOWN_ANSWERS = [
    (
        "00000000 00000000 00000000 00000000",
        "00000000 00000000",
        "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    ),
    (
        "ffffffff ffffffff ffffffff ffffffff",
        "ffffffff ffffffff",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
    ),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def words_of(rng: Randomness, keys: list[int], start: list[int], length: list[int]) -> np.ndarray:
    return rng.words(
        "test",
        np.array(keys, dtype=np.uint64),
        np.array(start, dtype=np.int64),
        np.array(length, dtype=np.int64),
    )


@pytest.mark.parametrize(("counter", "key", "lanes"), KNOWN_ANSWERS)
def test_philox_gives_the_published_lanes(counter: str, key: str, lanes: str) -> None:
    low, high = (int(part, 16) for part in key.split())
    got = philox(
        *(np.uint64(int(part, 16)) for part in counter.split()), np.uint64(low | high << 32)
    )
    assert " ".join(f"{int(lane):08x}" for lane in got) == lanes


def test_a_tape_is_the_same_however_it_is_cut() -> None:
    rng = trial(5)
    whole = words_of(rng, [11, 2**64 - 1], [0, 0], [9, 9])
    pieces = [words_of(rng, [11, 2**64 - 1], [a, a], [b - a, b - a]) for a, b in CUTS]
    first = np.concatenate([part[: part.size // 2] for part in pieces])
    second = np.concatenate([part[part.size // 2 :] for part in pieces])
    assert np.array_equal(np.concatenate([first, second]), whole)


CUTS = [(0, 1), (1, 4), (4, 4), (4, 6), (6, 9)]


def test_a_tape_goes_on_after_four_billion_blocks() -> None:
    far = 2**33
    words = words_of(trial(5), [1, 1], [0, far], [4, 4])
    assert not np.array_equal(words[:4], words[4:])


def test_tapes_differ_by_seed_purpose_and_key() -> None:
    key = np.array([1, 2], dtype=np.uint64)
    start, length = np.zeros(2, dtype=np.int64), np.full(2, 4)
    tapes = [
        trial(seed).words(purpose, key, start, length)
        for seed in (0, 1, -1, 10**30)
        for purpose in ("a", "b")
    ]
    assert np.unique(np.concatenate(tapes)).size == 4 * 2 * 2 * 4


@pytest.mark.parametrize("rng", [system(), trial(3)], ids=lambda rng: rng.mode)
def test_every_bit_of_a_word_is_fair(rng: Randomness) -> None:
    """Hoeffding's bound: a good generator fails once in 10^9 runs (system only; trial is fixed)."""
    draws = 20_000
    words = words_of(rng, [7], [0], [draws])
    ones = [(words >> np.uint64(bit) & np.uint64(1)).sum() for bit in range(64)]
    allowed = sqrt(draws * log(2 * 64 * 1e9) / 2)
    assert max(abs(int(count) - draws / 2) for count in ones) < allowed


def test_modes_say_what_may_be_published() -> None:
    assert (system().mode, trial(1).mode) == ("release", "trial")


def test_the_system_never_repeats() -> None:
    rng = system()
    again = [words_of(rng, [1, 1], [0, 0], [8, 8]) for _ in range(2)]
    assert np.unique(np.concatenate(again)).size == 32


def test_keys_keep_their_parts_apart() -> None:
    keys = key_of(
        ["ab", "a", "abc", "", None, None, "1:a"], ["c", "bc", "", "abc", "abc", None, "b"]
    )
    assert keys.dtype == np.uint64
    assert np.unique(keys).size == keys.size


def test_keys_do_not_depend_on_the_other_rows() -> None:
    assert key_of(["x", "y"])[1] == key_of(["y"])[0]
    assert key_of([]).size == 0


def test_keys_refuse_what_is_not_columns() -> None:
    with pytest.raises(BadInput, match="list"):
        key_of("01001")
    with pytest.raises(BadInput, match="one length"):
        key_of(["a"], ["b", "c"])
