"""The SQLite file behind a register: made once, only ever appended to.

Triggers refuse every change of an entry and every entry out of place. They guard
against mistakes; the hashes (see `chain`) show what was changed in spite of them.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from discreet.errors import BadInput, DiscreetError, DiskFull, NewerFormat, UnreadableFile
from discreet.files import FORMAT_VERSION, create_file

#: Marks an SQLite file as a register ("dscr").
APPLICATION_ID = 0x64736372

_SCHEMA = {
    "entries": """CREATE TABLE entries (
    sequence INTEGER PRIMARY KEY,
    previous TEXT NOT NULL,
    body TEXT NOT NULL,
    hash TEXT NOT NULL
)""",
    # Also stops INSERT OR REPLACE, which deletes a row without firing the trigger on DELETE.
    "entries_in_order": """CREATE TRIGGER entries_in_order BEFORE INSERT ON entries
WHEN NEW.sequence IS NOT (SELECT COALESCE(MAX(sequence), 0) + 1 FROM entries)
BEGIN SELECT RAISE(ABORT, 'entries are appended one by one'); END""",
    "entries_not_changed": """CREATE TRIGGER entries_not_changed BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END""",
    "entries_not_deleted": """CREATE TRIGGER entries_not_deleted BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END""",
}

#: An entry as it is stored: number, hash of the one before, body, hash.
Row = tuple[int, str, str, str]

_INSERT = "INSERT INTO entries VALUES (?, ?, ?, ?)"

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NOT_ALLOWED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN}


class RegisterBusy(DiscreetError):
    """Others kept the register locked for longer than we were told to wait."""


class Database:
    """An open register file."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        self.path = path
        with self._explained():
            self._connection = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=rw",
                uri=True,
                timeout=busy_seconds,
                isolation_level=None,
            )
        # Bytes that are no UTF-8 must reach the check of hashes, not fail on the way.
        self._connection.text_factory = bytes
        try:
            self._settle()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def create(path: Path, rows: Iterable[Row]) -> None:
        """Write a register of some entries that only its owner can read, all at once."""
        # In memory: SQLite's own files would be left behind by a process that is killed.
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
            new.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA.values():
                new.execute(statement)
            new.executemany(_INSERT, rows)
            new.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            new.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            new.execute("COMMIT")
            content = new.serialize()
        try:
            create_file(path, content, 0o600)
        except OSError as error:
            if path.exists():
                raise BadInput(f"{path.name} exists. Open it, or choose another name.") from None
            raise DiscreetError(
                f"{path.name} cannot be created ({error.strerror}). Check that its folder can be "
                f"written."
            ) from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def rows(self) -> list[tuple[Any, ...]]:
        """Return all entries as they are stored, in order."""
        return self._select("SELECT sequence, previous, body, hash FROM entries ORDER BY sequence")

    def last(self) -> tuple[int, str]:
        """Return the number and the hash of the last entry."""
        query = "SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1"
        sequence, digest = self._select(query)[0]
        return sequence, _text(digest)

    def append(self, sequence: int, previous: str, body: str, digest: str) -> None:
        """Add one entry; only inside `writing`."""
        with self._explained():
            self._connection.execute(_INSERT, (sequence, previous, body, digest))

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the only write lock; keep all that was appended, or nothing after an error."""
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def damages(self) -> list[str]:
        """Return what is wrong with the file as a database."""
        told = [_text(row[0]) for row in self._select("PRAGMA integrity_check(1)")]
        damages = [] if told == ["ok"] else ["the database file is damaged"]
        return [*damages, *self.altered()]

    def altered(self) -> list[str]:
        """Return which of the rules against changing entries are missing or were altered."""
        rows = self._select("SELECT name, sql FROM sqlite_master")
        found = {_text(name): _text(sql) for name, sql in rows}
        names = sorted(n for n in {*found, *_SCHEMA} if found.get(n) != _SCHEMA.get(n))
        return [f"the rule '{name}' is missing or was altered" for name in names]

    def _settle(self) -> None:
        """Check that the file is a register of a format we know, and set how it is written."""
        if self._number("application_id") != APPLICATION_ID:
            raise UnreadableFile(
                self.path.name, "is no register of releases", "Check the path, or create one."
            )
        version = self._number("user_version")
        if not 1 <= version <= FORMAT_VERSION:
            raise NewerFormat(self.path.name, version, FORMAT_VERSION)
        with self._explained():
            # EXTRA is FULL and also syncs the folder, so that a commit survives a power cut.
            self._connection.execute("PRAGMA synchronous = EXTRA")
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute("PRAGMA cell_size_check = ON")

    def _number(self, pragma: str) -> int:
        return int(self._select(f"PRAGMA {pragma}")[0][0])

    def _select(self, query: str) -> list[tuple[Any, ...]]:
        with self._explained():
            return self._connection.execute(query).fetchall()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what SQLite says into an error that people understand."""
        name = self.path.name
        try:
            yield
        except sqlite3.ProgrammingError:
            raise  # a mistake of ours, such as a register used after it was closed
        except UnicodeDecodeError:  # of an error of SQLite's that quotes damaged text
            raise self._damaged() from None
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in _BUSY:
                raise RegisterBusy(f"{name} is in use by others. Try again.") from None
            if code == sqlite3.SQLITE_FULL:
                raise DiskFull(name) from None
            if code == sqlite3.SQLITE_IOERR:
                raise DiscreetError(
                    f"{name} cannot be read or written. Check that the disk works and has room."
                ) from None
            if code in _NOT_ALLOWED:
                rule = "this user may not write it, or not in its folder"
                raise UnreadableFile(name, rule, "Ask their owner for the permission.") from None
            raise self._damaged() from None

    def _damaged(self) -> UnreadableFile:
        rule = "is damaged or no register of releases"
        return UnreadableFile(self.path.name, rule, "Restore it from a copy.")


def _text(value: object) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else ""
