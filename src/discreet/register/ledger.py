"""Replay the entries: the state of every account follows from them and from nothing else.

`admit` has all the rules. The register asks it before an entry is written; `verify`
asks it again for every entry there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from discreet.config import suggest
from discreet.register.account import Account, Approval, Charge, Refused, Reservation, person
from discreet.register.collection import Version
from discreet.register.entries import (
    Approved,
    Begun,
    Cancelled,
    CollectionOpened,
    Committed,
    DryRunCounted,
    Entry,
    Event,
    ExternalAdded,
    Published,
    RegisterCreated,
    ReleaseRequest,
    Reserved,
    TrialCounted,
    VersionAdded,
)

#: Rules that earlier versions did not have, or had in a weaker form.
TWO_COLLECTIONS, APPROVED_TWICE = "file in two collections", "approved twice"
ONCE_ALLOWED = (TWO_COLLECTIONS, APPROVED_TWICE, "not approved")


class Ledger:
    """All accounts of a register, and all runs that ever reserved something."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.accounts: dict[str, Account] = {}
        self.runs: dict[str, Reservation] = {}
        self.started = False
        for entry in entries:
            self.record(entry)

    def account(self, collection: str) -> Account:
        """Return the account of a collection, or refuse an unknown one."""
        if collection not in self.accounts:
            known = suggest(collection, self.accounts)
            raise Refused("unknown collection", f"'{collection}' has no account.{known}")
        return self.accounts[collection]

    def run(self, run_id: str) -> Reservation:
        """Return what a run reserved, or refuse an unknown one."""
        if run_id not in self.runs:
            raise Refused("unknown run", f"run '{run_id}' reserved nothing. Reserve first.")
        return self.runs[run_id]

    def attempt(self, run_id: str, part: str) -> int:
        """Return the number that the next beginning of a part of a run's draw has."""
        return self.run(run_id).begun.get(part, 0) + 1

    def entered(self, entry: str) -> Reservation | None:
        """Return the reservation whose entry has this hash, if there is one."""
        return next((known for known in self.runs.values() if known.entry == entry), None)

    def release(self, collection: str, release_id: str) -> Reservation | None:
        """Return the reservation of a release, unless there is none or it was cancelled."""
        for known in self.runs.values():
            named = (known.request.collection, known.request.release_id)
            if named == (collection, release_id) and known.state != "cancelled":
                return known
        return None

    def has_approved(self, event: Approved) -> bool:
        """Tell whether this person has approved this configuration before."""
        earlier = self.account(event.collection).approved(event.configuration_hash)
        return person(event.by) in {person(approval.by) for approval in earlier}

    # --- the rules ------------------------------------------------------------------------

    def admit(self, event: Event) -> None:
        """Refuse an event that breaks a rule in the state before it."""
        if isinstance(event, RegisterCreated) == self.started:
            raise Refused("wrong order", "a register starts with its creation, once.")
        match event:
            case CollectionOpened(opened=opened):
                if opened.id in self.accounts:
                    raise Refused("known collection", f"'{opened.id}' exists. Choose another id.")
            case VersionAdded():
                self._admit_version(event)
            case Approved():
                if self.has_approved(event):
                    raise Refused(APPROVED_TWICE, f"{event.by} approved this configuration.")
            case Reserved():
                _check_void(event.void, self._weigh_request(event.request))
            case Committed() | Cancelled():
                self._admit_while_reserved(event)
            case Begun():
                self._admit_while_reserved(event)
                if event.attempt != self.attempt(event.run_id, event.part):
                    raise Refused("wrong count", "the attempts of a part are counted one by one.")
            case Published():
                self._admit_publication(event)
            case ExternalAdded():
                _check_void(event.void, _voided(self._weigh_external(event)))
            case TrialCounted() | DryRunCounted():
                account = self.require_version(event.collection, event.version)
                if event.fingerprint is not None:
                    _require_declared(account.versions[event.version], event.fingerprint)

    def reserved(self, request: ReleaseRequest) -> Reserved:
        """Return the entry that a request gets, or refuse the request."""
        void = self._weigh_request(request)
        account = self.account(request.collection)
        weaker = () if void else account.given_up(request.release_id, request.specification)
        return Reserved(request=request, weakenings=weaker, void=void)

    def external(self, event: ExternalAdded) -> ExternalAdded:
        """Return the entry of a release made elsewhere, or refuse it.

        It has happened: with a reason it is recorded whatever it breaks, and if it cannot
        be added to the rest, the collection has no total from then on.
        """
        broken = self._weigh_external(event)
        void = _voided(broken)
        account = self.account(event.collection)
        weaker = () if void else account.given_up(event.title, event.specification)
        overrides = tuple(refusal.rule for refusal in broken)
        return event.model_copy(update={"overrides": overrides, "weakenings": weaker, "void": void})

    def require_version(self, collection: str, version: str) -> Account:
        """Return the account of a collection that has this version."""
        account = self.account(collection)
        if version not in account.versions:
            known = suggest(version, account.versions)
            raise Refused("unknown version", f"'{collection}' has no version '{version}'.{known}")
        return account

    def _weigh_request(self, request: ReleaseRequest) -> str | None:
        """Return why no total will exist, None if one will, or refuse the request."""
        account = self.require_version(request.collection, request.version)
        version = account.versions[request.version]
        _require_declared(version, request.fingerprint)
        self._require_one_account(
            request.collection,
            {request.fingerprint, *request.records, *version.records},
            "It was declared under both before this was refused: begin a new register, declare "
            "it there once, and enter all releases made so far with `register add`.",
        )
        if request.run_id in self.runs:
            raise Refused("run id in use", f"'{request.run_id}' asked before. Use a new run id.")
        if self.release(request.collection, request.release_id) is not None:
            raise Refused(
                "release id in use",
                f"'{request.release_id}' belongs to another run. Resume that run, or choose "
                f"another id.",
            )
        self._require_approvals(account, request)
        for refusal in account.against(request.release_id, request.specification):
            if refusal.rule != "no finite budget" or request.accept_no_guarantee is None:
                raise refusal
            return f"no finite budget exists (accepted: {request.accept_no_guarantee})"
        return None

    def _weigh_external(self, event: ExternalAdded) -> list[Refused]:
        """Return the rules that a release made elsewhere breaks, or refuse it for them."""
        account = self.account(event.collection)
        if event.title in {c.name for c in account.charges.values() if c.state == "external"}:
            raise Refused("entered twice", f"'{event.title}' is in the account. Change the title.")
        broken = account.against(event.title, event.specification)
        if broken and event.force_reason is None:
            raise broken[0]
        return broken

    def _require_approvals(self, account: Account, request: ReleaseRequest) -> None:
        have = len(account.approved(request.configuration_hash))
        need = account.collection.approvals_required
        if have < need:
            raise Refused(
                "not approved",
                f"configuration {request.configuration_hash[:12]} has {have} of the {need} "
                f"approvals that collection {account.collection.id} requires. Ask for more.",
            )

    def _require_one_account(self, collection: str, hashes: Set[str], remedy: str) -> None:
        """Refuse a folder, or a file of records in it, that another collection declares.

        Otherwise the limit could be spent in each of them.
        """
        for name, account in self.accounts.items():
            known = {one for v in account.versions.values() for one in (v.fingerprint, *v.records)}
            if name != collection and not known.isdisjoint(hashes):
                raise Refused(
                    TWO_COLLECTIONS,
                    f"this file, or a file of records in it, is declared under collection {name}, "
                    f"too, and all releases of a file share one account. {remedy}",
                )

    def _admit_version(self, event: VersionAdded) -> None:
        versions = self.account(event.collection).versions
        hashes = {event.version.fingerprint, *event.version.records}
        self._require_one_account(event.collection, hashes, "Make the release there.")
        if event.version.id in versions:
            raise Refused("known version", f"'{event.version.id}' exists. Choose another id.")
        if event.version.kind == "original" and any(
            version.kind == "original" for version in versions.values()
        ):
            raise Refused(
                "second original",
                "a collection has one. Add it as 'corrected' or 'extract' (`--kind`).",
            )

    def _admit_while_reserved(self, event: Committed | Begun | Cancelled) -> None:
        known = self.run(event.run_id)
        if known.request.collection != event.collection:
            raise Refused("wrong collection", f"run '{event.run_id}' belongs to another one.")
        if known.state == "committed" and isinstance(event, Cancelled):
            raise Refused(
                "already ended",
                f"run '{event.run_id}' was committed before: its draw may have been read, so "
                f"its charge stays. Only a reservation that was never committed can be cancelled.",
            )
        if known.state != "reserved":
            raise Refused(
                "already ended",
                f"run '{event.run_id}' was {known.state} before, and stays so. Start a new run.",
            )

    def _admit_publication(self, event: Published) -> None:
        known = self.run(event.run_id)
        if known.request.collection != event.collection:
            raise Refused("wrong collection", f"run '{event.run_id}' belongs to another one.")
        if known.state != "committed":
            raise Refused(
                "not committed",
                f"run '{event.run_id}' is {known.state}. Only a committed draw is published.",
            )
        if known.digest is not None:
            raise Refused(
                "second publication",
                f"run '{event.run_id}' published other files before. A draw is published once, "
                f"and again only byte for byte: with the same versions of all packages.",
            )

    # --- what follows ---------------------------------------------------------------------

    def record(self, entry: Entry) -> None:
        """Change the state as an entry says; its rules were checked when it was written."""
        event = entry.event
        self.started = True
        match event:
            case CollectionOpened(opened=opened):
                self.accounts[opened.id] = Account(opened)
            case VersionAdded(version=version):
                self.account(event.collection).versions[version.id] = version
            case Approved():
                approval = Approval(event.configuration_hash, event.by, entry.time)
                self.account(event.collection).approvals.append(approval)
            case Reserved(request=request):
                made = Reservation(entry.sequence, entry.time, entry.hash, request, event.void)
                self.runs[request.run_id] = made
                charge = Charge(request.release_id, request.specification, "reserved", event.void)
                self.account(request.collection).charges[entry.sequence] = charge
            case Committed():
                known = self.run(event.run_id)
                ended = replace(known, state="committed", draw_hash=event.draw_hash)
                self.runs[event.run_id] = ended
                charges = self.account(event.collection).charges
                charges[known.sequence] = replace(charges[known.sequence], state="committed")
            case Published():
                known = self.run(event.run_id)
                self.runs[event.run_id] = replace(known, digest=event.digest)
            case Begun():
                known = self.run(event.run_id)
                begun = {**known.begun, event.part: event.attempt}
                self.runs[event.run_id] = replace(known, begun=begun)
                self.account(event.collection).redraws += event.attempt > 1
            case Cancelled():
                known = self.run(event.run_id)
                self.runs[event.run_id] = replace(known, state="cancelled")
                del self.account(event.collection).charges[known.sequence]
            case ExternalAdded():
                charge = Charge(event.title, event.specification, "external", event.void)
                self.account(event.collection).charges[entry.sequence] = charge
            case TrialCounted():
                self.account(event.collection).trials += 1
            case DryRunCounted():
                self.account(event.collection).dry_runs += 1


