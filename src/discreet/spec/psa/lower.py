"""How small the loss of swapping cannot be: lower bounds and the margins that attain them.

Theorems 3 and 4 of Bailie, Gong and Meng say that some universes have at least these
losses; here are conditions on the margins of a stratum under which it is one of them.
Where the lower bound meets `sharpened`, the loss of a stratum is known without any
enumeration, whatever its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import e, factorial, log

from discreet.errors import BadInput
from discreet.spec.psa.amount import INFINITE, ZERO, LogAmount, size_of_log
from discreet.spec.psa.bounds import check, largest_open_stratum, two_step_ratio


def gap(b: int) -> float:
    """Return f(b) of Theorem 4 of Bailie, Gong and Meng: how far Theorem 1 can be from the loss.

    Some universe has a loss of at least the budget of Theorem 1 less f(b). The printed
    f(b) <= 0.148 for b >= 10 misses f(10) = 0.148007 by rounding.

    >>> round(gap(10), 6)
    0.148007
    """
    if b < 2:
        raise BadInput("b must be at least 2")
    top = 1 + e / (2 * factorial(min(b - 2, 30)))
    return log((b + 1) ** 2 / (b * (b - 1)) * top / (1 - e / (2 * factorial(min(b, 30))))) / 2


def all_distinct(holding: Sequence[int], swapping: Sequence[int]) -> bool:
    """Say whether no two records share a holding or a swapping value (Proposition 8)."""
    return max(*holding, *swapping, 0) <= 1


def can_all_move(holding: Sequence[int], swapping: Sequence[int]) -> bool:
    """Say whether these margins are known to attain the second lower bound.

    Wanted are two holding and two swapping values of one record each, and tables x, z of
    the other n - 2 records with no cell in common: then every permutation from x to z moves
    all of them (the argument of Proposition 9). Sorted by both values and shifted by
    t, records share no cell if t and n - 2 - t exceed h + s - 2, where h and s are the
    largest counts; hence h + s <= n/2 is enough, and other shifts are tried one by one.
    Ours, proved here. False means not known.

    Proposition 9 asks for counts up to n/2 - 1 only. That is not enough: holding
    1,1,2,2,2 and swapping 1,1,3,3 satisfy it, but have a smaller loss, because one of the
    three pairs always takes part in both swapping values.
    """
    n = sum(holding)
    rest_h, rest_s = _without_two_single(holding), _without_two_single(swapping)
    if rest_h is None or rest_s is None:
        return False
    if n == 2 or max(rest_h) + max(rest_s) <= n / 2:
        return True
    if n > 200:  # shifts cost n^2; beyond, only the simple condition is tried
        return False
    h, s = ([v for v, count in enumerate(rest) for _ in range(count)] for rest in (rest_h, rest_s))
    cells = set(zip(h, s, strict=True))
    return any(cells.isdisjoint(zip(h, s[t:] + s[:t], strict=True)) for t in range(1, n - 2))


def _without_two_single(margin: Sequence[int]) -> list[int] | None:
    """Return the counts, largest first, without two that are 1; None if there are not two."""
    counts = sorted((count for count in margin if count), reverse=True)
    return counts[:-2] if counts[-2:] == [1, 1] else None


def lower_bound(holding: Sequence[int], swapping: Sequence[int], p: Fraction) -> LogAmount:
    """Return a number that the loss of a stratum with these margins is at least.

    ln o (and -ln o) if all values are distinct, L/2 - ln o if `can_all_move`, and 0 where
    neither is known: Theorem 3 of Bailie, Gong and Meng with the hypotheses of the
    functions above. At p = 0 the loss is infinite as soon as two tables are possible; at
    p = 1 if all values are distinct.
    """
    n = sum(holding)
    check(n if n > 1 else 0, p)
    if not largest_open_stratum([(holding, swapping)]):
        return ZERO
    distinct = all_distinct(holding, swapping)
    if p == 0 or (p == 1 and distinct):
        return INFINITE
    if p == 1:
        return ZERO
    odds, bound = p / (1 - p), ZERO
    if distinct:
        bound = size_of_log(odds)
    if can_all_move(holding, swapping):
        ratio = two_step_ratio(n, upwards=False) / odds**2
        bound = max(bound, LogAmount(max(Fraction(1), ratio), 2))
    return bound
