"""Compiled code that was changed on the disk, or that others may change, is refused in time.

The package is copied with its cache, and a file of the cache is exchanged for what doctored
sources compile to: the real thing, without touching what other tests use.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

import discreet
from discreet.compiled import kernels
from discreet.mechanisms import self_test
from discreet.mechanisms.self_test import (
    DRAWING,
    NOISE,
    WritableCache,
    answers_of,
    check_folder,
    drawing,
)
from discreet.noise import NOISE_ANSWERS, check_answers
from discreet.register import Register

from .conftest import write_run

PACKAGE = Path(discreet.__file__).parent

#: Prints whether all that is drawn is as if nothing had been drawn.
NO_NOISE = (
    "from discreet.noise import discrete_gaussian, trial\n"
    "print(not discrete_gaussian(trial(1), 'x', 0, 400, 50).any())\n"
)
NO_SWAP = (
    "import numpy as np\n"
    "from fractions import Fraction\n"
    "from discreet.noise import trial\n"
    "from discreet.mechanisms.swapping.kernel import permute_strata\n"
    "keys = np.zeros(1, dtype=np.uint64)\n"
    "found = permute_strata(np.array([0, 99]), keys, Fraction(1, 2), trial(1))\n"
    "print((found == np.arange(99)).all())\n"
)


@dataclass(frozen=True)
class Doctored:
    """A kernel, a line of it as it is and as somebody might want it, and what that does."""

    module: str
    kernel: str
    line: str
    instead: str
    check: str


DOCTORED = {
    "noisy-tables": Doctored(
        "noise/draw.py",
        "unfold",
        "ranks[i] = (ranks[i] >> 1) ^ -(ranks[i] & 1)",
        "ranks[i] = 0",
        NO_NOISE,
    ),
    "permutation-swapping": Doctored(
        "mechanisms/swapping/kernel.py",
        "_advance",
        "source[first[g] + mine[i]] = first[g] + mine[among[i]]",
        "source[first[g] + mine[i]] = first[g] + mine[i]",
        NO_SWAP,
    ),
}


def copied(site: Path) -> Path:
    """Copy the package with its compiled kernels that draw; return the copy."""
    package = site / "discreet"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    check_answers([*NOISE_ANSWERS, *answers_of("swapping")])  # compiled, if nobody has
    for kernel in drawing((*NOISE, *DRAWING["swapping"])):
        kept = Path(kernel.stats.cache_path)
        source = Path(import_module(kernel.py_func.__module__).__file__)
        there = package / source.relative_to(PACKAGE)
        name = kernel._cache._impl.locator.get_suitable_cache_subpath(str(there))
        folder = package / "__pycache__" / "compiled" / kept.parent.name / name
        shutil.copytree(kept, folder, dirs_exist_ok=True)
    return package


def python(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=site,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


def compiled_file(package: Path, case: Doctored) -> Path:
    (found,) = package.rglob(f"{Path(case.module).stem}.{case.kernel}-*.nbc")
    return found


@pytest.fixture(params=DOCTORED)
def changed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, Path]:
    """Return a mechanism, a copied package, and its compiled kernel that was exchanged."""
    case = DOCTORED[request.param]
    package = copied(tmp_path / "site")
    file = compiled_file(package, case)
    shutil.copy(file, tmp_path / "as it was")

    # The same sources, but for a line, compiled where nobody looks.
    shutil.copytree(tmp_path / "site", tmp_path / "other")
    source = tmp_path / "other" / "discreet" / case.module
    text = source.read_text()
    assert text.count(case.line) == 1
    source.write_text(text.replace(case.line, case.instead))
    shutil.rmtree(file_in_copy(file, tmp_path).parent.parent)
    assert python(tmp_path / "other", "-c", case.check).stdout == "True\n"
    shutil.copy(compiled_file(tmp_path / "other", case), file)
    return request.param, package, file


def file_in_copy(file: Path, tmp_path: Path) -> Path:
    return tmp_path / "other" / file.relative_to(tmp_path / "site")


def entries(folder: Path) -> list[str]:
    with Register.open(folder / "register.sqlite") as register:
        assert register.verify() == []
        return [entry.hash for entry in register.entries()]


@pytest.mark.slow
def test_a_changed_cache_is_refused_before_the_charge(changed, tmp_path: Path) -> None:
    name, package, file = changed
    case = DOCTORED[name]
    assert python(package.parent, "-c", case.check).stdout == "True\n"  # the change is real
    config = write_run(tmp_path / "house", name, "release")
    before = entries(config.parent)
    done = python(package.parent, "-m", "discreet", "run", str(config))
    assert done.returncode == 1, done.stderr
    assert "self-test" in done.stderr
    assert str(package / "__pycache__" / "compiled") in done.stderr
    assert entries(config.parent) == before
    assert not (config.parent / "work").exists()
    assert not (config.parent / "out").exists()

    shutil.copy(tmp_path / "as it was", file)
    done = python(package.parent, "-m", "discreet", "run", str(config))
    assert done.returncode == 0, done.stderr
    assert len(entries(config.parent)) > len(before)


@pytest.mark.slow
def test_a_damaged_cache_is_refused_before_the_charge(tmp_path: Path) -> None:
    package = copied(tmp_path / "site")
    file = compiled_file(package, DOCTORED["noisy-tables"])
    file.write_bytes(file.read_bytes()[:-100])
    config = write_run(tmp_path / "house", "noisy-tables", "release")
    before = entries(config.parent)
    done = python(package.parent, "-m", "discreet", "run", str(config))
    assert done.returncode == 1, done.stderr
    assert "self-test" in done.stderr
    assert entries(config.parent) == before


@pytest.mark.slow
def test_a_cache_that_others_may_write_to_is_refused_before_the_charge(tmp_path: Path) -> None:
    package = copied(tmp_path / "site")
    cache = package / "__pycache__" / "compiled"
    cache.chmod(0o777)
    config = write_run(tmp_path / "house", "noisy-tables", "release")
    before = entries(config.parent)
    done = python(package.parent, "-m", "discreet", "run", str(config))
    assert done.returncode == 1, done.stderr
    assert f"chmod -R go-w {cache}" in done.stderr
    assert entries(config.parent) == before
    assert not (config.parent / "work").exists()
    assert python(package.parent, "-m", "discreet", "run", str(config), "--dry-run").returncode == 0
    cache.chmod(0o755)
    done = python(package.parent, "-m", "discreet", "run", str(config))
    assert done.returncode == 0, done.stderr


# -- folders ------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of compiled code in a package, all of it for everybody to read."""
    package = tmp_path / "discreet"
    monkeypatch.setattr(self_test, "PACKAGE", package)
    folder = package / "__pycache__" / "compiled" / "digest" / "noise"
    folder.mkdir(parents=True)
    (folder / "draw.nbc").write_bytes(b"code")
    return folder


