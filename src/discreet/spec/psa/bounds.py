"""What the Permutation Swapping Algorithm promises: bounds from stratum sizes.

Everything here is a function of the swap rate p and of b, the size of the
largest stratum that counts; stratum sizes are invariants of the swap, so a
budget may be published. Throughout o = p / (1 - p), the odds of being selected,
d are the derangement numbers and L = ln[d(b)/d(b-2)].

`theorem_1` is the published bound (Bailie, Gong and Meng, Theorem 1) and the one that is
charged. `sharpened` is ours and proved here; it equals the loss of some universe, so
no smaller function of b and p is a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from math import exp, inf, log, nextafter, sqrt

from discreet.errors import BadInput
from discreet.spec.psa.amount import INFINITE, ZERO, LogAmount, size_of_log
from discreet.spec.psa.law import Rate, check_rate, derangement_numbers, exact_rate

THEOREM_1 = "published: Bailie, Gong and Meng, Theorem 1"
SHARPENED = "ours, proved here"

#: A float far from 1 has the budget asked for up to this.
ROUNDING = 1e-9


class BudgetTooSmall(BadInput):
    """No swap rate is certified for the budget asked."""

    def __init__(self, epsilon: float, b: int) -> None:
        self.smallest = minimum_epsilon(b)
        super().__init__(
            f"epsilon {epsilon:g}: Theorem 1 certifies no rate below {self.smallest:.6f} when the "
            f"largest stratum has {b} records. Match on more variables or accept a larger budget."
        )


# -- the largest stratum -------------------------------------------------------------------------


def largest_stratum(sizes: Iterable[int]) -> int:
    """Return b: the size of the largest stratum of at least two records, or 0 if there is none.

    An upper bound on the b of Theorem 1, which counts only strata with two
    distinct records; those with none lose nothing, but which they are is not a
    function of the sizes.
    """
    return max((int(size) for size in sizes if size >= 2), default=0)


def largest_open_stratum(strata: Iterable[tuple[Sequence[int], Sequence[int]]]) -> int:
    """Return the size of the largest stratum in which something can change, or 0.

    Takes the holding and swapping margins of each stratum. Where one of them has a single
    category the universe is one table, so the stratum does not count (ours, proved
    here): two distinct records, as in Theorem 1, are not enough.

    >>> largest_open_stratum([([5], [2, 3]), ([2, 1], [1, 2])])
    3
    """
    return largest_stratum(
        sum(holding)
        for holding, swapping in strata
        if sum(map(bool, holding)) > 1 and sum(map(bool, swapping)) > 1
    )


# -- Theorem 1 -----------------------------------------------------------------------------------


def theorem_1(b: int, p: Rate) -> LogAmount:
    """Return the published budget: max(ln o, ln(b+1) - ln o).

    Bailie, Gong and Meng, Theorem 1: 0 without a stratum that counts, and no
    finite bound at p = 0 or 1.

    >>> theorem_1(2, Fraction(1, 2)).ratio
    Fraction(3, 1)
    """
    check(b)
    p = exact_rate(p)
    if b == 0:
        return ZERO
    if p in (0, 1):
        return INFINITE
    odds = p / (1 - p)
    return LogAmount(max(odds, (b + 1) / odds))


def minimum_epsilon(b: int) -> float:
    """Return the smallest budget that Theorem 1 gives at any rate: ln(b+1)/2."""
    check(b)
    return log(b + 1) / 2


def best_rate(b: int) -> float:
    """Return the rate with the smallest budget under Theorem 1."""
    check(b)
    return sqrt(b + 1) / (sqrt(b + 1) + 1)


def rates_for(epsilon: float, b: int) -> tuple[float, float]:
    """Return the lowest and the highest rate whose Theorem 1 budget is `epsilon`.

    Rates between the two have smaller budgets. Neither end is better by itself:
    the low one keeps more records in place. Where a rate is too near to 0 or 1 for a
    float, the next float inside is returned: no finite budget holds at 0 and 1.
    Without a stratum that counts every rate is free, so the ends are 0 and 1.
    """
    check(b)
    if not 0 <= epsilon < inf:
        raise BadInput("epsilon must be a finite number, not negative")
    if b == 0:
        return 0.0, 1.0
    if epsilon < minimum_epsilon(b):
        raise BudgetTooSmall(epsilon, b)
    # Written with exp(-epsilon), which cannot overflow.
    decay = exp(-epsilon)
    low, high = (b + 1) * decay / ((b + 1) * decay + 1), 1 / (1 + decay)
    high = min(high, nextafter(1, 0))
    if log(high / (1 - high)) > epsilon + ROUNDING:
        high = nextafter(high, 0)
    return max(low, nextafter(0, 1)), high


def largest_stratum_for(epsilon: float, p: Rate) -> int:
    """Return the largest b whose Theorem 1 budget at rate p is at most `epsilon`, or 0 if none.

    floor(o e^epsilon) - 1, provided epsilon >= ln o.

    >>> largest_stratum_for(3, Fraction(1, 2))
    19
    """
    p = exact_rate(p)
    if not 0 <= epsilon < 1000:
        raise BadInput("epsilon must lie between 0 and 1000")
    if p in (0, 1):
        return 0
    odds = p / (1 - p)
    with localcontext(prec=500):
        growth = Decimal(epsilon).exp()
        room = growth * odds.numerator / odds.denominator
        enough = growth * odds.denominator >= odds.numerator
        b = int(room.to_integral_value(ROUND_FLOOR)) - 1
    return b if enough and b >= 2 else 0


# -- the sharpened bound -------------------------------------------------------------------------


def two_step_ratio(b: int, *, upwards: bool = True) -> Fraction:
    """Return d(b)/d(b-2) for b = 2 or b >= 4: exactly up to b = 40, beyond rounded as asked.

    d(b)/d(b-2) = b(b-1) - (-1)^b (b-1)/d(b-2), from d(k) = k d(k-1) + (-1)^k used twice.
    Beyond 40 the last term is replaced by a larger one, below 1e-46 b.
    """
    numbers = derangement_numbers(min(b, 40))
    if b <= 40:
        return Fraction(numbers[b], numbers[b - 2])
    return b * (b - 1) + Fraction(b - 1, numbers[-1]) * (1 if upwards else -1)


def sharpened(b: int, p: Rate) -> LogAmount:
    """Return a budget that no function of b and p can undercut. Ours, proved here.

    For b >= 4 it is max(ln o, L/2 - ln o). Proof. Let x, x' be at distance D >= 2 in one
    universe: x' arises from x by a permutation r of D records, and g -> r g maps the
    permutations from x' to z one to one onto those from x to z. As r moves D records,
    the numbers k, k' moved by the two differ by j <= D, so the ratio of the probabilities
    of z is at most the largest of o^(k-k') d(k')/d(k). With A = max(ln o, L/2 - ln o) >= L/4 > 0:

    - k >= k': d does not fall on 0, 2, 3, ..., so the logarithm is at most j ln o <= D A.
    - k' = k + j, j even: d(i)/d(i-2) is at most d(b)/d(b-2) for i <= b (it is 1 at i = 2 and
      rises from i = 4), so the logarithm is at most j (L/2 - ln o) <= D A.
    - j odd, j >= 3: as before, after one step d(k+1)/d(k) <= k + 2 <= b - 1 <= e^(L/2) if
      k >= 2, or the three steps d(3)/d(0) = 2 <= e^(3L/2) if k = 0.
    - j = 1: d(k+1)/d(k) <= b + 1/2 <= (b-1)^(3/2) <= e^(3L/4), and 3L/4 - ln o is
      (ln o)/2 + 3(L/2 - ln o)/2 <= 2 A <= D A.

    Strata are independent and their D add up, so smaller strata, where k and k' stay below
    b, change nothing. For b = 2 and 3 the few cases are written out below. Some universes
    attain both terms: see `lower_bound`.
    """
    check(b)
    p = exact_rate(p)
    if b == 0:
        return ZERO
    if p in (0, 1):
        return INFINITE
    odds = p / (1 - p)
    if b == 2:
        return size_of_log(odds)
    if b == 3:
        return max(size_of_log(odds), size_of_log(odds / 2, 2), size_of_log(odds**3 / 2, 3))
    return LogAmount(max(odds**2, two_step_ratio(b) / odds**2), 2)


def sharpened_minimum(b: int) -> float:
    """Return the smallest sharpened budget at any rate: L/4 for b >= 4."""
    check(b)
    if b < 4:
        # b = 3: |ln o| and |ln(o/2)|/2 meet at o = 2^(1/3).
        return {0: 0.0, 2: 0.0, 3: log(2) / 3}[b]
    return LogAmount(two_step_ratio(b), 4).value


def sharpened_best_rate(b: int) -> float:
    """Return the rate with the smallest sharpened budget."""
    check(b)
    odds = exp(sharpened_minimum(b))
    return odds / (1 + odds)


def variable_rates(b: int, lowest: Rate, highest: Rate) -> LogAmount:
    """Return a budget when each record has its own rate between `lowest` and `highest`.

    max(ln o_max, L/2 - ln o_min) for b >= 4: the larger of the two sharpened budgets. Ours,
    proved here as `sharpened`, with products of odds for powers. It holds if the rate of
    a record is a function of its matching and holding values, so that it stays with the
    position and is the same in the whole universe; not if it depends on the swapping
    value or on other records (uniqueness, for instance). Bailie, Gong and Meng say that such
    a budget is finite, without computing it.
    """
    if exact_rate(lowest) > exact_rate(highest):
        raise BadInput("rates: the lowest may not exceed the highest")
    return max(sharpened(b, lowest), sharpened(b, highest))


def check(b: int, p: Fraction = Fraction(1, 2)) -> None:
    """Refuse a stratum size of one or below zero, and a rate outside [0, 1]."""
    if b < 0 or b == 1:
        raise BadInput("b must be 0 or the size of a stratum of at least two records")
    check_rate(p)
