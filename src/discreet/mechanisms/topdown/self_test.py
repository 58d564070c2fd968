"""Known answers of what TopDown measures with: which answers, their noise, and their counts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.topdown import active, answers, measurement
from discreet.noise import KnownAnswer, trial

_NODES, _CELLS, _ROWS = 40, 24, 6
_PURPOSE = "self-test"


def _asked() -> measurement.Asked:
    """Return a query whose nodes have two noises or none."""
    return measurement.Asked(
        level="level",
        query="query",
        row_of=_read_only(np.arange(_CELLS, dtype=np.int32) * 5 % _ROWS),
        rows=_ROWS,
        sigma2=(Fraction(100), None, Fraction(1, 3)),
        law=np.arange(_NODES) % 3,
    )


def _read_only(array: Any) -> Any:
    """Return an array as strategies have them: another type of compiled code."""
    array.flags.writeable = False
    return array


def _truth(each: int) -> measurement.Truth:
    node, cell = np.divmod(np.arange(_NODES * 5), 5)
    count = each + np.arange(node.size) % 7
    cells = (cell * 4 + node % 4).astype(np.int32)
    return measurement.truth_of(node, cells, count, _NODES, _CELLS)


def _all_answers(each: int) -> Any:
    """Measure all nodes, in chunks; `each` decides whether answers fit 32 bits."""
    found = measurement.measure_full([_asked()], _truth(each), trial(1), _PURPOSE, chunk=50)
    return [chunk for _, chunk in found]


def _some_answers() -> Any:
    places = np.arange(_NODES * _ROWS)
    places = places[(places // _ROWS % 3 != 1) & (places % 4 > 0)]
    return measurement.measure_rows(_asked(), _truth(9), places, trial(1), _PURPOSE, chunk=30)


def _places_that_matter() -> Any:
    """Take three parents with 2, 1 and 3 children, and two queries."""
    parents = active.Estimate(
        np.array([0, 3, 5, 9]), np.array([0, 4, 7, 1, 2, 3, 4, 5, 6], np.int32), np.ones(9, int)
    )
    children = np.array([0, 2, 3, 6])
    row_of = np.array([[0, 1, 2, 3, 0, 1, 2, 3], [1, 1, 1, 1, 0, 0, 0, 0]], dtype=np.int32)
    found = active.active_rows(parents, children, row_of, 0, 3)
    places = [active.places_of(found.start, found.row, children, 0, 3, 2, q, 4) for q in range(2)]
    start = active.block_start(found, children, 2)
    blocks = np.zeros(start[-1])
    values = np.arange(blocks.size) * 11 - 30
    active.place_answers(blocks, start, found.start, children, 0, 3, 2, values)
    repeated = np.zeros(sum(map(len, places)), dtype=np.int32)
    answers._repeat_rows(found.start, found.row, np.diff(children), 2, repeated)
    return found, places, blocks, repeated


def _answers_read(kind: type[np.signedinteger]) -> Any:
    """Read nodes in any order; then without the last row, and with the rows of others."""
    key, row = np.array([5, 5, 2, 2, 2, 7]), np.array([0, 3, 1, 2, 3, 4], dtype=np.int32)
    value: NDArray[Any] = (np.arange(6) * 13 - 40).astype(kind)
    place = np.full(9, -1)
    place[[2, 5, 7]] = [0, 1, 2]
    start, wanted = np.array([0, 3, 5, 6], np.int32), np.array([1, 2, 3, 0, 3, 4], np.int32)
    values = np.zeros(6, dtype=np.int64)
    return [
        answers._settle(key, value, row, place, start, wanted, values),
        answers._settle(key[:5], value[:5], row[:5], place, start, wanted, values.copy()),
        answers._settle(key, value, row[::-1].copy(), place, start, wanted, values.copy()),
        values,
    ]


ANSWERS = (
    KnownAnswer("noisy answers of whole nodes", lambda: _all_answers(9), "2a4aa8e9d449a7b0"),
    KnownAnswer(
        "noisy answers beyond 32 bits", lambda: _all_answers(2**31 - 50), "cb25259eb67b749c"
    ),
    KnownAnswer("noisy answers at places", _some_answers, "344c1e0fe50dee57"),
    KnownAnswer("places that matter", _places_that_matter, "d12f0818fe08bb67"),
    KnownAnswer("noisy answers that are read", lambda: _answers_read(np.int32), "b7f8b370cd8284fa"),
    KnownAnswer(
        "wide noisy answers that are read", lambda: _answers_read(np.int64), "b7f8b370cd8284fa"
    ),
)
