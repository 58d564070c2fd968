"""Small simulated towns with tracts, blocks and points, for tests of targeted swapping."""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from discreet.census import Census, load_schema, with_person_key
from discreet.engine import Engine
from worlds import columns, text

#: Points lie on a grid of 2^-10 degree, so that distances in degrees are exact and often equal.
GRID = 1024

RACES = [f"{n:02d}" for n in (1, 2, 3, 4, 5, 6, 7)]


@dataclass(frozen=True)
class House:
    """One household as the tests see it: everything as plain numbers."""

    unit_id: int
    block: int
    members: tuple[tuple[int, str, str], ...]  # age, race, hispanic

    @property
    def races(self) -> tuple[int, ...]:
        counted = Counter(race for _, race, _ in self.members)
        return tuple(counted[race] for race in RACES)

    @property
    def hispanics(self) -> int:
        return sum(hispanic == "2" for _, _, hispanic in self.members)

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def adults(self) -> int:
        return sum(age >= 18 for age, _, _ in self.members)


@dataclass(frozen=True)
class Town:
    """Households, and where each block lies: state, tract, latitude, longitude."""

    houses: tuple[House, ...]
    blocks: tuple[tuple[str, str, float, float], ...]
    residents: dict[int, int]  # of collective quarters, by block

    def persons_of_block(self, block: int) -> int:
        living = sum(house.size for house in self.houses if house.block == block)
        return living + self.residents.get(block, 0)


def make_town(
    households: int, *, states: int = 1, tracts: int = 4, blocks: int = 6, seed: int = 0
) -> Town:
    """Return a random town; `tracts` per state, `blocks` per tract."""
    random = np.random.default_rng(seed)
    places = []
    for state in range(states):
        for tract in range(tracts):
            centre = 32 + random.integers(0, 64, 2) / 16
            for _ in range(blocks):
                point = centre + random.integers(-20, 21, 2) / GRID
                code = f"{10 + state}001{tract:06d}"
                places.append((f"{10 + state}", code, float(point[0]), float(-point[1] - 50)))
    houses = []
    for number in random.permutation(households * 3)[:households].tolist():
        block = int(random.integers(len(places)))
        own = RACES[int(random.choice(7, p=[0.6, 0.2, 0.02, 0.06, 0.02, 0.05, 0.05]))]
        members = []
        for place in range(int(random.choice([1, 2, 3, 4, 7], p=[0.3, 0.35, 0.2, 0.13, 0.02]))):
            age = int(random.integers(18, 90)) if place == 0 else int(random.integers(0, 90))
            race = own if random.random() < 0.9 else RACES[int(random.integers(7))]
            members.append((age, race, "2" if random.random() < 0.1 else "1"))
        houses.append(House(number + 1, block, tuple(members)))
    houses.sort(key=lambda house: house.unit_id)
    return Town(tuple(houses), tuple(places), {0: 30, len(places) - 1: 5})


def town_census(engine: Engine, town: Town, order: np.ndarray | None = None) -> Census:
    """Return a town as a census with a vacant unit and its collective quarters."""
    schema = load_schema("us-decennial")
    numbers = Counter[str]()
    codes = []
    for _, tract, _, _ in town.blocks:
        numbers[tract] += 1
        codes.append(f"{tract}{1000 + numbers[tract]}")
    geography = engine.from_numpy(
        {
            "state": text([code[:2] for code in codes]),
            "county": text([code[:5] for code in codes]),
            "tract": text([code[:11] for code in codes]),
            "block_group": text([code[:12] for code in codes]),
            "block": text(codes),
            "latitude": np.array([block[2] for block in town.blocks]),
            "longitude": np.array([block[3] for block in town.blocks]),
        }
    )
    units: list[tuple] = []
    persons: list[tuple] = []
    for house in town.houses:
        units.append((house.unit_id, codes[house.block], "occupied", None, None, "1"))
        for place, (age, race, hispanic) in enumerate(house.members):
            relation = "20" if place == 0 else "33"
            persons.append((house.unit_id, age, "12"[age % 2], race, hispanic, relation))
    units.append((8_000_000, codes[0], "vacant", "1", None, None))
    for block, residents in town.residents.items():
        units.append((9_000_000 + block, codes[block], "group_quarters", None, "301", None))
        persons += [(9_000_000 + block, 80, "2", "01", "1", "37")] * residents
    if order is not None:
        units = [units[i] for i in order]
    names = ["unit_id", "block", "kind", "vacancy", "gq_type", "tenure"]
    unit_frame = engine.from_numpy(columns(units, names, {"unit_id"}))
    names = ["unit_id", "age", "sex", "race", "hispanic", "relationship"]
    person_frame = engine.from_numpy(columns(persons, names, {"unit_id", "age"}))
    person_frame = engine.materialise(with_person_key(engine, person_frame, schema, "test"))
    return Census(schema, engine, geography, unit_frame, person_frame, "simulated")


def great_circle(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the haversine distance on a unit sphere."""
    a, b, c, d = map(math.radians, (*one, *other))
    h = math.sin((c - a) / 2) ** 2 + math.cos(a) * math.cos(c) * math.sin((d - b) / 2) ** 2
    return round(2 * math.asin(math.sqrt(h)), 12)  # 6 micrometres: blocks at one point tie


# -- a few households -----------------------------------------------------------------------

ONE = ((40, "01", "1"),)
PAIR = ((40, "01", "1"), (38, "02", "1"))


def tiny_town(houses: list[tuple[int, tuple]], states: int = 1) -> Town:
    """Return households in blocks 0, 1, ...: two to a tract, some at equal distances."""
    points = [(32.0, -60.0), (32.0, -60.0), (32.0, -60.5), (32.5, -60.0), (31.0, -60.0)]
    blocks = [
        (f"{10 + s}", f"{10 + s}001{number // 2:06d}", *point)
        for s in range(states)
        for number, point in enumerate(points)
    ]
    listed = [House(i + 1, block, members) for i, (block, members) in enumerate(houses)]
    return Town(tuple(listed), tuple(blocks), {})


def single(race: str, age: int = 40) -> tuple:
    return ((age, race, "1"),)


#: Households that differ, so that every pair can be seen in the release.
TINY = {
    "all differ": [(0, single("01")), (2, single("02")), (3, single("03")), (4, single("04"))],
    "two alike": [(0, ONE), (1, single("02")), (2, ONE), (3, single("05")), (4, single("06"))],
    "two strata": [(0, ONE), (2, single("02")), (4, single("03")), (1, PAIR), (2, PAIR[::-1])],
    "one block": [(2, single("01")), (2, single("02")), (2, single("03")), (0, single("04"))],
}
