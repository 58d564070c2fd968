"""Prove that one promise implies another: derive the second from the first, block by block.

A implies B if both have one domain, each universe of B lies in one of A, d_A <= u d_B
there, the output premetric of A converts to that of B, and the budget of A after all
this is at most that of B (Bailie 2025, section 2.4). Each step is one of the calculus and
keeps its conditions; where one is not met, the answer is "not shown", with the reason.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from discreet.spec.comparison.amounts import at_most, is_finite
from discreet.spec.comparison.tiny import WHOLE_STEPS
from discreet.spec.convert import NoConversion, convert, finite
from discreet.spec.inputs import InputPremetric
from discreet.spec.multiverse import Multiverse
from discreet.spec.operations import NotAllowed, change_premetric, change_unit, to_contributors
from discreet.spec.outputs import OutputPremetric
from discreet.spec.specification import Specification


@dataclass(frozen=True)
class Condition:
    """One thing that must hold for A to imply B, and what was found."""

    name: str
    holds: bool
    text: str


@dataclass(frozen=True)
class Claims:
    """What the caller vouches for, because no block knows it.

    The factors between units that `change_unit` asks for, and how often a contributor's
    record was copied at most.
    """

    touched: int | None = None
    records: int | None = None
    same_sizes: bool = False
    copies: int | None = None


def conditions(
    a: Specification, b: Specification, names: tuple[str, str], claims: Claims
) -> tuple[Condition, ...]:
    """Return what was checked of "a implies b", one block after the other."""
    if a.domain != b.domain:
        text = "the domains differ: state the stability between them (preprocess) first"
        return (Condition("domain", False, text),)
    found = [Condition("domain", True, f"both: {a.domain.describe()}")]
    if not is_finite(b.budget.amount):
        text = f"{names[1]} promises nothing, which everything implies"
        return (*found, Condition("budget", True, text))
    found.append(_multiverse(a, b, names))
    # Universes of b, and only pairs at a finite distance in them, are what has to be covered.
    told = a.model_copy(update={"multiverse": Multiverse(invariants=b.effective_invariants())})
    try:
        told, text = _same_input(told, a, b, claims)
        found.append(Condition("input premetric", True, text))
    except NotAllowed as reason:
        return (*found, Condition("input premetric", False, str(reason)))
    try:
        told, text = _same_output(told, b)
        found.append(Condition("output premetric", True, text))
    except (NotAllowed, NoConversion) as reason:
        return (*found, Condition("output premetric", False, str(reason)))
    return (*found, _budget(told, a, b, names))


def _multiverse(a: Specification, b: Specification, names: tuple[str, str]) -> Condition:
    """Check that universes of b lie in universes of a, what the premetrics fix included.

    A statistic that a fixes by its premetric must be fixed by b too: otherwise data sets
    that b compares are infinitely far apart under a.
    """
    fixed = Multiverse(invariants=b.effective_invariants())
    missing = fixed.undetermined(Multiverse(invariants=a.effective_invariants()), a.domain)
    if not missing:
        text = f"all that {names[0]} holds exact follows from what {names[1]} holds exact"
        return Condition("multiverse", True, text)
    listed = "; ".join(one.describe() for one in missing)
    text = f"{names[0]} holds exact what {names[1]} is not shown to: {listed}"
    return Condition("multiverse", False, text)


def _same_input(
    told: Specification, a: Specification, b: Specification, claims: Claims
) -> tuple[Specification, str]:
    """Return the promise per unit of b's input premetric, up to taking neighbours only."""
    target = b.input_premetric
    before = told.budget.conditions
    told = _same_unit(told, target, claims)
    if told.input_premetric == target:
        return told, _because(told, before, "the same input premetric")
    if told.input_premetric.name == "neighbours":
        told = _spread(told, a)
    if target.name == "neighbours" and target.base is not None:
        target = target.base
    told = change_premetric(told, target)
    return told, _because(told, before, "the same input premetric")


def _because(told: Specification, before: tuple[str, ...], default: str) -> str:
    return "; ".join(one for one in told.budget.conditions if one not in before) or default


