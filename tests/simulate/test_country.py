"""Any schema is simulated from its hints: strangers edit data files, never code."""

import re
import shutil
from importlib import resources

import pytest
import yaml

from discreet.census import Census, validate
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.simulate import describe, simulate
from discreet.simulate.pattern import make_codes


@pytest.fixture
def own(tmp_path):
    """Return a function that writes a changed schema and a profile, and the profile's path."""
    source = resources.files("discreet.census") / "profiles" / "register-country.yaml"
    schema = yaml.safe_load(source.read_text(encoding="utf-8"))

    def write(change, **profile):
        change(schema)
        (tmp_path / "schema.yaml").write_text(yaml.safe_dump(schema, sort_keys=False))
        settings = {"format_version": 1, "name": "own", "schema": "schema.yaml", "persons": 4000}
        path = tmp_path / "profile.yaml"
        path.write_text(yaml.safe_dump(settings | profile))
        return path

    return write


def open_valid(folder):
    census = Census.open(folder, Engine())
    assert validate(census).items == ()
    return census


def test_the_shipped_profile_is_valid_and_has_its_shares(country):
    census = open_valid(country)
    names = census.table("persons").collect_schema().names()
    assert names[:2] == ["unit_id", "person_key"]
    assert census.table("geography").collect_schema().names()[:4] == census.schema.levels
    rows = describe(country)
    assert len(rows) > 10
    for row in rows:
        assert abs(row.simulated - row.public) < 1.5, (row.topic, row.category)


def test_sizes(country, sql):
    ask = sql(country)
    assert abs(ask("select count(*) from persons")[0][0] / 60_000 - 1) < 0.05
    spine = ["region", "province", "municipality", "cell"]
    counted = ask(f"select {', '.join(f'count(distinct {x})' for x in spine)} from geography")
    assert counted == [(3, 9, 72, 864)]
    heads = "count(*) filter (household_role = 'head')"
    per_unit = f"select {heads} n from persons join units using (unit_id) where kind = 'occupied'"
    assert ask(f"select min(n), max(n) from ({per_unit} group by unit_id)") == [(1, 1)]
    assert ask("select count(*) from geography where urban_area is null")[0][0] > 0


def test_cells_say_where_they_are(country, sql):
    ask = sql(country)
    north = "round((latitude - 50) * 111.2 - 0.5)"
    east = "round((longitude - 10) * 71.5 - 0.5)"
    code = f"cell = municipality || printf('N%04dE%04d', {north}::int, {east}::int)"
    assert ask(f"select bool_and({code}) from geography") == [(True,)]


def test_smooth_variables_differ_between_places(country, sql):
    spread = """
        select stddev(share) from (select left(cell, 7) m, avg((tenure = 'owner')::int) share
        from units where kind = 'occupied' group by 1)
    """
    # Binomial noise alone would give about 0.027 with 340 dwellings in a municipality.
    assert sql(country)(spread)[0][0] > 0.05


def test_a_new_variable_and_a_new_level_are_simulated(own, tmp_path, sql):
    def change(schema):
        level = {"name": "district", "pattern": r"[A-Z]{2}\d{3}", "simulate": {"children": 2}}
        schema["spine"].insert(2, level)
        schema["spine"][3]["pattern"] = r"[A-Z]{2}\d{5}"
        schema["units"]["heating"] = {
            "only": {"kind": ["occupied"]},
            "codes": ["gas", "heat_pump", "none"],
            "simulate": {
                "by": "dwelling_type",
                "shares": {
                    "house": {"gas": 1, "heat_pump": 1},
                    "flat": {"gas": 0.8, "none": 0.2},
                    "other": {"none": 1},
                },
            },
        }
        schema["persons"]["commute"] = {
            "only": {"activity": ["employed"]},
            "number": "integer",
            "min": 0,
            "max": 90,
            "simulate": {"shares": {"0": 1, "15": 2, "45": 1}},
        }
        schema["persons"]["language"] = {"required": True, "codes": ["a", "b"]}

    simulate(own(change), tmp_path / "census", 1)
    census = open_valid(tmp_path / "census")
    assert "district" in census.schema.levels
    ask = sql(tmp_path / "census")
    assert ask("select count(distinct district) from geography") == [(18,)]
    flats = "kind = 'occupied' and dwelling_type = 'flat'"
    heating = ask(f"select distinct heating from units where {flats} order by 1")
    assert heating == [("gas",), ("none",)]
    assert ask("select count(*) from units where kind <> 'occupied' and heating is not null") == [
        (0,)
    ]
    found = ask("select distinct commute from persons where activity = 'employed' order by 1")
    assert found == [(0,), (15,), (45,)]
    assert {code for (code,) in ask("select distinct language from persons")} == {"a", "b"}


