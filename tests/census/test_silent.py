"""Data that could be read wrongly without a word: told apart, or refused by name."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from discreet.census import Census, InvalidCensus, ingest, load_layout
from discreet.config import BadConfig
from discreet.engine import Engine
from discreet.errors import UnreadableFile

#: Levels without a pattern: their codes may be any text.
SCHEMA: dict[str, Any] = {
    "format_version": 1,
    "name": "hamlets",
    "title": "As few variables as can be",
    "spine": [{"name": "region"}, {"name": "cell"}],
    "units": {"kind": {"required": True, "codes": ["home", "empty"]}},
    "persons": {
        "age": {"required": True, "number": "integer", "min": 0, "max": 120},
        "sex": {"codes": ["f", "m"]},
        "word": {"pattern": ".+", "missing": True},
    },
    "kinds": {"occupied": ["home"], "vacant": ["empty"]},
    "computed_units": {"size": {"members": {}}},
}
GEOGRAPHY = "region,cell\nA,A1\n"
UNITS = "unit_id,cell,kind\n1,A1,home\n2,A1,home\n"
PERSONS = "unit_id,age\n1,40\n2,50\n"


@dataclass(frozen=True)
class Office:
    """A folder of files, and how they are read."""

    folder: Path
    engine: Engine

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / f"{name}.csv").write_text(text)

    def write_parquet(self, name: str, query: str) -> None:
        path = self.folder / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        with duckdb.connect() as connection:
            connection.execute(f"copy ({query}) to '{path}' (format parquet)")

    def layout(self, **tables: dict[str, Any]) -> Path:
        usual = {"geography": {"files": ["geography"]}, "units": {"files": ["units"]}}
        usual |= {"persons": {"files": ["persons"]}}
        given = {name: {**usual[name], **tables.get(name, {})} for name in usual}
        data = {"format_version": 1, "name": "own", "title": "Own files", "tables": given}
        path = self.folder / "layout.yaml"
        path.write_text(json.dumps(data))  # YAML too, and without aliases
        return path

    def read(self, layout: Path | None = None) -> Census:
        out = self.folder / "census"
        ingest(
            self.folder,
            out,
            layout=layout or "canonical",
            schema=self.folder / "schema.yaml",
            engine=self.engine,
            key="k",
        )
        return Census.open(out, self.engine)

    def refused(self, layout: Path | None = None) -> list[tuple[str, str, str, tuple[int, ...]]]:
        """Return rule, table, column and rows of each error."""
        with pytest.raises(InvalidCensus) as error:
            self.read(layout)
        assert not (self.folder / "census").exists()
        found = error.value.findings.errors
        return [(item.rule, item.table, item.column, item.rows) for item in found]


@pytest.fixture
def office(tmp_path: Path, engine: Engine) -> Office:
    (tmp_path / "schema.yaml").write_text(yaml.safe_dump(SCHEMA, sort_keys=False))
    made = Office(tmp_path, engine)
    made.write(geography=GEOGRAPHY, units=UNITS, persons=PERSONS)
    return made


def households(census: Census) -> list[list[int]]:
    """Return the ages of each unit's members, one list per unit."""
    members: dict[int, list[int]] = {
        unit: [] for (unit,) in census.engine.rows(census.table("units").select("unit_id"))
    }
    for unit, age in census.engine.rows(census.table("persons").select("unit_id", "age")):
        members[unit].append(age)
    return sorted(sorted(ages) for ages in members.values())


# -- ids of several columns ------------------------------------------------------------

TWO_COLUMNS = {"unit_id": ["BUILDING", "FLAT"]}


def test_ids_of_several_columns_are_compared_as_tuples(office: Office) -> None:
    office.write(
        units="BUILDING,FLAT,cell,kind\n1,11,A1,home\n11,1,A1,home\n",
        persons="BUILDING,FLAT,age\n1,11,40\n11,1,50\n11,1,51\n",
    )
    layout = office.layout(units={"columns": TWO_COLUMNS}, persons={"columns": TWO_COLUMNS})
    assert households(office.read(layout)) == [[40], [50, 51]]


