"""Draw from binomial laws exactly, with any rational chance, 64 coins at a time.

Give each of n trials an endless binary fraction and count those below p. Digit by
digit of p, only the trials whose digits have been those of p so far are open; each of
them gets a fair coin as its next digit. Where p has the digit 1, a coin of 0 puts the
trial below p; where p has the digit 0, a coin of 1 puts it above. Only the number of
open trials matters, so a word of the tape serves 64 of them, and about 2 n coins are
needed in all. Integers only; the law is binomial by construction.

What is drawn for an item is a function of the item's own tape.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled
from discreet.errors import BadInput
from discreet.noise.select import Chance, chance_digit
from discreet.noise.tape import Randomness, Words, check_purpose

Integers = NDArray[np.int64]

_COINS = 64
_ITEMS = 4096
# Columns of the state: trials open, trials below p, what remains of p, and of the open trials
# those that have their next coin and those whose coin was 1.
_OPEN, _BELOW, _REST, _TOSSED, _ONES = 0, 1, 2, 3, 4


def binomial(
    rng: Randomness,
    purpose: str,
    keys: Words,
    trials: Integers,
    chance: Fraction,
    *,
    tape_words: int = 1 << 22,
) -> Integers:
    """Return for each item how many of its trials succeed, each with probability `chance`.

    Items are named by their keys, all different. `tape_words` bounds the words fetched
    at a time; the result does not depend on it.

    >>> from discreet.noise import key_of, trial
    >>> binomial(trial(1), "example", key_of(["a", "b"]), np.array([10, 10**6]), Fraction(1, 3))
    array([     2, 333992])
    """
    check_purpose(purpose)
    if keys.size != trials.size or np.unique(keys).size != keys.size:
        raise BadInput("keys: need one per item, all different, or items would draw alike")
    if trials.size and trials.min() < 0:
        raise BadInput("trials: a number of trials must not be negative")
    split = Chance.of(chance, width=0)
    state = np.zeros((trials.size, 5), dtype=np.int64)
    state[:, _OPEN], state[:, _REST] = trials, split.rest
    for begin in range(0, trials.size, _ITEMS):
        part = slice(begin, begin + _ITEMS)
        most = max(1, tape_words // len(state[part]))
        _toss_all(rng, purpose, keys[part], state[part], split.denominator, most)
    return state[:, _BELOW].copy()


def _toss_all(
    rng: Randomness, purpose: str, keys: Words, state: Integers, denominator: int, most: int
) -> None:
    """Toss until no trial is open, extending tapes by at most `most` words at a time."""
    received = np.zeros(len(state), dtype=np.int64)
    waiting = np.flatnonzero(state[:, _OPEN] > 0)
    while waiting.size:
        # Twice the open trials, and some words in which few are left. A guess that saves rounds.
        ask = np.minimum(most, state[waiting, _OPEN] // (_COINS // 2) + 8)
        words = rng.words(purpose, keys[waiting], received[waiting], ask)
        received[waiting] += ask
        ends = np.cumsum(ask)
        toss_each(words, ends - ask, ends, state, waiting, denominator)
        unsettled = (state[waiting, _OPEN] > 0) & (state[waiting, _REST] > 0)
        waiting = waiting[unsettled]


@compiled
def toss_each(
    words: Words,
    begins: Integers,
    ends: Integers,
    state: Integers,
    waiting: Integers,
    denominator: int,
) -> None:
    """Carry each waiting item on until it is settled or its words end.

    Where the digits of p end, what is still open is not below p.
    """
    for i in range(waiting.size):
        at, end = begins[i], ends[i]
        still, below, rest, tossed, ones = state[waiting[i]]
        while still > 0 and rest > 0 and at < end:
            coins = min(_COINS, still - tossed)
            ones += ones_in(words[at] << np.uint64(_COINS - coins))
            tossed += coins
            at += 1
            if tossed == still:
                digit, rest = chance_digit(rest, denominator, 1)
                if digit == 1:
                    below += still - ones
                    still = ones
                else:
                    still -= ones
                tossed, ones = 0, 0
        row = state[waiting[i]]
        row[_OPEN], row[_BELOW], row[_REST], row[_TOSSED], row[_ONES] = (
            still,
            below,
            rest,
            tossed,
            ones,
        )


@compiled
def ones_in(word: np.uint64) -> int:
    """Return how many bits of a word are 1: sums of 2, of 4, of 8 bits, then of all bytes."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
