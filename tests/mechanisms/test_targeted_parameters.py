"""Bad parameters and unfit data get one clear error from targeted swapping."""

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import narwhals as nw
import numpy as np
import pytest

from discreet.census import Census, load_schema
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import Enumerable, Mechanism, mechanism, protect
from discreet.mechanisms.swapping import nearest
from discreet.mechanisms.swapping.targeted import PRESETS
from discreet.noise import trial
from discreet.products import check_invariants
from towns import ONE, PAIR, make_town, single, tiny_town, town_census
from worlds import register_census, us_census, write_census

NAME = "targeted-swapping"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


@pytest.fixture(scope="module")
def schema():
    return load_schema("us-decennial")


def swapping(census: Census, rate: str = "1/10", preset: str = "paper", **more):
    return mechanism(NAME, census.schema, {"rate": rate, "preset": preset, **more})


def nw_occupied():
    return nw.col("kind") == "occupied"


def test_it_is_a_mechanism_with_a_law(engine):
    made = swapping(town_census(engine, make_town(20, seed=1)))
    assert isinstance(made, Mechanism)
    assert isinstance(made, Enumerable)


@pytest.mark.parametrize("preset", PRESETS)
def test_parameters_read_back_and_override_presets(schema, preset):
    made = mechanism(NAME, schema, {"rate": "1/50", "preset": preset})
    assert mechanism(NAME, schema, made.parameters()) == made
    json.dumps(made.parameters())
    other = mechanism(NAME, schema, {**made.parameters(), "candidates": 7})
    assert other.candidates == 7
    assert mechanism(NAME, schema, {"rate": "1/50", "preset": preset, "candidates": 7}) == other


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"rate": "0"}, "strictly between 0 and 1"),
        ({"rate": "1"}, "strictly between 0 and 1"),
        ({"rate": "-1/2"}, "strictly between 0 and 1"),
        ({"rate": 0.1}, "must be exact"),
        ({}, "rate"),
        ({"rate": "1/2", "preset": "papers"}, "Did you mean 'paper'"),
        ({"rate": "1/2", "match": ["sise"]}, "Did you mean 'size'"),
        ({"rate": "1/2", "match": ["tract"]}, "units have no column"),
        ({"rate": "1/2", "flags": ["size", "size"]}, "twice"),
        ({"rate": "1/2", "flags": ["age"]}, "units have no column 'age'"),
        ({"rate": "1/2", "persons": "sizes"}, "Did you mean 'size'"),
        ({"rate": "1/2", "within": "block"}, "within must be one of"),
        ({"rate": "1/2", "within": "nation"}, "within must be one of"),
        ({"rate": "1/2", "leave": "state"}, "leave must be one of"),
        ({"rate": "1/2", "within": "county", "leave": "county"}, "leave must be one of"),
        ({"rate": "1/2", "within": "county", "flag_area": "state"}, "flag_area must be one of"),
        ({"rate": "1/2", "candidates": 0}, "candidates"),
        ({"rate": "1/2", "tiers": []}, "tiers"),
        ({"rate": "1/2", "tiers": [{"share": "1", "chance": "1"}]}, "the last takes the rest"),
        ({"rate": "1/2", "tiers": [{"chance": "1"}, {"chance": "1"}]}, "every tier but the last"),
        ({"rate": "1/2", "tiers": [{"chance": "3/2"}]}, "between 0 and 1"),
        (
            {"rate": "1/2", "tiers": [{"share": "-1", "chance": "1"}, {"chance": "1"}]},
            "must not be negative",
        ),
        ({"rate": "1/2", "distance": "miles"}, "distance"),
        ({"rate": "1/2", "swaprate": "1/2"}, "unknown key"),
    ],
)
def test_bad_parameters_get_one_clear_error(schema, parameters, says):
    with pytest.raises(BadInput, match=says) as caught:
        mechanism(NAME, schema, parameters)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "preset", ["papers", "high variance", "nothing like it", ["paper"], 3, None]
)
def test_an_unknown_preset_is_named_beside_those_there_are(schema, preset):
    with pytest.raises(BadInput) as caught:
        mechanism(NAME, schema, {"rate": "1/2", "preset": preset})
    assert caught.value.exit_code == 2
    told = str(caught.value)
    assert len(told.splitlines()) == 2  # the mechanism, and one problem
    assert "preset: there is none called" in told
    assert str(preset) in told
    assert all(name in told for name in PRESETS)


