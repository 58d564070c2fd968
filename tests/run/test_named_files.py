"""What a command opens is what was named and hashed, seen from the operating system."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.engine import Engine
from discreet.errors import UnreadableFile
from discreet.files import files_below, folder_hash
from discreet.run import run
from run.conftest import write_run

#: A folder of traps: its name is a pattern that its siblings match, or a partition.
FOLDERS = {"c[1]": "c1", "c*": "cd", "age=3": "age=4", "a b": "a"}

OPENED = re.compile(r'openat\(\w+, "((?:[^"\\]|\\.)*)", (O_RDONLY[^)]*)\)\s+= \d')


def tracing() -> bool:
    """Return whether system calls of a child may be watched here."""
    strace = shutil.which("strace")
    return (
        strace is not None
        and not subprocess.run(
            [strace, "-qq", "-e", "trace=none", "true"], capture_output=True, check=False
        ).returncode
    )


@pytest.fixture
def opened(tmp_path: Path):
    """Return a function that runs a command and returns the files below a folder it read.

    Where system calls may not be watched, the command runs all the same: siblings that
    cannot be read would make it fail.
    """

    def traced(folder: Path, *command: object) -> set[Path] | None:
        log = tmp_path / "calls.txt"
        watched = tracing()
        watch = ["strace", "-f", "-qq", "-e", "trace=openat", "-s", "4096", "-o", str(log)]
        done = subprocess.run(
            [*(watch if watched else []), sys.executable, "-m", "discreet", *map(str, command)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        if not watched:
            return None
        found = OPENED.findall(log.read_text())
        paths = {Path(path) for path, flags in found if "O_DIRECTORY" not in flags}
        return {path for path in paths if path.is_relative_to(folder)}

    return traced


def spoil(folder: Path) -> None:
    """Make every file of a folder one that no reader accepts."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_text("nothing of that kind")


@pytest.mark.needs_strace
@pytest.mark.parametrize("name", FOLDERS)
def test_a_release_reads_the_census_it_hashed_and_its_own_draw(
    name: str, tmp_path: Path, opened
) -> None:
    inside = tmp_path / "all" / name
    inside.mkdir(parents=True)
    path = write_run(inside, "noisy-tables", "release", work="work[1]", out="out[1]")
    other = tmp_path / "all" / FOLDERS[name]
    shutil.copytree(inside, other)
    spoil(other)
    (inside / "work1" / "draw").mkdir(parents=True)
    census = inside / "census"
    (census / "units.csv").write_text("a file that nobody named")
    with_extra = folder_hash(census)
    (census / "units.csv").unlink()
    assert with_extra != folder_hash(census)
    read = opened(tmp_path / "all", "run", path)
    if read is not None:
        assert not {one for one in read if one.is_relative_to(other)}
        assert {one for one in read if one.is_relative_to(census)} == {*files_below(census)}
        drawn = {one for one in read if one.suffix == ".parquet" and "work" in one.parts[-4:-1]}
        assert not {one for one in drawn if (inside / "work1") in one.parents}
    published = (inside / "out[1]" / "release.yaml").read_text()
    assert "mode: release" in published


@pytest.mark.needs_strace
@pytest.mark.parametrize("parts", [False, True])
def test_ingest_reads_the_files_of_its_source(parts: bool, tmp_path: Path, opened) -> None:
    samples = Path(__file__).parents[1] / "census" / "samples" / "register"
    source, other = tmp_path / "s[1]", tmp_path / "s1"
    shutil.copytree(samples, source)
    if parts:
        engine = Engine(threads=1)
        (source / "persons").mkdir()
        engine.write_parquet(
            engine.read_csv(source / "persons.csv"), source / "persons" / "age=3.parquet"
        )
        (source / "persons.csv").unlink()
    shutil.copytree(source, other)
    spoil(other)
    read = opened(tmp_path, "ingest", source, tmp_path / "census", "--schema", "register-country")
    if read is not None:
        assert not {one for one in read if one.is_relative_to(other)}
        assert {one for one in read if one.is_relative_to(source)} == {*files_below(source)}
    assert CliRunner().invoke(app, ["validate", str(tmp_path / "census")]).exit_code == 0


def test_a_link_to_a_folder_of_tables_is_refused_before_the_charge(
    tmp_path: Path,
) -> None:
    path = write_run(tmp_path, "noisy-tables", "release")
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "census" / "units.parquet").rename(tmp_path / "units.parquet")
    elsewhere.mkdir()
    (tmp_path / "units.parquet").rename(elsewhere / "part.parquet")
    (tmp_path / "census" / "units").symlink_to(elsewhere)
    with pytest.raises(UnreadableFile, match="is a link"):
        folder_hash(tmp_path / "census")
    with pytest.raises(UnreadableFile, match="is a link"):
        run(path)
    assert not (tmp_path / "work").exists()


def test_the_hash_follows_links_to_files_and_tells_names_apart(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("one")
    (tmp_path / "census").mkdir()
    (tmp_path / "census" / "units.parquet").symlink_to(tmp_path / "data")
    before = folder_hash(tmp_path / "census")
    (tmp_path / "data").write_text("two")
    assert folder_hash(tmp_path / "census") != before
    both, one = tmp_path / "both", tmp_path / "one"
    both.mkdir()
    one.mkdir()
    (both / "a").write_text("")
    (both / "b").write_text("")
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (one / f"a\n{digest}\nb").write_text("")
    assert folder_hash(both) != folder_hash(one)


def test_the_configuration_of_a_run_is_not_changed_by_its_folder(tmp_path: Path) -> None:
    """The planted case: a folder `age=3` in the path gave every person the age of three."""
    inside = tmp_path / "age=3"
    inside.mkdir()
    path = write_run(inside, "permutation-swapping", "design")
    run(path, seed=1)
    engine = Engine(threads=1)
    before, after = (
        sorted(engine.rows(engine.read_parquet(inside / folder / "persons.parquet").select("age")))
        for folder in ("census", "out/microdata")
    )
    assert before == after != [(3,)] * len(before)
