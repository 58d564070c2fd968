"""Tests of noise against exact probabilities, for right samplers and for planted bugs alike.

Each test raises a false alarm on a right sampler with probability about ALPHA, for a
fresh seed (normal and chi-square limits; cells with few expected draws are joined). A
battery has about ten of them, the whole suite some hundred batteries: less than one
false alarm in ten thousand suites. The suites use fixed seeds, so they do not flicker.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from noise.oracle import Law, probabilities

Integers = NDArray[np.int64]

ALPHA = 1e-7
NORMAL_LIMIT = 5.33  # P(|Z| > 5.33) is about 1e-7
LAGS = [1, 2, 3, 4, 5, 8, 64]


def complaints(draws: Integers, law: Law) -> list[str]:
    """Return the names of the tests that the draws fail."""
    mass = np.array([float(p) for p in probabilities(law)])
    x = np.arange(mass.size, dtype=float)
    counts = np.bincount(np.abs(draws), minlength=mass.size)
    found = []
    if counts.size > mass.size:
        found.append("impossible value")  # beyond what 110 decimals can hold
        counts = counts[: mass.size]
    both = np.where(x > 0, 2, 1) * mass  # P(|X| = x)
    tail = tail_start(both, draws.size)
    second, fourth = (both * x**2).sum(), (both * x**4).sum()
    scores = {
        "variance": (square(draws).mean() - second) / sqrt((fourth - second**2) / draws.size),
        "mean": draws.mean() / sqrt(second / draws.size),
        "signs": signed(int((draws > 0).sum()), int((draws < 0).sum())),
        "zeros": proportion(int(counts[0]), draws.size, both[0]),
        "tail": proportion(int(counts[tail:].sum()), draws.size, both[tail:].sum()),
    }
    found += [test for test, score in scores.items() if abs(score) > NORMAL_LIMIT]
    if chi_square(counts, both * draws.size) > 1:
        found.append("cells")
    first = draws[:400_000]
    return found + [f"lag {lag}" for lag in LAGS if dependence(first[:-lag], first[lag:]) > 1]


def square(draws: Integers) -> NDArray[np.float64]:
    return draws.astype(float) ** 2


def tail_start(both: NDArray[np.float64], size: int) -> int:
    """Return the largest value beyond which at least 100 draws are expected."""
    beyond = both[::-1].cumsum()[::-1] * size
    return max(1, int((beyond >= 100).sum()) - 1)


def proportion(count: int, size: int, p: float) -> float:
    return (count - size * p) / sqrt(size * p * (1 - p))


def signed(positive: int, negative: int) -> float:
    return (positive - negative) / sqrt(max(1, positive + negative))


def chi_square(counts: Integers, expected: NDArray[np.float64]) -> float:
    """Return the statistic over its limit; from the first cell below 20 on, one cell is made."""
    few = np.flatnonzero(expected < 20)
    last = int(few[0]) if few.size else expected.size
    seen = np.append(counts[:last], counts[last:].sum()).astype(float)
    wanted = np.append(expected[:last], max(expected[last:].sum(), 1e-300))
    if wanted[-1] < 20 and wanted.size > 2:
        seen = np.append(seen[:-2], seen[-2:].sum())
        wanted = np.append(wanted[:-2], wanted[-2:].sum())
    return float(((seen - wanted) ** 2 / wanted).sum()) / chi_square_limit(wanted.size - 1)


def chi_square_limit(degrees: int) -> float:
    """Return the limit of Laurent and Massart (2000), Lemma 1: exceeded with less than ALPHA."""
    t = log(1 / ALPHA)
    return degrees + 2 * sqrt(degrees * t) + 2 * t


def dependence(first: Integers, second: Integers) -> float:
    """Return chi-square over its limit, of the table of signs and sizes of two arrays."""
    a, b = classes(first), classes(second)
    table = np.bincount(4 * a + b, minlength=16).reshape(4, 4).astype(float)
    wanted = np.outer(table.sum(axis=1), table.sum(axis=0)) / first.size
    used = wanted >= 20
    statistic = ((table - wanted)[used] ** 2 / wanted[used]).sum()
    return float(statistic) / chi_square_limit(9)


def classes(draws: Integers) -> Integers:
    """Return 0 to 3: negative, 0, positive, with odd values apart from even ones above 0."""
    return np.where(draws < 0, 0, np.where(draws == 0, 1, 2 + (draws & 1)))


def shared(first: Integers, second: Integers) -> bool:
    """Return whether two arrays are correlated at any shift of one against the other.

    All shifts at once by Fourier transform. At a right sampler each score is standard
    normal, so the largest of 2 n of them passes the limit with probability below ALPHA.
    """
    size = first.size + second.size
    a = np.fft.rfft(first - first.mean(), size)
    b = np.fft.rfft(second - second.mean(), size)
    scores = np.fft.irfft(a * np.conj(b), size)
    scale = first.std() * second.std() * sqrt(min(first.size, second.size))
    return bool(np.abs(scores).max() / scale > sqrt(2 * log(2 * size / ALPHA)))
