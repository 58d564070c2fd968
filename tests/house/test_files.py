"""Half-written files are never seen, and strange YAML is refused by name and line."""

import fcntl
import grp
import os
import pwd
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import limits
from discreet.engine import Engine
from discreet.errors import BadInput, DiskFull, NewerFormat, UnreadableFile
from discreet.files import (
    FORMAT_VERSION,
    atomic_file,
    atomic_folder,
    check_format,
    create_file,
    locked,
    others_may_write,
    read_yaml,
    write_json,
    write_yaml,
)
from worlds import us_census, write_census


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


def socket_at(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


#: What is not replaced by a file, how it is made, and what is said of it.
IRREGULAR = {
    "a pipe": (os.mkfifo, "x is not a regular file"),
    "a socket": (socket_at, "x is not a regular file"),
    "a folder": (Path.mkdir, "x is not a regular file"),
    "a link to a file": (lambda path: path.symlink_to("there"), "x is a symbolic link"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "x is a symbolic link"),
    "a link to a pipe": (lambda path: path.symlink_to("pipe"), "x is a symbolic link"),
}


@pytest.mark.parametrize(("make", "says"), IRREGULAR.values(), ids=IRREGULAR)
def test_what_is_no_regular_file_is_not_replaced(tmp_path, monkeypatch, make, says):
    monkeypatch.chdir(tmp_path)  # a long path is no name for a socket
    Path("there").write_text("old")
    os.mkfifo("pipe")
    make(Path("x"))
    before = {path.name: path.lstat() for path in tmp_path.iterdir()}
    with pytest.raises(BadInput, match=f"{says}.*Give the path of a regular file"):
        write_json(Path("x"), {})
    after = {path.name: path.lstat() for path in tmp_path.iterdir()}
    assert {name: (s.st_ino, s.st_mode) for name, s in after.items()} == {
        name: (s.st_ino, s.st_mode) for name, s in before.items()
    }
    assert Path("there").read_text() == "old"


def test_nothing_is_computed_for_a_file_that_cannot_be_replaced(tmp_path):
    os.mkfifo(tmp_path / "x")
    with pytest.raises(BadInput), atomic_file(tmp_path / "x"):
        pytest.fail("it was written")


def test_a_table_is_not_written_over_a_pipe_or_a_link(tmp_path):
    write_census(us_census(Engine(threads=1), [(0, "1", [(40, "1", "01")])]), tmp_path / "census")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("census")
    before = sorted(path.name for path in tmp_path.iterdir())
    for name in ("pipe", "link"):
        asked = f"tabulate census --table P1 --level state --out {name}"
        done = limits.discreet(*asked.split(), cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert "Give the path of a regular file" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()


def test_a_file_below_a_linked_folder_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    for value in (1, 2):
        write_json(tmp_path / "linked" / "x", value)
    assert (tmp_path / "real" / "x").read_text() == "2\n"


def test_a_lock_that_was_taken_away_is_not_held(tmp_path, monkeypatch):
    """A refused run took it away after it was opened here, and before it was locked."""
    path, lock = tmp_path / "lock", fcntl.flock

    def slow(handle, operation):
        path.unlink()
        lock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", slow)
    with pytest.raises(BadInput, match="in use"), locked(path):
        pytest.fail("two could hold it")


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


def test_a_full_disk_is_named_with_the_file_and_leaves_the_old_one(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("old")

    def full():
        with atomic_file(path) as temporary:
            temporary.symlink_to("/dev/full")
            temporary.write_text("new")

    with pytest.raises(DiskFull, match=r"x\.txt.*the disk is full") as caught:
        full()
    assert caught.value.exit_code == 1
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["x.txt"]


def test_a_full_disk_inside_a_folder_is_named_with_the_folder(tmp_path):
    def full():
        with atomic_folder(tmp_path / "out") as temporary:
            (temporary / "x").symlink_to("/dev/full")
            (temporary / "x").write_text("new")

    with pytest.raises(DiskFull, match=r"out.*the disk is full"):
        full()
    assert list(tmp_path.iterdir()) == []


def test_other_errors_of_the_system_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError), atomic_file(tmp_path / "x"):
        (tmp_path / "nowhere").read_text()


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_new_file_is_whole_and_never_replaces_another(tmp_path, monkeypatch, unnamed):
    if not unnamed:  # as on systems without such files
        monkeypatch.delattr(os, "O_TMPFILE")
    path = tmp_path / "folder" / "x.bin"
    create_file(path, b"content", 0o600)
    assert path.read_bytes() == b"content"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        create_file(path, b"other", 0o600)
    assert path.read_bytes() == b"content"
    assert [file.name for file in path.parent.iterdir()] == ["x.bin"]


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


def test_a_path_that_no_file_can_have_is_refused(tmp_path):
    with pytest.raises(UnreadableFile, match="no file can have"):
        read_yaml(tmp_path / "x\0.yaml")


def test_files_that_cannot_be_read_say_why(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    for name, why in (("nowhere", "is missing"), (".", "is a folder"), ("latin.yaml", "UTF-8")):
        with pytest.raises(UnreadableFile, match=why):
            read_yaml(tmp_path / name)


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 0, "1", None, True, 1.0])
def test_other_format_versions_are_refused(version):
    with pytest.raises(NewerFormat):
        check_format({"format_version": version}, "x.yaml")


def test_a_private_file_is_not_for_others_while_it_is_written(tmp_path, monkeypatch):
    seen, chmod = [], Path.chmod

    def noted(path, mode):
        seen.append(path.stat().st_mode & 0o777)
        chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", noted)
    before = os.umask(0)
    try:
        write_json(tmp_path / "private.json", {}, 0o600)
    finally:
        os.umask(before)
    assert seen == [0o600]
    assert (tmp_path / "private.json").stat().st_mode & 0o777 == 0o600


# -- rights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rights", "others"),
    [(0o700, False), (0o755, False), (0o757, True), (0o702, True), (0o1777, True)],
)
def test_a_folder_that_others_may_write_to_is_found(tmp_path, rights, others):
    tmp_path.chmod(rights)
    assert others_may_write(tmp_path) == others


@pytest.mark.parametrize(
    ("group", "members", "primary", "others"),
    [
        ("me", [], ["me"], False),
        ("me", ["me"], ["me"], False),
        ("me", ["eve"], ["me"], True),
        ("me", [], ["me", "eve"], True),
        ("staff", [], ["me"], True),
    ],
)
def test_a_group_counts_as_others_unless_one_is_alone_in_it(
    tmp_path, monkeypatch, group, members, primary, others
):
    tmp_path.chmod(0o775)
    number = tmp_path.stat().st_gid
    users = [pwd.struct_passwd((name, "", 1, number, "", "", "")) for name in primary]
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd(("me", *"x" * 6)))
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    monkeypatch.setattr(
        grp, "getgrgid", lambda asked: grp.struct_group((group, "", asked, members))
    )
    assert others_may_write(tmp_path) == others


def test_a_list_of_rights_is_not_taken_for_a_group_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.files._is_alone", lambda group: True)
    entries = [(1, 7, -1), (2, 7, 12345), (4, 5, -1), (16, 7, -1), (32, 5, -1)]
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    tmp_path.chmod(0o775)
    assert not others_may_write(tmp_path)
    try:
        os.setxattr(tmp_path, "system.posix_acl_access", packed)
    except OSError:
        pytest.skip("this file system has no lists of rights")
    assert others_may_write(tmp_path)


def test_what_somebody_else_owns_is_theirs_to_write(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    owner = os.geteuid()
    if owner == 0:
        os.chown(tmp_path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert others_may_write(tmp_path)
