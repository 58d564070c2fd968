"""The one way this package compiles a function to machine code.

Compiled once, kept in a cache, and run without Python's global lock so that threads can
share the work. Numba alone would renew a cached function only when its own file changes,
not when a function it calls does, and would go on running old code. So the cache is kept
in a folder named after all sources of the package: any edit begins a new one.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])

#: Without the lock, and without a wrapper for C: nobody calls it, and every function has one.
_OPTIONS: Any = {"nogil": True, "no_cfunc_wrapper": True}


@functools.cache
def _cache_folder() -> str:
    """Return the folder of compiled functions that belong to exactly these sources."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.read_bytes())
    return str(package / "__pycache__" / f"compiled-{digest.hexdigest()[:16]}")


def compiled(function: Kernel) -> Kernel:
    """Return `function` compiled by Numba, with the type it had."""
    settings: Any = numba.config
    before = settings.CACHE_DIR
    # Read by Numba at this moment; other users of Numba in the process keep their setting.
    settings.CACHE_DIR = _cache_folder()
    try:
        return cast(Kernel, numba.njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:
        # No folder to write to, as in some installations: compile anew in every process.
        return cast(Kernel, numba.njit(**_OPTIONS)(function))
    finally:
        settings.CACHE_DIR = before
