"""Units sorted in memory are written exactly as the engine would write them."""

from pathlib import Path

import narwhals as nw
import numpy as np
import pytest

from discreet.census import Census, read_schema
from discreet.engine import Engine
from discreet.files import write_text
from discreet.mechanisms import coded, microdata

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
        geography, {"block": "block", "place": "rank() over (order by block) - 1"}
    )
    some = random.choice(units, units // 3, replace=False)
    moved = {"unit_id": numbers["unit_id"][some], "place": random.integers(0, 60, some.size)}
    return census, engine.materialise(places), engine.from_numpy(moved)


def written(engine: Engine, folder: Path) -> tuple[list[tuple[str, str]], list[tuple[object, ...]]]:
    frame = engine.read_parquet(folder / "units.parquet")
    types = [(name, str(dtype)) for name, dtype in frame.collect_schema().items()]
    return types, engine.rows(frame)


@pytest.mark.parametrize("spoil", ["", "code", "lowest"])
def test_both_ways_write_the_same_rows(engine, tmp_path, monkeypatch, spoil):
    world = town(engine, tmp_path, spoil=spoil)
    own = ["kind", "tenure", "small", "large"]
    assert coded.can_be_coded(world[0], own)
    # What cannot be sorted in memory is left to the engine, and nothing is written before.
    done = coded.write_coded(*world, own, tmp_path / "alone.parquet")
    assert done == (spoil == "")
    assert (tmp_path / "alone.parquet").exists() == done
    microdata.write_microdata(*world, tmp_path / "memory")
    monkeypatch.setattr(coded, "MOST_UNITS", 4999)
    assert not coded.can_be_coded(world[0], own)
    microdata.write_microdata(*world, tmp_path / "engine")
    types, rows = written(engine, tmp_path / "engine")
    assert dict(types)["small"] == "Int8"
    assert (types, rows) == written(engine, tmp_path / "memory")
    assert [row[0] for row in rows] == list(range(1, 5001))
    assert all(any(row[at] is None for row in rows) for at in (3, 4, 5))
    assert len({row[1] for row in rows}) == 60


def test_an_empty_table_and_one_without_values_are_written(engine, tmp_path):
    census, places, moved = town(engine, tmp_path, units=3)
    nobody = census.table("units").filter(nw.col("unit_id") < -100)
    for name, units in (("none", nobody), ("few", census.table("units"))):
        few = Census(census.schema, engine, census.geography, units, None, "simulated")
        microdata.write_microdata(few, places, moved, tmp_path / name)
        assert len(written(engine, tmp_path / name)[1]) == (0 if name == "none" else 3)


def test_numbers_beside_codes_are_needed(engine, tmp_path):
    census, _, _ = town(engine, tmp_path)
    real = census.schema.units["small"].model_copy(update={"number": "real"})
    schema = census.schema.model_copy(update={"units": {**census.schema.units, "small": real}})
    other = Census(schema, engine, census.geography, census.units, None, "simulated")
    assert coded.can_be_coded(other, ["kind", "tenure"])
    assert not coded.can_be_coded(other, ["kind", "small"])
