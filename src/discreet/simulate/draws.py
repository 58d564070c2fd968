"""Small draws that several kernels share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.compiled import compiled, compiled_within
from discreet.simulate.records import Record

Floats = npt.NDArray[np.float64]
Generator = np.random.Generator


@compiled
def pick(shares: Floats, u: float) -> int:
    """Return the first place whose cumulative share exceeds `u`."""
    i = 0
    while i < shares.size - 1 and u >= shares[i]:
        i += 1
    return i


@compiled_within
def is_hispanic(rng: Generator, t: Record, race: int, shift: float) -> int:
    """Return 1 for a Hispanic person of a race (0 to 6), given the area's shift."""
    return int(rng.random() < 1.0 / (1.0 + np.exp(-t.hispanic_logit[race] - shift)))


@compiled_within
def draw_size(rng: Generator, t: Record, race: int) -> int:
    """Return the number of persons of a household by race of its householder."""
    size = 1 + pick(t.sizes[race], rng.random())
    if size == 7:
        while size < t.size_most and rng.random() < t.size_tail:
            size += 1
    return size


@compiled_within
def race_code(rng: Generator, t: Record, race: int, hispanic: int) -> int:
    """Return a code 0 to 62 for a race 0 to 6 (6: two or more)."""
    if race < 6:
        return race
    return pick(t.two_or_more[hispanic], rng.random())


@compiled_within
def draw_origin(rng: Generator, t: Record, code: int) -> int:
    """Return a combination of detailed groups for a race code."""
    first, last = t.origin_first[code], t.origin_first[code + 1]
    u = rng.random()
    while first < last - 1 and u >= t.origin_share[first]:
        first += 1
    return int(first)
