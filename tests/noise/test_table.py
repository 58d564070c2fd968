"""Drawing from tables: all sixteen-bit prefixes, forced bits around edges, and deep tails."""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from discreet.noise import DiscreteGaussian, DiscreteLaplace, trial
from discreet.noise import table as tables
from discreet.noise.law import Ladder
from discreet.noise.share import Shares
from discreet.noise.table import GUARD, UNDECIDED, decide, draw_ranks, edges_of, prepare
from noise.oracle import (
    GAUSSIANS,
    LAWS,
    Law,
    Written,
    edges,
    floors,
    fraction_tape,
    name,
    probabilities,
    rank_of,
)

ONE = np.zeros(1, dtype=np.int64)


def rank_at(law: Law, bits: int, width: int) -> int:
    """Return the rank drawn when the tape holds these bits and then zeros."""
    tape = fraction_tape(bits, width)
    return int(draw_ranks(Shares(tape, "x", 0), prepare([law]), ONE)[0])


@pytest.mark.parametrize("law", LAWS, ids=name)
@pytest.mark.parametrize("width", [1, 4, 9, 12])
def test_decided_prefixes_never_claim_more_than_a_ranks_probability(law: Law, width: int) -> None:
    """Count all prefixes: what is decided fits into each step, and all but its ends is decided."""
    ladder = law.ladder(width + GUARD)
    found = Counter(decide(ladder, bits) for bits in range(2**width))
    bounds = [Fraction(0), *edges(law)]
    for rank in set(found) - {UNDECIDED}:
        p = bounds[rank + 1] - bounds[rank]
        assert Fraction(found[rank], 2**width) <= p
        assert p - Fraction(found[rank], 2**width) < Fraction(2, 2**width)
    assert sum(found.values()) == 2**width


@pytest.mark.parametrize("law", LAWS, ids=name)
@pytest.mark.parametrize("ones", [False, True], ids=["then-zeros", "then-ones"])
def test_all_sixteen_bit_prefixes_fall_where_the_law_says(law: Law, ones: bool) -> None:
    """Every prefix followed by 64 zeros or by 64 ones (and zeros after): both ends of its cell."""
    count = 2**16

    def word(purpose: str, at: int) -> int:
        if purpose == "x":
            return sum((4 * at + k) << 16 * k for k in range(4))
        return 2**64 - 1 if ones and purpose == "x/1" else 0

    index = np.zeros(count, dtype=np.int64)
    ranks = draw_ranks(Shares(Written(word), "x", 0), prepare([law]), index)
    after = 2**64 - 1 if ones else 0
    assert ranks.tolist() == [rank_of(law, lead << 64 | after, 80) for lead in range(count)]


