"""The S-DHC tables against a second count of the same rows, and what they refuse."""

import random
from collections import Counter
from dataclasses import replace
from itertools import product

import narwhals as nw
import numpy as np
import pytest

from discreet.census import Census
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.products import sdhc
from discreet.products.sdhc.recode import PERSON_KINDS, UNIT_KINDS
from discreet.simulate import simulate
from phsafe.homes import Home, Person, census_of, every_code, random_homes
from phsafe.plain import read, tabulate

TAU = {"PH1_num": 10, "PH2": 10, "PH3": 6, "PH4": 10, "PH6": 6, "PH7": 10}
SMALL = {"PH1_num": 2, "PH2": 3, "PH3": 1, "PH4": 4, "PH6": 2, "PH7": 5}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


@pytest.fixture(scope="module")
def crowd(engine) -> Census:
    homes = [*random_homes(10_000, seed=3), *every_code(first_id=500_000)]
    return census_of(engine, homes, states=("01", "50", "56"))


def labelled(counts: dict, states) -> dict:
    """Return our counts with their labels, empty cells too."""
    found = {}
    for (table, level), values in counts.items():
        rows = sdhc.labels(table, level, states)
        keys = zip(rows["region"], rows["iteration"], rows["cell"].tolist(), strict=True)
        found[table, level] = dict(zip(keys, values.reshape(-1).tolist(), strict=True))
    return found


def assert_equal_cells(census: Census, tau: dict, states: tuple[str, ...]) -> None:
    ours = labelled(sdhc.count_tables(census, tau, states), states)
    plain = tabulate(census, tau, set(states))
    assert set(ours) == {(name, level) for name, s in sdhc.SHELLS.items() for level in s.levels}
    for place, cells in ours.items():
        assert set(plain[place]) <= set(cells), place
        assert cells == {cell: plain[place][cell] for cell in cells}, place


# -- the same numbers ----------------------------------------------------------------------


def test_the_crowd_visits_every_code(crowd):
    units, persons = read(crowd)
    assert len(persons) >= 10_000
    for column, legal in sdhc.PERSON_COLUMNS.items():
        assert {person[column] for person in persons} == set(legal), column
    heads = {p["unit_id"]: p for p in persons if p["relationship"] == "20"}
    for column, legal in sdhc.UNIT_COLUMNS.items():
        homes = [unit for unit in units if unit["kind"] != "group_quarters"]
        if column.startswith("householder_"):
            seen = {head[column.removeprefix("householder_")] for head in heads.values()}
        else:
            seen = {unit[column] for unit in homes} - {None}
        assert seen == set(legal), column
    assert [len(sdhc.PERSON_COLUMNS[name]) for name in ("age", "race")] == [116, 63]
    assert {unit["kind"] for unit in units} >= {"group_quarters"}
    sizes = Counter(person["unit_id"] for person in persons)
    assert max(sizes.values()) > 10


@pytest.mark.parametrize("tau", [TAU, SMALL], ids=["production", "small"])
@pytest.mark.parametrize("states", [("01", "50"), ("50",), ("01", "50", "56")], ids=len)
def test_counts_equal_a_plain_tabulation(crowd, tau, states):
    assert_equal_cells(crowd, tau, states)


def test_every_cell_of_every_table_is_visited(crowd):
    for (table, level), counts in sdhc.count_tables(crowd, TAU, ("01", "50")).items():
        assert (counts > 0).all(), (table, level)


def test_a_simulated_census_is_counted_alike(tmp_path, engine):
    simulate("tiny", tmp_path / "census", 3)
    census = Census.open(tmp_path / "census", engine)
    states = tuple(row[0] for row in engine.rows(census.geography.select("state").unique()))
    assert_equal_cells(census, TAU, states)


def test_types_that_are_not_in_the_file_follow_from_the_members(crowd):
    bare = replace(crowd, units=crowd.units.drop("household_type", "household_type2"))
    bare = replace(bare, units=bare.units.drop("couple_type"))
    one, other = (sdhc.count_tables(c, TAU, ("01", "50")) for c in (crowd, bare))
    assert all((one[place] == other[place]).all() for place in one)


def test_a_planted_recode_is_seen(crowd, monkeypatch):
    """A second count that cannot fail shows nothing: move one code to another cell."""
    monkeypatch.setattr("phsafe.plain.child_cell", lambda kind, unit: 9 if kind == "28" else 10)
    with pytest.raises(AssertionError):
        assert_equal_cells(crowd, TAU, ("01", "50"))


