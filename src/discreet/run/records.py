"""Recognise the files that hold the records of a census, whatever lies beside them."""

from __future__ import annotations

from pathlib import Path

from discreet.engine import Engine, parts
from discreet.files import sha256_file

#: The tables that hold records of people and of where they live.
TABLES = ("units", "persons")


def record_hashes(folder: Path) -> tuple[str, ...]:
    """Return the SHA-256 of every file of units and persons of a census folder, sorted.

    Files without a row are left out: those of two collections may well be the same. A file that
    was written again, in another order or compression, is another file.
    """
    engine = Engine(threads=1)
    found = {
        sha256_file(part)
        for table in TABLES
        for part in _parts(folder, table)
        if engine.rows(engine.read_parquet(part).head(1))
    }
    engine.close()
    return tuple(sorted(found))


def _parts(folder: Path, table: str) -> list[Path]:
    """Return the files of a table, as `Census.open` finds them."""
    for path in (folder / f"{table}.parquet", folder / table):
        if path.exists():
            return parts(path)
    return []
