"""Published systems as data: what was promised in 1940, 2010 and 2020, and by which accounting.

Each file in `systems` is one system. `specification` makes its promise, composing parts
and accounting for swaps with the calculus of this room; `entry` adds what a reader must
know: sources, products, printed figures, caveats and other accountings.

Figures are those printed unless "unrounded" is asked for. A printed figure may be rounded
downwards, so charge an account with the unrounded one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.spec.budget import NoFiniteBudget
from discreet.spec.catalog.build import (
    Reading,
    alternative,
    promise,
)
from discreet.spec.catalog.entry import Composed, Figure, Figures, Swapped, System
from discreet.spec.catalog.files import UnknownSystem, names, system
from discreet.spec.catalog.sources import rounding_notes
from discreet.spec.comparison.facts import Facts
from discreet.spec.convert import finite
from discreet.spec.registry import Metadata
from discreet.spec.specification import Specification

__all__ = [
    "Accounting",
    "CatalogEntry",
    "Figure",
    "UnknownSystem",
    "accounting",
    "budget_line",
    "entry",
    "names",
    "specification",
    "title",
]

#: The accounting that every system with rounded figures has beside its own.
_UNROUNDED = "budgets are those of the production configuration, before rounding for print"


@dataclass(frozen=True)
class Accounting:
    """Another accounting of the same system: what it assumes, and what it promises then.

    The status is that of the rule; whether the figure itself stands anywhere says the source.
    """

    name: str
    assumption: str
    specification: Specification

    @property
    def status(self) -> str:
        """Return whether the rule is published, proved here or checked numerically."""
        return self.specification.budget.status

    def describe(self) -> str:
        """Return the accounting in three lines; the budget stands with its unit and premetric."""
        told = budget_line(self.specification)
        source = self.specification.budget.source
        lines = (f"{self.name}: {self.assumption}", told, f"{source}; the rule is {self.status}")
        return "\n    ".join(lines)


@dataclass(frozen=True)
class CatalogEntry:
    """One published system with its promise, its sources and its limits."""

    name: str
    title: str
    citations: tuple[str, ...]
    covers: tuple[str, ...]
    leaves_out: tuple[str, ...]
    parts: tuple[str, ...]
    rates: tuple[Fraction, ...]
    rate: Fraction | None
    largest_stratum: int | None
    stands_for: str
    specification: Specification
    weakenings: tuple[str, ...]
    printed: tuple[Figure, ...]
    notes: tuple[str, ...]
    alternatives: tuple[Accounting, ...]
    registry: Metadata | None

    @property
    def facts(self) -> Facts:
        """Return what cautions need to know beside the promise."""
        sharper = [one.specification for one in self.alternatives if one.name == "sharpened"]
        bound = ("sharpened bound", finite(sharper[0].budget).upper_bound()) if sharper else None
        return Facts(
            products=self.covers,
            largest_stratum=self.largest_stratum,
            rates=() if self.rate is None else (self.rate,),
            sharper=bound,
            stands_for=self.stands_for,
        )

    def describe(self) -> str:
        """Return everything in plain words."""
        told = [f"{self.name}: {self.title}", "", self.specification.describe()]
        for heading, lines in (
            ("Covers", self.covers),
            ("Does not cover", self.leaves_out),
            ("Composed from", self.parts),
            ("Given up in composing", self.weakenings),
            ("Printed", tuple(_figure(one) for one in self.printed)),
            ("To know", self.notes),
            (
                "Other accountings, with the same invariants",
                tuple(one.describe() for one in self.alternatives),
            ),
            ("Sources", self.citations),
        ):
            if lines:
                told += ["", f"{heading}:", *(f"  - {line}" for line in lines)]
        return "\n".join(told)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "name": self.name,
            "title": self.title,
            "citations": list(self.citations),
            "covers": list(self.covers),
            "leaves_out": list(self.leaves_out),
            "parts": list(self.parts),
            "rates": [str(rate) for rate in self.rates],
            "rate": None if self.rate is None else str(self.rate),
            "largest_stratum": self.largest_stratum,
            "specification": self.specification.model_dump(mode="json"),
            "weakenings": list(self.weakenings),
            "printed": [one.model_dump(mode="json") for one in self.printed],
            "notes": list(self.notes),
            "alternatives": [
                {
                    "name": one.name,
                    "assumption": one.assumption,
                    "status": one.status,
                    "specification": one.specification.model_dump(mode="json"),
                }
                for one in self.alternatives
            ],
        }


def entry(name: str, rate: Fraction | None = None) -> CatalogEntry:
    """Return a system of the catalog.

    `rate` is for swaps: the swap rate, the first of the published ones if not given.
    """
    read, reading = system(name), Reading(rate=rate)
    made = promise(name, reading)
    swap = read.basis if isinstance(read.basis, Swapped) else None
    others = [
        Accounting(one.name, one.assumption, alternative(name, one.name, reading))
        for one in read.alternatives
    ]
    exact = alternative(name, "unrounded", reading)
    if exact.budget.amount != made.specification.budget.amount:
        others.insert(0, Accounting("unrounded", _UNROUNDED, exact))
    notes = (*read.notes, *rounding_notes(name))
    return CatalogEntry(
        name=name,
        title=read.title,
        citations=read.citations,
        covers=read.covers,
        leaves_out=read.leaves_out,
        parts=read.basis.parts if isinstance(read.basis, Composed) else (),
        rates=swap.rates if swap else (),
        rate=(rate or swap.rates[0]) if swap else None,
        largest_stratum=swap.largest_stratum if swap else None,
        stands_for=swap.stands_for if swap else "",
        specification=made.specification,
        weakenings=made.weakenings,
        printed=read.printed,
        notes=notes,
        alternatives=tuple(others),
        registry=_sourced(read, notes),
    )


def _sourced(read: System, notes: tuple[str, ...]) -> Metadata | None:
    """Return what the registry asks for, with our sources and notes."""
    if read.registry is None:
        return None
    own = [read.registry.notes] if read.registry.notes else []
    told = {"sources": read.citations, "notes": (*own, *notes)}
    texts = {key: "\n".join(f"- {line}" for line in lines) for key, lines in told.items()}
    return read.registry.model_copy(update=texts)


def title(name: str) -> str:
    """Return what a system is, in a few words."""
    return system(name).title


def specification(
    name: str, figures: Figures = "printed", rate: Fraction | None = None
) -> Specification:
    """Return what a system promises, from printed or unrounded figures.

    >>> specification("das-2020").budget.describe()
    'rho^2 = 55.3710'
    """
    return promise(name, Reading(figures=figures, rate=rate)).specification


def accounting(
    name: str, of: str | None = None, figures: Figures = "printed", rate: Fraction | None = None
) -> Specification:
    """Return what a system promises by one of its other accountings, or by its own if None.

    >>> accounting("das-2020", "moving-person").budget.describe()
    'rho^2 = 132.0510'
    """
    if of is None:
        return specification(name, figures, rate)
    return alternative(name, of, Reading(figures=figures, rate=rate))


def budget_line(told: Specification) -> str:
    """Return a budget on one line with its unit and both premetrics."""
    text = told.budget.describe()
    if isinstance(told.budget.amount, NoFiniteBudget):
        return text
    return (
        f"{text} per {told.input_premetric.per} "
        f"({told.input_premetric.name}; {told.output_premetric.name})"
    )


def _figure(one: Figure) -> str:
    name = "rho^2" if one.quantity == "rho2" else "epsilon"
    at = f" at swap rate {one.rate}" if one.rate is not None else ""
    by = f" ({one.accounting})" if one.accounting else ""
    return f"{name} = {one.value}{at}{by}, {one.where}"
