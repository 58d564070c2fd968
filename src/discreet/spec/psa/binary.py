"""The loss when the holding (or the swapping) variable has two categories. Ours, proved here.

Let the margin be r1 <= r2, n = r1 + r2, and let the other variable be so fine that all its
values differ. A table is then the set A of the r1 records in the first category. The
chance of going from A to B depends only on m, the size of their intersection: it is
proportional to

    phi(m) = sum over f1, f2 of C(m,f1) E(r1-f1, m-f1) C(m',f2) E(r2-f2, m'-f2) w_(n-f1-f2)

with m' = m + r2 - r1 and E(n,k) the number of permutations of n things that move each of k
given ones: f1 and f2 of the records that may stay do stay. Tables at distance 2d have
intersections with B that differ by at most d, so the loss is max over m of
|ln phi(m+1)/phi(m)| / 2. Merging values of the other variable never raises a loss (see
`coarsened_loss`), so this is an upper bound for every other variable; it is attained whenever
some of its categories hold exactly r1 (or r2) records together, because then B is one
published table.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from math import comb, exp, factorial, inf, lcm, log
from typing import TYPE_CHECKING, Any

from discreet.errors import BadInput
from discreet.spec.psa.amount import INFINITE, ZERO, LogAmount, log_fraction, size_of_log
from discreet.spec.psa.law import check_rate, derangement_numbers, permutation_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[Any]

#: How many records `binary_loss` and `exact_binary_loss` take. The work grows with n^3.
MOST_RECORDS = 4_000
MOST_RECORDS_EXACT = 200

#: `binary_loss` is within this of the exact number: every term is positive, so nothing
#: cancels. With 4000 records and odds between e^-30 and e^30 each logarithm is below 1.5e5
#: and a dozen of them are rounded (1.5e-11 each); the recursion for E adds a relative error
#: below 1e-12.
ERROR = 1e-9
MOST_LOG_ODDS = 30.0


def binary_loss(margin: tuple[int, int], rate: Fraction) -> float:
    """Return the loss for a binary margin and an arbitrarily fine other variable, within `ERROR`.

    >>> round(binary_loss((50, 50), Fraction(1, 2)), 6)
    1.089666
    """
    small, large = _checked(margin, rate, MOST_RECORDS)
    if small == 0:
        return 0.0
    if rate == 0:
        return inf
    if rate < 1 and abs(log_fraction(rate / (1 - rate))) > MOST_LOG_ODDS:
        raise BadInput(f"swap rate {rate}: too close to 0 or 1 for this formula in floats")
    logs = list(_log_phi(small, large, rate))
    if -inf in logs:
        return inf
    return max(abs(one - two) for one, two in pairwise(logs)) / 2


def exact_binary_loss(margin: tuple[int, int], rate: Fraction) -> LogAmount:
    """Return the same loss as the logarithm of a rational, for fewer records.

    >>> str(exact_binary_loss((2, 2), Fraction(1, 2)))
    'ln(19/4)/2'
    """
    small, large = _checked(margin, rate, MOST_RECORDS_EXACT)
    if small == 0:
        return ZERO
    weights = permutation_weights(small + large, rate)
    scale = lcm(*(weight.denominator for weight in weights))
    whole = [int(weight * scale) for weight in weights]
    values = [_phi(gap, small, large, whole) for gap in range(small + 1)]
    if not all(values):
        return INFINITE
    steps = [(abs(log(one) - log(two)), one, two) for one, two in pairwise(values)]
    close = max(step for step, _, _ in steps) - ERROR  # only these need fractions
    return max(size_of_log(Fraction(one, two), 2) for step, one, two in steps if step >= close)


def _checked(margin: tuple[int, int], rate: Fraction, most: int) -> tuple[int, int]:
    check_rate(rate)
    small, large = sorted(margin)
    if small < 0:
        raise BadInput("margin: two counts are needed, not negative")
    if small + large > most:
        raise BadInput(
            f"the formula for a binary variable takes at most {most:,} records. Use the bounds."
        )
    return small, large


def _phi(gap: int, small: int, large: int, weights: list[int]) -> int:
    """Return phi(r1 - gap) in whole weights. Of both categories `gap` records must leave."""

    def stay(size: int) -> list[int]:
        free = size - gap
        numbers = derangement_numbers(size)
        for _ in range(gap):  # E(n+1, k) = E(n+1, k+1) + E(n, k)
            numbers = [one + two for one, two in pairwise(numbers)]
        return [comb(free, f) * numbers[free - f] for f in range(free + 1)]

    ways = [0] * (small + large + 1)
    other = stay(large)
    for f, one in enumerate(stay(small)):
        for g, two in enumerate(other):
            ways[f + g] += one * two
    n = small + large
    return sum(weights[n - t] * way for t, way in enumerate(ways))


def _log_phi(small: int, large: int, rate: Fraction) -> Iterator[float]:
    """Yield ln phi(m), up to a constant, for m = r1, r1 - 1, ..., 0."""
    import numpy as np

    n = small + large
    factorials = np.array([log(factorial(k)) for k in range(n + 1)])
    pairs = np.lib.stride_tricks.sliding_window_view(_log_weights(n, rate), large + 1)
    # share[k]: the part of the (k + gap)! permutations that move k given things.
    share = np.array([number / factorial(k) for k, number in enumerate(derangement_numbers(22))])
    share = np.concatenate([share, np.full(max(0, large - 22), exp(-1))])[: large + 1]
    for gap in range(small + 1):
        if gap:  # E(n+1, k) = E(n+1, k+1) + E(n, k), each divided by (n+1)!
            share = share[1:] + share[:-1] / np.arange(gap, len(share) - 1 + gap)
        one = _log_stay(small, gap, share, factorials)
        two = _log_stay(large, gap, share, factorials)
        terms = one[:, None] + two[None, :] + pairs[: len(one), : len(two)]
        peak = float(terms.max())
        yield peak if peak == -inf else peak + log(float(np.exp(terms - peak).sum()))


def _log_weights(n: int, rate: Fraction) -> Floats:
    """Return ln w_(n-t), up to a constant, for t = 0..n records that stay."""
    import numpy as np

    logs = np.full(n + 1, -inf)
    numbers = derangement_numbers(n)
    if rate == 1:
        logs[0] = 0.0
        return logs
    odds = log_fraction(rate / (1 - rate))
    for k, number in enumerate(numbers):
        if number:
            logs[n - k] = k * odds - log(number)
    return logs


def _log_stay(size: int, gap: int, share: Floats, factorials: Floats) -> Floats:
    """Return ln [C(m,f) E(size-f, m-f)] for f = 0..m, with m = size - gap."""
    import numpy as np

    m = size - gap
    f = np.arange(m + 1)
    choices = factorials[m] - factorials[f] - factorials[m - f]
    with np.errstate(divide="ignore"):  # nobody can be moved alone: ln 0
        logs: Floats = choices + factorials[size - f] + np.log(share[m - f])
    return logs
