"""Noisy answers: how many records of a node fall into each row of a query, plus exact noise.

A query is a partition of the cells. Replacing one record changes two of its rows by one
each, at the nodes that hold the record, so noise of parameter sigma2 costs rho = 1/sigma2
(Abowd et al. 2022, section 5; Canonne, Kamath and Steinke 2020).

The answer of a node and a row is element node * rows + row of an array of noise that is
named by level and query. Under a seed it is therefore the same whether all answers are
drawn (`measure_full`) or some (`measure_rows`), and whatever the chunks and threads.

An answer may be drawn once only: with the operating system's randomness a second call gives
a second answer, which nobody has paid for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadInput
from discreet.mechanisms.topdown.measurement_kernels import (
    add_counts,
    add_counts_at,
    narrowed,
    noise_at,
)
from discreet.noise import DiscreteGaussian, Randomness, key_of, measure

Integers = NDArray[np.int64]
Numbers = NDArray[np.int32]
Answers = NDArray[np.int32] | NDArray[np.int64]

#: Answers of one chunk: 32 MB.
CHUNK = 1 << 23
#: Counts may add up to this: whatever the noise, a sum stays within a signed word.
MOST_COUNTED = 1 << 60
_BLOCK = 1 << 17
_NARROW = np.iinfo(np.int32)

Item = TypeVar("Item")
Result = TypeVar("Result")


class Truth(NamedTuple):
    """Exact counts of a level: those of node k are entries start[k] to start[k + 1]."""

    start: Integers
    cell: Numbers
    counted: Integers
    cells: int


class Chunk(NamedTuple):
    """Answers to one query: `value[i]` has one per row, for node `node[i]`; nodes increase."""

    node: Integers
    value: Answers


@dataclass(frozen=True)
class Asked:
    """One query at one level, with its noise.

    Attributes
    ----------
    row_of, rows
        The row of every cell, and the number of rows.
    sigma2
        The different parameters of the noise; None for nodes that are not measured.
    law
        Which of them each node has.
    """

    level: str
    query: str
    row_of: Numbers
    rows: int
    sigma2: tuple[Fraction | None, ...]
    law: NDArray[np.integer]

    def __post_init__(self) -> None:
        """Refuse what would read outside of the arrays."""
        if self.row_of.min(initial=0) < 0 or self.row_of.max(initial=0) >= self.rows:
            raise BadInput(f"query '{self.query}': every cell must have a row from 0 to rows - 1")
        if self.law.min(initial=0) < 0 or self.law.max(initial=0) >= len(self.sigma2):
            raise BadInput(f"query '{self.query}': every node must have a noise of the list")

    @cached_property
    def key(self) -> int:
        """Return the name of the array of noise."""
        return int(key_of([self.level], [self.query])[0])

    @cached_property
    def noises(self) -> list[Fraction]:
        """Return the parameters without those of nodes that are not measured.

        Always all of them, as the way of drawing depends on the list.
        """
        return [value for value in self.sigma2 if value is not None]

    @cached_property
    def noise_of(self) -> Numbers:
        """Return which of `noises` each node has, -1 for none."""
        place, places = 0, []
        for value in self.sigma2:
            places.append(-1 if value is None else place)
            place += value is not None
        return np.asarray(np.array(places, dtype=np.int32)[self.law], dtype=np.int32)

    @cached_property
    def measured(self) -> Integers:
        """Return the nodes that are measured, ascending."""
        return np.flatnonzero(self.noise_of >= 0)


def truth_of(
    node: NDArray[np.integer], cell: Numbers, count: Integers, nodes: int, cells: int
) -> Truth:
    """Return counts by node; they must come in the order of the nodes.

    Checked here once, because what adds them up later does not look.
    """
    if not node.size == cell.size == count.size:
        raise BadInput("counts: node, cell and count must have one entry per count")
    if node.size:
        if node[0] < 0 or node[-1] >= nodes or np.any(node[1:] < node[:-1]):
            raise BadInput("counts: nodes must be in order and in the tree")
        if cell.min() < 0 or cell.max() >= cells:
            raise BadInput("counts: every cell must be one of the histogram")
        if count.min() < 0 or count.sum(dtype=np.float64) > MOST_COUNTED:
            raise BadInput("counts: must not be negative or beyond 2^60 together")
    start = np.searchsorted(node, np.arange(nodes + 1)).astype(np.int64)
    return Truth(start, cell.astype(np.int32, copy=False), count, cells)


def measure_full(
    listed: Sequence[Asked],
    truth: Truth,
    rng: Randomness,
    purpose: str,
    *,
    threads: int = 1,
    chunk: int = CHUNK,
) -> Iterator[tuple[Asked, Chunk]]:
    """Yield the noisy answers of all measured nodes, query after query, in chunks of nodes.

    About `chunk` answers at a time; as many chunks as threads are ahead at most. So threads
    draw for the next query while the answers to the one before are being written.
    """
    parts: list[tuple[Asked, Integers]] = []
    for asked in listed:
        _check_fit(asked, truth)
        nodes, step = asked.measured, max(1, chunk // asked.rows)
        parts += [(asked, nodes[begin : begin + step]) for begin in range(0, nodes.size, step)]
    yield from in_order(
        lambda part: (part[0], _measure_nodes(part[0], truth, rng, purpose, part[1])),
        parts,
        threads,
    )


def _measure_nodes(
    asked: Asked, truth: Truth, rng: Randomness, purpose: str, nodes: Integers
) -> Chunk:
    """Return the answers of some nodes, drawn a few at a time so that they stay in the cache."""
    value: Numbers = np.empty((nodes.size, asked.rows), dtype=np.int32)
    wide: Integers | None = None
    step = max(1, _BLOCK // asked.rows)
    for begin in range(0, nodes.size, step):
        some = nodes[begin : begin + step]
        table = _answers(asked, truth, rng, purpose, some)
        if wide is None and not narrowed(table, value[begin : begin + step]):
            wide = value.astype(np.int64)
        if wide is not None:
            wide[begin : begin + step] = table
    return Chunk(nodes, value if wide is None else wide)


def _answers(
    asked: Asked, truth: Truth, rng: Randomness, purpose: str, nodes: Integers
) -> Integers:
    """Return the noisy answers of some nodes, a row of the table for each."""
    first, rows = int(nodes[0]), asked.rows

    def counts(noise: Integers) -> None:
        table = noise.reshape(nodes.size, rows)
        add_counts(table, nodes, truth.start, truth.cell, truth.counted, asked.row_of)

    # Narrow numbers: there is one per answer.
    own = asked.noise_of[nodes].astype(np.int8 if len(asked.noises) < 128 else np.int32)
    sigma2 = (asked.noises, np.repeat(own, rows))
    if int(nodes[-1]) - first + 1 == nodes.size:
        where: dict[str, Any] = {"start": first * rows}
    else:
        where = {"at": (nodes[:, None] * rows + np.arange(rows)).ravel()}
    found = measure(rng, DiscreteGaussian, purpose, asked.key, sigma2, counts, **where)
    return found.reshape(nodes.size, rows)


def measure_rows(
    asked: Asked,
    truth: Truth,
    places: Integers,
    rng: Randomness,
    purpose: str,
    *,
    threads: int = 1,
    chunk: int = CHUNK,
) -> Answers:
    """Return the noisy answers at places node * rows + row, which must increase.

    Each equals what `measure_full` has there under the same seed.
    """
    _check_fit(asked, truth)
    chunk = max(1, min(chunk, -(-places.size // threads)))  # every thread has a part
    parts = [places[begin : begin + chunk] for begin in range(0, places.size, chunk)]
    if any(after[0] <= before[-1] for before, after in pairwise(parts)):
        raise BadInput(f"query '{asked.query}': places must increase")
    found = [
        *in_order(lambda part: _measure_places(asked, truth, rng, purpose, part), parts, threads)
    ]
    values = np.concatenate(found) if found else np.empty(0, dtype=np.int64)
    return values.astype(np.int32) if fits(values) else values


def _measure_places(
    asked: Asked, truth: Truth, rng: Randomness, purpose: str, places: Integers
) -> Integers:
    laws = noise_at(places, asked.rows, asked.noise_of)
    if laws.min() < 0:
        raise BadInput(f"query '{asked.query}': a place belongs to a node that is not measured")

    def counts(noise: Integers) -> None:
        add_counts_at(
            noise, places, asked.rows, truth.start, truth.cell, truth.counted, asked.row_of
        )

    sigma2 = (asked.noises, laws)
    return measure(rng, DiscreteGaussian, purpose, asked.key, sigma2, counts, at=places)


def _check_fit(asked: Asked, truth: Truth) -> None:
    if asked.law.size != truth.start.size - 1:
        raise BadInput(f"query '{asked.query}': noise and counts are not of the same nodes")
    if asked.row_of.size != truth.cells:
        raise BadInput(f"query '{asked.query}': query and counts are not of the same histogram")


def fits(values: Integers) -> bool:
    """Return whether all values fit 32 bits."""
    return bool(values.min(initial=0) >= _NARROW.min and values.max(initial=0) <= _NARROW.max)


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """Yield `function(item)` for each item, in order, at most `threads` of them ahead."""
    if threads <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) == threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
