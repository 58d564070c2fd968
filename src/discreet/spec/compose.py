"""Combine the promises of several releases of the same data.

Only rules with a theorem behind them are here; everything else is refused with the
reason, and never approximated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import BadInput
from discreet.spec.blocks import Invariant, Multiverse
from discreet.spec.budget import Budget, Exactly, LogRational, NoFiniteBudget, Status, Unit
from discreet.spec.premetrics import MULTIPLICATIVE, NORMALISED_RENYI
from discreet.spec.specification import Specification


class NoCompositionRule(BadInput):
    """Two specifications cannot be combined, and why."""


@dataclass(frozen=True)
class Composition:
    """One promise that holds for all releases together, and what was given up for it."""

    specification: Specification
    weakenings: tuple[str, ...]


def compose(parts: Sequence[Specification]) -> Composition:
    """Return what is promised by independent releases together.

    Requires independent randomness, one domain and one input premetric. The multiverse
    is the common refinement (all invariants of all parts). Pure budgets add; rho^2 adds
    (Bailie, Gong and Meng; Bun and Steinke 2016). A pure part beside a zero-concentrated
    one is first converted with rho^2 = epsilon^2 / 2 (Bun and Steinke 2016, Prop. 1.4).
    """
    if not parts:
        raise NoCompositionRule("nothing to compose.")
    first = parts[0]
    for part in parts[1:]:
        _check_alike(first, part)
    weakenings: list[str] = []
    invariants = _union(parts, weakenings)
    if all(part.output_premetric == MULTIPLICATIVE for part in parts):
        output, budget = MULTIPLICATIVE, _add_pure(parts, weakenings)
    else:
        output, budget = NORMALISED_RENYI, _add_concentrated(parts, weakenings)
    specification = Specification(
        domain=first.domain,
        multiverse=Multiverse(invariants=invariants),
        input_premetric=first.input_premetric,
        output_premetric=output,
        budget=budget,
    )
    return Composition(specification, tuple(weakenings))


def _check_alike(one: Specification, other: Specification) -> None:
    if one.domain != other.domain:
        raise NoCompositionRule(
            "the domains differ: state the stability between them before composing."
        )
    if one.input_premetric != other.input_premetric:
        raise NoCompositionRule(
            f"the input premetrics differ ({one.input_premetric.name} of "
            f"{one.input_premetric.unit}s, {other.input_premetric.name} of "
            f"{other.input_premetric.unit}s): no rule without an explicit factor between them."
        )


def _union(parts: Sequence[Specification], weakenings: list[str]) -> tuple[Invariant, ...]:
    found: dict[str, Invariant] = {}
    for part in parts:
        for invariant in part.multiverse.invariants:
            found.setdefault(invariant.model_dump_json(), invariant)
    for number, part in enumerate(parts, start=1):
        own = {invariant.model_dump_json() for invariant in part.multiverse.invariants}
        extra = [invariant.name for key, invariant in found.items() if key not in own]
        if extra:
            weakenings.append(
                f"release {number} is told with further invariants: {'; '.join(extra)}"
            )
    return tuple(found.values())


def _add_pure(parts: Sequence[Specification], weakenings: list[str]) -> Budget:
    """Add epsilons: logarithms and rationals exactly, a mixture rounded up."""
    amounts = [_finite(part) for part in parts]
    logarithms = [amount for amount in amounts if isinstance(amount, LogRational)]
    if len(logarithms) == len(amounts):
        ratio = math.prod((amount.of for amount in logarithms), start=Fraction(1))
        return _total(parts, "epsilon", LogRational(of=ratio))
    if logarithms:
        weakenings.append("the sum of a logarithm and a rational is rounded up, by less than 1e-20")
    bound = sum((amount.upper_bound() for amount in amounts), Fraction(0))
    return _total(parts, "epsilon", Exactly(of=bound))


def _add_concentrated(parts: Sequence[Specification], weakenings: list[str]) -> Budget:
    total = Fraction(0)
    for number, part in enumerate(parts, start=1):
        bound = _finite(part).upper_bound()
        if part.output_premetric == MULTIPLICATIVE:
            weakenings.append(
                f"release {number} is converted from pure to zero-concentrated, "
                f"rho^2 = epsilon^2 / 2, which cannot be undone"
            )
            bound = bound * bound / 2
        elif part.output_premetric != NORMALISED_RENYI:
            raise NoCompositionRule(
                f"no composition rule for the output premetric {part.output_premetric.name}."
            )
        total += bound
    return _total(parts, "rho2", Exactly(of=total))


def _finite(part: Specification) -> LogRational | Exactly:
    amount = part.budget.amount
    if isinstance(amount, NoFiniteBudget):
        raise NoCompositionRule(f"a part has no finite budget ({amount.reason}): no total exists.")
    if not isinstance(amount, LogRational | Exactly):
        raise NoCompositionRule("a budget is a function of the universe: give its facts first.")
    return amount


def _total(parts: Sequence[Specification], unit: Unit, amount: LogRational | Exactly) -> Budget:
    """Return the sum with the sources of the parts and the weakest proof status."""
    if len(parts) == 1:
        return parts[0].budget
    order: list[Status] = ["published", "proved here", "checked numerically"]
    return Budget(
        unit=unit,
        amount=amount,
        source="; ".join(dict.fromkeys(part.budget.source for part in parts)),
        status=max((part.budget.status for part in parts), key=order.index),
        conditions=tuple(dict.fromkeys(c for part in parts for c in part.budget.conditions)),
    )
