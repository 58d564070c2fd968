"""Show that one promise does not imply another: a mechanism, and two data sets it tells apart.

A witness against "A implies B" is a mechanism that satisfies A and breaks B, in one of the
ways of `separations`. It comes with two tiny data sets that B compares: they share a
universe of B, at a finite distance. Whoever doubts it can recompute it; `check` does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from discreet.spec.comparison.amounts import is_finite
from discreet.spec.comparison.separations import CERTAIN, SEPARATIONS, Kind, Words
from discreet.spec.comparison.tiny import (
    DataSet,
    Pair,
    as_plain,
    distance,
    one_universe,
    pairs,
    published,
    taken_as_free,
)
from discreet.spec.invariants import Invariant
from discreet.spec.multiverse import determined
from discreet.spec.specification import Specification

#: Pairs of data sets looked at before a kind of witness is given up.
MOST_PAIRS = 20_000


@dataclass(frozen=True)
class Witness:
    """A mechanism that satisfies one promise and breaks the other, with two data sets.

    `satisfied` says which of the two promises compared it satisfies; `distance` is how far
    apart the data sets are under the other; `invariant` is what it publishes, if exact;
    `assumes` names columns none of which may be a function of the others.
    """

    kind: Kind
    satisfied: Literal["first", "second"]
    mechanism: str
    satisfies: str
    breaks: str
    pair: Pair
    distance: float
    invariant: Invariant | None = None
    assumes: str = ""

    def describe(self) -> str:
        """Return the witness in plain words."""
        x, y = (_written(data) for data in self.pair)
        lines = [self.mechanism, self.satisfies, self.breaks]
        lines += [f"One data set: {x}", f"The other:    {y}"]
        if self.assumes:
            lines.append(f"Assumed: {self.assumes}.")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return the witness as plain values, for files."""
        return {
            "kind": self.kind,
            "satisfied": self.satisfied,
            "mechanism": self.mechanism,
            "satisfies": self.satisfies,
            "breaks": self.breaks,
            "data_sets": [as_plain(data) for data in self.pair],
            "distance": self.distance,
            "assumes": self.assumes,
        }


def refute(
    a: Specification,
    b: Specification,
    names: tuple[str, str] = ("A", "B"),
    satisfied: Literal["first", "second"] = "first",
) -> Witness | None:
    """Return a mechanism that satisfies `a` but not `b`, or None if none is found.

    `satisfied` is the place of `a` in the comparison that asks.
    """
    if a.domain != b.domain or not is_finite(b.budget.amount):
        return None
    for kinds, invariant, compared in _candidates(a, b):
        tried = set()
        for pair in islice(compared, MOST_PAIRS):
            # Within one search, whether a budget is exceeded depends on the distances only.
            apart = distance(a.input_premetric, pair), distance(b.input_premetric, pair)
            for kind in kinds:
                if kind == "budget" and apart in tried:
                    continue
                if _shows(kind, invariant, a, b, pair):
                    words = _words(kind, invariant, a, b, pair)
                    return _told(kind, invariant, words, b, pair, names, satisfied)
            tried.add(apart)
    return None


def check(witness: Witness, a: Specification, b: Specification) -> bool:
    """Recompute a witness of comparing `a` with `b`, from its data sets alone."""
    if witness.satisfied == "second":
        a, b = b, a
    return a.domain == b.domain and _shows(witness.kind, witness.invariant, a, b, witness.pair)


def _candidates(
    a: Specification, b: Specification
) -> Iterator[tuple[list[Kind], Invariant | None, Iterator[Pair]]]:
    """Yield the kinds that may apply, with data sets that `b` compares."""
    domain, premetric, own = b.domain, b.input_premetric, b.multiverse.invariants
    if b.output_premetric.properties.infinite_when_disjoint:
        for one in a.effective_invariants():
            if not determined(one, b.effective_invariants(), domain):
                yield ["exact"], one, pairs(domain, own, premetric, one)
    kinds = [kind for kind, separation in SEPARATIONS.items() if separation.applies(a, b)]
    if "order" in kinds:
        compared = pairs(domain, own, premetric)
        yield ["order"], None, ((data, data[::-1]) for pair in compared for data in pair)
        kinds.remove("order")
    if kinds:
        yield kinds, None, pairs(domain, own, premetric)


def _shows(
    kind: Kind, invariant: Invariant | None, a: Specification, b: Specification, pair: Pair
) -> bool:
    """Tell whether two data sets prove that a mechanism of this kind breaks `b`."""
    apart = distance(b.input_premetric, pair)
    if apart is None or apart == math.inf or (apart == 0) != (kind == "order"):
        return False
    if not one_universe(b.multiverse.invariants, pair, b.domain) or not is_finite(b.budget.amount):
        return False
    if kind != "exact":
        separation = SEPARATIONS[kind]
        return separation.applies(a, b) and separation.shows(a, b, pair, int(apart))
    if invariant is None or invariant not in a.effective_invariants():
        return False
    x, y = (published(invariant, data, b.domain) for data in pair)
    return x != y and b.output_premetric.properties.infinite_when_disjoint


def _words(
    kind: Kind, invariant: Invariant | None, a: Specification, b: Specification, pair: Pair
) -> Words:
    if kind != "exact" or invariant is None:
        return SEPARATIONS[kind].words(a, b, pair)
    hidden = invariant in a.hidden_invariants()
    why = "data sets that differ in it are never compared" if hidden else "it is an invariant"
    return f"Publish exactly: {invariant.describe()}.", f"{why}, so this costs nothing", CERTAIN


def _told(
    kind: Kind,
    invariant: Invariant | None,
    words: Words,
    b: Specification,
    pair: Pair,
    names: tuple[str, str],
    satisfied: Literal["first", "second"],
) -> Witness:
    mechanism, satisfies, breaks = words
    apart = distance(b.input_premetric, pair) or 0
    records = "record" if apart == 1 else "records"
    mentioned = [*b.multiverse.invariants, *([invariant] if invariant else [])]
    free = ", ".join(taken_as_free(b.domain, mentioned))
    return Witness(
        kind=kind,
        satisfied=satisfied,
        mechanism=mechanism,
        satisfies=f"Satisfies {names[0]}: {satisfies}.",
        breaks=(
            f"Breaks {names[1]}: the data sets below agree on all that {names[1]} holds exact and "
            f"are {apart:g} {b.input_premetric.unit} {records} apart, {breaks}."
        ),
        pair=pair,
        distance=apart,
        invariant=invariant,
        assumes=f"none of {free} is a function of the others" if free else "",
    )


def _written(data: DataSet) -> str:
    """Return a data set as text, each unit in brackets."""
    units = []
    for unit in data:
        own = ", ".join(f"{k} {v}" for k, v in unit.items() if k != "members")
        persons = "; ".join(
            " ".join(f"{k} {v}" for k, v in person.items()) for person in unit.get("members", ())
        )
        units.append(f"[{own}{f'; members: {persons}' if persons else ''}]")
    return " ".join(units) or "no units"
