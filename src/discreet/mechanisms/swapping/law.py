"""The exact law of the Permutation Swapping Algorithm in one stratum, as fractions.

A stratum is a table x[h][s] of records by holding and swapping category. The
algorithm keeps its margins; the *universe* of x is all tables with these margins.

The law of the permutation is that of Bailie, Gong and Meng (appendix on the
proof of Theorem 1). The law of the table is ours: derived by inclusion and
exclusion, and checked against enumeration of all permutations, and of all
selections and derangements, in the tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import comb, factorial, inf, log, prod

from discreet.errors import BadInput

Table = tuple[tuple[int, ...], ...]


def derangement_numbers(n: int) -> list[int]:
    """Return how many permutations of 0, 1, ..., n records leave no record in place.

    >>> derangement_numbers(6)
    [1, 0, 1, 2, 9, 44, 265]
    """
    numbers = [1]
    for k in range(1, n + 1):
        numbers.append(k * numbers[-1] + (-1) ** k)
    return numbers


def permutation_weights(n: int, p: Fraction) -> list[Fraction]:
    """Return the probability of one given permutation of n records that moves k, for k = 0..n.

    w_k = p^k (1-p)^(n-k) / (Z d(k)) with Z = 1 - n p (1-p)^(n-1), the chance that
    a selection is not repeated, and d the derangement numbers (Bailie, Gong and
    Meng). No permutation moves exactly one record: w_1 is 0.

    >>> [str(w) for w in permutation_weights(3, Fraction(1, 4))]
    ['27/37', '0', '3/37', '1/74']
    """
    if not 0 <= p <= 1:
        raise BadInput(f"swap rate {p}: must lie between 0 and 1")
    if n < 2:  # too small to swap: the identity is certain
        return [Fraction(1), Fraction(0)][: n + 1]
    kept = 1 - n * p * (1 - p) ** (n - 1)
    numbers = derangement_numbers(n)
    return [
        p**k * (1 - p) ** (n - k) / (kept * numbers[k]) if k != 1 else Fraction(0)
        for k in range(n + 1)
    ]


def tables_with_margins(rows: Sequence[int], columns: Sequence[int]) -> list[Table]:
    """Return every table of counts with these row and column sums: a universe.

    >>> tables_with_margins([1, 1], [1, 1])
    [((0, 1), (1, 0)), ((1, 0), (0, 1))]
    """
    if sum(rows) != sum(columns) or min(*rows, *columns, 0) < 0:
        raise BadInput("margins: rows and columns must be counts with the same total")
    return list(_tables(tuple(rows), tuple(columns)))


def _tables(rows: tuple[int, ...], columns: tuple[int, ...]) -> Iterator[Table]:
    if not rows:
        yield ()
        return
    for row in product(*(range(min(rows[0], most) + 1) for most in columns)):
        if sum(row) == rows[0]:
            left = tuple(c - r for c, r in zip(columns, row, strict=True))
            for below in _tables(rows[1:], left):
                yield (row, *below)


def moving_counts(x: Table, z: Table) -> list[int]:
    """Return how many permutations lead from x to z moving exactly k records, for k = 0..n.

    Ours. S_j counts pairs of a permutation leading to z and j records it leaves in
    place: choose f[h][s] of the x[h][s] records to stay, and spread the others so
    that z - f arises. Inclusion and exclusion over j leaves exactly n - k in place.

    >>> moving_counts(((2, 0), (0, 2)), ((1, 1), (1, 1)))
    [0, 0, 4, 8, 4]
    """
    n = sum(map(sum, x))
    staying = [0] * (n + 1)
    for f in product(*(range(min(a, b) + 1) for a, b in zip(_flat(x), _flat(z), strict=True))):
        staying[sum(f)] += _arrangements(x, z, f)
    return [
        sum((-1) ** (j - e) * comb(j, e) * staying[j] for j in range(e, n + 1))
        for e in range(n, -1, -1)
    ]


def _arrangements(x: Table, z: Table, f: tuple[int, ...]) -> int:
    """Count the permutations from x to z together with f chosen records that stay."""
    width = len(x[0])
    rows = [sum(row) - sum(f[h * width : (h + 1) * width]) for h, row in enumerate(x)]
    columns = [sum(column) - sum(f[s::width]) for s, column in enumerate(zip(*x, strict=True))]
    chosen = prod(comb(a, b) for a, b in zip(_flat(x), f, strict=True))
    spread = prod(map(factorial, rows)) * prod(map(factorial, columns))
    return chosen * spread // prod(factorial(a - b) for a, b in zip(_flat(z), f, strict=True))


def table_law(x: Table, p: Fraction) -> dict[Table, Fraction]:
    """Return the probability of every table of the universe of x after swapping x at rate p.

    P(z|x) = sum_k w_k N_k(x, z). Polynomial in the number of records for a table of
    fixed shape.

    >>> law = table_law(((2, 0), (0, 2)), Fraction(1, 2))
    >>> [str(law[z]) for z in sorted(law)]
    ['1/27', '19/27', '7/27']
    """
    weights = permutation_weights(sum(map(sum, x)), p)
    universe = tables_with_margins([sum(row) for row in x], [sum(c) for c in zip(*x, strict=True)])
    return {
        z: sum((w * n for w, n in zip(weights, moving_counts(x, z), strict=True)), Fraction(0))
        for z in universe
    }


def exact_loss(rows: Sequence[int], columns: Sequence[int], p: Fraction) -> float:
    """Return the loss of one stratum with these margins under pure differential privacy.

    The smallest epsilon with P(z|x) <= e^(epsilon d(x, x')) P(z|x') for all tables
    x, x', z of the universe; d is half the sum of absolute differences, the number
    of records to change. Infinite if some table can be reached from one but not the other.
    """
    universe = tables_with_margins(rows, columns)
    logs = {x: [_log(chance) for chance in table_law(x, p).values()] for x in universe}
    losses = (
        _widest(logs[x], logs[other]) / _records_changed(x, other)
        for x, other in combinations(universe, 2)
    )
    return max(losses, default=0.0)


def _widest(one: list[float], other: list[float]) -> float:
    """Return the largest absolute difference of two lists of logarithms; -inf equals -inf."""
    return max(abs(a - b) if a != b else 0.0 for a, b in zip(one, other, strict=True))


def _log(chance: Fraction) -> float:
    return log_fraction(chance) if chance else -inf


def _records_changed(x: Table, other: Table) -> int:
    return sum(abs(a - b) for a, b in zip(_flat(x), _flat(other), strict=True)) // 2


def log_fraction(value: Fraction) -> float:
    """Return the natural logarithm of a positive fraction of any size."""
    return log(value.numerator) - log(value.denominator)


def _flat(table: Table) -> list[int]:
    return [count for row in table for count in row]
