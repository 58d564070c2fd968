"""What the Permutation Swapping Algorithm promises: budgets from stratum sizes.

Everything here is a function of the swap rate p and of b, the size of the
largest stratum that counts; stratum sizes are invariants of the swap, so a
budget may be published. Throughout o = p / (1 - p), the odds of being selected.

`theorem_1` is the published bound (Bailie, Gong and Meng, Theorem 1) and the
only one that may be charged. `sharpened` is ours and may only be shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, inf, lgamma, log, log1p, sqrt

from discreet.errors import BadInput
from discreet.mechanisms.swapping.law import derangement_numbers, log_fraction

SHARPENED_STATUS = "ours: proof sketched, checked numerically for b up to 200"


@dataclass(frozen=True)
class LogBudget:
    """A budget known exactly as the logarithm of a rational: epsilon = ln(ratio).

    `ratio` is None where no finite budget is known.
    """

    ratio: Fraction | None

    @property
    def epsilon(self) -> float:
        """Return the budget as a number."""
        return inf if self.ratio is None else log_fraction(self.ratio)


class BudgetTooSmall(BadInput):
    """No swap rate is certified for the budget asked."""

    def __init__(self, epsilon: float, b: int) -> None:
        self.smallest = log(b + 1) / 2
        super().__init__(
            f"epsilon {epsilon:g}: Theorem 1 certifies no rate below {self.smallest:.6f} when the "
            f"largest stratum has {b} records. Match on more variables or accept a larger budget."
        )


def largest_stratum(sizes: Iterable[int]) -> int:
    """Return b: the size of the largest stratum of at least two records, or 0 if there is none.

    An upper bound on the b of Theorem 1, which counts only strata with two
    distinct records; those with none lose nothing, but which they are is not a
    function of the sizes.
    """
    return max((int(size) for size in sizes if size >= 2), default=0)


def theorem_1(b: int, p: Fraction) -> LogBudget:
    """Return the published budget: max(ln o, ln(b+1) - ln o).

    Bailie, Gong and Meng, Theorem 1: 0 without a stratum that counts, and no
    finite bound at p = 0 or 1.

    >>> theorem_1(2, Fraction(1, 2)).ratio
    Fraction(3, 1)
    """
    _check(b, p)
    if b == 0:
        return LogBudget(Fraction(1))
    if p in (0, 1):
        return LogBudget(None)
    odds = p / (1 - p)
    return LogBudget(max(odds, (b + 1) / odds))


def best_rate(b: int) -> float:
    """Return the rate with the smallest budget under Theorem 1, which is ln(b+1)/2."""
    _check(b)
    return sqrt(b + 1) / (sqrt(b + 1) + 1)


def rates_for(epsilon: float, b: int) -> tuple[float, float]:
    """Return the lowest and the highest rate whose Theorem 1 budget is `epsilon`.

    Rates between the two have smaller budgets. Neither end is better by itself:
    the low one keeps more records in place. Without a stratum that counts every
    rate is free, so the ends are 0 and 1.
    """
    _check(b)
    if not 0 <= epsilon < inf:
        raise BadInput("epsilon must be a finite number, not negative")
    if b == 0:
        return 0.0, 1.0
    if epsilon < log(b + 1) / 2:
        raise BudgetTooSmall(epsilon, b)
    # Written with exp(-epsilon), which cannot overflow.
    decay = exp(-epsilon)
    return (b + 1) * decay / ((b + 1) * decay + 1), 1 / (1 + decay)


def sharpened(b: int, p: Fraction) -> float:
    """Return a budget that no function of b and p can undercut. Ours: see SHARPENED_STATUS.

    For b >= 4 it is max(ln o, ln[d(b)/d(b-2)]/2 - ln o), d the derangement
    numbers: the law weighs a permutation that moves k records by o^k / d(k), tables
    at distance D are reached by permutations whose k differ by at most D, and
    the ratio d(k)/d(k-2) grows with k. Never charge it.
    """
    _check(b, p)
    if b == 0:
        return 0.0
    if p in (0, 1):
        return inf
    log_odds = log_fraction(p / (1 - p))
    if b == 2:
        return abs(log_odds)
    if b == 3:
        two = log(2)
        return max(abs(log_odds), abs(two - log_odds) / 2, abs(two / 3 - log_odds))
    return max(log_odds, _two_step(b) / 2 - log_odds)


def moved_probability(n: int, p: Fraction) -> float:
    """Return the probability that a given record of a stratum of n is moved.

    pi = p (1 - (1-p)^(n-1)) / (1 - n p (1-p)^(n-1)). Ours (checked by enumeration):
    unlike p alone it accounts for selections that are repeated.

    >>> moved_probability(2, Fraction(1, 2))
    0.5
    """
    if n < 2:
        return 0.0
    _check(n, p)
    if p == 1:
        return 1.0
    rate = float(p)
    log_alone = (n - 1) * log1p(-rate)
    return rate * -expm1(log_alone) / (1 - n * rate * exp(log_alone))


def _two_step(b: int) -> float:
    """Return ln[d(b)/d(b-2)]."""
    if b < 20:
        numbers = derangement_numbers(b)
        return log(numbers[b]) - log(numbers[b - 2])
    return lgamma(b + 1) - lgamma(b - 1)  # d(k) = k!/e to machine precision from k = 18


def _check(b: int, p: Fraction = Fraction(1, 2)) -> None:
    if b < 0 or b == 1:
        raise BadInput("b must be 0 or the size of a stratum of at least two records")
    if not 0 <= p <= 1:
        raise BadInput(f"swap rate {p}: must lie between 0 and 1")
