"""A small random US census with every kind of quarters, and its tables counted by hand."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from discreet.census import Census, load_schema, with_person_key
from discreet.engine import Engine
from worlds import columns, text

RACES = ["w", "b", "i", "a", "p", "s"]
MIXES = [set(mix) for number in range(1, 7) for mix in combinations(RACES, number)]
TYPES = ["101", "203", "301", "404", "501", "602", "904"]


def blocks_of(number: int) -> list[str]:
    """Return block codes in two counties; the last is empty, the one before holds no persons."""
    return [f"50{1 + 2 * (n % 2):03d}00010{n % 3:01d}1{n:03d}" for n in range(number)]


def random_census(
    engine: Engine, *, blocks: int = 9, units: int = 60, seed: int = 1, drop: Sequence[str] = ()
) -> Census:
    """Return a valid census of random persons, without the columns in `drop`."""
    rng = np.random.default_rng(seed)
    codes = sorted(blocks_of(blocks))
    geography = {
        "state": text([code[:2] for code in codes]),
        "county": text([code[:5] for code in codes]),
        "tract": text([code[:11] for code in codes]),
        "block_group": text([code[:12] for code in codes]),
        "block": text(codes),
        "place": text([None if n % 4 == 1 else f"50000{n % 3:02d}" for n in range(blocks)]),
    }
    homes: list[tuple] = [(1, codes[-2], "vacant", "5", None, None)]
    people: list[tuple] = []
    for unit in range(2, units + 2):
        block = codes[int(rng.integers(blocks - 2))]
        kind = ["occupied", "occupied", "vacant", "group_quarters"][int(rng.integers(4))]
        kind_of_quarters = TYPES[int(rng.integers(7))] if kind == "group_quarters" else None
        vacancy, tenure = {"vacant": ("1", None), "occupied": (None, "3")}.get(kind, (None, None))
        homes.append((unit, block, kind, vacancy, kind_of_quarters, tenure))
        for member in range(0 if kind == "vacant" else int(rng.integers(1, 5))):
            quarters = "37" if kind_of_quarters in TYPES[:4] else "38"
            relationship = quarters if kind_of_quarters else ("20" if member == 0 else "33")
            age = int(rng.integers(0 if member and kind_of_quarters != "301" else 20, 90))
            race = f"{int(rng.integers(63) if rng.random() < 0.6 else rng.integers(6)) + 1:02d}"
            people.append((unit, age, "1", race, str(rng.integers(1, 3)), relationship))
    schema = load_schema("us-decennial")
    names = ["unit_id", "block", "kind", "vacancy", "gq_type", "tenure"]
    unit_frame = engine.from_numpy(columns(homes, names, {"unit_id"}))
    names = ["unit_id", "age", "sex", "race", "hispanic", "relationship"]
    values = columns(people, names, {"unit_id", "age"})
    persons = engine.from_numpy({name: v for name, v in values.items() if name not in drop})
    persons = engine.materialise(with_person_key(engine, persons, schema, "test"))
    places = engine.from_numpy(geography)
    return Census(schema, engine, places, unit_frame, persons, "simulated")


def by_hand(census: Census, level: str) -> dict[str, dict[str, list[int]]]:
    """Return table > area > cells, counted person by person with no help of the package."""
    rows = census.engine.rows
    area_of = dict(rows(census.geography.select("block", level)))
    block_of, quarters, homes = {}, {}, Counter()
    for unit, block, kind, gq in rows(census.units.select("unit_id", "block", "kind", "gq_type")):
        block_of[unit], quarters[unit] = block, gq
        homes[area_of[block], kind] += 1
    areas = sorted({area for area, _ in homes if area is not None})
    people: dict = {area: [] for area in [*areas, None]}
    taken = census.persons.select("unit_id", "age", "race", "hispanic")
    for unit, age, race, hispanic in rows(taken):
        mix = MIXES[int(race) - 1]
        people[area_of[block_of[unit]]].append((mix, hispanic == "2", age, quarters[unit]))
    found: dict[str, dict[str, list[int]]] = {name: {} for name in TABLES}
    for area in areas:
        adults = [person for person in people[area] if person[2] >= 18]
        for name, some in {"P1": people[area], "P3": adults}.items():
            found[name][area] = [len(some), *_races(some)]
        for name, some in {"P2": people[area], "P4": adults}.items():
            rest = [person for person in some if not person[1]]
            found[name][area] = [len(some), len(some) - len(rest), len(rest), *_races(rest)]
        first = Counter(min(person[3][0], "7") for person in people[area] if person[3])
        inside, outside = [first[d] for d in "1234"], [first[d] for d in "567"]
        cells = [sum(inside) + sum(outside), sum(inside), *inside, sum(outside), *outside]
        found["P5"][area] = cells
        occupied, vacant = homes[area, "occupied"], homes[area, "vacant"]
        found["H1"][area] = [occupied + vacant, occupied, vacant]
    return found


TABLES = ["P1", "P2", "P3", "P4", "P5", "H1"]


def _races(people: list[tuple]) -> list[int]:
    mixes = Counter(frozenset(person[0]) for person in people)
    sizes = Counter(len(person[0]) for person in people)
    cells = [sizes[1], *(mixes[frozenset(mix)] for mix in MIXES[:6]), len(people) - sizes[1]]
    for number in range(2, 7):
        cells.append(sizes[number])
        cells += [mixes[frozenset(mix)] for mix in MIXES if len(mix) == number]
    return cells


def as_dict(census: Census, frame) -> dict[str, list[int]]:
    """Return a wide table as area > cells."""
    return {row[0]: list(row[1:]) for row in census.engine.rows(frame)}
