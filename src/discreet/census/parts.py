"""A table in parts is one table: every part has the same columns of the same types."""

from __future__ import annotations

from pathlib import Path

from discreet.engine import Engine, parts
from discreet.errors import UnreadableFile


def check_parts(engine: Engine, folder: Path) -> None:
    """Refuse a folder of Parquet files that differ in columns or types.

    The engine would take the columns of the first file, leave out what others have besides, and
    turn their values into its types: a float becomes the nearest integer.
    """
    first, *others = parts(folder)
    if not others:
        return
    columns = dict(engine.read_parquet(first).collect_schema())
    for part in others:
        if dict(engine.read_parquet(part).collect_schema()) != columns:
            raise UnreadableFile(
                f"{folder.name}/{part.name}",
                f"has other columns or types than {first.name}",
                "Write all parts of a table with the same columns and types.",
            )
