"""Say whether a release was charged."""

from __future__ import annotations

from pathlib import Path

from discreet.mechanisms import Release
from discreet.register import Refused, Register, Reservation


def check_release(folder: Path | str, register: Path | str) -> Reservation:
    """Return the entry of the register that charged a release, or refuse it.

    The files of the release must have the hashes that its header lists, the entry that the
    header names must be committed in the register, for this collection and this id, with this
    draw and this specification, and the header must be the one that was published. So no file
    was altered since; that publishing made them from the draw rests on the code that did it.
    """
    release = Release.open(folder)
    header = release.header
    if header.mode != "release":
        raise Refused("not charged", f"it was made in mode {header.mode}, which charges nothing.")
    if header.charged is None:
        raise Refused("not charged", "the release names no entry of a register.")
    with Register.open(register) as opened:
        return opened.check_published(
            header.charged, header.draw, release.specification, header.digest
        )