def _same_unit(told: Specification, target: InputPremetric, claims: Claims) -> Specification:
    origin = told.input_premetric
    if origin.counts == "contributors" and target.counts == "records":
        raise NotAllowed("a promise per contributor says nothing about records one by one.")
    if origin.unit != target.unit:
        finer = target.finer_than(origin)
        if finer and claims.touched is None:
            raise NotAllowed(
                f"how many {origin.unit} records one {target.unit} can alter is not known: give "
                f"`touched`."
            )
        if origin.name == "neighbours" and (claims.touched if finer else claims.records) != 1:
            raise NotAllowed("one step there is more than one here, and not between neighbours.")
        told = change_unit(
            told,
            target.unit,
            touched=claims.touched if finer else None,
            records=None if finer else claims.records,
            same_sizes=claims.same_sizes,
        )
    if origin.counts != target.counts:
        if claims.copies is None:
            raise NotAllowed("how often a record was copied is not known: give `copies`.")
        if origin.name == "neighbours" and claims.copies:
            raise NotAllowed("data sets that differ in several copies are no neighbours.")
        told = to_contributors(told, claims.copies)
    return told


def _spread(told: Specification, a: Specification) -> Specification:
    """Return a promise about neighbours as one about all pairs: steps of a path add up.

    Holds if the output premetric is a metric and paths stay inside the universe, which
    is certain without invariants only (Bailie 2025, appendix A.4).
    """
    near, metric = told.input_premetric, told.output_premetric.properties.metric
    if (
        near.within != 1
        or near.base is None
        or near.base.name not in WHOLE_STEPS
        or a.multiverse.invariants
        or not metric
    ):
        raise NotAllowed(
            "a promise about neighbours extends to all pairs only if distances count steps, "
            "under a metric output premetric, and without invariants, whose universes a path "
            "could leave."
        )
    base = near.base
    conditions = (*told.budget.conditions, "steps between neighbours add up along a path")
    budget = told.budget.model_copy(update={"conditions": conditions})
    return told.model_copy(update={"input_premetric": base, "budget": budget})


def _same_output(told: Specification, b: Specification) -> tuple[Specification, str]:
    """Return the promise in b's output premetric and, at last, for b's neighbours."""
    origin, target = told.output_premetric, b.output_premetric
    if _larger_delta(origin, target):
        told, text = told.model_copy(update={"output_premetric": target}), "a larger delta"
    elif origin == target:
        text = "the same output premetric"
    else:
        told, text = _converted(told, b)
    if told.input_premetric != b.input_premetric:
        told = change_premetric(told, b.input_premetric)
    return told, text


def _larger_delta(origin: OutputPremetric, target: OutputPremetric) -> bool:
    """Tell whether only delta grows: what holds up to delta holds up to more."""
    return origin.delta is not None and target.delta is not None and origin.delta < target.delta


def _converted(told: Specification, b: Specification) -> tuple[Specification, str]:
    """Return the conversion with the smaller budget among those that may be charged."""
    near = b.output_premetric.delta is not None and told.input_premetric.name != "neighbours"
    distance = b.input_premetric.within if near else 1
    # Whether the budget itself was proved is not the question here, only the conversion.
    budget = told.budget.model_copy(update={"status": "published", "source": "given"})
    start = told.model_copy(update={"budget": budget})
    found = [convert(start, b.output_premetric, "published", distance)]
    with suppress(NoConversion):
        found.append(convert(start, b.output_premetric, "tight", distance))
    best = min(
        (one for one in found if one.budget.status != "checked numerically"),
        key=lambda one: finite(one.budget).upper_bound(),
    )
    source = best.budget.source.removeprefix("given; ")
    return best, f"converted: {best.budget.describe()} ({source})"


def _budget(
    told: Specification, a: Specification, b: Specification, names: tuple[str, str]
) -> Condition:
    enough = at_most(told.budget.amount, b.budget.amount)
    if told.budget.amount.kind == "function-of-universe" and a.multiverse != b.multiverse:
        enough = None  # one formula, but of what is told in another universe
    relation = {True: "at most", False: "more than", None: "not shown to be at most"}[enough]
    under = ", under the conditions stated with the budgets"
    text = (
        f"told like {names[1]}, {names[0]} allows {told.budget.describe()}; that is {relation} "
        f"{b.budget.describe()}{under if told.budget.conditions or b.budget.conditions else ''}"
    )
    return Condition("budget", enough is True, text)
