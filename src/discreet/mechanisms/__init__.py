"""Mechanisms: what draws a release from a census, and what each of them promises.

The larger ones have a door of their own: `discreet.mechanisms.topdown` and
`discreet.mechanisms.phsafe`.
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
from discreet.mechanisms.stages import Stages
from discreet.mechanisms.steps import check_mode, make_draw, protect, publish_draw
from discreet.mechanisms.swapping import (
    Households,
    PairSwapping,
    PermutationSwapping,
    Places,
    Swap,
    kilometres,
)

__all__ = [
    "HEADER",
    "MECHANISMS",
    "DrawRecord",
    "Enumerable",
    "Households",
    "Mechanism",
    "Mode",
    "NoisyTables",
    "Outcome",
    "PairSwapping",
    "PermutationSwapping",
    "Places",
    "Release",
    "ReleaseHeader",
    "Staged",
    "Stages",
    "Swap",
    "check_mode",
    "kilometres",
    "make_draw",
    "mechanism",
    "protect",
    "publish_draw",
]
