"""Folders that a run cannot use are refused before the charge."""

import os
import stat
from pathlib import Path

import pytest
import yaml

import limits
from discreet.errors import BadInput
from discreet.run import run
from discreet.run.folders import make_work

from .test_run import committed

NOT_UTF8 = os.fsdecode(b"n\xff")

#: Names that the engine cannot write as a pattern for themselves alone.
PATTERNS = ["w\\[1]", "w\\*", "a\\b[c"]


def below(folder: Path) -> list[str]:
    """Return everything in a folder except the register, which reading may touch."""
    found = (path.relative_to(folder) for path in folder.rglob("*"))
    return sorted(str(path) for path in found if "register" not in path.name)


@pytest.mark.parametrize("key", ["work", "out"])
@pytest.mark.parametrize("name", PATTERNS)
def test_a_folder_the_engine_cannot_name_is_refused_before_the_charge(
    configure, tmp_path, key, name
):
    config = configure("noisy-tables", "release", **{key: name})
    before = below(tmp_path)
    with pytest.raises(BadInput, match="Rename the"):
        run(config)
    assert "reservation" not in committed(tmp_path)
    assert below(tmp_path) == before


@pytest.mark.parametrize("key", ["work", "out"])
def test_a_folder_with_letters_of_patterns_is_used_if_the_engine_can(configure, tmp_path, key):
    release = run(configure("noisy-tables", "release", **{key: "a[1]*?"}))
    assert release.header.mode == "release"
    assert "commit" in committed(tmp_path)


@pytest.mark.parametrize("relative", ["work", "out"])
def test_a_folder_that_is_not_utf8_is_refused_before_the_charge(configure, tmp_path, relative):
    config = configure("noisy-tables", "release")
    content = yaml.safe_load(config.read_text())
    for key in {"census", "work", "out"} - {relative}:
        content[key] = str(tmp_path / content[key])
    content["account"]["register"] = str(tmp_path / "register.sqlite")
    other = tmp_path / NOT_UTF8
    other.mkdir()
    (other / "run.yaml").write_text(yaml.safe_dump(content))
    before = below(tmp_path)
    with pytest.raises(BadInput, match="not UTF-8"):
        run(other / "run.yaml")
    assert "reservation" not in committed(tmp_path)
    assert below(tmp_path) == before


def test_a_run_in_a_folder_that_is_not_utf8_is_bad_input(configure, tmp_path):
    other = tmp_path / NOT_UTF8
    configure("noisy-tables", "release")
    other.mkdir()
    for name in ("run.yaml", "census", "register.sqlite", "register.sqlite.head"):
        (tmp_path / name).rename(other / name)
    done = limits.discreet("run", "run.yaml", cwd=other)
    assert done.returncode == 2, done.stderr
    assert "not UTF-8" in done.stderr
    assert not (other / "work").exists()


# -- a refused run leaves folders as they were -----------------------------------------------


def rights(folder: Path) -> dict[str, str]:
    """Return what is in a folder, with the kind and the rights of each entry."""
    return {name: stat.filemode((folder / name).lstat().st_mode) for name in below(folder)}


#: Refused by the register at the very last, and for its census at the very first.
REFUSED = {"by the register": {"limit": "1/1000"}, "at once": {"census": "nowhere"}}


@pytest.mark.parametrize("options", REFUSED.values(), ids=REFUSED)
def test_a_refused_run_takes_the_folders_above_work_away(configure, tmp_path, options):
    config = configure("noisy-tables", "release", work="aa/bb/work", out="aa/cc/out", **options)
    before = below(tmp_path)
    with pytest.raises(BadInput):
        run(config)
    assert below(tmp_path) == before


def test_folders_above_work_that_are_used_meanwhile_stay(configure, tmp_path):
    config = configure("noisy-tables", "release", work="aa/bb/work", limit="1/1000")

    def use(part, step):
        if step == "reserving":
            (tmp_path / "aa" / "x").write_text("x")

    with pytest.raises(BadInput):
        run(config, progress=use)
    assert below(tmp_path / "aa") == ["x"]


def test_folders_above_work_go_if_work_cannot_be_made(configure, tmp_path):
    config = configure("noisy-tables", "release", work=f"aa/bb/{'n' * 300}")
    before = below(tmp_path)
    with pytest.raises(BadInput, match="cannot be made"):
        run(config)
    assert below(tmp_path) == before


