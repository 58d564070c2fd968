"""Two other ways to permute, with better budgets. Ours, proved here.

Both are in the flavor of the Permutation Swapping Algorithm, and as there the probability
of a permutation depends only on k, the number of records it moves; their exact
laws and losses follow from `weighted_law` and `weighted_loss`.

*Uniform shuffle*: select each record with the rate p and permute the selected uniformly, fixed
points allowed. No selection is repeated, and the budget has no floor: it falls to 0 as p
rises to 1.

*Mallows*: draw a permutation with probability proportional to t^k, t = e^(-theta); the
Mallows model with Hamming distance (Fligner and Verducci 1986). The budget is theta, in every
universe and whatever the size of the strata.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, exp, expm1, factorial, inf, log, log1p, sqrt

from discreet.errors import BadInput
from discreet.spec.psa.amount import INFINITE, ZERO, LogAmount, size_of_log
from discreet.spec.psa.bounds import check
from discreet.spec.psa.law import check_rate, derangement_numbers

# -- uniform shuffle of the selected -------------------------------------------------------------


def shuffle_weights(n: int, p: Fraction) -> list[Fraction]:
    """Return the probability of one permutation that moves k of n records, for k = 0..n.

    u_k = sum over i of C(n-k, i) p^(k+i) (1-p)^(n-k-i) / (k+i)!: the moved ones and i others
    were selected.
    """
    check_rate(p)
    return [
        sum(
            (
                comb(n - k, i) * p ** (k + i) * (1 - p) ** (n - k - i) / factorial(k + i)
                for i in range(n - k + 1)
            ),
            Fraction(0),
        )
        for k in range(n + 1)
    ]


def shuffle_budget(b: int, p: Fraction) -> LogAmount:
    """Return ln(1 + 2b/o + b(b-1)/o^2) / 2 = ln(u_(b-2)/u_b) / 2.

    Proof. With a_j = o^j/j!, u_k is proportional to T(n-k, k), T(r, c) = sum_i C(r,i) a_(c+i).
    T(r, .) is log-concave, since adding neighbours keeps a log-concave sequence so, and
    T(r+1, c) = T(r, c) + T(r, c+1). Hence u_k^2 >= u_(k-1) u_(k+1): with A, B, C =
    T(r-1, c-1), T(r-1, c), T(r-1, c+1) this reads (B + C)^2 >= C (A + 2B + C), that is B^2 >= AC.
    So u falls and its steps u_(k-1)/u_k rise with k; numbers of moved records that
    differ by j <= D, D >= 2, differ in weight by at most (u_(n-2)/u_n)^(D/2), and that
    ratio rises with n. All-distinct strata attain it, except of three records.
    """
    check(b, p)
    if b == 0:
        return ZERO
    if p == 0:
        return INFINITE
    inverse = (1 - p) / p
    return LogAmount(1 + 2 * b * inverse + b * (b - 1) * inverse**2, 2)


def shuffle_rate_for(epsilon: float, b: int) -> float:
    """Return the one rate at which the uniform shuffle has the budget `epsilon`."""
    check(b)
    if not 0 <= epsilon <= 300:
        raise BadInput("epsilon must lie between 0 and 300")
    if b == 0:
        return 0.0
    grown = expm1(2 * epsilon)
    inverse = grown / (b + sqrt(b * b + b * (b - 1) * grown))
    return 1 / (1 + inverse)


def shuffle_moved_share(n: int, p: Fraction) -> float:
    """Return the expected share moved, p - (1 - (1-p)^n)/n: one selected record stays on average.

    >>> shuffle_moved_share(2, Fraction(1))
    0.5
    """
    check_rate(p)
    if n < 2:
        return 0.0
    rate = float(p)
    nobody = exp(n * log1p(-rate)) if p < 1 else 0.0
    return rate - (1 - nobody) / n


# -- Mallows swapping ----------------------------------------------------------------------------


def mallows_weights(n: int, t: Fraction) -> list[Fraction]:
    """Return the probability t^k / Z of one permutation that moves k of n records, for k = 0..n.

    Z = sum_k C(n,k) d(k) t^k. To draw: k with probability C(n,k) d(k) t^k / Z, then a
    uniform subset of k records, then a uniform derangement.

    >>> [str(w) for w in mallows_weights(3, Fraction(1, 2))]
    ['1/2', '0', '1/8', '1/16']
    """
    _check_tilt(t)
    numbers = derangement_numbers(n)
    total = sum(comb(n, k) * number * t**k for k, number in enumerate(numbers))
    return [t**k / total if number else Fraction(0) for k, number in enumerate(numbers)]


def mallows_budget(t: Fraction) -> LogAmount:
    """Return theta = ln(1/t): numbers of moved records differ by at most the distance.

    All-distinct strata attain it, with the identity and the exchange of two records.
    """
    _check_tilt(t)
    return size_of_log(t)


def mallows_moved_share(n: int, theta: float) -> float:
    """Return the expected share of a stratum of n that is moved; about 1 - e^theta/n.

    Exactly 1 - (e^theta/n)(1 - a) with a = (l^n/n!) / sum_(i<=n) l^i/i! and l = e^theta - 1,
    because permutations have n! sum_(i<=n) (u-1)^i/i! as generating function of their
    fixed points. Where e^theta exceeds 2n, that would cancel, and the few terms of
    the mean of k are added instead.
    """
    if n < 2:
        return 0.0
    if not 0 <= theta < inf:
        raise BadInput("theta must be a finite number, not negative")
    if theta > log(2 * n):
        return _mean_moved(n, exp(-theta)) / n
    growth = expm1(theta)
    if growth == 0:
        return (n - 1) / n
    total, term = 1.0, 1.0  # 1/a = 1 + n/l + n(n-1)/l^2 + ...
    for i in range(n):
        if total > 1e18 or term < 1e-18 * total:
            break
        term *= (n - i) / growth
        total += term
    return 1 - (growth + 1) / n * (1 - 1 / total)


def _mean_moved(n: int, t: float) -> float:
    """Return the mean of k under weights C(n,k) d(k) t^k, for n t <= 1/2."""
    total, mean, ways, share = 1.0, 0.0, 1.0, 1.0  # share = d(k)/k!
    for k in range(1, min(n, 60) + 1):
        ways *= (n - k + 1) * t
        share += (-1) ** k / factorial(k)
        if k > 1:
            total += ways * share
            mean += k * ways * share
    return mean / total


def mallows_theta_for(n: int, share: float) -> float:
    """Return the theta at which a stratum of n has this expected share moved.

    About ln(n (1 - share)). At most (n-1)/n can be moved: by a uniform permutation, theta 0.
    """
    if n < 2 or not 0 < share <= (n - 1) / n:
        raise BadInput("share: must be positive and at most (n-1)/n for a stratum of n >= 2")
    # At the upper end less is moved: the share is below 2.2 n e^(-2 theta) from ln(2n) on.
    low, high = 0.0, max(log(2 * n), log(n / share) / 2 + 1)
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        if mallows_moved_share(n, middle) > share:
            low = middle
        else:
            high = middle
    return high


def _check_tilt(t: Fraction) -> None:
    if not 0 < t <= 1:
        raise BadInput("t = e^(-theta) must be positive and at most 1")
