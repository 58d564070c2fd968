"""The redistricting tables: shells as published, counts as counted by hand."""

import csv
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.census import Census
from discreet.config import parse
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.files import read_yaml, write_yaml
from discreet.mechanisms import ReleaseHeader, make_draw, mechanism, publish_draw
from discreet.noise import trial
from discreet.products import pl94
from redistricting import TABLES, as_dict, by_hand, random_census
from topdown.runs import PERSONS as LEAST_PL94
from worlds import register_census, write_census

LEVELS = ["state", "county", "tract", "block_group", "block", "place"]


@pytest.fixture(scope="module")
def census() -> Census:
    return random_census(Engine(threads=1))


# -- shells ---------------------------------------------------------------------------------


def test_the_shells_have_301_cells():
    sizes = {name: len(shell.cells) for name, shell in pl94.SHELLS.items()}
    assert sizes == {"P1": 71, "P2": 73, "P3": 71, "P4": 73, "P5": 10, "H1": 3}
    codes = [code for shell in pl94.SHELLS.values() for code in shell.codes]
    assert len(codes) == len(set(codes)) == 301


@pytest.mark.parametrize(
    ("code", "label"),
    [
        ("P0010001", "Total:"),
        ("P0010003", "White alone"),
        ("P0010008", "Some Other Race alone"),
        ("P0010009", "Population of two or more races:"),
        ("P0010011", "White; Black or African American"),
        ("P0010026", "Population of three races:"),
        ("P0010047", "Population of four races:"),
        ("P0010063", "Population of five races:"),
        ("P0010070", "Population of six races:"),
        ("P0020002", "Hispanic or Latino"),
        ("P0020006", "Black or African American alone"),
        ("P0040011", "Population of two or more races:"),
        ("P0050007", "Noninstitutionalized population:"),
        ("P0050010", "Other noninstitutional facilities"),
        ("H0010003", "Vacant"),
    ],
)
def test_codes_and_labels_are_the_published_ones(code, label):
    cells = [cell for shell in pl94.SHELLS.values() for cell in shell.cells]
    assert [cell.label for cell in cells if cell.code == code] == [label]


@pytest.mark.parametrize("table", TABLES)
def test_the_parts_of_a_cell_are_disjoint_and_make_it_up(table):
    cells = pl94.SHELLS[table].cells
    for whole in cells:
        parts = [cell.places for cell in cells if cell.parent == whole.code]
        if parts:
            assert sorted(place for part in parts for place in part) == list(whole.places)
            assert all(c.depth == whole.depth + 1 for c in cells if c.parent == whole.code)


# -- counts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_tables_are_what_a_count_by_hand_gives(census, level):
    expected = by_hand(census, level)
    for table in TABLES:
        frame = pl94.tables(census, table, level)
        assert frame.collect_schema().names() == ["area", *pl94.SHELLS[table].codes]
        assert as_dict(census, frame) == expected[table]


def test_areas_with_a_living_quarter_are_listed_and_no_others(census):
    counted = as_dict(census, pl94.tables(census, "P1", "block"))
    blocks = sorted(row[0] for row in census.engine.rows(census.geography.select("block")))
    assert list(counted) == blocks[:-1]
    assert counted[blocks[-2]] == [0] * 71  # one vacant unit


def test_totals_of_different_tables_agree(census):
    p1, p2, p3, p4, p5 = (
        as_dict(census, pl94.tables(census, t, "tract")) for t in TABLES if t != "H1"
    )
    for area, cells in p1.items():
        assert cells[0] == p2[area][0]
        assert p3[area][0] == p4[area][0]
        assert all(few <= many for few, many in zip(p3[area], cells, strict=True))
        assert all(few <= many for few, many in zip(p4[area], p2[area], strict=True))
        assert p5[area][0] <= cells[0]


def test_persons_who_name_neither_unit_nor_quarters_are_refused(census):
    persons = census.frame("persons", ["block", "age", "race", "hispanic"])
    with pytest.raises(BadInput, match="'gq_major' is not known"):
        pl94.tables(replace(census, units=None, persons=persons), "P1", "block")


# -- files ----------------------------------------------------------------------------------


def test_files_hold_the_tables_and_what_their_columns_mean(census, tmp_path):
    out = tmp_path / "tables"
    pl94.write_tables(census, out, ["county", "place"])
    assert sorted(p.name for p in out.iterdir()) == ["cells.csv", "county", "place"]
    for level in ("county", "place"):
        for table in TABLES:
            stored = census.engine.read_parquet(out / level / f"{table}.parquet")
            computed = pl94.tables(census, table, level)
            assert census.engine.rows(stored) == census.engine.rows(computed)
    with (out / "cells.csv").open() as file:
        cells = list(csv.DictReader(file))
    assert len(cells) == 301
    assert cells[9]["parent"] == "P0010009"


def test_exact_counts_of_supplied_data_are_private(census, tmp_path):
    out = tmp_path / "tables"
    pl94.write_tables(replace(census, origin="supplied"), out, ["state"], ["P1"])
    modes = {stat.S_IMODE(path.stat().st_mode) for path in [out, *out.rglob("*")]}
    assert modes == {0o700, 0o600}