def _require_declared(version: Version, fingerprint: str) -> None:
    """Refuse a census that is not the file declared as a version."""
    if fingerprint != version.fingerprint:
        raise Refused(
            "another file",
            f"the census is not the file that was declared as version {version.id}. "
            f"Declare a corrected file as a new version.",
        )


def _voided(broken: Iterable[Refused]) -> str | None:
    """Return the first broken rule that leaves a collection without a total."""
    return next((str(refusal) for refusal in broken if refusal.voids), None)


def _check_void(written: str | None, follows: str | None) -> None:
    """Refuse an entry that hides, or invents, that no total exists."""
    if (written is None) != (follows is None):
        raise Refused("wrong total", "whether a total exists is not as the rules say.")


def audit(entries: Iterable[Entry]) -> list[str]:
    """Return the entries that break a rule, with the rule, up to the first that was forged.

    Entries that an earlier version allowed are named and counted as they were written: they
    have happened, and what follows them is looked at, too.
    """
    ledger, broken = Ledger(), []
    for entry in entries:
        try:
            ledger.admit(entry.event)
        except Refused as refusal:
            broken.append(f"entry {entry.sequence} breaks a rule: {refusal}")
            if refusal.rule not in ONCE_ALLOWED:
                return broken
        ledger.record(entry)
    return broken
