"""Estimates of counts from noisy counts: a normal law cut off at zero.

The model of Sexton et al. (2024) for the S-DHC: Z = Y + e with e ~ N(0, D), and a flat prior
on Y >= 0. So Y given Z is N(Z, D) cut off at 0, whose mean and quantiles have closed forms:
nothing is sampled. The discrete Gaussian is taken as a continuous one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.compiled import compiled
from discreet.errors import BadInput
from discreet.products.sdhc.estimates.normal import Floats, excess_mean, excess_quantile
from discreet.products.sdhc.estimates.sums import sum_quantiles

#: Part of the posterior in each tail of an interval: 90 percent lie inside.
TAIL = 0.05

#: Counts and variances beyond this are no counts, and would leave the range of the floats.
LARGEST = 1e15


@dataclass(frozen=True)
class Estimate:
    """Estimates with the two ends of their intervals; never negative, never infinite."""

    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def posterior(count: ArrayLike, variance: ArrayLike, tail: float = TAIL) -> Estimate:
    """Return mean and the `tail` and 1 - `tail` quantiles of Y given Z, not rounded.

    >>> found = posterior([-500.0, 0.0, 1e6], [100.0, 100.0, 100.0])
    >>> [round(float(value), 3) for value in found.value]
    [0.2, 7.979, 1000000.0]
    """
    z, d = checked(count, variance)
    if not 0 < tail < 0.5:
        raise BadInput("the part in a tail must lie between 0 and 0.5.")
    mean, low, high = _posterior(z.ravel(), np.sqrt(d).ravel(), tail)
    return Estimate(mean.reshape(z.shape), low.reshape(z.shape), high.reshape(z.shape))


def estimate_cells(count: ArrayLike, variance: ArrayLike, tail: float = TAIL) -> Estimate:
    """Return whole-number estimates of cells, with intervals rounded outwards.

    The estimate is the posterior mean, rounded to the nearest number, half to even.
    """
    exact = posterior(count, variance, tail)
    return Estimate(np.rint(exact.value), np.floor(exact.low), np.ceil(exact.high))


def estimate_sums(
    count: ArrayLike, variance: ArrayLike, members: Sequence[Sequence[int]], tail: float = TAIL
) -> Estimate:
    """Return whole-number estimates of sums of cells, one column per sum.

    `count` and `variance` have a row per area and a column per cell; `members` lists the
    columns of each sum. The estimate is the sum of the rounded estimates of its cells, so
    that published tables add up. The interval comes from the law of the sum, rounded
    outwards; where rounding the cells carried their sum out of it (noise of less than about
    one), it is widened to hold the sum.

    Where cells are small beside their noise the estimate of a sum is biased upwards, by up to
    about 0.9 sigma for each cell, and its interval may never hold the truth (see
    `coverage_of_sums`): take the noisy sum there, whose variance is the sum of the variances.
    """
    z, d = checked(count, variance)
    cells = estimate_cells(z, d, tail).value
    value = np.stack([cells[:, list(columns)].sum(axis=1) for columns in members], axis=1)
    low, high = np.empty_like(value), np.empty_like(value)
    for place, columns in enumerate(members):
        chosen = list(columns)
        ends = sum_quantiles(z[:, chosen], d[:, chosen], (tail, 1 - tail))
        low[:, place], high[:, place] = np.floor(ends[:, 0]), np.ceil(ends[:, 1])
    return Estimate(value, np.minimum(low, value), np.maximum(high, value))


def checked(count: ArrayLike, variance: ArrayLike) -> tuple[Floats, Floats]:
    """Return counts and variances as arrays of one shape; refuse what the model cannot mean."""
    z, d = np.broadcast_arrays(
        np.asarray(count, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    )
    if not (np.all(np.abs(z) <= LARGEST) and np.all((d > 0) & (d <= LARGEST**2))):
        raise BadInput(
            f"noisy counts must lie within {LARGEST:g} of 0 and their variances be positive. "
            f"Check the released table."
        )
    return np.ascontiguousarray(z), np.ascontiguousarray(d)


@compiled
def _posterior(z: Floats, sigma: Floats, tail: float) -> tuple[Floats, Floats, Floats]:
    mean, low, high = np.empty(z.size), np.empty(z.size), np.empty(z.size)
    for i in range(z.size):
        # Y = sigma (X - a) given X > a: a difference of its own, so nothing cancels for Z << 0.
        a = -z[i] / sigma[i]
        mean[i] = sigma[i] * excess_mean(a)
        low[i] = sigma[i] * excess_quantile(a, tail)
        high[i] = sigma[i] * excess_quantile(a, 1.0 - tail)
    return mean, low, high
