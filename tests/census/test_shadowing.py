"""Only variables of the schema are taken from files: nothing stands in for a computed column."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import narwhals as nw
import pytest

from discreet.census import Census, load_layout, read_census, validate
from discreet.census.examine import Loaded
from discreet.census.sources import Sources
from discreet.engine import Engine
from discreet.errors import UnreadableFile
from discreet.register import Register
from discreet.run import run
from run.conftest import write_run
from worlds import us_census

#: Columns that a file has no business to bring: of areas, computed, of another table, unknown.
SHADOWS = {
    "units": ["county", "size", "householder_race", "age", "_label", "_person", "notes"],
    "persons": ["county", "tenure", "age_group", "kind", "block", "_person", "notes"],
    "geography": ["size", "tenure", "notes"],
}

CASES = [(table, column) for table, columns in SHADOWS.items() for column in columns]


def shadowed(folder: Path, table: str, column: str, engine: Engine) -> None:
    """Give a stored table a column that says the same of every row."""
    path = folder / f"{table}.parquet"
    wider = engine.materialise(engine.read_parquet(path)).with_columns(
        nw.lit("made up").alias(column)
    )
    engine.write_parquet(wider, path)


@pytest.mark.parametrize(("table", "column"), CASES)
def test_a_file_cannot_replace_a_computed_column(
    table: str, column: str, tmp_path: Path, engine: Engine
) -> None:
    path = write_run(tmp_path, "permutation-swapping", "design")
    columns = ["county", "size", "householder_race", "tenure", "block"]
    census = Census.open(tmp_path / "census", engine)
    before = sorted(map(str, engine.rows(census.frame("units", columns))))
    run(path, seed=3)
    plain = (tmp_path / "out" / "microdata" / "units.parquet").read_bytes()
    shadowed(tmp_path / "census", table, column, engine)
    census = Census.open(tmp_path / "census", engine)
    assert column not in census.table(table).collect_schema().names()  # type: ignore[arg-type]
    assert sorted(map(str, engine.rows(census.frame("units", columns)))) == before
    unknown = [item for item in validate(census).items if item.rule == "unknown-column"]
    assert [item.table for item in unknown] == [table]
    again = write_run(tmp_path, "permutation-swapping", "design", work="w2", out="o2")
    run(again, seed=3)
    assert (tmp_path / "o2" / "microdata" / "units.parquet").read_bytes() == plain


def test_a_swap_of_a_file_with_a_column_county_is_charged_and_published(
    tmp_path: Path, engine: Engine
) -> None:
    """The planted case: the swap failed after the charge."""
    path = write_run(tmp_path, "permutation-swapping", "release")
    (tmp_path / "register.sqlite").unlink()
    (tmp_path / "register.sqlite.head").unlink()
    shadowed(tmp_path / "census", "units", "county", engine)
    path = write_run(tmp_path, "permutation-swapping", "release")
    run(path)
    with Register.open(tmp_path / "register.sqlite") as register:
        assert register.reservation("tiny-2026", "first").state == "committed"


def test_a_census_made_in_memory_takes_columns_of_its_schema_only(engine: Engine) -> None:
    census = us_census(engine, [(0, "1", [(40, "1", "01")]), (1, "1", [(20, "1", "01")])])
    assert census.units is not None
    odd = replace(census, units=census.units.with_columns(size=nw.lit(9), county=nw.lit("x")))
    assert odd.units is not None
    assert {"size", "county"}.isdisjoint(odd.units.collect_schema().names())
    assert {row[0] for row in engine.rows(odd.frame("units", ["size"]))} <= {0, 1}


def test_parts_of_a_stored_table_that_differ_are_refused(tmp_path: Path, engine: Engine) -> None:
    """The engine would take the types of the first part, and 50.6 years would be 51."""
    write_run(tmp_path, "permutation-swapping", "design")
    census = tmp_path / "census"
    persons = engine.materialise(engine.read_parquet(census / "persons.parquet"))
    (census / "persons.parquet").unlink()
    engine.write_parquet(persons, census / "persons" / "a.parquet")
    halves = persons.with_columns(age=nw.col("age") + 0.5)
    engine.write_parquet(halves, census / "persons" / "b.parquet")
    with pytest.raises(UnreadableFile, match=r"persons/b\.parquet: has other columns or types"):
        Census.open(census, engine)


#: Columns that a file of units may bring: of the looked-up file, and marks that are computed.
POSING = {
    "geography.TABBLK": ["1000", "1000", "1000", "1003"],
    "geography.RTYPE": ["4", "4", "4", "4"],
    "_in_persons_MAFID": ["0", "1", "0", "1"],
    "_key": ["1", "1", "1", "1"],
    "_known": ["1", "1", "1", "1"],
}


@pytest.mark.parametrize("column", POSING)
def test_a_file_cannot_replace_what_is_looked_up_elsewhere(
    column: str, copied: Callable[[str], Path], engine: Engine
) -> None:
    folder = copied("phsafe")
    before = read_census(folder, layout="phsafe", engine=engine, key="k")
    header, *rows = (folder / "units.csv").read_text().splitlines()
    lines = [f"{row},{value}" for row, value in zip(rows, POSING[column], strict=True)]
    (folder / "units.csv").write_text("\n".join([f"{header},{column}", *lines]) + "\n")
    after = read_census(folder, layout="phsafe", engine=engine, key="k")
    for table in ("geography", "units", "persons"):
        one, other = (sorted(map(str, engine.rows(c.table(table)))) for c in (before, after))
        assert one == other
    assert after.findings is not None
    assert [item.rule for item in after.findings.items] == ["unknown-column"]


def test_a_table_in_memory_stands_for_a_file(copied: Callable[[str], Path], engine: Engine) -> None:
    folder, layout = copied("phsafe"), load_layout("phsafe")
    sources = Sources(engine, folder, layout)
    rows = Loaded(sources.open("persons").frame.filter(nw.col("QAGE") == "8"), "persons")
    given = Sources(engine, folder, layout)
    given.give("persons", rows)
    assert given.open("persons") is rows
