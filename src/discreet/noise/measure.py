"""Where counts and noise meet: the one way in which a mechanism adds noise to counts.

Whatever is confidential and published with noise goes through here, so tests can see the
counts, the law and the name of every number that is drawn.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadInput
from discreet.noise.draw import Integers, Parameters, discrete_gaussian, discrete_laplace
from discreet.noise.law import DiscreteGaussian, DiscreteLaplace
from discreet.noise.tape import Randomness

#: Counts: an array, or what adds them in place to an array, where most of them are 0.
Counts = NDArray[np.integer] | Callable[[Integers], None]


def measure(
    rng: Randomness,
    law: type[DiscreteGaussian] | type[DiscreteLaplace],
    purpose: str,
    key: int,
    parameter: Parameters,
    counts: Counts,
    size: int | None = None,
    *,
    start: int = 0,
    at: Integers | None = None,
) -> Integers:
    """Return counts plus independent noise, one draw for each of them.

    Parameters
    ----------
    counts
        As many numbers as are drawn, or a function that adds so many to the noise it is given.
    purpose, key, parameter, size, start, at
        As those of `discrete_gaussian`; of Laplace noise only arrays without `at` are drawn.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from discreet.noise import trial
    >>> measure(trial(1), DiscreteGaussian, "example", 0, Fraction(100), np.array([50, 60, 70]), 3)
    array([49, 60, 75])
    """
    if law is DiscreteGaussian:
        values = discrete_gaussian(rng, purpose, key, parameter, size, start=start, at=at)
    elif at is None:
        values = discrete_laplace(rng, purpose, key, parameter, size, start=start)
    else:
        raise BadInput("at: Laplace noise is drawn for whole arrays only")
    if callable(counts):
        counts(values)
    elif counts.shape != values.shape:
        raise BadInput("counts: there must be one for every draw")
    else:
        values += counts
    return values
