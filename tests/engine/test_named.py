"""The engine opens the files it was given the names of, and no others."""

import os
from pathlib import Path

import pytest

import limits
from discreet.engine import Engine
from discreet.errors import UnreadableFile

#: Names of folders that are patterns, partitions, or need quoting, each with siblings that a
#: careless reader would open, too or instead.
TRAPS = {
    "c[1]": ["c1"],
    "work*": ["work", "worker"],
    "what?": ["whats"],
    "[!a]": ["b"],
    "**": ["a", "b"],
    "age=3": ["age=4"],
    "a{b,c}": ["ab", "ac"],
    "a b": ["a", "b"],
    "o'brien": ["obrien"],
    'say "so"': ["so"],
    "back\\slash": ["back", "slash"],
    "line\nbreak": ["line"],
    "~": ["root"],
    "$HOME": ["home"],
    "s3:": ["s3"],
    "café": ["cafe"],
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


@pytest.fixture(params=TRAPS)
def folder(request: pytest.FixtureRequest, tmp_path: Path, engine: Engine) -> Path:
    """Return a folder with a trap for a name; its siblings hold other rows or cannot be read."""
    for name, age in [(request.param, "7"), *((sibling, "99") for sibling in TRAPS[request.param])]:
        made = tmp_path / name
        (made / "parts").mkdir(parents=True)
        row = f"id,age,place\n1,{age},here\n"
        (made / "rows.csv").write_text(row)
        broken = age == "99"
        for path in (made / "rows.parquet", made / "parts" / "a.parquet"):
            if broken:
                path.write_text("no Parquet at all")
            else:
                engine.write_parquet(engine.read_csv(made / "rows.csv"), path)
    return tmp_path / request.param


@pytest.mark.parametrize("file", ["rows.parquet", "parts", "rows.csv"])
def test_a_folder_with_an_odd_name_gives_its_own_rows(
    folder: Path, file: str, engine: Engine
) -> None:
    reader = engine.read_csv if file.endswith(".csv") else engine.read_parquet
    frame = reader(folder / file)
    assert frame.collect_schema().names() == ["id", "age", "place"]
    assert engine.rows(frame) == [("1", "7", "here")]


@pytest.mark.parametrize("name", ["rows[1].csv", "r*.csv", "r?ws.csv"])
def test_a_file_whose_name_is_a_pattern_is_read_itself(
    name: str, tmp_path: Path, engine: Engine
) -> None:
    (tmp_path / "rows1.csv").write_text("x\nother\n")
    (tmp_path / "rows.csv").write_text("x\nother\n")
    (tmp_path / name).write_text("x\nown\n")
    assert engine.rows(engine.read_csv(tmp_path / name)) == [("own",)]


def test_a_relative_path_is_no_address(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "https:").mkdir()
    (tmp_path / "https:" / "rows.csv").write_text("x\nown\n")
    monkeypatch.chdir(tmp_path)
    assert engine.rows(engine.read_csv(Path("https:/rows.csv"))) == [("own",)]


def test_a_name_that_the_engine_cannot_be_given_is_refused(tmp_path: Path, engine: Engine) -> None:
    odd = tmp_path / os.fsdecode(b"\xff.csv")
    odd.write_text("x\n1\n")
    with pytest.raises(UnreadableFile, match="not UTF-8"):
        engine.read_csv(odd)
    both = tmp_path / "a[1]\\b.csv"
    both.write_text("x\n1\n")
    (tmp_path / "a1\\b.csv").write_text("x\n2\n")
    with pytest.raises(UnreadableFile, match="pattern"):
        engine.read_csv(both)
    with pytest.raises(UnreadableFile, match="opened"):
        engine.read_csv(tmp_path / "a\0b.csv")


@pytest.mark.parametrize("name", ["filename", "FILE_ROW_NUMBER", "_row", "_file"])
def test_a_column_cannot_pass_for_the_number_of_a_row(
    name: str, tmp_path: Path, engine: Engine
) -> None:
    (tmp_path / "rows.csv").write_text(f"x,{name}\n1,5\n")
    engine.write_parquet(engine.read_csv(tmp_path / "rows.csv"), tmp_path / "rows.parquet")
    assert engine.rows(engine.read_parquet(tmp_path / "rows.parquet")) == [("1", "5")]
    with pytest.raises(UnreadableFile, match="a name that is used here"):
        engine.read_parquet(tmp_path / "rows.parquet", row="_row", file="_file")


def test_a_column_of_row_ids_does_not_number_the_rows(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "rows.csv").write_text("x,RowId\na,5\nb,5\n")
    frame = engine.read_csv(tmp_path / "rows.csv", row="_row")
    assert engine.rows(frame.select("_row", "x", "RowId")) == [(1, "a", "5"), (2, "b", "5")]


def test_only_files_of_the_folder_itself_are_parts(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "x.csv").write_text("x\n1\n")
    rows = engine.read_csv(tmp_path / "x.csv")
    (tmp_path / "parts" / "below").mkdir(parents=True)
    engine.write_parquet(rows, tmp_path / "parts" / "b.parquet")
    engine.write_parquet(rows, tmp_path / "parts" / "below" / "c.parquet")
    (tmp_path / "parts" / "notes.txt").write_text("no part")
    assert engine.rows(engine.read_parquet(tmp_path / "parts")) == [("1",)]


READING = """
import sys
from pathlib import Path
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.files import folder_hash
engine, folder = Engine(threads=1), Path(sys.argv[1])
for read in (
    lambda: engine.read_csv(folder / "rows.csv"),
    lambda: engine.read_parquet(folder / "rows.parquet"),
    lambda: engine.read_parquet(folder / "parts"),
    lambda: folder_hash(folder / "parts"),
):
    try:
        read()
    except BadInput as error:
        print(error)
"""


def test_what_may_not_be_read_is_reported_as_such(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "rows.csv").write_text("x\n1\n")
    (tmp_path / "parts").mkdir()
    for file in ("rows.parquet", "parts/a.parquet"):
        engine.write_parquet(engine.read_csv(tmp_path / "rows.csv"), tmp_path / file)
    for closed in ("rows.csv", "rows.parquet", "parts"):
        (tmp_path / closed).chmod(0)
    done = limits.python(READING, tmp_path)
    (tmp_path / "parts").chmod(0o700)
    says = "this user may not read it. Ask its owner for the permission."
    names = ["rows.csv", "rows.parquet", "parts/", "parts/"]
    assert done.stdout.splitlines() == [f"{name}: {says}" for name in names], done.stderr