@pytest.mark.parametrize("options", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("lock", [False, True], ids=["empty", "with our lock"])
def test_a_refused_run_leaves_an_unused_work_folder_as_it_was(configure, tmp_path, options, lock):
    config = configure("noisy-tables", "release", **options)
    (tmp_path / "work").mkdir()
    if lock:
        (tmp_path / "work" / "lock").touch()
    (tmp_path / "work").chmod(0o755)
    before = rights(tmp_path)
    with pytest.raises(BadInput):
        run(config)
    assert rights(tmp_path) == before


#: Files of others that bear the names of ours.
OTHERS = {
    "a lock": lambda folder: (folder / "lock").write_text("4711"),
    "a folder lock": lambda folder: (folder / "lock").mkdir(),
    "a link lock": lambda folder: (folder / "lock").symlink_to(folder / "elsewhere"),
    "a lock and more": lambda folder: [(folder / name).touch() for name in ("lock", "x")],
    "a run.yaml": lambda folder: (folder / "run.yaml").write_text("steps: [build]"),
    "a broken run.yaml": lambda folder: (folder / "run.yaml").write_text("a: [\n"),
    "a file of an editor": lambda folder: (folder / ".run.yaml.swp").touch(),
}


@pytest.mark.parametrize("resume", [False, True], ids=["new", "resumed"])
@pytest.mark.parametrize("put", OTHERS.values(), ids=OTHERS)
def test_a_folder_in_other_use_is_left_as_it_was(configure, tmp_path, put, resume):
    config = configure("noisy-tables", "release")
    (tmp_path / "work").mkdir()
    put(tmp_path / "work")
    (tmp_path / "work").chmod(0o755)
    before = rights(tmp_path)
    with pytest.raises(BadInput):
        run(config, resume=resume)
    assert rights(tmp_path) == before
    assert "reservation" not in committed(tmp_path)


def test_a_folder_that_holds_a_run_is_left_as_it_was(configure, tmp_path):
    config = configure("noisy-tables", "release")
    run(config)
    (tmp_path / "work").chmod(0o750)
    before = rights(tmp_path)
    with pytest.raises(BadInput, match="holds a run already"):
        run(config)
    assert rights(tmp_path) == before


def test_the_run_of_another_process_is_not_taken_away(configure, tmp_path, monkeypatch):
    """It came between our making the folder and our lock, and has ended since."""
    config = configure("noisy-tables", "release")

    def made(work, resume):
        taken = make_work(work, resume)
        (work / "run.yaml").write_text("of another process")
        return taken

    monkeypatch.setattr("discreet.run.runner.make_work", made)
    with pytest.raises(BadInput, match="holds a run already"):
        run(config)
    assert (tmp_path / "work" / "run.yaml").read_text() == "of another process"


# -- the register and the files beside it ------------------------------------------------------


@pytest.mark.parametrize("key", ["work", "out"])
@pytest.mark.parametrize("end", ["", ".head", "-journal", "-wal", "-shm", "-journal/inside"])
def test_no_folder_may_be_a_file_of_the_register(configure, tmp_path, key, end):
    config = configure("noisy-tables", "release", **{key: f"register.sqlite{end}"})
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(BadInput, match="apart from the register"):
        run(config)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_linked_register_is_kept_apart_where_it_really_is(configure, tmp_path):
    config = configure("noisy-tables", "release", out="real/book-journal")
    (tmp_path / "real").mkdir()
    (tmp_path / "register.sqlite").rename(tmp_path / "real" / "book")
    (tmp_path / "register.sqlite.head").rename(tmp_path / "real" / "book.head")
    (tmp_path / "register.sqlite").symlink_to(tmp_path / "real" / "book")
    with pytest.raises(BadInput, match="apart from the register"):
        run(config)


@pytest.mark.parametrize("key", ["census", "work", "out"])
def test_the_register_may_not_lie_in_a_folder_of_the_run(configure, tmp_path, key):
    config = configure("noisy-tables", "release")
    content = yaml.safe_load(config.read_text())
    content["account"]["register"] = f"{content[key]}/register.sqlite"
    config.write_text(yaml.safe_dump(content))
    with pytest.raises(BadInput, match="apart from the register"):
        run(config)


def test_a_register_whose_head_cannot_be_replaced_is_refused_before_the_charge(configure, tmp_path):
    config = configure("noisy-tables", "release")
    head = tmp_path / "register.sqlite.head"
    head.rename(tmp_path / "elsewhere")
    head.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match=r"register.sqlite.head is a symbolic link"):
        run(config)
    assert "reservation" not in committed(tmp_path)


def test_work_out_and_register_may_lie_below_a_linked_folder(configure, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    config = configure("noisy-tables", "release", work="linked/work", out="linked/out")
    content = yaml.safe_load(config.read_text())
    content["account"]["register"] = "linked/register.sqlite"
    config.write_text(yaml.safe_dump(content))
    for name in ("register.sqlite", "register.sqlite.head"):
        (tmp_path / name).rename(tmp_path / "real" / name)
    assert run(config).header.mode == "release"
