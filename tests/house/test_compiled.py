"""Compiled code is never older than any source it was made from."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import discreet.compiled
from discreet.mechanisms.topdown.flow import find_lack

CALLEE = "from small.compiled import compiled\n\n\n@compiled\ndef number():\n    return {}\n"
CALLER = (
    "from small.compiled import compiled\nfrom small.callee import number\n\n\n"
    "@compiled\ndef twice():\n    return 2 * number()\n"
)


def result(folder: Path) -> str:
    code = "import small.caller as c; print(c.twice(), sum(c.twice.stats.cache_hits.values()))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "home")},
        umask=0,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path):
    package = tmp_path / "small"
    package.mkdir()
    (package / "__init__.py").write_text("")
    shutil.copy(discreet.compiled.__file__, package / "compiled.py")
    (package / "caller.py").write_text(CALLER)
    (package / "callee.py").write_text(CALLEE.format(1))
    return package


@pytest.mark.parametrize("writable", [True, False])
def test_an_edited_callee_is_not_run_from_an_old_cache(package, tmp_path, writable):
    """Nor where the package cannot be written, and the cache is in a folder of the user."""
    if not writable:
        (package / "__pycache__").mkdir()
        (package / "__pycache__" / "compiled").write_text("in the way")
    assert result(tmp_path) == "2 0"
    assert result(tmp_path) == "2 1"  # from the cache
    (package / "callee.py").write_text(CALLEE.format(5))
    assert result(tmp_path) == "10 0"
    assert (tmp_path / "home").exists() != writable


def test_only_its_owner_may_enter_the_cache_whatever_the_umask(package, tmp_path):
    """Nor folders of new code in a cache that an older version made for everybody."""
    result(tmp_path)
    made = package / "__pycache__" / "compiled"
    assert {stat.S_IMODE(path.stat().st_mode) for path in [made, *made.iterdir()]} == {0o700}
    made.chmod(0o755)
    (package / "callee.py").write_text(CALLEE.format(5))
    result(tmp_path)
    assert {stat.S_IMODE(path.stat().st_mode) for path in made.iterdir()} == {0o700}


def test_other_users_of_numba_keep_their_setting():
    before = numba.config.CACHE_DIR
    discreet.compiled.compiled(lambda x: x)
    assert before == numba.config.CACHE_DIR


def test_python_cannot_call_what_is_compiled_for_compiled_functions():
    """Without this refusal the process would end."""
    with pytest.raises(TypeError, match="find_lack can be called by compiled functions only"):
        find_lack(1)


def test_code_that_is_there_already_is_loaded_without_what_only_compiling_needs():
    code = (
        "import sys; from fractions import Fraction; from discreet.noise import trial;"
        "from discreet.noise import discrete_gaussian as d; d(trial(1), 'x', 0, Fraction(9), 3);"
        "sys.exit(bool({'numba.np.linalg', 'scipy.linalg'} & {*sys.modules}))"
    )
    subprocess.run([sys.executable, "-c", code], check=False)  # compiles, if nobody has
    subprocess.run([sys.executable, "-c", code], check=True)
