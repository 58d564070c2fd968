"""Errors of redistricting counts, counted again by hand; the theory of totals, by algebra."""

import json
import math
import stat
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from discreet.census import SIMULATED, Census
from discreet.cli import evaluations
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.evaluate import expected_variances, persons_strategy, study_topdown
from discreet.evaluate.accuracy import Accuracy, fitness, labels, summary
from discreet.evaluate.totals_theory import split, unit_shares
from discreet.mechanisms import Release, ReleaseHeader, protect
from discreet.mechanisms.swapping import PermutationSwapping
from discreet.mechanisms.topdown import load_strategy, planning
from discreet.mechanisms.topdown.spine import bypass, spine_of
from discreet.noise import trial
from redistricting import MIXES, by_hand, random_census
from worlds import register_census, write_census

LEVELS = ["state", "county", "tract", "block_group", "block", "place"]
#: The groups of the fitness target by what they combine; the last is everything else.
GROUPS = [{"w"}, {"b"}, {"i"}, {"a"}, {"p"}, {"s"}]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


@pytest.fixture(scope="module")
def census(engine) -> Census:
    return random_census(engine, blocks=12, units=150, seed=1)


@pytest.fixture(scope="module")
def other(engine) -> Census:
    return random_census(engine, blocks=12, units=150, seed=4)


@pytest.fixture(scope="module")
def study(census, other):
    return study_topdown(census, other)


def persons(census: Census, level: str):
    """Yield area, Hispanic origin and mix of races of every person."""
    rows = census.engine.rows
    area_of = dict(rows(census.geography.select("block", level)))
    block_of = dict(rows(census.units.select("unit_id", "block")))
    for unit, race, hispanic in rows(census.persons.select("unit_id", "race", "hispanic")):
        area = area_of[block_of[unit]]
        if area is not None:
            yield area, hispanic, frozenset(MIXES[int(race) - 1])


# -- errors by hand ----------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("measure", "table", "column"), [("total", "P1", 0), ("adults", "P3", 0), ("occupied", "H1", 1)]
)
def test_totals_are_as_by_hand(census, other, study, level, measure, table, column) -> None:
    before, after = (by_hand(one, level)[table] for one in (census, other))
    errors = [
        after.get(area, [0] * 9)[column] - before.get(area, [0] * 9)[column]
        for area in before.keys() | after.keys()
    ]
    found = study.at(level).measures[measure].overall
    assert found.cells == len(errors)
    assert found.mean == pytest.approx(np.mean(errors))
    assert found.mean_absolute == pytest.approx(np.mean(np.abs(errors)))
    assert found.root_mean_square == pytest.approx(math.sqrt(np.mean(np.square(errors))))
    assert any(errors)


@pytest.mark.parametrize("level", LEVELS)
def test_cells_are_as_by_hand_and_empty_ones_count(census, other, study, level) -> None:
    before, after = Counter(persons(census, level)), Counter(persons(other, level))
    found, areas = study.at(level).measures["cells"], study.at(level).areas
    errors = {cell: after[cell] - before[cell] for cell in before | after}
    assert found.overall.cells == areas * 126
    assert found.overall.mean_absolute * areas * 126 == pytest.approx(
        sum(map(abs, errors.values()))
    )
    zero = [error for cell, error in errors.items() if before[cell] == 0]
    assert found.by_count["0"].mean * found.by_count["0"].cells == pytest.approx(sum(zero))
    assert found.by_count["0"].cells == areas * 126 - len(+before)
    few = [error for cell, error in errors.items() if 1 <= before[cell] <= 4]
    assert found.by_count["1-4"].cells == len(few)
    assert found.by_count["1-4"].mean == pytest.approx(np.mean(few))
    for groups in (found.by_size, found.by_count):
        assert sum(one.cells for one in groups.values()) == areas * 126


@pytest.mark.parametrize("level", LEVELS)
def test_sizes_are_true_populations(census, study, level) -> None:
    sizes = [cells[0] for cells in by_hand(census, level)["P1"].values()]
    bounds = [0, 1, 10, 50, 200] if level == "block" else [0, 1, 100, 1_000]
    found = study.at(level).measures["total"].by_size
    for name, low, high in zip(labels(bounds), bounds, [*bounds[1:], math.inf], strict=True):
        number = sum(low <= size < high for size in sizes)
        if name in found:
            assert found[name].cells == number


