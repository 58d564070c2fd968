"""The study of swaps: every figure counted again in another way, and by hand."""

import dataclasses
import json
import math
from collections import Counter
from pathlib import Path
from typing import ClassVar

import narwhals as nw
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from discreet.census import Census
from discreet.cli import evaluations
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.evaluate import (
    COMPONENTS,
    directions,
    entropy,
    error_table,
    study_swaps,
    swap_methods,
)
from discreet.evaluate.directions import rank_correlation
from discreet.mechanisms import mechanism, protect
from discreet.mechanisms.swapping import Places, Swap, TargetedSwapping, kilometres
from discreet.mechanisms.swapping.tally import Tally
from discreet.noise import trial
from towns import House, Town, make_town, town_census
from worlds import register_census, write_census

METHODS = ("paper", "published-code", "public-docs-2010", "record-swapping")


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


@pytest.fixture(scope="module")
def town() -> Town:
    return make_town(400, tracts=6, blocks=4, seed=3)


@pytest.fixture(scope="module")
def census(engine: Engine, town: Town) -> Census:
    return town_census(engine, town)


@pytest.fixture(scope="module")
def study(census: Census):
    made = swap_methods(census.schema, METHODS, ["1/20", "1/5"])
    return study_swaps(census, made, runs=2, seed=5, errors_at="tract")


def counts(census: Census, level: str, column: str = "race_group") -> Counter:
    """Return persons by area and group, counted by the engine."""
    rows = census.frame("persons", [level, column]).group_by(level, column).agg(n=nw.len())
    return Counter({(area, group): n for area, group, n in census.engine.rows(rows)})


# -- against a release of the same draw ---------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_it_agrees_with_the_release_of_the_same_draw(census, study, method, tmp_path) -> None:
    (made,) = swap_methods(census.schema, [method], ["1/5"])[method]
    before = entropy(census, "tract", "race_group")
    assert study.entropy == pytest.approx(np.mean(list(before.values())), abs=1e-12)
    blocks = []
    for run in study.of(method)[-1].runs:
        release = protect(made, census, trial(run.seed), tmp_path / f"{method}-{run.seed}")
        after = release.microdata(census.engine)
        values = entropy(after, "tract", "race_group")
        assert run.entropy == pytest.approx(np.mean(list(values.values())), abs=1e-12)
        assert run.rose == sum(values[area] > before[area] + 1e-12 for area in values)
        assert run.fell == sum(values[area] < before[area] - 1e-12 for area in values)
        change = counts(after, "tract")
        change.subtract(counts(census, "tract"))
        for place, group in enumerate(study.groups):
            found = [n for (_, name), n in change.items() if name == group]
            assert sorted(run.errors[:, place][run.errors[:, place] != 0].tolist()) == sorted(
                n for n in found if n
            )
        blocks.append(counts(after, "block"))
    one, other = blocks
    squares = sum((one[cell] - other[cell]) ** 2 for cell in one.keys() | other.keys())
    lived_in = len({block for block, _ in counts(census, "block")})
    assert study.blocks == lived_in
    v_hat = squares / (2 * lived_in * len(study.groups))
    assert study.of(method)[-1].variance == pytest.approx(v_hat)


def test_variance_and_error_are_not_the_same_thing(study) -> None:
    assert all(result.variance > 0 for result in study.results)
    assert any(abs(r.variance - r.squared_error) > 0.01 for r in study.results)


# -- against plain counting over the pairs -------------------------------------------------------


def plain_entropy(table: dict[tuple[str, str], int]) -> float:
    areas: dict[str, list[int]] = {}
    for (area, _), n in table.items():
        if n:
            areas.setdefault(area, []).append(n)
    values = [
        -sum(n / sum(found) * math.log(n / sum(found)) for n in found) for found in areas.values()
    ]
    return sum(values) / len(values)


