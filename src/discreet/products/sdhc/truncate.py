"""Find the persons that truncation leaves out: all but the first tau of a unit.

The order is that of `person_key`, a hash of the record alone, so it does not depend on
other records; only the rank among the persons that pass the filter of the table does.
Few units are larger than a threshold, so only those are ranked, and what is left out is
taken off the counts of all persons.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import narwhals as nw

from discreet.engine import Engine, Frame
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
    def sql(self) -> str:
        """Return 1 for persons that pass the filter and missing for others, in SQL."""
        tests = (
            f"{PERSON_KINDS.class_sql('person', name)} in ({', '.join(map(str, classes))})"
            for name, classes in self.classes
        )
        return f"case when {' and '.join(['person >= 0', *tests])} then 1 end"


def large_units(engine: Engine, persons: Frame, cuts: Iterable[Cut]) -> Frame:
    """Return `unit_id` of the units that some cut truncates.

    `persons` has `unit_id`, the kind (`person`), and `head`, missing for all but the one
    householder of a unit. Persons are counted per unit, which is the one step whose state
    grows with the number of units; the engine spills it.
    """
    asked = [*cuts]
    asked = [one for one in asked if not any(o.covers(one) for o in asked if o != one)]
    named = {f"cut{place}": cut for place, cut in enumerate(asked)}
    # Few units have so many others that they could be large: filters are tried on those alone.
    least = min(cut.threshold for cut in asked)
    others = persons.filter(nw.col("head").is_null()).group_by("unit_id").agg(others=nw.len())
    crowded = persons.join(others.filter(nw.col("others") >= least), on="unit_id", how="semi")
    passing = {name: cut.sql for name, cut in named.items()}
    marked = engine.project(crowded, {"unit_id": "unit_id", **passing})
    counted = marked.group_by("unit_id").agg(**{name: nw.col(name).count() for name in named})
    large = (nw.col(name) > cut.threshold for name, cut in named.items())
    return counted.filter(functools.reduce(operator.or_, large)).select("unit_id")


def left_out(engine: Engine, members: Frame, cuts: Sequence[Cut]) -> Frame:
    """Return `unit`, `person`, `cut0`, ...: persons beyond each threshold, by their kinds.

    `members` are all persons of large units: `unit_id`, `unit`, `person`, `person_key`. All
    cuts rank in one order, so members are sorted once.
    """
    named = {f"cut{place}": cut for place, cut in enumerate(cuts)}
    kept = {name: name for name in ("unit_id", "unit", "person", "person_key")}
    marked = engine.project(members, kept | {name: cut.sql for name, cut in named.items()})
    # Two keys of a unit meet once in 2^60; persons of one kind are interchangeable.
    order = ["person_key", "person"]
    ranks = {f"rank_{n}": nw.col(n).cum_count().over("unit_id", order_by=order) for n in named}
    beyond = {
        name: nw.when(nw.col(f"rank_{name}") > cut.threshold).then(nw.col(name)).count()
        for name, cut in named.items()
    }
    return marked.with_columns(**ranks).group_by("unit", "person").agg(**beyond)
