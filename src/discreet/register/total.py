"""What releases add up to in the unit of their account.

Budgets are added by `spec.compose` and in no other way; amounts are exact fractions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from discreet.register.collection import AccountUnit, Collection
from discreet.spec import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    Budget,
    Composition,
    Exactly,
    Invariant,
    LogRational,
    Multiverse,
    NoCompositionRule,
    Specification,
    compose,
)

#: The output premetric that each unit of account belongs to.
PREMETRICS = {"epsilon": MULTIPLICATIVE, "rho2": NORMALISED_RENYI}


@dataclass(frozen=True)
class Total:
    """What all releases of a collection promise together.

    `spent` and `reserved` are exact sums over the releases that can be added up (for
    pure budgets, of rational bounds less than 1e-25 above the logarithm). While `void`
    is not empty they are no total: then there is none.
    """

    collection: Collection
    composition: Composition | None
    void: tuple[str, ...]
    spent: Fraction
    reserved: Fraction
    releases: int

    @property
    def unit(self) -> AccountUnit:
        """Return the unit of all amounts."""
        return self.collection.unit

    @property
    def remaining(self) -> Fraction:
        """Return what is left below the limit; negative after a release made elsewhere."""
        return self.collection.limit - self.spent - self.reserved

    @property
    def invariants(self) -> tuple[Invariant, ...]:
        """Return the statistics that are exact: those of the releases, or all declared."""
        if self.composition is None:
            return self.collection.invariants
        return self.composition.specification.multiverse.invariants

    def amount(self, value: Fraction, rounding: Literal["up", "down"] = "up") -> str:
        """Return an amount of this account as text, with its unit and at most six decimals.

        Never kinder than the truth: what is spent is rounded up, what is left down.
        """
        millionths = math.ceil(value * 10**6) if rounding == "up" else math.floor(value * 10**6)
        whole, part = divmod(abs(millionths), 10**6)
        digits = f"{whole}.{part:06d}".rstrip("0").rstrip(".")
        name = "rho^2" if self.unit == "rho2" else self.unit
        return f"{name} = {'-' if millionths < 0 else ''}{digits}"

    def describe(self) -> str:
        """Return the state of the account in plain words; no amount stands alone."""
        count = f"{self.releases} release{'' if self.releases == 1 else 's'}"
        head = f"Account of {self.collection.id}, {count}"
        if self.void:
            reasons = "".join(f"\n  - {reason}" for reason in self.void)
            return f"{head}: void. No total exists, whatever else was spent:{reasons}"
        exact = "".join(f"\n  - {invariant.describe()}" for invariant in self.invariants)
        unit, weaker = "", ""
        if self.composition is not None:
            unit = f" per {self.composition.specification.input_premetric.unit} record"
            weaker = "".join(f"\n  - {text}" for text in self.composition.weakenings)
        return (
            f"{head}\n"
            f"Spent:     {self.amount(self.spent)}{unit}\n"
            f"Reserved:  {self.amount(self.reserved)}{unit}\n"
            f"Remaining: {self.amount(self.remaining, 'down')}{unit}\n"
            f"Limit:     {self.amount(self.collection.limit, 'down')}{unit}\n"
            f"How:       {PREMETRICS[self.unit].name} ({PREMETRICS[self.unit].definition})\n"
            f"Where:     among data sets that agree exactly on{exact or ' nothing'}"
            + (f"\nGiven up for having one total:{weaker}" if weaker else "")
        )


def add_up(unit: AccountUnit, releases: Sequence[tuple[str, Specification]]) -> Composition | None:
    """Return the common promise of named releases in `unit`; None if there are none.

    Raise `NoCompositionRule` where no theorem gives one.
    """
    if not releases:
        return None
    parts = [specification for _, specification in releases]
    if unit == "rho2" and all(part.output_premetric == MULTIPLICATIVE for part in parts):
        parts.append(_nothing(parts))
    done = compose(parts)
    if done.specification.budget.unit != unit:
        raise NoCompositionRule(
            "the account is kept in epsilon, and no rule leads from zero-concentrated to pure."
        )
    names = {str(number): name for number, (name, _) in enumerate(releases, start=1)}
    return Composition(done.specification, tuple(_named(w, names) for w in done.weakenings))


def bound(composition: Composition | None) -> Fraction:
    """Return the amount of a common promise, or a rational just above it."""
    if composition is None:
        return Fraction(0)
    amount = composition.specification.budget.amount
    if not isinstance(amount, LogRational | Exactly):
        raise NoCompositionRule("a budget without a number cannot be charged.")
    return amount.upper_bound()


def _nothing(parts: Sequence[Specification]) -> Specification:
    """Return the promise of releasing nothing, in rho^2.

    Beside it, `compose` converts every pure release by itself. That is sound, and
    smaller than converting their sum: sum of epsilon^2 / 2, not (sum of epsilon)^2 / 2.
    """
    invariants: list[Invariant] = []
    for part in parts:
        invariants += [one for one in part.multiverse.invariants if one not in invariants]
    return Specification(
        domain=parts[0].domain,
        multiverse=Multiverse(invariants=tuple(invariants)),
        input_premetric=parts[0].input_premetric,
        output_premetric=NORMALISED_RENYI,
        budget=Budget(
            unit="rho2",
            amount=Exactly(of=Fraction(0)),
            source="Bun and Steinke 2016, Proposition 1.4",
            status="published",
        ),
    )


def _named(weakening: str, names: Mapping[str, str]) -> str:
    """Return a weakening with the release's own name; its number changes with the account."""
    return re.sub(
        r"^release (\d+)\b",
        lambda found: f"release {names.get(found[1], found[1])}",
        weakening,
    )
