"""The two noise functions: repeatable in parts, chosen method, refusals, fixed values."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import BadInput
from discreet.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    discrete_gaussian,
    discrete_laplace,
    system,
    trial,
)
from discreet.noise import table as tables
from discreet.noise.draw import MOST_TABLES, table_size, use_tables
from noise.oracle import ODD, Written

FEW = [Fraction(1, 10), ODD, Fraction(500), 10_000]
MANY = [Fraction(1, 10) + Fraction(100 * k, 7919) for k in range(2 * MOST_TABLES)]
both_functions = pytest.mark.parametrize(
    "draw", [discrete_gaussian, discrete_laplace], ids=["gaussian", "laplace"]
)
both_methods = pytest.mark.parametrize("values", [FEW, MANY], ids=["tables", "rejection"])


@both_functions
@both_methods
@pytest.mark.parametrize("cuts", [[1, 2, 3, 7, 600], [1000, 1001]], ids=str)
def test_an_array_is_the_same_however_it_is_cut(
    monkeypatch: pytest.MonkeyPatch, draw: Callable, values: list, cuts: list[int]
) -> None:
    index = np.arange(2000) * 31 % len(values)
    whole = draw(trial(1), "x", 5, (values, index))
    monkeypatch.setattr(tables, "_BATCH", 111)
    ends = [*cuts, 2000]
    parts = [
        draw(trial(1), "x", 5, (values, index[a:b]), start=a)
        for a, b in zip([0, *cuts], ends, strict=True)
    ]
    assert np.array_equal(np.concatenate(parts), whole)


@both_functions
@both_methods
def test_threads_and_order_do_not_matter(draw: Callable, values: list) -> None:
    index = np.arange(4000) * 31 % len(values)
    whole = draw(trial(1), "x", 5, (values, index))

    def part(a: int) -> np.ndarray:
        return draw(trial(1), "x", 5, (values, index[a : a + 500]), start=a)

    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(part, range(3500, -1, -500)))
    assert np.array_equal(np.concatenate(parts[::-1]), whole)


@both_functions
def test_a_draw_does_not_depend_on_the_parameters_of_the_others(draw: Callable) -> None:
    alone = draw(trial(1), "x", 5, Fraction(10), 1000)
    index = np.arange(1000) % 2
    mixed = draw(trial(1), "x", 5, ([Fraction(10), Fraction(777)], index))
    assert np.array_equal(mixed[index == 0], alone[index == 0])


@both_methods
def test_arrays_differ_by_seed_purpose_and_key(values: list) -> None:
    index = np.full(300, len(values) - 1)
    arrays = [
        discrete_gaussian(trial(seed), purpose, key, (values, index)).tobytes()
        for seed in (1, 2)
        for purpose in ("x", "y")
        for key in (0, 1, 2**64 - 1)
    ]
    assert len(set(arrays)) == 12


@both_functions
def test_no_bits_serve_two_elements(draw: Callable) -> None:
    """Each word of a tape is read once, and words are as many as the elements need."""
    tape = Written(lambda purpose, at: hash((purpose, at)) % 2**64)
    draw(tape, "x", 0, Fraction(500), 1000)
    assert len(set(tape.read)) == len(tape.read)
    assert sum(purpose == "x" for purpose, _ in tape.read) == 250


def test_what_is_drawn_does_not_change_between_versions() -> None:
    """Fixed values: a change here changes every trial that people have kept."""
    rng = trial(2020)
    assert discrete_gaussian(rng, "x", 1, Fraction(100), 8).tolist() == GAUSSIAN
    assert discrete_laplace(rng, "x", 1, Fraction(10), 8).tolist() == LAPLACE
    index = 250 * np.arange(8)
    assert discrete_gaussian(rng, "x", 1, (MANY, index)).tolist() == GAUSSIAN_MANY
    assert discrete_laplace(rng, "x", 1, (MANY, index)).tolist() == LAPLACE_MANY


GAUSSIAN = [22, 1, -5, 4, 7, 2, 3, -12]
LAPLACE = [36, 1, 4, 4, -8, 2, -3, 14]
GAUSSIAN_MANY = [0, 1, 0, 5, -3, 7, 1, -2]
LAPLACE_MANY = [0, 2, 0, 12, -1, 29, 4, -9]


def test_the_method_depends_on_the_list_of_parameters_alone() -> None:
    assert use_tables(DiscreteGaussian, [Fraction(100 + k) for k in range(1000)])
    assert use_tables(DiscreteGaussian, [Fraction(10**8)])
    assert use_tables(DiscreteLaplace, [Fraction(10**4)])
    assert not use_tables(DiscreteGaussian, MANY)
    assert not use_tables(DiscreteGaussian, [Fraction(10**8 - k) for k in range(100)])
    assert not use_tables(DiscreteLaplace, [Fraction(10**4 - k) for k in range(10)])


@pytest.mark.parametrize("kind", [DiscreteGaussian, DiscreteLaplace])
@pytest.mark.parametrize("value", [Fraction(1, 100), Fraction(3), Fraction(7963)], ids=str)
def test_a_table_is_not_larger_than_foreseen(kind: type, value: Fraction) -> None:
    assert len(kind(value).ladder(62).low) <= table_size(kind, value)


@both_functions
@both_methods
def test_an_empty_array_is_empty(draw: Callable, values: list) -> None:
    drawn = draw(trial(1), "x", 0, (values, np.empty(0, dtype=np.int64)))
    assert drawn.dtype == np.int64
    assert drawn.size == 0
    assert draw(trial(1), "x", 0, Fraction(1), 0).size == 0


def test_small_index_types_and_numpy_keys_are_taken() -> None:
    index = np.array([0, 1, 0, 1], dtype=np.uint8)
    narrow = discrete_gaussian(trial(1), "x", np.uint64(2**64 - 1), (FEW, index))
    wide = discrete_gaussian(trial(1), "x", 2**64 - 1, (FEW, index.astype(np.int64)))
    assert np.array_equal(narrow, wide)


@both_functions
@pytest.mark.parametrize(
    ("parameter", "options", "message"),
    [
        (0.5, {"size": 3}, "not a float"),
        (([0.5], np.array([0])), {}, "not a float"),
        (Fraction(1), {}, "size"),
        (Fraction(1), {"size": -1}, "size"),
        (Fraction(1, 101), {"size": 1}, "1/100"),
        (([*MANY[:1500], Fraction(0)], np.array([0])), {}, "1/100"),
        ((FEW, np.array([4])), {}, "from 0 on"),
        ((FEW, np.array([-1])), {}, "from 0 on"),
        (([], np.array([0])), {}, "from 0 on"),
        ((FEW, np.array([0.0])), {}, "whole numbers"),
        ((FEW, np.array([[0]])), {}, "whole numbers"),
        ((FEW, np.array([0])), {"size": 2}, "omit size"),
        (Fraction(1), {"size": 1, "start": -1}, "negative"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    draw: Callable, parameter: object, options: dict, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        draw(trial(1), "x", 0, parameter, **options)


def test_a_key_must_be_a_word() -> None:
    with pytest.raises(BadInput, match="key"):
        discrete_gaussian(trial(1), "x", -1, Fraction(1), 1)


@both_functions
def test_a_purpose_must_not_look_like_a_further_tape(draw: Callable) -> None:
    with pytest.raises(BadInput, match="slash"):
        draw(trial(1), "x/1", 0, Fraction(1), 1)


@both_functions
@both_methods
def test_the_systems_randomness_does_not_repeat_itself(draw: Callable, values: list) -> None:
    index = np.full(100, len(values) - 1)
    first, second = (draw(system(), "x", 0, (values, index)) for _ in range(2))
    assert not np.array_equal(first, second)
