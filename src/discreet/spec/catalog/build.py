"""Make the promises of the catalog from its files, by the calculus of this room alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from discreet.config import suggest
from discreet.errors import BadInput
from discreet.spec import psa
from discreet.spec.budget import Budget, Exactly, LogRational
from discreet.spec.catalog.entry import (
    ByRule,
    Composed,
    Contributors,
    Counted,
    Figures,
    Instead,
    Sharpened,
    Stated,
    Swapped,
    Touched,
    Unbounded,
)
from discreet.spec.catalog.files import UnknownSystem, shared, system
from discreet.spec.catalog.sources import derived, is_printed, once
from discreet.spec.compose import Composition, compose
from discreet.spec.inputs import hamming_of_multisets, symmetric_difference
from discreet.spec.invariants import Invariant, MarginalTable
from discreet.spec.multiverse import Multiverse, determined
from discreet.spec.operations import change_premetric, change_unit, refine, to_contributors
from discreet.spec.outputs import MULTIPLICATIVE
from discreet.spec.specification import Specification


@dataclass(frozen=True)
class Reading:
    """How the files are read: which figures, which assumption, which rate.

    `touched` replaces that of every composition; `instead` names for some parts the
    accounting to use; `rate` is the swap rate, the first of the file if None.
    """

    figures: Figures = "printed"
    touched: int | None = None
    instead: tuple[tuple[str, str], ...] = ()
    rate: Fraction | None = None


AS_PRINTED = Reading()


# -- promises -----------------------------------------------------------------------------------


def promise(name: str, reading: Reading = AS_PRINTED) -> Composition:
    """Return what a system promises, and what was given up to say it in one promise.

    A sum that no source prints is not ascribed to one: it says what it is derived from.
    """
    made = _promise(name, reading)
    if not isinstance(system(name).basis, Composed):
        return made
    told, source = made.specification, made.specification.budget.source
    source = once(source) if is_printed(name, told) else derived(source)
    return Composition(_with_budget(told, {"source": source}), made.weakenings)


@lru_cache(maxsize=256)
def _promise(name: str, reading: Reading = AS_PRINTED) -> Composition:
    basis = system(name).basis
    if reading.rate is not None and not isinstance(basis, Swapped):
        raise BadInput(f"{name} has no swap rate: it is no swap. Leave the rate out.")
    if isinstance(basis, Stated):
        return Composition(_stated(basis, reading), ())
    if isinstance(basis, Swapped):
        return Composition(_swapped(basis, reading), ())
    return _composed(basis, reading)


def _stated(basis: Stated, reading: Reading) -> Specification:
    known, budget = shared(), basis.budget
    if basis.unrounded is not None and reading.figures == "unrounded":
        update = {"amount": Exactly(of=basis.unrounded.of), "source": basis.unrounded.source}
        budget = budget.model_copy(update=update)
    return Specification(
        domain=known.domains[basis.domain],
        multiverse=Multiverse(invariants=tuple(known.invariants[i] for i in basis.invariants)),
        input_premetric=basis.input_premetric,
        output_premetric=basis.output_premetric,
        budget=budget,
    )


def _composed(basis: Composed, reading: Reading) -> Composition:
    instead = dict(reading.instead)
    parts = [
        _alternative(part, instead[part], replace(reading, instead=()))
        if part in instead
        else _promise(part, reading).specification
        for part in basis.parts
    ]
    touched = basis.touched if reading.touched is None else reading.touched
    # Later runs took earlier releases as input, hence adaptive.
    together = compose(parts, adaptive=True, touched=touched)
    return Composition(without_implied(together.specification), together.weakenings)


def without_implied(specification: Specification) -> Specification:
    """Return the same promise without invariants that are functions of the others."""
    kept = list(specification.multiverse.invariants)
    for one in specification.multiverse.invariants:
        others = [other for other in kept if other is not one]
        if determined(one, others, specification.domain):
            kept = others
    return refine(specification, Multiverse(invariants=tuple(kept)))


def _swapped(basis: Swapped, reading: Reading) -> Specification:
    rate = basis.rates[0] if reading.rate is None else reading.rate
    bound = psa.theorem_1(basis.largest_stratum, rate)
    if bound.ratio is None:
        raise BadInput("a swap rate of 0 or 1 has no finite budget. Give one between them.")
    return Specification(
        domain=shared().domains[basis.domain],
        multiverse=Multiverse(invariants=_swap_invariants(basis)),
        input_premetric=hamming_of_multisets("household"),
        output_premetric=MULTIPLICATIVE,
        budget=Budget(
            unit="epsilon",
            amount=LogRational(of=bound.ratio),
            source="Bailie, Gong and Meng, Theorem 1",
            status="published",
            conditions=_conditions(basis, rate),
        ),
    )


def _conditions(basis: Swapped, rate: Fraction) -> tuple[str, ...]:
    size = f"{basis.largest_stratum:,} ({basis.largest_stratum_is})"
    parameters = f"swap rate {rate}, largest stratum {size}"
    if not basis.stands_for:
        return (parameters,)
    return parameters, f"imitates {basis.stands_for}, which was another algorithm"


def _swap_invariants(basis: Swapped) -> tuple[Invariant, ...]:
    """Return what swapping leaves as it is (Bailie, Gong and Meng, Proposition 4).

    The holding margin is the multiset of complete records per stratum, the swapping margin
    the number of units per stratum and area. Units that do not move stay exact.
    """
    domain = shared().domains[basis.domain]
    by = f" by {', '.join(basis.match)}" if basis.match else ""
    moving = {"kind": list(basis.moves)}
    holding = MarginalTable(
        name=f"records of occupied units{by} per {basis.within}",
        of="units",
        where=moving,
        by=basis.match,
        level=basis.within,
        whole_record=True,
    )
    swapping = MarginalTable(
        name=f"number of occupied units{by} per {basis.exchanges}",
        of="units",
        where=moving,
        by=basis.match,
        level=basis.exchanges,
    )
    staying = [kind for kind in domain.kinds if kind not in basis.moves]
    if not staying:
        return holding, swapping
    still = MarginalTable(
        name=f"records of {', '.join(staying)} units per {domain.spine[-1]}",
        of="units",
        where={"kind": staying},
        level=domain.spine[-1],
        whole_record=True,
    )
    return holding, swapping, still


# -- other accountings --------------------------------------------------------------------------


def alternative(name: str, of: str, reading: Reading = AS_PRINTED) -> Specification:
    """Return what a system promises by another accounting.

    Its source is that of the figure if it has one of its own; a figure that a rule made from
    others is "derived from" theirs, unless it is printed too. The status is that of the rule.
    """
    if of == "unrounded":
        return promise(name, replace(reading, figures="unrounded")).specification
    made = _alternative(name, of, reading)
    found = next(one for one in system(name).alternatives if one.name == of)
    own = isinstance(found, Unbounded | Counted | Sharpened)
    return made if own else _derived(made)


def _derived(specification: Specification) -> Specification:
    return _with_budget(specification, {"source": derived(specification.budget.source)})


def _alternative(name: str, of: str, reading: Reading) -> Specification:
    listed = system(name).alternatives
    found = next((one for one in listed if one.name == of), None)
    if found is None:
        known = [*(one.name for one in listed), "unrounded"]
        raise UnknownSystem(f"{name} has no accounting '{of}'.{suggest(of, known)}")
    base = _promise(name, reading).specification
    if isinstance(found, Touched):
        if isinstance(system(name).basis, Composed):
            return _promise(name, replace(reading, touched=found.touched)).specification
        return change_unit(base, "person", touched=found.touched)
    if isinstance(found, Contributors):
        return to_contributors(base, found.copies)
    if isinstance(found, Instead):
        swaps = tuple(sorted(found.parts.items()))
        return _promise(name, replace(reading, instead=swaps)).specification
    if isinstance(found, Sharpened):
        return _sharpened(name, base, reading)
    return _of_unbounded(name, base, found)


def _of_unbounded(
    name: str, base: Specification, found: Unbounded | ByRule | Counted
) -> Specification:
    """Return the promise from the budget for a unit added or removed."""
    if isinstance(found, Counted):
        amount = sum((term.rho2 * term.times for term in found.terms), Fraction(0))
        counted = {"amount": Exactly(of=amount), "source": found.source, "status": found.status}
        return _with_budget(base, {**counted, "conditions": ()})
    start = found if isinstance(found, Unbounded) else _unbounded_of(name)
    unit = base.input_premetric.unit
    added = {"amount": Exactly(of=start.rho2), "source": start.source, "conditions": ()}
    unbounded = _with_budget(base, added).model_copy(
        update={"input_premetric": symmetric_difference(unit)}
    )
    if isinstance(found, Unbounded):
        return unbounded
    return change_premetric(unbounded, base.input_premetric)


def _unbounded_of(name: str) -> Unbounded:
    for one in system(name).alternatives:
        if isinstance(one, Unbounded):
            return one
    raise UnknownSystem(f"{name} states no budget for a unit added or removed.")


def _sharpened(name: str, base: Specification, reading: Reading) -> Specification:
    basis = system(name).basis
    if not isinstance(basis, Swapped):
        raise UnknownSystem(f"{name} is no swap: the sharpened bound says nothing about it.")
    rate = basis.rates[0] if reading.rate is None else reading.rate
    bound = psa.sharpened(basis.largest_stratum, rate)
    if bound.ratio is None:
        raise BadInput("a swap rate of 0 or 1 has no finite budget. Give one between them.")
    amount = LogRational(of=bound.ratio, times=Fraction(1, bound.root))
    source = "ours: Theorem 1 of Bailie, Gong and Meng, sharpened"
    return _with_budget(base, {"amount": amount, "source": source, "status": "proved here"})


def _with_budget(specification: Specification, update: dict[str, object]) -> Specification:
    budget = specification.budget.model_copy(update=update)
    return specification.model_copy(update={"budget": budget})
