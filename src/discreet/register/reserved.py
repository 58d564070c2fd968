"""What a run has to show before it draws and publishes: its reservation in a register."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from discreet.register.account import Refused, Reservation
from discreet.register.entries import Charged
from discreet.register.register import Register
from discreet.spec import Specification


@dataclass(frozen=True)
class ReservedRun:
    """A run of a register. What it reserved is looked up whenever it is needed: the file decides.

    This is no secret and no proof by itself. What a release says is proved by the entry it
    names, which `Register.check` finds or does not find.
    """

    register: Path
    run_id: str

    def reserved(self, specification: Specification) -> Charged:
        """Return the entry under which this may be drawn, or refuse to draw."""
        with Register.open(self.register) as register:
            found = register.run(self.run_id)
        if found is None:
            raise Refused("unknown run", f"run '{self.run_id}' reserved nothing. Reserve first.")
        if found.state != "reserved":
            raise Refused(
                "already ended", f"run '{self.run_id}' was {found.state} before. Start a new run."
            )
        request = found.request
        if request.specification != specification:
            raise Refused(
                "not charged",
                f"entry {found.sequence} of the register charges another specification than "
                f"would be drawn. Start a new run.",
            )
        return Charged(collection=request.collection, release=request.release_id, entry=found.entry)

    def begin(self, part: str) -> None:
        """Enter that a part of the draw is about to be drawn; beyond the first time, a redraw."""
        with Register.open(self.register) as register:
            found = register.run(self.run_id)
            if found is None:
                raise Refused("unknown run", f"run '{self.run_id}' reserved nothing.")
            register.begin(found, part)

    def check_census(self, fingerprint: str) -> None:
        """Refuse to draw from another census than the one that was reserved for."""
        with Register.open(self.register) as register:
            found = register.run(self.run_id)
        if found is None or found.request.fingerprint != fingerprint:
            raise Refused(
                "other data",
                f"run '{self.run_id}' reserved for another census than would be drawn from. "
                f"Open the census that was reserved for, or start a new run.",
            )

    def check(
        self, charged: Charged | None, draw_hash: str, specification: Specification
    ) -> Reservation:
        """Return the committed entry of a draw, or refuse to publish it."""
        if charged is None:
            raise Refused("not charged", "the draw names no entry of a register.")
        with Register.open(self.register) as register:
            return register.check(charged, draw_hash, specification)

    def publish(self, charged: Charged | None, digest: str) -> None:
        """Enter the digest of a release that is complete, or refuse to let it appear."""
        with Register.open(self.register) as register:
            found = register.run(self.run_id)
            if found is None or charged is None or found.entry != charged.entry:
                raise Refused("not charged", "the draw names the entry of another run.")
            register.publish(found, digest)
