"""How often intervals of counts and of their sums hold the truth, for a given truth.

A 90 percent interval of the model holds 90 percent of the truths that its prior would draw.
For one given truth it may hold more or less often. Of one count both ends rise with the
noisy count, so the noisy counts that lead to a success form one interval, and its
probability is exact. Of a sum the noise of all its cells matters, so it is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet.compiled import compiled
from discreet.errors import BadInput
from discreet.products.sdhc.estimates.counts import TAIL, checked, estimate_sums
from discreet.products.sdhc.estimates.normal import Floats, excess_quantile, upper_tail

#: Beyond so many standard deviations there is no noise.
REACH = 40.0

#: Draws for each sum: a share of intervals is then known to about 2 points.
DRAWS = 500


@dataclass(frozen=True)
class Sums:
    """What becomes of estimated sums of cells, for given truths.

    Attributes
    ----------
    held
        The part of intervals that hold the true sum.
    bias
        The mean estimate less the true sum.
    """

    held: Floats
    bias: Floats


def coverage(
    truth: ArrayLike, variance: ArrayLike, tail: float = TAIL, rounded: bool = True
) -> Floats:
    """Return the probability that the interval of a count holds the truth.

    Published ends are rounded outwards, which is what lets an interval hold 0: without
    rounding its lower end is always above.

    >>> coverage([0.0, 1000.0], 100.0, rounded=False).round(3).tolist()
    [0.0, 0.9]
    """
    y, d = checked(truth, variance)
    found = _coverage(y.ravel(), np.sqrt(d).ravel(), tail, 1.0 if rounded else 0.0)
    return np.asarray(found.reshape(y.shape))


def coverage_of_sums(
    truth: ArrayLike,
    variance: ArrayLike,
    tail: float = TAIL,
    draws: int = DRAWS,
    seed: int = 1,
) -> Sums:
    """Return how often intervals of sums hold the true sum, and the bias of the estimates.

    `truth` and `variance` have a row per sum and a column per cell, as in `estimate_sums`,
    which is called with noise drawn around the truth. The prior says of a cell that it is
    rarely smaller than its noise; where cells are, the estimates of all err upwards, and in
    a sum of k cells the bias grows like k while the interval grows like its root.

    >>> sixteen = np.outer([0.5, 5.0], np.ones(16)) * 100
    >>> found = coverage_of_sums(sixteen, 100.0**2)
    >>> [bool(share > 0.8) for share in found.held]
    [False, True]
    """
    y, d = checked(truth, variance)
    if y.ndim != 2 or not y.size or draws < 1:
        raise BadInput("give a row per sum and a column per cell, and at least one draw.")
    # The same noise for every row, so that differences between rows are those of the truths.
    noise = np.random.default_rng(seed).standard_normal((draws, y.shape[1]))
    held, bias = np.empty(len(y)), np.empty(len(y))
    for row, (cells, spread) in enumerate(zip(y, d, strict=True)):
        noisy, total = cells + np.sqrt(spread) * noise, cells.sum()
        found = estimate_sums(noisy, spread, [range(y.shape[1])], tail)
        value, low, high = (part[:, 0] for part in (found.value, found.low, found.high))
        held[row] = np.mean((low <= total) & (total <= high))
        # Noisy sums have the true one as their mean, and err together with the estimates.
        bias[row] = np.mean(value - noisy.sum(axis=1))
    return Sums(held, bias)


@compiled
def _coverage(truth: Floats, sigma: Floats, tail: float, slack: float) -> Floats:
    found = np.empty(truth.size)
    for i in range(truth.size):
        # floor(low) <= y means low < y + 1, and ceil(high) >= y means high > y - 1.
        at, room = truth[i] / sigma[i], slack / sigma[i]
        first = _noisy(at - room, 1.0 - tail) if at > room else -np.inf
        last = _noisy(at + room, tail)
        found[i] = max(upper_tail(first - at) - upper_tail(last - at), 0.0)
    return found


@compiled
def _noisy(end: float, p: float) -> float:
    """Return the noisy count whose p-quantile is `end`, all in units of the noise."""
    if end <= 0.0:
        return -np.inf
    low, high = end - REACH, end + REACH
    for _ in range(60):
        middle = 0.5 * (low + high)
        if excess_quantile(-middle, p) < end:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)
