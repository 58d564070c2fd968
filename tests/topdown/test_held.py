"""Exact statistics that a user declares, solved by the general solvers."""

import sys

import narwhals as nw
import numpy as np
import pytest

from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import make_draw, mechanism, protect, publish_draw
from discreet.mechanisms.topdown import held
from discreet.mechanisms.topdown.constraints import Impossible
from discreet.noise import trial
from discreet.products import check_invariants
from worlds import us_census

HOUSEHOLDS = [
    (block, "1", [(40, "1", race), (12 + 3 * block, "2", "01")])
    for block in range(6)
    for race in ("01", "02", "04")
]
QUERIES = {"votingage": "1/2", "detailed": "1/2"}


def strategy(**changes):
    made = {
        "name": "held",
        "title": "Persons by voting age and sex",
        "count": "persons",
        "rho": "1/10",
        "axes": [
            {"name": "votingage", "column": "voting_age"},
            {"name": "sex", "column": "sex"},
        ],
        "total": "state",
        "hold": [{"query": "votingage", "level": "county"}],
        "rounding": ["total", "votingage"],
        "levels": [
            {"level": "state", "share": "1/4", "queries": QUERIES},
            {"level": "county", "share": "1/4", "queries": QUERIES},
            {"level": "block", "share": "1/2", "queries": QUERIES},
        ],
    }
    return {**made, **changes}


def persons_by_block(census):
    counted = census.frame("persons", ["block"]).group_by("block").agg(n=nw.len())
    return sorted(census.engine.rows(counted))


@pytest.fixture(scope="module")
def census():
    return us_census(Engine(threads=1), HOUSEHOLDS, blocks=6, per_county=2, extras=False)


@pytest.mark.parametrize(("measurements", "rounder"), [("full", "ours"), ("lazy", "deployed")])
def test_what_is_held_is_exact_and_the_rest_is_not(census, tmp_path, measurements, rounder):
    parameters = {"persons": strategy(), "measurements": measurements, "rounder": rounder}
    made = mechanism("topdown", census.schema, parameters)
    names = {one.name for one in made.specify().multiverse.invariants}
    assert names == {"state population", "persons by voting_age per county"}
    moved = 0
    for seed in range(2):
        release = protect(made, census, trial(seed), tmp_path / str(seed))
        drawn = release.microdata(census.engine)
        assert not any(check_invariants(release.specification, census, drawn).values())
        moved += persons_by_block(census) != persons_by_block(drawn)
    assert moved


def test_a_statistic_that_cannot_hold_is_named(census, tmp_path):
    made = mechanism("topdown", census.schema, {"persons": strategy()})
    draw = make_draw(made, census, trial(1), tmp_path / "draw", "design")
    path = draw / "persons" / "facts" / "held-0-1.parquet"
    engine = Engine(threads=1)
    rows = engine.to_numpy(engine.read_parquet(path))
    rows["count"][0] += 1
    engine.write_parquet(engine.from_numpy(rows), path)
    with pytest.raises(Impossible, match=r"county.*votingage"):
        publish_draw(draw, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("package", ["piqp", "scipy.sparse", "highspy"])
def test_a_missing_solver_is_missed_before_anything_is_drawn(census, monkeypatch, package):
    made = mechanism("topdown", census.schema, {"persons": strategy()})
    plain = mechanism("topdown", census.schema, {"persons": strategy(hold=[])})
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(BadInput, match="solvers"):
        made.check(census)
    plain.check(census)


def test_a_row_that_the_parent_has_not_must_be_empty():
    values = np.array([[2, 0], [1, 1]])
    one = held.Held("age", np.array([0, 1], dtype=np.int32), values)
    assert held.equalities([one], np.array([0], dtype=np.int32), 0, 2) == "age"
    kept = held.equalities([one], np.array([0, 1], dtype=np.int32), 0, 2)
    assert kept.value.tolist() == [2, 1, 0, 1]


def test_groups_cannot_be_held(census):
    grouped = strategy(
        recodes={"any": {"of": "sex", "groups": {"all": ["1", "2"]}}},
        hold=[{"query": "any", "level": "county"}],
    )
    with pytest.raises(BadInput, match="whole columns"):
        mechanism("topdown", census.schema, {"persons": grouped})
