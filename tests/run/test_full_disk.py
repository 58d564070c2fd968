"""A release run on a disk that is really full: it says so, and goes on when there is room."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

#: Runs in a name space of its own, in which it may mount a small disk on the folder given.
SCRIPT = r"""
import os, subprocess, sys
from pathlib import Path

disk, name, *sizes = sys.argv[1:]
disk = Path(disk)
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=True)

from discreet.register import Register
from run.conftest import write_run

def discreet(*options):
    return subprocess.run(
        [sys.executable, "-m", "discreet", "run", "run.yaml", *options],
        cwd=disk, capture_output=True, text=True, check=False,
    )

def fill(free):
    '''Leave so many bytes.'''
    with (disk / "filler").open("wb") as file:
        room = os.statvfs(disk)
        file.write(bytes(max(0, room.f_bavail * room.f_frsize - free)))

for number, kilobytes in enumerate(map(int, sizes), start=1):
    for used in ("work", "out"):
        subprocess.run(["rm", "-rf", disk / used], check=True)
    write_run(disk, name, "release", limit="100000", release=f"r{number}")
    fill(1024 * kilobytes)
    done = discreet()
    assert "Traceback" not in done.stderr, done.stderr
    # The last line: before it, a slow machine shows how far it got.
    print(kilobytes, done.returncode, *done.stderr.strip().splitlines()[-1:], flush=True)
    (disk / "filler").unlink()
    if done.returncode:
        assert not (disk / "out").exists()
        resume = ["--resume"] * (disk / "work" / "run.yaml").exists()
        again = discreet(*resume)
        assert again.returncode == 0, (resume, again.stderr)
    with Register.open(disk / "register.sqlite") as register:
        assert register.verify() == []
        kinds = [entry.event.kind for entry in register.entries()]
    assert kinds.count("reservation") == kinds.count("commit") == number, kinds
"""


def own_disk(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run something where it may mount a disk that nobody else sees."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--mount", *map(str, arguments)]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, 127, "", "there is no unshare")


def test_a_run_on_a_full_disk_ends_with_1_says_so_and_is_resumed(root, tmp_path):
    if own_disk("mount", "-t", "tmpfs", "tmpfs", tmp_path).returncode:
        pytest.skip("this machine lets nobody mount a disk of their own")
    python = ["env", f"PYTHONPATH={paths(root)}", sys.executable, "-c", SCRIPT]
    kilobytes = [0, 8, 28, 60, 100, 130, 160, 800]
    done = own_disk(*python, tmp_path, "permutation-swapping", *kilobytes)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [(line + " ").split(" ", 2) for line in done.stdout.splitlines()]
    failed = [text for _, code, text in lines if code != "0"]
    assert {code for _, code, _ in lines} == {"0", "1"}, done.stdout
    assert len(failed) > 4
    assert all("the disk is full" in text for text in failed), done.stdout


def paths(root: Path) -> str:
    return os.pathsep.join([str(root / "tests"), os.environ.get("PYTHONPATH", "")])
