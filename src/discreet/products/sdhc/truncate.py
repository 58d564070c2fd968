"""Find the persons that truncation leaves out: all but the first tau of a unit.

The order is that of `person_key`, a hash of the record alone, so it does not depend on
other records; only the rank among the persons that pass the filter of the table does.
Few units are larger than a threshold, so only those are ranked, and what is left out is
taken off the counts of all persons.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass

import narwhals as nw

from discreet.engine import Frame
from discreet.products.sdhc.groups import Condition
from discreet.products.sdhc.recode import PERSON_KINDS


@dataclass(frozen=True)
class Cut:
    """Keep the first `threshold` persons of a unit among those of some classes."""

    classes: tuple[tuple[str, tuple[int, ...]], ...]
    threshold: int

    @classmethod
    def of(cls, persons: Condition, threshold: int) -> Cut:
        """Return the cut of a table with this filter of persons."""
        asked = sorted(persons.items())
        return cls(
            tuple((name, tuple(PERSON_KINDS.axis(name).meant(allowed))) for name, allowed in asked),
            threshold,
        )

    def covers(self, other: Cut) -> bool:
        """Tell whether every unit that the other cut truncates is large for this one too."""
        narrow = dict(other.classes)
        return self.threshold <= other.threshold and all(
            name in narrow and set(narrow[name]) <= set(classes) for name, classes in self.classes
        )

    @property
    def chosen(self) -> nw.Expr:
        """Return which persons pass the filter."""
        chosen = nw.col("person") >= 0
        for name, classes in self.classes:
            chosen = chosen & PERSON_KINDS.class_expression("person", name).is_in(classes)
        return chosen


def large_units(persons: Frame, cuts: Iterable[Cut]) -> Frame:
    """Return `unit_id` of the units that some cut truncates.

    `persons` has `unit_id` and the kind, `person`. Persons are counted per unit, which is the
    one step whose state grows with the number of units; the engine spills it.
    """
    asked = [*cuts]
    asked = [one for one in asked if not any(o.covers(one) for o in asked if o != one)]
    counts = {
        f"n{place}": nw.when(cut.chosen).then(nw.col("person")).count()
        for place, cut in enumerate(asked)
    }
    large = [nw.col(f"n{place}") > cut.threshold for place, cut in enumerate(asked)]
    counted = persons.group_by("unit_id").agg(**counts)
    return counted.filter(functools.reduce(operator.or_, large)).select("unit_id")


def left_out(members: Frame, cut: Cut) -> Frame:
    """Return `unit`, `person`, `count`: persons beyond the threshold, by their kinds.

    `members` are all persons of large units: `unit_id`, `unit`, `person`, `person_key`.
    """
    # Two keys of a unit meet once in 2^60; persons of one kind are interchangeable.
    place = nw.col("one").cum_sum().over("unit_id", order_by=["person_key", "person"])
    passing = members.filter(cut.chosen).with_columns(one=nw.lit(1))
    beyond = passing.with_columns(place=place).filter(nw.col("place") > cut.threshold)
    return beyond.group_by("unit", "person").agg(count=nw.len())
