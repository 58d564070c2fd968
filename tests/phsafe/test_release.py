"""What a release holds: every cell with its noise and variance, and what follows from it."""

import csv
import dataclasses
import warnings
from collections import defaultdict
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from discreet.engine import Engine
from discreet.errors import BadInput, DiscreetError
from discreet.mechanisms import make_draw, mechanism, protect
from discreet.mechanisms.phsafe import load_configuration
from discreet.noise import key_of, trial
from discreet.products import sdhc
from discreet.spec import catalog
from phsafe.homes import Home, Person, census_of, random_homes, silent
from phsafe.plain import tabulate
from worlds import folder_bytes

US = load_configuration("us-2020")
FAMILY = (Person(40, "20"), Person(38, "21", sex="2"), Person(9, "25"), Person(3, "25"))


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


@pytest.fixture(scope="module")
def nation(engine):
    return census_of(engine, [Home(n, FAMILY, state=s) for n, s in enumerate(sdhc.STATES, 1)])


@pytest.fixture(scope="module")
def release(nation, tmp_path_factory):
    made = mechanism("phsafe", nation.schema, {"configuration": "us-2020"})
    return protect(made, nation, trial(5), tmp_path_factory.mktemp("us") / "release")


def table_of(release, name: str) -> list[dict]:
    with (release.folder / "tables" / f"{name}.csv").open() as file:
        return list(csv.DictReader(file, delimiter="|"))


def level_of(row: dict) -> str:
    group = {"*": "*", "H": "H,I", "I": "H,I"}.get(row.get("ITERATION_CODE", "*"), "A-G")
    return f"{row['REGION_TYPE'].lower()}_{group}"


# -- all cells, no noise ----------------------------------------------------------------------


def test_without_noise_the_release_is_the_plain_tabulation(engine, tmp_path):
    census = census_of(engine, random_homes(3_000, seed=8), states=("01", "50"))
    parameters = {"configuration": "us-2020", "states": ["01", "50"]}
    made = mechanism("phsafe", census.schema, parameters)
    release = protect(made, census, silent(), tmp_path / "release")
    plain = tabulate(census, US.thresholds, {"01", "50"})
    for name, shell in sdhc.SHELLS.items():
        rows = table_of(release, name)
        assert len(rows) == sum(sdhc.cells_of(level, name, ("01", "50")) for level in shell.levels)
        for row in rows:
            cell = row["REGION_ID"], row.get("ITERATION_CODE", "*"), int(row[shell.column])
            assert int(row["COUNT"]) == plain[name, level_of(row)][cell], (name, row)


def test_a_run_of_51_states_has_10608_cells(release):
    sizes = {name: len(table_of(release, name)) for name in sdhc.SHELLS}
    assert sum(sizes.values()) == 10_608
    rows = [tuple(row.values())[:-3] for name in sdhc.SHELLS for row in table_of(release, name)]
    assert len({(row, name) for row, name in zip(rows, _names(sizes), strict=True)}) == 10_608


def _names(sizes: dict) -> list[str]:
    return [name for name, size in sizes.items() for _ in range(size)]


def test_columns_are_those_of_the_published_files(release):
    for name in (*sdhc.SHELLS, *sdhc.DERIVED):
        first = (release.folder / "tables" / f"{name}.csv").read_text().splitlines()[0]
        group = [] if name in ("PH2", "PH6") else ["ITERATION_CODE"]
        cell = f"{name.upper()}_DATA_CELL"
        end = ["COUNT", "NOISE_DISTRIBUTION", "VARIANCE"]
        assert first.split("|") == ["REGION_ID", "REGION_TYPE", *group, cell, *end]


def test_text_and_parquet_say_the_same(release, engine):
    for name in (*sdhc.SHELLS, *sdhc.DERIVED):
        frame = engine.read_parquet(release.folder / "tables" / f"{name}.parquet")
        rows = [tuple(str(value) for value in row) for row in engine.rows(frame)]
        assert rows == [tuple(row.values()) for row in table_of(release, name)]


# -- noise -------------------------------------------------------------------------------------


def noise_by_part(release, nation) -> dict[tuple[str, str], list[int]]:
    """Return all noise that was added, by table and level."""
    plain = tabulate(nation, US.thresholds, set(sdhc.STATES))
    found = defaultdict(list)
    for name, shell in sdhc.SHELLS.items():
        for row in table_of(release, name):
            cell = row["REGION_ID"], row.get("ITERATION_CODE", "*"), int(row[shell.column])
            place = name, level_of(row)
            found[place].append(int(row["COUNT"]) - plain[place][cell])
    return found


