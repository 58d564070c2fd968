"""Noisy tables: every cell is there, the noise is what the budget says, and no more is told."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.census import Census, Table, categories, load_schema
from discreet.census.declarations import Recode
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import NoisyTables, mechanism, protect
from discreet.noise import DiscreteGaussian, trial
from discreet.products import tabulate
from worlds import register_census, us_census

ONE = (0, "1", [(40, "1", "01")])
PAIR = (1, "3", [(40, "1", "01"), (38, "2", "02")])
THREE = (2, "1", [(70, "2", "02"), (71, "1", "02"), (8, "1", "07")])
QUERIES = [
    {"table": "H4", "level": "county", "share": "1/4"},
    {"table": "H9", "level": "block", "share": "1/4"},
    {"table": "H11", "level": "tract", "share": "1/2"},
]


def tables(**changes) -> NoisyTables:
    parameters = {"noise": "gaussian", "budget": "2/3", "change": "replace", "queries": QUERIES}
    return mechanism("noisy-tables", load_schema("us-decennial"), {**parameters, **changes})


def test_every_cell_is_released_empty_ones_too(tmp_path):
    engine = Engine()
    census = us_census(engine, [ONE, PAIR])
    release = protect(tables(), census, trial(1), tmp_path / "release")
    rows = engine.rows(engine.read_parquet(release.folder / "tables" / "H9-block.parquet"))
    sizes = ["0", "1", "2", "3", "4", "5", "6", "7+"]
    blocks = sorted(row[0] for row in engine.rows(census.geography.select("block")))
    assert sorted(row[:2] for row in rows) == sorted(itertools.product(blocks, sizes))


def test_a_table_by_nothing_counts_all_records_of_an_area(tmp_path):
    engine, schema = Engine(), load_schema("us-decennial")
    total = Table(name="P0", title="Population", count="persons", levels=["county"])
    schema = schema.model_copy(update={"tables": [total]})
    census = replace(us_census(engine, [ONE, PAIR], extras=False), schema=schema)
    asked = {"table": "P0", "level": "county", "share": "1"}
    parameters = {"noise": "gaussian", "budget": "50", "queries": [asked]}
    made = mechanism("noisy-tables", schema, parameters)
    release = protect(made, census, trial(1), tmp_path / "release")
    (row,) = engine.rows(engine.read_parquet(release.folder / "tables" / "P0-county.parquet"))
    assert row[:2] == ("50001", 3)


def test_the_variance_beside_each_number_is_that_of_the_noise(tmp_path):
    engine = Engine()
    census = us_census(engine, [ONE])
    made = tables(budget="40")
    release = protect(made, census, trial(1), tmp_path / "release")
    for query in made.queries:
        frame = engine.read_parquet(release.folder / "tables" / query.file)
        (told,) = set(engine.to_numpy(frame.select("variance"))["variance"])
        sigma2 = made.parameter(query)
        assert told == pytest.approx(float(DiscreteGaussian(sigma2).variance()), rel=1e-12)
        assert told < float(sigma2)  # so small a sigma that the discrete law is narrower


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_noise_has_the_variance_the_budget_buys(noise, tmp_path):
    """Standardised sum of squares over 3 x 8 x 40 draws; false alarm below 1e-6 at 6 sd."""
    engine = Engine()
    census = us_census(engine, [ONE, PAIR, THREE])
    queries = [{"table": "H9", "level": "block", "share": "1"}]
    made = tables(noise=noise, budget="1/10", queries=queries)
    exact = dict((row[:2], row[2]) for row in engine.rows(tabulate(census, "H9", "block")))
    squares = []
    for seed in range(40):
        made.draw(census, trial(seed), tmp_path / str(seed))
        frame = engine.read_parquet(tmp_path / str(seed) / "tables" / "H9-block.parquet")
        for area, size, value in engine.rows(frame):
            squares.append((value - exact.get((area, size), 0)) ** 2)
    squares = np.array(squares, dtype=float)
    parameter = float(made.parameter(made.queries[0]))
    variance = parameter if noise == "gaussian" else 2 * parameter**2
    kurtosis = 3 if noise == "gaussian" else 6
    sd = variance * np.sqrt((kurtosis - 1) / len(squares))
    assert abs(squares.mean() - variance) < 6 * sd


def vectors(census: Census, made: NoisyTables) -> list[dict]:
    return [
        {row[:-1]: row[-1] for row in census.engine.rows(tabulate(census, q.table, q.level))}
        for q in made.queries
    ]


def spent(made: NoisyTables, before: Census, after: Census) -> Fraction:
    """Return the loss of this very pair: the distance of the exact counts over the noise."""
    total = Fraction(0)
    for query, one, other in zip(
        made.queries, vectors(before, made), vectors(after, made), strict=True
    ):
        changes = [one.get(cell, 0) - other.get(cell, 0) for cell in one.keys() | other.keys()]
        if made.noise == "gaussian":
            total += Fraction(sum(c * c for c in changes)) / (2 * made.parameter(query))
        else:
            total += sum(abs(c) for c in changes) / made.parameter(query)
    return total


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("change", ["add-remove", "replace"])
def test_no_pair_of_neighbours_costs_more_than_the_budget(noise, change):
    """Tries to break the bound: all pairs of tiny censuses that differ in one household."""
    engine = Engine(threads=1)
    made = tables(noise=noise, change=change)
    worlds = [ONE, PAIR, THREE, (1, "3", ONE[2])]
    costs = []
    for kept in (ONE, PAIR):
        base = us_census(engine, [kept], extras=False)
        bigger = [us_census(engine, [kept, extra], extras=False) for extra in worlds]
        if change == "add-remove":
            costs += [spent(made, base, other) for other in bigger]
        else:
            costs += [spent(made, a, b) for a, b in itertools.combinations(bigger, 2)]
    assert max(costs) == made.specify().budget.amount.of == Fraction(2, 3)


def test_a_table_of_persons_by_their_household_would_break_the_bound():
    """The refused case is refused for a reason: one more person changes other persons' cells."""
    engine = Engine(threads=1)
    shell = Table(name="X", title="x", count="persons", by=["size_class"], levels=["state"])
    pair, three = (
        us_census(engine, [(0, "1", [(40, "1", "01"), (30, "2", "01"), *more])], extras=False)
        for more in ([], [(5, "1", "01")])
    )
    before, after = (
        dict(engine.rows(tabulate(c, shell, "state").select("size_class", "count")))
        for c in (pair, three)
    )
    assert sum(abs(before.get(k, 0) - after.get(k, 0)) for k in before | after) == 5
    schema = load_schema("us-decennial")
    # Hidden behind a computed column of persons it is refused all the same.
    hidden = {"lives": Recode(of="size", bins={"1-2": (1, 2), "3+": (3, None)})}
    shell2 = Table(name="Y", title="y", count="persons", by=["lives"], levels=["state"])
    changed = schema.model_copy(
        update={
            "tables": [*schema.tables, shell, shell2],
            "computed_persons": {**schema.computed_persons, **hidden},
        }
    )
    for table in ("X", "Y"):
        parameters = {"noise": "gaussian", "budget": "1", "queries": [query(table, "state", "1")]}
        with pytest.raises(BadInput, match="depends on the members of the unit"):
            mechanism("noisy-tables", changed, parameters)


