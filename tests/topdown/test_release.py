"""A whole run: without noise the input comes out; with noise every invariant holds."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from discreet.census import Census
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import check_mode, make_draw
from discreet.mechanisms.topdown.constraints import Impossible
from discreet.mechanisms.topdown.estimate import read_estimate
from discreet.mechanisms.topdown.spine import Spine
from discreet.noise import system, trial
from discreet.products import check_invariants, invariant_counts, pl94
from discreet.simulate import simulate
from discreet.spec import MarginalTable
from redistricting import TABLES, random_census
from topdown.runs import BOTH, LEAST, PERSONS, Silent, drawn, published, run, shuffled, topdown
from worlds import folder_bytes, register_census

LEVELS = ["state", "county", "tract", "block_group", "block", "place"]
PRODUCTION = {
    "persons": "pl94-us-persons-2020",
    "units": "pl94-us-units-2020",
    "root": "state",
}
WAYS = [("full", "ours"), ("lazy", "ours"), ("full", "deployed"), ("lazy", "deployed")]


@pytest.fixture(scope="module")
def engine():
    return Engine(threads=1)


@pytest.fixture(scope="module")
def tiny(engine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulated") / "tiny"
    simulate("tiny", folder, 1)
    return Census.open(folder, engine)


@pytest.fixture(scope="module")
def wanted(tiny, tmp_path_factory):
    return all_tables(tiny, tmp_path_factory.mktemp("wanted") / "tables")


@pytest.fixture(scope="module")
def census(engine):
    return random_census(engine, blocks=14, units=120)


def all_tables(census, folder):
    """Return all tables of all levels, as the files they are written to."""
    present = census.geography.collect_schema().names()
    pl94.write_tables(census, folder, [level for level in LEVELS if level in present])
    files = folder_bytes(folder)
    assert len(files) >= 5 * len(TABLES)
    return files


# -- without noise ---------------------------------------------------------------------------


@pytest.mark.parametrize(("measurements", "rounder"), WAYS[1:3])
def test_without_noise_the_output_is_the_input(tiny, wanted, tmp_path, measurements, rounder):
    ways = {"measurements": measurements, "rounder": rounder}
    released = run(tiny, Silent(), tmp_path / "out", **BOTH, **ways)
    assert all_tables(released, tmp_path / "told") == wanted


def test_without_noise_the_production_strategies_return_the_input(tiny, wanted, tmp_path):
    released = run(tiny, Silent(), tmp_path / "out", **PRODUCTION, measurements="lazy")
    assert all_tables(released, tmp_path / "told") == wanted


def test_with_noise_they_differ(tiny, tmp_path):
    # So that the two tests above could fail. That 900 records come out untouched by noise
    # of variance 2 to 8 in each of thousands of cells has no probability worth stating.
    released = run(tiny, trial(1), tmp_path / "out", persons=PERSONS)
    assert pl94_of(released, "P1", "block") != pl94_of(tiny, "P1", "block")


def pl94_of(census, table, level):
    return census.engine.rows(pl94.tables(census, table, level))


def country(engine):
    dice = np.random.default_rng(5)
    people = [
        [
            (int(dice.integers(0, 99)), str(dice.choice(["f", "m"])), str(dice.choice(NATIONS)))
            for _ in range(dice.integers(1, 5))
        ]
        for _ in range(40)
    ]
    homes = [(int(dice.integers(6)), "owner", members) for members in people]
    return register_census(engine, homes, cells=6)


NATIONS = ["national", "eu", "other"]


@pytest.mark.parametrize(("measurements", "rounder"), [WAYS[0], WAYS[3]])
def test_without_noise_a_register_comes_out_as_it_was(engine, tmp_path, measurements, rounder):
    census = country(engine)
    released = run(
        census,
        Silent(),
        tmp_path / "out",
        persons="register-country-persons",
        measurements=measurements,
        rounder=rounder,
    )
    for level in ("region", "province", "municipality", "cell"):
        by = ("sex", "age_group", "citizenship")
        every = MarginalTable(name="cells", of="persons", by=by, level=level)
        counts = [cells_of(one, every) for one in (census, released)]
        assert counts[0] == counts[1]
        assert len(counts[0]) > 5


def cells_of(census, table):
    return sorted(census.engine.rows(invariant_counts(census, table)))


def test_a_generator_without_noise_cannot_release(census, tmp_path):
    supplied = replace(census, origin="supplied")
    with pytest.raises(BadInput, match="takes no seed"):
        check_mode("release", supplied, Silent())
    with pytest.raises(BadInput, match="takes no seed"):
        make_draw(topdown(census), supplied, Silent(), tmp_path / "draw", "release")
    assert not (tmp_path / "draw").exists()
    check_mode("release", supplied, system())


# -- with noise ------------------------------------------------------------------------------


@pytest.mark.parametrize("rounder", ["ours", "deployed"])
def test_lazy_and_full_threads_and_order_do_not_matter(census, tmp_path, rounder):
    ways = {
        "full": (census, 1, "full"),
        "lazy": (census, 2, "lazy"),
        "shuffled": (shuffled(census, 3), 1, "lazy"),
    }
    found = {}
    for name, (one, threads, measurements) in ways.items():
        told = {"rounder": rounder, "measurements": measurements}
        run(one, trial(11), tmp_path / name, threads, **BOTH, **told)
        found[name] = folder_bytes(tmp_path / name / "microdata")
    assert found["full"] == found["lazy"] == found["shuffled"]
    assert len(found["full"]) >= 4


@pytest.mark.parametrize("rounder", ["ours", "deployed"])
def test_invariants_hold_and_levels_agree_under_noise(census, tmp_path, rounder):
    parameters = {**BOTH, "measurements": "lazy", "rounder": rounder}
    for seed in range(2):
        folder = drawn(census, trial(seed), tmp_path / f"draw-{seed}", **parameters)
        released = published(census, folder, tmp_path / f"out-{seed}")
        specification = topdown(census, **parameters).specify()
        differing = check_invariants(specification, census, released)
        assert set(differing) == {
            "state population",
            "housing units per block",
            "occupied group quarters by type per block",
        }
        assert not any(differing.values())
        assert pl94_of(released, "P1", "block") != pl94_of(census, "P1", "block")
        for strategy in ("persons", "units"):
            check_levels(census.engine, folder / strategy)


def check_levels(engine, folder):
    """Check that the estimates of every level are the sums of those of the level below."""
    levels = ["state", "county", "tract", "block"]
    spine = Spine.read(folder / "spine", levels, engine)
    tables = []
    for level in range(len(levels)):
        path = folder / "estimates" / str(level) / "counts.parquet"
        made = read_estimate(path, spine.size(level), engine)
        table = np.zeros((2016, spine.size(level)), dtype=np.int64)
        table[made.cell, made.node()] = made.counted
        assert made.counted.min() > 0
        tables.append(table)
    for level in range(1, len(levels)):
        summed = np.zeros_like(tables[level - 1])
        np.add.at(summed.T, spine.parents[level], tables[level].T)
        assert np.array_equal(summed, tables[level - 1])
        assert tables[level].shape[1] > tables[level - 1].shape[1]


# -- invariants planted wrong ------------------------------------------------------------------


def rewrite(engine, path, column, change):
    """Change a column of a small file of a draw."""
    arrays = engine.to_numpy(engine.read_parquet(path))
    arrays[column] = change(arrays[column].copy())
    path.unlink()
    engine.write_parquet(engine.from_numpy(arrays), path)


def one_more(values):
    values[0] += 1
    return values


PLANTED = {
    "a state total": ("facts/totals-0.parquet", "total", one_more),
    "a count of quarters": ("facts/quarters.parquet", "units", lambda v: np.where(v > 0, 99, v)),
    "the type of quarters": ("facts/quarters.parquet", "category", lambda v: v[::-1].copy()),
    "an estimate of a block": ("estimates/1/counts.parquet", "count", one_more),
    "an estimate of a root": ("estimates/0/counts.parquet", "count", one_more),
}


@pytest.fixture(scope="module")
def lazy_draw(census, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lazy") / "draw"
    return drawn(census, trial(2), folder, persons=LEAST, measurements="lazy")


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_invariant_is_refused(census, lazy_draw, tmp_path, planted):
    folder = shutil.copytree(lazy_draw, tmp_path / "draw")
    file, column, change = PLANTED[planted]
    rewrite(census.engine, folder / "persons" / file, column, change)
    with pytest.raises(Impossible, match="topdown, least-persons"):
        published(census, folder, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["draw"]


def test_a_full_draw_with_an_impossible_total_is_refused(census, tmp_path):
    folder = drawn(census, trial(2), tmp_path / "draw", persons=LEAST)
    rewrite(census.engine, folder / "persons/facts/totals-0.parquet", "total", np.zeros_like)
    with pytest.raises(Impossible):
        published(census, folder, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["draw"]


def test_a_full_draw_with_other_quarters_is_found_out(census, tmp_path):
    # Feasible, so estimation cannot know; the check against the census does.
    folder = drawn(census, trial(2), tmp_path / "draw", **BOTH)
    more = "persons/facts/quarters.parquet", "units", lambda units: units + 1
    rewrite(census.engine, folder / more[0], *more[1:])
    released = published(census, folder, tmp_path / "out")
    differing = check_invariants(topdown(census).specify(), census, released)
    assert any(differing.values())