def test_units_of_one_row_per_person_stay_apart_where_their_parts_differ(office: Office) -> None:
    """Of a file of persons, units are its distinct rows: joined texts would make them one."""
    office.write(persons="BUILDING,FLAT,cell,kind,age\n1,11,A1,home,40\n11,1,A1,home,50\n")
    (office.folder / "units.csv").unlink()
    units = {"files": ["persons"], "distinct": True, "columns": TWO_COLUMNS}
    layout = office.layout(units=units, persons={"columns": TWO_COLUMNS})
    assert households(office.read(layout)) == [[40], [50]]


def test_a_person_does_not_live_in_a_unit_of_other_parts(office: Office) -> None:
    office.write(
        units="BUILDING,FLAT,cell,kind\n1,11,A1,home\n",
        persons="BUILDING,FLAT,age\n1,11,40\n11,1,50\n",
    )
    layout = office.layout(units={"columns": TWO_COLUMNS}, persons={"columns": TWO_COLUMNS})
    assert office.refused(layout) == [("unit", "persons", "unit_id", (2,))]


def test_donors_of_several_columns_are_found_as_tuples(office: Office) -> None:
    office.write(persons="unit_id,LINE,FROM,LIKE,age\n1,11,,,40\n11,1,,,50\n1,2,11,1,50\n")
    office.write(units="unit_id,cell,kind\n1,A1,home\n11,A1,home\n")
    columns = {"person_key": ["unit_id", "LINE"], "donor_id": ["FROM", "LIKE"]}
    census = office.read(office.layout(persons={"columns": columns}))
    wanted = census.table("persons").select("unit_id", "person_key", "donor_id")
    rows = census.engine.rows(wanted)
    (donor,) = [row[2] for row in rows if row[2] is not None]
    assert [row[0] for row in rows if row[1] == donor] == [11]


def test_a_part_longer_than_it_is_filled_up_to_is_refused(office: Office) -> None:
    """Else (1, 0001) and (10, 001), filled up to 1 and 3, would be one id."""
    office.write(
        units="BUILDING,FLAT,cell,kind\n1,0001,A1,home\n10,001,A1,home\n",
        persons="BUILDING,FLAT,age\n1,0001,40\n10,001,50\n",
    )
    filled = {"unit_id": [{"column": "BUILDING", "pad": 1}, {"column": "FLAT", "pad": 3}]}
    layout = office.layout(units={"columns": filled}, persons={"columns": filled})
    assert office.refused(layout) == [
        ("type", "units", "unit_id", (2,)),
        ("type", "persons", "unit_id", (2,)),
    ]


def test_parts_of_one_width_make_the_id_that_the_other_file_has_in_one_column(
    office: Office,
) -> None:
    office.write(
        units="BUILDING,FLAT,cell,kind\n1,1,A1,home\n11,1,A1,home\n",
        persons="unit_id,age\n01001,40\n11001,50\n",
    )
    filled = {"unit_id": [{"column": "BUILDING", "pad": 2}, {"column": "FLAT", "pad": 3}]}
    assert households(office.read(office.layout(units={"columns": filled}))) == [[40], [50]]


def test_household_rows_keep_the_ids_and_person_keys_they_had(
    copied: Callable[[str], Path], take_in: Callable[..., Any], engine: Engine, tmp_path: Path
) -> None:
    take_in(copied("household-rows"), "household-rows", key="k")
    persons = Census.open(tmp_path / "census", engine).table("persons")
    assert engine.rows(persons.select("unit_id", "person_key").sort("unit_id", "person_key")) == [
        (1, 300724598137892020), (1, 361630892900312067), (1, 582285746838125105),
        (1, 754512434596604097), (2, 443190790052739536), (2, 807387126384104090),
        (3, 395970422937990215), (3, 400267367802048162), (3, 815267435804438155),
        (4, 248471183045413000),
    ]  # fmt: skip


# -- codes of several columns ----------------------------------------------------------

CELL = {"cell": ["TRACT", "BLOCK"]}


def test_a_code_that_two_combinations_of_columns_make_is_refused(office: Office) -> None:
    office.write(
        geography="region,TRACT,BLOCK\nA,2,1\nA,1,11\nA,11,1\n",
        units="unit_id,cell,kind\n1,111,home\n2,21,home\n",
    )
    found = office.refused(office.layout(geography={"columns": CELL}))
    assert ("ambiguous", "geography", "TRACT, BLOCK", (2, 3)) in found


