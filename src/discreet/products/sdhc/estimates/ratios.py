"""Estimates of averages: persons per household or family, given all that counts must obey.

The model of Sexton et al. (2024): noisy counts are normal around the counts, and the prior
is flat on the counts that are possible. With households d and persons n,

    d >= 1,   m d <= n <= kappa d,   no count negative,

where m persons are in a household at least (2 in a family) and kappa at most, the
truncation threshold. PH1 and PH5 know persons under 18 and 18 and over (three counts), PH8
persons only (two). Nothing is sampled: averages are directions, whose posterior weight has
a closed form (`lines`), so that two counts need one integral and three counts two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import BadInput
from discreet.products.sdhc.estimates.average import laws
from discreet.products.sdhc.estimates.counts import TAIL, checked
from discreet.products.sdhc.estimates.normal import Floats
from discreet.products.sdhc.estimates.windows import ALL, FIRST, ONLY

#: Standard deviations from all that is possible that noise never reaches.
BEYOND = 1e6


@dataclass(frozen=True)
class Averages:
    """Posterior means of averages with intervals, and of their numerator and denominator.

    The last axis is the cell: all ages, under 18, 18 and over; of PH8 there is one only.
    """

    value: Floats
    low: Floats
    high: Floats
    numerator: Floats
    denominator: Floats


def check_limits(least: float, most: float) -> None:
    """Refuse limits between which no average can lie."""
    if not 0 < least < most < math.inf:
        raise BadInput(
            "averages need a truncation threshold above the least number of persons in a "
            "household (1, in a family 2). Raise the threshold, or leave averages out."
        )


def averages_by_age(
    persons: ArrayLike,
    persons_variance: ArrayLike,
    households: ArrayLike,
    households_variance: ArrayLike,
    least: Literal[1, 2],
    most: float,
    tail: float = TAIL,
) -> Averages:
    """Return persons per household, in all, under 18, and 18 and over (PH1, PH5).

    `persons` has two columns: under 18, and 18 and over. The mean of all ages is the sum of
    the other two, since the three come from one posterior law; intervals do not add.
    """
    check_limits(least, most)
    z, d = checked(persons, persons_variance)
    y, e = checked(households, households_variance)
    if z.ndim != 2 or z.shape[1] != 2 or y.shape != z.shape[:1]:
        raise BadInput("give two columns of persons, and one number of households for each row.")
    sigma, tau = _noise(z, d, y, e, least, most)
    parts = [
        _of_all(z, sigma, y, tau, least, most),
        *(_of_one(z[:, ways], sigma[:, ways], y, tau, least, most) for ways in ([0, 1], [1, 0])),
    ]
    return _told(parts, (least, 0.0, 0.0), least, most, tail)


def averages(
    persons: ArrayLike,
    persons_variance: ArrayLike,
    households: ArrayLike,
    households_variance: ArrayLike,
    least: Literal[1, 2],
    most: float,
    tail: float = TAIL,
) -> Averages:
    """Return persons per household where only their number is known (PH8)."""
    check_limits(least, most)
    z, d = checked(persons, persons_variance)
    y, e = checked(households, households_variance)
    if z.shape != y.shape:
        raise BadInput("give as many numbers of persons as of households.")
    flat, counted = z.ravel(), y.ravel()
    sigma, tau = _noise(flat[:, None], d.reshape(-1, 1), counted, e.ravel(), least, most)
    part = _alone(flat, sigma[:, 0], counted, tau)
    found = _told([part], (least,), least, most, tail)
    parts = (found.value, found.low, found.high, found.numerator, found.denominator)
    return Averages(*(numbers.reshape(z.shape) for numbers in parts))


def _noise(
    z: Floats, d: Floats, y: Floats, e: Floats, least: float, most: float
) -> tuple[Floats, Floats]:
    """Return the standard deviations of persons and households.

    Numbers more than `BEYOND` standard deviations from all that is possible do not come from
    such noise. It is then taken as larger, so that the floats can still tell directions; in
    the limit the estimate is the possible one nearest to the numbers, as it should be.
    """
    sigma, tau = np.sqrt(d), np.sqrt(e)
    both, spread = z.sum(axis=1), np.sqrt(d.sum(axis=1))
    outside = np.stack(
        [
            *(-z / sigma).T,
            (1 - y) / tau,
            (least * y - both) / np.hypot(spread, least * tau),
            (both - most * y) / np.hypot(spread, most * tau),
        ]
    ).max(axis=0)
    more = np.maximum(outside / BEYOND, 1.0)
    return sigma * more[:, None], tau * more


# -- which law it is ------------------------------------------------------------------------------

#: The kind of law of every row, with counts and standard deviations, households first.
Rows = tuple[NDArray[np.int64], Floats, Floats]

#: Standard deviations after which a normal law has ended: limits that are farther change
#: nothing, and without them one integral is enough.
FREE = 8.0


def _alone(z: Floats, sigma: Floats, y: Floats, tau: Floats) -> Rows:
    """Return laws in which persons are counted as one, or the others are left out."""
    zero, one = np.zeros_like(z), np.ones_like(z)
    kind = np.full(z.size, ONLY, dtype=np.int64)
    return kind, np.stack([y, z, zero], axis=1), np.stack([tau, sigma, one], axis=1)


def _either(free: NDArray[np.bool_], kind: int, simple: Rows, full: tuple[Floats, Floats]) -> Rows:
    """Return the simple law where limits are far, and the full one of a kind elsewhere."""
    chosen = free[:, None]
    counts, noise = (np.where(chosen, simple[k + 1], full[k]) for k in range(2))
    return np.where(free, ONLY, kind), counts, noise


def _of_all(z: Floats, sigma: Floats, y: Floats, tau: Floats, least: float, most: float) -> Rows:
    both, spread = z.sum(axis=1), np.hypot(sigma[:, 0], sigma[:, 1])
    free = (least * y <= both) & (both <= most * y) & np.all(z > FREE * sigma, axis=1)
    full = np.column_stack([y, z]), np.column_stack([tau, sigma])
    return _either(free, ALL, _alone(both, spread, y, tau), full)


def _of_one(z: Floats, sigma: Floats, y: Floats, tau: Floats, least: float, most: float) -> Rows:
    both, spread = z.sum(axis=1), np.hypot(sigma[:, 0], sigma[:, 1])
    free = both - least * y > FREE * np.hypot(spread, least * tau)
    free &= most * y - both > FREE * np.hypot(spread, most * tau)
    free &= z[:, 1] > FREE * sigma[:, 1]
    full = np.column_stack([y, z]), np.column_stack([tau, sigma])
    return _either(free, FIRST, _alone(z[:, 0], sigma[:, 0], y, tau), full)


def _told(
    parts: Sequence[Rows], low: Sequence[float], least: float, most: float, tail: float
) -> Averages:
    """Return the averages of some laws, one column for each."""
    rows = len(parts[0][0])
    kind, z, s = (np.concatenate([part[k] for part in parts]) for k in range(3))
    start = np.repeat(np.array(low, dtype=np.float64), rows)
    found = laws(kind.astype(np.int64), z, s, start, float(least), float(most), tail)
    columns = found.reshape(len(parts), rows, 5).transpose(2, 1, 0)
    return Averages(*(np.ascontiguousarray(column) for column in columns))
