"""Fill occupied units and group quarters with persons."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.compiled import compiled, compiled_within
from discreet.simulate.draws import draw_origin, draw_size, is_hispanic, pick, race_code
from discreet.simulate.family import relate
from discreet.simulate.records import (
    FEMALE,
    MALE,
    OCCUPIED,
    QUARTERS,
    VACANT,
    Record,
    Rows,
)

Floats = npt.NDArray[np.float64]
Generator = np.random.Generator


@compiled
def draw_housing(rng: Generator, t: Record, units: Rows, race: Floats, rates: Floats) -> int:
    """Draw which housing units are vacant, and size and race of the others' households.

    `race` holds cumulative shares by block; `rates` by block: share vacant, share of
    households imputed, Hispanic shift. Return the number of persons to come.
    """
    persons = 0
    for i in range(units.size):
        unit = units[i]
        unit.imputed = rng.random() < rates[unit.block, 1]
        if rng.random() < rates[unit.block, 0]:
            unit.kind = VACANT
            unit.vacancy = 1 + pick(t.status, rng.random())
            continue
        group = pick(race[unit.block], rng.random())
        unit.race = group
        unit.hispanic = is_hispanic(rng, t, group, rates[unit.block, 2])
        unit.members = draw_size(rng, t, group)
        persons += unit.members
    return persons


@compiled_within
def _another_race(rng: Generator, t: Record, race: int) -> int:
    """Return a race other than `race`."""
    left = rng.random() * (t.other_race.sum() - t.other_race[race])
    last = race
    for k in range(7):
        if k != race:
            last = k
            left -= t.other_race[k]
            if left < 0:
                break
    return last


@compiled
def _differ(rng: Generator, t: Record, members: Rows, k: int, race: int, shift: float) -> None:
    hispanic = is_hispanic(rng, t, race, shift)
    members[k].hispanic = hispanic
    members[k].race = race_code(rng, t, race, hispanic)


@compiled_within
def _mix(rng: Generator, t: Record, members: Rows, race: int, couple: int, shift: float) -> None:
    """Give one or more members another race; children of two races may report both."""
    other = _another_race(rng, t, race)
    if couple > 0 and rng.random() < t.mixed_shares[0]:
        _differ(rng, t, members, 1, other, shift)
        both = t.code_of_mask[t.masks[members[0].race] | t.masks[members[1].race]]
        for k in range(2, members.size):
            if members[k].relationship == 25:
                u = rng.random()
                if u < t.mixed_shares[2]:
                    members[k].race = both
                elif u < 0.5 + t.mixed_shares[2] / 2:
                    members[k].race = members[1].race
        return
    one = 1 + int(rng.random() * (members.size - 1))
    several = rng.random() >= t.mixed_shares[1]
    for k in range(1, members.size):
        if k == one or (several and rng.random() < 0.5):
            _differ(rng, t, members, k, other, shift)


@compiled_within
def _race_members(
    rng: Generator, t: Record, members: Rows, unit: Record, couple: int, shift: float
) -> None:
    """Fill race, Hispanic origin and detailed groups of one household."""
    whole = rng.random() < t.whole_household
    race = int(unit.race)
    code = race_code(rng, t, race, int(unit.hispanic))
    for k in range(members.size):
        members[k].race = code
        members[k].hispanic = unit.hispanic
        if k > 0 and unit.hispanic == 1 and not whole:
            members[k].hispanic = int(rng.random() < 0.5)
    if members.size > 1 and rng.random() < t.mixed[race]:
        _mix(rng, t, members, race, couple, shift)
    group = draw_origin(rng, t, code)
    ethnicity = 1 + pick(t.ethnicity, rng.random())
    for k in range(members.size):
        own = k > 0 and (members[k].race != code or rng.random() >= t.inherit)
        members[k].origin = draw_origin(rng, t, int(members[k].race)) if own else group
        members[k].ethnicity = ethnicity if members[k].hispanic == 1 else 0


@compiled_within
def _tenure(rng: Generator, t: Record, race: int, couple: int, age: int) -> int:
    """Return 1 mortgage, 2 owned free, 3 rented, 4 no rent."""
    band = 0 if age < 25 else 1 if age < 35 else 2 if age < 45 else 3 if age < 65 else 4
    owner = t.owner[race] * t.owner_age[band] * t.owner_couple[0 if couple > 0 else 1]
    if rng.random() < min(owner, 0.96):
        return 1 if rng.random() < t.mortgage[band] else 2
    return 4 if rng.random() < t.no_rent else 3


@compiled
def fill_households(rng: Generator, t: Record, units: Rows, persons: Rows, shift: Floats) -> int:
    """Fill the persons of all occupied units, in order, and their tenure.

    `shift` is the Hispanic shift by block. Return the number of persons filled.
    """
    first = 0
    for i in range(units.size):
        unit = units[i]
        if unit.kind != OCCUPIED:
            continue
        members = persons[first : first + unit.members]
        couple = relate(rng, t, members, int(unit.race))
        _race_members(rng, t, members, unit, couple, shift[unit.block])
        unit.tenure = _tenure(rng, t, int(unit.race), couple, int(members[0].age))
        for k in range(members.size):
            members[k].unit = i
            members[k].imputed = unit.imputed or rng.random() < t.person_imputed
        first += members.size
    return first


@compiled
def fill_quarters(
    rng: Generator, t: Record, q: Record, units: Rows, residents: Rows, race: Floats, mean: Floats
) -> None:
    """Fill the residents of all group quarters, in order.

    Race follows the county's mix (`race`, cumulative), age and sex the type of quarters;
    `mean` holds the county's imputation rate and Hispanic shift.
    """
    at = 0
    for i in range(units.size):
        if units[i].kind != QUARTERS:
            continue
        kind = units[i].quarters - 1
        for _ in range(units[i].members):
            person = residents[at]
            band = pick(q.age_share[kind], rng.random())
            low, high = q.age_low[kind, band], q.age_high[kind, band]
            group = pick(race, rng.random())
            person.unit = i
            person.age = int(low + rng.random() * (high - low + 1))
            person.sex = MALE if rng.random() < q.male[kind] else FEMALE
            hispanic = is_hispanic(rng, t, group, mean[1])
            code = race_code(rng, t, group, hispanic)
            person.hispanic, person.race = hispanic, code
            person.relationship = 37 if q.institutional[kind] == 1 else 38
            person.origin = draw_origin(rng, t, code)
            person.ethnicity = 1 + pick(t.ethnicity, rng.random()) if hispanic == 1 else 0
            person.imputed = rng.random() < mean[0]
            at += 1
