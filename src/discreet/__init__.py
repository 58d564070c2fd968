"""Disclosure avoidance for census-style data: protect it, state the promise, measure the cost.

The names below are the public calls; whatever the command line does is one of them::

    census = discreet.Census.open("census")
    swapping = discreet.mechanism("permutation-swapping", census.schema, {...})
    release = discreet.protect(swapping, census, discreet.trial(seed=1), Path("release"))

`discreet.simulate.simulate`, `discreet.run.run` and `discreet.demo.demo` have rooms of
their own name.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from discreet.process import is_own_process, own_process

__version__ = "0.1.0"

if TYPE_CHECKING:
    from discreet.census import Census, Schema, ingest, load_schema, validate
    from discreet.evaluate import compare
    from discreet.mechanisms import MECHANISMS, Release, mechanism, protect, publish_draw
    from discreet.noise import system, trial
    from discreet.products import check_invariants, tabulate
    from discreet.register import Register
    from discreet.spec import Specification, compose, read_specification

#: Where each public name lives; loaded when it is first asked for, so that importing the
#: package (and `discreet --help`) stays quick.
_HOMES = {
    "discreet.census": ("Census", "Schema", "ingest", "load_schema", "validate"),
    "discreet.evaluate": ("compare",),
    "discreet.mechanisms": ("MECHANISMS", "Release", "mechanism", "protect", "publish_draw"),
    "discreet.noise": ("system", "trial"),
    "discreet.products": ("check_invariants", "tabulate"),
    "discreet.register": ("Register",),
    "discreet.spec": ("Specification", "compose", "read_specification"),
}

__all__ = [
    "MECHANISMS",
    "Census",
    "Register",
    "Release",
    "Schema",
    "Specification",
    "__version__",
    "check_invariants",
    "compare",
    "compose",
    "ingest",
    "load_schema",
    "mechanism",
    "protect",
    "publish_draw",
    "read_specification",
    "system",
    "tabulate",
    "trial",
    "validate",
]


if is_own_process():
    own_process()


def __getattr__(name: str) -> Any:
    """Load a public name from its room."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'discreet' has no attribute '{name}'")