def test_persons_without_a_link_carry_the_cell(own, tmp_path):
    simulate(own(lambda schema: None, linked=False), tmp_path / "census", 1)
    census = open_valid(tmp_path / "census")
    assert not census.linked
    assert "cell" in census.table("persons").collect_schema().names()


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        ({"share": {"f": 1}}, "unknown key 'share'"),
        ({"shares": {"x": 1}}, "value the variable does not have"),
        ({"shares": {"f": -1, "m": 1}}, "numbers from zero"),
        ({"shares": {"f": 0}}, "positive sum"),
        ({"shares": [1, 2]}, "mapping"),
        ({"by": "nowhere", "shares": {}}, "nowhere"),
        ({"by": "activity", "shares": {"employed": {"f": 1}}}, "has no row for some values"),
        ({"by": "tenure", "shares": {}}, "missing values"),
    ],
)
def test_a_bad_hint_is_named_and_nothing_is_left(own, tmp_path, hint, message):
    def change(schema):
        schema["persons"]["sex"]["simulate"] = hint

    with pytest.raises(BadInput, match=message):
        simulate(own(change), tmp_path / "out" / "census", 1)
    assert list((tmp_path / "out").iterdir()) == []


def test_codes_that_a_level_lists_are_those_simulated(own, tmp_path, sql):
    def change(schema):
        schema["spine"][0]["codes"] = ["NO", "SO", "EA", "WE"]
        schema["areas"][0] |= {"codes": ["U0007", "U0009"], "simulate": {"children": 2}}

    simulate(own(change), tmp_path / "census", 1)
    census = open_valid(tmp_path / "census")
    assert census.schema.spine[0].codes == ["NO", "SO", "EA", "WE"]
    rows = sql(tmp_path / "census")("select distinct region, province from geography")
    assert {region for region, _ in rows} == {"NO", "SO", "EA"}
    assert all(province.startswith(region) for region, province in rows)


@pytest.mark.parametrize("level", ["spine", "areas"])
def test_too_few_listed_codes_are_noticed(own, tmp_path, level):
    def change(schema):
        schema[level][0] |= {"codes": ["AA"] if level == "spine" else ["U0001"]}
        schema[level][0] |= {"simulate": {"children": 2}}

    with pytest.raises(BadInput, match=rf"{level}\.\w+: fewer codes are listed"):
        simulate(own(change), tmp_path / "census", 1)


def test_variables_may_stand_in_any_order(own, tmp_path):
    def change(schema):
        persons = schema["persons"]
        persons["age_first"] = {
            "codes": ["yes", "no"],
            "simulate": {"by": "hobby", "shares": {"chess": {"yes": 1}, "none": {"no": 1}}},
        }
        persons["hobby"] = {
            "codes": ["chess", "none"],
            "simulate": {"shares": {"chess": 0.5, "none": 0.5}},
        }

    simulate(own(change), tmp_path / "census", 1)
    shutil.rmtree(tmp_path / "census")


@pytest.mark.parametrize(
    ("pattern", "above", "numbers", "codes"),
    [
        ("[A-Z]{2}", "", [1, 2, 27], ["AA", "AB", "BA"]),
        (r"[A-Z]{2}\d{2}", "AB", [1, 12], ["AB01", "AB12"]),
        (r"U\d{4}", "", [7], ["U0007"]),
        (r"X-\d{2}", "AB", [3], ["X-03"]),
        (".+", "AB01", [1, 10], ["AB0101", "AB010A"]),
        (r"[0-9A-Z-]{1,20}", "", [5], ["5"]),
        (r"\d{2,4}", "12", [7, 11], ["1207", "1211"]),
    ],
)
def test_codes_fit_their_pattern(pattern, above, numbers, codes):
    made = make_codes(pattern, above, numbers, "level")
    assert all(re.fullmatch(pattern, code) for code in made)
    assert made == codes


@pytest.mark.parametrize("pattern", ["(a|b)", r"\w+", "[^a]", "a^"])
def test_a_pattern_that_is_not_simple_is_refused(pattern):
    with pytest.raises(BadInput, match="cannot make up codes"):
        make_codes(pattern, "", [1], "level")


def test_too_few_codes_are_noticed():
    with pytest.raises(BadInput, match="fewer codes"):
        make_codes(r"\d", "", [11], "level")
