"""The exact law of the Permutation Swapping Algorithm in one stratum, as fractions.

A stratum is a table x[h][s] of records by holding and swapping category. The
algorithm keeps its margins; the *universe* of x is all tables with these margins.

The law of the permutation is that of Bailie, Gong and Meng (appendix on the
proof of Theorem 1). The law of the table is ours (proved here): a count of permutations by
inclusion and exclusion, compared in the tests with enumeration of all permutations, and of
all selections and derangements. It holds for any law under which the probability
of a permutation depends only on how many records it moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial, lcm, prod

from discreet.errors import BadInput

#: A swap rate as it may be given: exact, so text such as "1/20" or "0.05" but no float.
Rate = Fraction | int | str

Table = tuple[tuple[int, ...], ...]
#: For each row of two tables: the columns occupied in both, with both counts.
Cells = tuple[tuple[tuple[int, int, int], ...], ...]

#: The largest universe that is enumerated.
MOST_TABLES = 1_000
#: The most products of integers spent on one law or loss: about fifteen seconds of a processor.
MOST_WORK = 40_000_000


class UniverseTooLarge(BadInput):
    """A universe has too many tables, or its law takes too long, to be enumerated."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Merge categories; for a variable with two categories use the formula "
            f"discreet.spec.psa.binary_loss in Python; or use the bounds (discreet spec psa)."
        )


def exact_rate(p: Rate) -> Fraction:
    """Return a swap rate as a fraction; refuses floats and numbers outside [0, 1].

    >>> exact_rate("1/20") == exact_rate("0.05")
    True
    """
    if isinstance(p, bool) or not isinstance(p, Fraction | int | str):
        raise BadInput("swap rate: must be exact, a Fraction or text such as '1/20' or '0.05'")
    try:
        rate = Fraction(p)
    except (ValueError, ZeroDivisionError):
        raise BadInput("swap rate: must be a number such as '1/20' or '0.05'") from None
    if not 0 <= rate <= 1:
        raise BadInput(f"swap rate {rate}: must lie between 0 and 1")
    return rate


def check_rate(p: Fraction) -> None:
    """Refuse a swap rate that is no fraction, or outside [0, 1]."""
    exact_rate(p)
    if isinstance(p, str):
        raise BadInput("swap rate: must be a Fraction here, not text")


def derangement_numbers(n: int) -> list[int]:
    """Return how many permutations of 0, 1, ..., n records leave no record in place.

    >>> derangement_numbers(6)
    [1, 0, 1, 2, 9, 44, 265]
    """
    numbers = [1]
    for k in range(1, n + 1):
        numbers.append(k * numbers[-1] + (-1) ** k)
    return numbers


