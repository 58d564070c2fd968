"""Find the files a layout names and open each once, as delimited text or Parquet."""

from __future__ import annotations

from pathlib import Path

from discreet.census.checks import FILE, ROW
from discreet.census.declarations import TableName
from discreet.census.examine import Loaded
from discreet.census.findings import Finding
from discreet.census.layout import Layout
from discreet.census.validate import column_finding
from discreet.engine import Engine
from discreet.errors import BadInput, UnreadableFile

#: Endings tried after a name that has none; the first is Parquet, the others delimited text.
ENDINGS = (".parquet", ".csv", ".txt", ".psv", ".tsv")


class Sources:
    """The files of one source folder (or the one file), and which columns were used."""

    def __init__(self, engine: Engine, source: Path, layout: Layout) -> None:
        self._engine, self._source, self._layout = engine, source, layout
        self._opened: dict[Path, Loaded] = {}
        self._used: dict[Path, set[str]] = {}
        self._paths: dict[TableName, Path] = {}
        if not source.exists():
            raise UnreadableFile(source.name, "does not exist", "Check the path.")
        for place in layout.tables:
            path = self._find(place)
            if path is not None:
                self._paths[place] = path

    def _find(self, place: TableName) -> Path | None:
        table = self._layout.tables[place]
        if self._source.is_file():
            if len({tuple(other.files) for other in self._layout.tables.values()}) > 1:
                raise BadInput(f"layout {self._layout.name} reads several files: name a folder.")
            return self._source
        tried = [self._source / (name + end) for name in table.files for end in ("", *ENDINGS)]
        found = [path for path in tried if path.is_file() or any(path.glob("*.parquet"))]
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise BadInput(f"{place} could be any of {names}. Leave one of them in the folder.")
        if not found and not table.optional:
            raise BadInput(
                f"no file for {place} in the source folder. Looked for {', '.join(table.files)} "
                f"with endings {', '.join(ENDINGS)}."
            )
        return found[0] if found else None

    def __contains__(self, place: TableName) -> bool:
        return place in self._paths

    def path(self, place: TableName) -> Path:
        """Return where a table is read from."""
        return self._paths[place]

    def give(self, place: TableName, rows: Loaded) -> None:
        """Let rows stand for the file of a table."""
        self._opened[self._paths[place]] = rows
        self._used[self._paths[place]] = set()

    def open(self, place: TableName) -> Loaded:
        """Return the rows of a table's file as they are, with row numbers."""
        path = self._paths[place]
        if path not in self._opened:
            if path.is_dir() or path.suffix == ".parquet":
                frame = self._engine.read_parquet(path, row=ROW, file=FILE)
            else:
                frame = self._engine.read_csv(path, row=ROW)
            self._opened[path] = Loaded(frame, f"{path.name}/" if path.is_dir() else path.name)
            self._used[path] = set()
        return self._opened[path]

    def use(self, place: TableName, column: str) -> None:
        """Note that a column of a table's file is wanted."""
        self._used[self._paths[place]].add(column)

    def unused(self) -> list[Finding]:
        """Return a finding for each column of an opened file that nobody wanted."""
        found = []
        for place, path in self._paths.items():
            used = self._used.pop(path, None)
            if used is None:  # a file of several tables is reported once
                continue
            table = self._opened[path]
            columns = [name for name in table.columns if name not in (ROW, FILE)]
            for position, name in enumerate(columns, 1):
                if name not in used:
                    # The name is not shown: in a file without header it would be data.
                    shown = f"column {position}"
                    found.append(column_finding("unknown-column", place, table.file, shown, "warn"))
        return found
