"""Mechanisms: what draws a release from a census, and what each of them promises."""

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
)
from discreet.mechanisms.noisy_tables import NoisyTables
from discreet.mechanisms.steps import check_mode, make_draw, protect, publish_draw
from discreet.mechanisms.swapping import PermutationSwapping

__all__ = [
    "HEADER",
    "MECHANISMS",
    "DrawRecord",
    "Enumerable",
    "Mechanism",
    "Mode",
    "NoisyTables",
    "Outcome",
    "PermutationSwapping",
    "Release",
    "ReleaseHeader",
    "check_mode",
    "make_draw",
    "mechanism",
    "protect",
    "publish_draw",
]