def test_distinct_does_not_hide_a_code_that_two_combinations_make(office: Office) -> None:
    office.write(
        geography="region,TRACT,BLOCK\nA,1,11\nA,11,1\n",
        units="unit_id,cell,kind\n1,111,home\n2,111,home\n",
    )
    layout = office.layout(geography={"columns": CELL, "distinct": True})
    assert office.refused(layout) == [("ambiguous", "geography", "TRACT, BLOCK", (1, 2))]


def test_a_recode_of_two_combinations_with_one_text_is_refused(office: Office) -> None:
    office.write(units="unit_id,cell,A,B\n1,A1,1,11\n2,A1,11,1\n")
    columns = {"kind": {"from": ["A", "B"], "recode": {"111": "home"}}}
    found = office.refused(office.layout(units={"columns": columns}))
    assert found == [("ambiguous", "units", "A, B", (1, 2))]


def test_codes_of_varying_width_that_stay_apart_are_read_as_they_are(office: Office) -> None:
    office.write(
        geography="region,TRACT,BLOCK\nA,1,12\nA,11,1\n",
        units="unit_id,cell,kind\n1,112,home\n2,111,home\n",
    )
    census = office.read(office.layout(geography={"columns": CELL}))
    assert sorted(census.engine.rows(census.geography.select("cell"))) == [("111",), ("112",)]


# Within each file every part has one width here, so only a look at both finds the collision.


def test_a_code_that_another_file_makes_of_another_combination_is_refused(office: Office) -> None:
    office.write(
        geography="region,TRACT,BLOCK\nA,1,11\nA,2,11\nA,3,11\n",
        units="unit_id,TRACT,BLOCK,kind\n1,11,1,home\n2,21,1,home\n",
    )
    layout = office.layout(geography={"columns": CELL}, units={"columns": CELL})
    assert office.refused(layout) == [("ambiguous", "units", "TRACT, BLOCK", (1, 2))]


@pytest.mark.parametrize("name", ["_end0", "_own_end0", "_joined", "_ways"])
def test_no_column_passes_for_what_is_computed_to_find_it(name: str, office: Office) -> None:
    office.write(
        geography=f"region,{name},BLOCK\nA,1,11\nA,2,11\n",
        units=f"unit_id,{name},BLOCK,kind\n1,11,1,home\n2,2,11,home\n",
    )
    columns = {"columns": {"cell": [name, "BLOCK"]}}
    layout = office.layout(geography=columns, units=columns)
    assert office.refused(layout) == [("ambiguous", "units", f"{name}, BLOCK", (1,))]


def test_only_rows_of_the_other_combination_are_counted(office: Office) -> None:
    office.write(
        geography="region,TRACT,BLOCK\nA,1,11\nA,22,2\n",
        units="unit_id,TRACT,BLOCK,kind\n1,1,11,home\n2,2,22,home\n",
    )
    layout = office.layout(geography={"columns": CELL}, units={"columns": CELL})
    assert office.refused(layout) == [("ambiguous", "units", "TRACT, BLOCK", (2,))]


@pytest.mark.parametrize("known", ["geography", "units"])
def test_persons_without_units_are_compared_with_each_file(known: str, office: Office) -> None:
    office.write(
        geography="region,cell,TRACT,BLOCK\nA,111,1,11\n",
        units="unit_id,cell,TRACT,BLOCK,kind\n1,111,1,11,home\n",
        persons="TRACT,BLOCK,age\n11,1,40\n",
    )
    ignored = {"ignore": ["TRACT", "BLOCK"]}
    plans = {"geography": ignored, "units": ignored, known: {"columns": CELL}}
    layout = office.layout(**plans, persons={"columns": CELL})
    assert office.refused(layout) == [("ambiguous", "persons", "TRACT, BLOCK", (1,))]


def test_a_file_may_split_a_code_into_fewer_columns_at_the_same_places(office: Office) -> None:
    office.write(
        geography="region,COUNTY,TRACT,BLOCK\nA,1,11,1\nA,1,12,1\n",
        units="unit_id,AREA,BLOCK,kind\n1,111,1,home\n2,112,1,home\n",
    )
    places = {"columns": {"cell": ["COUNTY", "TRACT", "BLOCK"]}}
    layout = office.layout(geography=places, units={"columns": {"cell": ["AREA", "BLOCK"]}})
    assert households(office.read(layout)) == [[40], [50]]


