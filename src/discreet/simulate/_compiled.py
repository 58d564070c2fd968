"""The one way this room compiles a function to machine code.

Kept in Numba's cache beside the source; run without Python's global lock, so that
threads share the work. Numba renews a cached function when its own file changes, not
when a function it calls does: after editing a kernel, delete `__pycache__`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel) -> Kernel:
    """Return `function` compiled by Numba, with the type it had."""
    return cast(Kernel, numba.njit(cache=True, nogil=True)(function))
