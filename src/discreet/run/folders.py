"""The folders of a run: refuse before the charge what could not be used after it."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from discreet.config import BadConfig, parse
from discreet.engine import Engine
from discreet.errors import BadInput, NewerFormat, UnreadableFile
from discreet.files import (
    atomic_folder,
    check_format,
    check_replaceable,
    private_folder,
    read_yaml,
)
from discreet.mechanisms import HEADER, ReleaseHeader
from discreet.run.state import LOCK, check_unused

#: How the names of the files end that are a register, or that SQLite makes beside it.
REGISTER_FILES = ("", ".head", "-journal", "-wal", "-shm")


def check_separate(*folders: Path, register: Path | None) -> None:
    """Refuse folders of which one is another, or inside another, or a file of the register.

    SQLite would take a folder in the place of its journal for the journal.
    """
    try:
        resolved = [folder.resolve() for folder in folders]
        book = None if register is None else register.resolve()
    except (OSError, RuntimeError):  # links that lead in a circle
        raise BadInput(
            "census, work, out or the register is a symbolic link that leads nowhere. Name the "
            "folder or file itself."
        ) from None
    for one, other in itertools.permutations(resolved, 2):
        if one == other or one in other.parents:
            raise BadInput("census, work and out must be separate folders, none inside another.")
    files = [Path(f"{book}{end}") for end in REGISTER_FILES] if book else []
    for folder, file in itertools.product(resolved, files):
        if folder == file or folder in file.parents or file in folder.parents:
            raise BadInput(
                "census, work and out must be apart from the register and the files beside it "
                "(.head, -journal, -wal, -shm). Choose another folder."
            )


def check_head(register: Path) -> None:
    """Refuse a register whose head cannot be written.

    It is written after the entry: the run would be charged, and then pass for a refused one.
    """
    check_replaceable(Path(f"{register.resolve()}.head"))


@dataclass(frozen=True)
class Taken:
    """A work folder that a run has taken, and what it was before.

    `made` are the folders that were made for it, itself first; there are none if it was there.
    """

    folder: Path
    made: list[Path]
    mode: int
    locked_before: bool

    def give_back(self) -> None:
        """Leave the folder and those above it as they were, unless somebody uses them now.

        Only for whoever holds the lock, and has removed what else it put there.
        """
        if {entry.name for entry in self.folder.iterdir()} - {LOCK}:
            return
        self.folder.chmod(self.mode)
        if not self.locked_before:
            (self.folder / LOCK).unlink(missing_ok=True)
        _remove_empty(self.made)


def make_work(work: Path, resume: bool) -> Taken:
    """Make the work folder unless it is there, and return it with what was there before.

    One that was there is made private, too, but only if it holds nothing (or, to resume, a run):
    a folder in other use is left as it is.
    """
    if work.is_dir():
        return _take(work, resume)
    if work.is_symlink() or work.exists():
        raise BadInput(f"{work.name} is not a folder. Choose another work folder.")
    made = _absent(work)
    try:
        private_folder(work)
    except OSError as error:
        _remove_empty(made)
        raise BadInput(
            f"{work} cannot be made ({error.strerror}). Choose another work folder."
        ) from None
    return Taken(work, made, 0o700, locked_before=False)


def _take(work: Path, resume: bool) -> Taken:
    """Make an existing work folder private, if it is ours and not in other use."""
    found = work.stat()
    if found.st_uid != os.geteuid():
        raise BadInput(f"{work.name} belongs to another user. Choose another work folder.")
    if not resume:
        # Others may still write here: once the folder is private, `begin` looks again.
        check_unused(work)
    taken = Taken(work, [], stat.S_IMODE(found.st_mode), (work / LOCK).exists())
    private_folder(work)
    return taken


def _absent(folder: Path) -> list[Path]:
    """Return a folder and those above it, as far as they do not exist."""
    return [one for one in (folder, *folder.parents) if not one.exists()]


def _remove_empty(made: list[Path]) -> None:
    for folder in made:
        with contextlib.suppress(OSError):  # not made, or used by somebody else meanwhile
            folder.rmdir()


def rehearse(out: Path, engine: Engine) -> None:
    """Make the folder of the release as publishing will, use it, and take it away again.

    Links, rights, mount points, names that are too long or look like patterns: only the system
    and the engine know all that may be wrong with a folder, and after the charge is too late
    to ask.
    """
    made = _absent(out)
    mode = out.stat().st_mode & 0o777 if out.is_dir() else 0o755
    try:
        with atomic_folder(out, mode) as temporary:
            engine.check_folder(temporary)
    except OSError as error:
        raise BadInput(
            f"{out} cannot be made ({error.strerror}). Choose another folder for the release."
        ) from None
    finally:
        _remove_empty(made)


def header_of(out: Path) -> ReleaseHeader | None:
    """Return what the folder of a release says of itself, if it is one."""
    try:
        return parse(ReleaseHeader, check_format(read_yaml(out / HEADER), HEADER), HEADER)
    except (UnreadableFile, NewerFormat, BadConfig):
        return None
