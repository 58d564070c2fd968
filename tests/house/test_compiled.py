"""Compiled code is never older than any source it was made from."""

import shutil
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
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_an_edited_callee_is_not_run_from_an_old_cache(tmp_path):
    package = tmp_path / "small"
    package.mkdir()
    (package / "__init__.py").write_text("")
    shutil.copy(discreet.compiled.__file__, package / "compiled.py")
    (package / "caller.py").write_text(CALLER)
    (package / "callee.py").write_text(CALLEE.format(1))
    assert result(tmp_path) == "2 0"
    assert result(tmp_path) == "2 1"  # from the cache
    (package / "callee.py").write_text(CALLEE.format(5))
    assert result(tmp_path) == "10 0"


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