PARAMETERS = {(part.table, part.level): part.parameter for part in US.account.parts}


def noise_by_variance(release, nation) -> dict[Fraction, list[int]]:
    """Return all noise that was added, by the parameter it was drawn with."""
    found = defaultdict(list)
    for place, drawn in noise_by_part(release, nation).items():
        found[PARAMETERS[place]] += drawn
    return found


def chi_square(noise: dict[Fraction, list[int]], scale: float = 1.0) -> float:
    """Return the statistic of 40 equal bins of P(X < x) + U P(X = x), uniform under the law.

    `scale` changes the variance that is assumed.
    """
    random, places = np.random.default_rng(1), []
    for parameter, drawn in noise.items():
        sigma2 = scale * float(parameter)
        reach = int(12 * sigma2**0.5) + 1
        mass = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * sigma2))
        mass /= mass.sum()
        below = np.concatenate([[0.0], mass.cumsum()])
        at = np.array(drawn) + reach
        places.append(below[at] + random.random(len(at)) * mass[at])
    counts = np.histogram(np.concatenate(places), bins=40, range=(0, 1))[0]
    wanted = counts.sum() / 40
    return float(((counts - wanted) ** 2 / wanted).sum())


#: Exceeded with probability 1e-6 by a chi-square of 39 degrees of freedom. The seed is fixed.
LIMIT = 95.7


def test_noise_of_all_cells_follows_its_law(release, nation):
    noise = noise_by_variance(release, nation)
    assert sum(map(len, noise.values())) == 10_608
    assert len(noise) == 9
    assert chi_square(noise) < LIMIT
    # Standardised squares: mean 1, variance 2; beyond 5 sd once in 2 million fresh seeds.
    squares = np.concatenate([np.square(x) / float(s) for s, x in noise.items()])
    assert abs(squares.mean() - 1) < 5 * np.sqrt(2 / squares.size)


@pytest.mark.parametrize("scale", [0.8, 1.25, (10 / 22) ** 2])
def test_noise_of_another_variance_is_caught(release, nation, scale):
    assert chi_square(noise_by_variance(release, nation), scale) > LIMIT


def related(noise: dict[tuple[str, str], list[int]]) -> list:
    """Return the pairs of tables and levels whose noise is not independent.

    Noise of one parameter from one key begins alike. From another parameter it is not the
    same but goes along with it: correlations above 0.8 in 14 cells and more, which
    independent noise of one pair reaches with probability below 1e-3 (14 cells) or 1e-20
    (100 cells).
    """
    found = []
    for one, other in combinations(noise, 2):
        length = min(len(noise[one]), len(noise[other]))
        x, y = (np.array(noise[place][:length]) for place in (one, other))
        same = PARAMETERS[one] == PARAMETERS[other] and length > 1 and (x == y).all()
        if same or (length >= 14 and np.corrcoef(x, y)[0, 1] > 0.8):
            found.append((one, other))
    return found


def test_levels_and_tables_have_noise_of_their_own(release, nation):
    noise = noise_by_part(release, nation)
    assert len(noise) == 46
    assert related(noise) == []


#: A table whose noise is that of another: with the same parameter, and with another one.
REUSED = [("PH4", "PH1_num"), ("PH3", "PH1_num")]


@pytest.mark.parametrize(("table", "other"), REUSED)
def test_noise_that_is_used_twice_is_caught(nation, tmp_path, monkeypatch, table, other):
    def planted(tables, levels):
        return key_of([other if name == table else name for name in tables], levels)

    monkeypatch.setattr("discreet.mechanisms.phsafe.mechanism.key_of", planted)
    made = mechanism("phsafe", nation.schema, {"configuration": "us-2020"})
    again = protect(made, nation, trial(5), tmp_path / "release")
    caught = {(one[0], two[0]) for one, two in related(noise_by_part(again, nation))}
    assert caught & {(table, other), (other, table)}


