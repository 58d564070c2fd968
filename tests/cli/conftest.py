"""Run the command line as people do: a program with arguments, output and an exit code."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Done = subprocess.CompletedProcess[str]
Discreet = Callable[..., Done]

PROGRAM = Path(sys.executable).parent / "discreet"


def run(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> Done:
    return subprocess.run(
        [PROGRAM, *arguments],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def discreet(tmp_path: Path) -> Discreet:
    """Return a function that runs `discreet` in a folder of its own."""
    return lambda *arguments, **options: run(*arguments, cwd=tmp_path, **options)


@pytest.fixture(scope="session")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tiny census that nobody may change."""
    folder = tmp_path_factory.mktemp("shared")
    done = run("simulate", "census", "--profile", "tiny", "--processes", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "census"
