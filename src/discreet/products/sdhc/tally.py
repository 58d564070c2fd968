"""Count a census by the kinds of its persons and units: the one step that reads it.

One pass over the persons, joined to the kind of their unit, gives the number of persons of
each pair of kinds; a pass over units gives theirs. What truncation leaves out is counted
once for every filter and threshold, and shared by the tables that have them. From there on
work is on a few hundred thousand pairs of kinds, however large the census is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import Census
from discreet.engine import Engine, Frame
from discreet.errors import BadInput
from discreet.products.sdhc.groups import PUERTO_RICO, STATES
from discreet.products.sdhc.recode import PERSON_KINDS, UNIT_KINDS, Numbers
from discreet.products.sdhc.shells import HOUSEHOLDER, SHELLS, UNDER_18
from discreet.products.sdhc.truncate import Cut, large_units, left_out

MEND = "Run `discreet validate` and mend the census."


@dataclass(frozen=True)
class Entries:
    """So many records of each state, kind of unit and kind of person."""

    state: Numbers
    unit: Numbers
    person: Numbers
    count: Numbers

    def __add__(self, other: Entries) -> Entries:
        """Return both together."""
        return Entries(
            np.concatenate([self.state, other.state]),
            np.concatenate([self.unit, other.unit]),
            np.concatenate([self.person, other.person]),
            np.concatenate([self.count, other.count]),
        )

    def __neg__(self) -> Entries:
        """Return the entries to take off."""
        return Entries(self.state, self.unit, self.person, -self.count)

    def where(self, chosen: NDArray[np.bool_]) -> Entries:
        """Return some of the entries."""
        parts = (self.state, self.unit, self.person, self.count)
        return Entries(*(part[chosen] for part in parts))


@dataclass(frozen=True)
class Tally:
    """A census by kinds: persons, housing units, and the persons that cuts leave out."""

    states: tuple[str, ...]
    persons: Entries = field(repr=False)
    units: Entries = field(repr=False)
    cuts: Mapping[Cut, Entries] = field(repr=False)
    #: Counts by state, group and cell that all levels of a table share, by table and threshold.
    bases: dict[tuple[str, int | None], Numbers] = field(
        default_factory=dict, repr=False, compare=False
    )


def tally_census(census: Census, thresholds: Mapping[str, int], states: Sequence[str]) -> Tally:
    """Count a census by kinds, for all tables of units and those of persons with a threshold."""
    engine, places, size = census.engine, tuple(sorted(states)), UNIT_KINDS.number
    _check_states(census, places)
    units, persons = _units(census, places), _persons(census)
    joined = persons.join(units, on="unit_id", how="inner")
    cuts = {Cut.of(SHELLS[name].persons, tau) for name, tau in thresholds.items()}
    return Tally(
        places,
        _entries(engine, joined.group_by("unit", "person").agg(count=nw.len()), size),
        _entries(engine, units.group_by("unit").agg(count=nw.len()), size),
        _cuts(census, persons, units, cuts),
    )


def _check_states(census: Census, states: Sequence[str]) -> None:
    states_there = census.engine.distinct(census.geography.select("state"))
    known = {row[0] for row in census.engine.rows(states_there)}
    strange = known - {*STATES, PUERTO_RICO}
    if strange:  # dropping their units would be dropping them silently
        raise BadInput(
            f"geography: {len(strange)} codes of states are none of a state, of DC or of Puerto "
            f"Rico. {MEND}"
        )
    lost = [state for state in states if state not in known]
    if lost:
        raise BadInput(
            f"states: the geography of this census has no block in {', '.join(lost)}. "
            f"List the states it covers."
        )


def _units(census: Census, states: Sequence[str]) -> Frame:
    """Return `unit_id` and `unit` of every housing unit, counted from one scan of each table.

    `unit` is the number of the state times the number of kinds, plus the kind.
    """
    engine = census.engine
    of_head = {f"householder_{name}": name for name in ("race", "hispanic")}
    own = [axis.column for axis in UNIT_KINDS.axes if axis.column not in of_head]
    rows = census.frame("units", ["unit_id", "state", *own])
    rows = rows.filter(nw.col("kind").is_in(("occupied", "vacant")))
    numbers = np.arange(len(states), dtype=np.int32) * UNIT_KINDS.number
    listed = {"state": np.array(states, dtype=object), "base": numbers}
    rows = rows.join(engine.from_numpy(listed), on="state", how="inner")
    unknown = {name: nw.lit(0, dtype=nw.Int32) for name in of_head}
    housing = engine.materialise(
        rows.select("unit_id", unit=nw.col("base") + UNIT_KINDS.expression(unknown))
    )
    heads = census.frame(
        "persons", ["unit_id", *of_head.values()], where={"relationship": [HOUSEHOLDER]}
    )
    heads = heads.rename({name: column for column, name in of_head.items()})
    # The columns of householders are the last ones of a kind, so their numbers are added.
    race, hispanic = UNIT_KINDS.axes[-2:]
    head = race.expression() * hispanic.size + hispanic.expression()
    joined = housing.join(heads.select("unit_id", head=head), on="unit_id", how="left")
    units = engine.materialise(
        joined.select("unit_id", unit=nw.col("unit") + nw.col("head").fill_null(0))
    )
    before, after = (engine.rows(one.select(rows=nw.len()))[0][0] for one in (housing, units))
    if after != before:
        raise BadInput(
            f"units: {after - before} persons are householders of a housing unit that has one "
            f"already; an occupied unit has exactly one householder. {MEND}"
        )
    return units


def _persons(census: Census, *own: str) -> Frame:
    """Return `unit_id`, other columns asked for, and the kind (`person`) of every person.

    Race and Hispanic origin of adults matter in no table, and are left out of their kind.
    """
    columns = [axis.column for axis in PERSON_KINDS.axes]
    rows = census.frame("persons", ["unit_id", *own, *columns])
    child = (nw.col("age") >= UNDER_18[0]) & (nw.col("age") <= UNDER_18[-1])
    kinds = {
        name: nw.when(child).then(PERSON_KINDS.axis(name).expression()).otherwise(0)
        for name in ("race", "hispanic")
    }
    return rows.select("unit_id", *own, person=PERSON_KINDS.expression(kinds))


def _cuts(census: Census, persons: Frame, units: Frame, cuts: set[Cut]) -> dict[Cut, Entries]:
    """Return the persons that each cut leaves out; only members of large units are ranked."""
    if not cuts:
        return {}
    engine, size = census.engine, UNIT_KINDS.number
    ordered = sorted(cuts, key=lambda cut: (cut.threshold, cut.classes))
    found = units.join(large_units(persons, ordered), on="unit_id", how="inner")
    large = engine.materialise(found)
    members = _persons(census.members(large), "person_key")
    members = engine.materialise(members.join(large, on="unit_id", how="inner"))
    return {cut: _entries(engine, left_out(members, cut), size) for cut in ordered}


def _entries(engine: Engine, counted: Frame, size: int) -> Entries:
    """Return counts by kind as arrays, in order, so that nothing depends on the engine's."""
    names = counted.collect_schema().names()
    order = [name for name in ("unit", "person") if name in names]
    arrays = engine.to_numpy(counted.sort(*order))
    unit = arrays["unit"].astype(np.int64)
    person = arrays["person"].astype(np.int64) if "person" in names else np.zeros_like(unit)
    return Entries(unit // size, unit % size, person, arrays["count"].astype(np.int64))
