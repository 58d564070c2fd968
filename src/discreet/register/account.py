"""The account of one collection: what was charged to it, and what it refuses."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from discreet.errors import BadInput
from discreet.register.collection import Collection, Version
from discreet.register.entries import ReleaseRequest
from discreet.register.total import PREMETRICS, Total, add_up, bound
from discreet.spec import (
    Composition,
    FunctionOfUniverse,
    Invariant,
    NoCompositionRule,
    NoFiniteBudget,
    Specification,
)

#: Bounds with another status are shown, never charged.
CHARGEABLE = ("published", "proved here")


class Refused(BadInput):
    """The register does not allow something; `rule` is the name of the rule against it.

    With `voids`, the collection would have no total if it happened all the same.
    """

    def __init__(self, rule: str, text: str, voids: bool = False) -> None:
        self.rule, self.voids = rule, voids
        super().__init__(f"{rule}: {text}")


@dataclass(frozen=True)
class Approval:
    """Who agreed to a configuration, and when."""

    configuration_hash: str
    by: str
    time: datetime


#: Characters that leave no mark although Python counts them as printable: those that Unicode
#: says may be ignored in display (joiners, fillers, variation selectors), and blanks that it
#: counts as letters or symbols (of Braille, music, hieroglyphs). Characters that are not
#: printable are refused in a name. No list is complete: what leaves a mark depends on the font.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u2d7f\u3164\ufe00-\ufe0f\uffa0"
    "\U0001107f\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)


def person(name: str) -> str:
    """Return a name in a form that does not depend on how it was typed.

    Spaces, capitals, compatibility forms and invisible characters do not make another
    person. Letters of other scripts that look similar do: a name is no proof of identity.
    """
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", name)).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


@dataclass(frozen=True)
class Reservation:
    """A release that the account has room for; only while `reserved` may it be drawn.

    `entry` is the hash of its entry, by which a release names it; `digest` is that of the
    release that was published; `begun` counts how often each part of the draw was begun.
    """

    sequence: int
    time: datetime
    entry: str
    request: ReleaseRequest
    void: str | None
    state: Literal["reserved", "committed", "cancelled"] = "reserved"
    draw_hash: str | None = None
    digest: str | None = None
    begun: Mapping[str, int] = field(default_factory=dict)

    @property
    def redraws(self) -> int:
        """Return how often a part was begun again: what was drawn before was discarded."""
        return sum(self.begun.values()) - len(self.begun)


@dataclass(frozen=True)
class Charge:
    """A release in the account; `void` says why no total exists with it."""

    name: str
    specification: Specification
    state: Literal["reserved", "committed", "external"]
    void: str | None


@dataclass
class Account:
    """Everything the entries say about one collection."""

    collection: Collection
    versions: dict[str, Version] = field(default_factory=dict)
    approvals: list[Approval] = field(default_factory=list)
    #: By the number of the entry that made the charge.
    charges: dict[int, Charge] = field(default_factory=dict)
    trials: int = 0
    dry_runs: int = 0
    redraws: int = 0

    def approved(self, configuration_hash: str) -> list[Approval]:
        """Return the approvals of one configuration, the first of each person."""
        first: dict[str, Approval] = {}
        for approval in self.approvals:
            if approval.configuration_hash == configuration_hash:
                first.setdefault(person(approval.by), approval)
        return list(first.values())

    def total(self) -> Total:
        """Return what the charged releases promise together, reserved ones included."""
        together = self._together()
        settled = [c for c in self.charges.values() if c.void is None and c.state != "reserved"]
        spent = bound(add_up(self.collection.unit, [(c.name, c.specification) for c in settled]))
        void = tuple(f"{c.name}: {c.void}" for c in self.charges.values() if c.void)
        return Total(
            collection=self.collection,
            composition=None if void else together,
            void=void,
            spent=spent,
            reserved=bound(together) - spent,
            releases=len(self.charges),
        )

    def against(self, name: str, specification: Specification) -> list[Refused]:
        """Return everything that speaks against charging a release."""
        against = [*self._undeclared(specification), *_uncountable(specification)]
        if any(refusal.voids for refusal in against):
            return against
        try:
            after = self._together((name, specification))
        except NoCompositionRule as reason:
            return [*against, Refused("no composition rule", str(reason), voids=True)]
        if bound(after) > self.collection.limit:
            before = self.total()
            text = (
                f"the release needs more than the account of {self.collection.id} has left "
                f"({before.amount(before.remaining, 'down')} of "
                f"{before.amount(self.collection.limit, 'down')}, "
                f"{PREMETRICS[before.unit].name}, exact: "
                f"{'; '.join(one.name for one in before.invariants) or 'nothing'}). "
                f"Ask for less, or do not release."
            )
            against.append(Refused("over budget", text))
        return against

    def given_up(self, name: str, specification: Specification) -> tuple[str, ...]:
        """Return what the common promise gives up when a release joins it."""
        before, after = self._together(), self._together((name, specification))
        old = set() if before is None else set(before.weakenings)
        return () if after is None else tuple(w for w in after.weakenings if w not in old)

    def _together(self, *further: tuple[str, Specification]) -> Composition | None:
        counted = [(c.name, c.specification) for c in self.charges.values() if c.void is None]
        return add_up(self.collection.unit, [*counted, *further])

    def _undeclared(self, specification: Specification) -> list[Refused]:
        declared = self.collection.invariants
        return [
            Refused(
                "undeclared invariant",
                f"'{one.name}' ({one.describe()}) would be published exactly, but collection "
                f"{self.collection.id} does not declare it. Choose a mechanism that keeps only "
                f"declared statistics exact.",
            )
            for one in specification.multiverse.invariants
            if not any(_same(one, other) for other in declared)
        ]


def _same(one: Invariant, other: Invariant) -> bool:
    """Tell whether two invariants are one statistic, whatever they are called.

    Statistics that merely follow from declared ones are not accepted: what follows depends
    on the domain, which a specification made elsewhere states itself.
    """
    return one.model_dump(exclude={"name"}) == other.model_dump(exclude={"name"})


def _uncountable(specification: Specification) -> list[Refused]:
    """Return why a budget is no number that could be charged."""
    budget = specification.budget
    if isinstance(budget.amount, NoFiniteBudget):
        return [
            Refused(
                "no finite budget",
                f"no finite budget exists for this method ({budget.amount.reason}). It needs "
                f"accept_no_guarantee with a reason (made elsewhere: force_reason), and then "
                f"the collection has no total.",
                voids=True,
            )
        ]
    if isinstance(budget.amount, FunctionOfUniverse):
        text = "the budget is a function of the universe. Give the invariant counts first."
        return [Refused("budget without a number", text, voids=True)]
    if budget.status not in CHARGEABLE:
        text = f"the bound is only {budget.status}. Charge a published or proved one."
        return [Refused("unproved bound", text, voids=True)]
    if specification.output_premetric not in PREMETRICS.values():
        text = (
            f"accounts are kept in epsilon or rho^2, and no rule leads there from the output "
            f"premetric '{specification.output_premetric.name}'."
        )
        return [Refused("no composition rule", text, voids=True)]
    return []