def test_without_levels_all_that_the_geography_has_are_written(census, tmp_path):
    pl94.write_tables(census, tmp_path / "t", names=["H1"])
    assert sorted(p.name for p in (tmp_path / "t").iterdir() if p.is_dir()) == sorted(LEVELS)


def test_the_command_writes_the_tables(census, tmp_path):
    from discreet.cli.app import app

    write_census(census, tmp_path / "census")
    command = ["pl94", str(tmp_path / "census"), str(tmp_path / "t"), "--levels", "state, county"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert Path(tmp_path / "t" / "county" / "P5.parquet").is_file()


# -- releases --------------------------------------------------------------------------------


def made(census: Census, out: Path, name: str, mode: str = "design", **parameters) -> Path:
    """Return the folder of a release by a mechanism."""
    chosen = mechanism(name, census.schema, parameters)
    draw = make_draw(chosen, census, trial(seed=3), out.with_name("draw"), mode)
    return publish_draw(draw, out, census.engine).folder


def command(*arguments: object):
    from discreet.cli.app import app

    return CliRunner().invoke(app, ["pl94", *map(str, arguments)])


SWAP = {"rate": "1/2", "match": ["tenure"], "within": "state"}


def test_a_release_of_another_mechanism_has_tables_and_detail_files(census, tmp_path):
    release = made(census, tmp_path / "release", "permutation-swapping", **SWAP)
    done = command(release, tmp_path / "t", "--levels", "state")
    assert done.exit_code == 0, done.output
    names = sorted(path.stem for path in (tmp_path / "t" / "state").iterdir())
    assert names == sorted(TABLES)
    stored = census.engine.read_parquet(tmp_path / "t" / "state" / "P1.parquet")
    assert as_dict(census, stored) == by_hand(census, "state")["P1"]
    assert command(release, tmp_path / "mdf", "--mdf").exit_code == 0
    assert len(list((tmp_path / "mdf").iterdir())) == 2


def test_tables_of_persons_come_from_a_release_of_persons(census, tmp_path):
    release = made(census, tmp_path / "release", "topdown", persons=LEAST_PL94)
    done = command(release, tmp_path / "t", "--levels", "county")
    assert done.exit_code == 0, done.output
    assert "left out: H1, as there are no units" in done.output
    names = sorted(path.stem for path in (tmp_path / "t" / "county").iterdir())
    assert names == ["P1", "P2", "P3", "P4", "P5"]
    done = command(release, tmp_path / "one", "--tables", "P5", "--levels", "county")
    assert [path.name for path in (tmp_path / "one" / "county").iterdir()] == ["P5.parquet"]
    done = command(release, tmp_path / "none", "--tables", "H1")
    assert done.exit_code == 2
    assert "H1 counts units" in done.output
    assert not (tmp_path / "none").exists()


def test_tables_of_a_trial_are_private(census, tmp_path):
    supplied = replace(census, origin="supplied")
    release = made(supplied, tmp_path / "release", "permutation-swapping", "trial", **SWAP)
    for out, option in ((tmp_path / "t", ["--levels", "state"]), (tmp_path / "mdf", ["--mdf"])):
        assert command(release, out, *option).exit_code == 0
        assert stat.S_IMODE(out.stat().st_mode) == 0o700


def test_a_release_of_tables_has_no_records(census, tmp_path):
    release = made(census, tmp_path / "release", "permutation-swapping", **SWAP)
    shutil.rmtree(release / "microdata")
    header = parse(ReleaseHeader, read_yaml(release / "release.yaml"), "release.yaml")
    kept = {n: h for n, h in header.files.items() if not n.startswith("microdata")}
    sealed = header.model_copy(update={"files": kept}).sealed()
    write_yaml(release / "release.yaml", sealed.model_dump(mode="json"))
    done = command(release, tmp_path / "t")
    assert done.exit_code == 2
    assert "without records" in done.output


# -- refusals -------------------------------------------------------------------------------


def test_an_absent_column_is_named():
    census = random_census(Engine(threads=1), drop=["hispanic"])
    with pytest.raises(BadInput, match=r"persons\.hispanic"):
        pl94.tables(census, "P1", "state")


def test_a_census_of_another_country_is_refused_by_column():
    census = register_census(Engine(threads=1), [(0, "owner", [(40, "f", "eu")])])
    with pytest.raises(BadInput, match="'gq_major' of persons"):
        pl94.tables(census, "P1", "region")


def test_unknown_names_get_suggestions(census):
    with pytest.raises(BadInput, match="no table 'P6'"):
        pl94.tables(census, "P6", "state")
    with pytest.raises(BadInput, match="Did you mean 'tract'"):
        pl94.tables(census, "P1", "trakt")
    with pytest.raises(BadInput, match=r"no column geography\.aiannh"):
        pl94.tables(census, "P1", "aiannh")


def test_a_census_without_persons_has_housing_only(census):
    housing = replace(census, persons=None)
    assert as_dict(housing, pl94.tables(housing, "H1", "state")) == by_hand(census, "state")["H1"]
    with pytest.raises(BadInput, match="P1 counts persons"):
        pl94.tables(housing, "P1", "state")
