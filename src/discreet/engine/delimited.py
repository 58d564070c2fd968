"""Delimited text as the engine reads it: every column as text, every flaw refused."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from discreet.engine.literals import text_literal
from discreet.errors import UnreadableFile


def csv_query(files: str, header: Sequence[str], separator: str) -> str:
    """Return the query that reads a delimited file (a list in SQL); empty is missing."""
    columns = ", ".join(f"{text_literal(name)}: 'VARCHAR'" for name in header)
    return (
        f"select * from read_csv({files}, header = true, auto_detect = false, "
        f"compression = 'none', hive_partitioning = false, "
        f"delim = {text_literal(separator)}, quote = '\"', escape = '\"', nullstr = '', "
        f"strict_mode = true, null_padding = false, columns = {{{columns}}})"
    )


def malformed(path: Path, message: str) -> UnreadableFile:
    """Return the refusal of a file; of the engine's message, which may quote data, only the row."""
    found = re.search(r"[Ll]ine:? (\d+)", message)
    return UnreadableFile(
        path.name,
        "is not a well-formed delimited UTF-8 file (fields per row, quotes, encoding)",
        "Mend the row or export the file again.",
        int(found.group(1)) - 1 if found and int(found.group(1)) > 1 else None,
    )


def header_of(path: Path, separator: str | None) -> tuple[list[str], str]:
    """Return column names and separator (of comma, pipe, semicolon, tab) of a file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            line = handle.readline(1_000_000)
            if not line:
                raise UnreadableFile(path.name, "is empty", "Export the file again.")
            found = separator or max(",|;\t", key=line.count)
            header = next(csv.reader([line], delimiter=found, strict=True), [])
    except (OSError, UnicodeDecodeError, csv.Error):
        raise UnreadableFile(
            path.name, "has no readable header", "Check path and encoding."
        ) from None
    if not header or any(not name.strip() for name in header):
        raise UnreadableFile(
            path.name, "has an empty column name in its header", "Name every column."
        )
    if len({name.lower() for name in header}) != len(header):
        raise UnreadableFile(path.name, "names a column twice", "Rename or drop one of them.")
    return header, found