def test_a_file_that_splits_a_code_elsewhere_is_refused(office: Office) -> None:
    office.write(
        geography="region,COUNTY,TRACT,BLOCK\nA,1,11,1\nA,2,2,22\n",
        units="unit_id,AREA,BLOCK,kind\n1,11,11,home\n2,22,22,home\n",
    )
    places = {"columns": {"cell": ["COUNTY", "TRACT", "BLOCK"]}}
    layout = office.layout(geography=places, units={"columns": {"cell": ["AREA", "BLOCK"]}})
    assert office.refused(layout) == [("ambiguous", "units", "AREA, BLOCK", (1,))]


# -- persons given twice ---------------------------------------------------------------


@pytest.mark.parametrize("second", ["1", "2"], ids=["in one unit", "in two units"])
def test_a_person_id_that_stands_twice_is_refused(second: str, office: Office) -> None:
    office.write(persons=f"unit_id,person_key,age\n1,p,40\n2,q,50\n{second},p,40\n")
    assert office.refused() == [("unique", "persons", "person_key", (1, 3))]


def test_keys_of_a_stored_census_may_meet_by_chance(office: Office, tmp_path: Path) -> None:
    """They have 60 bits: reading such a census again warns, and makes new keys."""
    office.read()
    folder = office.folder / "census"
    with duckdb.connect() as connection:
        connection.execute(f"create table p as from '{folder}/persons.parquet'")
        connection.execute("update p set person_key = 7")
        connection.execute(f"copy p to '{folder}/persons.parquet' (format parquet)")
    report = ingest(folder, tmp_path / "again", engine=office.engine)
    unique = [item for item in report.findings.items if item.rule == "unique"]
    assert [(item.severity, item.count) for item in unique] == [("warn", 2)]


def test_persons_are_never_made_distinct(office: Office) -> None:
    with pytest.raises(BadConfig, match="two persons may be equal"):
        load_layout(office.layout(persons={"distinct": True}))


# -- tables without rows ---------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("table", ["geography", "units", "persons"])
def test_a_table_with_a_header_and_no_rows_is_refused(
    table: str, form: str, office: Office
) -> None:
    texts = {"geography": GEOGRAPHY, "units": UNITS, "persons": PERSONS}
    if form == "csv":
        office.write(**{table: texts[table].partition("\n")[0] + "\n"})
    else:
        path = office.folder / f"{table}.csv"
        read = f"from read_csv('{path}', all_varchar = true) where false"
        office.write_parquet(table, read)
        path.unlink()
    assert ("rows", table, "", ()) in office.refused()


def test_vacant_units_do_not_excuse_an_empty_file_of_persons(office: Office) -> None:
    office.write(units=UNITS.replace("home", "empty"), persons="unit_id,age\n")
    assert office.refused() == [("rows", "persons", "", ())]
    (office.folder / "persons.csv").unlink()
    layout = office.layout(persons={"optional": True})
    assert office.read(layout).persons is None


def test_an_empty_part_of_a_table_is_no_empty_table(office: Office) -> None:
    (office.folder / "persons.csv").unlink()
    office.write_parquet("persons/a", "select '1' as unit_id, 40 as age where false")
    office.write_parquet("persons/b", "select '1' as unit_id, 40 as age")
    assert households(office.read()) == [[], [40]]


# -- numbers and blanks as codes and ids -----------------------------------------------

#: Stored as floats, these are no codes and no ids.
NO_CODE = [
    "'nan'::double",
    "'inf'::double",
    "1.5::double",
    "9007199254740993::double",
    "16777217::float",
]


@pytest.mark.parametrize("value", NO_CODE)
def test_a_float_that_is_no_integer_is_no_id(value: str, office: Office) -> None:
    (office.folder / "units.csv").unlink()
    (office.folder / "persons.csv").unlink()
    office.write_parquet("units", f"select {value} as unit_id, 'A1' as cell, 'home' as kind")
    office.write_parquet("persons", f"select {value} as unit_id, 40 as age")
    assert office.refused() == [
        ("type", "units", "unit_id", (1,)),
        ("type", "persons", "unit_id", (1,)),
    ]


@pytest.mark.parametrize("value", NO_CODE)
def test_a_float_that_is_no_integer_is_no_code(value: str, office: Office) -> None:
    (office.folder / "persons.csv").unlink()
    office.write_parquet("persons", f"select '1' as unit_id, 40 as age, {value} as word")
    assert office.refused() == [("type", "persons", "word", (1,))]


