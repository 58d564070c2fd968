"""Who lives together: relationships first, then ages and sexes that fit them.

Ours. A mother is 15 to 46 at birth, couples are close in age, grown children mostly live
elsewhere; so every household is coherent, and its type can be derived from its members.
The limits on age by relationship are those the 2020 Census treats as impossible beyond.
"""

from __future__ import annotations

import numpy as np

from discreet.compiled import compiled, compiled_within
from discreet.simulate.draws import pick
from discreet.simulate.records import FEMALE, MALE, Record, Rows

Generator = np.random.Generator


@compiled_within
def _householder_age(rng: Generator, t: Record, couple: int, size: int) -> int:
    if size == 1:
        row = 0
    elif couple > 0:
        row = min(size, 4) - 1
    else:
        row = 4 if size == 2 else 5
    group = pick(t.householder_age[row], rng.random())
    if group == 0:
        # Householders under 18 exist but are rare.
        return 18 + int(2 * rng.random()) if rng.random() < 0.97 else 15 + int(3 * rng.random())
    if group < 14:
        return 15 + 5 * group + int(5 * rng.random())
    age = 85
    while age < 105 and rng.random() < t.oldest:
        age += 1
    return age


@compiled_within
def _birth_age(rng: Generator, t: Record) -> float:
    """Return a mother's age at birth, in its limits."""
    age = t.mother[0] + t.mother[1] * rng.standard_normal()
    return float(min(max(age, t.mother[2]), t.mother[3]))


@compiled_within
def _child_age(rng: Generator, t: Record, parent: int) -> int:
    """Return the age of a child at home of a parent of that age.

    An age is kept with the probability that a child of that age is still at home, else
    another birth is drawn.
    """
    for _ in range(8):
        age = parent - _birth_age(rng, t)
        if age < 0:
            continue
        home = 1.0
        for k in range(t.at_home.shape[0]):
            if age >= t.at_home[k, 0]:
                home = t.at_home[k, 1]
        if rng.random() < home:
            return min(int(age), 89)
    low, high = max(0, parent - int(t.mother[3])), max(0, parent - int(t.mother[2]))
    return min(low + int(rng.random() * (high - low + 1)), 89)


@compiled
def _between(low: float, value: float, high: float) -> int:
    # Floats in every call: Numba would compile the function anew for every mix of types.
    return int(min(max(value, low), high))


@compiled_within
def _relationship(rng: Generator, t: Record, couple: int, age: int) -> int:
    """Return how a further member is related to a householder of that age."""
    alone = 0 if couple > 0 else 1
    band = 0 if age < 25 else 1 if age < 45 else 2 if age < 65 else 3
    if rng.random() < t.child[alone, band] * (0.8 if couple == 2 else 1.0):
        return 25 + pick(t.child_kind[alone], rng.random())
    found = 28 + pick(t.others[alone, band], rng.random())
    # What the ages or the couple rule out becomes the nearest relationship they allow.
    if (found == 30 and age < 36) or (found == 32 and age < 38):
        return 33
    if (found == 31 and couple != 1) or (found == 35 and age < 21):
        return 36
    return found


@compiled_within
def _member_age(
    rng: Generator, t: Record, related: int, age: int, parent: int, partner: int
) -> int:
    """Return the age of a member.

    `age` is the householder's, `parent` the age that children are counted from, `partner`
    the age of spouse or partner, or zero.
    """
    if related <= 27:
        return _child_age(rng, t, parent)
    if related == 28:
        return _between(0.0, age + 5.0 * rng.standard_normal(), 105.0)
    if related == 29:
        return _between(30.0, age + _birth_age(rng, t), 105.0)
    if related == 30:
        return _between(0.0, age - 48 - 8.0 * rng.standard_normal(), min(age - 30.0, 74.0))
    if related == 31:
        return _between(30.0, partner + _birth_age(rng, t), 105.0)
    if related == 32:
        return _between(18.0, age - _birth_age(rng, t), min(age - 15.0, 89.0))
    if related == 34:
        return _between(min(age, 18.0), age + 7.0 * rng.standard_normal(), 90.0)
    if related == 35:
        return int(21 * rng.random())
    if related == 36 and partner > 0 and rng.random() < 0.6:
        # In a cohabiting couple the partner's children are not related to the householder.
        return _child_age(rng, t, partner)
    return int(70 * rng.random())


@compiled_within
def _member_sex(rng: Generator, related: int) -> int:
    male = 0.512 if related <= 27 or related == 35 else 0.5
    if related in (29, 31):
        male = 0.28
    elif related == 34:
        male = 0.56
    return MALE if rng.random() < male else FEMALE


@compiled_within
def _couple(rng: Generator, t: Record, race: int, size: int) -> int:
    """Return 0 for no partner, 1 for married, 2 for cohabiting."""
    if size == 1:
        return 0
    u = rng.random()
    column = min(size, 7) - 2
    if u < t.married[race, column]:
        return 1
    return 2 if u < t.married[race, column] + t.cohabiting[race, column] else 0


@compiled_within
def relate(rng: Generator, t: Record, members: Rows, race: int) -> int:
    """Fill relationship, age and sex of one household; return its couple (0, 1, 2).

    The first member is the householder, the second the spouse or partner, if any.
    """
    size = members.size
    couple = _couple(rng, t, race, size)
    age = _householder_age(rng, t, couple, size)
    kind = 0 if size == 1 else 1 if couple > 0 else 2
    sex = FEMALE if rng.random() < t.female[kind] else MALE
    head = members[0]
    head.relationship, head.age, head.sex = 20, age, sex
    known, parent, partner = 1, age, 0
    if couple > 0:
        same = rng.random() < t.same_sex[couple - 1]
        gap = t.gap[1] * rng.standard_normal() + (t.gap[0] if sex == FEMALE else -t.gap[0])
        youngest = 18.0 if age >= 18 else 15.0
        partner = _between(max(youngest, age - 20.0), age + gap, min(age + 20.0, 105.0))
        second = members[1]
        second.relationship, second.age = 20 + couple + 2 * int(same), partner
        second.sex = sex if same else 1 - sex
        # Children are counted from the mother where there is one.
        parent = partner if sex == MALE and not same else age
        known = 2
    _relate_others(rng, t, members[known:], couple, age, parent, partner)
    return couple


@compiled_within
def _relate_others(
    rng: Generator, t: Record, members: Rows, couple: int, age: int, parent: int, partner: int
) -> None:
    parents, in_laws = 0, 0
    for k in range(members.size):
        related = _relationship(rng, t, couple, age)
        if related == 29:
            parents += 1
            related = 33 if parents > 2 or age > 75 else 29
        elif related == 31:
            in_laws += 1
            related = 33 if in_laws > 2 or partner > 75 else 31
        members[k].relationship = related
        members[k].age = _member_age(rng, t, related, age, parent, partner)
        members[k].sex = _member_sex(rng, related)