def test_the_fitness_target_is_as_by_hand(census, other, study) -> None:
    level, good, left_out, areas = "block", 0, 0, 0
    tables = []
    for one in (census, other):
        counts: dict = {}
        for area, hispanic, mix in persons(one, level):
            plain = mix - {"w"} or mix
            group = GROUPS.index(plain) if plain in GROUPS and len(mix) <= 2 else 6
            counts.setdefault(area, Counter())[int(hispanic) - 1, group] += 1
        tables.append(counts)
    before, after = tables
    for area in before:
        areas += 1
        if area not in after:
            left_out += 1
            continue
        largest = max(sorted(after[area]), key=lambda group: after[area][group])
        shares = [one[area][largest] / one[area].total() for one in (after, before)]
        good += abs(shares[0] - shares[1]) <= 0.05
    found = study.at(level).fitness
    assert sum(one.areas for one in found) == areas
    assert sum(one.undefined for one in found) == left_out
    assert sum(one.within for one in found) == good


def test_the_largest_group_is_that_of_the_output() -> None:
    before = np.array([[60, 40], [60, 40], [0, 3], [5, 5]])
    after = np.array([[64, 36], [45, 55], [4, 0], [0, 0]])
    small, large = fitness(before, after)
    assert (small.size, small.areas, small.undefined, small.within) == ("1-49", 2, 1, 0)
    assert (large.areas, large.undefined, large.within, large.share) == (2, 0, 1, 0.5)


def test_a_census_has_no_error_against_itself(census) -> None:
    found = study_topdown(census, census)
    for level in found.levels:
        for one in level.measures.values():
            assert one.overall.root_mean_square == 0
        assert all(one.within == one.areas - one.undefined for one in level.fitness)


def test_a_planted_person_is_found(census, engine) -> None:
    rows = engine.to_numpy(census.persons)
    more = {name: np.append(values, values[:1]) for name, values in rows.items()}
    after = Census(
        census.schema, engine, census.geography, census.units, engine.from_numpy(more), "released"
    )
    found = study_topdown(census, after)
    for level in found.levels:
        if level.level != "place":  # a block may lie in none
            assert level.measures["total"].overall.mean * level.areas == pytest.approx(1)
            assert level.measures["cells"].overall.mean_absolute * level.areas == pytest.approx(
                1 / 126
            )


def test_a_census_of_other_blocks_is_refused(census, engine) -> None:
    elsewhere = random_census(engine, blocks=11, units=150, seed=1)
    with pytest.raises(BadInput, match=r"not the same areas of level 'block'.*made from"):
        study_topdown(elsewhere, census)


def test_nothing_is_the_error_of_nothing() -> None:
    assert summary(np.array([], dtype=np.int64), np.array([], dtype=np.int64)).cells == 0


def test_another_layout_is_refused(engine, census) -> None:
    country = register_census(engine, [(0, "owner", [(30, "f", "national")])])
    with pytest.raises(BadInput, match="smallest areas"):
        study_topdown(census, country)
    with pytest.raises(BadInput, match="94-171"):
        study_topdown(country, country)


