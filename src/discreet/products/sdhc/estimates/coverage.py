"""How often intervals of counts hold the truth, for a given truth.

A 90 percent interval of the model holds 90 percent of the truths that its prior would draw.
For one given truth it may hold more or less often: both ends rise with the noisy count, so
the noisy counts that lead to a success form one interval, and its probability is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from discreet.compiled import compiled
from discreet.products.sdhc.estimates.counts import TAIL, checked
from discreet.products.sdhc.estimates.normal import Floats, excess_quantile, upper_tail

#: Beyond so many standard deviations there is no noise.
REACH = 40.0


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
