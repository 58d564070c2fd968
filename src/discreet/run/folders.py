"""The folders of a run: refuse before the charge what could not be used after it."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from pathlib import Path

from discreet.config import BadConfig, parse
from discreet.engine import Engine
from discreet.errors import BadInput, NewerFormat, UnreadableFile
from discreet.files import atomic_folder, check_format, private_folder, read_yaml
from discreet.mechanisms import HEADER, ReleaseHeader
from discreet.run.state import FILE, LOCK


def check_separate(*folders: Path) -> None:
    """Refuse folders of which one is another, or inside another."""
    try:
        resolved = [folder.resolve() for folder in folders]
    except (OSError, RuntimeError):  # links that lead in a circle
        raise BadInput(
            "census, work or out is a symbolic link that leads nowhere. Name the folder itself."
        ) from None
    for one, other in itertools.permutations(resolved, 2):
        if one == other or one in other.parents:
            raise BadInput("census, work and out must be separate folders, none inside another.")


def make_work(work: Path) -> bool:
    """Make the work folder unless it is there; return whether it was made.

    One that was there is made private, too, before anything is looked for or put in it.
    """
    if work.is_dir():
        _take(work)
        return False
    if work.is_symlink() or work.exists():
        raise BadInput(f"{work.name} is not a folder. Choose another work folder.")
    try:
        private_folder(work)
    except OSError as error:
        raise BadInput(
            f"{work} cannot be made ({error.strerror}). Choose another work folder."
        ) from None
    return True


def _take(work: Path) -> None:
    """Make an existing work folder private, if it is ours and not in other use."""
    if work.stat().st_uid != os.geteuid():
        raise BadInput(f"{work.name} belongs to another user. Choose another work folder.")
    before = stat.S_IMODE(work.stat().st_mode)
    private_folder(work)
    held = {entry.name for entry in work.iterdir()}
    if held and not held & {FILE, LOCK}:
        work.chmod(before)
        raise BadInput(f"{work.name} is not empty. Choose another work folder or delete it.")


def rehearse(out: Path, engine: Engine) -> None:
    """Make the folder of the release as publishing will, use it, and take it away again.

    Links, rights, mount points, names that are too long or look like patterns: only the system
    and the engine know all that may be wrong with a folder, and after the charge is too late
    to ask.
    """
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    mode = out.stat().st_mode & 0o777 if out.is_dir() else 0o755
    try:
        with atomic_folder(out, mode) as temporary:
            engine.check_folder(temporary)
    except OSError as error:
        raise BadInput(
            f"{out} cannot be made ({error.strerror}). Choose another folder for the release."
        ) from None
    finally:
        for folder in made:
            with contextlib.suppress(OSError):  # not made, or used by somebody else meanwhile
                folder.rmdir()


def header_of(out: Path) -> ReleaseHeader | None:
    """Return what the folder of a release says of itself, if it is one."""
    try:
        return parse(ReleaseHeader, check_format(read_yaml(out / HEADER), HEADER), HEADER)
    except (UnreadableFile, NewerFormat, BadConfig):
        return None
