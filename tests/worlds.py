"""Tiny censuses made by hand, for tests that enumerate or shuffle."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from discreet.census import Census, load_schema, with_person_key, write_header
from discreet.engine import Engine, Frame

#: One household: block number, tenure, and its members as (age, sex, race or citizenship).
Household = tuple[int, str, Sequence[tuple[int, str, str]]]


def text(values: Sequence[str | None]) -> np.ndarray:
    return np.array(values, dtype=object)


def us_geography(engine: Engine, blocks: int, per_county: int) -> Frame:
    counties = [1 + 2 * (number // per_county) for number in range(blocks)]
    codes = [f"50{c:03d}0001001{n:03d}"[:12] + f"{n:03d}" for n, c in enumerate(counties)]
    return engine.from_numpy(
        {
            "state": text([code[:2] for code in codes]),
            "county": text([code[:5] for code in codes]),
            "tract": text([code[:11] for code in codes]),
            "block_group": text([code[:12] for code in codes]),
            "block": text(codes),
            "latitude": np.arange(blocks) / 8 + 44,
            "longitude": np.arange(blocks) % 2 / 4 - 72,
        }
    )


def us_census(
    engine: Engine,
    households: Sequence[Household],
    *,
    blocks: int = 3,
    per_county: int = 3,
    extras: bool = True,
    order: Sequence[int] | None = None,
) -> Census:
    """Return a valid US census of the given households.

    `extras` adds a vacant unit and a small nursing home; `order` permutes the rows.
    """
    schema = load_schema("us-decennial")
    geography = us_geography(engine, blocks, per_county)
    codes = [row[0] for row in engine.rows(geography.select("block").sort("block"))]
    units: list[tuple] = []
    persons: list[tuple] = []
    for number, (block, tenure, members) in enumerate(households, start=1):
        units.append((number, codes[block], "occupied", None, None, tenure))
        for place, (age, sex, race) in enumerate(members):
            persons.append((number, age, sex, race, "1", "20" if place == 0 else "33"))
    if extras:
        units.append((9_000_000, codes[0], "vacant", "1", None, None))
        units.append((9_000_001, codes[-1], "group_quarters", None, "301", None))
        persons.append((9_000_001, 88, "2", "01", "1", "37"))
    if order is not None:
        units = [units[i] for i in order]
    names = ["unit_id", "block", "kind", "vacancy", "gq_type", "tenure"]
    unit_frame = engine.from_numpy(columns(units, names, {"unit_id"}))
    names = ["unit_id", "age", "sex", "race", "hispanic", "relationship"]
    person_frame = engine.from_numpy(columns(persons, names, {"unit_id", "age"}))
    person_frame = engine.materialise(with_person_key(engine, person_frame, schema, "test"))
    return Census(schema, engine, geography, unit_frame, person_frame, "simulated")


def register_census(engine: Engine, households: Sequence[Household], *, cells: int = 3) -> Census:
    """Return a valid census of the non-US profile; the third member value is citizenship."""
    schema = load_schema("register-country")
    codes = [f"AA01001N{n:04d}E0001" for n in range(cells)]
    geography = engine.from_numpy(
        {
            "region": text(["AA"] * cells),
            "province": text(["AA01"] * cells),
            "municipality": text([code[:7] for code in codes]),
            "cell": text(codes),
        }
    )
    units = [(n, codes[b], "occupied", t) for n, (b, t, _) in enumerate(households, start=1)]
    persons = [
        (n, age, sex, "head" if place == 0 else "other_relative", citizenship)
        for n, (_, _, members) in enumerate(households, start=1)
        for place, (age, sex, citizenship) in enumerate(members)
    ]
    unit_frame = engine.from_numpy(
        columns(units, ["unit_id", "cell", "kind", "tenure"], {"unit_id"})
    )
    names = ["unit_id", "age", "sex", "household_role", "citizenship"]
    person_frame = engine.from_numpy(columns(persons, names, {"unit_id", "age"}))
    person_frame = engine.materialise(with_person_key(engine, person_frame, schema, "test"))
    return Census(schema, engine, geography, unit_frame, person_frame, "simulated")


def columns(rows: list[tuple], names: list[str], numbers: set[str]) -> dict[str, np.ndarray]:
    made = {}
    for place, name in enumerate(names):
        values = [row[place] for row in rows]
        made[name] = np.array(values, dtype=np.int64) if name in numbers else text(values)
    return made


def write_census(census: Census, folder: Path) -> Census:
    """Write a census to a folder and return it opened from there."""
    folder.mkdir(parents=True)
    for name in ("geography", "units", "persons"):
        census.engine.write_parquet(census.table(name), folder / f"{name}.parquet")
    write_header(folder, census.schema, census.origin)
    return Census.open(folder, census.engine)


def folder_bytes(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder by its relative name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
