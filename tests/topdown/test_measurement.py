"""Noisy answers: exact counts plus noise, the same whatever is asked for and however cut."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import BadInput
from discreet.mechanisms.topdown import measurement
from discreet.mechanisms.topdown.measurement import (
    MOST_COUNTED,
    Asked,
    fits,
    in_order,
    measure_full,
    measure_rows,
    truth_of,
)
from discreet.noise import DiscreteGaussian, Mode, discrete_gaussian, key_of, system, trial

NODES, CELLS = 61, 24
PURPOSE = "topdown-test"
#: Rows of each cell: total, two of three axes, all cells, and a partition in odd order.
QUERIES = {
    "total": np.zeros(CELLS, np.int32),
    "thirds": (np.arange(CELLS) // 8).astype(np.int32),
    "detailed": np.arange(CELLS, dtype=np.int32),
    "odd": ((np.arange(CELLS) * 7 + 3) % 5).astype(np.int32),
}
#: Parameters of nodes by share; those of the first are not measured.
SIGMA2 = (None, Fraction(12092, 10000), Fraction(4424), Fraction(1, 3))


class Silent:
    """Randomness without any: the noise of zeros is zero."""

    mode: Mode = "trial"

    def words(self, purpose, keys, start, length):
        return np.zeros(int(length.sum()), dtype=np.uint64)


def asked_of(query: str, law: np.ndarray | None = None) -> Asked:
    row_of = QUERIES[query]
    if law is None:
        law = np.arange(NODES) * 5 % 4
    return Asked("county", query, row_of, int(row_of.max()) + 1, SIGMA2, law.astype(np.int8))


def sparse(seed: int = 3):
    """Return counts by node and cell, sparse and as a table; some nodes are empty."""
    rng = np.random.default_rng(seed)
    table = rng.poisson(2.0, (NODES, CELLS)) * (rng.random((NODES, CELLS)) < 0.4)
    table[[0, 7, 8, NODES - 1]] = 0
    node, cell = np.nonzero(table)
    count = table[node, cell].astype(np.int64)
    return truth_of(node.astype(np.int32), cell.astype(np.int32), count, NODES, CELLS), table


def answers(table: np.ndarray, asked: Asked) -> np.ndarray:
    """Return the exact answers, by a loop over rows."""
    return np.stack(
        [table[:, asked.row_of == row].sum(axis=1) for row in range(asked.rows)], axis=1
    )


def whole(asked: Asked, truth, rng, **more) -> tuple[np.ndarray, np.ndarray]:
    chunks = [chunk for _, chunk in measure_full([asked], truth, rng, PURPOSE, **more)]
    return np.concatenate([c.node for c in chunks]), np.concatenate([c.value for c in chunks])


@pytest.mark.parametrize("query", QUERIES)
def test_without_noise_the_answers_are_exact(query: str) -> None:
    truth, table = sparse()
    asked = asked_of(query)
    node, value = whole(asked, truth, Silent())
    assert node.tolist() == [k for k in range(NODES) if asked.law[k] != 0]
    assert np.array_equal(value, answers(table, asked)[node])
    places = (node[:, None] * asked.rows + np.arange(asked.rows)).ravel()[::3]
    some = measure_rows(asked, truth, places, Silent(), PURPOSE)
    assert np.array_equal(some, answers(table, asked).ravel()[places])


@pytest.mark.parametrize("query", QUERIES)
def test_an_answer_is_the_count_plus_its_element_of_the_array_of_noise(query: str) -> None:
    truth, table = sparse()
    asked = asked_of(query)
    node, value = whole(asked, truth, trial(9))
    key = int(key_of(["county"], [query])[0])
    which = np.repeat(np.maximum(asked.law, 1) - 1, asked.rows)
    noise = discrete_gaussian(trial(9), PURPOSE, key, (list(SIGMA2[1:]), which))
    exact = answers(table, asked)
    assert np.array_equal(value, (exact + noise.reshape(exact.shape))[node])


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_some_answers_are_those_of_the_full_measurement(query: str, seed: int) -> None:
    truth, _ = sparse()
    asked = asked_of(query)
    node, value = whole(asked, truth, trial(seed))
    everywhere = (node[:, None] * asked.rows + np.arange(asked.rows)).ravel()
    chosen = np.random.default_rng(seed).random(everywhere.size) < 0.3
    some = measure_rows(asked, truth, everywhere[chosen], trial(seed), PURPOSE)
    assert np.array_equal(some, value.ravel()[chosen])
    assert measure_rows(asked, truth, everywhere[:0], trial(seed), PURPOSE).size == 0


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("chunk", [1, 50, 10**6])
@pytest.mark.parametrize("law", ["mixed", "all measured"])
def test_chunks_and_threads_do_not_matter(threads: int, chunk: int, law: str) -> None:
    truth, _ = sparse()
    laws = None if law == "mixed" else 1 + np.arange(NODES) % 3
    asked = asked_of("detailed", laws)
    node, value = whole(asked, truth, trial(4))
    again = whole(asked, truth, trial(4), threads=threads, chunk=chunk)
    assert np.array_equal(again[0], node)
    assert np.array_equal(again[1], value)
    places = (node[:, None] * asked.rows + np.arange(0, asked.rows, 3)).ravel()
    some = [
        measure_rows(asked, truth, places, trial(4), PURPOSE, threads=t, chunk=c)
        for t, c in ((1, 10**6), (threads, 7 * chunk))
    ]
    assert np.array_equal(some[0], some[1])


def test_many_different_noises_are_drawn_alike() -> None:
    """More than tables are made for: drawn by rejection."""
    truth, _ = sparse()
    many = tuple(Fraction(1000 + k, 997) for k in range(3000))
    asked = Asked("county", "odd", QUERIES["odd"], 5, many, np.arange(NODES) * 49)
    node, value = whole(asked, truth, trial(4))
    places = (node[:, None] * asked.rows + np.arange(0, asked.rows, 2)).ravel()
    some = measure_rows(asked, truth, places, trial(4), PURPOSE)
    assert np.array_equal(some, value[:, ::2].ravel())


def test_noise_has_the_law_it_says() -> None:
    """Counts and squares of the noise against the exact law, fresh randomness.

    Each of 2 x 12 comparisons may be 6 standard deviations off: a false alarm once in
    about 10^7 runs.
    """
    nodes, rows = 3000, 24
    row_of = np.arange(rows, dtype=np.int32)
    sigma2 = (Fraction(12092, 10000), Fraction(100928, 10000))
    asked = Asked("block", "detailed", row_of, rows, sigma2, np.arange(nodes) % 2)
    none = np.zeros(0, np.int32)
    truth = truth_of(none, none, np.zeros(0, np.int64), nodes, rows)
    _, value = whole(asked, truth, system())
    for which, parameter in enumerate(sigma2):
        law = DiscreteGaussian(parameter)
        noise = value[which::2].ravel().astype(float)
        spread = float(law.variance())
        assert abs(noise.mean()) < 6 * (spread / noise.size) ** 0.5
        # The fourth moment is at most 3 sigma2^2, that of the continuous law, to 1 %.
        assert abs((noise**2).mean() - spread) < 6 * (2.03 * spread**2 / noise.size) ** 0.5
        for x in range(-5, 5):
            p = float(law.probability(x))
            off = abs((noise == x).sum() - p * noise.size)
            assert off < 6 * (p * (1 - p) * noise.size) ** 0.5 + 1


@pytest.mark.parametrize("block", [1, 10**6])
def test_large_counts_are_kept_in_64_bits(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(measurement, "_BLOCK", block)
    large = np.array([4, 2**31, 5], dtype=np.int64)
    truth = truth_of(np.arange(3), np.zeros(3, np.int32), large, 3, CELLS)
    law = np.zeros(3, np.int8)
    asked = Asked("county", "total", QUERIES["total"], 1, (Fraction(2),), law)
    _, value = whole(asked, truth, Silent())
    assert value.dtype == np.int64
    assert value.ravel().tolist() == [4, 2**31, 5]
    some = measure_rows(asked, truth, np.arange(3), Silent(), PURPOSE)
    assert some.tolist() == [4, 2**31, 5]
    assert fits(np.array([2**31 - 1, -(2**31)]))
    assert not fits(np.array([-(2**31) - 1]))


@pytest.mark.parametrize(
    ("node", "cell", "count"),
    [
        ([1, 0], [0, 0], [1, 1]),
        ([0, NODES], [0, 0], [1, 1]),
        ([-1, 0], [0, 0], [1, 1]),
        ([0, 1], [0, CELLS], [1, 1]),
        ([0, 1], [-1, 0], [1, 1]),
        ([0, 1], [0, 0], [1, -1]),
        ([0, 1], [0, 0], [1, MOST_COUNTED + 2**10]),
        ([0, 1], [0], [1, 1]),
    ],
)
def test_counts_that_do_not_fit_are_refused(node: list, cell: list, count: list) -> None:
    with pytest.raises(BadInput, match=r"^counts: "):
        truth_of(np.array(node), np.array(cell, np.int32), np.array(count), NODES, CELLS)


def test_what_does_not_fit_together_is_refused() -> None:
    truth, _ = sparse()
    row_of = QUERIES["odd"]
    with pytest.raises(BadInput, match="a row from 0"):
        Asked("county", "odd", row_of, 4, SIGMA2, np.zeros(NODES, np.int8))
    with pytest.raises(BadInput, match="noise of the list"):
        Asked("county", "odd", row_of, 5, SIGMA2, np.full(NODES, 4))
    short = Asked("county", "odd", row_of, 5, SIGMA2, np.ones(NODES - 1, np.int8))
    with pytest.raises(BadInput, match="same nodes"):
        whole(short, truth, Silent())
    fewer = Asked("county", "odd", row_of[:-1], 5, SIGMA2, np.ones(NODES, np.int8))
    with pytest.raises(BadInput, match="same histogram"):
        whole(fewer, truth, Silent())


@pytest.mark.parametrize(
    ("places", "rule"),
    [
        ([-1, 5], "not measured"),
        ([5, NODES * 5], "not measured"),
        ([5, 10**15, 6], "not measured"),
        ([1], "not measured"),
        ([6, 5], "must increase"),
        ([5, 5], "must increase"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 100])
def test_places_without_an_answer_are_refused(places: list, rule: str, chunk: int) -> None:
    truth, _ = sparse()
    with pytest.raises(BadInput, match=f"{rule}|must increase"):
        measure_rows(asked_of("odd"), truth, np.array(places), trial(1), PURPOSE, chunk=chunk)


def test_results_come_in_order_and_an_error_ends_the_work() -> None:
    assert [*in_order(lambda k: k * k, range(50), 4)] == [k * k for k in range(50)]
    with pytest.raises(ZeroDivisionError):
        [*in_order(lambda k: 1 // (7 - k), range(50), 4)]