def test_a_run_with_an_unknown_preset_ends_with_exit_code_2(engine, tmp_path):
    write_census(town_census(engine, make_town(30, seed=1)), tmp_path / "census")
    config = {
        "format_version": 1,
        "release": "first",
        "mode": "design",
        "census": "census",
        "work": "work",
        "out": "out",
        "mechanism": NAME,
        "parameters": {"rate": "1/2", "preset": "papers"},
    }
    (tmp_path / "run.yaml").write_text(json.dumps(config))
    program = Path(sys.executable).parent / "discreet"
    done = subprocess.run(
        [program, "run", "run.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert "error: " in done.stderr  # a slow machine tells its progress first
    assert "'papers'" in done.stderr
    assert "Traceback" not in done.stderr
    assert all(name in done.stderr for name in PRESETS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["census", "run.yaml"]


@pytest.mark.parametrize("chance", ["1", str(1 - Fraction(1, 2**70)), str(Fraction(1, 2**70))])
def test_chances_next_to_0_and_1_are_taken_as_they_are(engine, chance):
    census = town_census(engine, make_town(60, seed=4))
    prepared = swapping(census, "1/2", tiers=[{"chance": chance}]).prepare(census)
    targets = nearest.pair(prepared, trial(1)).targets.size
    assert targets == (15 if Fraction(chance) > Fraction(1, 2) else 0)


@pytest.mark.parametrize("missing", ["column", "value", "null", "range"])
def test_points_must_be_there(engine, tmp_path, missing):
    town = make_town(50, seed=2)
    census = town_census(engine, town)
    if missing == "column":
        census = replace(census, geography=census.geography.drop("longitude"))
    elif missing == "null":
        kept = nw.when(nw.col("longitude") < -1000).then(nw.col("longitude"))
        census = replace(census, geography=census.geography.with_columns(longitude=kept))
    else:
        lost = float("nan") if missing == "value" else 500.0
        lived_in = town.houses[0].block
        blocks = [(*b[:3], lost) if i == lived_in else b for i, b in enumerate(town.blocks)]
        census = town_census(engine, replace(town, blocks=tuple(blocks)))
    with pytest.raises(BadInput, match=r"geography\.longitude") as caught:
        protect(swapping(census), census, trial(1), tmp_path / "release")
    assert caught.value.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_census_in_one_tract_is_refused(engine, tmp_path):
    census = town_census(engine, make_town(50, tracts=1, seed=2))
    with pytest.raises(BadInput, match="no household has a possible partner"):
        protect(swapping(census), census, trial(1), tmp_path / "release")
    assert list(tmp_path.iterdir()) == []
    protect(swapping(census, leave="block"), census, trial(1), tmp_path / "release")


def test_matching_on_everything_leaves_nobody(engine, tmp_path):
    town = tiny_town([(0, ONE), (2, PAIR), (4, single("03", 70))])
    census = town_census(engine, replace(town, residents={0: 1}))
    made = swapping(
        census, "1/2", match=["size", "minors", "members_black", "householder_race_group"]
    )
    with pytest.raises(BadInput, match="no household has a possible partner"):
        made.check(census)


def test_a_census_without_households_or_links_is_refused(engine):
    town = make_town(30, seed=1)
    census = town_census(engine, town)
    vacant = replace(census, units=census.table("units").filter(~nw_occupied()))
    with pytest.raises(BadInput, match="no occupied unit"):
        swapping(census).check(vacant)
    unlinked = replace(census, persons=census.table("persons").drop("unit_id"))
    with pytest.raises(BadInput, match="no link to units"):
        swapping(census).check(unlinked)


def test_another_schema_needs_its_own_columns(engine, tmp_path):
    households = [(n % 3, "owner", [(40 + n, "f", "national")]) for n in range(9)]
    census = register_census(engine, households)
    with pytest.raises(BadInput, match="within must be one of"):
        mechanism(NAME, census.schema, {"rate": "1/2"})
    geography = engine.from_numpy(
        {
            "cell": np.array(
                sorted(r[0] for r in engine.rows(census.geography.select("cell"))), dtype=object
            ),
            "latitude": np.array([47.0, 47.1, 47.3]),
            "longitude": np.array([8.0, 8.1, 8.0]),
        }
    )
    joined = engine.materialise(census.geography.join(geography, on="cell"))
    census = replace(census, geography=joined)
    parameters = {
        "rate": "1/2",
        "match": ["size", "tenure"],
        "within": "municipality",
        "leave": "cell",
        "groups": [],
        "flags": ["size"],
        "flag_area": "cell",
    }
    made = mechanism(NAME, census.schema, parameters)
    release = protect(made, census, trial(1), tmp_path / "release")
    told = check_invariants(release.specification, census, release.microdata(engine))
    assert not any(told.values())
    assert made.outcome(release.microdata(engine)) != made.outcome(census)


def test_a_geography_without_points_is_named(engine):
    census = us_census(engine, [(0, "1", [(40, "1", "01")]), (1, "1", [(40, "1", "01")])])
    census = replace(census, geography=census.geography.drop("latitude", strict=False))
    with pytest.raises(BadInput, match=r"geography\.latitude is missing"):
        swapping(census, leave="block").check(census)
