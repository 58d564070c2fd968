"""Name files to DuckDB so that it opens exactly these.

DuckDB expands `*`, `?` and `[` in any path it is given, in names of folders too, so a path that
exists may be read as a pattern for others. Here such characters are escaped, and the engine is
asked what it would open before anything is read.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import duckdb

from discreet.engine.literals import list_literal, text_literal
from discreet.errors import UnreadableFile
from discreet.files import NOT_ALLOWED, check_utf8

_ESCAPED = str.maketrans({"*": "[*]", "?": "[?]", "[": "[[]"})


def named(connection: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> str:
    """Return a list of files as SQL, each of which stands for itself alone.

    A file that is missing, may not be read, or that DuckDB cannot name is refused.
    """
    return list_literal([_pattern(connection, file) for file in files])


def _pattern(connection: duckdb.DuckDBPyConnection, file: Path) -> str:
    check_readable(file)
    check_utf8(file)
    # Absolute: the engine takes names such as `s3:` for places outside the file system.
    path = os.path.abspath(file)  # noqa: PTH100  (not resolved: links keep their names)
    pattern = path.translate(_ESCAPED)
    if pattern == path:
        return path
    try:
        found = connection.execute(f"from glob({text_literal(pattern)})").fetchall()
    except duckdb.Error:
        found = []
    if found != [(path,)]:
        raise UnreadableFile(
            file.name,
            "has a path that the engine cannot tell from a pattern",
            "Rename the file or its folders without the characters * ? [ and \\.",
        )
    return pattern


def parts(path: Path) -> list[Path]:
    """Return a Parquet file, or all of a folder (not of folders in it) in the order of names."""
    if not path.is_dir():
        return [path]
    try:
        entries = sorted(path.iterdir())
    except PermissionError:
        raise UnreadableFile(f"{path.name}/", *NOT_ALLOWED) from None
    found = [entry for entry in entries if entry.name.endswith(".parquet")]
    if not found:
        raise UnreadableFile(f"{path.name}/", "holds no Parquet file", "Check the path.")
    return found


def refuse_taken(file: Path, columns: Iterable[str], taken: Collection[str]) -> None:
    """Refuse a file with a column of a name that is needed for a column to be added."""
    for name in columns:
        if name.lower() in taken:
            raise UnreadableFile(
                file.name, f"has a column {name.lower()}, a name that is used here", "Rename it."
            )


def check_readable(file: Path) -> None:
    """Refuse a file that is missing or that this user may not read."""
    try:
        with file.open("rb"):
            return
    except PermissionError:
        rule, remedy = NOT_ALLOWED
    except (FileNotFoundError, NotADirectoryError):
        rule, remedy = "does not exist", "Check the path."
    except (OSError, ValueError):  # a folder, a name with NUL or one that is too long
        rule, remedy = "is not a file that can be opened", "Check the path."
    raise UnreadableFile(file.name, rule, remedy)
