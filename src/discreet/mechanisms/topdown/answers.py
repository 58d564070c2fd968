"""Bring noisy answers from a measurement file into the order in which they are fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled
from discreet.engine import Engine, Frame, Lists
from discreet.mechanisms.topdown.active import Active, Integers, Numbers, block_start, place_answers
from discreet.mechanisms.topdown.design import Design
from discreet.mechanisms.topdown.measurement import Answers as Values
from discreet.mechanisms.topdown.measurement_file import NOISY_SUFFIX, quoted
from discreet.mechanisms.topdown.measurement_reader import Measurements
from discreet.mechanisms.topdown.solve import Floats

FOUND, INCOMPLETE, OTHER_ROWS = 0, 1, 2

#: Return the answers that matter to some parents of a level, laid out as `place_answers` does.
Answers = Callable[[int, Active, Integers], Floats]


class Wanted(NamedTuple):
    """Some answers: rows row[start[i]:start[i + 1]] of the query and node of key[i].

    Of `nodes` nodes of a level, from the node `first` on. A key is the number of the query times
    `nodes`, plus the number of the node from `first`; keys increase.
    """

    level: str
    first: int
    nodes: int
    queries: Sequence[str]
    key: Integers
    start: Numbers
    row: Numbers


def answers_from(design: Design, measured: Measurements) -> Answers:
    """Return the answers in a measurement file, full or lazy."""

    def read(level: int, active: Active, child_start: Integers) -> Floats:
        queries = [query.name for query in design.queries(level)]
        wanted = wanted_by(active, child_start, design.spine.levels[level], queries)
        start = block_start(active, child_start, len(queries))
        answers = np.empty(int(start[-1]))
        place_answers(
            answers,
            start,
            active.start,
            child_start,
            active.first,
            active.last,
            len(queries),
            read_wanted(measured, wanted),
        )
        return answers

    return read


def wanted_by(active: Active, child_start: Integers, level: str, queries: list[str]) -> Wanted:
    """Return the answers that matter, by query, child and row."""
    inside = child_start[active.first : active.last + 1]
    first, nodes = int(inside[0]), int(inside[-1] - inside[0])
    rows = np.diff(active.start).reshape(-1, len(queries)).T
    lengths = np.repeat(rows, np.diff(inside), axis=1)
    key = np.arange(len(queries))[:, None] * nodes + np.arange(nodes)
    some = lengths > 0
    start = _as_offsets(np.concatenate([[0], np.cumsum(lengths[some])]))
    row = np.empty(int(start[-1]), dtype=np.int32)
    _repeat_rows(active.start, active.row, np.diff(inside), len(queries), row)
    return Wanted(level, first, nodes, queries, key[some], start, row)


def _as_offsets(start: Integers) -> Numbers:
    """Return where lists begin, as the engine takes them."""
    if start[-1] >= 2**31:
        raise ValueError("too many answers at once for lists of the engine")
    return start.astype(np.int32)


@compiled
def _repeat_rows(
    start: Integers, row: Numbers, children: Integers, queries: int, out: Numbers
) -> None:
    """Write the rows that matter to a parent once for each of its children, query by query."""
    k = 0
    for q in range(queries):
        for p in range(children.size):
            for _ in range(children[p]):
                for r in range(start[p * queries + q], start[p * queries + q + 1]):
                    out[k] = row[r]
                    k += 1


def root_answers_from(design: Design, measured: Measurements) -> list[Integers]:
    """Return all answers of each query at the first level, nodes by rows."""
    queries, nodes = design.queries(0), design.spine.size(0)
    sizes = np.repeat([query.rows for query in queries], nodes)
    start = np.concatenate([[0], np.cumsum(sizes)])
    row = np.arange(start[-1]) - np.repeat(start[:-1], sizes)
    key = np.arange(len(queries) * nodes)
    names = [query.name for query in queries]
    level = design.spine.levels[0]
    wanted = Wanted(level, 0, nodes, names, key, _as_offsets(start), row.astype(np.int32))
    values = read_wanted(measured, wanted)
    return [values[begin:end].reshape(nodes, -1) for begin, end in pairwise(start[::nodes])]


# -- reading ---------------------------------------------------------------------------------------


def read_wanted(measured: Measurements, wanted: Wanted) -> Integers:
    """Return some answers in the order of their keys and rows.

    Of all queries at once, and what nobody wants does not leave the engine: most of the time
    would go into both.
    """
    rows = measured.rows(wanted.level)
    found: dict[str, NDArray[Any]]
    if rows is None or not wanted.key.size:
        none = np.empty(0, dtype=np.int32)
        found = {"key": none, "value": none, "row": none}
    elif measured.header.kind == "lazy":
        found = _all_of(measured, rows, wanted)
    else:
        found = _some_of(measured, rows, wanted)
    place = np.full(len(wanted.queries) * wanted.nodes, -1, dtype=np.int64)
    place[wanted.key] = np.arange(wanted.key.size)
    values = np.empty(wanted.row.size, dtype=np.int64)
    status = _settle(
        found["key"].astype(np.int64, copy=False),
        found["value"],
        found["row"].astype(np.int32, copy=False),
        place,
        wanted.start,
        wanted.row,
        values,
    )
    if status == INCOMPLETE:
        raise measured.broken(f"{wanted.level} does not have each answer that is needed once")
    if status == OTHER_ROWS:
        raise measured.broken(f"{wanted.level} was measured for another estimate")
    return values


@compiled
def _settle(
    key: Integers,
    value: Values,
    row: Numbers,
    place: Integers,
    start: Numbers,
    wanted: Numbers,
    values: Integers,
) -> int:
    """Write values in the order wanted; return whether that succeeds.

    The engine gives the nodes in any order, but the values of a node in theirs, which is
    checked. `place` has the place of each key among those wanted.
    """
    filled = np.zeros(start.size, dtype=np.int64)
    for i in range(key.size):
        k = place[key[i]] if 0 <= key[i] < place.size else np.int64(-1)
        if k < 0 or start[k] + filled[k] >= start[k + 1]:
            return INCOMPLETE
        at = start[k] + filled[k]
        if row[i] != wanted[at]:
            return OTHER_ROWS
        values[at] = value[i]
        filled[k] += 1
    return FOUND if key.size == values.size else INCOMPLETE


def _some_of(measured: Measurements, rows: Frame, wanted: Wanted) -> dict[str, NDArray[Any]]:
    """Return key, value and row of the wanted rows of a full file."""
    engine, shapes = measured.engine, measured.header.at(wanted.level).queries
    sizes = ", ".join(str(prod(shapes[query])) for query in wanted.queries)
    keyed = _keyed(engine, rows, wanted, {"size": f"([{sizes}])[{{number}}]", "value": "value"})
    places = Lists(wanted.start, wanted.row + np.int32(1))  # lists of the engine begin with 1
    # A list of another length has no values, and is missed.
    lists = {
        "value": "unnest(case when len(value) = size then list_select(value, places) end)",
        "row": "unnest(case when len(value) = size then places end) - 1",
    }
    with engine.lend_lists({"key": wanted.key, "places": places}) as asked:
        joined = keyed.join(asked, on="key", how="inner")
        return engine.to_numpy(engine.project(joined, {"key": "key", **lists}))


def _all_of(measured: Measurements, rows: Frame, wanted: Wanted) -> dict[str, NDArray[Any]]:
    """Return key, value and row of all that a lazy file has of the wanted nodes."""
    # Where one of two lists is shorter its values are missing, which the engine refuses.
    lists = {"value": "unnest(value)", "row": 'unnest("row")'}
    return measured.engine.to_numpy(_keyed(measured.engine, rows, wanted, lists))


def _keyed(engine: Engine, rows: Frame, wanted: Wanted, columns: dict[str, str]) -> Frame:
    """Return columns of the wanted nodes, with their keys; `{number}` is that of the query."""
    names = ", ".join(quoted(query + NOISY_SUFFIX) for query in wanted.queries)
    number, end = f"list_position([{names}], query_name)", wanted.first + wanted.nodes
    inside = (nw.col("node") >= wanted.first) & (nw.col("node") < end)
    named = {name: text.format(number=number) for name, text in columns.items()}
    key = f"({number} - 1)::bigint * {wanted.nodes} + node - {wanted.first}"
    return engine.project(rows.filter(inside), {"key": key, **named})