# -- the theory of totals ----------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.5, 50), min_size=2, max_size=6),
    st.floats(0, 20),
)
def test_the_variance_of_a_total_is_that_of_the_linear_map(noise, above) -> None:
    # Least squares with a fixed sum is linear in noises and parent: t = y + (v/V)(T - sum y).
    v = np.array(noise)
    part = v / v.sum()
    on_noise = np.eye(v.size) - np.outer(part, np.ones(v.size))
    expected = (on_noise**2) @ v + part**2 * above
    found = split(v, np.zeros(v.size, dtype=np.int64), np.array([above]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    # It is the minimiser: the derivative of the objective is the same for every child.
    rng = np.random.default_rng(0)
    y, total = rng.normal(size=v.size), 3.0
    fitted = y + part * (total - y.sum())
    assert fitted.sum() == pytest.approx(total)
    slopes = (fitted - y) / v
    assert np.ptp(slopes) < 1e-9


def test_regular_trees_are_as_planned() -> None:
    strategy = load_strategy("pl94-us-persons-2020").rooted("state")
    children = (3, 4, 2, 5)
    parents, nodes = [np.zeros(1, dtype=np.int64)], 1
    for number in children:
        parents.append(np.repeat(np.arange(nodes), number))
        nodes *= number
    found = expected_variances(strategy, parents)
    planned = planning.expected_totals(strategy, children)
    assert list(found) == [one.level for one in planned] == ["county", "tract", "block_group"]
    for one in planned:
        np.testing.assert_allclose(found[one.level], one.variance)


def test_shares_are_those_of_the_mechanism(census) -> None:
    strategy = load_strategy("pl94-us-persons-2020")
    spine = spine_of(census, strategy.level_names)
    by_level = [measured.share for measured in strategy.levels]
    theirs = bypass(spine, by_level)
    ours = unit_shares(by_level, spine.parents)
    only = 0
    for level, shares in enumerate(ours):
        values = [theirs.values[level][place] for place in theirs.index[level]]
        assert shares.tolist() == values
        only += sum(share == 0 for share in values)
    assert only > 0


def test_only_children_equal_their_parents() -> None:
    strategy = load_strategy("pl94-us-persons-2020").rooted("state")
    one = np.zeros(1, dtype=np.int64)
    chain = [one, np.array([0, 0]), np.array([0, 1]), np.array([0, 1]), np.array([0, 1])]
    found = expected_variances(strategy, chain)
    together = sum((strategy.at(level).share for level in strategy.level_names[1:]), Fraction(0))
    half = float(strategy.sigma2("county", "total", together)) / 2
    for level in ("county", "tract", "block_group"):
        np.testing.assert_allclose(found[level], half)


def test_a_strategy_without_totals_has_no_theory() -> None:
    units = load_strategy("pl94-us-units-2020").rooted("block")
    assert expected_variances(units, [np.zeros(3, dtype=np.int64)]) == {}


def test_the_study_says_what_is_expected(census, other) -> None:
    strategy = load_strategy("pl94-us-persons-2020").rooted("state")
    found = study_topdown(census, other, strategy)
    assert found.strategy == "pl94-us-persons-2020"
    # Two counties: each has half the variance of its measurement (and more if a tract is alone).
    assert found.at("county").expected == pytest.approx(
        math.sqrt(float(strategy.sigma2("county", "total")) / 2)
    )
    assert found.at("block").expected is None
    assert found.at("place").expected is None


# -- the command -------------------------------------------------------------------------------


def run(*arguments: object):
    app = typer.Typer()
    evaluations.add_to(app)
    return CliRunner().invoke(app, ["evaluate", "topdown", *map(str, arguments)])


@pytest.fixture(scope="module")
def folders(census, tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("evaluate")
    written = write_census(census, folder / "census")
    swapping = PermutationSwapping(
        census_schema=written.schema, rate="1/2", match=("tenure",), within="state"
    )
    protect(swapping, written, trial(seed=3), folder / "release")
    return folder / "census", folder / "release"


def test_any_release_with_these_counts_can_be_compared(folders, tmp_path) -> None:
    out = tmp_path / "errors.html"
    done = run(*folders, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["strategy"] is None
    assert told["levels"]["state"]["measures"]["total"]["overall"]["mean_absolute_error"] == 0
    assert told["levels"]["block"]["measures"]["cells"]["overall"]["mean_absolute_error"] > 0
    assert told["origin"] == "simulated"
    assert "no part of a release" in told["internal"]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_the_command_prints_a_line_per_level(folders) -> None:
    done = run(*folders)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == SIMULATED
    assert lines[1].startswith("Internal")
    assert [line.split()[0] for line in lines[4:]] == LEVELS


def test_the_columns_stay_apart_however_large_the_numbers(study) -> None:
    huge = Accuracy(3_143_997, 1.0, -12345678.25, 98765432.5, 123456789.75)
    one = study.levels[0]
    large = replace(
        one,
        areas=8_132_968,
        measures={name: replace(m, overall=huge) for name, m in one.measures.items()},
        expected=7654321.0,
    )
    lines = evaluations._error_lines(replace(study, levels=(large, *study.levels[1:])))
    assert [len(line.split()) for line in lines[-len(study.levels) :]] == [8] * len(study.levels)
    assert len({len(line) for line in lines[-len(study.levels) - 2 :]}) == 1


def test_the_command_refuses_the_census_of_another_release(folders, engine, tmp_path) -> None:
    write_census(random_census(engine, blocks=10, units=80, seed=2), tmp_path / "elsewhere")
    done = run(tmp_path / "elsewhere", folders[1])
    assert done.exit_code == 2
    assert "not the same areas" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--out", "none/errors.html"), "folder that exists"), (("--out", "."), "folder that exists")],
)
def test_a_bad_target_is_refused(folders, tmp_path, monkeypatch, arguments, message) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*folders, *arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert not list(tmp_path.iterdir())


def test_the_strategy_is_that_of_the_release(folders) -> None:
    swapped = Release.open(folders[1])
    assert persons_strategy(swapped) is None
    given = {"persons": "pl94-us-persons-2020", "root": "state"}

    def release(parameters: dict) -> Release:
        changes = {"mechanism": "topdown", "parameters": parameters}
        header = ReleaseHeader(**{**swapped.header.model_dump(), **changes})
        return Release(swapped.folder, header, swapped.specification)

    strategy = load_strategy("pl94-us-persons-2020")
    assert persons_strategy(release(given)) == strategy.rooted("state")
    assert persons_strategy(release({**given, "root": None})) == strategy
    assert persons_strategy(release({"persons": None, "units": "pl94-us-units-2020"})) is None
