"""The one way this package compiles a function to machine code.

Compiled once, kept in a cache, and run without Python's global lock so that threads can
share the work. Numba alone would renew a cached function only when its own file changes,
not when a function it calls does, and would go on running old code. So the cache is kept
in a folder named after the sources of its module and of all it imports from the package:
an edit in any of these begins a new one.

What is in the cache is run as it is. Before a release is charged, `discreet.mechanisms.self_test`
refuses a cache that others may write to, and kernels that draw and give wrong answers. This
module imports nothing from the package: compiled code would depend on it, too.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys

Kernel = TypeVar("Kernel", bound=Callable[..., object])

PACKAGE = Path(__file__).parent

#: Without the lock, and without a wrapper for C: nobody calls it, and every function has one.
_OPTIONS: Any = {"nogil": True, "no_cfunc_wrapper": True}

#: Every function compiled so far in this process.
_KERNELS: list[Any] = []

_IMPORT = re.compile(rf"^\s*(?:from|import)\s+{PACKAGE.name}\b([\w.]*)", re.MULTILINE)


@functools.cache
def _files() -> dict[str, str]:
    """Return the files of the package by dotted name, as in `.noise.tape` and `.noise.`."""
    found = {}
    for folder, folders, names in os.walk(PACKAGE):
        folders[:] = [name for name in folders if name != "__pycache__"]  # thousands, at times
        inside = folder[len(str(PACKAGE)) :].replace(os.sep, ".")
        for name in names:
            if name.endswith(".py"):
                found[f"{inside}.{name[:-3]}".removesuffix("__init__")] = f"{folder}/{name}"
    return found


@functools.cache
def _read(file: str) -> tuple[str, frozenset[str]]:
    """Return the text of a file, and the modules of the package that it imports by name.

    A package stands for all its modules, since what it passes on may come from any of them.
    """
    text = Path(file).read_text()
    named = set(_IMPORT.findall(text))
    inside = tuple(f"{name}." for name in named)
    return text, frozenset(n for n in _files() if n in named or n.startswith(inside))


@functools.cache
def _cache_folder(file: str) -> str:
    """Return the folder for compiled functions of a file: it depends on all the file imports."""
    text, waiting = _read(file)
    reached = set[str]()
    while waiting:
        reached |= waiting
        waiting = frozenset().union(*(_read(_files()[n])[1] for n in waiting)) - reached
    texts = [text, *(_read(_files()[name])[0] for name in sorted(reached))]
    digest = hashlib.sha256("\0".join(texts).encode())
    folder = cache_root() / digest.hexdigest()[:16]
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)  # whatever the umask
    return str(folder)


@functools.cache
def cache_root() -> Path:
    """Return the folder of all caches: the package's, or the user's if that cannot be written."""
    # Unlike that of `Path`, this does not fail where a user has no home.
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    inside, outside = PACKAGE / "__pycache__", Path(home) / PACKAGE.name
    for root in (inside / "compiled", outside / "compiled"):
        with contextlib.suppress(OSError):
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=root).close()
            return root
    return inside / "compiled"


def kernels() -> tuple[Any, ...]:
    """Return all functions that were compiled, or will be when they are called."""
    return tuple(_KERNELS)


def compiled(function: Kernel) -> Kernel:
    """Return `function` compiled by Numba, with the type it had."""
    return _compiled(function, _OPTIONS)


def compiled_within(function: Kernel) -> Kernel:
    """Return `function` compiled for other compiled functions alone.

    Python cannot call it. What would let it takes as long to compile as a small function.
    """
    kernel = _compiled(function, {**_OPTIONS, "no_cpython_wrapper": True})
    if kernel is not function:
        cast(Any, kernel).__class__ = _Within
    return kernel


class _Within(CPUDispatcher):
    """A compiled function without a way in from Python: calling it would end the process."""

    def __call__(self, *_: object, **__: object) -> None:
        raise TypeError(f"{self.py_func.__name__} can be called by compiled functions only")


class _Cache(FunctionCache):
    """Compiled functions on disk, loaded without what only compiling needs.

    Numba first loads all that compiled functions could call, with SciPy for its BLAS: half a
    second in every process. Machine code that is there needs no more than the memory manager.
    """

    def load_overload(self, sig: object, target_context: object) -> object:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return cast(Any, self)._load_overload(sig, target_context)
        return None  # Windows, where another process holds the file


def _compiled(function: Kernel, options: Any) -> Kernel:
    settings: Any = numba.config
    if settings.DISABLE_JIT:
        return function  # slow, and no machine code: for looking at what the sources say
    before = settings.CACHE_DIR
    # Read by Numba at this moment; other users of Numba in the process keep their setting.
    settings.CACHE_DIR = _cache_folder(cast(Any, function).__code__.co_filename)
    try:
        kernel = numba.njit(cache=True, **options)(function)
        kernel._cache.__class__ = _Cache
        kept = kernel._cache.cache_path.startswith(settings.CACHE_DIR)
    except RuntimeError:
        kept = False
    finally:
        settings.CACHE_DIR = before
    if not kept:
        # No folder to write to: compile again in every process. Numba would go on to a folder
        # that is not named after the sources, and run old code.
        kernel = numba.njit(**options)(function)
    _KERNELS.append(kernel)
    return cast(Kernel, kernel)
