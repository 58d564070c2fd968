"""No mechanism uses a column that is computed from confidential geography, however indirectly."""

from dataclasses import replace

import narwhals as nw
import pytest

from discreet.census import Schema, as_data, load_schema, made_from, sources
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism
from discreet.products import tabulate
from topdown.runs import LEAST, LEAST_UNITS, levels_of
from worlds import us_census

BINS = {"few": [0, 9], "many": [10, None]}
GROUPS = {"low": ["few"], "high": ["many"]}
RICH = {"crowd": {"min": 10}}

#: Computed columns of units and of persons, and the one of them that is used.
UNITS = {
    "a recode": {"zone": {"of": "crowd", "bins": BINS}},
    "a recode of a recode": {
        "step": {"of": "crowd", "bins": BINS},
        "zone": {"of": "step", "groups": GROUPS},
    },
    "a condition": {"zone": {"cases": [{"when": RICH, "then": "many"}], "otherwise": "few"}},
    "a hidden condition": {
        "zone": {"cases": [{"when": {"any": [{"not": RICH}]}, "then": "few"}], "otherwise": "many"}
    },
    "two columns compared": {
        "zone": {"cases": [{"when": {"same": ["crowd", "size"]}, "then": "x"}], "otherwise": "y"}
    },
    "a count of members": {
        "rich": {"members": RICH},
        "zone": {"of": "rich", "bins": BINS},
    },
    "the value of a member": {"zone": {"member": {"relationship": ["20"], **RICH}, "take": "sex"}},
}
PERSONS = {
    "a recode": {"zone": {"of": "crowd", "bins": BINS}},
    "a condition": {"zone": {"cases": [{"when": RICH, "then": "many"}], "otherwise": "few"}},
}
#: The same looked up through the unit.
THROUGH = {"lives": {"of": "zone", "groups": GROUPS, "otherwise": "other"}}


def schema(units: dict | None = None, persons: dict | None = None) -> Schema:
    data = as_data(load_schema("us-decennial"))
    data["geography"]["crowd"] = {"number": "integer", "min": 0, "max": 99, "confidential": True}
    data["computed_units"] |= units or {}
    data["computed_persons"] = {**data.get("computed_persons", {}), **(persons or {})}
    for count in ["persons"] if units is None else ["units"]:
        shell = {"title": "x", "count": count, "levels": ["county"]}
        data["tables"].append({"name": f"by-{count}", **shell, "by": ["zone"]})
        data["tables"].append({"name": f"of-{count}", **shell, "where": {"zone": ["many"]}})
    return Schema(**data)


def of_units(way: str) -> Schema:
    return schema(UNITS[way])


def noisy(table: str) -> tuple[str, dict]:
    query = {"table": table, "level": "county", "share": "1"}
    return "noisy-tables", {"noise": "laplace", "budget": "1", "queries": [query]}


ZONE = {"name": "zone", "column": "zone", "missing": "none"}
HOMES = {**LEAST_UNITS, "axes": [{"name": "kind", "column": "kind"}], "where": {}}
PEOPLE = {
    **LEAST,
    "axes": [{"name": "sex", "column": "sex"}],
    "zeros": [],
    "quarters": None,
    "rounding": ["total"],
    "levels": levels_of({"state": {"detailed": 1}, "block": {"detailed": 1}}),
}
PAIRS = {"rate": "1/2", "within": "state", "leave": "block"}

#: Mechanisms and parameters that use the column `zone` of units.
USES = {
    "noisy table grouped": noisy("by-units"),
    "noisy table filtered": noisy("of-units"),
    "topdown axis": ("topdown", {"units": {**HOMES, "axes": [*HOMES["axes"], ZONE]}}),
    "topdown universe": ("topdown", {"units": {**HOMES, "where": {"zone": ["many"]}}}),
    "topdown axis of persons": (
        "topdown",
        {"persons": {**PEOPLE, "axes": [*PEOPLE["axes"], ZONE]}},
    ),
    "topdown universe of persons": (
        "topdown",
        {"persons": {**PEOPLE, "where": {"zone": ["many"]}}},
    ),
    "permutation matched": (
        "permutation-swapping",
        {"rate": "1/2", "match": ["zone"], "within": "state"},
    ),
    "permutation of persons matched": (
        "permutation-swapping",
        {
            "rate": "1/2",
            "match": ["zone"],
            "within": "state",
            "records": "persons",
            "swap": ["sex"],
        },
    ),
    "permutation tabulated": (
        "permutation-swapping",
        {"rate": "1/2", "match": [], "within": "state", "table": ["zone"]},
    ),
    "targeted matched": ("targeted-swapping", {**PAIRS, "match": ["zone"]}),
    "targeted flagged": ("targeted-swapping", {**PAIRS, "flags": ["zone"]}),
    "public docs matched": ("public-docs-2010", {"rate": "1/2", "match": ["zone"]}),
    "public docs unique": ("public-docs-2010", {"rate": "1/2", "unique_on": ["zone"]}),
    "record similar": (
        "record-swapping",
        {
            "rate": "1/2",
            "within": "state",
            "hierarchy": ["block"],
            "similar": [["size"], ["size", "zone"]],
            "risk_variables": ["sex"],
        },
    ),
    "record at risk": (
        "record-swapping",
        {
            "rate": "1/2",
            "within": "state",
            "hierarchy": ["block"],
            "similar": [["size"]],
            "risk_of": "units",
            "risk_variables": ["zone"],
        },
    ),
}


