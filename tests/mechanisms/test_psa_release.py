"""Released ids and row order tell nothing about who was swapped."""

import math
from pathlib import Path

import narwhals as nw
import numpy as np
import pytest

from discreet.census import Census, unit_records
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism, protect
from discreet.mechanisms.microdata import write_microdata
from discreet.noise import trial
from worlds import folder_bytes, us_census

BLOCKS = 8


def many_households(engine: Engine, count: int = 600) -> Census:
    """Return households that are nearly all distinct, so that each can be followed."""
    random = np.random.default_rng(11)
    households = [
        (
            int(random.integers(BLOCKS)),
            "13"[int(random.integers(2))],
            [
                (
                    int(random.integers(20, 95)),
                    "12"[int(random.integers(2))],
                    "0" + str(random.integers(1, 7)),
                )
                for _ in range(int(random.integers(1, 4)))
            ],
        )
        for _ in range(count)
    ]
    # As in real files: identifiers run with the blocks, so a kept order would tell who moved.
    households.sort(key=lambda household: household[0])
    return us_census(engine, households, blocks=BLOCKS, per_county=BLOCKS, extras=False)


def swapping(census: Census, rate: str = "1/2"):
    parameters = {"rate": rate, "match": ["size"], "within": "county"}
    return mechanism("permutation-swapping", census.schema, parameters)


def test_a_release_is_a_function_of_its_values(tmp_path):
    """Whoever moved, and even if nobody did: the same values give the same bytes."""
    engine = Engine(threads=2)
    census = many_households(engine)
    release = protect(swapping(census), census, trial(1), tmp_path / "swapped")
    # The same data set reached without any swap: read back, shuffled, written again.
    told = release.microdata(engine)
    units = engine.to_numpy(told.table("units").select("unit_id"))["unit_id"]
    ids = np.random.default_rng(2).permutation(len(units)) + 10_000
    renamed = engine.from_numpy({"unit_id": units, "other": ids})
    shuffled = {
        name: engine.materialise(
            told.table(name)
            .join(renamed, on="unit_id")
            .drop("unit_id")
            .rename({"other": "unit_id"})
            .sort("unit_id")
        )
        for name in ("units", "persons")
    }
    history = Census(
        census.schema, engine, census.geography, shuffled["units"], shuffled["persons"], "simulated"
    )
    nobody = engine.from_numpy(
        {"unit_id": np.array([-1]), "block": np.array(["0" * 15], dtype=object)}
    )
    write_microdata(history, nobody, tmp_path / "nobody" / "microdata")
    written = folder_bytes(tmp_path / "nobody")
    written.pop("microdata/census.yaml")  # publishing adds the mode to it
    assert written == {name: release_bytes(release.folder)[name] for name in written}


def release_bytes(folder: Path) -> dict[str, bytes]:
    return folder_bytes(folder)


def moved_and_position(census: Census, released: Census) -> tuple[np.ndarray, np.ndarray]:
    """Return, for households whose record is unique, whether they moved, and their new id."""

    def where(data: Census, block: str, number: str) -> nw.LazyFrame:
        units = data.table("units").select("unit_id", "block")
        joined = units.join(unit_records(data), on="unit_id")
        return joined.select(
            "record", nw.col("block").alias(block), nw.col("unit_id").alias(number)
        )

    before, after = where(census, "old", "old_id"), where(released, "new", "new_id")
    once = before.group_by("record").agg(times=nw.len()).filter(nw.col("times") == 1)
    pairs = before.join(once, on="record").join(after, on="record").sort("new_id")
    columns = pairs.with_columns(moved=nw.col("old") != nw.col("new")).select(
        "moved", "new_id", "new"
    )
    rows = census.engine.rows(columns)
    moved = np.array([row[0] for row in rows])
    # Position inside the block: between blocks the order is public anyway.
    position = np.empty(len(rows))
    for block in {row[2] for row in rows}:
        inside = np.array([row[2] == block for row in rows])
        position[inside] = (np.arange(inside.sum()) + 0.5) / inside.sum()
    return moved, position


