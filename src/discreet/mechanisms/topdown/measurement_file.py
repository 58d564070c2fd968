"""The noisy measurement file: all that is kept of the answers.

    measurements.yaml                                  what was asked (of ours only)
    County.parquet/level.yaml                          what was answered (of ours only)
    County.parquet/DPQuery/<query>_dpq-<part>.parquet  noisy answers, one row per node
    County.parquet/Constraint/<name>_con-<part>.parquet    exact facts, one row per node

A row of DPQuery has geocode, query_name, query_shape, value (row-major), variance (of the
noise, exact to a double), plb (rho of this answer) and rho (the same as a fraction). In a
lazy file `value` holds only the rows of the query that `row` lists. Folders and the columns
geocode, query_name, query_shape, value, variance, plb and sign are as in the noisy measurement
files of the 2020 Census, and files of others with these can be read too
(`discreet.mechanisms.topdown.measurement_reader`). Different are: no column for each attribute;
`rho` and the number `node` are ours; `total_con` is written for states as well; a root above
the states is the level `all`.

A level appears in one step, complete and forced to the disk, or not at all.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Literal

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
_LEAST_ROWS = 2048  # of a row group, by DuckDB

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


def file_stem(query: str) -> str:
    """Return a query's name as part of a file name: hispanic*cenrace is hispanic-cenrace."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", query)


def write_header(folder: Path, header: Header) -> None:
    """Begin a measurement file."""
    for level in header.levels:
        if len(set(map(file_stem, level.queries))) < len(level.queries):
            raise BadInput("topdown: two queries have names too alike for files. Rename one.")
    write_yaml(folder / HEADER, header.model_dump(mode="json"))


def mark(folder: Path, mode: str) -> None:
    """Say in the header of a published file in which mode it was made."""
    content = {**check_format(read_yaml(folder / HEADER), HEADER), "mode": mode}
    write_header(folder, parse(Header, content, HEADER))


class LevelWriter:
    """Writes the answers of one level; see `writing`."""

    def __init__(self, folder: Path, header: Header, level: str, texts: Texts, engine: Engine):
        self._folder, self._header, self._level = folder, header, level
        self._texts, self._engine = texts, engine
        self._parts: dict[Path, int] = {}
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
        columns = {"value": Lists(offsets, value.reshape(-1))}
        fixed = {"sign": f"'{sign}'", "query_shape": _listed(shape)}
        self._write(EXACT, name, EXACT_SUFFIX, node, columns, fixed)

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
        noise = asked.noise_of[node]
        variance = np.array([float(DiscreteGaussian(v).variance()) for v in asked.noises])
        plb = np.array([float(1 / v) for v in asked.noises])
        rhos = ", ".join(f"'{1 / v}'" for v in asked.noises)
        columns = {**lists, "variance": variance[noise], "plb": plb[noise], "noise": noise}
        fixed = {
            "query_shape": _listed(self._header.shape(self._level, asked.query)),
            "rho": f"([{rhos}])[noise + 1]",
        }
        self._write(NOISY, asked.query, NOISY_SUFFIX, node, columns, fixed)
        self.answered[asked.query] += node.size

    def _write(
        self,
        kind: str,
        name: str,
        suffix: str,
        node: Integers,
        columns: Mapping[str, Any],
        fixed: Mapping[str, str],
    ) -> None:
        own = {"node": node.astype(np.int64), "geocode": self._texts.part(node), **columns}
        shown = ["geocode", "row", "value", "variance", "plb", "node"]
        listed = {each: f'"{each}"' for each in shown if each in own}
        listed |= {"query_name": _quoted(name + suffix), **fixed}
        base = self._folder / kind / f"{file_stem(name)}{suffix}"
        self._parts[base] = part = self._parts.get(base, -1) + 1
        group = max(_LEAST_ROWS, GROUP * node.size // max(1, columns["value"].values.size))
        with self._engine.lend_lists(own, batch=group) as frame:
            frame = self._engine.project(frame, listed)
            path = base.with_name(f"{base.name}-{part:05d}.parquet")
            self._engine.write_parquet(frame, path, row_group=group)


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
        done = LevelDone(answered=writer.answered)
        write_yaml(temporary / LEVEL, done.model_dump(mode="json"))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _listed(numbers: Sequence[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]::integer[]"
