"""The engine for one machine: Narwhals expressions on DuckDB.

Rules that keep confidential data where it belongs:

- DuckDB spills only to the work folder it was given; without one it never spills.
- DuckDB's own messages can quote data ("Could not convert string ..."), so every
  execution runs under `_guarded`, which keeps the kind of error and drops the text.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import numpy.typing as npt

from discreet.engine.delimited import csv_query, header_of, malformed
from discreet.engine.lists import Column, Lent
from discreet.engine.literals import quoted, text_literal
from discreet.engine.named import named, parts, refuse_taken
from discreet.errors import BadInput, DiscreetError, DiskFull, UnreadableFile, no_room
from discreet.files import FORMAT_VERSION, atomic_file, check_path, check_utf8, private_folder

Frame = nw.LazyFrame[Any]
Array = npt.NDArray[Any]

#: Optimizer of the engine that is not used.
UNSOUND = "statistics_propagation"

#: Rows per Parquet row group: large enough to compress, small enough to stream.
ROW_GROUP = 122_880

#: Ids that lie closer than this are told apart by a bit for each that may occur; the engine
#: has no more bits than that.
BITS_PER_ROW, MOST_BITS = 64, 900_000_000


class EngineStopped(DiscreetError):
    """A query could not be carried out, for instance because a file is damaged inside."""


class MemoryReached(DiscreetError):
    """A query needs more memory than the engine may take."""


@contextlib.contextmanager
def _guarded(doing: str) -> Iterator[None]:
    """Turn DuckDB errors into ours without their text, which may quote data."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise MemoryReached(
            f"{doing}: the memory limit was reached. Raise it or give a work folder to spill to."
        ) from None
    except duckdb.Error as error:
        if no_room(error):
            raise DiskFull(f"a file ({doing})") from None
        raise EngineStopped(f"{doing}: the engine stopped ({type(error).__name__}).") from None


