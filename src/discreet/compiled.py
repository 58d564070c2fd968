"""The one way this package compiles a function to machine code.

Compiled once, kept in a cache, and run without Python's global lock so that threads can
share the work. Numba alone would renew a cached function only when its own file changes,
not when a function it calls does, and would go on running old code. So the cache is kept
in a folder named after the sources of its module and of all it imports from the package:
an edit in any of these begins a new one.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])

PACKAGE = Path(__file__).parent

#: Without the lock, and without a wrapper for C: nobody calls it, and every function has one.
_OPTIONS: Any = {"nogil": True, "no_cfunc_wrapper": True}

_IMPORT = re.compile(rf"^\s*(?:from|import)\s+{PACKAGE.name}((?:\.\w+)*)", re.MULTILINE)


@functools.cache
def _sources(path: Path) -> frozenset[Path]:
    """Return the files of the package that the text of one file imports by name.

    A package stands for all its files, since what it passes on may come from any of them.
    """
    found: set[Path] = set()
    for name in _IMPORT.findall(path.read_text()):
        named = PACKAGE.joinpath(*name.split(".")[1:])
        found.update([named.with_suffix(".py")] if named.with_suffix(".py").exists() else [])
        found.update(named.rglob("*.py"))
    return frozenset(found)


def _reached(path: Path) -> list[Path]:
    """Return a file and all files of the package that it imports, however indirectly."""
    reached, waiting = set[Path](), {path}
    while waiting:
        reached |= waiting
        waiting = {source for one in waiting for source in _sources(one)} - reached
    return sorted(reached)


@functools.cache
def _cache_folder(module: str) -> str:
    """Return the folder of compiled functions that belong to exactly these sources."""
    digest = hashlib.sha256()
    for path in _reached(Path(module)):
        digest.update(path.read_bytes())
    return str(PACKAGE / "__pycache__" / "compiled" / digest.hexdigest()[:16])


def compiled(function: Kernel) -> Kernel:
    """Return `function` compiled by Numba, with the type it had."""
    settings: Any = numba.config
    before = settings.CACHE_DIR
    # Read by Numba at this moment; other users of Numba in the process keep their setting.
    settings.CACHE_DIR = _cache_folder(cast(Any, function).__code__.co_filename)
    try:
        return cast(Kernel, numba.njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:
        # No folder to write to, as in some installations: compile anew in every process.
        return cast(Kernel, numba.njit(**_OPTIONS)(function))
    finally:
        settings.CACHE_DIR = before
