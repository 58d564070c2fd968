"""Draw by rejection: for arrays in which (nearly) every element has its own law.

Canonne, Kamath and Steinke (2020), Algorithms 2 and 3. To propose x with probability
proportional to exp(-|x| g): draw u uniform below t and keep it with probability
exp(-u g); count the successes v of a coin of probability exp(-t g) before its first
failure; then |x| = u + t v. Give it a fair sign, and begin anew at "minus 0", which
would count 0 twice. The discrete Laplace law is that, with g = 1 / scale and t =
floor(scale) + 1 (any t would do). The discrete Gaussian takes t = floor(sigma) + 1 and
g = 1 / t, and keeps x with probability exp(-(|x| - sigma2 / t)^2 / (2 sigma2)).

What is drawn is defined by `draw_exactly`, in fractions of any size. `draw_each` does
the same in machine words (see `discreet.noise.coin`); where these do not tell what
`draw_exactly` would do, about once in 10^5 draws or less often, it leaves the element
to it, on the same tape.

Element i reads words i w to (i + 1) w, w = WORDS, of the tape of `purpose/try/0`; when
these are used up, the same words of `purpose/try/1`, and so on (`discreet.noise.share`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within
from discreet.noise.coin import (
    COIN_ENDED,
    COIN_UNKNOWN,
    FINE,
    UNIT,
    exp_fixed,
    exponentials,
    multiply,
    toss,
    toss_fixed,
)
from discreet.noise.law import DiscreteGaussian
from discreet.noise.recipe import (
    CENTRE,
    FLATNESS,
    RATE,
    SHIFT,
    G,
    NoiseLaw,
    T,
    recipe_of,
    recipes_of,
)
from discreet.noise.select import PIECES_PER_WORD, piece, scale, uniform_below
from discreet.noise.share import PIECE_BITS, Index, Shares, pieces_of
from discreet.noise.tape import Words

Integers = NDArray[np.int64]

WORDS = 4
OUT_OF_TAPE, UNDECIDED = -(2**62), -(2**62) - 1  # in place of a draw
_BATCH = 1 << 15


def draw_by_rejection(
    shares: Shares, kind: type[NoiseLaw], parameters: Sequence[Fraction], index: Index
) -> Integers:
    """Return one draw per element: element i from the law of `parameters[index[i]]`."""
    recipes = recipes_of(kind, parameters)
    out = np.empty(index.size, dtype=np.int64)
    for begin in range(0, index.size, _BATCH):
        which = index[begin : begin + _BATCH].astype(np.int64, copy=False)
        mine, drawn = shares.skip(begin), out[begin : begin + which.size]
        for place, words in _draw_batch(mine, recipes, which, drawn):
            law = kind(parameters[which[place]])
            drawn[place] = draw_exactly(law, _pieces(mine, place, words))
    return out


def _draw_batch(
    shares: Shares, recipes: Integers, which: Integers, out: Integers
) -> list[tuple[int, Words]]:
    """Draw one batch; return the places left undecided with the words they have received.

    An element whose words are used up keeps them, receives more and is read again
    from its first: what it draws is a function of its tape alone.
    """
    table = exponentials()
    words = shares.run("try/0", which.size, WORDS).reshape(which.size, WORDS)
    waiting = np.arange(which.size)
    undecided: list[tuple[int, Words]] = []
    while waiting.size:
        drawn = draw_each(words, recipes, which[waiting], table)
        out[waiting] = drawn
        undecided += [(int(waiting[j]), words[j]) for j in np.flatnonzero(drawn == UNDECIDED)]
        short = np.flatnonzero(drawn == OUT_OF_TAPE)
        waiting = waiting[short]
        tape = f"try/{words.shape[1] // WORDS}"
        fresh = shares.some(tape, waiting, WORDS).reshape(waiting.size, WORDS)
        words = np.hstack([words[short], fresh])
    return undecided


def _pieces(shares: Shares, element: int, received: Words) -> Iterator[int]:
    """Yield the pieces of an element's share: those received, then those of further tapes."""
    yield from pieces_of(received)
    rounds = received.size // WORDS
    while True:
        yield from pieces_of(shares.some(f"try/{rounds}", np.array([element]), WORDS))
        rounds += 1


def draw_exactly(law: NoiseLaw, pieces: Iterator[int]) -> int:
    """Return the draw that an endless tape gives: the definition, in numbers of any size."""
    t = recipe_of(law).t
    slope = Fraction(1, t) if isinstance(law, DiscreteGaussian) else 1 / law.scale
    while True:
        u = scale(next(pieces), t, PIECE_BITS)
        if u < 0 or not toss(slope * u, pieces):
            continue
        x = u
        while toss(slope * t, pieces):
            x += t
        negative = next(pieces) & 1
        if negative and x == 0:
            continue
        if isinstance(law, DiscreteGaussian):
            away = x - law.sigma2 / t
            if not toss(away * away / (2 * law.sigma2), pieces):
                continue
        return -x if negative else x


@compiled_within
def propose(
    words: Words, cursor: int, end: int, t: int, rate: int, again: int, table: Integers
) -> tuple[int, int, int]:
    """Return a proposal's absolute value and sign bit, and the new cursor.

    The value is COIN_ENDED or COIN_UNKNOWN if there is none.

    `again` is the chance exp(-t g) of the coin whose successes are counted.
    """
    while True:
        u, cursor = uniform_below(words, cursor, end, t)
        if u < 0:
            return COIN_ENDED, 0, cursor
        kept, cursor = toss_fixed(words, cursor, end, exp_fixed((u * rate) >> RATE - FINE, table))
        if kept < 0:
            return kept, 0, cursor
        if kept == 0:
            continue
        x = u
        more = 1
        while more == 1:
            more, cursor = toss_fixed(words, cursor, end, again)
            if more < 0:
                return more, 0, cursor
            x += t * more
        if cursor >= end:
            return COIN_ENDED, 0, cursor
        negative = piece(words, cursor) & 1
        cursor += 1
        if x > 0 or negative == 0:
            return x, negative, cursor


@compiled_within
def draw_one(words: Words, cursor: int, end: int, recipe: Integers, table: Integers) -> int:
    """Return the draw of an element whose tape is `cursor` to `end`, or why there is none."""
    t, rate, shift = recipe[T], recipe[G], recipe[SHIFT]
    again = exp_fixed((t * rate) >> RATE - FINE, table)
    largest = 1 << (UNIT - shift)
    while True:
        x, negative, cursor = propose(words, cursor, end, t, rate, again, table)
        if x == COIN_ENDED:
            return OUT_OF_TAPE
        if x == COIN_UNKNOWN or x >= largest:
            return UNDECIDED
        kept = 1
        if recipe[FLATNESS] > 0:
            away = abs((x << shift) - recipe[CENTRE])
            y = multiply(multiply(away, away), recipe[FLATNESS])
            kept, cursor = toss_fixed(words, cursor, end, exp_fixed(y, table))
        if kept == COIN_ENDED:
            return OUT_OF_TAPE
        if kept == COIN_UNKNOWN:
            return UNDECIDED
        if kept == 1:
            return -x if negative == 1 else x


@compiled
def draw_each(words: Words, recipes: Integers, which: Integers, table: Integers) -> Integers:
    """Return the draw of each element from its row of words, OUT_OF_TAPE or UNDECIDED."""
    out = np.empty(which.size, dtype=np.int64)
    end = words.shape[1] * PIECES_PER_WORD
    for i in range(which.size):
        out[i] = draw_one(words[i], 0, end, recipes[which[i]], table)
    return out
