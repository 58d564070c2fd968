"""Known answers of what swapping draws with: who is permuted, and who trades with whom."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal

import numpy as np

from discreet.mechanisms.numbering import run_starts, sort_keys
from discreet.mechanisms.swapping import donors, kernel, nearest
from discreet.mechanisms.swapping.geometry import plant
from discreet.mechanisms.swapping.households import Households, Places
from discreet.mechanisms.swapping.risk import Tier, rank
from discreet.noise import KnownAnswer, known_words, trial

_HOUSEHOLDS, _BLOCKS, _STRATA = 400, 60, 3


def _permutation() -> Any:
    """Permute strata of many sizes, in small batches, with tapes that end again and again."""
    sizes = np.array([0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144])
    offsets = np.append(0, np.cumsum(sizes))
    keys = np.arange(sizes.size, dtype=np.uint64)
    return [
        kernel.permute_strata(offsets, keys, rate, trial(1), batch_records=64, tape_words=words)
        for rate, words in ((Fraction(3, 7), 3), (Fraction(1, 20), 1 << 16))
    ]


def _words_of_strata() -> Any:
    """Ask for words for strata that select and that derange, and add them to those unread."""
    state = np.arange(24).reshape(4, 6) % 7
    state[:, kernel.STAGE] = [kernel.SELECTING, kernel.DERANGING] * 2
    sizes, waiting = np.array([10, 20, 300_000, 7]), np.array([0, 1, 3])
    ask = kernel._words_to_ask(state, np.arange(4), sizes, 2**15, 1 << 16)
    state[:, kernel.CURSOR], state[:, kernel.END] = [1, 6, 9, 15], [4, 8, 12, 20]
    words = known_words(13)
    extended = kernel._extend(words[:5], words[5:], np.array([3, 1, 4]), state, waiting)
    return ask, extended, state


def _order_of_rows() -> Any:
    """Sort keys of two digits, many of them equal."""
    key = (known_words(600) >> np.uint64(44)).astype(np.int64) // 1000 * 1000
    order = sort_keys(key, 1 << 20)
    return order, run_starts(key[order])


def _pairs_by_lists(bound: bool) -> Any:
    """Pair by two families of lists, where areas run out of pairs."""
    order = np.argsort(known_words(_HOUSEHOLDS))
    number = np.arange(_HOUSEHOLDS)
    lists = donors.line_up([(number % 40, order), (number % 7, order[::2].copy())])
    area, home = number % 5, number % 11
    free = np.ones(_HOUSEHOLDS, dtype=np.bool_)
    left = donors.Free(free, area, np.arange(5) * 12, home, np.arange(11) * 3)
    return donors.pair_up(order, lists, number // 9 % 4, left, bound), left


def _pairs_nearby(choice: Literal["nearest", "riskiest"]) -> Any:
    """Pair in three strata, one of them large enough for the request of the program."""
    households = _town()
    tree = plant(households, "degrees")
    tiers = [Tier(share=Fraction(1), chance=Fraction(1)), Tier(chance=Fraction(1, 2))]
    rules = nearest.Rules(tiers, [[150, 250]], [70], 66, True, choice == "riskiest")
    risk = rank(households, np.arange(_HOUSEHOLDS) % 9, None)
    swap = nearest.pair(nearest.Prepared(households, tree, risk, rules), trial(2))
    return tree, swap.partner, swap.targets, swap.without_partner


def _town() -> Households:
    """Return households of one area on a grid of blocks."""
    number, block = np.arange(_HOUSEHOLDS), np.arange(_BLOCKS)
    nobody: Any = None  # the table of blocks, which nothing here reads
    area = {"area": np.zeros(_BLOCKS, dtype=np.int64)}
    north, east = block % 8 / 16.0, block // 8 / 16.0
    place = number * 7 % _BLOCKS
    return Households(
        places=Places(nobody, "area", ("area",), area, north, east),
        area_codes=("area",),
        offsets=np.array([0, _HOUSEHOLDS]),
        unit_id=number,
        place=place,
        stratum=number % _STRATA,
        leave=place // 4,
        columns={},
    )


ANSWERS = (
    KnownAnswer("permutations of strata", _permutation, "67d2c1718b3f8326"),
    KnownAnswer("words of strata", _words_of_strata, "61b4bd2aa3a7caca"),
    KnownAnswer("the order of rows", _order_of_rows, "a77b4baf2ce8cfff"),
    KnownAnswer("pairs by lists", lambda: _pairs_by_lists(False), "513e52e67e31c728"),
    KnownAnswer("pairs by lists within quotas", lambda: _pairs_by_lists(True), "a8619d6bb2536f69"),
    KnownAnswer("pairs of neighbours", lambda: _pairs_nearby("nearest"), "a45e91eec973064a"),
    KnownAnswer("pairs of those at risk", lambda: _pairs_nearby("riskiest"), "54bbd6469c3c29ae"),
)