@pytest.mark.parametrize("way", UNITS)
@pytest.mark.parametrize("use", USES)
def test_a_column_of_units_made_from_it_is_refused_with_its_chain(use, way):
    name, parameters = USES[use]
    with pytest.raises(
        BadInput, match=r"confidential geography \(.*units.zone from .*geography.crowd"
    ):
        mechanism(name, of_units(way), parameters)


@pytest.mark.parametrize("way", PERSONS)
@pytest.mark.parametrize("table", ["by-persons", "of-persons"])
def test_a_table_of_persons_by_it_is_refused(way, table):
    name, parameters = noisy(table)
    with pytest.raises(BadInput, match=r"persons.zone from geography.crowd"):
        mechanism(name, schema(persons=PERSONS[way]), parameters)


@pytest.mark.parametrize("where", ["axes", "where"])
def test_a_column_of_persons_looked_up_through_the_unit_is_refused(where):
    lives = {"name": "lives", "column": "lives", "missing": "none"}
    more = {"axes": [*PEOPLE["axes"], lives]} if where == "axes" else {"where": {"lives": ["low"]}}
    given = schema(UNITS["a recode"], THROUGH)
    with pytest.raises(BadInput, match=r"persons.lives from units.zone from geography.crowd"):
        mechanism("topdown", given, {"persons": {**PEOPLE, **more}})


def test_a_variable_that_would_be_derived_from_it_is_refused():
    data = as_data(of_units("a recode"))
    data["units"]["quarter"] = {"codes": ["few", "many"], "derive": "zone", "missing": True}
    parameters = {"rate": "1/2", "match": ["quarter"], "within": "state"}
    with pytest.raises(BadInput, match=r"units.quarter from units.zone from geography.crowd"):
        mechanism("permutation-swapping", Schema(**data), parameters)


def test_the_confidential_column_itself_is_refused():
    data = as_data(of_units("a recode"))
    shell = {"title": "x", "count": "persons", "levels": ["county"], "where": RICH}
    data["tables"].append({"name": "rich", **shell})
    name, parameters = noisy("rich")
    with pytest.raises(BadInput, match=r"\(geography.crowd\)"):
        mechanism(name, Schema(**data), parameters)


PHSAFE = {"configuration": "us-2020", "states": ["50"]}


def test_phsafe_refuses_a_unit_column_made_from_it():
    data = as_data(of_units("a recode"))
    data["computed_units"]["lives"] = {"cases": [{"when": RICH, "then": "1"}], "otherwise": "3"}
    data["units"]["tenure"]["derive"] = "lives"
    with pytest.raises(BadInput, match=r"units.tenure from units.lives from geography.crowd"):
        mechanism("phsafe", Schema(**data), PHSAFE)


def test_phsafe_refuses_a_person_column_that_depends_on_the_household():
    data = as_data(load_schema("us-decennial"))
    crowded = [{"when": {"size": {"min": 5}}, "then": "1"}]
    data["computed_persons"]["origin"] = {"cases": crowded, "otherwise": "2"}
    data["persons"]["hispanic"]["derive"] = "origin"
    with pytest.raises(BadInput, match=r"persons.hispanic from persons.origin from units.size"):
        mechanism("phsafe", Schema(**data), PHSAFE)


@pytest.mark.parametrize("table", ["units", "persons"])
def test_a_schema_marks_only_geography_as_confidential(table):
    data = as_data(load_schema("us-decennial"))
    name = {"units": "tenure", "persons": "sex"}[table]
    data[table][name]["confidential"] = True
    with pytest.raises(ValueError, match=f"{table}.{name}.confidential: only geography"):
        Schema(**data)


def test_geography_is_not_derived():
    data = as_data(of_units("a recode"))
    data["geography"]["again"] = {"number": "integer", "derive": "crowd"}
    with pytest.raises(ValueError, match=r"geography.again.derive"):
        Schema(**data)


def test_public_geography_may_be_used():
    data = as_data(of_units("a recode"))
    data["geography"]["crowd"]["confidential"] = False
    given = Schema(**data)
    for use in ("noisy table grouped", "topdown axis", "permutation matched", "targeted matched"):
        name, parameters = USES[use]
        mechanism(name, given, parameters)


def test_every_source_is_found_with_the_shortest_chain():
    given = schema(UNITS["a recode of a recode"], THROUGH)
    chains = sources(given, "lives", "persons")
    assert chains["geography", "crowd"] == (
        ("persons", "lives"),
        ("units", "zone"),
        ("units", "step"),
        ("geography", "crowd"),
    )
    assert set(chains) == made_from(given, "lives", "persons")


def test_one_person_would_change_the_cells_of_all_neighbours():
    """The refused case is refused for a reason: the crowd of a block counts its persons."""
    engine, given = Engine(threads=1), of_units("a recode")
    counts = []
    for members in ([(40, "1", "01")], []):
        homes = [(0, "1", [(40, "1", "01")])] * 9 + [(0, "1", members)]
        census = us_census(engine, homes, blocks=1, per_county=1, extras=False)
        crowd = census.geography.with_columns(crowd=nw.lit(9 + len(members)))
        told = replace(census, schema=given, geography=crowd)
        counts.append(dict(engine.rows(tabulate(told, "by-units", "county").drop("area"))))
    assert counts == [{"many": 10}, {"few": 10}]
