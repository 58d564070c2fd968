"""Counts become records: the same tables, in an order and with ids that tell nothing more."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.census import Census, load_schema, validate
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms.topdown import microdata
from discreet.mechanisms.topdown.counts import units_by_quarters
from discreet.mechanisms.topdown.histogram import Histogram
from discreet.mechanisms.topdown.microdata import Blocks, write_release
from discreet.mechanisms.topdown.released import released_schema
from discreet.mechanisms.topdown.spine import spine_of
from discreet.mechanisms.topdown.strategy import Strategy, load_strategy
from discreet.noise import trial
from discreet.products import pl94, tabulate
from exact_release import US, exact, release, us_release
from redistricting import TABLES, as_dict, by_hand, random_census
from topdown.runs import LEAST_UNITS, run
from worlds import folder_bytes, register_census, us_census

HOUSEHOLDS = [
    (0, "owner", [(40, "f", "national"), (12, "m", "national")]),
    (1, "renter", [(70, "m", "eu")]),
    (2, "owner", [(33, "f", "other")]),
]


@pytest.fixture(scope="module")
def census() -> Census:
    return random_census(Engine(threads=1))


@pytest.fixture(scope="module")
def released(census, tmp_path_factory) -> Census:
    return us_release(census, tmp_path_factory.mktemp("us") / "release")


# -- redistricting --------------------------------------------------------------------------


def test_the_release_is_a_valid_census_of_the_profile(census, released):
    assert released.schema == load_schema("pl94")
    assert (released.origin, released.linked) == ("released", False)
    assert released.note == census.banner
    assert not validate(released).items


@pytest.mark.parametrize("level", ["state", "tract", "block", "place"])
def test_tables_of_the_records_are_those_of_the_census(census, released, level):
    expected = by_hand(census, level)
    for table in TABLES:
        assert as_dict(released, pl94.tables(released, table, level)) == expected[table]


def test_tables_of_the_profile_agree_with_those_of_the_census_schema(census, released):
    for table in released.schema.tables:
        before, after = (
            sorted(census.engine.rows(tabulate(one, table.name, "county")))
            for one in (census, released)
        )
        assert before == after


def test_collective_units_are_those_of_the_invariants(census, released):
    columns = ["block", "kind", "gq_major"]
    before, after = (sorted(census.engine.rows(c.frame("units", columns)), key=str) for c in
                     (census, released))  # fmt: skip
    assert before == after


def test_rows_are_sorted_by_what_is_released_and_ids_are_positions(released):
    rows = released.engine.rows
    persons = rows(released.table("persons"))
    assert [row[1] for row in persons] == list(range(1, len(persons) + 1))
    place = {name: {c: n for n, c in enumerate(codes)} for name, codes in pl94.AXES.items()}
    order = [
        (row[0], *(place[name][value] for name, value in zip(pl94.AXES, row[2:], strict=True)))
        for row in persons
    ]
    assert order == sorted(order)
    units = rows(released.table("units"))
    assert [row[0] for row in units] == list(range(1, len(units) + 1))
    assert [row[1] for row in units] == sorted(row[1] for row in units)


def test_the_order_of_nodes_and_of_input_rows_leaves_no_trace(census, released, tmp_path):
    spine = spine_of(census, census.schema.levels)
    persons, units = (Histogram(load_strategy(n).rooted("state"), census.schema) for n in US)
    size = spine.size(-1)
    swapped = np.random.default_rng(5).permutation(size)  # new number of each node

    def renumbered(estimate: Blocks) -> Blocks:
        parts = [slice(*estimate.start[[node, node + 1]]) for node in np.argsort(swapped)]
        inside = [part.stop - part.start for part in parts]
        start = np.concatenate([[0], np.cumsum(inside)]).astype(np.int64)
        cell, count = (
            np.concatenate([a[p] for p in parts]) for a in (estimate.cell, estimate.count)
        )
        return replace(estimate, start=start, cell=cell, count=count)

    codes = census.engine.rows(spine.codes[-1].select("node", "code").sort("node"))
    nodes = census.engine.from_numpy(
        {"node": swapped.astype(np.int64), "code": np.array([c for _, c in codes], dtype=object)}
    )
    quarters = units_by_quarters(census, persons, spine)[:, np.argsort(swapped)]
    people, homes = (renumbered(exact(census, h, spine)) for h in (persons, units))
    write_release(
        census.engine, tmp_path, census.schema, census.geography, nodes, people, homes, quarters,
        census.banner,
    )  # fmt: skip
    assert folder_bytes(tmp_path) == folder_bytes(released.folder)


def test_parts_together_are_the_whole(census, released, tmp_path, monkeypatch):
    monkeypatch.setattr(microdata, "CELLS_AT_A_TIME", 7)
    parts = us_release(census, tmp_path / "release")
    assert len(list((tmp_path / "release" / "persons").iterdir())) > 3
    for table in ("persons", "units"):
        rows = [census.engine.rows(one.table(table)) for one in (parts, released)]
        assert rows[0] == rows[1]


def test_nobody_left_is_a_release_too(census, tmp_path):
    spine = spine_of(census, census.schema.levels)
    histogram = Histogram(load_strategy(US[0]).rooted("state"), census.schema)
    none = Blocks(
        histogram,
        np.zeros(spine.size(-1) + 1, dtype=np.int64),
        np.empty(0, dtype=np.int32),
        np.empty(0, dtype=np.int64),
    )
    codes = spine.codes[-1]
    write_release(census.engine, tmp_path, census.schema, census.geography, codes, none)
    empty = Census.open(tmp_path, census.engine)
    assert empty.units is None
    assert as_dict(empty, pl94.tables(empty, "P1", "state")) == {"50": [0] * 71}


# -- schemas of one's own -------------------------------------------------------------------

DWELLINGS = {
    "name": "dwellings",
    "title": "Dwellings by tenure",
    "count": "units",
    "where": {"kind": ["occupied"]},
    "rho": 1,
    "axes": [{"name": "tenure", "column": "tenure"}],
    "rounding": ["total"],
    "levels": [{"level": "cell", "share": 1, "queries": {"detailed": 1}}],
}


def test_a_strategy_of_another_country_gives_its_own_schema(tmp_path):
    census = register_census(Engine(threads=1), HOUSEHOLDS)
    persons = load_strategy("register-country-persons").rooted("region")
    units = Strategy.model_validate(DWELLINGS)
    released = release(census, tmp_path / "release", persons, units)
    assert released.schema.name == "register-country-released"
    assert list(released.schema.persons) == ["dwelling", "sex", "age_group", "citizenship"]
    assert [table.name for table in released.schema.tables] == ["R1", "R2"]
    assert not validate(released).items
    for table in ("R1", "R2"):
        before, after = (
            sorted(census.engine.rows(tabulate(one, table, "municipality")))
            for one in (census, released)
        )
        assert before == after
    homes = sorted(census.engine.rows(released.frame("units", ["cell", "kind", "tenure"])))
    assert homes == sorted(census.engine.rows(census.frame("units", ["cell", "kind", "tenure"])))


def test_axes_of_numbers_stay_numbers(tmp_path):
    census = register_census(Engine(threads=1), HOUSEHOLDS)
    strategy = {
        **DWELLINGS,
        "count": "persons",
        "where": {},
        "axes": [{"name": "years", "column": "age"}],
    }
    released = release(census, tmp_path / "release", Strategy.model_validate(strategy))
    ages = sorted(row[0] for row in census.engine.rows(released.frame("persons", ["age"])))
    assert ages == [12, 33, 40, 70]
    assert released.schema.persons["age"].max == 110
    assert not [item for item in validate(released).items if item.severity == "error"]


def test_units_of_several_kinds_must_be_told_apart(tmp_path):
    census = register_census(Engine(threads=1), HOUSEHOLDS)
    strategy = {
        **DWELLINGS,
        "where": {},
        "axes": [{"name": "dwelling_type", "column": "kind", "groups": {
            "home": ["occupied", "vacant"], "institution": ["institution"]}}],
    }  # fmt: skip
    with pytest.raises(BadInput, match="Add an axis of `kind`"):
        release(census, tmp_path / "release", None, Strategy.model_validate(strategy))


def test_confidential_geography_is_left_out():
    schema = load_schema("register-country")
    secret = schema.geography["degurba"].model_copy(update={"confidential": True})
    schema = schema.model_copy(update={"geography": {**schema.geography, "degurba": secret}})
    histogram = Histogram(load_strategy("register-country-persons"), schema)
    assert "degurba" not in released_schema(schema, histogram).geography


def test_a_whole_number_that_may_be_missing_is_released_under_its_own_name(tmp_path):
    engine = Engine(threads=1)
    census = us_census(
        engine, [(0, "1", [(40, "1", "01"), (9, "2", "01")]), (1, "3", [(70, "2", "02")])]
    )
    sizes = {"name": "family_size", "column": "family_size", "missing": "none"}
    units = {**LEAST_UNITS, "axes": [*LEAST_UNITS["axes"], sizes], "rho": "10"}
    made = run(census, trial(1), tmp_path / "release", units=units)
    told = made.schema.units["family_size"]
    assert told.number is None
    assert {"none", "0", "97"} <= set(told.codes)
    found = {row[0] for row in engine.rows(made.table("units").select("family_size"))}
    assert found <= set(told.codes) | {None}