def test_parts_and_people_counted_household_by_household(census, town, study) -> None:
    (made,) = swap_methods(census.schema, ["paper"], ["1/5"])["paper"]
    households = made.read(census)
    run = study.of("paper")[-1].runs[0]
    swap = made.swap(census, households, trial(run.seed))
    ids = households.unit_id.tolist()
    houses = {house.unit_id: house for house in town.houses}
    names = ("White", "Black", "AIAN", "Asian", "NHPI", "Other", "Two or more")
    before = counts(census, "tract")
    tables = {part: Counter(before) for part in COMPONENTS}
    targets, partners, trades = Counter(), Counter(), Counter()
    for t in swap.targets.tolist():
        one, other = houses[ids[t]], houses[ids[int(swap.partner[t])]]
        here, there = town.blocks[one.block][1], town.blocks[other.block][1]
        for name, n, m in zip(names, one.races, other.races, strict=True):
            tables["targets leave"][here, name] -= n
            tables["targets arrive"][there, name] += n
            tables["partners leave"][there, name] -= m
            tables["partners arrive"][here, name] += m
            targets[name] += n
            partners[name] += m
        trades[_class(one, names), _class(other, names)] += 1
    start = plain_entropy(before)
    for part, table in tables.items():
        assert run.alone[part] == pytest.approx(plain_entropy(table) - start, abs=1e-12)
    assert dict(zip(study.groups, run.targets.persons.tolist(), strict=True)) == dict(
        {name: targets[name] for name in study.groups}
    )
    assert run.partners.persons.tolist() == [partners[name] for name in study.groups]
    classes = (*study.groups, "several")
    for row, one in enumerate(classes):
        for column, other in enumerate(classes):
            assert run.exchanged[row, column] == trades[one, other]


def _class(house: House, names: tuple[str, ...]) -> str:
    present = [name for name, n in zip(names, house.races, strict=True) if n]
    return present[0] if len(present) == 1 else "several"


def test_it_agrees_with_the_internal_report_of_a_swap(census, study) -> None:
    (made,) = swap_methods(census.schema, ["paper"], ["1/5"])["paper"]
    households = made.read(census)
    for run in study.of("paper")[-1].runs:
        swap = made.swap(census, households, trial(run.seed))
        tally = Tally(made.name, made.rate, made.persons, made.groups)
        tally.add(households, swap)
        told = tally.report()
        for who in ("targets", "partners"):
            found = getattr(run, who)
            assert told["share_of_mixed_households"][who] == found.share_mixed
            sizes = {str(size): n for size, n in found.sizes.items()}
            assert told["households_by_size"][who] == sizes
        assert told["swapped"] == run.swapped
        apart = told["kilometres_between_partners"]
        assert apart == {key: pytest.approx(km, abs=1e-3) for key, km in run.kilometres.items()}


def test_parts_add_up_and_nobody_is_lost(study) -> None:
    for result in study.results:
        for run in result.runs:
            assert run.together["partners arrive"] == pytest.approx(run.entropy - study.entropy)
            assert run.together["targets leave"] == run.alone["targets leave"]
            assert not run.errors.sum(axis=0).any()
            assert not run.errors.sum(axis=1).any()  # pairs agree on size
            assert run.exchanged.sum() == run.targets.households == run.swapped // 2
            assert all(row["mean"] == 0 for row in error_table(study, run).values())
    assert study.persons.sum() == study.everybody.persons.sum() + 35  # of collective quarters


# -- a swap worked by hand -----------------------------------------------------------------------


class Planned(TargetedSwapping):
    """Swap the first household with the last."""

    calls: ClassVar[list[int]] = []

    def swap(self, census, households, rng, threads=1) -> Swap:
        self.calls.append(1)
        partner = np.arange(households.size)
        partner[[0, -1]] = partner[[-1, 0]]
        return Swap(partner, np.array([0]), np.array([], dtype=np.int64))