def inside(cache: Path) -> list[Path]:
    return [cache / "draw.nbc", cache, *list(cache.parents)[:4]]


@pytest.mark.parametrize("level", range(6))
@pytest.mark.parametrize("rights", [0o757, 0o1777])
def test_whatever_others_may_write_to_is_named(cache: Path, level: int, rights: int) -> None:
    check_folder(cache)
    path = inside(cache)[level]
    path.chmod(rights)
    with pytest.raises(WritableCache) as caught:
        check_folder(cache)
    assert str(caught.value).startswith(f"{path}: ")
    assert caught.value.exit_code == 1


def test_what_is_above_the_package_is_not_looked_at(cache: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    check_folder(cache)


def test_what_is_in_a_folder_that_others_cannot_enter_is_safe(cache: Path) -> None:
    (cache / "draw.nbc").chmod(0o666)
    cache.chmod(0o777)
    cache.parent.parent.chmod(0o700)
    check_folder(cache)


def test_a_folder_elsewhere_is_checked_up_to_the_root(cache: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "home" / "cache"
    elsewhere.mkdir(parents=True)
    tmp_path.chmod(0o777)
    with pytest.raises(WritableCache):
        check_folder(elsewhere)


def test_only_releases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "others_may_write", lambda path: True)
    self_test.check_kernels("noisy-tables", "trial")
    self_test.check_kernels("noisy-tables", "design")
    with pytest.raises(WritableCache):
        self_test.check_kernels("noisy-tables", "release")


def test_a_tested_kernel_takes_no_more_code_from_the_disk(tmp_path: Path) -> None:
    code = (
        "import numpy as np\n"
        "from discreet.mechanisms import check_kernels\n"
        "from discreet.noise.draw import unfold\n"
        "check_kernels('noisy-tables', 'release')\n"
        "assert unfold.stats.cache_hits\n"
        "unfold(np.ones(2, dtype=np.int32))\n"
        "print(sum(unfold.stats.cache_hits.values()), sum(unfold.stats.cache_misses.values()))\n"
    )
    assert kernels()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "1 1\n", done.stderr
