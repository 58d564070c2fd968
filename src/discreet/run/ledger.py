"""Where a draw is reserved and committed: the register, or a file in the work folder.

A draw is spent once. The order is always: reserve, write the draw durably, commit the
draw's hash. Only committed draws may be read; an uncommitted one is deleted unread and
its reservation used again, which is entered, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from discreet.config import Strict, parse
from discreet.errors import BadInput
from discreet.files import FORMAT_VERSION, check_format, read_yaml, write_yaml
from discreet.register import Register, ReleaseRequest, Reservation, ReservedRun
from discreet.run.records import record_hashes
from discreet.spec import Specification


class LostEntry(BadInput):
    """A register lacks the entry of a run or a release that was charged to it."""

    def __init__(self, register: Path, named_by: str) -> None:
        super().__init__(
            f"{register.name} lacks the entry that {named_by} names: it is another register, or "
            f"it was restored from an older copy, and then releases are missing in its accounts. "
            f"Restore the newest copy. If there is none, enter the lost releases with `discreet "
            f"register add` first of all, and begin a new run."
        )


class Ledger(Protocol):
    """Remembers which draw was committed."""

    @property
    def reserved(self) -> ReservedRun | None:
        """Return by what the reservation is looked up, if anything is charged."""

    def reserve(self, specification: Specification) -> str | None:
        """Reserve the draw; return the hash of the entry, if anything is charged."""

    def committed(self) -> str | None:
        """Return the hash of the committed draw, if there is one."""

    def commit(self, draw_hash: str) -> None:
        """Remember that the draw with this hash is the one that counts."""


class _Committed(Strict):
    format_version: int = FORMAT_VERSION
    draw: str


@dataclass(frozen=True)
class FileLedger:
    """Design and trial runs: nothing is charged, but a draw is still made once."""

    file: Path

    @property
    def reserved(self) -> None:
        """Return nothing: what is simulated or internal is not charged."""
        return None

    def reserve(self, specification: Specification) -> None:
        """Reserve nothing."""

    def committed(self) -> str | None:
        """Return the hash of the committed draw, if there is one."""
        if not self.file.exists():
            return None
        name = self.file.name
        return parse(_Committed, check_format(read_yaml(self.file), name), name).draw

    def commit(self, draw_hash: str) -> None:
        """Write the hash durably."""
        write_yaml(self.file, _Committed(draw=draw_hash).model_dump(), 0o600)


@dataclass(frozen=True)
class RegisterLedger:
    """Release runs: the reservation is charged to the account of the collection.

    `entry` is the hash of the entry that the work folder names, once there is one.
    """

    register: Path
    collection: str
    version: str
    release: str
    run: str
    approval: str
    fingerprint: str
    census: Path
    accept_no_guarantee: str | None
    entry: str | None

    @property
    def reserved(self) -> ReservedRun:
        """Return by what the reservation is looked up."""
        return ReservedRun(self.register, self.run)

    def reserve(self, specification: Specification) -> str:
        """Charge the account, or raise before anything is drawn."""
        with Register.open(self.register) as register:
            return register.reserve(self._request(specification)).entry

    def committed(self) -> str | None:
        """Return the hash of the committed draw of this very run, if there is one."""
        with Register.open(self.register) as register:
            found = register.run(self.run)
        if self.entry is not None and (found is None or found.entry != self.entry):
            raise LostEntry(self.register, "this run")
        return None if found is None else found.draw_hash

    def commit(self, draw_hash: str) -> None:
        """Commit the entry with the draw's hash."""
        with Register.open(self.register) as register:
            register.commit(self._reservation(register), draw_hash)

    def _reservation(self, register: Register) -> Reservation:
        return register.reservation(self.collection, self.release)

    def _request(self, specification: Specification) -> ReleaseRequest:
        return ReleaseRequest(
            collection=self.collection,
            version=self.version,
            release_id=self.release,
            run_id=self.run,
            configuration_hash=self.approval,
            fingerprint=self.fingerprint,
            specification=specification,
            accept_no_guarantee=self.accept_no_guarantee,
            records=record_hashes(self.census),
        )
