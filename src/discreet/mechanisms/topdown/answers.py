"""Bring noisy answers from a measurement file into the order in which they are fitted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discreet.compiled import compiled
from discreet.errors import UnreadableFile
from discreet.mechanisms.topdown.active import (
    Active,
    Integers,
    block_start,
    place_answers,
    places_of,
)
from discreet.mechanisms.topdown.design import Design, Query
from discreet.mechanisms.topdown.measurement import Answers as Values
from discreet.mechanisms.topdown.measurement_reader import Measurements
from discreet.mechanisms.topdown.solve import Floats

#: Return the answers that matter to some parents of a level, laid out as `place_answers` does.
Answers = Callable[[int, Active, Integers], Floats]


def answers_from(design: Design, measured: Measurements) -> Answers:
    """Return the answers in a measurement file, full or lazy."""

    def read(level: int, active: Active, child_start: Integers) -> Floats:
        queries = design.queries(level)
        start = block_start(active, child_start, len(queries))
        answers = np.empty(int(start[-1]))
        for number, query in enumerate(queries):
            values = _matter(design, measured, level, active, child_start, number, query)
            place_answers(
                answers,
                start,
                active.start,
                child_start,
                active.first,
                active.last,
                len(queries),
                number,
                values,
            )
        return answers

    return read


def _matter(
    design: Design,
    measured: Measurements,
    level: int,
    active: Active,
    child_start: Integers,
    number: int,
    query: Query,
) -> Integers:
    """Return the answers to one query that matter, by parent, child and row."""
    name, queries = design.spine.levels[level], len(design.strategy.levels[level].queries)
    first, last = int(child_start[active.first]), int(child_start[active.last])
    places = places_of(
        active.start,
        active.row,
        child_start,
        active.first,
        active.last,
        queries,
        number,
        query.rows,
    )
    if measured.header.kind == "lazy":
        found = measured.read_rows(name, query.name, first, last)
        if not np.array_equal(found.place, places):
            raise UnreadableFile(
                measured.folder.name, "was measured for another estimate", "Restore the draw."
            )
        return found.value.astype(np.int64)
    full = measured.read_full(name, query.name, first, last)
    at = np.full(last - first, -1, dtype=np.int64)
    at[full.node - first] = np.arange(full.node.size)
    # As wide as it was read: the whole table would be copied to be wider.
    return _pick(full.value, at, places, first, query.rows)


@compiled
def _pick(value: Values, at: Integers, places: Integers, first: int, rows: int) -> Integers:
    found = np.empty(places.size, dtype=np.int64)
    for k in range(places.size):
        node = places[k] // rows
        found[k] = value[at[node - first], places[k] - node * rows]
    return found


def root_answers_from(design: Design, measured: Measurements) -> Callable[[Query], Integers]:
    """Return all answers of a query at the first level, nodes by rows."""
    name, nodes = design.spine.levels[0], design.spine.size(0)

    def read(query: Query) -> Integers:
        found = measured.read_rows(name, query.name)
        if found.place.size != nodes * query.rows:
            raise UnreadableFile(measured.folder.name, "lacks answers of a root", "Restore it.")
        return found.value.astype(np.int64).reshape(nodes, query.rows)

    return read