def query(table: str, level: str, share: str) -> dict:
    return {"table": table, "level": level, "share": share}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"budget": "0"}, "budget"),
        ({"budget": 0.5}, "exact"),
        ({"noise": "normal"}, "noise"),
        ({"queries": []}, "queries"),
        ({"queries": [query("H4", "county", "1/2")]}, "add up to exactly 1"),
        ({"queries": [query("H44", "county", "1")]}, "Did you mean"),
        ({"queries": [query("H4", "conty", "1")]}, "Did you mean 'county'"),
        ({"queries": [query("H4", "county", "1/2"), query("P1", "county", "1/2")]}, "the same"),
        ({"queries": [query("H4", "county", "1/2")] * 2}, "twice"),
        ({"queries": [query("P5", "county", "1")]}, "depends on the unit of the person"),
    ],
)
def test_bad_parameters_get_one_clear_error(changes, says):
    with pytest.raises(BadInput, match=says):
        tables(**changes)


def test_it_works_for_the_other_profile(tmp_path):
    engine = Engine()
    census = register_census(engine, [(0, "owner", [(40, "f", "national")])])
    parameters = {
        "noise": "laplace",
        "budget": "3",
        "queries": [query("R1", "cell", "1/3"), query("R3", "region", "2/3")],
    }
    made = mechanism("noisy-tables", census.schema, parameters)
    with pytest.raises(BadInput, match="optional in schema"):
        protect(made, census, trial(1), tmp_path / "refused")
    made = mechanism(
        "noisy-tables", census.schema, {**parameters, "queries": [query("R1", "cell", "1")]}
    )
    release = protect(made, census, trial(1), tmp_path / "release")
    frame = engine.read_parquet(release.folder / "tables" / "R1-cell.parquet")
    assert len(engine.rows(frame)) == 3 * 2 * 4


def test_categories_come_from_the_schema():
    us, other = load_schema("us-decennial"), load_schema("register-country")
    assert categories(us, "persons", "race_group")[-1] == "Two or more"
    assert len(categories(us, "persons", "race")) == 63
    assert categories(us, "units", "householder_sex") == ["1", "2"]
    assert len(categories(us, "units", "derived_household_type")) == 7
    assert len(categories(other, "persons", "age")) == 111
    assert categories(other, "persons", "born_abroad") == ["here", "abroad"]
    for column in ("size", "latitude", "derived_family_size"):
        with pytest.raises(BadInput, match="no finite list"):
            categories(us, "units", column)
