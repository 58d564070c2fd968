"""Exact integer noise: random tapes, and draws from them without rounding.

Knows nothing of censuses, specifications or engines.
"""

from __future__ import annotations

from discreet.noise.binomial import binomial
from discreet.noise.draw import discrete_gaussian, discrete_laplace, load_compiled
from discreet.noise.law import Bounds, DiscreteGaussian, DiscreteLaplace
from discreet.noise.measure import Counts, measure
from discreet.noise.select import (
    LARGEST_BOUND,
    PIECES_PER_WORD,
    Chance,
    select_each,
    shuffle,
    uniform_below,
)
from discreet.noise.self_test import (
    NOISE_ANSWERS,
    KnownAnswer,
    WrongAnswer,
    check_answers,
    known_words,
)
from discreet.noise.sparse import select_sparse
from discreet.noise.tape import Mode, Randomness, Words, key_of, system, trial

__all__ = [
    "LARGEST_BOUND",
    "NOISE_ANSWERS",
    "PIECES_PER_WORD",
    "Bounds",
    "Chance",
    "Counts",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "KnownAnswer",
    "Mode",
    "Randomness",
    "Words",
    "WrongAnswer",
    "binomial",
    "check_answers",
    "discrete_gaussian",
    "discrete_laplace",
    "key_of",
    "known_words",
    "load_compiled",
    "measure",
    "select_each",
    "select_sparse",
    "shuffle",
    "system",
    "trial",
    "uniform_below",
]
