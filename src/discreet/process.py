"""Processes of our own: the command line, and those that it starts."""

from __future__ import annotations

import gc
import os

#: Set in the environment of such processes.
OWN_PROCESS = "DISCREET_OWN_PROCESS"


def own_process() -> None:
    """Set up this process, and those it starts, to run nothing but this package.

    Python looks for circles among all objects whenever some hundred were made. Loading the
    package makes hundreds of thousands that stay, and to search them takes a tenth of a start.
    """
    os.environ[OWN_PROCESS] = "1"
    gc.set_threshold(300_000, 20, 100)


def is_own_process() -> bool:
    """Tell whether this is a process of our own."""
    return bool(os.environ.get(OWN_PROCESS))
