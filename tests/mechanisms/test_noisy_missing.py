"""Noisy tables lose nobody: a missing value has a category of its own, or is refused."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.census import (
    MISSING,
    Census,
    Schema,
    as_data,
    cells_per_area,
    load_schema,
    may_be_missing,
)
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism, protect
from discreet.noise import trial
from topdown.runs import Silent
from worlds import columns, register_census, text

AREAS = ["U0001", None, "U0002"]


def schema() -> Schema:
    """Return the schema of a register in which some values may be missing, with tables by these."""
    data = as_data(load_schema("register-country"))
    data["persons"]["citizenship"]["missing"] = True
    data["persons"]["birth_place"]["missing"] = True
    data["units"]["dwelling_type"]["missing"] = True
    data["computed_persons"] |= {
        "working": {"of": "age", "bins": {"15-64": [15, 64]}},
        "foreign": {"of": "citizenship", "groups": {"foreign": ["eu", "other"]}},
    }
    data["computed_units"] |= {
        "head_born": {"member": {"household_role": ["head"]}, "take": "birth_place"},
        "crowded": {"cases": [{"when": {"size": {"min": 3}}, "then": "yes"}]},
    }
    shells = {
        "CITIZENS": ("persons", ["citizenship"], {}),
        "AGES": ("persons", ["working", "sex"], {}),
        "FOREIGN": ("persons", ["foreign", "born_abroad"], {}),
        "ADULTS": ("persons", ["citizenship"], {"age": {"min": 18}}),
        "NATIONALS": ("persons", ["citizenship"], {"citizenship": ["national"]}),
        "HOMES": ("units", ["dwelling_type", "tenure"], {}),
        "RENTERS": ("units", ["dwelling_type", "tenure"], {"tenure": ["renter"]}),
        "HEADS": ("units", ["head_born", "crowded"], {"kind": ["occupied"]}),
    }
    data["tables"] = [
        {"name": n, "title": n, "count": count, "by": by, "levels": ["region"], "where": where}
        for n, (count, by, where) in shells.items()
    ]
    return Schema(**data)


GIVEN = schema()
TABLES = [table.name for table in GIVEN.tables]

role = st.sampled_from(["head", "child", None])
person = st.tuples(
    st.integers(0, 110),
    st.sampled_from("fm"),
    role,
    st.sampled_from(["national", "eu", "other", None]),
    st.sampled_from(["here", "abroad_eu", None]),
)
unit = st.tuples(
    st.integers(0, 2),
    st.sampled_from(["owner", "renter"]),
    st.sampled_from(["house", "flat", None]),
    st.lists(person, max_size=4),
)


def census_of(engine: Engine, units: list[tuple]) -> Census:
    """Return a register with every value as it is given, missing ones too."""
    bare = register_census(engine, [(0, "owner", [(40, "f", "national")])])
    codes = [row[0] for row in engine.rows(bare.geography.select("cell").sort("cell"))]
    homes, persons = [(0, codes[0], "vacant", None, None)], []
    for number, (cell, tenure, dwelling, members) in enumerate(units, start=1):
        homes.append((number, codes[cell], "occupied", tenure, dwelling))
        persons += [(number, *member) for member in members]
    persons.append((1, 30, "f", None, None, None))
    names = ["unit_id", "age", "sex", "household_role", "citizenship", "birth_place"]
    own = ["unit_id", "cell", "kind", "tenure", "dwelling_type"]
    areas = engine.from_numpy({"cell": text(codes), "urban_area": text(AREAS)})
    return replace(
        bare,
        schema=GIVEN,
        geography=bare.geography.join(areas, on="cell", how="left"),
        units=engine.from_numpy(columns(homes, own, {"unit_id"})),
        persons=engine.from_numpy(columns(persons, names, {"unit_id", "age"})),
    )


def noisy(given: Schema, table: str, level: str):
    query = {"table": table, "level": level, "share": "1"}
    return mechanism(
        "noisy-tables", given, {"noise": "gaussian", "budget": "1", "queries": [query]}
    )


def without_noise(census: Census, table: str, level: str) -> list[tuple]:
    """Return the rows of a table to which noise of 0 was added."""
    made = noisy(census.schema, table, level)
    made.check(census)
    with tempfile.TemporaryDirectory() as folder:
        made.draw(census, Silent(), Path(folder))
        frame = census.engine.read_parquet(Path(folder) / "tables" / f"{table}-{level}.parquet")
        return census.engine.rows(frame)


@settings(deadline=None, max_examples=15)
@given(st.lists(unit, min_size=1, max_size=4))
def test_all_cells_together_count_every_record_of_the_universe(units):
    census = census_of(Engine(threads=1), units)
    for table in GIVEN.tables:
        for level in ("region", "cell", "urban_area"):
            rows = without_noise(census, table.name, level)
            inside = census.frame(table.count, [level], where=table.where)
            universe = [row for row in census.engine.rows(inside) if row[0] is not None]
            assert sum(row[-1] for row in rows) == len(universe)
            areas = {row[0] for row in rows}
            assert len(rows) == len(areas) * cells_per_area(GIVEN, table)


def test_a_missing_value_is_a_category_in_the_released_table(tmp_path):
    engine = Engine()
    census = census_of(engine, [(0, "owner", None, [(20, "f", "head", None, None)])])
    release = protect(noisy(GIVEN, "CITIZENS", "region"), census, trial(1), tmp_path / "out")
    frame = engine.read_parquet(release.folder / "tables" / "CITIZENS-region.parquet")
    found = sorted(engine.rows(frame.select("citizenship")))
    assert found == [("eu",), (MISSING,), ("national",), ("other",)]


EXPECTED = {
    "CITIZENS": 4,
    "AGES": 2 * 2,
    "FOREIGN": 2 * 3,
    "ADULTS": 4,
    "NATIONALS": 3,
    "HOMES": 4 * 4,
    "RENTERS": 4 * 3,
    "HEADS": 4 * 2,
}


@pytest.mark.parametrize("table", TABLES)
def test_the_category_is_there_exactly_where_the_schema_lets_a_value_be_missing(table):
    assert cells_per_area(GIVEN, GIVEN.table(table)) == EXPECTED[table]


def test_a_condition_on_a_column_of_the_same_name_elsewhere_says_nothing():
    """`age` of the condition is the person's; the recode is made from that of the dwelling."""
    data = as_data(GIVEN)
    data["units"]["age"] = {"number": "integer", "min": 0, "max": 99, "missing": True}
    data["computed_units"]["built"] = {"of": "age", "bins": {"new": [0, 20], "old": [21, None]}}
    assert may_be_missing(Schema(**data), "persons", "built", {"age": {"min": 18}})