def test_every_level_of_every_table_has_a_key_of_its_own(nation, tmp_path, monkeypatch):
    """Some vectors are too short to be compared; their keys are not."""
    keys = []

    def noted(rng, law, purpose, key, parameter, counts, size):
        keys.append((purpose, key))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("discreet.mechanisms.phsafe.mechanism.measure", noted)
    made = mechanism("phsafe", nation.schema, {"configuration": "us-2020"})
    make_draw(made, nation, trial(5), tmp_path / "draw", "design")
    assert len(keys) == len(set(keys)) == 46


# -- variances and derived tables ----------------------------------------------------------------


def test_every_row_has_the_variance_of_its_noise(release):
    sigma2 = {(part.table, part.level): float(part.parameter) for part in US.account.parts}
    for name in sdhc.SHELLS:
        for row in table_of(release, name):
            assert float(row["VARIANCE"]) == pytest.approx(sigma2[name, level_of(row)], rel=1e-9)
            assert row["NOISE_DISTRIBUTION"] == "Discrete Gaussian"


def test_derived_numerators(release):
    ph4, ph5 = table_of(release, "PH4"), table_of(release, "PH5_num")
    assert [tuple(row.values()) for row in ph4] == [tuple(row.values()) for row in ph5]
    seven = {
        (row["REGION_ID"], row["ITERATION_CODE"], row["PH7_DATA_CELL"]): row
        for row in table_of(release, "PH7")
    }
    eight = table_of(release, "PH8_num")
    assert len(eight) == 1040
    for row in eight:
        parts = ("2", "3") if row["PH8_NUM_DATA_CELL"] == "2" else ("4",)
        summed = [seven[row["REGION_ID"], row["ITERATION_CODE"], part] for part in parts]
        assert int(row["COUNT"]) == sum(int(part["COUNT"]) for part in summed)
        variance = sum(float(part["VARIANCE"]) for part in summed)
        assert float(row["VARIANCE"]) == pytest.approx(variance, rel=1e-12)


def test_estimates_come_with_the_tables(release):
    names = {path.stem for path in (release.folder / "estimates").glob("*.parquet")}
    assert names == {f"PH{number}" for number in range(1, 9)}


def test_geometric_noise(engine, tmp_path):
    budgets = {name: dict.fromkeys(s.levels, "0") for name, s in sdhc.SHELLS.items()}
    budgets["PH7"]["state_*"] = "1"
    census = census_of(engine, [Home(1, FAMILY)])
    parameters = {
        "states": ["50"], "noise": "geometric", "budgets": budgets, "thresholds": US.thresholds,
    }  # fmt: skip
    made = mechanism("phsafe", census.schema, parameters)
    release = protect(made, census, trial(1), tmp_path / "release")
    tables = {path.stem for path in (release.folder / "tables").glob("*.csv")}
    assert tables == {"PH7", "PH8_num"}
    (row, *_) = table_of(release, "PH7")
    r = np.exp(-1 / 22)
    assert float(row["VARIANCE"]) == pytest.approx(2 * r / (1 - r) ** 2)
    assert row["NOISE_DISTRIBUTION"] == "Two-Sided Geometric"
    assert release.specification.budget.unit == "epsilon"
    assert release.specification.budget.amount.of == 2


# -- the promise -----------------------------------------------------------------------------------


def test_the_promise_is_the_published_one(release, nation):
    promise = release.specification
    assert promise.budget.amount.of == Fraction("2.514562")
    assert (promise.budget.unit, promise.budget.status) == ("rho2", "published")
    assert promise.output_premetric.name == "normalised-renyi"
    assert (promise.input_premetric.name, promise.input_premetric.unit) == (
        "hamming-of-multisets",
        "person",
    )
    published = catalog.specification("phsafe")
    assert promise.input_premetric == published.input_premetric
    assert promise.multiverse.invariants == published.multiverse.invariants
    unbounded = {"configuration": "us-2020", "change": "add-remove"}
    own = mechanism("phsafe", nation.schema, unbounded).specify()
    assert own.budget.amount.of == Fraction("1.257281")
    assert own.input_premetric.name == "symmetric-difference"


def test_the_promise_says_whose_account_it_is_and_what_it_rests_on(release, nation, engine):
    told = release.specification.budget.conditions
    assert told[0] == "the account of the United States; counted: all 50 states and DC"
    assert "records of the housing units that it leaves or joins may change" in told[1]
    assert len(told) == 2
    island = mechanism("phsafe", nation.schema, {"configuration": "pr-2020"}).specify()
    assert island.budget.conditions[0].startswith("the account of Puerto Rico")
    # Composition asks for one domain, so states are no part of it.
    assert island.domain == release.specification.domain
    assert "counted: all 50 states" in release.specification.describe()


