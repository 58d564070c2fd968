"""Where a draw is reserved and committed: the register, or a file in the work folder.

A draw is spent once. The order is always: reserve, write the draw durably, commit the
draw's hash. Only committed draws may be read; an uncommitted one is deleted unread and
its reservation used again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from discreet.config import Strict, parse
from discreet.files import FORMAT_VERSION, check_format, read_yaml, write_yaml
from discreet.register import Refused, Register, ReleaseRequest
from discreet.spec import Specification


class Ledger(Protocol):
    """Remembers which draw was committed."""

    def reserve(self, specification: Specification) -> str | None:
        """Reserve the draw; return the hash of the draw if it was committed before."""

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

    def reserve(self, specification: Specification) -> str | None:
        """Reserve nothing: what is simulated or internal is not charged."""
        return self.committed()

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
    """Release runs: the reservation is charged to the account of the collection."""

    register: Path
    collection: str
    version: str
    release: str
    run: str
    approval: str
    fingerprint: str
    accept_no_guarantee: str | None

    def reserve(self, specification: Specification) -> str | None:
        """Charge the account, or raise before anything is drawn."""
        with Register.open(self.register) as register:
            return register.reserve(self._request(specification)).draw_hash

    def committed(self) -> str | None:
        """Return the hash of the committed draw of this very run, if there is one."""
        try:
            with Register.open(self.register) as register:
                reservation = register.reservation(self.collection, self.release)
        except Refused:
            return None  # nothing was reserved yet
        return reservation.draw_hash if reservation.request.run_id == self.run else None

    def commit(self, draw_hash: str) -> None:
        """Commit the entry with the draw's hash."""
        with Register.open(self.register) as register:
            reservation = register.reservation(self.collection, self.release)
            register.commit(reservation, draw_hash)

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
        )
