"""The third building block: what one step between two data sets is.

A premetric only needs d(x, x) = 0 and values from 0 to infinity. It may be asymmetric and
need not satisfy the triangle inequality (Bailie, Gong and Meng). Its unit is part of it: a
distance of 1 in households is not a distance of 1 in persons.

The multiset or tuple of records is meant at the resolution of the unit. The premetrics
that mechanisms here use can be computed for data sets that are written out; the others
are named, with their properties.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import model_validator

from discreet.config import Strict
from discreet.errors import BadInput

InputName = Literal[
    "hamming-of-multisets",
    "hamming",
    "symmetric-difference",
    "deletions",
    "neighbours",
    "graph",
    "edge",
    "node",
    "attribute",
    "values",
    "one-sided",
    "masked",
]


@dataclass(frozen=True)
class InputProperties:
    """What is known of an input premetric by its name; None: depends on its base or detail."""

    symbol: str
    definition: str
    #: Data sets with different numbers of records are infinitely far apart.
    bounded: bool | None
    ordered: bool | None
    metric: bool | None


INPUTS: dict[str, InputProperties] = {
    "hamming-of-multisets": InputProperties(
        "d_HamS",
        "number of {unit} records to change; infinite if the numbers of records differ",
        bounded=True,
        ordered=False,
        metric=True,
    ),
    "hamming": InputProperties(
        "d_Ham",
        "number of places at which the {unit} records differ; infinite if the lengths differ",
        bounded=True,
        ordered=True,
        metric=True,
    ),
    "symmetric-difference": InputProperties(
        "d_SymDiff",
        "number of {unit} records to add or remove",
        bounded=False,
        ordered=False,
        metric=True,
    ),
    "deletions": InputProperties(
        "d*_uv",
        "fewest {unit} records to delete from both lists to make them equal",
        bounded=False,
        ordered=True,
        metric=True,
    ),
    "neighbours": InputProperties(
        "d_r",
        "1 for data sets up to {within} apart in {base} of {unit}s, infinite for all others",
        bounded=None,
        ordered=None,
        metric=False,
    ),
    "graph": InputProperties(
        "d*",
        "length of the shortest path over permitted steps between {unit} records ({detail})",
        bounded=None,
        ordered=None,
        metric=None,
    ),
    "edge": InputProperties(
        "d_edge", "number of edges to change in a graph", bounded=True, ordered=True, metric=True
    ),
    "node": InputProperties(
        "d_node",
        "number of nodes to rewire with all their edges",
        bounded=True,
        ordered=True,
        metric=True,
    ),
    "attribute": InputProperties(
        "d_attr",
        "number of attributes of {unit} records to change",
        bounded=True,
        ordered=True,
        metric=True,
    ),
    "values": InputProperties(
        "d_values",
        "sum over {unit} records of the distance between their values ({detail})",
        bounded=True,
        ordered=True,
        metric=True,
    ),
    "one-sided": InputProperties(
        "d_one",
        "{base} of {unit}s in the protected direction only ({detail}), infinite in the other",
        bounded=None,
        ordered=None,
        metric=False,
    ),
    "masked": InputProperties(
        "d_masked",
        "{base} of {unit}s; infinite if the data sets differ in {detail}",
        bounded=None,
        ordered=None,
        metric=True,
    ),
}

#: Units from fine to coarse; a unit is made of units before it in the same line.
RESOLUTIONS = (
    ("attribute", "person", "household"),
    ("attribute", "event", "user-day", "user"),
    ("edge", "node"),
)

#: Which rows of a census a unit is counted in.
ROWS: dict[str, Literal["units", "persons"]] = {"person": "persons", "household": "units"}


PLURALS = {
    **{f"{unit}s": unit for line in RESOLUTIONS for unit in line},
    "people": "person",
    "households": "household",
    "units": "household",
}


class InputPremetric(Strict):
    """How far apart two data sets are, in changes of one `unit`.

    Parameters
    ----------
    name
        One of `INPUTS`.
    unit
        What one record is: person, household, event, user and so on.
    counts
        Whether a unit is a record of the file, which may be imputed from another, or a
        contributor whose data may stand behind several records.
    base, within
        For neighbours, masked and one-sided: the premetric they are made from, and the
        largest distance at which data sets are still neighbours.
    detail
        What base and name leave open, in words.
    """

    name: InputName
    unit: str
    counts: Literal["records", "contributors"] = "records"
    base: InputPremetric | None = None
    within: int = 1
    detail: str = ""

    @model_validator(mode="after")
    def _complete(self) -> InputPremetric:
        # A misspelt unit would lose its order among units, and what it counts.
        if self.unit in PLURALS:
            raise ValueError(f"unit is one of them: write '{PLURALS[self.unit]}'")
        needs_base = self.name in ("neighbours", "one-sided", "masked")
        if needs_base != (self.base is not None):
            raise ValueError(f"{self.name} {'needs a' if needs_base else 'has no'} base")
        if self.base is not None and (self.base.unit, self.base.counts) != (self.unit, self.counts):
            raise ValueError("the base is told in the same unit")
        if self.name in ("graph", "values", "one-sided", "masked") and not self.detail:
            raise ValueError(f"{self.name} needs a detail in words")
        if self.within < 1 or (self.within > 1 and self.name != "neighbours"):
            raise ValueError("within is a positive number, for neighbours only")
        return self

    @property
    def properties(self) -> InputProperties:
        """Return what is known by the name, that of the base where it decides."""
        own = INPUTS[self.name]
        if self.base is None:
            return own
        base = self.base.properties
        return InputProperties(own.symbol, own.definition, base.bounded, base.ordered, own.metric)

    @property
    def definition(self) -> str:
        """Return the definition in words."""
        return self.properties.definition.format(
            unit=self.unit,
            base=self.base and self.base.name,
            within=self.within,
            detail=self.detail,
        )

    @property
    def per(self) -> str:
        """Return what a budget is told for one of."""
        if self.unit.startswith("group of "):
            return self.unit
        return f"{self.unit} record" if self.counts == "records" else f"contributing {self.unit}"

    def told(self, **change: str) -> InputPremetric:
        """Return the premetric with another unit, or counting contributors; its base as well."""
        base = None if self.base is None else self.base.told(**change)
        return self.model_copy(update={**change, "base": base})

    def distance(self, x: Sequence[Hashable], y: Sequence[Hashable]) -> float:
        """Return the distance between two lists of records; infinity is a value.

        Order matters only to ordered premetrics.
        """
        if self.name == "neighbours" and self.base is not None:
            steps = self.base.distance(x, y)
            return 0 if steps == 0 else 1 if steps <= self.within else math.inf
        return _DISTANCES[self.name](x, y) if self.name in _DISTANCES else self._no_rule()

    def _no_rule(self) -> float:
        raise BadInput(f"the input premetric '{self.name}' is known by name only, not computed.")

    def finer_than(self, other: InputPremetric) -> bool:
        """Tell whether units of the other are made of units of this one."""
        return any(
            self.unit in line[: line.index(other.unit)]
            for line in RESOLUTIONS
            if other.unit in line
        )


def _hamming_of_multisets(x: Sequence[Hashable], y: Sequence[Hashable]) -> float:
    return (Counter(x) - Counter(y)).total() if len(x) == len(y) else math.inf


def _hamming(x: Sequence[Hashable], y: Sequence[Hashable]) -> float:
    if len(x) != len(y):
        return math.inf
    return sum(a != b for a, b in zip(x, y, strict=True))


def _symmetric_difference(x: Sequence[Hashable], y: Sequence[Hashable]) -> float:
    one, other = Counter(x), Counter(y)
    return (one - other).total() + (other - one).total()


def _deletions(x: Sequence[Hashable], y: Sequence[Hashable]) -> float:
    """Return |x| + |y| - 2 L, L the length of the longest common subsequence."""
    row = [0] * (len(y) + 1)
    for a in x:
        before = 0
        for j, b in enumerate(y, start=1):
            before, row[j] = row[j], before + 1 if a == b else max(row[j], row[j - 1])
    return len(x) + len(y) - 2 * row[-1]


_DISTANCES = {
    "hamming-of-multisets": _hamming_of_multisets,
    "hamming": _hamming,
    "symmetric-difference": _symmetric_difference,
    "deletions": _deletions,
}


def hamming_of_multisets(unit: str) -> InputPremetric:
    """Return half the symmetric difference of two equally large multisets of units."""
    return InputPremetric(name="hamming-of-multisets", unit=unit)


def symmetric_difference(unit: str) -> InputPremetric:
    """Return the number of units to add or remove."""
    return InputPremetric(name="symmetric-difference", unit=unit)


def neighbours(base: InputPremetric, within: int = 1) -> InputPremetric:
    """Return the relation "at most `within` apart" as a premetric of values 0, 1 and infinity.

    With `within` 1 this is the usual encoding of textbook differential privacy.
    """
    return InputPremetric(
        name="neighbours", unit=base.unit, counts=base.counts, base=base, within=within
    )