def test_integers_stored_as_floats_are_ids_and_codes(office: Office) -> None:
    (office.folder / "persons.csv").unlink()
    columns = "unnest([1, 2])::double as unit_id, 40 as age, 7::double as word"
    office.write_parquet("persons", f"select {columns}")
    census = office.read()
    assert households(census) == [[40], [40]]
    assert census.engine.rows(census.table("persons").select("word")) == [("7",), ("7",)]


@pytest.mark.parametrize("blank", [" ", "\t", "1 ", " 1", "\u00a0"])
def test_an_id_of_blanks_or_with_blanks_around_it_is_refused(blank: str, office: Office) -> None:
    office.write(
        units=f"unit_id,cell,kind\n1,A1,home\n{blank},A1,home\n",
        persons=f"unit_id,age\n1,40\n{blank},50\n{blank},51\n",
    )
    assert office.refused() == [
        ("type", "units", "unit_id", (2,)),
        ("type", "persons", "unit_id", (2, 3)),
    ]


@pytest.mark.parametrize("blank", [" ", "A1 ", " A1"])
def test_an_area_of_blanks_or_with_blanks_around_it_is_refused(blank: str, office: Office) -> None:
    office.write(
        geography=f"region,cell\nA,A1\nA,{blank}\n",
        units=f"unit_id,cell,kind\n1,A1,home\n2,{blank},home\n",
    )
    assert office.refused() == [
        ("pattern", "geography", "cell", (2,)),
        ("pattern", "units", "cell", (2,)),
    ]


# -- parts of a table ------------------------------------------------------------------


@pytest.mark.parametrize(
    "second",
    [
        "select '2' as unit_id, 50.6::double as age",
        "select '2' as unit_id, '50.6' as age",
        "select '2' as unit_id, 50 as age, 'f' as sex",
        "select '2' as unit_id",
    ],
    ids=["floats", "text", "more columns", "fewer columns"],
)
def test_parts_with_other_columns_or_types_are_refused(second: str, office: Office) -> None:
    """The engine would round 50.6 to 51, and leave the column out, without a word."""
    (office.folder / "persons.csv").unlink()
    office.write_parquet("persons/a", "select '1' as unit_id, 40 as age")
    office.write_parquet("persons/b", second)
    with pytest.raises(UnreadableFile, match=r"persons/b\.parquet: has other columns or types"):
        office.read()


# -- persons made of counts ------------------------------------------------------------


def test_a_flag_that_counts_more_persons_than_there_are_is_refused(office: Office) -> None:
    office.write(units="unit_id,cell,kind,WOMEN,N\n1,A1,home,1,2\n2,A1,home,3,2\n")
    (office.folder / "persons.csv").unlink()
    flags = {"sex": {"column": "WOMEN", "first": "f", "rest": "m"}}
    persons = {
        "files": ["units"],
        "columns": {"age": {"value": "30"}},
        "expand": {"into": "word", "counts": {"x": "N"}, "flags": flags},
    }
    ignored = {"ignore": ["WOMEN", "N"]}
    found = office.refused(office.layout(units=ignored, persons=persons))
    assert found == [("flag", "persons", "WOMEN", (2,))]


# -- areas that do not exist -----------------------------------------------------------


@pytest.mark.parametrize("state", ["01", "11", "56", "72"])
def test_states_dc_and_puerto_rico_are_read(
    state: str, copied: Callable[[str], Path], take_in: Callable[..., Any]
) -> None:
    folder = copied("phsafe")
    text = (folder / "geo.csv").read_text()
    (folder / "geo.csv").write_text(text.replace(",44,", f",{state},"))
    assert take_in(folder, "phsafe").findings.items == ()


def test_a_level_may_list_its_areas(office: Office) -> None:
    spine = [{"name": "region", "codes": ["A", "B"]}, {"name": "cell"}]
    (office.folder / "schema.yaml").write_text(yaml.safe_dump({**SCHEMA, "spine": spine}))
    office.write(geography="region,cell\nA,A1\nC,C1\n")
    assert office.refused() == [("code", "geography", "region", (2,))]
    office.write(geography="region,cell\nA,A1\nB,B1\n")
    assert office.read().schema.spine[0].codes == ["A", "B"]