@pytest.mark.parametrize("law", LAWS, ids=name)
@pytest.mark.parametrize("width", [40, 80, 200])
def test_bits_on_either_side_of_an_edge_give_the_ranks_on_either_side(law: Law, width: int) -> None:
    inside = [rank for rank, bits in enumerate(floors(law, width)) if bits + 1 < 2**width]
    for rank in inside[:: len(inside) // 10 + 1]:
        below = floors(law, width)[rank]  # then zeros: just below the edge, or an earlier one
        for bits in (below, below + 1):
            assert rank_at(law, bits, width) == rank_of(law, bits, width)
        assert rank_of(law, below, width) <= rank < rank_of(law, below + 1, width)


def tail_complaints(law: Law, truth: Law, sigmas: int = 6) -> list[int]:
    """Return the values beyond so many sigma that forced bits do not bring out of `law`.

    In the middle of each value's step, found with 110 decimals: no sample would show it.
    """
    deviation = float(truth.variance()) ** 0.5
    width, missed = 300, []
    bounds = floors(truth, width)
    last = max(x for x, p in enumerate(probabilities(truth)) if p > Fraction(1, 10**60))
    beyond = int(sigmas * deviation) + 1
    for x in range(beyond, last, max(1, (last - beyond) // 8)):
        for value, rank in ((-x, 2 * x - 1), (x, 2 * x)):
            middle = (bounds[rank - 1] + bounds[rank]) // 2
            if rank_at(law, middle, width) != rank:
                missed.append(value)
    return missed


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_tails_beyond_six_sigma_are_drawn_with_the_right_edges(law: Law) -> None:
    assert tail_complaints(law, law) == []


class CutAtSixSigma(DiscreteGaussian):
    """A planted bug: nothing beyond six sigma, and the rest made to fill the whole."""

    def ladder(self, bits: int) -> Ladder:
        whole = super().ladder(bits)
        kept = 2 * int(6 * float(self.sigma2) ** 0.5) + 1
        end = whole.low[: kept + 1][-1]
        low = [step * 2**bits // end for step in whole.low[:kept]]
        return Ladder([*low, 2**bits], whole.slack)


@pytest.mark.parametrize("truth", GAUSSIANS, ids=name)
def test_a_tail_cut_at_six_sigma_is_found(truth: DiscreteGaussian) -> None:
    assert tail_complaints(CutAtSixSigma(truth.sigma2), truth)


def test_a_draw_far_out_reads_only_as_deep_as_it_must() -> None:
    law = DiscreteGaussian(Fraction(100))
    bounds = floors(law, 300)
    for x, deepest in [(20, 0), (85, 1), (120, 2), (160, 3)]:
        tape = fraction_tape((bounds[2 * x - 1] + bounds[2 * x]) // 2, 300)
        assert draw_ranks(Shares(tape, "x", 0), prepare([law]), ONE)[0] == 2 * x
        names = ["x", *(f"x/{depth}" for depth in range(1, deepest + 1))]
        assert [purpose for purpose, _ in tape.read] == names


def test_a_fraction_within_the_error_of_an_edge_is_settled_with_finer_edges() -> None:
    """The first 62 bits are those of an edge itself: the table in machine words cannot know."""
    for law in (DiscreteGaussian(Fraction(1)), DiscreteLaplace(Fraction(10))):
        for rank in (0, 1, 5):
            for width in (62, 80, 130, 200):
                below = floors(law, width)[rank]
                assert rank_at(law, below, width) == rank
                assert rank_at(law, below + 1, width) == rank + 1


def test_mixed_laws_keep_their_own_tables() -> None:
    """Laws of very different size in one array, drawn together or each alone."""
    laws = [DiscreteGaussian(value) for value in (Fraction(1, 100), Fraction(10**6), Fraction(3))]
    index = np.arange(3000) % 3
    shares = Shares(trial(4), "x", 9)
    together = draw_ranks(shares, prepare(laws), index)
    for which, law in enumerate(laws):
        alone = draw_ranks(shares, prepare([law]), np.zeros(3000, dtype=np.int64))
        assert np.array_equal(together[index == which], alone[index == which])


def test_tables_are_kept_and_forgotten_when_they_fill_the_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tables, "_kept", {})
    monkeypatch.setattr(tables, "_ROOM", 500)
    laws = [DiscreteGaussian(Fraction(100 + k)) for k in range(10)]
    first = edges_of(laws[0])
    assert edges_of(laws[0]) is first
    for law in laws:
        edges_of(law)
    assert sum(kept.low.size for kept in tables._kept.values()) < 1000
    assert np.array_equal(edges_of(laws[0]).low, first.low)


def test_tables_may_be_kept_from_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a lock, the sum over the tables kept fails when another thread adds one."""
    monkeypatch.setattr(tables, "_kept", {})
    laws = [DiscreteGaussian(Fraction(10_000 + k, 10**6)) for k in range(2000)]
    every = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(edges_of, laws))
    finally:
        sys.setswitchinterval(every)
    assert all(tables._kept[law] is edges for law, edges in zip(laws, made, strict=True))
