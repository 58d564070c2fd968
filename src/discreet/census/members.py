"""What is counted of the members of units, from the kinds of persons and the units they live in.

The same as `Columns` makes by an aggregation of all persons, for columns that depend on
nothing but persons: conditions are looked at once for each kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import condition
from discreet.census.checks import Sight
from discreet.census.columns import Columns
from discreet.census.consistency import kind_of, made_from
from discreet.census.declarations import MemberCount, MemberValue
from discreet.census.linked import LinkedFiles, Numbers, Places
from discreet.census.schema import Schema
from discreet.engine import Engine, Frame, Texts

Computed = MemberCount | MemberValue

#: So many bits of a number hold digits.
NUMBER_BITS = 62


@dataclass(frozen=True)
class Members:
    """Counts and values of members, unit by unit."""

    #: Counts; and of values their place among `values`, where 0 stands for none.
    numbers: dict[str, Places]
    values: dict[str, list[str]]

    def of(self, units: NDArray[np.int64]) -> dict[str, Places | Texts]:
        """Return counts and values of some units; a value that is not there is empty."""
        return {
            name: Texts.of(self.values[name]).part(numbers[units])
            if name in self.values
            else numbers[units]
            for name, numbers in self.numbers.items()
        }


def member_columns(
    schema: Schema, names: Iterable[str], persons: Iterable[str]
) -> dict[str, Computed] | None:
    """Return the columns of members that `names` are made from and these persons can give.

    None if one of them depends on more than persons, or is not a text or a count.
    """
    sight = Sight(schema, {"units": {"unit_id"}, "persons": persons, "geography": ()})
    found: dict[str, Computed] = {}
    made = sorted({pair for name in names for pair in made_from(schema, name, "units")})
    for place, name in made:
        computed = schema.computed_units.get(name) if place == "units" else None
        if not isinstance(computed, Computed):
            continue
        inputs = _inputs(computed)
        if any(of != "persons" for i in inputs for of, _ in made_from(schema, i, "persons")):
            return None
        if (
            isinstance(computed, MemberValue)
            and kind_of(schema, "persons", computed.take) != "text"
        ):
            return None
        if sight.lacks("units", [name]) is None:
            found[name] = computed
    return found


def count_members(
    engine: Engine,
    schema: Schema,
    kinds: Frame,
    wanted: dict[str, Computed],
    files: LinkedFiles,
) -> Members | None:
    """Return the columns of members; `kinds` are the kinds of persons, numbered by `unit_id`.

    None if a value is the empty text, which here stands for one that is missing.
    """
    inputs = sorted({name for computed in wanted.values() for name in _inputs(computed)})
    frame = Columns(schema, lambda _place: kinds).add("persons", inputs)
    told = {name: _told(computed) for name, computed in wanted.items()}
    ordered = frame.select(nw.col("unit_id").cast(nw.Int64), **told).sort("unit_id")
    by_kind = engine.to_masked(ordered)
    counted = {
        name: by_kind[name].data
        for name, computed in wanted.items()
        if isinstance(computed, MemberCount)
    }
    numbers = _sums(counted, files)
    values: dict[str, list[str]] = {}
    for name in wanted.keys() - counted.keys():
        given = by_kind[name]
        if "" in given.compressed().tolist():
            return None
        values[name] = ["", *sorted({*given.compressed().tolist()})]
        place = {text: number for number, text in enumerate(values[name])}
        codes = np.array([place[text] for text in given.filled("").tolist()], dtype=np.int32)
        numbers[name] = _largest(codes, files)
    return Members(numbers, values)


def _inputs(computed: Computed) -> set[str]:
    if isinstance(computed, MemberCount):
        return {*condition.columns_of(computed.members)}
    return {computed.take, *condition.columns_of(computed.member)}


def _told(computed: Computed) -> nw.Expr:
    """Return, of one person: 1 if it counts, else 0; or the value it gives, if it does."""
    if isinstance(computed, MemberCount):
        counts = condition.to_expression(computed.members) if computed.members else nw.lit(True)
        return nw.when(counts).then(nw.lit(1)).otherwise(nw.lit(0)).cast(nw.Int32)
    return nw.when(condition.to_expression(computed.member)).then(nw.col(computed.take))


def _sums(flags: Mapping[str, NDArray[np.int32]], files: LinkedFiles) -> dict[str, Places]:
    """Return how many members of each unit have a kind with each flag.

    Several counts are added up at once, as the digits of one number.
    """
    from discreet.census.passes import add_up

    home, kinds = files.home, files.persons.kinds

    def total(numbers: Numbers) -> Numbers:
        totals = np.zeros(len(files.units.keys), dtype=np.int64)
        add_up(home, kinds, numbers, totals)
        return totals

    digit = int(total(np.ones(files.persons.many, dtype=np.int64)).max()).bit_length()
    found: dict[str, Places] = {}
    for begin in range(0, len(flags), NUMBER_BITS // digit):
        names = [*flags][begin : begin + NUMBER_BITS // digit]
        numbers = sum(flags[name].astype(np.int64) << digit * i for i, name in enumerate(names))
        totals = total(np.asarray(numbers))
        for i, name in enumerate(names):
            found[name] = (totals >> digit * i & ((1 << digit) - 1)).astype(np.int32)
    return found


def _largest(codes: Places, files: LinkedFiles) -> Places:
    """Return the largest code among the members of each unit, 0 where there is none."""
    from discreet.census.passes import keep_largest

    found = np.zeros(len(files.units.keys), dtype=np.int32)
    keep_largest(files.home, files.persons.kinds, codes, found)
    return found
