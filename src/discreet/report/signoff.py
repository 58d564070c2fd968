"""One page per release for those who sign for it: what, the promise, the account."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from discreet.files import write_text
from discreet.register import Register, Reservation, Total
from discreet.report.template import fill
from discreet.report.words import promise
from discreet.spec import NoFiniteBudget

#: Lines for signatures when nobody had to approve.
SIGNATURES = 2


@dataclass(frozen=True)
class Row:
    """One line of the account."""

    label: str
    amount: str


def sign_off(register: Register, collection: str, release_id: str, out: Path) -> Path:
    """Write the sign-off page of a release and return its path.

    The page is a function of the register alone and shows the account as it was when the
    release was reserved, so that it can be made again later. It names people: internal.
    """
    write_text(out, render(register, collection, release_id), 0o600)
    return out


def render(register: Register, collection: str, release_id: str) -> str:
    """Return the page as HTML."""
    made = register.reservation(collection, release_id)
    account = register.account(collection, upto=made.sequence)
    before = register.total(collection, upto=made.sequence - 1)
    after = account.total()
    specification = made.request.specification
    approvals = account.approved(made.request.configuration_hash)
    version = account.versions[made.request.version]
    exact = specification.multiverse.invariants
    others = [invariant for invariant in after.invariants if invariant not in exact]
    named = {invariant.name for invariant in (*exact, *others)}
    weakenings = () if after.composition is None else after.composition.weakenings
    return fill(
        "signoff.html",
        {},
        collection=account.collection,
        version=version,
        made=made,
        request=made.request,
        specification=specification,
        promise=_promise(made),
        rows=_rows(before, after),
        after=after,
        others=others,
        weakenings=[_short(text, named) for text in weakenings],
        earlier=before.releases,
        trials=account.trials,
        dry_runs=account.dry_runs,
        approvals=approvals,
        lines=SIGNATURES,
        entry=register.entries()[made.sequence - 1],
    )


def _promise(made: Reservation) -> str:
    """Return what is promised in one or two sentences."""
    specification = made.request.specification
    amount = specification.budget.amount
    if isinstance(amount, NoFiniteBudget):
        return f"Nothing is promised: no finite budget exists for this method ({amount.reason})."
    return promise(specification)


def _short(weakening: str, named: Set[str]) -> str:
    """Return a weakening; statistics that the page lists are counted if that is shorter."""
    start, colon, names = weakening.partition(": ")
    listed = names.split("; ")
    if not named >= set(listed):
        return weakening
    return min(weakening, f"{start}{colon}{len(listed)} of those listed above", key=len)


def _rows(before: Total, after: Total) -> list[Row]:
    """Return the account before and after; none if no total exists."""
    if after.void:
        return []
    charge = after.spent + after.reserved - before.spent - before.reserved
    return [
        Row("Charged before", before.amount(before.spent + before.reserved)),
        Row("This release", after.amount(charge)),
        Row("Charged after", after.amount(after.spent + after.reserved)),
        Row("Limit", after.amount(after.collection.limit, "down")),
        Row("Left after", after.amount(after.remaining, "down")),
    ]
