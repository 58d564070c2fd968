"""`make` does nothing twice, and fails with a clear message."""

import os
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
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "module.py").write_text("")
    script(tmp_path / ".venv" / "bin" / "discreet", DEMO)
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
    (clone / ".venv" / ".ready").unlink()
    old = script(clone / "python3.9", '#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\n')
    done = make(clone, "setup", f"PYTHON={old}")
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stderr
    assert "Python 3.9.2" in done.stderr
    assert "PYTHON=python3.11" in done.stderr