def test_one_swap_by_hand(engine) -> None:
    single = ((40, "01", "1"),)
    houses = (
        House(1, 0, ((40, "02", "1"),)),
        House(2, 0, single),
        House(3, 0, single),
        House(4, 1, single),
        House(5, 1, single),
    )
    blocks = (("10", "10001000000", 0.0, 0.0), ("10", "10001000001", 0.0, 1.0))
    census = town_census(engine, Town(houses, blocks, {}))
    made = Planned(census_schema=census.schema, rate="2/5", preset="paper")
    study = study_swaps(census, {"by hand": [made]}, runs=3, errors_at="tract")
    third = -(math.log(1 / 3) / 3 + 2 * math.log(2 / 3) / 3)
    half = math.log(2)
    assert study.groups == ("White", "Black")
    assert study.entropy == pytest.approx(third / 2)
    (result,) = study.results
    run = result.runs[0]
    assert run.entropy == pytest.approx(half / 2)
    assert (run.rose, run.fell, run.swapped) == (1, 1, 2)
    assert run.alone == pytest.approx(
        {
            "targets leave": -third / 2,
            "partners leave": 0,
            "targets arrive": third / 2,
            "partners arrive": -(3 * math.log(3 / 4) + math.log(1 / 4)) / 8 - third / 2,
        }
    )
    assert run.exchanged.tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]
    assert run.errors.tolist() == [[1, -1], [-1, 1]]
    assert error_table(study, run)["White"] == pytest.approx(
        {"mean": 0, "mean_absolute": 1, "relative": (1 / 5 + 1 / 3) / 2}
    )
    assert result.variance == 0  # it always does the same
    assert result.squared_error == 1
    assert run.kilometres["mean"] == pytest.approx(6371.0088 * math.pi / 180)
    assert len(Planned.calls) == 3


def test_distance_of_antipodes_is_half_a_great_circle() -> None:
    places = Places(None, "state", (), {}, np.zeros(2), np.array([0.0, 180.0]))
    found = kilometres(places, np.array([0]), np.array([1]))
    assert found[0] == pytest.approx(6371.0088 * math.pi)


# -- other schemas, repeatability, refusals -------------------------------------------------------


def test_another_schema_with_its_own_columns_and_levels(engine) -> None:
    people = [(35, "f", "national"), (36, "m", "eu")]
    households = [(n % 6, ("owner", "renter")[n % 5 == 0], people[n % 3 % 2 :]) for n in range(60)]
    census = register_census(engine, households, cells=6)
    cells = [row[0] for row in engine.rows(census.geography.select("cell").sort("cell"))]
    points = engine.from_numpy(
        {
            "cell": np.array(cells, dtype=object),
            "latitude": np.linspace(50, 51, len(cells)),
            "longitude": np.linspace(5, 6, len(cells)),
        }
    )
    joined = census.geography.join(points, on="cell", how="inner")
    census = dataclasses.replace(census, geography=engine.materialise(joined))
    made = mechanism(
        "targeted-swapping",
        census.schema,
        {
            "rate": "1/5",
            "match": ["size"],
            "within": "region",
            "leave": "cell",
            "groups": [],
            "flags": ["size", "tenure"],
            "flag_area": "cell",
        },
    )
    study = study_swaps(
        census, {"near": [made]}, group="citizenship", level="cell", errors_at="municipality"
    )
    assert set(study.groups) == {"national", "eu"}
    assert study.results[0].runs[0].swapped > 0
    assert directions(study)


def test_a_seed_repeats_and_more_runs_only_add(census, study) -> None:
    made = swap_methods(census.schema, ["paper"], ["1/5"])
    again = study_swaps(census, made, runs=1, seed=6, errors_at="tract").results[0]
    assert again.variance is None
    first, second = study.of("paper")[-1].runs
    assert again.runs[0].entropy == second.entropy != first.entropy
    assert (again.runs[0].errors == second.errors).all()


@pytest.mark.parametrize("origin", ["supplied", "released"])
def test_only_simulated_data_are_studied(census, origin) -> None:
    made = swap_methods(census.schema, ["paper"], ["1/5"])
    with pytest.raises(BadInput, match="simulated data only"):
        study_swaps(dataclasses.replace(census, origin=origin), made)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runs": 0}, "runs: must be at least 1"),
        ({"level": "trakt"}, "no level 'trakt'.*'tract'"),
        ({"errors_at": "place"}, "no level 'place'"),
        ({"group": "race_grop"}, "no column 'race_grop'.*'race_group'"),
        ({"group": "age"}, "must have 1 to 64 values"),
    ],
)
def test_what_cannot_be_studied_is_refused(census, options, message) -> None:
    made = swap_methods(census.schema, ["paper"], ["1/5"])
    with pytest.raises(BadInput, match=message):
        study_swaps(census, made, **options)


def test_other_mechanisms_are_refused(census) -> None:
    parameters = {"rate": "1/20", "match": ["size"], "within": "county"}
    made = mechanism("permutation-swapping", census.schema, parameters)
    with pytest.raises(BadInput, match="does not swap pairs"):
        study_swaps(census, {"permutation": [made]})
    with pytest.raises(BadInput, match="no preset 'papr'"):
        swap_methods(census.schema, ["papr"], ["1/5"])