class Engine:
    """Run Narwhals expressions on DuckDB.

    Parameters
    ----------
    work
        Folder for spilled intermediates (made mode 0700). None: never spill.
    memory_limit
        As DuckDB writes it, for instance "2GB".
    threads
        Threads of one query; None leaves the choice to DuckDB.
    """

    def __init__(
        self, work: Path | None = None, memory_limit: str = "2GB", threads: int | None = None
    ) -> None:
        if work is not None:
            check_path(work)
            check_utf8(work)
            if not work.exists():
                private_folder(work)  # not only what is spilled in it
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory_limit,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "temp_directory": "" if work is None else str(private_folder(work / "spill")),
            # It takes a filter on a computed column that may be missing for one that always
            # holds (DuckDB 2.0): a record without a value would be counted.
            "disabled_optimizers": UNSOUND,
        }
        if threads is not None:
            settings["threads"] = threads
        self._connection = duckdb.connect(":memory:", config=settings)
        # Progress is told by commands, on a stream of their choice.
        self._connection.execute("set enable_progress_bar = false")
        self._names = (f"t{number}" for number in itertools.count())

    # -- in ---------------------------------------------------------------------------

    def read_parquet(self, path: Path, row: str | None = None, file: str | None = None) -> Frame:
        """Return the rows of a Parquet file, or of all files of a folder in name order.

        `row` names a column to add with the 1-based row number in its file, `file` one with
        the name of that file.
        """
        source = f"read_parquet({named(self._connection, parts(path))}, hive_partitioning = false)"
        added = {
            name: (own, sql)
            for own, sql, name in (
                ("file_row_number", "file_row_number + 1", row),
                ("filename", "parse_filename(filename)", file),
            )
            if name is not None
        }
        columns = "".join(f", {sql} as {quoted(name)}" for name, (_, sql) in added.items())
        query = f"select *{columns} from {source}"
        try:
            # Where a file has a column of such a name, the engine would give that one instead.
            taken = {*added, *(own for own, _ in added.values())}
            refuse_taken(path, self._connection.sql(f"from {source} limit 0").columns, taken)
            self._connection.sql(f"{query} limit 0").fetchall()
            relation = _plain(self._connection.sql(query))
        except (duckdb.Error, RuntimeError):
            raise UnreadableFile(
                path.name, "is not a readable Parquet file", "Write it again."
            ) from None
        return self._frame(relation)

    def read_csv(self, path: Path, row: str | None = None, separator: str | None = None) -> Frame:
        """Return all columns of a delimited file with header as text; empty is missing.

        Rows with too many or too few fields, broken quotes or bytes that are not
        UTF-8 are refused with file and row.
        """
        listed, name = named(self._connection, [path]), next(self._names)
        header, found = header_of(path, separator)
        refuse_taken(path, header, set() if row is None else {row})
        query = csv_query(listed, header, found)
        try:
            self._connection.execute(f"create temp table {name} as {query}")
        except (duckdb.Error, RuntimeError) as error:
            raise malformed(path, str(error)) from None
        if row is None:
            return self._frame(self._connection.table(name))
        # The engine keeps the order of the file, and numbers the rows it stores from 0, unless
        # the file has a column of that name.
        own = "rowid" in map(str.lower, header)
        number = "row_number() over ()" if own else "rowid + 1"
        return self._frame(self._connection.sql(f"select {number} as {quoted(row)}, * from {name}"))

    def from_numpy(self, columns: Mapping[str, Array]) -> Frame:
        """Return a frame over NumPy arrays (copied once into the engine)."""
        lengths = {len(array) for array in columns.values()}
        if len(lengths) != 1:
            raise ValueError(f"columns differ in length: {sorted(lengths)}")
        arrays = dict(columns)
        name = next(self._names)
        with _guarded("reading arrays"):
            self._connection.register(f"{name}_arrays", arrays)
            self._connection.execute(f"create temp table {name} as select * from {name}_arrays")
            self._connection.unregister(f"{name}_arrays")
        return self._frame(self._connection.table(name))

    @contextlib.contextmanager
    def lend(self, columns: Mapping[str, Array]) -> Iterator[Frame]:
        """Yield a frame over NumPy arrays without copying them, valid inside the block only."""
        name = next(self._names)
        with _guarded("reading arrays"):
            self._connection.register(name, dict(columns))
        try:
            yield self._frame(self._connection.table(name))
        finally:
            self._connection.unregister(name)

    @contextlib.contextmanager
    def lend_lists(self, columns: Mapping[str, Column], batch: int = ROW_GROUP) -> Iterator[Frame]:
        """Yield a frame as `lend` does, over arrays, lists and texts.

        Threads of a query share the work by batches of so many rows.
        """
        name, lent = next(self._names), Lent(columns, batch)
        with _guarded("reading arrays"):
            self._connection.register(name, lent)
        try:
            yield self._frame(self._connection.table(name))
        finally:
            self._connection.unregister(name)

    # -- work -------------------------------------------------------------------------

    def materialise(self, frame: Frame) -> Frame:
        """Return `frame` computed once, so that later uses do not compute it again."""
        name = next(self._names)
        with _guarded("computing"):
            self._relation(frame).create(name)
        return self._frame(self._connection.table(name))

    def named(self, frame: Frame) -> Frame:
        """Return `frame` under a name, not computed: a view of many steps is looked at as one.

        Relations are looked at anew, step by step, whenever a table has come or gone.
        """
        name = next(self._names)
        with _guarded("naming"):
            self._relation(frame).create_view(name)
        return self._frame(self._connection.table(name))

    def project(self, frame: Frame, columns: Mapping[str, str]) -> Frame:
        """Return named SQL expressions over a frame, for what Narwhals has no word for."""
        listed = ", ".join(f"{sql} as {quoted(name)}" for name, sql in columns.items())
        return self._frame(self._relation(frame).project(listed))

    def order_key(self, frame: Frame, columns: Sequence[str], key: str, name: str) -> Frame:
        """Add a 60-bit order column: keyed SHA-256 over `columns` as text.

        The text is `key|v1|v2|...` with missing values empty; the number is the first
        15 hexadecimal digits. Engines hash natively in ways that differ and change, so
        the key is computed once, from text, and stored. Columns must be whole numbers
        or text: how floats print differs between engines.
        """
        parts = ", ".join(
            [text_literal(key), *(f"coalesce({quoted(c)}::varchar, '')" for c in columns)]
        )
        digits = f"substr(sha256(concat_ws('|', {parts})), 1, 15)"
        column = f"('0x' || {digits})::bigint as {quoted(name)}"
        return self._frame(self._relation(frame).project(f"*, {column}"))

    def fingerprint(self, frame: Frame, columns: Sequence[str], name: str) -> Frame:
        """Add a text column that is equal exactly where all `columns` are equal.

        Written as a length-prefixed join, so no two different rows collide.
        """
        parts = " || ".join(
            f"coalesce(length({quoted(c)}::varchar)::varchar || ':' || {quoted(c)}::varchar, '-')"
            for c in columns
        )
        text = parts if columns else "''"
        _check_new(frame, name)
        return self._frame(self._relation(frame).project(f"*, {text} as {quoted(name)}"))

    def join_text(self, frame: Frame, by: str, column: str, name: str) -> Frame:
        """Return one row per `by` with its `column` texts sorted and joined."""
        relation = self._relation(frame).aggregate(
            f"{quoted(by)}, string_agg({quoted(column)}, ';' order by {quoted(column)}) "
            f"as {quoted(name)}",
            quoted(by),
        )
        return self._frame(relation)

    def number_rows(self, frame: Frame, order_by: Sequence[str], name: str) -> Frame:
        """Add the 1-based position of each row in the order of `order_by`."""
        _check_new(frame, name)
        column = f"row_number() over (order by {_order(order_by)}) as {quoted(name)}"
        return self._frame(self._relation(frame).project(f"*, {column}"))

    def number_within(self, frame: Frame, columns: Sequence[str], name: str) -> Frame:
        """Add a number from 1 on that tells rows apart which agree on `columns`."""
        _check_new(frame, name)
        listed = ", ".join(map(quoted, columns))
        column = f"row_number() over (partition by {listed}) as {quoted(name)}"
        return self._frame(self._relation(frame).project(f"*, {column}"))

    def sort_and_number(self, frame: Frame, order_by: Sequence[str], name: str) -> Frame:
        """Return the rows computed once and stored in this order, with their 1-based position."""
        _check_new(frame, name)
        relation = self._relation(frame).order(_order(order_by))
        numbered = relation.project(f"*, row_number() over () as {quoted(name)}")
        return self.materialise(self._frame(numbered))

    def distinct(self, frame: Frame) -> Frame:
        """Return each different row once.

        Narwhals numbers the rows of each kind to keep the first, which takes far longer.
        """
        return self._frame(self._relation(frame).distinct())

    def repeated(self, frame: Frame, key: str) -> int:
        """Return how many rows lack a key or have one that stands in an earlier row, too."""
        whole = frame.collect_schema()[key].is_integer()
        relation = self._relation(frame.select(key))
        distinct = f"count(distinct {quoted(key)})"
        with _guarded("counting keys"):
            if not whole:
                return int(relation.aggregate(f"count(*) - {distinct}").fetchall()[0][0])
            counts = f"count(*), min({quoted(key)}), max({quoted(key)})"
            rows, low, high = relation.aggregate(counts).fetchall()[0]
            # Not of the lowest number: no literal can be written for it.
            close = rows and low is not None and low > -(2**63)
            if close and high - low < min(BITS_PER_ROW * rows, MOST_BITS):
                # One bit for each number that may occur: no table of those that do.
                distinct = f"bit_count(bitstring_agg({quoted(key)}, {low}, {high}))"
            return int(rows - relation.aggregate(distinct).fetchall()[0][0])

    def cannot_match(self, patterns: Sequence[str]) -> list[str]:
        """Return the patterns that are no regular expressions this engine understands."""
        try:
            matches = ", ".join(["regexp_matches('', ?)"] * len(patterns))
            self._connection.execute(f"select {matches or 1}", [*patterns]).fetchall()
        except duckdb.Error:
            if len(patterns) == 1:
                return [*patterns]
            return [bad for one in patterns for bad in self.cannot_match([one])]
        return []

    # -- out --------------------------------------------------------------------------

    def to_numpy(self, frame: Frame) -> dict[str, Array]:
        """Return the columns as NumPy arrays; missing values are refused.

        Meant for numbers. Text crosses one object at a time and is for small frames.
        """
        arrays = self.to_masked(frame)
        for name, array in arrays.items():
            if array.mask.any():
                raise DiscreetError(f"column {name} has missing values where none may be.")
        return {name: array.data for name, array in arrays.items()}

    def to_masked(self, frame: Frame) -> dict[str, np.ma.MaskedArray[Any, Any]]:
        """Return the columns as NumPy arrays whose masks say which values are missing."""
        with _guarded("computing"):
            arrays = self._relation(frame).fetchnumpy()
        return {name: np.ma.asarray(array) for name, array in arrays.items()}

    def rows(self, frame: Frame) -> list[tuple[Any, ...]]:
        """Return the rows of a small frame as tuples."""
        with _guarded("computing"):
            return self._relation(frame).fetchall()

    def write_parquet(
        self,
        frame: Frame,
        path: Path,
        order_by: Sequence[str] = (),
        columns: Mapping[str, str] | None = None,
        number: str | None = None,
        row_group: int = ROW_GROUP,
    ) -> None:
        """Write one Parquet file in one step, rows in the order of `order_by`.

        `columns` maps names in the file to columns of the frame; None writes all. `number`
        names a column to add in front, with the 1-based position of each row. Rows that
        hold long lists are better written in smaller groups.
        """
        # Level 1: of records of short codes a higher one makes no smaller files.
        options = (
            f"format parquet, compression zstd, compression_level 1, row_group_size {row_group}, "
            f"kv_metadata {{discreet_format_version: '{FORMAT_VERSION}'}}"
        )
        self._copy(frame, path, order_by, columns, options, number)

    def write_csv(
        self,
        frame: Frame,
        path: Path,
        order_by: Sequence[str] = (),
        columns: Mapping[str, str] | None = None,
    ) -> None:
        """Write one comma-separated file with header; arguments as `write_parquet`."""
        self._copy(frame, path, order_by, columns, "format csv, header true")

    def _copy(
        self,
        frame: Frame,
        path: Path,
        order_by: Sequence[str],
        columns: Mapping[str, str] | None,
        options: str,
        number: str | None = None,
    ) -> None:
        check_utf8(path)
        relation = self._relation(frame)
        if order_by:
            relation = relation.order(_order(order_by))
        if columns is not None:
            listed = [f"{quoted(old)} as {quoted(new)}" for new, old in columns.items()]
            relation = relation.project(", ".join(listed))
        if number is not None:
            relation = relation.project(f"row_number() over () as {quoted(number)}, *")
        # The view is dropped again: a connection must not keep names of finished work.
        view = next(self._names)
        with atomic_file(path) as temporary, _guarded(f"writing {path.name}"):
            relation.create_view(view)
            try:
                self._connection.execute(
                    f"copy (from {view}) to {text_literal(str(temporary))} ({options})"
                )
            finally:
                self._connection.execute(f"drop view if exists {view}")

    def check_folder(self, folder: Path) -> None:
        """Refuse a folder in which the engine cannot write a file and read it again."""
        file = folder / "one.parquet"
        try:
            self.write_parquet(self.from_numpy({"one": np.ones(1)}), file)
            self.rows(self.read_parquet(file))
        except EngineStopped:
            raise BadInput(
                f"{folder}: the engine cannot write files here. Rename the folder, or choose "
                f"another one."
            ) from None
        finally:
            file.unlink(missing_ok=True)

    def close(self) -> None:
        """Release memory and spilled files."""
        self._connection.close()

    # -- seam -------------------------------------------------------------------------

    @staticmethod
    def _relation(frame: Frame) -> duckdb.DuckDBPyRelation:
        relation: duckdb.DuckDBPyRelation = nw.to_native(frame)
        return relation

    @staticmethod
    def _frame(relation: duckdb.DuckDBPyRelation) -> Frame:
        return nw.from_native(relation)


def _plain(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Return rows with JSON as the text it is: compared with a text, it would be parsed."""
    types = zip(relation.columns, relation.types, strict=True)
    columns = [f"{quoted(n)}::varchar as {quoted(n)}" for n, kind in types if str(kind) == "JSON"]
    return relation.project(f"* replace ({', '.join(columns)})") if columns else relation


def _check_new(frame: Frame, name: str) -> None:
    """Refuse to add a column twice: the engine would keep both and use either."""
    if name in frame.collect_schema().names():
        raise ValueError(f"the frame has a column '{name}' already")


def _order(columns: Sequence[str]) -> str:
    return ", ".join(f"{quoted(column)} nulls first" for column in columns)