def prediction(moved: np.ndarray, position: np.ndarray) -> float:
    """Return the standardised rank-sum statistic of `position` for `moved`."""
    ranks = position.argsort().argsort() + 1.0
    n, m = int(moved.sum()), int((~moved).sum())
    return (ranks[moved].sum() - n * (n + m + 1) / 2) / math.sqrt(n * m * (n + m + 1) / 12)


#: Two-sided normal limit: false-alarm rate about 6e-7 per seed.
LIMIT = 5.0


@pytest.mark.parametrize("seed", range(3))
def test_position_does_not_predict_who_moved(seed, tmp_path):
    engine = Engine(threads=2)
    census = many_households(engine)
    release = protect(swapping(census), census, trial(seed), tmp_path / "release")
    moved, position = moved_and_position(census, release.microdata(engine))
    assert moved.sum() > 100 < (~moved).sum()
    assert abs(prediction(moved, position)) < LIMIT
    assert abs(prediction(moved, np.abs(position - 0.5))) < LIMIT


def test_the_same_test_catches_rows_left_in_their_old_order(tmp_path, monkeypatch):
    """Planted: rows of a block in the order of the input, as a careless writer leaves them."""
    real = Engine.sort_and_number

    def careless(self, frame, order_by, name):
        return real(self, frame, [order_by[0], "unit_id"], name)

    monkeypatch.setattr(Engine, "sort_and_number", careless)
    engine = Engine(threads=2)
    census = many_households(engine)
    release = protect(swapping(census), census, trial(0), tmp_path / "release")
    moved, position = moved_and_position(census, release.microdata(engine))
    # Movers come from lower blocks or from higher ones: at the ends of the block's rows.
    assert abs(prediction(moved, np.abs(position - 0.5))) > LIMIT


def test_nothing_of_the_input_links_released_rows(tmp_path):
    engine = Engine()
    census = many_households(engine, 50)
    release = protect(swapping(census), census, trial(0), tmp_path / "release")
    told = release.microdata(engine)
    assert set(told.table("persons").collect_schema().names()).isdisjoint(
        {"person_key", "donor_id"}
    )
    ids = engine.to_numpy(told.table("units").select("unit_id"))["unit_id"]
    assert (np.sort(ids) == np.arange(1, 51)).all()


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"rate": "0", "match": [], "within": "county"}, "strictly between 0 and 1"),
        ({"rate": "1", "match": [], "within": "county"}, "strictly between 0 and 1"),
        ({"rate": 0.05, "match": [], "within": "county"}, "must be exact"),
        ({"rate": "x", "match": [], "within": "county"}, "rational number"),
        ({"rate": "1/2", "match": ["sise"], "within": "county"}, "Did you mean 'size'"),
        ({"rate": "1/2", "match": ["size", "size"], "within": "county"}, "twice"),
        ({"rate": "1/2", "match": [], "within": "block"}, "level above block"),
        ({"rate": "1/2", "match": [], "within": "couny"}, "Did you mean 'county'"),
        ({"rate": "1/2", "match": [], "within": "county", "swaprate": 3}, "unknown key"),
        ({"rate": "1/2", "match": []}, "within"),
    ],
)
def test_bad_parameters_get_one_clear_error(parameters, says):
    schema = us_census(Engine(), [(0, "1", [(40, "1", "01")])]).schema
    with pytest.raises(BadInput, match=says) as caught:
        mechanism("permutation-swapping", schema, parameters)
    assert caught.value.exit_code == 2


def test_an_unknown_mechanism_gets_a_suggestion():
    schema = us_census(Engine(), [(0, "1", [(40, "1", "01")])]).schema
    with pytest.raises(BadInput, match="permutation-swapping"):
        mechanism("permutation-swaping", schema, {})


def test_one_household_per_stratum_changes_nothing_and_costs_nothing(tmp_path):
    engine = Engine()
    census = us_census(engine, [(0, "1", [(40, "1", "01")])], extras=False)
    made = swapping(census)
    release = protect(made, census, trial(1), tmp_path / "release")
    assert made.outcome(release.microdata(engine)) == made.outcome(census)
    assert release.specification.budget.amount.of == 1
