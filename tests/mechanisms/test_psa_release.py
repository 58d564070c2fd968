"""Released ids and row order tell nothing about who was swapped."""

import json
import math
from dataclasses import replace
from pathlib import Path

import narwhals as nw
import numpy as np
import pytest

from discreet.census import Census, unit_records
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import make_draw, mechanism, protect, publish_draw
from discreet.mechanisms.microdata import write_records
from discreet.noise import trial
from worlds import folder_bytes, us_census

BLOCKS = 8

#: What a public report says whatever the data are.
PUBLIC = {
    *("method", "rate", "meaning_of_rate", "records", "swapped", "matched", "within", "exact"),
}


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
    write_records(history, tmp_path / "nobody" / "microdata")
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


@pytest.mark.parametrize(
    ("homes", "says"),
    [
        ([(0, 1), (1, 2)], "alone in their stratum"),
        ([(1, 1), (1, 1), (1, 2)], "all units have the same block"),
    ],
)
@pytest.mark.parametrize("persons", [True, False])
def test_a_census_that_cannot_change_is_refused(homes, says, persons, tmp_path):
    """A release would be the census, and its budget would say epsilon 0."""
    member = (40, "1", "01")
    census = us_census(Engine(), [(block, "1", [member] * size) for block, size in homes])
    asked = {"rate": "1/2", "match": ["size"], "within": "county"}
    if not persons:  # family size tells them apart where no member can
        units = census.table("units").with_columns(
            family_size=nw.when(nw.col("unit_id") == len(homes)).then(2).otherwise(0)
        )
        census = replace(census, units=census.engine.materialise(units), persons=None)
        asked["match"] = ["family_size"]
    made = mechanism("permutation-swapping", census.schema, asked)
    with pytest.raises(BadInput, match=says) as caught:
        make_draw(made, census, trial(1), tmp_path / "draw", "design")
    assert "released as it is" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_one_stratum_that_can_change_is_found_among_many_rows(monkeypatch, tmp_path):
    """Some rows are looked at first; what they do not show must still be found."""
    monkeypatch.setattr("discreet.mechanisms.swapping.permutation.SOME_ROWS", 2)
    homes = [(0, "1", [(40, "1", "01")])] * 9 + [(1, "1", [(41, "1", "01")])]
    census = us_census(Engine(threads=1), homes)
    swapping(census).check(census)


# -- what is told of a swap ---------------------------------------------------------------------


def told_of(census: Census, folder: Path, **asked) -> tuple[dict, dict]:
    """Return the internal and the public report of a draw."""
    parameters = {"rate": "1/2", "match": ["size"], "within": "county", **asked}
    made = mechanism("permutation-swapping", census.schema, parameters)
    draw = make_draw(made, census, trial(3), folder / "draw", "design")
    publish_draw(draw, folder / "out", census.engine)
    assert (draw / "internal.json").stat().st_mode & 0o077 == 0
    internal = json.loads((draw / "internal.json").read_text())
    return internal, json.loads((folder / "out" / "swap.json").read_text())


def test_the_internal_report_says_what_came_of_a_swap(tmp_path):
    engine = Engine(threads=1)
    census = many_households(engine)
    internal, _ = told_of(census, tmp_path)
    after = Census.open(tmp_path / "out" / "microdata", engine)
    moved, _ = moved_and_position(census, after)
    # Nearly all households can be followed; those that cannot are few.
    assert internal["records"] == 600
    assert 0 <= internal["changed"] - moved.sum() <= 600 - moved.size
    assert internal["rate_realised"] == internal["selected"] / 600
    assert internal["changed"] <= internal["selected"]
    assert abs(internal["rate_realised"] - internal["rate_expected"]) < 5 * 0.5 / math.sqrt(600)
    # Blocks are at least 1/8 of a degree apart, and at most 7/8 and a bit.
    assert 13 < internal["kilometres_moved"]["5%"] <= internal["kilometres_moved"]["50%"] < 110
    assert internal["targeted"].startswith("nobody")


def test_distances_are_those_of_the_blocks(tmp_path):
    """Two households, one selection: if they trade, they move from one block to the other."""
    homes = [(0, "1", [(40, "1", "01")]), (2, "1", [(41, "1", "01")])]
    census = us_census(Engine(threads=1), homes)
    # Blocks 0 and 2 lie a quarter of a degree of latitude apart.
    expected = 6371.0088 * math.radians(0.25)
    for seed in range(20):
        draw = make_draw(swapping(census), census, trial(seed), tmp_path / f"{seed}", "design")
        told = json.loads((draw / "internal.json").read_text())
        assert told["changed"] in (0, 2)
        if told["changed"]:
            assert told["kilometres_moved"]["mean"] == pytest.approx(expected, abs=1e-3)
            return
    pytest.fail("nobody traded in 20 draws (chance 1e-6)")


def test_records_that_cannot_change_are_counted(tmp_path):
    """One alone, two in one block, two alike in two blocks, and three that can change."""
    homes = [
        (0, "1", [(40, "1", "01")]),
        *[(1, "1", [(30 + n, "1", "01")] * 2) for n in range(2)],
        *[(n, "1", [(30, "1", "01")] * 3) for n in range(2)],
        *[(n, "1", [(30 + n, "1", "01")] * 4) for n in range(3)],
    ]
    internal, public = told_of(us_census(Engine(threads=1), homes), tmp_path)
    assert internal["records"] == 8
    assert internal["strata"] == 4
    assert internal["alone_in_stratum"] == 1
    assert internal["cannot_change"] == 5
    assert internal["share_that_cannot_change"] == 5 / 8
    # Two of two are selected with chance 1/4 of 1/2; of three each one with chance 3/8 of 5/8.
    assert public["expected_share_selected"] == pytest.approx((4 * 0.5 + 3 * 0.6) / 8, abs=1e-5)
    assert public["share_alone_in_stratum"] == 1 / 8


def test_what_anybody_may_know_follows_from_invariants(tmp_path):
    """Two censuses of one universe, different draws: the same public words."""
    engine = Engine(threads=1)
    one = many_households(engine)
    (tmp_path / "one").mkdir()
    _, public = told_of(one, tmp_path / "one")
    other = Census.open(tmp_path / "one" / "out" / "microdata", engine)
    _, again = told_of(replace(other, origin="simulated"), tmp_path / "other")
    assert public == again
    made = swapping(one)
    assert public == {**made.public_facts(), **{k: public[k] for k in public.keys() - PUBLIC}}
    assert public["rate"] == "1/2"
    assert public["swapped"] == ["block"]
    assert public["exact"] == [i.describe() for i in made.specify().multiverse.invariants]
    assert public.keys() - PUBLIC == {"expected_share_selected", "share_alone_in_stratum"}


def test_no_distance_is_told_with_the_reason(tmp_path):
    census = many_households(Engine(threads=1))
    bare = replace(census, geography=census.geography.drop("latitude"))
    (tmp_path / "bare").mkdir()
    internal, _ = told_of(bare, tmp_path / "bare")
    assert internal["kilometres_moved"] is None
    assert "latitude" in internal["kilometres_missing"]
    internal, _ = told_of(census, tmp_path / "tenure", swap=["tenure"])
    assert internal["kilometres_moved"] is None
    assert "not swapped" in internal["kilometres_missing"]
