"""What follows from the members of a unit: household types, ordinals, donors.

HHT, HHT2, CPLT and NPF by the definitions of the 2020 Census: a family is a householder
and at least one relative (an unmarried partner is none); own children are biological,
adopted or step, under 18.
"""

from __future__ import annotations

import numpy as np

from discreet.compiled import compiled, compiled_within
from discreet.simulate.records import FEMALE, OCCUPIED, Record, Rows

#: Couple type by relationship 21 to 24.
_COUPLE = (1, 3, 2, 4)


@compiled_within
def _derive(unit: Record, members: Rows) -> None:
    couple, own, relatives = 5, False, 0
    for k in range(1, members.size):
        related = members[k].relationship
        if related <= 24:
            couple = _COUPLE[related - 21]
        elif related <= 33:
            relatives += 1
            own = own or (related <= 27 and members[k].age < 18)
    married = couple <= 2
    female = members[0].sex == FEMALE
    family = 1 + relatives + int(married)
    if married:
        unit.household_type = 1
    elif relatives > 0:
        unit.household_type = 3 if female else 2
    else:
        unit.household_type = (6 if female else 4) + int(members.size > 1)
    if couple < 5:
        unit.household_type2 = (1 if married else 3) + int(not own)
    else:
        kind = 0 if members.size == 1 else 1 if own else 2 if relatives > 0 else 3
        unit.household_type2 = (5 if female else 9) + kind
    unit.couple_type = couple
    unit.family_size = family if family > 1 else 0


@compiled_within
def _number_twins(members: Rows) -> None:
    """Give identical records of one household the ordinals 1, 2, ..."""
    for k in range(members.size):
        a, ordinal = members[k], 1
        for j in range(k):
            b = members[j]
            if (
                a.age == b.age
                and a.sex == b.sex
                and a.race == b.race
                and a.relationship == b.relationship
                and a.origin == b.origin
                and a.hispanic == b.hispanic
                and a.ethnicity == b.ethnicity
                and a.imputed == b.imputed
            ):
                ordinal += 1
        a.ordinal = ordinal


@compiled
def derive_households(units: Rows, persons: Rows) -> None:
    """Fill household types of occupied units and the ordinals of their members."""
    first = 0
    for i in range(units.size):
        if units[i].kind == OCCUPIED:
            members = persons[first : first + units[i].members]
            _derive(units[i], members)
            _number_twins(members)
            first += members.size


def number_residents(residents: Rows) -> None:
    """Give identical records of group quarters, which may be large, the ordinals 1, 2, ..."""
    if residents.size == 0:
        return
    names = ("age", "sex", "race", "hispanic", "origin", "ethnicity", "imputed", "unit")
    columns = [residents[name].astype(np.int64) for name in names]
    order = np.lexsort(columns)
    changes = np.zeros(order.size, dtype=bool)
    changes[0] = True
    for column in columns:
        changes[1:] |= np.diff(column[order]) != 0
    place = np.arange(order.size)
    run_start = np.maximum.accumulate(np.where(changes, place, 0))
    residents["ordinal"][order] = place - run_start + 1


@compiled
def find_donors(persons: Rows) -> bool:
    """Give every imputed person the nearest earlier reported person as donor.

    The sequential hot deck: the last record seen that may serve. At the start of the
    area the first such record serves. Only first records among identical ones serve, so a
    donor's key needs no look at its unit. Return whether anybody may serve at all.
    """
    donor = -1
    for k in range(persons.size):
        if persons[k].imputed == 0 and persons[k].ordinal == 1:
            donor = k
            break
    for k in range(persons.size):
        persons[k].donor = -1
        if persons[k].imputed == 1:
            persons[k].donor = donor
        elif persons[k].ordinal == 1:
            donor = k
    return donor >= 0