def permutation_weights(n: int, p: Rate) -> list[Fraction]:
    """Return the probability of one given permutation of n records that moves k, for k = 0..n.

    w_k = p^k (1-p)^(n-k) / (Z d(k)) with Z = 1 - n p (1-p)^(n-1), the chance that
    a selection is not repeated, and d the derangement numbers (Bailie, Gong and
    Meng). No permutation moves exactly one record: w_1 is 0.

    >>> [str(w) for w in permutation_weights(3, Fraction(1, 4))]
    ['27/37', '0', '3/37', '1/74']
    """
    p = exact_rate(p)
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

    Refuses universes of more than `MOST_TABLES` tables.

    >>> tables_with_margins([1, 1], [1, 1])
    [((0, 1), (1, 0)), ((1, 0), (0, 1))]
    """
    if sum(rows) != sum(columns) or min(*rows, *columns, 0) < 0:
        raise BadInput("margins: rows and columns must be counts with the same total")
    universe: list[Table] = []
    for table in _tables(tuple(rows), tuple(columns)):
        universe.append(table)
        if len(universe) > MOST_TABLES:
            raise UniverseTooLarge(f"these margins admit more than {MOST_TABLES:,} tables")
    return universe


def margins(x: Table) -> tuple[list[int], list[int]]:
    """Return the row and column sums of a table."""
    return [sum(row) for row in x], [sum(column) for column in zip(*x, strict=True)]


def _tables(rows: tuple[int, ...], columns: tuple[int, ...]) -> Iterator[Table]:
    if not rows:
        yield ()
        return
    for row in _rows(rows[0], columns, sum(columns)):
        left = tuple(c - r for c, r in zip(columns, row, strict=True))
        for below in _tables(rows[1:], left):
            yield (row, *below)


def _rows(total: int, most: tuple[int, ...], room: int) -> Iterator[tuple[int, ...]]:
    """Yield the rows of `total` records with at most `most` in each column; `room` = sum(most)."""
    if not most:
        yield ()
        return
    room -= most[0]
    for first in range(max(0, total - room), min(total, most[0]) + 1):
        for rest in _rows(total - first, most[1:], room):
            yield (first, *rest)


# -- counting permutations -----------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _stays(a: int, b: int) -> tuple[int, ...]:
    """Return C(a,f) C(b,f) f! for f = 0, 1, ..., min(a, b)."""
    return tuple(comb(a, f) * comb(b, f) * factorial(f) for f in range(min(a, b) + 1))


class Staying:
    """Count the permutations inside one universe together with records that stay in place.

    T_j = S_j(x,z) prod z[h][s]!, where S_j counts the pairs of a permutation leading from
    x to z and j records it leaves in place: the sum, over tables f of j records with
    f <= min(x, z), of the ways to choose f of the x records to stay and to spread the
    others so that z - f arises,

        prod C(x,f) * prod_h (r_h - f_h.)! * prod_s (c_s - f_.s)! / prod (z - f)!

    With the factor prod z!, T_j is symmetric in x and z. Only cells that are occupied in
    both matter. Row by row only the sums of the columns of f have to be remembered,
    so tables with two columns (or rows) are cheap.
    """

    def __init__(self, rows: Sequence[int], columns: Sequence[int]) -> None:
        self.turned = len(columns) > len(rows)
        self.rows, self.columns = (columns, rows) if self.turned else (rows, columns)
        self.strides = [prod(c + 1 for c in self.columns[:s]) for s in range(len(self.columns))]

    def shared(self, x: Table, z: Table) -> Cells:
        """Return, for each row, the columns occupied in both tables and their counts."""
        if self.turned:
            x, z = tuple(zip(*x, strict=True)), tuple(zip(*z, strict=True))
        return tuple(
            tuple((s, a, b) for s, (a, b) in enumerate(zip(*pair, strict=True)) if a and b)
            for pair in zip(x, z, strict=True)
        )

    def counts(self, cells: Cells) -> list[int]:
        """Return T_j for j = 0..n of two tables that share these cells."""
        ways = {0: 1}
        for size, row in zip(self.rows, cells, strict=True):
            options = [(0, 0, 1)]
            for s, a, b in row:
                options = [
                    (at + f * self.strides[s], used + f, way * more)
                    for at, used, way in options
                    for f, more in enumerate(_stays(a, b))
                ]
            steps = [(at, way * factorial(size - used)) for at, used, way in options]
            merged: dict[int, int] = {}
            for at, way in ways.items():
                for step, more in steps:
                    merged[at + step] = merged.get(at + step, 0) + way * more
            ways = merged
        counts = [0] * (sum(self.columns) + 1)
        for at, way in ways.items():
            left = [c - at // d % (c + 1) for c, d in zip(self.columns, self.strides, strict=True)]
            counts[sum(self.columns) - sum(left)] += way * prod(map(factorial, left))
        return counts

    def work(self, cells: Cells) -> int:
        """Return about how many products `counts` takes."""
        spent, states, sums = 50, 1, [1] * len(self.columns)
        for row in cells:
            options = prod(min(a, b) + 1 for _, a, b in row)
            spent += states * options
            for s, a, b in row:
                sums[s] += min(a, b)
            states = min(states * options, prod(sums))
        return spent + states


def moving_counts(x: Table, z: Table) -> list[int]:
    """Return how many permutations lead from x to z moving exactly k records, for k = 0..n.

    N_(n-e) = sum over j >= e of (-1)^(j-e) C(j,e) S_j: exactly e stay.

    >>> moving_counts(((2, 0), (0, 2)), ((1, 1), (1, 1)))
    [0, 0, 4, 8, 4]
    """
    rows, columns = margins(x)
    count = Staying(rows, columns)
    staying, n = count.counts(count.shared(x, z)), sum(rows)
    repeated = prod(factorial(count) for row in z for count in row)
    return [
        sum((-1) ** (j - e) * comb(j, e) * staying[j] for j in range(e, n + 1)) // repeated
        for e in range(n, -1, -1)
    ]


# -- the law of the table ------------------------------------------------------------------------


def scaled_differences(weights: Sequence[Fraction]) -> tuple[list[int], int]:
    """Return integers c_j and a scale with P(z|x) = sum_j c_j S_j(x,z) / scale.

    c_j = sum over e <= j of (-1)^(j-e) C(j,e) w_(n-e), from exchanging the sums over
    k and j in P(z|x) = sum_k w_k N_k(x,z).
    """
    n = len(weights) - 1
    scale = lcm(*(weight.denominator for weight in weights))
    whole = [int(weight * scale) for weight in reversed(weights)]
    return [
        sum((-1) ** (j - e) * comb(j, e) * whole[e] for e in range(j + 1)) for j in range(n + 1)
    ], scale


def weighted_law(x: Table, weights: Sequence[Fraction]) -> dict[Table, Fraction]:
    """Return the law of the table after x is permuted; weights[k] is that of one permutation.

    `weights` has one entry for each number of moved records, 0..n, as `permutation_weights`.
    """
    if len(weights) != sum(map(sum, x)) + 1:
        raise BadInput("weights: one is needed for each number of moved records, from 0 to n")
    rows, columns = margins(x)
    universe, count = tables_with_margins(rows, columns), Staying(rows, columns)
    if len(universe) * count.work(count.shared(x, x)) > MOST_WORK:
        raise UniverseTooLarge(f"the law of this table takes more than {MOST_WORK:,} products")
    differences, scale = scaled_differences(weights)
    law = {}
    for z in universe:
        staying = count.counts(count.shared(x, z))
        value = sum(c * t for c, t in zip(differences, staying, strict=True))
        law[z] = Fraction(value, scale * prod(factorial(cell) for row in z for cell in row))
    return law


def table_law(x: Table, p: Rate) -> dict[Table, Fraction]:
    """Return the probability of every table of the universe of x after swapping x at rate p.

    Polynomial in the number of records for a table of fixed shape.

    >>> law = table_law(((2, 0), (0, 2)), Fraction(1, 2))
    >>> [str(law[z]) for z in sorted(law)]
    ['1/27', '19/27', '7/27']
    """
    return weighted_law(x, permutation_weights(sum(map(sum, x)), p))
