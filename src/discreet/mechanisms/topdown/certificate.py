"""What a strategy promises about a single attribute, or about where somebody lives.

The whole budget protects a record that is replaced by any other. If only one attribute of
it may change, queries that do not distinguish that attribute answer the same and cost
nothing; if it may only move inside an area, neither do the levels from that area upwards.
These are weaker promises: they hold for fewer pairs of data sets. The production
certificate of the 2020 redistricting file lists the same figures.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.mechanisms.topdown.strategy import Strategy
from discreet.spec import WHOLE, concentrated_to_approximate

#: The delta of the published figures.
DELTA = Fraction(1, 10**10)

WEAKER = (
    "Promises on one attribute or on moves inside an area are weaker than the whole budget: "
    "they say nothing about records that differ in more."
)


@dataclass(frozen=True)
class Semantics:
    """One promise: which data sets are neighbours, and what telling them apart costs at most.

    `bypassed` is the bound where areas with one child are measured together with it, with
    the queries of the upper level; `single` is that where the whole, too, may be one area of
    the level below. Both differ from `rho` for attributes only.
    """

    name: str
    neighbours: str
    rho: Fraction
    bypassed: Fraction
    single: Fraction
    delta: Fraction = DELTA

    @property
    def epsilon(self) -> float:
        """Return epsilon at delta (Canonne, Kamath and Steinke 2020, Corollary 13)."""
        return float(concentrated_to_approximate(self.rho, self.delta, "tight").amount)

    @property
    def epsilon_published(self) -> float:
        """Return epsilon at delta (Bun and Steinke 2016, Proposition 1.3)."""
        return float(concentrated_to_approximate(self.rho, self.delta, "published").amount)

    def as_data(self) -> dict[str, Any]:
        """Return the promise as plain data."""
        return {
            "name": self.name,
            "neighbours": self.neighbours,
            "rho2": str(self.rho),
            "rho2_decimal": float(self.rho),
            "rho2_with_only_children": float(self.bypassed),
            "rho2_with_one_area_below_all": float(self.single),
            "epsilon": self.epsilon,
            "epsilon_bun_steinke": self.epsilon_published,
            "delta": str(self.delta),
        }


@dataclass(frozen=True)
class Certificate:
    """All promises of one strategy: the whole, one per attribute, one per level above blocks."""

    strategy: str
    unit: str
    below: str
    whole: Semantics
    attributes: tuple[Semantics, ...]
    places: tuple[Semantics, ...]

    def describe(self) -> list[str]:
        """Return the certificate as lines of text."""
        delta = float(self.whole.delta)
        lines = [
            f"rho^2 = {float(self.whole.rho):.6f} = {self.whole.rho}",
            f"epsilon at delta {delta:g}: {self.whole.epsilon:.2f} (Canonne, Kamath and Steinke), "
            f"{self.whole.epsilon_published:.2f} (Bun and Steinke)",
            f"  neighbours: {self.whole.neighbours}",
        ]
        if self.attributes:
            lines.append(f"one attribute of one {self.unit} changes, all else stays:")
        for one in self.attributes:
            more = f", {float(one.bypassed):.6f} with only children" * (one.bypassed != one.rho)
            if one.single != one.bypassed:
                more += f", {float(one.single):.6f} if there is only one {self.below}"
            lines.append(
                f"  {one.name}: epsilon {one.epsilon:.2f} (rho^2 {float(one.rho):.6f}{more})"
            )
        if self.places:
            lines.append(f"one {self.unit} moves to another place inside the same area:")
        for one in self.places:
            lines.append(f"  {one.name}: epsilon {one.epsilon:.2f} (rho^2 {float(one.rho):.6f})")
        return [*lines, WEAKER]

    def as_data(self) -> dict[str, Any]:
        """Return the certificate as plain data."""
        return {
            "strategy": self.strategy,
            "whole": self.whole.as_data(),
            "attributes": [one.as_data() for one in self.attributes],
            "places": [one.as_data() for one in self.places],
            "note": WEAKER,
        }


def certificate(strategy: Strategy, delta: Fraction = DELTA) -> Certificate:
    """Return what a strategy promises, overall and for the weaker kinds of neighbours."""
    unit = strategy.count.removesuffix("s")
    replaced = f"one {unit} record is replaced by another; what is exact stays as it is"
    attributes, names = [], strategy.level_names
    # With one axis its attribute is all there is, and the whole budget says it already.
    for axis in strategy.axes if len(strategy.axes) > 1 else []:
        told = f"{axis.name} of one {unit} record changes, its place and other attributes stay"
        nominal = attribute_rho(strategy, axis.name)
        worst = max(_with_only_children(strategy, axis.name, several=names[0] == WHOLE))
        single = max(_with_only_children(strategy, axis.name, several=False))
        attributes.append(Semantics(axis.name, told, nominal, worst, single, delta))
    places = []
    for above in reversed(names[:-1]):
        told = f"one {unit} record moves to another {names[-1]} of the same {above}"
        name = f"{names[-1]} within {above}"
        # Only children pass their share upwards, so below an area it never grows.
        spent = place_rho(strategy, above)
        places.append(Semantics(name, told, spent, spent, spent, delta))
    whole = Semantics("whole", replaced, strategy.rho, strategy.rho, strategy.rho, delta)
    below = names[min(1, len(names) - 1)]
    return Certificate(strategy.name, unit, below, whole, tuple(attributes), tuple(places))


def attribute_rho(strategy: Strategy, axis: str) -> Fraction:
    """Return the rho^2 of all queries that distinguish an attribute."""
    return sum(
        (strategy.rho_of(level) * _part(strategy, level, axis) for level in strategy.level_names),
        Fraction(0),
    )


def place_rho(strategy: Strategy, above: str) -> Fraction:
    """Return the rho^2 of the levels strictly below one."""
    names = strategy.level_names
    below = names[names.index(strategy.at(above).level) + 1 :]
    return sum((strategy.rho_of(level) for level in below), Fraction(0))


def _part(strategy: Strategy, level: str, axis: str) -> Fraction:
    """Return the part of a level's budget that goes to queries that distinguish an attribute."""
    asked = strategy.at(level).queries.items()
    told = (part for query, part in asked if strategy.distinguishes(query, axis))
    return sum(told, Fraction(0))


def _with_only_children(strategy: Strategy, axis: str, several: bool) -> Iterator[Fraction]:
    """Yield the rho^2 of an attribute for every way in which levels can have only children.

    A run of such levels is measured once, with the queries of its first level and the
    shares of all (ours, by enumeration). With `several` the root has more than one area.
    """
    names = strategy.level_names
    fixed = [True] if several else []
    free = len(names) - 1 - len(fixed)
    for starts in itertools.product([True, False], repeat=max(free, 0)):
        begins = [True, *fixed, *starts][: len(names)]
        total, part = Fraction(0), Fraction(0)
        for level, begin in zip(names, begins, strict=True):
            part = _part(strategy, level, axis) if begin else part
            total += strategy.rho_of(level) * part
        yield total
