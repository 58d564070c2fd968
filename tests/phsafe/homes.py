"""Households written out by hand or drawn at random, as rows and as a census."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.census import Census, load_schema, with_person_key
from discreet.engine import Engine
from worlds import columns, text

BLOCK = "0010001001000"


@dataclass(frozen=True)
class Person:
    age: int
    relationship: str
    sex: str = "1"
    race: str = "01"
    hispanic: str = "1"


@dataclass(frozen=True)
class Home:
    """A housing unit; without `types` (HHT, HHT2, CPLT) they follow from the members.

    With `quarters` it is a group quarters, whose residents no table counts.
    """

    unit_id: int
    members: tuple[Person, ...]
    tenure: str | None = "1"
    state: str = "50"
    types: tuple[str | None, str | None, str | None] | None = None
    quarters: bool = False

    @property
    def kind(self) -> str:
        if self.quarters:
            return "group_quarters"
        return "occupied" if self.members else "vacant"

    def written(self) -> tuple[str | None, str | None, str | None]:
        if self.quarters:
            return None, None, None
        return types_of(self.members) if self.types is None else self.types

    def having(self, **changes) -> Home:
        return replace(self, **changes)


def types_of(members: Sequence[Person]) -> tuple[str | None, str | None, str | None]:
    """Return HHT, HHT2 and CPLT by their definitions; nothing for a vacant unit."""
    if not members:
        return None, None, None
    kinds = [person.relationship for person in members]
    sex = next(person.sex for person in members if person.relationship == "20")
    spouse, partner = {"21", "23"} & set(kinds), {"22", "24"} & set(kinds)
    own = any(p.relationship in ("25", "26", "27") and p.age < 18 for p in members)
    relatives = any("25" <= kind <= "33" for kind in kinds)
    alone = len(members) == 1
    if spouse:
        first = "1"
    elif relatives:
        first = "2" if sex == "1" else "3"
    else:
        first = {("1", True): "4", ("1", False): "5", ("2", True): "6", ("2", False): "7"}[
            sex, alone
        ]
    if spouse or partner:
        second = {(True, True): "01", (True, False): "02", (False, True): "03"}.get(
            (bool(spouse), own), "04"
        )
    else:
        rank = 0 if alone else 1 if own else 2 if relatives else 3
        second = f"{(9 if sex == '1' else 5) + rank:02d}"
    couple = {"21": "1", "23": "2", "22": "3", "24": "4"}
    return first, second, next((couple[kind] for kind in kinds if kind in couple), "5")


def census_of(
    engine: Engine,
    homes: Sequence[Home],
    *,
    states: Sequence[str] | None = None,
    residents: int = 2,
    order: random.Random | None = None,
) -> Census:
    """Return the census of some homes, with a vacant unit and group quarters in each state.

    Half of the residents of group quarters, rounded up, are in an institution.
    """
    schema = load_schema("us-decennial")
    places = sorted(states or {home.state for home in homes})
    units, persons = [], []
    for home in homes:
        block = home.state + BLOCK
        tenure = home.tenure if home.kind == "occupied" else None
        gq_type = "501" if home.quarters else None
        units.append((home.unit_id, block, home.kind, gq_type, tenure, *home.written()))
        persons += [(home.unit_id, *_row(person)) for person in home.members]
    for number, state in enumerate(places):
        block, first = state + BLOCK, 800_000_000 + 3 * number
        units.append((first, block, "group_quarters", "501", None, None, None, None))
        units.append((first + 1, block, "vacant", None, None, None, None, None))
        units.append((first + 2, block, "group_quarters", "301", None, None, None, None))
        persons += [(first, *_row(Person(19, "38")))] * (residents // 2)
        persons += [(first + 2, *_row(Person(85, "37")))] * (residents - residents // 2)
    if order is not None:
        order.shuffle(units)
        order.shuffle(persons)
    geography = {
        name: text([(state + BLOCK)[:length] for state in places])
        for name, length in zip(schema.levels, (2, 5, 11, 12, 15), strict=True)
    }
    types = ["household_type", "household_type2", "couple_type"]
    unit_names = ["unit_id", "block", "kind", "gq_type", "tenure", *types]
    names = ["unit_id", "age", "sex", "race", "hispanic", "relationship"]
    frame = engine.from_numpy(columns(persons, names, {"unit_id", "age"}))
    return Census(
        schema,
        engine,
        engine.from_numpy(geography),
        engine.from_numpy(columns(units, unit_names, {"unit_id"})),
        engine.materialise(with_person_key(engine, frame, schema, "test")),
        "simulated",
    )


def _row(person: Person) -> tuple:
    return person.age, person.sex, person.race, person.hispanic, person.relationship


RACES = [f"{number:02d}" for number in range(1, 64)]


def every_code(first_id: int, state: str = "50") -> list[Home]:
    """Return couples with a child in which every code of persons occurs, and every tenure.

    Every age as that of a relative, every race as that of the householder and of a child of
    either origin, and every relationship of households.
    """
    kinds = [str(number) for number in range(25, 37)]
    homes = []
    for age in range(116):
        race, origin = RACES[age % 63], "12"[age % 2]
        head = Person(60, "20", "12"[age % 3 == 0], race, origin)
        couple = ("21", "22", "23", "24")[age % 4]
        sex = head.sex if couple in ("23", "24") else "12"[head.sex == "1"]
        members = (
            head,
            Person(55, couple, sex, RACES[-1 - age % 63], origin),
            Person(age, kinds[age % 12], "1", race, "21"[age % 2]),
            Person(9, "25", "2", RACES[(7 * age) % 63], origin),
        )
        homes.append(Home(first_id + age, members, "1234"[age % 4], state))
    return homes


def random_homes(persons: int, seed: int, states: Sequence[str] = ("01", "50")) -> list[Home]:
    """Return consistent households of at least so many persons; nearly every code is visited."""
    rng, homes, number = random.Random(seed), [], 0
    races = RACES
    while number < persons:
        size = rng.choice([1, 1, 2, 2, 3, 4, 5, 7, 9, 11, 12, 14])
        race = rng.choice(races[:6] * 20 + races)
        members = [Person(rng.randint(15, 95), "20", rng.choice("12"))]
        if size > 1 and rng.random() < 0.6:
            kind = rng.choice(["21", "22", "23", "24"])
            sex = members[0].sex if kind in ("23", "24") else "12"[members[0].sex == "1"]
            members.append(Person(rng.randint(15, 95), kind, sex))
        family = rng.random() < 0.7
        while len(members) < size:
            kind = str(rng.choice([*range(25, 34), 25, 25, 25] if family else range(34, 37)))
            oldest = 17 if rng.random() < 0.6 else 89
            members.append(Person(rng.randint(0, oldest), kind, rng.choice("12")))
        for place, person in enumerate(members):
            own = race if rng.random() < 0.8 else rng.choice(races)
            members[place] = replace(person, race=own, hispanic=rng.choice("112"))
        homes.append(Home(len(homes) + 1, tuple(members), rng.choice("1234"), rng.choice(states)))
        number += size
    return homes


def silent() -> object:
    """Return a generator whose noise is always 0."""

    class Silent:
        mode = "trial"

        def words(self, purpose: str, keys: np.ndarray, start, length) -> np.ndarray:
            lengths = np.broadcast_to(np.asarray(length), np.shape(keys))
            return np.zeros(int(lengths.sum()), dtype=np.uint64)

    return Silent()
