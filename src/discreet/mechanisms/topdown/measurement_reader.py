"""Read noisy measurement files: our own, and those of others in the same layout.

What is read is checked: a part that is missing, a list of the wrong length, a node that
stands there twice or a newer format is refused.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.config import parse
from discreet.engine import Engine, EngineStopped, Frame
from discreet.errors import BadInput, UnreadableFile
from discreet.files import check_format, read_yaml
from discreet.mechanisms.topdown.measurement import Answers, Integers
from discreet.mechanisms.topdown.measurement_file import (
    EXACT,
    HEADER,
    LEVEL,
    NOISY,
    NOISY_SUFFIX,
    Header,
    LevelDone,
    LevelHeader,
    folder_name,
)

Floats = NDArray[np.float64]

WRONG_LENGTH = "a list of values does not have the length of its query"


class Full(NamedTuple):
    """Answers of nodes to all rows of a query, with the variance of the noise of each node."""

    node: Integers
    value: Answers
    variance: Floats


class Lazy(NamedTuple):
    """Answers at places node * rows + row, in order."""

    place: Integers
    value: Answers


class Measurements:
    """A measurement file of ours; `Published` is one of others."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self.folder, self.engine = folder, engine
        self._known: dict[str, Frame | None] = {}
        self._numbered: dict[str, Frame] = {}
        self.header = self._header()

    def _header(self) -> Header:
        content = check_format(read_yaml(self.folder / HEADER), HEADER)
        return parse(Header, content, HEADER)

    def has(self, level: str) -> bool:
        """Say whether a level was written; if so it is complete."""
        return (self.folder / folder_name(level) / LEVEL).is_file()

    def read_full(self, level: str, query: str, begin: int = 0, end: int | None = None) -> Full:
        """Return the answers of the measured nodes from `begin` to `end` (without it)."""
        if self.header.kind == "lazy":
            raise BadInput(
                f"{self.folder.name}: holds only the answers that one estimate needed "
                f"(kind: lazy). Measure in full to use the answers for anything else."
            )
        rows = prod(self.header.shape(level, query))
        frame = self._rows(level, query, begin, end)
        if frame is None:
            return Full(np.empty(0, np.int64), np.empty((0, rows), np.int32), np.empty(0))
        found = self._full(frame, rows)
        if np.any(np.diff(found.node) < 0):  # small and long parts of a query
            order = np.argsort(found.node, kind="stable")
            found = Full(found.node[order], found.value[order], found.variance[order])
        if np.any(np.diff(found.node) == 0):
            raise self.broken(f"'{query}' at {level} has a node twice")
        return found

    def read_rows(self, level: str, query: str, begin: int = 0, end: int | None = None) -> Lazy:
        """Return the answers of nodes `begin` to `end` (without it), of either kind of file."""
        rows = prod(self.header.shape(level, query))
        if self.header.kind == "full":
            node, table, _ = self.read_full(level, query, begin, end)
            return Lazy((node[:, None] * rows + np.arange(rows)).ravel(), table.reshape(-1))
        frame = self._rows(level, query, begin, end)
        if frame is None:
            return Lazy(np.empty(0, np.int64), np.empty(0, np.int32))
        found = self._lazy(frame, rows)
        order = np.argsort(found.place, kind="stable")
        found = Lazy(found.place[order], found.value[order])
        if np.any(np.diff(found.place) == 0):
            raise self.broken(f"'{query}' at {level} has an answer twice")
        return found

    def _full(self, frame: Frame, rows: int) -> Full:
        columns = {"node": "node", "variance": "variance::double"}
        nodes = self.engine.to_numpy(self.engine.project(frame, columns))
        listed = self.engine.to_numpy(self.engine.project(frame, {"value": "unnest(value)"}))
        value = self._whole(listed["value"])
        if value.size != nodes["node"].size * rows:
            raise self.broken(WRONG_LENGTH)
        return Full(nodes["node"].astype(np.int64), value.reshape(-1, rows), nodes["variance"])

    def _lazy(self, frame: Frame, rows: int) -> Lazy:
        # Where one of two lists is shorter its values are missing, which the engine refuses.
        columns = {"node": "node", "row": 'unnest("row")', "value": "unnest(value)"}
        lists = self.engine.to_numpy(self.engine.project(frame, columns))
        row = self._whole(lists["row"])
        if row.min(initial=0) < 0 or row.max(initial=0) >= rows:
            raise self.broken("a list of rows has one that its query does not have")
        return Lazy(lists["node"].astype(np.int64) * rows + row, self._whole(lists["value"]))

    def _rows(self, level: str, query: str, begin: int, end: int | None) -> Frame | None:
        """Return the answers of the nodes asked for; None without any."""
        rows, last = self.rows(level), self.header.at(level).nodes if end is None else end
        own = nw.col("query_name") == query + NOISY_SUFFIX
        inside = own & (nw.col("node") >= begin) & (nw.col("node") < last)
        return None if rows is None else rows.filter(inside)

    def rows(self, level: str) -> Frame | None:
        """Return all answers of a level, after checking that none is missing; None without any."""
        if level not in self._known:
            self._known[level] = self._checked(level)
        return self._known[level]

    def _checked(self, level: str) -> Frame | None:
        folder = self.folder / folder_name(level)
        if not self.has(level):
            raise UnreadableFile(
                f"{folder.name}/{LEVEL}", "is missing", "Measure this level first."
            )
        done = parse(LevelDone, check_format(read_yaml(folder / LEVEL), LEVEL), LEVEL)
        answered = {query + NOISY_SUFFIX: size for query, size in done.answered.items() if size}
        if not answered:
            return None
        rows = self.engine.read_parquet(folder / NOISY)
        try:
            found = dict(self.engine.rows(rows.group_by("query_name").agg(size=nw.len())))
        except EngineStopped:
            rule = "has a part that is not a readable Parquet file"
            raise UnreadableFile(f"{folder.name}/{NOISY}", rule, "Restore it.") from None
        if found != answered:
            raise UnreadableFile(
                f"{folder.name}/{NOISY}",
                "does not have all rows that were written",
                "Restore the missing parts.",
            )
        return rows

    def _whole(self, values: NDArray[Any]) -> Answers:
        """Return values as whole numbers of 32 or 64 bits; others may have written anything."""
        if values.dtype.kind != "i":
            raise self.broken("a column of lists does not hold whole numbers")
        return values if values.dtype == np.int32 else values.astype(np.int64, copy=False)

    def broken(self, rule: str) -> UnreadableFile:
        """Return the refusal of a file that breaks a rule."""
        return UnreadableFile(self.folder.name, rule, "Restore the measurement file.")


