"""The public names exist, are what they say, and do not slow down the start."""

import subprocess
import sys
from types import ModuleType

import discreet


def test_every_public_name_can_be_had():
    homes = [name for names in discreet._HOMES.values() for name in names]
    assert sorted([*homes, "__version__"]) == sorted(discreet.__all__)
    assert not any(isinstance(getattr(discreet, name), ModuleType) for name in discreet.__all__)


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, discreet; print([m for m in ('numpy', 'duckdb', 'numba') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
