"""Count a census by the kinds of its persons and units: the one step that reads it.

One pass over the persons gives the kind of each, as a small number, and the race of every
householder, which is part of the kind of the unit. Both kinds joined give the number of
persons of each pair. What truncation leaves out is counted for every filter and threshold,
and shared by the tables that have them. From there on work is on a few hundred thousand
pairs of kinds, however large the census is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import Census
from discreet.engine import Frame
from discreet.errors import BadInput
from discreet.products.sdhc.groups import PERSON_COLUMNS, PUERTO_RICO, STATES, UNIT_COLUMNS
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


def tally_census(
    census: Census,
    thresholds: Mapping[str, int],
    states: Sequence[str],
    tables: Collection[str] = tuple(SHELLS),
) -> Tally:
    """Count a census by kinds, for tables of units and those of persons with a threshold.

    Columns that none of the `tables` looks at need not be there, and are not told apart.
    """
    engine, places = census.engine, tuple(sorted(states))
    _check_states(census, places)
    persons = engine.materialise(_persons(census))
    # Two householders in a unit are refused here, as `_cuts` needs.
    units = _units(census, places, persons, tables)
    joined = persons.join(units, on="unit_id", how="inner")
    cuts = {Cut.of(SHELLS[name].persons, tau) for name, tau in thresholds.items()}
    return Tally(
        places,
        _entries(engine.to_numpy(joined.group_by("unit", "person").agg(count=nw.len()))),
        _entries(engine.to_numpy(units.group_by("unit").agg(count=nw.len()))),
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
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        raise BadInput(
            f"states: the geography of this census has no block in {', '.join(lost[:5])}{more}. "
            f"List the states it covers."
        )


def _persons(census: Census, *own: str) -> Frame:
    """Return `unit_id`, other columns asked for, `person` and `head` of every person.

    `person` is the kind. Race and Hispanic origin of adults matter in no table, and are left
    out of it; those of householders, in the numbers of a kind, are `head`, missing for others.
    """
    engine = census.engine
    told = {
        "place": PERSON_KINDS.sql("relationship", "age"),
        "who": PERSON_KINDS.sql("race", "hispanic"),
        "child": f"age between {UNDER_18[0]} and {UNDER_18[-1]}",
        "first": f"relationship = '{HOUSEHOLDER}'",
    }
    # Small numbers: this is kept for every person, and spilled where memory is short.
    kinds = {
        "person": "(place + case when child then who else 0 end)::smallint",
        "head": "(case when first then who end)::tinyint",
    }
    kept = _kept(["unit_id", *own])
    rows = census.frame("persons", ["unit_id", *own, *PERSON_COLUMNS])
    return engine.project(engine.project(rows, kept | told), kept | kinds)


def _kept(names: Sequence[str]) -> dict[str, str]:
    """Return columns to keep, in SQL."""
    return {name: f'"{name}"' for name in names}


def _units(census: Census, states: Sequence[str], persons: Frame, tables: Collection[str]) -> Frame:
    """Return `unit_id` and `unit` of every housing unit.

    `unit` is the number of the state times the number of kinds, plus the kind.
    """
    engine = census.engine
    looked_at = {"kind"}.union(*(SHELLS[table].columns for table in tables))
    own = [n for n in UNIT_COLUMNS if n in looked_at and not n.startswith("householder_")]
    bases = np.arange(len(states), dtype=np.int32) * UNIT_KINDS.number
    listed = engine.from_numpy({"state": np.array(states, dtype=object), "base": bases})
    rows = census.frame("units", ["unit_id", *own, "state"])
    rows = rows.filter(nw.col("kind").is_in(("occupied", "vacant")))
    recoded = engine.project(rows, _kept(["unit_id", "state"]) | {"own": UNIT_KINDS.sql(*own)})
    housing = recoded.join(listed, on="state", how="inner")
    housing = engine.materialise(housing.select("unit_id", unit=nw.col("base") + nw.col("own")))
    # The columns of householders are the last ones of a kind, so their numbers are added.
    heads = persons.filter(~nw.col("head").is_null()).select("unit_id", "head")
    joined = housing.join(heads, on="unit_id", how="left")
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


def _cuts(census: Census, persons: Frame, units: Frame, cuts: set[Cut]) -> dict[Cut, Entries]:
    """Return the persons that each cut leaves out; only members of large units are ranked."""
    if not cuts:
        return {}
    engine = census.engine
    ordered = sorted(cuts, key=lambda cut: (cut.threshold, cut.classes))
    found = units.join(large_units(engine, persons, ordered), on="unit_id", how="inner")
    large = engine.materialise(found)
    members = _persons(census.members(large), "person_key")
    members = engine.materialise(members.join(large, on="unit_id", how="inner"))
    arrays = engine.to_numpy(left_out(engine, members, ordered))
    return {
        cut: _entries(arrays | {"count": arrays[f"cut{place}"]})
        for place, cut in enumerate(ordered)
    }


def _entries(arrays: Mapping[str, NDArray[Any]]) -> Entries:
    """Return counts by kind in order, so that nothing depends on the engine's."""
    unit, count = (arrays[name].astype(np.int64) for name in ("unit", "count"))
    person = arrays["person"].astype(np.int64) if "person" in arrays else np.zeros_like(unit)
    order = np.lexsort((person, unit))
    order = order[count[order] > 0]
    state, kind = np.divmod(unit[order], UNIT_KINDS.number)
    return Entries(state, kind, person[order], count[order])
