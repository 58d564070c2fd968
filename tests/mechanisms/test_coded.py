"""Units sorted in memory are written exactly as the engine would write them."""

from dataclasses import replace
from pathlib import Path

import narwhals as nw
import numpy as np
import pytest

from discreet.census import Census, read_schema
from discreet.engine import Engine
from discreet.files import write_text
from discreet.mechanisms import coded, microdata
from discreet.mechanisms.swapping.households import read_households, read_places

SCHEMA = """
format_version: 1
name: rows
title: Households as rows
spine: [{name: state}, {name: block}]
kinds: {occupied: [o'neil, b], vacant: [v]}
persons: {age: {number: integer}}
units:
  kind: {required: true, codes: [v, b, o'neil]}
  tenure: {codes: ["10", "9", "Z", "a"], missing: true}
  small: {number: integer, missing: true}
  large: {number: integer, missing: true}
"""


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=2)


def town(engine: Engine, folder: Path, units: int = 5000, spoil: str = "", seed: int = 1):
    """Return a census of random rows, its places, and some units that move."""
    random = np.random.default_rng(seed)
    write_text(folder / "schema.yaml", SCHEMA.lstrip())
    blocks = sorted(f"{n}é" if n % 7 == 0 else f"0{n}" for n in range(60))
    geography = engine.from_numpy(
        {"block": np.array(blocks, dtype=object), "state": np.array(["1"] * 60, dtype=object)}
    )
    numbers = {
        "unit_id": random.permutation(units) - 7,
        "at": random.integers(0, 60, units),
        "kind": random.integers(0, 3, units),
        "tenure": random.integers(0, 6, units),
        "small": random.integers(-9, 12, units),
        "large": random.integers(-(2**40), 2**40, units) // 2**38,
    }
    listed = ", ".join("'" + block + "'" for block in blocks)
    strange = "'?'" if spoil == "code" else "null"
    lowest = "-128" if spoil == "lowest" else "null"
    rows = engine.project(
        engine.from_numpy(numbers),
        {
            "unit_id": "unit_id",
            "block": f'[{listed}]["at" + 1]',
            "kind": "['v', 'b', 'o''neil'][kind + 1]",
            "tenure": f"if(tenure = 5, {strange}, ['10', '9', 'Z', 'a'][tenure + 1])",
            "small": f"if(small = 11, {lowest}, if(small = 10, null, small))::tinyint",
            "large": "case when large <> 0 then large * 123456789 end",
        },
    )
    census = Census(
        read_schema(folder / "schema.yaml"),
        engine,
        geography,
        engine.materialise(rows),
        None,
        "simulated",
    )
    places = engine.project(
        geography, {"block": "block", "_place": "rank() over (order by block) - 1"}
    )
    some = random.choice(units, units // 3, replace=False)
    moved = {"unit_id": numbers["unit_id"][some], "_place": random.integers(0, 60, some.size)}
    return census, engine.materialise(places), engine.from_numpy(moved)


def written(engine: Engine, folder: Path) -> tuple[list[tuple[str, str]], list[tuple[object, ...]]]:
    frame = engine.read_parquet(folder / "units.parquet")
    types = [(name, str(dtype)) for name, dtype in frame.collect_schema().items()]
    return types, engine.rows(frame)


OWN = ["kind", "tenure", "small", "large"]


def written_both_ways(engine: Engine, folder: Path, world: tuple) -> list:
    census, places, moved = world
    units = coded.read_coded(census, places)
    given = engine.to_numpy(moved)
    new_place = units.moved(given["unit_id"], given["_place"])
    microdata.write_coded(census, places, units, new_place, folder / "memory")
    microdata.write_microdata(census, places, moved, folder / "engine")
    return [written(engine, folder / name) for name in ("memory", "engine")]


def test_both_ways_write_the_same_rows(engine, tmp_path):
    census, places, moved = town(engine, tmp_path)
    # A column that the schema does not know may be called anything.
    more = census.table("units").with_columns(place=nw.lit(3), _place=nw.lit(4), given=nw.lit(5))
    census = replace(census, units=engine.materialise(more))
    (types, rows), others = written_both_ways(engine, tmp_path, (census, places, moved))
    assert (types, rows) == others
    assert dict(types)["small"] == "Int8"
    assert [row[0] for row in rows] == list(range(1, 5001))
    assert all(any(row[at] is None for row in rows) for at in (3, 4, 5))
    assert len({row[1] for row in rows}) == 60


def test_few_units_and_none_are_written(engine, tmp_path):
    census, places, moved = town(engine, tmp_path, units=3)
    one, other = written_both_ways(engine, tmp_path / "few", (census, places, moved))
    assert one == other
    nobody = replace(census, units=census.table("units").filter(nw.col("unit_id") < -100))
    nowhere = engine.from_numpy({name: np.empty(0, np.int64) for name in ("unit_id", "_place")})
    one, other = written_both_ways(engine, tmp_path / "none", (nobody, places, nowhere))
    assert one == other
    assert one[1] == []


@pytest.mark.parametrize("spoil", ["code", "lowest"])
def test_values_without_a_number_of_their_own_are_left_to_the_engine(engine, tmp_path, spoil):
    census, places, _ = town(engine, tmp_path, spoil=spoil)
    assert coded.can_be_coded(census, OWN)
    assert coded.read_coded(census, places) is None


def test_many_units_persons_and_real_numbers_are_left_to_the_engine(engine, tmp_path, monkeypatch):
    census, places, _ = town(engine, tmp_path)
    assert coded.read_coded(replace(census, persons=census.units), places) is None
    real = census.schema.units["small"].model_copy(update={"number": "real"})
    schema = census.schema.model_copy(update={"units": {**census.schema.units, "small": real}})
    assert coded.read_coded(replace(census, schema=schema), places) is None
    monkeypatch.setattr(coded, "MOST_UNITS", 4999)
    assert coded.read_coded(census, places) is None


@pytest.mark.parametrize("only", [None, ["1"], ["1", "3"], ["2"]])
def test_households_are_the_same_read_either_way(engine, tmp_path, only):
    census, _, _ = town(engine, tmp_path)
    states = engine.project(census.geography, {"block": "block", "state": "left(block, 1)"})
    census = replace(census, geography=engine.materialise(states))
    places = read_places(census, "state", ["block"])
    units = coded.read_coded(census, places.frame)
    asked = (census, places, ["small"], "block", ["large"], only)
    one, other = read_households(*asked), read_households(*asked, units)
    assert 0 < one.size < 5000
    assert one.area_codes == other.area_codes
    for name in ("offsets", "unit_id", "place", "stratum", "leave"):
        assert (getattr(one, name) == getattr(other, name)).all()
    assert all((one.columns[name] == other.columns[name]).all() for name in ("small", "large"))