def test_row_order_and_threads_do_not_matter(engine):
    homes = random_homes(800, seed=5)
    first = sdhc.count_tables(census_of(engine, homes), SMALL, ("01", "50"))
    shuffled = census_of(Engine(threads=2), homes, order=random.Random(1))
    again = sdhc.count_tables(shuffled, SMALL, ("01", "50"))
    assert all((first[place] == again[place]).all() for place in first)


# -- shells ---------------------------------------------------------------------------------


def test_aggregates_are_sums_of_basis_cells():
    for shell in sdhc.SHELLS.values():
        assert not set(shell.aggregates) & set(shell.cells)
        for aggregate in shell.aggregates.values():
            assert set(aggregate.parts) <= set(shell.cells)
        if shell.aggregates:
            assert set(shell.aggregates[1].parts) == set(shell.cells)
            numbers = sorted([*shell.aggregates, *shell.cells])
            assert numbers == list(range(1, len(numbers) + 1))


def test_10608_cells_in_a_run_of_51_states():
    counted = Counter()
    for name, shell in sdhc.SHELLS.items():
        for level in shell.levels:
            counted[name] += sdhc.cells_of(level, name, sdhc.STATES)
    assert len(sdhc.STATES) == 51
    assert counted == {
        "PH1_num": 1040, "PH1_denom": 520, "PH2": 416, "PH3": 3640, "PH4": 1040,
        "PH5_denom": 520, "PH6": 832, "PH7": 1560, "PH8_denom": 1040,
    }  # fmt: skip
    assert counted.total() == 10_608


@pytest.mark.parametrize("kinds", [PERSON_KINDS, UNIT_KINDS], ids=["persons", "units"])
def test_every_legal_value_has_a_class_and_no_condition_splits_one(kinds):
    legal = {**sdhc.PERSON_COLUMNS, **sdhc.UNIT_COLUMNS}
    for axis in kinds.axes:
        values = [value for of in axis.classes for value in of]
        assert sorted(values) == sorted(legal[axis.column])
    for shell, axis in product(sdhc.SHELLS.values(), kinds.axes):
        for where in (shell.persons, shell.units, *(c.where for c in shell.cells.values())):
            allowed = where.get(axis.column)
            for of in axis.classes if allowed is not None else ():
                assert len({value in allowed for value in of}) == 1


def test_kinds_are_numbered_without_overlap():
    kinds = np.arange(PERSON_KINDS.number)
    classes = [PERSON_KINDS.class_of(kinds, axis.column) for axis in PERSON_KINDS.axes]
    assert len(set(zip(*(one.tolist() for one in classes), strict=True))) == kinds.size


def test_persons_and_householders_have_the_same_classes_of_race():
    """The number of a householder's race is taken from the person and added to the unit's."""
    of_persons, of_householders = (kinds.axes[-2:] for kinds in (PERSON_KINDS, UNIT_KINDS))
    assert [f"householder_{a.column}" for a in of_persons] == [a.column for a in of_householders]
    assert [a.classes for a in of_persons] == [a.classes for a in of_householders]


@pytest.mark.parametrize("kinds", [PERSON_KINDS, UNIT_KINDS], ids=["persons", "units"])
def test_the_engine_finds_the_class_of_every_code_and_none_of_others(engine, kinds):
    for axis in kinds.axes:
        number = axis.column == "age"
        right = {value: n for n, of in enumerate(axis.classes, start=1) for value in of}
        strange = [-117, -2, -1, 116, 200] if number else ["", "0", "1 ", "+7", "007", "64", "x"]
        values = np.array([*right, *strange], dtype=np.int64 if number else object)
        rows = engine.project(
            engine.from_numpy({axis.column: values}),
            {axis.column: f"unnest([{axis.column}, null])"},
        )
        classes = {"value": axis.column, "kind": kinds.sql(axis.column)}
        for value, kind in engine.rows(engine.project(rows, classes)):
            assert kinds.class_of(np.array([kind]), axis.column) == right.get(value, 0)


# -- records that lie in no cell ----------------------------------------------------------------

ADULT, CHILD = Person(40, "20"), Person(9, "25")

