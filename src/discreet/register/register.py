"""The register of releases: open it, reserve, commit, add, approve, verify."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from discreet.config import Strict, parse
from discreet.files import check_path
from discreet.register.account import Account, Refused, Reservation
from discreet.register.book import Book
from discreet.register.collection import Collection
from discreet.register.entries import (
    Approved,
    Begun,
    Cancelled,
    Charged,
    CollectionOpened,
    Committed,
    DryRunCounted,
    Entry,
    Event,
    ExternalAdded,
    Published,
    ReleaseRequest,
    TrialCounted,
    VersionAdded,
    settled,
)
from discreet.register.ledger import Ledger
from discreet.register.total import Total
from discreet.spec import Specification

Made = TypeVar("Made", bound=Strict)


def utc_now() -> datetime:
    """Return the present time."""
    return datetime.now(UTC)


class Register:
    """An open register. Each process opens its own; as many as like may do so at once."""

    def __init__(self, book: Book) -> None:
        self._book = book

    @classmethod
    def create(
        cls,
        path: Path | str,
        clock: Callable[[], datetime] = utc_now,
        busy_seconds: float = 60.0,
        collection: Collection | None = None,
    ) -> Register:
        """Make a new register, with the account of a first collection if given, and open it.

        Whatever happens, there is either no register or all of it.
        """
        first = [] if collection is None else [CollectionOpened(opened=settled(collection))]
        return cls(Book.create(_resolved(path), clock, busy_seconds, first))

    @classmethod
    def open(
        cls,
        path: Path | str,
        clock: Callable[[], datetime] = utc_now,
        busy_seconds: float = 60.0,
    ) -> Register:
        """Open a register; wait up to `busy_seconds` whenever others are writing."""
        return cls(Book(_resolved(path), clock, busy_seconds))

    def close(self) -> None:
        """Close the file."""
        self._book.close()

    def __enter__(self) -> Self:
        """Return the register itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    # --- look -----------------------------------------------------------------------------

    def collections(self) -> list[Collection]:
        """Return all collections in the order they were opened."""
        return [account.collection for account in self._book.ledger().accounts.values()]

    def entries(self, collection: str | None = None) -> list[Entry]:
        """Return the entries about one collection, or all there are."""
        entries = self._book.entries()
        if collection is None:
            return entries
        self._book.ledger(entries).account(collection)
        return [entry for entry in entries if entry.collection == collection]

    def account(self, collection: str, upto: int | None = None) -> Account:
        """Return the account of a collection, as it was after entry number `upto` if given."""
        return self._book.ledger(self._book.entries()[:upto]).account(collection)

    def total(self, collection: str, upto: int | None = None) -> Total:
        """Return what all releases of a collection promise together."""
        return self.account(collection, upto).total()

    def reservation(self, collection: str, release_id: str) -> Reservation:
        """Return what was reserved, or committed, for a release."""
        ledger = self._book.ledger()
        ledger.account(collection)
        found = ledger.release(collection, release_id)
        if found is None:
            raise Refused("unknown release", f"'{release_id}' is not in the account.")
        return found

    def run(self, run_id: str) -> Reservation | None:
        """Return what a run reserved, or None if it reserved nothing."""
        return self._book.whole().runs.get(run_id)

    # --- write ----------------------------------------------------------------------------

    def open_collection(self, collection: Collection) -> Entry:
        """Open the account of a new collection."""
        return self._add(CollectionOpened(opened=settled(collection)))

    def add_version(
        self,
        collection: str,
        version: str,
        kind: Literal["original", "corrected", "extract"],
        fingerprint: str,
        note: str | None = None,
        records: Sequence[str] = (),
    ) -> Entry:
        """Declare a file of a collection, told by its hash, that releases will be made from.

        `records` are the hashes of its files that hold records (`discreet.run.record_hashes`):
        with them the same records are recognised although something else in the folder changed.
        """
        told = {
            "id": version,
            "kind": kind,
            "fingerprint": fingerprint,
            "note": note,
            "records": records,
        }
        return self._add(_event(VersionAdded, collection=collection, version=told))

    def approve(self, collection: str, configuration_hash: str, by: str) -> Entry | None:
        """Record that a person agrees to a configuration; None if it was recorded before."""
        event = _event(
            Approved, collection=collection, configuration_hash=configuration_hash, by=by
        )
        return self._book.write(lambda ledger: None if ledger.has_approved(event) else event)[1]

    def count_trial(
        self,
        collection: str,
        version: str,
        configuration_hash: str,
        *,
        seed_known: bool,
        fingerprint: str,
    ) -> Entry:
        """Count a trial on confidential data; `fingerprint` is that of the census it reads."""
        return self._add(
            _event(
                TrialCounted,
                collection=collection,
                version=version,
                configuration_hash=configuration_hash,
                seed_known=seed_known,
                fingerprint=fingerprint,
            )
        )

    def count_dry_run(
        self, collection: str, version: str, configuration_hash: str, *, fingerprint: str
    ) -> Entry:
        """Count a run that only printed its plan; `fingerprint` is that of the census it read."""
        return self._add(
            _event(
                DryRunCounted,
                collection=collection,
                version=version,
                configuration_hash=configuration_hash,
                fingerprint=fingerprint,
            )
        )

    def add_external(
        self,
        collection: str,
        title: str,
        specification: Specification,
        by: str,
        note: str,
        force_reason: str | None = None,
    ) -> Entry:
        """Charge a release that was made elsewhere.

        With `force_reason` it is recorded even if it breaks the limit or another rule,
        because it has happened; the rules it breaks are recorded with it.
        """
        event = _event(
            ExternalAdded,
            collection=collection,
            title=title,
            specification=settled(specification),
            by=by,
            note=note,
            force_reason=force_reason,
        )
        return _made(self._book.write(lambda ledger: ledger.external(event)))

    def reserve(self, request: ReleaseRequest) -> Reservation:
        """Charge a release before anything is drawn, or refuse it.

        The same request gets the same reservation back, so that a run can go on after a
        crash; if it is `committed` by then, nothing may be drawn again.
        """
        request = settled(request)

        def decide(ledger: Ledger) -> Event | None:
            known = ledger.runs.get(request.run_id)
            if known is None:
                return ledger.reserved(request)
            if known.request != request:
                raise Refused(
                    "run id in use",
                    f"run '{request.run_id}' reserved something else before. Resume it with the "
                    f"configuration, input and specification it had, or use a new run id.",
                )
            if known.state == "cancelled":
                raise Refused(
                    "cancelled run", f"run '{request.run_id}' was cancelled. Use a new run id."
                )
            return None

        return self._book.write(decide)[0].runs[request.run_id]

    def commit(self, reservation: Reservation, draw_hash: str) -> Reservation:
        """Record that the draw of a reservation is durable; twice with one hash is once."""
        run_id = reservation.request.run_id
        event = _event(
            Committed,
            collection=reservation.request.collection,
            run_id=run_id,
            draw_hash=draw_hash,
        )

        def decide(ledger: Ledger) -> Event | None:
            known = ledger.run(run_id)
            if known.request != reservation.request:
                raise Refused("unknown run", f"run '{run_id}' reserved something else here.")
            if known.draw_hash == event.draw_hash:
                return None
            if known.draw_hash is not None:
                raise Refused(
                    "second draw",
                    f"run '{run_id}' is committed with another draw. Delete this one unread.",
                )
            ledger.admit(event)
            return event

        return self._book.write(decide)[0].runs[run_id]

    def publish(self, reservation: Reservation, digest: str) -> Reservation:
        """Record the digest of the release that is published; twice with one digest is once.

        This comes before the release appears: what is found without it was not published here.
        """
        run_id, collection = reservation.request.run_id, reservation.request.collection
        event = _event(Published, collection=collection, run_id=run_id, digest=digest)

        def decide(ledger: Ledger) -> Event | None:
            if ledger.run(run_id).digest == event.digest:
                return None
            ledger.admit(event)
            return event

        return self._book.write(decide)[0].runs[run_id]

    def begin(self, reservation: Reservation, part: str) -> Reservation:
        """Record that a draw, or a part of it, is about to be drawn.

        Only before the commit: a committed draw is never made again. Every call beyond the
        first for a part is a redraw, which cannot be hidden by what a work folder says.
        """
        run_id, collection = reservation.request.run_id, reservation.request.collection

        def decide(ledger: Ledger) -> Event:
            attempt = ledger.attempt(run_id, part)
            event = _event(Begun, collection=collection, run_id=run_id, part=part, attempt=attempt)
            ledger.admit(event)
            return event

        return self._book.write(decide)[0].runs[run_id]

    def cancel(self, reservation: Reservation, reason: str) -> Reservation:
        """Give a reservation back. Nothing was drawn for it, or it was deleted unread."""
        run_id = reservation.request.run_id
        event = _event(
            Cancelled, collection=reservation.request.collection, run_id=run_id, reason=reason
        )

        def decide(ledger: Ledger) -> Event | None:
            if ledger.run(run_id).state == "cancelled":
                return None
            ledger.admit(event)
            return event

        return self._book.write(decide)[0].runs[run_id]

    # --- check ----------------------------------------------------------------------------

    def verify(self) -> list[str]:
        """Return what is wrong with the register, first bad entry first; nothing if all is well."""
        return self._book.problems()

    def check(self, charged: Charged, draw_hash: str, specification: Specification) -> Reservation:
        """Return the entry that a release names, or refuse it: then it was not charged here.

        The entry must be committed, and be about this collection and this release, with this
        draw and this specification. That the files are those that were published is not asked
        here, but by `check_published`.
        """
        found = self._book.whole().entered(charged.entry)
        if found is None:
            raise Refused(
                "not charged",
                "the register has no such entry. Either the release was charged elsewhere, or "
                "this register was restored from an older copy: restore the newest one.",
            )
        request = found.request
        wrong = [
            text
            for text, right in (
                (f"is {found.state}, not committed", found.state == "committed"),
                ("belongs to another collection", request.collection == charged.collection),
                ("has another id of the release", request.release_id == charged.release),
                ("was committed with another draw", found.draw_hash in (draw_hash, None)),
                ("charges another specification", request.specification == specification),
            )
            if not right
        ]
        if wrong:
            raise Refused(
                "not charged",
                f"entry {found.sequence} of the register {' and '.join(wrong)}. The release is "
                f"not the one that was charged: do not use it.",
            )
        return found

    def check_published(
        self, charged: Charged, draw_hash: str, specification: Specification, digest: str
    ) -> Reservation:
        """Return the entry that a published release names, or refuse it.

        It was charged (see `check`), and `digest`, which covers all its files, is the one that
        was entered when it was published. `discreet.run.check_release` asks this of a folder.
        """
        found = self.check(charged, draw_hash, specification)
        if found.digest is None:
            raise Refused(
                "not published",
                f"entry {found.sequence} of the register is committed, but no release of it was "
                f"published. Do not use these files: remove them, and publish the draw.",
            )
        if found.digest != digest:
            raise Refused(
                "not published",
                f"entry {found.sequence} of the register was published with other files or "
                f"another header. The release was altered: do not use it.",
            )
        return found

    # --- inside ---------------------------------------------------------------------------

    def _add(self, event: Event) -> Entry:
        def admitted(ledger: Ledger) -> Event:
            ledger.admit(event)
            return event

        return _made(self._book.write(admitted))


def _resolved(path: Path | str) -> Path:
    check_path(path)
    return Path(path).resolve()


def _event(model: type[Made], **fields: Any) -> Made:
    """Return an event made of what a caller gave, or say what is wrong with it."""
    return parse(model, fields, "register")


def _made(written: tuple[Ledger, Entry | None]) -> Entry:
    entry = written[1]
    assert entry is not None  # whoever calls this always writes
    return entry
