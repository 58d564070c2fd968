"""Errors that people see.

A message names the thing, the rule and the remedy. It never carries a value
taken from confidential data: values belong in an owner-readable file in the
work folder, not on a console or in a log.
"""

from __future__ import annotations

import errno
import os

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2


class DiscreetError(Exception):
    """Something went wrong while running; the command ends with `exit_code`."""

    exit_code = EXIT_FAILED


class BadInput(DiscreetError):
    """Input data or configuration breaks a rule; nothing was written."""

    exit_code = EXIT_BAD_INPUT


class UnreadableFile(BadInput):
    """A file cannot be read as what it claims to be."""

    def __init__(self, file: str, rule: str, remedy: str, row: int | None = None) -> None:
        self.file, self.rule, self.row = file, rule, row
        where = file if row is None else f"{file}, row {row}"
        super().__init__(f"{where}: {rule}. {remedy}")


class DiskFull(DiscreetError):
    """Something could not be written because there is no room for it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} could not be written: the disk is full, or a limit on the size of files was "
            f"reached. Make room and try again; a run goes on with --resume."
        )


#: What the system says when there is no room: on the disk, for this user, in this file.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def no_room(error: BaseException) -> bool:
    """Return whether an error, of Python or of the engine, comes from a full disk.

    The engine has no number for it and quotes the system.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _NO_ROOM
    return any(os.strerror(number) in str(error) for number in _NO_ROOM)


class NewerFormat(BadInput):
    """A file was written by a later version of discreet."""

    def __init__(self, file: str, found: object, known: int) -> None:
        shown = found if isinstance(found, int) else "not a whole number"
        super().__init__(
            f"{file}: format_version is {shown}, this version reads up to {known}. "
            f"Upgrade discreet or write the file again with this version."
        )


class InvariantBroken(DiscreetError):
    """A release disagrees with a declared invariant, so it must not leave the house."""

    def __init__(self, invariant: str, cells: int) -> None:
        self.invariant, self.cells = invariant, cells
        super().__init__(
            f"invariant '{invariant}' differs in {cells} cells; the release was not written. "
            f"This is a defect of the mechanism: please report it with the configuration."
        )