#: Homes with what is wrong, as the message says it.
STRANGE = {
    "types disagree": (Home(1, (ADULT,), types=("4", "01", "5")), "PH2.*type.*disagree"),
    "no type": (Home(1, (ADULT,), types=(None, None, None)), "PH2: 1 persons"),
    "own child": (Home(1, (ADULT, CHILD), types=("2", "11", "5")), "PH3.*own child"),
    "relationship": (Home(1, (ADULT, Person(9, "37")), types=("5", "12", "5")), "PH3: 1 persons"),
    "tenure": (Home(1, (ADULT,), tenure=None), "PH8_denom: 1 units.*tenure|PH7.*tenure"),
    "race": (Home(1, (Person(40, "20", race="64"),)), "no population group.*householder"),
    "child's race": (Home(1, (ADULT, Person(9, "25", race="00"))), "PH3.*the person"),
    "age": (Home(1, (ADULT, Person(200, "33"))), "PH1_num: 1 persons.*age"),
    "no householder": (Home(1, (Person(40, "33"),), types=("5", "12", "5")), "householder"),
    "two householders": (Home(1, (ADULT, ADULT), types=("5", "12", "5")), "exactly one"),
}  # fmt: skip


@pytest.mark.parametrize("what", STRANGE)
def test_a_record_in_no_cell_is_refused(engine, what):
    home, message = STRANGE[what]
    census = census_of(engine, [home, Home(2, (ADULT, CHILD))])
    with pytest.raises(BadInput, match=message) as refused:
        sdhc.count_tables(census, TAU, ("50",))
    for value in ("64", "200", "37"):
        assert value not in str(refused.value)


def test_a_person_in_a_vacant_unit_is_refused(engine):
    census = census_of(engine, [Home(1, ()), Home(2, (ADULT,))])
    persons = census.persons.with_columns(unit_id=nw.lit(1, dtype=nw.Int64))
    with pytest.raises(BadInput, match="vacant"):
        sdhc.count_tables(replace(census, persons=persons), TAU, ("50",))


def test_a_code_that_is_no_state_is_refused_and_not_dropped(engine):
    strange = [Home(1, (ADULT,)), Home(2, (ADULT, CHILD), state="03")]
    with pytest.raises(BadInput, match="1 codes of states are none") as refused:
        sdhc.count_tables(census_of(engine, strange), TAU, ("50",))
    assert "03" not in str(refused.value)


def test_a_state_that_is_not_there_is_refused(engine):
    with pytest.raises(BadInput, match="no block in 02"):
        sdhc.count_tables(census_of(engine, [Home(1, (ADULT,))]), TAU, ("02", "50"))


# -- the codebook ------------------------------------------------------------------------------


def book(*tables: str, states=sdhc.STATES) -> dict:
    """Return the meaning, and what is added up, by table, column and code."""
    columns = sdhc.codebook(tables, states)
    assert list(columns) == ["TABLE", "COLUMN", "CODE", "MEANING", "SUM_OF"]
    rows = list(zip(*columns.values(), strict=True))
    told = {tuple(row[:3]): tuple(row[3:]) for row in rows}
    assert len(told) == len(rows)
    return told


def test_the_codebook_has_every_code_of_every_table():
    told = book(*sdhc.SHELLS, *sdhc.DERIVED)
    for name, shell in sdhc.SHELLS.items():
        assert told[name, "", ""] == (shell.title, "")
        # Totals of what is only divided are in no file.
        totals = shell.aggregates if name in sdhc.estimates.COUNTS else {}
        for number in (*shell.cells, *totals):
            meaning, parts = told[name, shell.column, str(number)]
            assert meaning
            assert bool(parts) == (number in totals)
    assert told["PH3", "PH3_DATA_CELL", "8"] == ("Other relatives", "9 10")
    assert told["PH8_num", "PH8_NUM_DATA_CELL", "2"][1] == "PH7:2 PH7:3"
    groups = {code for _, column, code in told if column == "ITERATION_CODE" and code}
    assert groups == {*sdhc.ITERATIONS}
    assert told["PH8", "DATA_CELL", "1"] == ("All", "")
    assert told["PH1", "DATA_CELL", "2"] == ("Under 18", "")


def test_the_codebook_says_what_the_nation_is():
    place = ("*", "REGION_ID", "1")
    assert book("PH7")[place][0].startswith("The United States")
    assert "Not the nation" in book("PH7", states=("44", "50"))[place][0]
    assert place not in book("PH7", states=("72",))
