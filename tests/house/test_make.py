"""`make` does nothing twice, and fails with a clear message."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

DEMO = "#!/bin/sh\necho ran >> runs\nmkdir -p build/demo\necho page > build/demo/report.html\n"


def script(path: Path, text: str) -> Path:
    """Write an executable script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Without what a `make test` around us passes on to its children.
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def clone(root: Path, tmp_path: Path) -> Path:
    """Return a folder with our Makefile, already set up, and a demo that counts its runs."""
    (tmp_path / "Makefile").write_text((root / "Makefile").read_text())
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "requirements").mkdir()
    for name in ("user", "dev", "uv"):
        (tmp_path / "requirements" / f"{name}.txt").write_text("")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "module.py").write_text("")
    script(tmp_path / ".venv" / "bin" / "discreet", DEMO)
    script(tmp_path / ".venv" / "bin" / "python", "#!/bin/sh\nexit 1\n")
    (tmp_path / ".venv" / ".usable").write_text("")
    (tmp_path / ".venv" / ".ready").write_text("")
    return tmp_path


def runs(clone: Path) -> int:
    return len((clone / "runs").read_text().splitlines())


def test_the_demo_runs_once_and_ends_with_the_path_of_the_report(clone: Path) -> None:
    for _ in range(2):
        done = make(clone, "demo")
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == str(clone / "build" / "demo" / "report.html")
    assert runs(clone) == 1


def test_the_demo_runs_again_when_the_sources_change(clone: Path) -> None:
    make(clone, "demo")
    later = (clone / "build" / "demo" / "report.html").stat().st_mtime + 10
    os.utime(clone / "src" / "module.py", (later, later))
    make(clone, "demo")
    assert runs(clone) == 2


def test_compiled_files_beside_the_sources_are_no_change(clone: Path) -> None:
    make(clone, "demo")
    later = (clone / "build" / "demo" / "report.html").stat().st_mtime + 10
    cache = clone / "src" / "__pycache__" / "module.nbi"
    cache.parent.mkdir()
    cache.write_text("")
    os.utime(cache, (later, later))
    make(clone, "demo")
    assert runs(clone) == 1


def test_a_failed_demo_leaves_no_report(clone: Path) -> None:
    script(clone / ".venv" / "bin" / "discreet", DEMO + "exit 1\n")
    assert make(clone, "demo").returncode != 0
    assert not (clone / "build" / "demo" / "report.html").exists()


def test_set_up_is_not_repeated(clone: Path) -> None:
    done = make(clone, "setup", "PYTHON=false")
    assert done.returncode == 0, done.stderr


def test_an_old_python_is_named_with_the_remedy(clone: Path) -> None:
    shutil.rmtree(clone / ".venv")
    old = script(clone / "python3.9", '#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\n')
    done = make(clone, "setup", f"PYTHON={old}")
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stderr
    assert "Python 3.9.2" in done.stderr
    assert "PYTHON=python3.11" in done.stderr


# --- what is installed --------------------------------------------------------------------------

LOCKED = "--only-binary :all: --require-hashes --requirement requirements/{}.txt"
PACKAGE = "--no-deps --no-build-isolation --editable ."


def installs(folder: Path, *arguments: str) -> list[str]:
    """Return what each call of pip would install."""
    planned = make(folder, "--dry-run", *arguments)
    assert planned.returncode == 0, planned.stderr
    lines = [line for line in planned.stdout.splitlines() if " -m pip " in line]
    return [line.split(" install --quiet ")[1] for line in lines]


@pytest.fixture
def fresh(clone: Path) -> Path:
    """Return a clone in which nothing was set up."""
    shutil.rmtree(clone / ".venv")
    return clone


def test_set_up_installs_from_the_locks_and_builds_without_fetching(fresh: Path) -> None:
    assert installs(fresh, "setup") == [LOCKED.format("user"), PACKAGE, LOCKED.format("dev")]


def test_the_demo_installs_what_a_user_needs(fresh: Path) -> None:
    assert installs(fresh, "demo") == [LOCKED.format("user"), PACKAGE]


def test_the_demo_installs_nothing_after_set_up(clone: Path) -> None:
    assert installs(clone, "demo") == []


def test_set_up_after_the_demo_adds_what_developers_need(clone: Path) -> None:
    (clone / ".venv" / ".ready").unlink()
    assert installs(clone, "setup") == [LOCKED.format("dev")]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("requirements/dev.txt", [LOCKED.format("dev")]),
        ("requirements/user.txt", [LOCKED.format("user"), PACKAGE, LOCKED.format("dev")]),
        ("pyproject.toml", [LOCKED.format("user"), PACKAGE, LOCKED.format("dev")]),
        ("requirements/uv.txt", []),
    ],
)
def test_a_changed_lock_is_installed(clone: Path, changed: str, expected: list[str]) -> None:
    later = (clone / ".venv" / ".ready").stat().st_mtime + 10
    os.utime(clone / changed, (later, later))
    assert installs(clone, "setup") == expected


@pytest.mark.parametrize("goal", ["update", "test-lowest", "test-newest"])
def test_what_is_not_the_locked_environment_leaves_it_alone(clone: Path, goal: str) -> None:
    assert installs(clone, goal) == [LOCKED.format("uv")]
    planned = make(clone, "--dry-run", goal).stdout
    assert ".venv" not in planned
    assert "lock.py" not in planned or goal == "update"


#: A Python that notes how it is asked to install, and makes environments with and without pip.
PYTHON = """#!/bin/sh
case "$*" in
  -c*) ;;
  "-m venv .venv") {with_pip} ;;
  "-m venv --clear --without-pip .venv") {without_pip} ;;
  *) echo "{name} $*" >> calls ;;
esac
"""
WITHOUT_PIP = "mkdir -p .venv/bin && cp inside .venv/bin/python"


@pytest.mark.parametrize(
    ("with_pip", "installer"),
    [(f"{WITHOUT_PIP} && touch .venv/bin/pip", "environment"), ("exit 1", "machine")],
)
def test_an_environment_without_pip_is_filled_by_that_of_the_machine(
    fresh: Path, with_pip: str, installer: str
) -> None:
    commands = {"with_pip": with_pip, "without_pip": WITHOUT_PIP}
    script(fresh / "inside", PYTHON.format(name="environment", **commands))
    machine = script(fresh / "python3", PYTHON.format(name="machine", **commands))
    done = make(fresh, "setup", f"PYTHON={machine}")
    assert done.returncode == 0, done.stderr
    calls = (fresh / "calls").read_text().splitlines()
    assert len(calls) == 3
    assert all(call.startswith(f"{installer} -m pip --python .venv/bin/python") for call in calls)
