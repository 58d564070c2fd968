"""Exact integer noise: random tapes, and draws from them without rounding.

Knows nothing of censuses, specifications or engines.
"""

from __future__ import annotations

from discreet.noise._compiled import compiled
from discreet.noise.select import (
    LARGEST_BOUND,
    PIECES_PER_WORD,
    Chance,
    select_each,
    shuffle,
    uniform_below,
)
from discreet.noise.tape import Mode, Randomness, Words, key_of, system, trial

__all__ = [
    "LARGEST_BOUND",
    "PIECES_PER_WORD",
    "Chance",
    "Mode",
    "Randomness",
    "Words",
    "compiled",
    "key_of",
    "select_each",
    "shuffle",
    "system",
    "trial",
    "uniform_below",
]