# -- directions -----------------------------------------------------------------------------------


def answers(study) -> dict[str, str]:
    return {d.name: d.findings[0].answer for d in directions(study)}


def planted(study, **changes):
    """Return the study of one method with fields of one of its runs changed."""
    results = list(study.of("paper"))
    last = results[-1]
    runs = (dataclasses.replace(last.runs[0], **changes), *last.runs[1:])
    results[-1] = dataclasses.replace(last, runs=runs)
    return dataclasses.replace(study, results=tuple(results))


def test_one_run_that_goes_the_other_way_is_told(study) -> None:
    down = planted(study, entropy=study.entropy - 0.5)
    assert answers(down)["entropy"] == "not in every run"
    flat = {part: 0.0 for part in COMPONENTS}
    assert answers(planted(study, alone=flat))["targets leave"] == "not in every run"


def test_all_runs_that_go_the_other_way_are_told(study) -> None:
    high = dataclasses.replace(study, entropy=study.entropy + 5)
    assert answers(high)["entropy"] == "not the same"
    (low, top) = study.of("paper")
    worse = dataclasses.replace(top, variance=low.variance / 2)
    found = dataclasses.replace(study, results=(low, worse))
    assert answers(found)["variance"] == "not the same"


def test_one_rate_or_one_run_cannot_tell_what_depends_on_them(study) -> None:
    (low, _) = study.of("paper")
    alone = dataclasses.replace(study, results=(low,))
    assert answers(alone)["variance"] == "cannot be told"
    assert answers(alone)["entropy by rate"] == "cannot be told"


def test_errors_that_do_not_add_up_are_told(study) -> None:
    errors = study.of("paper")[-1].runs[0].errors.copy()
    errors[0, 0] += 1
    assert answers(study)["mean error"] == "same"
    assert answers(planted(study, errors=errors))["mean error"] == "not in every run"


def test_rank_correlation_shares_ranks_of_equals() -> None:
    one = np.array([1.0, 2.0, 2.0, 4.0])
    assert rank_correlation(one, one) == pytest.approx(1)
    assert rank_correlation(one, np.ones(4)) == 0
    ranks = np.corrcoef([0, 1.5, 1.5, 3], [0, 1, 2, 3])[0, 1]
    assert rank_correlation(one, np.array([1.0, 2.0, 3.0, 4.0])) == pytest.approx(ranks)


# -- the command -----------------------------------------------------------------------------------


def run(*arguments: str):
    app = typer.Typer()
    evaluations.add_to(app)
    return CliRunner().invoke(app, ["evaluate", "swap", *arguments])


@pytest.fixture(scope="module")
def folder(census, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("town") / "census"
    write_census(census, out)
    return out


def test_the_command_writes_a_report_and_prints_json(folder, tmp_path) -> None:
    out = tmp_path / "report.html"
    options = ("--preset", "paper", "--rate", "0.2", "--rate", "1/20", "--json")
    done = run(str(folder), "--out", str(out), *options)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [result["rate"] for result in told["results"]] == ["1/20", "1/5"]
    assert len(told["results"][0]["runs"]) == 2
    assert {one["direction"] for one in told["directions"]} >= {"entropy", "mixed households"}


def test_the_command_takes_configurations(folder, tmp_path, root) -> None:
    config = root / "examples" / "swap-2010.yaml"
    out = tmp_path / "report.html"
    done = run(str(folder), "--out", str(out), "--config", str(config), "--runs", "1")
    assert done.exit_code == 0, done.output
    assert "swap-2010  " in done.stdout
    assert "cannot be told" in done.stdout
    assert done.stdout.splitlines()[-1] == str(out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rate", "1"), "--rate: must be a number between 0 and 1"),
        (("--rate", "1/0"), "--rate: must be a number between 0 and 1"),
        (("--preset", "papers"), "Did you mean 'paper'"),
        (("--out", "none/report.html"), "folder that exists"),
    ],
)
def test_the_command_refuses_in_one_message(folder, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    done = run(str(folder), "--out", "report.html", *options)
    assert done.exit_code == 2
    assert "error: " in done.stderr  # a slow machine tells its progress first
    assert message in done.stderr
    assert not list(tmp_path.iterdir())
