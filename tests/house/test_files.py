"""Half-written files are never seen, and strange YAML is refused by name and line."""

import fcntl
import os
import subprocess
import sys

import pytest

from discreet.errors import BadInput, NewerFormat, UnreadableFile
from discreet.files import (
    FORMAT_VERSION,
    atomic_file,
    atomic_folder,
    check_format,
    read_yaml,
    write_json,
    write_yaml,
)


def test_an_interrupted_file_leaves_the_old_one(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")

    def interrupted():
        with atomic_file(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["x.txt"]


def test_an_interrupted_folder_leaves_nothing(tmp_path):
    def interrupted():
        with atomic_folder(tmp_path / "out") as temporary:
            (temporary / "half").write_text("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert list(tmp_path.iterdir()) == []


#: Makes a folder, says so, and waits to be told to end (or for its own end).
WRITER = """
import pathlib, sys
from discreet.files import atomic_folder
with atomic_folder(pathlib.Path(sys.argv[1])) as temporary:
    (temporary / "half").write_text("secret")
    print(temporary.name, flush=True)
    sys.stdin.readline()
"""


def writing(path):
    """Start a process that writes a folder, and return it with what it writes to."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], **pipes)
    return process, path.parent / process.stdout.readline().strip()


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    out = tmp_path / "out"
    living, written = writing(out)
    killed, left = writing(out)
    killed.kill()
    killed.communicate()
    assert (left / "half").exists()
    try:
        with atomic_folder(out) as temporary:
            assert {*tmp_path.iterdir()} == {temporary, written}
            (temporary / "x").write_text("x")
        assert (written / "half").exists()
        (out / "x").unlink()
    finally:
        living.communicate("end\n")
    assert living.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (out / "half").read_text() == "secret"


def test_folders_of_others_are_left_alone(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "mine").write_text("x")
    (tmp_path / ".out.abcdefgh.discreet-part").symlink_to(kept)
    for name in (".out.mine", ".out.abcdefgh", ".out.abcdefgh.part", ".out.x.discreet-part",
                 ".out.b.abcdefgh.discreet-part", ".other.abcdefgh.discreet-part"):  # fmt: skip
        (tmp_path / name).mkdir()
    before = {path.name for path in tmp_path.iterdir()}
    with atomic_folder(tmp_path / "out"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == before | {"out"}
    assert (kept / "mine").exists()


@pytest.mark.parametrize("before", ["os.open", "fcntl.flock"])
def test_a_folder_that_is_taken_for_a_left_one_is_made_again(tmp_path, monkeypatch, before):
    module = {"os.open": os, "fcntl.flock": fcntl}[before]
    real, removed = getattr(module, before.split(".")[1]), []

    def late(*given):
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].rmdir()
        return real(*given)

    monkeypatch.setattr(f"discreet.files.{before}", late)
    with atomic_folder(tmp_path / "out") as temporary:
        assert [*tmp_path.iterdir()] == [temporary]
        assert removed != [temporary]


def test_a_finished_folder_is_private_and_never_merged(tmp_path):
    with atomic_folder(tmp_path / "out") as temporary:
        (temporary / "x").write_text("x")
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700
    with pytest.raises(BadInput, match="not empty"), atomic_folder(tmp_path / "out"):
        pass


def test_yaml_and_json_round_trip(tmp_path):
    value = {"b": ["01", 1, None], "a": {"x": "é"}}
    write_yaml(tmp_path / "x.yaml", value)
    assert read_yaml(tmp_path / "x.yaml") == value
    shared = ["01"]
    write_yaml(tmp_path / "y.yaml", {"a": shared, "b": shared})
    assert read_yaml(tmp_path / "y.yaml") == {"a": ["01"], "b": ["01"]}
    write_json(tmp_path / "x.json", value)
    assert (tmp_path / "x.json").read_text().index('"a"') < 10


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2\n",
        "a: [1\n",
        "a: !!python/object/apply:os.getcwd []\n",
        "\x00",
        "{" * 5000,
        "[" * 200_000,
        "a: &x [1]\nb: *x\n",
        "- " * 300 + "1",
    ],
)
def test_strange_yaml_is_refused(tmp_path, text):
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(UnreadableFile, match=r"x\.yaml"):
        read_yaml(tmp_path / "x.yaml")


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 0, "1", None, True, 1.0])
def test_other_format_versions_are_refused(version):
    with pytest.raises(NewerFormat):
        check_format({"format_version": version}, "x.yaml")
