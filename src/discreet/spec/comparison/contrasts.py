"""Ways to be misled by two promises side by side: what differs beyond their budgets."""

from __future__ import annotations

from collections.abc import Callable

from discreet.spec.comparison.amounts import at_most
from discreet.spec.comparison.facts import Side
from discreet.spec.invariants import Invariant
from discreet.spec.multiverse import Multiverse


def listed(invariants: tuple[Invariant, ...]) -> str:
    """Return invariants as a phrase."""
    return "; ".join(one.describe() for one in invariants)


def _domains_differ(a: Side, b: Side) -> list[str]:
    if a.spec.domain == b.spec.domain:
        return []
    return [
        f"{a.name} is about {a.spec.domain.describe()}; {b.name} about "
        f"{b.spec.domain.describe()}: not the same data."
    ]


def _more_exact(a: Side, b: Side) -> tuple[Invariant, ...]:
    """Return what a holds exact beyond what b does, by its premetric too."""
    known = Multiverse(invariants=b.spec.effective_invariants())
    other = Multiverse(invariants=a.spec.effective_invariants())
    return known.undetermined(other, a.spec.domain)


def _bought(a: Side, b: Side) -> list[str]:
    said = []
    for one, other in ((a, b), (b, a)):
        extra = _more_exact(one, other)
        smaller = at_most(other.spec.budget.amount, one.spec.budget.amount) is False
        same_unit = one.spec.budget.unit == other.spec.budget.unit
        if extra and not _more_exact(other, one) and same_unit and smaller:
            said.append(
                f"The smaller budget of {one.name} ({one.spec.budget.describe()}, against "
                f"{other.spec.budget.describe()}) is bought by publishing exactly: "
                f"{listed(extra)}. The number can only fall when invariants are added; that is "
                f"not more protection."
            )
    return said


def _not_nested(a: Side, b: Side) -> list[str]:
    mine, theirs = _more_exact(a, b), _more_exact(b, a)
    if not mine or not theirs:
        return []
    return [
        f"The invariants are not nested, as far as can be shown. Exact in {b.name}, but not known "
        f"to be so in {a.name}: {listed(theirs)}. Exact in {a.name}, but not known to be so in "
        f"{b.name}: {listed(mine)}. No ratio of the two budgets means anything."
    ]


def _units_differ(a: Side, b: Side) -> list[str]:
    said = []
    for one, other in ((a, b), (b, a)):
        if one.spec.input_premetric.finer_than(other.spec.input_premetric):
            units = one.spec.input_premetric.unit, other.spec.input_premetric.unit
            most = one.facts.records_per_unit
            per = f"; told per {units[1]} of M {units[0]}s it has M{one.square} times its budget"
            said.append(
                f"The unit of {one.name} ({units[0]}) is smaller than that of {other.name} "
                f"({units[1]}){per if most is None else f' by up to {most}'}."
            )
    return said


def _bounds_differ(a: Side, b: Side) -> list[str]:
    said = []
    for one, other in ((a, b), (b, a)):
        bounded, free = one.spec.input_premetric, other.spec.input_premetric
        if bounded.properties.bounded is True and free.properties.bounded is False:
            said.append(
                f"The number of {bounded.unit} records is an invariant of {one.name} (one record "
                f"is changed) but not of {other.name} (one is added or removed), which told for "
                f"changes has {other.times(2)}."
            )
    return said


def _outputs_differ(a: Side, b: Side) -> list[str]:
    if a.spec.output_premetric == b.spec.output_premetric:
        return []
    said = [
        f"{a.name} ({a.spec.output_premetric.properties.title}, {a.spec.budget.describe()}) and "
        f"{b.name} ({b.spec.output_premetric.properties.title}, {b.spec.budget.describe()}) "
        f"measure the output differently: their numbers cannot be compared, only converted from "
        f"pure to zero-concentrated to approximate."
    ]
    for side in (a, b):
        delta = side.spec.output_premetric.delta
        if delta is not None:
            said.append(
                f"{side.name} allows a catastrophic event of probability {float(delta):g} for "
                f"each pair at distance 1."
            )
    return said


def _strata_differ(a: Side, b: Side) -> list[str]:
    one, other = a.facts.largest_stratum, b.facts.largest_stratum
    if one is None or other is None or one == other:
        return []
    return [
        f"The largest strata have b = {one:,} ({a.name}) and b = {other:,} ({b.name}). epsilon "
        f"falls with b because finer strata publish more exactly: do not rank by epsilon."
    ]


CONTRASTS: dict[str, Callable[[Side, Side], list[str]]] = {
    "W1": _domains_differ,
    "W2": _bought,
    "W3": _not_nested,
    "W5": _units_differ,
    "W7": _bounds_differ,
    "W8": _outputs_differ,
    "W15": _strata_differ,
}
