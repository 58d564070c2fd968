"""Combine the promises of several releases of the same data.

Only rules with a theorem behind them are here; everything else is refused with the
reason, and never approximated. Promises of different flavors are brought to one first,
and each thing given up on the way is listed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from discreet.errors import BadInput
from discreet.spec.budget import Budget, Exactly, LogRational, NoFiniteBudget, weakest
from discreet.spec.convert import convert
from discreet.spec.inputs import InputPremetric
from discreet.spec.multiverse import Multiverse
from discreet.spec.numbers import root_up
from discreet.spec.operations import INVARIANTS_ARE_FREE, NotAllowed, change_unit
from discreet.spec.outputs import NORMALISED_RENYI, OutputPremetric, approximate
from discreet.spec.specification import Specification


class NoCompositionRule(BadInput):
    """Promises cannot be combined, and why."""


@dataclass(frozen=True)
class Composition:
    """One promise that holds for all releases together, and what was given up for it."""

    specification: Specification
    weakenings: tuple[str, ...]


def compose(
    parts: Sequence[Specification],
    *,
    randomness: Literal["fresh", "shared"] = "fresh",
    adaptive: bool = False,
    touched: int | None = None,
    delta: Fraction | None = None,
) -> Composition:
    """Return what several releases of the same data promise together.

    The multiverse is the common refinement (all invariants of all parts). Pure budgets
    add, rho^2 adds, approximate budgets add with their deltas (Dwork and Roth 2014; Bun and
    Steinke 2016; Bailie 2025, Proposition 2.5.3). Output premetrics that differ are
    converted along pure, zero-concentrated, approximate.

    Parameters
    ----------
    parts
        The promises; one domain for all.
    randomness
        "shared" if releases use common random numbers (a common sample, common cell keys):
        then no rule exists, and the composition is refused.
    adaptive
        Whether a release was chosen, or made, after seeing an earlier one.
    touched
        Needed if units differ (households and persons): how many coarse records one fine
        record can alter; all parts are told in the finest unit.
    delta
        Needed to convert zero-concentrated parts beside approximate ones.
    """
    if not parts:
        raise NoCompositionRule("nothing to compose.")
    if randomness not in ("fresh", "shared"):
        raise NoCompositionRule("randomness is fresh or shared.")
    if randomness == "shared":
        raise NoCompositionRule(
            "releases that share randomness have no composition rule: their joint law is needed."
        )
    if len(parts) == 1:
        return Composition(parts[0], ())
    weakenings: list[str] = []
    _check_domains(parts)
    told = _one_unit(parts, touched, weakenings)
    multiverse = _refined(told, weakenings)
    output, told = _one_output(told, delta, weakenings)
    if adaptive and not output.properties.adaptive:
        raise NoCompositionRule(f"no rule for adaptive releases under {output.name}.")
    specification = told[0].model_copy(
        update={
            "multiverse": multiverse,
            "output_premetric": output,
            "budget": _added(told, output, weakenings),
        }
    )
    return Composition(specification, tuple(weakenings))


def _check_domains(parts: Sequence[Specification]) -> None:
    if any(part.domain != parts[0].domain for part in parts):
        raise NoCompositionRule(
            "the domains differ: state the stability between them (preprocess) before composing."
        )


def _one_unit(
    parts: Sequence[Specification], touched: int | None, weakenings: list[str]
) -> list[Specification]:
    """Return all parts told in the finest unit among them."""
    finest = parts[0].input_premetric
    for part in parts:
        if part.input_premetric.finer_than(finest):
            finest = part.input_premetric
    told = []
    for number, part in enumerate(parts, start=1):
        origin = part.input_premetric
        if origin.unit != finest.unit and touched is None:
            raise NoCompositionRule(
                f"the units differ ({origin.unit}, {finest.unit}), and the premetrics with them: "
                f"say how many {origin.unit} records one {finest.unit} can alter."
            )
        if origin.unit != finest.unit:
            try:
                part = change_unit(part, finest.unit, touched=touched)
            except NotAllowed as reason:
                raise NoCompositionRule(str(reason)) from None
            weakenings.append(
                f"release {number} is told per {finest.unit} instead of {origin.unit}, assuming "
                f"that one {finest.unit} alters at most {touched} {origin.unit} record(s)"
            )
        _check_premetric(part.input_premetric, finest)
        told.append(part)
    return told


def _check_premetric(one: InputPremetric, other: InputPremetric) -> None:
    if one != other:
        raise NoCompositionRule(
            f"the input premetrics differ ({one.name} of {one.unit}s, {other.name} of "
            f"{other.unit}s): no rule without an explicit factor between them (change_premetric)."
        )


def _refined(parts: Sequence[Specification], weakenings: list[str]) -> Multiverse:
    together = parts[0].multiverse
    for part in parts[1:]:
        together = together.common_refinement(part.multiverse)
    for number, part in enumerate(parts, start=1):
        extra = part.multiverse.undetermined(together, part.domain)
        if extra:
            names = "; ".join(one.name for one in extra)
            weakenings.append(f"release {number} is told with further invariants: {names}")
    return together.without_repetition(parts[0].domain)


def _one_output(
    parts: Sequence[Specification], delta: Fraction | None, weakenings: list[str]
) -> tuple[OutputPremetric, list[Specification]]:
    """Return the common output premetric, and all parts told in it or, for deltas, beside it."""
    found = {part.output_premetric.name for part in parts}
    outputs = [part.output_premetric for part in parts]
    if all(output == outputs[0] for output in outputs) and found != {"approximate"}:
        return outputs[0], list(parts)
    if not found <= {"multiplicative", "normalised-renyi", "approximate"}:
        raise NoCompositionRule(
            f"no composition rule across the output premetrics {', '.join(sorted(found))}."
        )
    if "approximate" not in found:
        return NORMALISED_RENYI, [
            _converted(part, NORMALISED_RENYI, number, weakenings)
            for number, part in enumerate(parts, start=1)
        ]
    return _with_deltas(parts, delta, weakenings)


def _converted(
    part: Specification, to: OutputPremetric, number: int, weakenings: list[str]
) -> Specification:
    if part.output_premetric == to:
        return part
    _finite(part)
    weakenings.append(
        f"release {number} is converted from {_short(part.output_premetric)} to {_short(to)}, "
        f"rho^2 = epsilon^2 / 2, which cannot be undone"
    )
    return convert(part, to)


def _short(output: OutputPremetric) -> str:
    return output.properties.title.removesuffix(" differential privacy")


def _with_deltas(
    parts: Sequence[Specification], delta: Fraction | None, weakenings: list[str]
) -> tuple[OutputPremetric, list[Specification]]:
    """Return the total delta, and parts in epsilon; those in rho^2 are composed first."""
    concentrated = [p for p in parts if p.output_premetric == NORMALISED_RENYI]
    others = [p for p in parts if p.output_premetric != NORMALISED_RENYI]
    if concentrated:
        if delta is None:
            raise NoCompositionRule(
                "zero-concentrated beside approximate parts: give the delta to convert them at."
            )
        if any(p.input_premetric.name != "neighbours" for p in concentrated):
            raise NoCompositionRule(
                "zero-concentrated beside approximate parts: tell both for neighbours first "
                "(change_premetric)."
            )
        together = compose(concentrated).specification
        weakenings.append(
            f"{len(concentrated)} zero-concentrated release(s) are converted to approximate, "
            f"which cannot be undone"
        )
        others.append(convert(together, approximate(delta)))
    total = sum((p.output_premetric.delta or Fraction(0) for p in others), Fraction(0))
    if total >= 1:
        raise NoCompositionRule("the deltas add up to 1 or more: nothing is promised.")
    # At one fixed delta this premetric has no composition rule: a point of mass delta that
    # only one law has costs nothing once, and infinitely much twice.
    weakenings.append("deltas add up beside the epsilons")
    return approximate(total), others


def _added(
    parts: Sequence[Specification], output: OutputPremetric, weakenings: list[str]
) -> Budget:
    """Return the sum of the budgets by the product rule of the output premetric."""
    rule = output.properties.product
    if rule == "none":
        raise NoCompositionRule(f"no composition rule for the output premetric {output.name}.")
    if rule in ("sum", "sum-with-deltas"):
        return _total(parts, _sum(parts, weakenings))
    amounts = [_finite(part).upper_bound() for part in parts]
    if output.properties.unit in ("rho2", "mu2"):
        return _total(parts, Exactly(of=sum(amounts, Fraction(0))))
    if rule == "root-of-squares":
        squares = sum((amount * amount for amount in amounts), Fraction(0))
        return _total(parts, Exactly(of=root_up(squares)))
    # (1 + a d)(1 + b d) - 1 is not linear in the distance d, so no budget per unit exists.
    raise NoCompositionRule(
        f"under {output.name} the total grows faster than the distance: no budget per unit "
        f"of distance exists."
    )


def _sum(parts: Sequence[Specification], weakenings: list[str]) -> LogRational | Exactly:
    """Add exactly if all are logarithms with one factor, or all rationals; else rounded up."""
    amounts = [amount for part in parts if (amount := _finite(part)).upper_bound() > 0]
    logarithms = [amount for amount in amounts if isinstance(amount, LogRational)]
    if not amounts:
        return _finite(parts[0])
    if len(logarithms) == len(amounts) and len({amount.times for amount in logarithms}) == 1:
        ratio = math.prod((amount.of for amount in logarithms), start=Fraction(1))
        return LogRational(of=ratio, times=logarithms[0].times)
    if logarithms:
        weakenings.append("the sum of a logarithm and a rational is rounded up, by less than 1e-20")
    return Exactly(of=sum((amount.upper_bound() for amount in amounts), Fraction(0)))


def _finite(part: Specification) -> LogRational | Exactly:
    amount = part.budget.amount
    if isinstance(amount, NoFiniteBudget):
        raise NoCompositionRule(f"a part has no finite budget ({amount.reason}): no total exists.")
    if not isinstance(amount, LogRational | Exactly):
        raise NoCompositionRule("a budget is a function of the universe: give its facts first.")
    return amount


def _total(parts: Sequence[Specification], amount: LogRational | Exactly) -> Budget:
    """Return the sum with the sources of the parts that cost anything, and the weakest status."""
    free = [part for part in parts if part.budget.source == INVARIANTS_ARE_FREE]
    counted = [part for part in parts if part not in free] or list(parts[:1])
    return Budget(
        unit=parts[0].budget.unit,
        amount=amount,
        source="; ".join(dict.fromkeys(part.budget.source for part in counted)),
        status=weakest(part.budget.status for part in counted),
        conditions=tuple(dict.fromkeys(c for part in counted for c in part.budget.conditions)),
    )
