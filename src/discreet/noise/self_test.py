"""Known answers: whether the machine code that draws does what the sources say.

Machine code is taken from a cache on the disk. A file there that was changed or damaged could
draw other noise, or none, and nothing else would notice. So before a release is charged every
kernel that draws is run on tapes that are known, and what it gives is compared with digests
that are written down here. They were made by Python from the sources, without machine code
(tests make them again in the same way).

What this cannot show: that code which knows these tapes does not behave otherwise on others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from discreet.compiled import cache_root
from discreet.errors import DiscreetError
from discreet.noise.binomial import binomial
from discreet.noise.draw import MOST_TABLES, discrete_gaussian, discrete_laplace
from discreet.noise.law import DiscreteGaussian, DiscreteLaplace
from discreet.noise.recipe import first_outside, recipes_of
from discreet.noise.reject import draw_exactly
from discreet.noise.select import (
    PIECES_PER_WORD,
    Chance,
    select_each,
    shuffle,
    uniform_below,
)
from discreet.noise.share import Shares, pieces_of
from discreet.noise.sparse import select_sparse
from discreet.noise.table import look_up_more, prepare
from discreet.noise.tape import Randomness, Words, trial

SEED = 20200401
PURPOSE = "self-test"


class WrongAnswer(DiscreetError):
    """Compiled code does not draw what its sources say.

    The exit code is that of a failure, not of bad input: no configuration can be at fault.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"self-test: the compiled code of {name} gives a wrong answer, so that protection "
            f"cannot be relied on. Nothing was drawn or charged. Find out who or what changed the "
            f"compiled code in {cache_root()}, delete that folder (it is compiled again from the "
            f"sources) and run again."
        )


class KnownAnswer(NamedTuple):
    """What is drawn, how, and the digest of the result (`digest_of`)."""

    name: str
    draw: Callable[[], Any]
    digest: str


def check_answers(answers: Iterable[KnownAnswer]) -> None:
    """Draw again whatever is known, and refuse the first that differs."""
    for answer in answers:
        try:
            right = digest_of(answer.draw()) == answer.digest
        except Exception:  # changed code may fail in any way
            right = False
        if not right:
            raise WrongAnswer(answer.name)


def digest_of(result: Any) -> str:
    """Return the first 16 hexadecimal digits of a hash of arrays or numbers, nested in tuples."""
    return hashlib.sha256(_written(result)).hexdigest()[:16]


def _written(result: Any) -> bytes:
    if isinstance(result, tuple | list):
        return b"(" + b"".join(map(_written, result)) + b")"
    array = np.asarray(result)
    return f"{array.dtype.str}{array.shape}".encode() + array.tobytes()


def known_words(count: int) -> Words:
    """Return words of a tape that is always the same."""
    one = np.ones(1, dtype=np.int64)
    return _known().words(PURPOSE, np.zeros(1, dtype=np.uint64), 0 * one, count * one)


def _known() -> Randomness:
    return trial(SEED)


# -- what is drawn ---------------------------------------------------------------------------------


def _words() -> Any:
    """Read tapes from odd and from even words on, near their beginning and far out."""
    keys = np.array([0, 1, 2**63 + 5, 2**64 - 1], dtype=np.uint64)
    start = np.array([0, 1, 2**34 + 1, 2**40])
    return _known().words(PURPOSE, keys, start, np.array([9, 8, 7, 0]))


def _few_laws() -> tuple[list[Fraction], Any]:
    values = [Fraction(1, 50), Fraction(214437516707, 177339451520), Fraction(10), Fraction(7963)]
    return values, np.tile(np.array([3, 0, 1, 2, 3], dtype=np.int8), 800)


def _many_laws(power: int) -> tuple[list[Fraction], Any]:
    """Return more laws than tables are made for, of scales up to 74 to the power."""
    count = MOST_TABLES + 1
    values = [Fraction(10 + 7 * i, 97) ** power for i in range(count)]
    return values, np.arange(2 * count) * 5 % count


def _tables() -> Any:
    """Return tables, narrow and wide, and where bits fall that only more bits can decide."""
    tables = prepare([DiscreteGaussian(value) for value in _few_laws()[0]]).tables
    wide = prepare([DiscreteGaussian(Fraction(10**6))]).tables
    edges = tables.low[tables.where[2, 0] :][:9]
    leads, rest = edges >> 46, (edges.astype(np.uint64) << np.uint64(18))
    law, out, places = np.full(9, 2), leads.copy(), np.arange(9)
    return tables, wide, look_up_more(rest, leads, tables, law, out, places), out


def _recipes() -> Any:
    return recipes_of(DiscreteGaussian, _many_laws(2)[0]), recipes_of(
        DiscreteLaplace, _many_laws(1)[0]
    )


