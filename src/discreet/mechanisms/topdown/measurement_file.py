"""The noisy measurement file: all that is kept of the answers.

    measurements.yaml                            what was asked (of ours only)
    County.parquet/level.yaml                    what was answered (of ours only)
    County.parquet/DPQuery/part-<part>.parquet   noisy answers, one row per query and node
    County.parquet/Constraint/part-<part>.parquet    exact facts, one row per name and node

A row of DPQuery has geocode, query_name, query_shape, value (row-major), variance (of the
noise, exact to a double), plb (rho of this answer) and rho (the same as a fraction). In a
lazy file `value` holds only the rows of the query that `row` lists. Small queries share a
part, as a file costs more time than what they have to say. Folders and the columns
geocode, query_name, query_shape, value, variance, plb and sign are as in the noisy measurement
files of the 2020 Census, and files of others with these can be read too
(`discreet.mechanisms.topdown.measurement_reader`). Different are: no column for each attribute;
`rho` and the number `node` are ours; `total_con` is written for states as well; a root above
the states is the level `all`.

A level appears in one step, complete and forced to the disk, or not at all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveInt

from discreet.config import Strict, parse, suggest
from discreet.engine import Engine, Lists, Texts
from discreet.errors import BadInput
from discreet.files import FORMAT_VERSION, atomic_folder, check_format, read_yaml, write_yaml
from discreet.mechanisms.topdown.measurement import Answers, Asked, Chunk, Integers
from discreet.noise import DiscreteGaussian

HEADER, LEVEL = "measurements.yaml", "level.yaml"
NOISY, EXACT = "DPQuery", "Constraint"
NOISY_SUFFIX, EXACT_SUFFIX = "_dpq", "_con"
#: Values of a row group: enough to compress, and few enough to stay in the cache.
GROUP = 1 << 20
#: Values that wait for others to share a part with.
PART = 1 << 20

Shape = tuple[PositiveInt, ...]
Sign = Literal["=", "<=", ">="]


class LevelHeader(Strict):
    """What was asked at a level: the number of its nodes, and the shape of each query."""

    level: str
    nodes: NonNegativeInt
    queries: dict[str, Shape]


class Header(Strict):
    """What was asked. A lazy file has only the answers that the estimate depends on."""

    format_version: int = FORMAT_VERSION
    kind: Literal["full", "lazy"]
    #: Empty in a draw, whose own record says it.
    mode: Literal["release", "trial", "design", ""] = ""
    strategy: str
    histogram: Shape
    levels: list[LevelHeader] = Field(min_length=1)

    def at(self, level: str) -> LevelHeader:
        """Return what was asked at a level."""
        for each in self.levels:
            if each.level == level:
                return each
        hint = suggest(level, (each.level for each in self.levels))
        raise BadInput(f"{HEADER}: nothing is measured at level '{level}'.{hint}")

    def shape(self, level: str, query: str) -> Shape:
        """Return the shape of the answers to a query."""
        queries = self.at(level).queries
        if query not in queries:
            hint = suggest(query, queries)
            raise BadInput(f"{HEADER}: '{query}' is not measured at level '{level}'.{hint}")
        return queries[query]


class LevelDone(Strict):
    """How many nodes of a level answered each query."""

    format_version: int = FORMAT_VERSION
    answered: dict[str, NonNegativeInt]


def folder_name(level: str) -> str:
    """Return the conventional folder of a level: Block_Group.parquet."""
    return f"{level.title()}.parquet"


def write_header(folder: Path, header: Header) -> None:
    """Begin a measurement file."""
    write_yaml(folder / HEADER, header.model_dump(mode="json"))


def mark(folder: Path, mode: str) -> None:
    """Say in the header of a published file in which mode it was made."""
    content = {**check_format(read_yaml(folder / HEADER), HEADER), "mode": mode}
    write_header(folder, parse(Header, content, HEADER))


class Rows(NamedTuple):
    """Rows of a file: lists of each node, and which of the things that are `said` hold of it."""

    node: Integers
    lists: Mapping[str, Lists]
    which: Integers
    #: Columns with the same text in many rows, as SQL.
    said: Sequence[Mapping[str, str]]

    @property
    def values(self) -> int:
        """Return the number of values in all lists."""
        return int(self.lists["value"].values.size)


def together(waiting: Sequence[Rows]) -> Rows:
    """Return rows one after the other."""
    if len(waiting) == 1:  # nothing is copied
        return waiting[0]
    said: list[Mapping[str, str]] = []
    which = []
    for rows in waiting:
        which.append(rows.which + len(said))
        said += rows.said
    lists = {}
    for name in waiting[0].lists:
        columns = [rows.lists[name] for rows in waiting]
        lengths = np.concatenate([np.diff(column.offsets) for column in columns])
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        lists[name] = Lists(offsets, np.concatenate([column.values for column in columns]))
    return Rows(np.concatenate([rows.node for rows in waiting]), lists, np.concatenate(which), said)


class LevelWriter:
    """Writes the answers of one level; see `writing`."""

    def __init__(self, folder: Path, header: Header, level: str, texts: Texts, engine: Engine):
        self._folder, self._header, self._level = folder, header, level
        self._texts, self._engine = texts, engine
        self._waiting: dict[str, list[Rows]] = {NOISY: [], EXACT: []}
        self._parts = {NOISY: 0, EXACT: 0}
        self._last: dict[str, int] = {}
        self.answered = dict.fromkeys(header.at(level).queries, 0)

    def add_full(self, asked: Asked, chunk: Chunk) -> None:
        """Write the answers of some nodes to all rows of a query."""
        self._check("full", asked)
        if chunk.value.shape != (chunk.node.size, asked.rows):
            raise ValueError("a chunk must have one answer per node and row")
        offsets = (np.arange(chunk.node.size + 1) * asked.rows).astype(np.int32)
        self._add(asked, chunk.node, {"value": Lists(offsets, chunk.value.reshape(-1))})

    def add_rows(self, asked: Asked, places: Integers, values: Answers) -> None:
        """Write the answers at some places node * rows + row; a node's in one call."""
        self._check("lazy", asked)
        node, row = np.divmod(places, asked.rows)
        first = np.flatnonzero(np.diff(node, prepend=-1))
        offsets = np.append(first, node.size).astype(np.int32)
        lists = {"row": Lists(offsets, row.astype(np.int32)), "value": Lists(offsets, values)}
        self._add(asked, node[first], lists)

    def add_constraint(
        self, name: str, sign: Sign, shape: Sequence[int], node: Integers, value: Answers
    ) -> None:
        """Write exact facts, `value[i]` of node `node[i]`."""
        if value.shape != (node.size, prod(shape)):
            raise ValueError("a constraint must have one value per node and row")
        offsets = (np.arange(node.size + 1) * prod(shape)).astype(np.int32)
        said = {"query_name": quoted(name + EXACT_SUFFIX), "sign": quoted(sign)}
        said["query_shape"] = _listed(shape)
        lists = {"value": Lists(offsets, value.reshape(-1))}
        self._put(EXACT, Rows(node, lists, np.zeros(node.size, dtype=np.int64), [said]))

    def close(self) -> None:
        """Write what still waits."""
        for kind in self._waiting:
            self._flush(kind)

    def _check(self, kind: str, asked: Asked) -> None:
        if self._header.kind != kind:
            raise ValueError(f"{kind} answers do not belong in a {self._header.kind} file")
        if asked.level != self._level or asked.rows != prod(
            self._header.shape(self._level, asked.query)
        ):
            raise ValueError("level or rows of a query are not those of the header")

    def _add(self, asked: Asked, node: Integers, lists: Mapping[str, Lists]) -> None:
        if not node.size:
            return
        if np.any(np.diff(node) <= 0) or node[0] <= self._last.get(asked.query, -1):
            raise ValueError("nodes must come in order, each once")
        self._last[asked.query] = int(node[-1])
        named = {
            "query_name": quoted(asked.query + NOISY_SUFFIX),
            "query_shape": _listed(self._header.shape(self._level, asked.query)),
        }
        said = [{**named, **_said_of(sigma2)} for sigma2 in asked.noises]
        self._put(NOISY, Rows(node, lists, asked.noise_of[node].astype(np.int64), said))
        self.answered[asked.query] += node.size

    def _put(self, kind: str, rows: Rows) -> None:
        """Let rows wait for others, unless they are enough for a part of their own."""
        if rows.values >= PART:
            self._write(kind, rows)
            return
        self._waiting[kind].append(rows)
        if sum(each.values for each in self._waiting[kind]) >= PART:
            self._flush(kind)

    def _flush(self, kind: str) -> None:
        if self._waiting[kind]:
            self._write(kind, together(self._waiting[kind]))
            self._waiting[kind] = []

    def _write(self, kind: str, rows: Rows) -> None:
        own: dict[str, Integers | Lists | Texts] = {"node": rows.node, "which": rows.which}
        own |= rows.lists
        own["geocode"] = self._texts.part(rows.node)
        listed = {each: f'"{each}"' for each in ("geocode", *rows.lists, "node")}
        for name in rows.said[0]:
            texts = [one[name] for one in rows.said]
            # A constant is faster, and most long parts have but one.
            listed[name] = texts[0] if len(texts) == 1 else f"([{', '.join(texts)}])[which + 1]"
        # Readers take the types of the first file by name: that must be the widest.
        name = "part" if rows.lists["value"].values.dtype == np.int32 else "long"
        path = self._folder / kind / f"{name}-{self._parts[kind]:05d}.parquet"
        self._parts[kind] += 1
        group = max(1, GROUP * rows.node.size // max(1, rows.values))
        with self._engine.lend_lists(own, group) as frame:
            self._engine.write_parquet(self._engine.project(frame, listed), path, row_group=group)


@contextlib.contextmanager
def writing(
    folder: Path, header: Header, level: str, geocodes: Sequence[str], engine: Engine
) -> Iterator[LevelWriter]:
    """Yield a writer of a level; when the block ends the level is on the disk, complete.

    `geocodes` names the nodes in their order. A folder that an earlier, killed attempt left
    behind is removed unread.
    """
    if header.at(level).nodes != len(geocodes):
        raise ValueError("there must be one geocode per node")
    with atomic_folder(folder / folder_name(level), tag="writing") as temporary:
        writer = LevelWriter(temporary, header, level, Texts.of(geocodes), engine)
        yield writer
        writer.close()
        done = LevelDone(answered=writer.answered)
        write_yaml(temporary / LEVEL, done.model_dump(mode="json"))


def _said_of(sigma2: Fraction) -> dict[str, str]:
    """Return what a row says of its noise."""
    variance, rho = float(DiscreteGaussian(sigma2).variance()), 1 / sigma2
    numbers = {"variance": variance, "plb": float(rho)}
    said = {name: f"'{number!r}'::double" for name, number in numbers.items()}
    return {**said, "rho": quoted(str(rho))}


def quoted(text: str) -> str:
    """Return a text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def _listed(numbers: Sequence[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]::integer[]"