def query_of(name: str) -> str:
    """Return the query that a name in a file stands for.

    >>> query_of("hispanic * cenrace_dpq")
    'hispanic*cenrace'
    """
    return "*".join(factor.strip() for factor in name.removesuffix(NOISY_SUFFIX).split("*"))


class Published(Measurements):
    """A full measurement file of others: no header, any division into parts.

    Nodes of a level are its geocodes, in order; those of the constraints count too, as
    an area without a share of the budget has constraints only. A level is called as its
    folder, in small letters; a query as in the file, without `_dpq` and without spaces
    around `*`: `hispanic * cenrace_dpq` is `hispanic*cenrace`. Columns of attributes are not
    read, so factors in another order make another name.
    """

    def has(self, level: str) -> bool:
        """Say whether there are answers for a level."""
        return level in self._folders()

    def geocodes(self, level: str) -> list[str]:
        """Return the geocodes of the nodes of a level, in order."""
        return [code for code, _ in self.engine.rows(self._codes(level).sort("node"))]

    def _folders(self) -> dict[str, Path]:
        found = sorted(path.parent for path in self.folder.glob(f"*.parquet/{NOISY}"))
        return {path.stem.lower(): path for path in found}

    def _header(self) -> Header:
        levels = []
        for level, folder in self._folders().items():
            rows = self.engine.read_parquet(folder / NOISY)
            present = set(rows.collect_schema().names())
            if not {"geocode", "query_name", "query_shape", "value", "variance"} <= present:
                raise self.broken(f"{folder.name} lacks a column of the conventional layout")
            names = self.engine.rows(self.engine.distinct(rows.select("query_name", "query_shape")))
            shapes = {query_of(str(name)): shape for name, shape in names}
            if len(shapes) != len(names):
                raise self.broken(f"{folder.name} has one query in two shapes")
            size = self.engine.rows(self._codes(level).select(nw.len()))[0][0]
            made = {"level": level, "nodes": size, "queries": dict(sorted(shapes.items()))}
            levels.append(parse(LevelHeader, made, folder.name))
        if not levels:
            raise self.broken(f"has no folder <Level>.parquet/{NOISY}")
        finest = max((s for each in levels for s in each.queries.values()), key=prod)
        return Header(
            kind="full", mode="release", strategy="published", histogram=finest, levels=levels
        )

    def _codes(self, level: str) -> Frame:
        """Return the geocodes of a level with their numbers."""
        if level not in self._numbered:
            folder, engine = self._folders()[level], self.engine
            codes = engine.distinct(engine.read_parquet(folder / NOISY).select("geocode"))
            if (folder / EXACT).is_dir():
                more = engine.read_parquet(folder / EXACT).select("geocode")
                codes = engine.distinct(nw.concat([codes, more]))
            numbered = engine.sort_and_number(codes, ["geocode"], "number")
            self._numbered[level] = numbered.select("geocode", node=nw.col("number") - 1)
        return self._numbered[level]

    def _rows(self, level: str, query: str, begin: int, end: int | None) -> Frame:
        """Return the rows of the nodes asked for; files of others have any order."""
        last = self.header.at(level).nodes if end is None else end
        nodes = self._codes(level).filter((nw.col("node") >= begin) & (nw.col("node") < last))
        rows = self.engine.read_parquet(self._folders()[level] / NOISY)
        names = self.engine.rows(self.engine.distinct(rows.select("query_name")))
        own = [name for (name,) in names if query_of(str(name)) == query]
        rows = rows.filter(nw.col("query_name").is_in(own))
        lengths = self.engine.distinct(self.engine.project(rows, {"size": "len(value)"}))
        if self.engine.rows(lengths) not in ([], [(prod(self.header.shape(level, query)),)]):
            raise self.broken(WRONG_LENGTH)
        rows = rows.select("geocode", "value", "variance")
        return rows.join(nodes, on="geocode", how="inner").sort("node")