def _pieces_at_places() -> Any:
    places = np.cumsum(1 + np.arange(300) * 7 % 6)
    return Shares(_known(), PURPOSE, 8, at=places).pieces(places.size)


def _gaussian_by_tables() -> Any:
    return discrete_gaussian(_known(), PURPOSE, 1, _few_laws(), start=3)


def _gaussian_by_wide_tables() -> Any:
    return discrete_gaussian(_known(), PURPOSE, 2, Fraction(10**6), 2000)


def _gaussian_at_places() -> Any:
    places = np.cumsum(1 + np.arange(4000) * 7 % 6)
    return discrete_gaussian(_known(), PURPOSE, 3, _few_laws(), at=places)


def _gaussian_by_rejection() -> Any:
    return discrete_gaussian(_known(), PURPOSE, 4, _many_laws(2), start=5)


def _laplace_by_tables() -> Any:
    return discrete_laplace(_known(), PURPOSE, 5, Fraction(40, 3), 4000)


def _laplace_by_rejection() -> Any:
    return discrete_laplace(_known(), PURPOSE, 6, _many_laws(1), start=5)


def _gaussian_by_definition() -> Any:
    pieces = pieces_of(known_words(1000))
    law = DiscreteGaussian(Fraction(7963, 10))
    return [draw_exactly(law, pieces) for _ in range(20)]


def _range_of_parameters() -> Any:
    """Look for parameters where one is too small, one is too large, and all are good."""
    good, small, large = [[1, 100], [10**8, 1]], [1, 101], [10**8 + 1, 1]
    lists = ([*good, small], [*good, large], good)
    return [first_outside(np.array(pairs), 10**8) for pairs in lists]


def _binomial() -> Any:
    keys = np.arange(40, dtype=np.uint64)
    return binomial(_known(), PURPOSE, keys, np.arange(40) * 25, Fraction(3, 7), tape_words=200)


def _sparse_selection() -> Any:
    return select_sparse(_known(), PURPOSE, 7, Fraction(1, 100), 20_000)


def _selection() -> Any:
    """Select by four bits at a time, so that ties are common."""
    chosen = np.zeros(500, dtype=np.int32)
    words, chance = known_words(200), Chance.of(Fraction(3, 7), 4)
    found = select_each(words, 1, 200 * PIECES_PER_WORD, 0, 500, 0, chosen, (*chance,), 4)
    return found, chosen


def _shuffle(deranged: bool) -> Any:
    order = np.arange(300, dtype=np.int32)
    found = shuffle(known_words(1000), 0, 1000 * PIECES_PER_WORD, 299, order, deranged)
    return found, order


def _uniform_integers() -> Any:
    words, end = known_words(40), 40 * PIECES_PER_WORD
    bounds = [1, 6, 2**16 - 1, 2**16, 2**16 + 1, 2**31 - 1, 2**31]
    drawn, cursor = [], 0
    for bound in bounds * 5:
        value, cursor = uniform_below(words, cursor, end, bound)
        drawn.append((value, cursor))
    return drawn


#: Name, draw and digest of every answer.
_KNOWN: tuple[tuple[str, Callable[[], Any], str], ...] = (
    ("the tapes of trials", _words, "7926df74bd7fb605"),
    ("pieces of tapes", _pieces_at_places, "ff84c55ef2d95e69"),
    ("tables of noise", _tables, "e0efe451b0341c18"),
    ("recipes of noise", _recipes, "82ea657ee0333dfd"),
    ("discrete Gaussian noise by tables", _gaussian_by_tables, "371c599d7ffbfc3e"),
    ("discrete Gaussian noise by wide tables", _gaussian_by_wide_tables, "fac7aa643aead0bb"),
    ("discrete Gaussian noise at places", _gaussian_at_places, "cc2245e8b6395edd"),
    ("discrete Gaussian noise by rejection", _gaussian_by_rejection, "4390d06d23dc52d0"),
    ("discrete Gaussian noise by definition", _gaussian_by_definition, "7abdd56cf9ad3d12"),
    ("the range of noise parameters", _range_of_parameters, "6eb726a357b8fd73"),
    ("discrete Laplace noise by tables", _laplace_by_tables, "e20bd262a145b982"),
    ("discrete Laplace noise by rejection", _laplace_by_rejection, "ee728f590347836b"),
    ("binomial draws", _binomial, "aa4fc8f66d0f3e3d"),
    ("sparse selection", _sparse_selection, "e97cf6cac08608e5"),
    ("selection", _selection, "dcf4f236c66746ad"),
    ("shuffles", lambda: _shuffle(False), "72b174f77f8df69a"),
    ("derangements", lambda: _shuffle(True), "a2a439e7daf9ba40"),
    ("uniform integers", _uniform_integers, "a257c0963d912f34"),
)
NOISE_ANSWERS = tuple(KnownAnswer(*known) for known in _KNOWN)
