"""What swapping does to a table on average, and how to undo it without bias.

Ours, proved here. By symmetry a moved record receives the swapping value of a uniformly
random other record of its stratum, whatever their number; hence all follows from pi, the
probability that a given record is moved.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, expm1, log1p

from discreet.errors import BadInput
from discreet.spec.psa.bounds import check
from discreet.spec.psa.law import Table, margins

Expected = tuple[tuple[Fraction, ...], ...]


def moved_probability(n: int, p: Fraction) -> float:
    """Return the probability pi that a given record of a stratum of n is moved.

    pi = p (1 - (1-p)^(n-1)) / (1 - n p (1-p)^(n-1)): selected together with another record,
    given that the selection is not repeated. The formula printed by Bailie, Gong and Meng
    lacks the denominator.

    >>> moved_probability(2, Fraction(1, 2))
    0.5
    """
    if n < 2:
        return 0.0
    check(n, p)
    if p == 1:
        return 1.0
    rate = float(p)
    log_alone = (n - 1) * log1p(-rate)
    return rate * -expm1(log_alone) / (1 - n * rate * exp(log_alone))


def expected_table(x: Table, p: Fraction) -> Expected:
    """Return the mean of the swapped table: (1-pi) x[h][s] + pi (r_h c_s - x[h][s]) / (n-1)."""
    pi, n, rows, columns = _moved(x, p)
    return tuple(
        tuple((1 - pi) * a + pi * (r * c - a) / (n - 1) for a, c in zip(row, columns, strict=True))
        for row, r in zip(x, rows, strict=True)
    )


def unswapped(z: Table, p: Fraction) -> Expected:
    """Return an unbiased estimate of the table before swapping, from a swapped one.

    (z[h][s] - pi r_h c_s / (n-1)) / (1 - pi n/(n-1)). It uses public figures only. There is
    none where pi = (n-1)/n: there the output is as if all had been shuffled.
    """
    pi, n, rows, columns = _moved(z, p)
    kept = 1 - pi * n / (n - 1)
    if kept == 0:
        raise BadInput("at this rate and size the swapped table has the same mean for all inputs")
    return tuple(
        tuple((a - pi * r * c / (n - 1)) / kept for a, c in zip(row, columns, strict=True))
        for row, r in zip(z, rows, strict=True)
    )


def _moved(x: Table, p: Fraction) -> tuple[Fraction, int, list[int], list[int]]:
    rows, columns = margins(x)
    n = sum(rows)
    if n < 2:
        raise BadInput("a stratum of fewer than two records is not swapped")
    check(n, p)
    alone = (1 - p) ** (n - 1)
    # At p = 0 nothing moves, also in a stratum of two, where 1 - n p (1-p)^(n-1) is 1.
    return p * (1 - alone) / (1 - n * p * alone), n, rows, columns
