"""The published layouts: read again, they give the same tables."""

import pytest
from typer.testing import CliRunner

from discreet.census import Census
from discreet.cli.app import app
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms.topdown import load_strategy
from discreet.products.pl94 import write_mdf
from exact_release import US, release, us_release
from redistricting import by_hand, random_census
from worlds import register_census


@pytest.fixture(scope="module")
def census() -> Census:
    return random_census(Engine(threads=1), seed=2)


@pytest.fixture(scope="module")
def files(census, tmp_path_factory) -> dict[str, list[list[str]]]:
    folder = tmp_path_factory.mktemp("mdf")
    write_mdf(us_release(census, folder / "release"), folder / "mdf")
    lines = {path.name: path.read_text().splitlines() for path in (folder / "mdf").iterdir()}
    return {name: [line.split("|") for line in some] for name, some in lines.items()}


def test_headers_are_those_of_the_layouts(files):
    place = ["TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK"]
    head = ["SCHEMA_TYPE_CODE", "SCHEMA_BUILD_ID", *place]
    person = ["EPNUM", "RTYPE", "GQTYPE_PL", "VOTING_AGE", "CENHISP", "CENRACE"]
    assert files["MDF_PER.txt"][0] == [*head, *person]
    assert files["MDF_UNIT.txt"][0] == [*head, "RTYPE", "HH_STATUS"]


def test_persons_are_sorted_numbered_and_coded(files):
    rows = files["MDF_PER.txt"][1:]
    assert {tuple(row[:2]) for row in rows} == {("MPD", "1.1.0")}
    assert [int(row[7]) for row in rows] == list(range(len(rows)))
    assert [row[2:7] for row in rows] == sorted(row[2:7] for row in rows)
    assert [[len(field) for field in row[2:7]] for row in rows] == [[2, 3, 6, 1, 4]] * len(rows)
    assert all(row[5] == row[6][0] for row in rows)
    assert all((row[8] == "3") == (row[9] == "0") for row in rows)
    assert {row[8] for row in rows} == {"3", "5"}


def test_units_carry_their_status(files):
    rows = files["MDF_UNIT.txt"][1:]
    assert {tuple(row[7:]) for row in rows} == {("4", "0"), ("2", "1"), ("2", "2")}


def test_the_files_give_the_tables_of_the_census(census, files):
    expected = by_hand(census, "county")
    for county, cells in expected["P1"].items():
        people = [row for row in files["MDF_PER.txt"][1:] if "".join(row[2:4]) == county]
        adults = [row for row in people if row[10] == "2"]
        assert (len(people), len(adults)) == (cells[0], expected["P3"][county][0])
        assert sum(row[12] == "01" for row in people) == cells[2]
        assert sum(row[12] == "63" for row in people) == cells[70]
        assert sum(row[11] == "2" for row in adults) == expected["P4"][county][1]
        quarters = [sum(row[9] == kind for row in people) for kind in "1234567"]
        assert [*quarters[:4], *quarters[4:]] == [
            *expected["P5"][county][2:6],
            *expected["P5"][county][7:],
        ]
        homes = [row[8] for row in files["MDF_UNIT.txt"][1:] if "".join(row[2:4]) == county]
        assert [homes.count("1"), homes.count("2")] == expected["H1"][county][1:]


def test_records_of_either_us_layout_give_the_same_files(census, files, tmp_path):
    # A release of swapping has the columns of the census; these are the census itself.
    write_mdf(census, tmp_path / "mdf")
    for name, rows in files.items():
        assert (tmp_path / "mdf" / name).read_text().splitlines() == ["|".join(r) for r in rows]


def test_other_layouts_are_refused(tmp_path):
    other = register_census(Engine(threads=1), [(0, "owner", [(40, "f", "eu")])])
    with pytest.raises(BadInput, match="blocks of the United States, and schema register-country"):
        write_mdf(other, tmp_path / "mdf")


@pytest.mark.parametrize(
    ("kept", "file", "left_out"),
    [("persons", "MDF_PER.txt", "MDF_UNIT.txt"), ("units", "MDF_UNIT.txt", "MDF_PER.txt")],
)
def test_half_of_the_records_give_half_of_the_files(census, files, tmp_path, kept, file, left_out):
    strategies = [load_strategy(name).rooted("state") for name in US]
    pair = [one if one.count == kept else None for one in strategies]
    release(census, tmp_path / "records", *pair)
    done = CliRunner().invoke(
        app, ["pl94", str(tmp_path / "records"), str(tmp_path / "mdf"), "--mdf"]
    )
    assert done.exit_code == 0, done.output
    assert f"left out: {left_out}" in done.output
    assert [path.name for path in (tmp_path / "mdf").iterdir()] == [file]
    written = (tmp_path / "mdf" / file).read_text().splitlines()
    wanted = ["|".join(row) for row in files[file]]
    # Collective units are known by the strategy of persons only.
    assert written == [row for row in wanted if kept == "persons" or not row.endswith("|4|0")]


def test_the_command_writes_the_same_files(census, files, tmp_path):
    us_release(census, tmp_path / "release")
    folder = next(path.parent for path in (tmp_path / "release").rglob("persons.parquet"))
    done = CliRunner().invoke(app, ["pl94", str(folder), str(tmp_path / "mdf"), "--mdf"])
    assert done.exit_code == 0, done.output
    written = {path.name: path.read_text() for path in (tmp_path / "mdf").iterdir()}
    assert written == {
        name: "".join("|".join(row) + "\n" for row in rows) for name, rows in files.items()
    }


@pytest.mark.parametrize("option", [["--levels", "county"], ["--tables", "P1"]])
def test_detail_files_have_neither_levels_nor_tables(census, tmp_path, option):
    us_release(census, tmp_path / "release")
    arguments = ["pl94", str(tmp_path / "release"), str(tmp_path / "mdf"), "--mdf", *option]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert "--mdf writes all records" in done.output
