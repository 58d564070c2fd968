"""Finished stages of a long draw or publication, kept so that a killed run goes on after them.

A stage is a folder that appears whole or not at all. Of a draw, each stage is a part of
the draw of its own: what a later stage reads was durable before, and is not drawn again.
A stage that was not finished is deleted unread and drawn anew.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.files import atomic_folder, folder_hash, private_folder, write_text

#: Told how much is done (0 to 1) and what comes now.
Progress = Callable[[float, str], None]


def silent(part: float, step: str) -> None:
    """Tell nobody."""


def unmarked(part: str) -> None:
    """Leave no mark of what is drawn."""


class DamagedStage(DiscreetError):
    """A finished stage differs from its hash."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"stage {name} of this run differs from its hash. It was used already and may not be "
            f"drawn again; restore it from a copy of the work folder."
        )


@dataclass(frozen=True)
class Stages:
    """The stages of one run, in a private folder of their own.

    `threads` is how many may be used; results do not depend on it. `begin` is called with the
    name of what is about to be drawn, before what a killed run left of it is deleted.
    """

    folder: Path
    say: Progress = silent
    threads: int = 1
    begin: Callable[[str], None] = unmarked

    def finished(self, name: str) -> bool:
        """Return whether a stage is finished."""
        return (self.folder / f"{name}.sha256").exists()

    def stage(self, name: str, make: Callable[[Path], None], *, draws: bool = True) -> Path:
        """Return the folder of a stage, made by `make` unless it is finished.

        A stage that `draws` nothing is a function of earlier ones, however often it is made.
        """
        kept, seal = self.folder / name, self.folder / f"{name}.sha256"
        if self.finished(name):
            if not kept.is_dir() or folder_hash(kept) != seal.read_text():
                raise DamagedStage(name)
            return kept
        if draws:
            self.begin(name)
        private_folder(self.folder)
        # Without its seal nobody has read it: it may be drawn again.
        shutil.rmtree(kept, ignore_errors=True)
        with atomic_folder(kept, tag="stage") as temporary:
            make(temporary)
        write_text(seal, folder_hash(kept), 0o600)
        return kept


def link(source: Path, target: Path) -> None:
    """Copy a folder, by links to its files where the file system can.

    Stages stay where they are until the draw is committed, so that a kill in between finds them.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target, copy_function=_link_file)


def _link_file(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