def test_a_value_that_a_case_takes_may_be_missing():
    data = as_data(GIVEN)
    data["units"]["tenure"]["missing"] = True
    cases = {"cases": [{"when": {"kind": ["occupied"]}, "take": "tenure"}], "otherwise": "none"}
    data["computed_units"]["lives"] = cases
    schema = Schema(**data)
    assert may_be_missing(schema, "units", "lives", {})
    assert not may_be_missing(schema, "units", "lives", {"lives": ["none"]})


def test_a_value_that_may_be_missing_although_it_applies_has_the_category():
    data = as_data(GIVEN)
    data["units"]["tenure"]["missing"] = True
    assert may_be_missing(Schema(**data), "units", "tenure", {"kind": ["occupied"]})
    assert not may_be_missing(GIVEN, "units", "tenure", {"kind": ["occupied"]})


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("sex", None, "2 persons have no value of 'sex'"),
        ("sex", "q", "2 persons have a value of 'sex' that the schema does not list"),
        ("age", 111, "2 persons have a value of 'age' that the schema does not list"),
        ("age", None, "2 persons have no value of 'age'"),
    ],
)
def test_a_record_without_a_cell_is_refused_by_table_column_and_number(column, value, says):
    engine = Engine(threads=1)
    members = [(20 + n, "f", "head", "eu", "here") for n in range(3)]
    census = census_of(engine, [(0, "owner", "flat", members)])
    data = as_data(GIVEN)
    shell = {"title": "x", "count": "persons", "levels": ["region"]}
    data["tables"] += [{"name": n.upper(), **shell, "by": [n]} for n in ("sex", "age")]
    given = Schema(**data)
    rows = engine.rows(census.persons)
    names = census.persons.collect_schema().names()
    place = names.index(column)
    rows = [(*r[:place], value, *r[place + 1 :]) if r[1] in (20, 21) else r for r in rows]
    made = {n: [row[i] for row in rows] for i, n in enumerate(names)}
    ages = np.ma.array([a or 0 for a in made["age"]], mask=[a is None for a in made["age"]])
    numbers = {"unit_id": np.array(made["unit_id"]), "age": ages}
    persons = engine.from_numpy({n: numbers.get(n, text(values)) for n, values in made.items()})
    spoilt = replace(census, schema=given, persons=persons)
    with pytest.raises(BadInput, match=says) as refused:
        noisy(given, column.upper(), "region").check(spoilt)
    assert column.upper() in str(refused.value)
    assert "111" not in str(refused.value)
    assert "q" not in str(refused.value).replace("required", "").split()


def test_a_value_called_missing_beside_a_missing_value_is_refused():
    data = as_data(GIVEN)
    data["persons"]["citizenship"]["codes"][MISSING] = {"label": "Not known"}
    with pytest.raises(BadInput, match="a value of its own called 'missing'"):
        noisy(Schema(**data), "CITIZENS", "region")