def test_a_nation_of_one_state_is_not_passed_over(engine, tmp_path):
    census = census_of(engine, [Home(1, FAMILY)])
    made = mechanism("phsafe", census.schema, {"configuration": "us-2020", "states": ["50"]})
    with pytest.warns(UserWarning, match="not the nation") as seen:
        release = protect(made, census, trial(1), tmp_path / "release")
    assert len(seen) == 1
    text = (release.folder / "codebook.csv").read_text()
    assert "*|REGION_ID|1|Not the nation: 1 of 51 states, 50|" in text
    assert "not the nation" in release.specification.budget.conditions[2]
    assert "not the nation" in (release.folder / "accounting.yaml").read_text()
    states = {**{t: dict.fromkeys(s.levels, "0") for t, s in sdhc.SHELLS.items()}}
    states["PH7"]["state_*"] = "1"
    own = {"states": ["50"], "budgets": states, "thresholds": US.thresholds}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mechanism("phsafe", census.schema, own).check(census)


def test_every_column_and_cell_that_is_published_is_in_the_codebook(release):
    rows = [line.split("|") for line in (release.folder / "codebook.csv").read_text().splitlines()]
    columns = {(table, column) for table, column, *_ in rows}
    codes = {(table, code) for table, column, code, *_ in rows if column.endswith("DATA_CELL")}
    for kind, told in (("tables", "*"), ("estimates", "estimates")):
        for path in (release.folder / kind).glob("*.csv"):
            header, *lines = (line.split("|") for line in path.read_text().splitlines())
            for name in header:
                plain = name.removesuffix("_NUM").removesuffix("_DENOM")
                known = {(told, name), (told, plain), ("*", name), (path.stem, name)} & columns
                assert known, (path.name, name)
            (place,) = (i for i, name in enumerate(header) if name.endswith("DATA_CELL"))
            cells = {line[place] for line in lines}
            assert {(path.stem, cell) for cell in cells} <= codes, path.name
    # And nothing of a quotient's parts that is nowhere.
    assert ("PH1_num", "1") not in codes


def test_a_column_that_no_table_looks_at_need_not_be_there(engine, tmp_path):
    census = census_of(engine, [Home(1, FAMILY)])
    short = dataclasses.replace(census, units=census.units.drop("tenure", "couple_type"))
    nothing = {table: dict.fromkeys(shell.levels, "0") for table, shell in sdhc.SHELLS.items()}
    ages = {**nothing, "PH1_num": {**nothing["PH1_num"], "state_*": "1"}}
    own = {"states": ["50"], "thresholds": US.thresholds}
    made = mechanism("phsafe", census.schema, {**own, "budgets": ages})
    tables = [
        protect(made, one, trial(1), tmp_path / name).folder / "tables"
        for name, one in (("short", short), ("whole", census))
    ]
    assert folder_bytes(tables[0]) == folder_bytes(tables[1])
    tenure = {**nothing, "PH7": {**nothing["PH7"], "state_*": "1"}}
    with pytest.raises(BadInput, match="tenure"):
        mechanism("phsafe", census.schema, {**own, "budgets": tenure}).check(short)


def test_a_draw_of_other_states_is_not_given_their_names(engine, tmp_path):
    census = census_of(engine, [Home(1, FAMILY), Home(2, FAMILY, state="01")])
    made = [
        mechanism("phsafe", census.schema, {"configuration": "us-2020", "states": [state]})
        for state in ("50", "01")
    ]
    with pytest.warns(UserWarning, match="not the nation"):
        made[0].check(census)
    (tmp_path / "draw" / "tables").mkdir(parents=True)
    made[0].draw(census, trial(1), tmp_path / "draw")
    with pytest.raises(DiscreetError, match="not the one of these parameters"):
        made[1].publish(tmp_path / "draw", tmp_path / "other", engine)


def test_parameters_written_out_make_the_same_mechanism(nation, release, tmp_path):
    made = mechanism("phsafe", nation.schema, release.header.parameters)
    again = protect(made, nation, trial(5), tmp_path / "release")
    assert folder_bytes(again.folder / "tables") == folder_bytes(release.folder / "tables")
