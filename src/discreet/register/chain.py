"""The chain: every entry carries the hash of the one before it.

Whoever changes, removes or moves an entry breaks the chain at that place. Removing the
last entries breaks nothing, so the hash of the last one is also kept in a small file
beside the register, the *head*.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from glob import escape
from pathlib import Path
from typing import Any

from discreet.config import BadConfig, Strict, parse
from discreet.errors import BadInput, UnreadableFile
from discreet.files import (
    FORMAT_VERSION,
    check_format,
    create_file,
    json_text,
    read_yaml,
    write_json,
)
from discreet.register.collection import Sha256
from discreet.register.entries import Body, Entry, Event, canonical

#: What the first entry has in place of the hash of an entry before it.
START = "0" * 64


class BrokenChain(UnreadableFile):
    """An entry is not what was written; `sequence` is its number."""

    def __init__(self, file: str, sequence: int, rule: str) -> None:
        self.sequence = sequence
        super().__init__(file, f"entry {sequence} {rule}", "Restore the register from a copy.")


class Head(Strict):
    """Number and hash of the last entry."""

    format_version: int = FORMAT_VERSION
    sequence: int
    hash: Sha256


def digest(sequence: int, previous: str, body: str) -> str:
    """Return the hash of an entry: of its number, its link and what it says."""
    return hashlib.sha256(canonical([sequence, previous, body]).encode("ascii")).hexdigest()


def link(entries: Sequence[Entry], event: Event, time: datetime) -> tuple[Entry, str]:
    """Return the entry that follows `entries`, and its body as text."""
    time = time.astimezone(UTC).replace(microsecond=0)
    sequence = len(entries) + 1
    previous = entries[-1].hash if entries else START
    body = canonical(Body(time=time, event=event))
    return Entry(sequence, time, event, previous, digest(sequence, previous, body)), body


def read(rows: Iterable[tuple[Any, ...]], file: str) -> list[Entry]:
    """Return stored rows as entries, or name the first that is not as it was written."""
    entries: list[Entry] = []
    for number, row in enumerate(rows, start=1):
        if row[0] != number:
            raise BrokenChain(file, number, "is missing")
        try:
            previous, body, hashed = (value.decode("utf-8") for value in row[1:])
        except (AttributeError, UnicodeDecodeError):
            raise BrokenChain(file, number, "is not text") from None
        if hashed != digest(number, previous, body):
            raise BrokenChain(file, number, "does not have the hash of its content")
        if previous != (entries[-1].hash if entries else START):
            raise BrokenChain(file, number, "does not follow the entry before it")
        try:
            told = parse(Body, json.loads(body), file)
        except (BadConfig, ValueError):
            raise BrokenChain(file, number, "says nothing this version knows") from None
        entries.append(Entry(number, told.time, told.event, previous, hashed))
    if not entries:
        raise BrokenChain(file, 1, "is missing")
    return entries


def head_path(register: Path) -> Path:
    """Return where the head of a register is kept."""
    return register.with_name(f"{register.name}.head")


def read_head(register: Path) -> Head | None:
    """Return the head beside a register, or None if there is none."""
    path = head_path(register)
    if not path.exists():
        return None
    return parse(Head, check_format(read_yaml(path), path.name), path.name)


def write_head(register: Path, head: Head) -> None:
    """Write the head; the caller holds the write lock, so heads never run backwards."""
    path = head_path(register)
    for left in path.parent.glob(f".{escape(path.name)}.*.part"):  # by a process that was killed
        left.unlink(missing_ok=True)
    write_json(path, head.model_dump(), 0o600)


def create_head(register: Path, head: Head) -> None:
    """Write the head of a new register; a process that is killed leaves nothing else behind."""
    create_file(head_path(register), json_text(head.model_dump()).encode(), 0o600)


def against_head(entries: Sequence[Entry], head: Head) -> str | None:
    """Return how a register contradicts its head, or None.

    A head that names an earlier entry is no contradiction: a process may end between
    writing an entry and writing the head.
    """
    if head.sequence > len(entries):
        return (
            f"entry {len(entries) + 1} and later ones are missing: "
            f"the head names entry {head.sequence}"
        )
    if head.sequence < 1 or entries[head.sequence - 1].hash != head.hash:
        return f"entry {head.sequence} is not the one that the head names"
    return None


def check_head(register: Path, head: Head | None, entries: Sequence[Entry]) -> None:
    """Refuse to go on with a register that lost entries: its account would be too low."""
    wrong = None if head is None else against_head(entries, head)
    if wrong:
        raise BadInput(
            f"{register.name}: {wrong}. Restore the newest copy of the register. If entries are "
            f"lost for good, remove the head file and add their releases by hand first of all."
        )
