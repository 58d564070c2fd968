"""The book: entries in their file, written one at a time, with the head beside it."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from discreet.errors import BadInput, DiscreetError, UnreadableFile
from discreet.files import FORMAT_VERSION, NOT_ALLOWED, check_replaceable
from discreet.register import chain
from discreet.register.account import Refused
from discreet.register.database import Database, RegisterBusy
from discreet.register.entries import Entry, Event, RegisterCreated
from discreet.register.ledger import Ledger, audit

Clock = Callable[[], datetime]


class Book:
    """An open file of entries. Nothing is remembered between calls: the file is the truth."""

    def __init__(self, path: Path, clock: Clock, busy_seconds: float) -> None:
        _check_readable(path)
        self.path, self._clock = path, clock
        self._database = Database(path, busy_seconds)

    @classmethod
    def create(
        cls, path: Path, clock: Clock, busy_seconds: float, first: Sequence[Event] = ()
    ) -> Book:
        """Write a new file of its birth and the `first` events, all at once, and open it."""
        head = chain.head_path(path)
        if head.exists() and not path.exists():
            raise BadInput(
                f"{head.name} is the head of a register that is gone. Restore the register, or "
                f"remove the head file if the register is not needed any more."
            )
        born = RegisterCreated(register_id=secrets.token_hex(16), format_version=FORMAT_VERSION)
        ledger, rows = Ledger(), []
        entries: list[Entry] = []
        for event in (born, *first):
            ledger.admit(event)
            entry, body = chain.link(entries, event, clock())
            ledger.record(entry)
            entries.append(entry)
            rows.append((entry.sequence, entry.previous, body, entry.hash))
        Database.create(path, rows)
        with contextlib.suppress(FileExistsError):  # of somebody who wrote an entry already
            chain.create_head(path, chain.Head(sequence=entry.sequence, hash=entry.hash))
        return cls(path, clock, busy_seconds)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def entries(self) -> list[Entry]:
        """Return all entries after checking every hash and every link."""
        return chain.read(self._database.rows(), self.path.name)

    def ledger(self, entries: list[Entry] | None = None) -> Ledger:
        """Return the state that follows from the entries."""
        try:
            return Ledger(self.entries() if entries is None else entries)
        except (Refused, KeyError):
            raise UnreadableFile(
                self.path.name, "contradicts itself", "Let `verify` name the entry."
            ) from None

    def whole(self) -> Ledger:
        """Return the state, or refuse a file that its head contradicts."""
        # Before the entries: the other way round, one written in between looks lost.
        head = chain.read_head(self.path)
        entries = self.entries()
        chain.check_head(self.path, head, entries)
        return self.ledger(entries)

    def write(self, decide: Callable[[Ledger], Event | None]) -> tuple[Ledger, Entry | None]:
        """Append what `decide` makes of the present state, if anything, under one write lock."""
        entry = None
        with self._database.writing():
            if altered := self._database.altered():
                raise UnreadableFile(self.path.name, altered[0], "Let `verify` look at it.")
            entries = self.entries()
            chain.check_head(self.path, chain.read_head(self.path), entries)
            check_replaceable(chain.head_path(self.path))  # it is written anew after the entry
            ledger = self.ledger(entries)
            event = decide(ledger)
            if event is not None:
                entry, body = chain.link(entries, event, self._clock())
                self._database.append(entry.sequence, entry.previous, body, entry.hash)
                ledger.record(entry)
        self._keep_head()
        return ledger, entry

    def problems(self) -> list[str]:
        """Return what is wrong with the file, its chain, its state and its head."""
        problems: list[str] = []
        head = None
        try:
            # Before the entries: the other way round, one written in between looks lost.
            head = chain.read_head(self.path)
            if head is None:
                name = chain.head_path(self.path).name
                problems.append(f"{name} is missing: removed last entries would go unnoticed")
        except BadInput as error:
            problems.append(str(error))
        try:
            problems += self._database.damages()
            entries = self.entries()
        except UnreadableFile as error:
            return [*problems, str(error)]
        problems += audit(entries)
        if head is not None and (wrong := chain.against_head(entries, head)):
            problems.append(wrong)
        return problems

    def _keep_head(self) -> None:
        """Bring the head up to date, under the lock so that it never runs backwards."""
        # When busy: the entry is safe, and whoever holds the lock writes the head after it.
        with contextlib.suppress(RegisterBusy), self._database.writing():
            sequence, digest = self._database.last()
            head = chain.Head(sequence=sequence, hash=digest)
            if chain.read_head(self.path) == head:
                return
            try:
                chain.write_head(self.path, head)
            except OSError:
                raise DiscreetError(
                    f"{self.path.name}: the entry is written, but its head file cannot be. Check "
                    f"the folder and the disk, then try the same again: nothing is charged twice."
                ) from None


def _check_readable(path: Path) -> None:
    """Refuse a register that is not there or that this user may not read."""
    try:
        there, folder = path.is_file(), path.is_dir()
    except PermissionError:  # of a folder above it
        raise UnreadableFile(path.name, *NOT_ALLOWED) from None
    if folder:
        raise UnreadableFile(path.name, "is a folder", "Name the file of the register in it.")
    if not there:
        raise UnreadableFile(path.name, "is missing", "Check the path, or create a register.")
    if not os.access(path, os.R_OK):
        raise UnreadableFile(path.name, *NOT_ALLOWED)
