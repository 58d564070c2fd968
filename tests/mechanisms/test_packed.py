"""Units packed into numbers are swapped exactly as by the general way."""

from dataclasses import replace
from fractions import Fraction

import narwhals as nw
import numpy as np
import pytest

from discreet.census import Census
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism, protect
from discreet.mechanisms.swapping.packed import fits, permute_packed
from discreet.mechanisms.swapping.packing import Packing, _Column
from discreet.mechanisms.swapping.strata import Swapped, permute
from discreet.noise import trial
from worlds import us_census

RATE = Fraction(1, 3)


def units_alone(engine: Engine, seed: int, count: int = 300) -> Census:
    """Return units of all kinds without persons, in 12 blocks of 3 counties."""
    random = np.random.default_rng(seed)
    rows = [(int(random.integers(12)), "13"[random.integers(2)], []) for _ in range(count)]
    census = us_census(engine, rows, blocks=12, per_county=4, order=random.permutation(count + 2))
    units = census.table("units")
    kinds = {"unit_id": np.arange(1, count + 3), "family_size": random.integers(0, 4, count + 2)}
    joined = units.join(engine.from_numpy(kinds), on="unit_id", how="inner")
    return replace(census, units=engine.materialise(joined), persons=None)


def released(folder, engine):
    census = Census.open(folder / "microdata", engine)
    columns = sorted(census.table("units").collect_schema().names())
    types = dict(census.table("units").collect_schema())
    return engine.rows(census.table("units").select(*columns).sort("unit_id")), types


@pytest.mark.parametrize("within", ["state", "county", "all"])
@pytest.mark.parametrize("match", [(), ("tenure",), ("owner", "family_size")])
def test_both_ways_release_the_same(tmp_path, within, match):
    engine = Engine(threads=1)
    census = units_alone(engine, seed=len(match))
    swapped = Swapped("units", match, within, ("block",))
    assert fits(census, swapped)
    general = permute(census, swapped, RATE, trial(5), tmp_path / "general")
    packed = permute_packed(census, swapped, RATE, trial(5), tmp_path / "packed")
    small = permute_packed(census, swapped, RATE, trial(5), tmp_path / "small", 2, most_units=1)
    assert general.report() == packed.report() == small.report()
    assert general.expected() == packed.expected() == small.expected()
    assert general.report()["changed"] > 10
    assert general.report()["kilometres_moved"]["50%"] > 0
    assert released(tmp_path / "general", engine) == released(tmp_path / "packed", engine)
    assert released(tmp_path / "general", engine) == released(tmp_path / "small", engine)


def test_a_value_outside_its_codes_is_refused_without_being_told(tmp_path):
    engine = Engine(threads=1)
    census = units_alone(engine, seed=1)
    units = census.table("units")
    kept = {name: f'"{name}"' for name in units.collect_schema().names()}
    wrong = engine.project(units, {**kept, "tenure": "if(unit_id = 7, 'secret', tenure)"})
    spoilt = replace(census, units=engine.materialise(wrong))
    swapped = Swapped("units", (), "state", ("block",))
    with pytest.raises(BadInput, match="1 rows have a value outside") as caught:
        permute_packed(spoilt, swapped, RATE, trial(1), tmp_path)
    assert "secret" not in str(caught.value)


def test_a_value_outside_its_codes_takes_the_general_way(tmp_path):
    """It may be waived. It must not stop a draw that is charged, and stays as it is."""
    engine = Engine(threads=1)
    census = units_alone(engine, seed=1)
    kept = {name: f'"{name}"' for name in census.table("units").collect_schema().names()}
    wrong = engine.project(
        census.table("units"), {**kept, "tenure": "if(unit_id = 7, 'odd', tenure)"}
    )
    spoilt = replace(census, units=engine.materialise(wrong))
    assert not fits(spoilt, Swapped("units", (), "state", ("block",)))
    asked = {"rate": "1/2", "match": [], "within": "state"}
    made = mechanism("permutation-swapping", spoilt.schema, asked)
    release = protect(made, spoilt, trial(1), tmp_path / "release")
    units = release.microdata(engine).table("units")
    assert engine.rows(units.filter(nw.col("tenure") == "odd").select(n=nw.len())) == [(1,)]


def test_persons_or_other_variables_take_the_general_way():
    engine = Engine(threads=1)
    census = units_alone(engine, seed=1)
    assert not fits(census, Swapped("units", (), "state", ("tenure",)))
    linked = us_census(engine, [(0, "1", [(40, "1", "01")])], blocks=2)
    assert not fits(linked, Swapped("units", (), "state", ("block",)))


def test_digits_of_one_byte_stand_for_larger_numbers():
    engine = Engine(threads=1)
    packing = Packing((_Column("n", nw.Int16(), least=100, most=200),))
    digits = np.array([0, 1, 101], dtype=np.int8)
    with engine.lend({"row": np.arange(3), "n": digits}) as rows:
        found = engine.rows(packing.values(engine, rows, ["row"]))
    assert found == [(0, None), (1, 100), (2, 200)]
