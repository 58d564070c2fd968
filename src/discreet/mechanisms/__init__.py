"""Mechanisms: what draws a release from a census, and what each of them promises.

The larger ones have a door of their own: `discreet.mechanisms.swapping`, `.topdown` and
`.phsafe`. Each is loaded when it is first asked for.
"""

from discreet.mechanisms.catalogue import MECHANISMS, mechanism
from discreet.mechanisms.contract import (
    HEADER,
    DrawRecord,
    Enumerable,
    Mechanism,
    Mode,
    Outcome,
    Release,
    ReleaseHeader,
    Staged,
)
from discreet.mechanisms.noisy_tables import NoisyTables
from discreet.mechanisms.self_test import check_kernels
from discreet.mechanisms.stages import Stages
from discreet.mechanisms.steps import check_mode, make_draw, protect, publish_draw

__all__ = [
    "HEADER",
    "MECHANISMS",
    "DrawRecord",
    "Enumerable",
    "Mechanism",
    "Mode",
    "NoisyTables",
    "Outcome",
    "Release",
    "ReleaseHeader",
    "Staged",
    "Stages",
    "check_kernels",
    "check_mode",
    "make_draw",
    "mechanism",
    "protect",
    "publish_draw",
]
