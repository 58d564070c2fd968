"""The one way this package compiles a function to machine code.

Compiled once, kept in Numba's cache beside the source, and run without
Python's global lock so that threads can share the work.

Numba renews a cached function when the file that holds it changes, not when a
function it calls changes: after editing a kernel here, delete `__pycache__`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel) -> Kernel:
    """Return `function` compiled by Numba, with the type it had."""
    return cast(Kernel, numba.njit(cache=True, nogil=True)(function))
