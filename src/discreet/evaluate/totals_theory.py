"""What least squares says about the error of TopDown's totals, with the tree as it is.

Ours, proved here. Let the children of a parent be measured with independent noise of
variance v_c, V their sum, and let the totals that least squares finds add up to the
parent's estimate, whose error is E. The fitted total of child c is its measurement plus the
part v_c / V of what is missing, so its error is n_c - (v_c / V) sum_k n_k + (v_c / V) E; as
E comes from levels above it is independent of the n_k, and the variance is

    v_c - v_c^2 / V + (v_c / V)^2 Var(E).

Bounds (no count below 0, people in every facility) and rounding are left out of account.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms import topdown

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TOTAL = "total"


def expected_variances(
    strategy: topdown.Strategy, parents: Sequence[Integers]
) -> dict[str, Floats]:
    """Return the variance of every total, for the levels whose totals are estimated first.

    `parents[i][k]` is the parent of node k of level i of the strategy, from the top down.
    Only levels without a break below the one whose totals are exact have such a theory.
    """
    names = strategy.level_names
    if strategy.total is None:
        return {}
    shares = unit_shares([measured.share for measured in strategy.levels], parents)
    first = names.index(strategy.total)
    variance = np.zeros(parents[first].size)
    found: dict[str, Floats] = {}
    for level in range(first + 1, len(names)):
        if names[level] not in strategy.total_first:
            break
        own = _noise(strategy, names[level], shares[level])
        variance = split(own, parents[level], variance)
        found[names[level]] = variance
    return found


def split(own: Floats, parent: Integers, above: Floats) -> Floats:
    """Return the variances of children from those of measurements and of parents.

    An only child is not measured (its `own` is 0) and equals its parent.

    >>> split(np.array([3.0, 3.0, 0.0]), np.array([0, 0, 1]), np.array([4.0, 5.0])).tolist()
    [2.5, 2.5, 5.0]
    """
    together = np.bincount(parent, weights=own, minlength=above.size)[parent]
    part = np.divide(own, together, out=np.ones_like(own), where=together > 0)
    return np.asarray(own - own * part + part**2 * above[parent], dtype=np.float64)


def unit_shares(
    by_level: Sequence[Fraction], parents: Sequence[Integers]
) -> list[NDArray[np.object_]]:
    """Return the share of every node: an only child has given its own to its parent.

    Written apart from the mechanism, whose shares it can check.
    """
    shares = [
        np.array([share] * parent.size, dtype=object)
        for share, parent in zip(by_level, parents, strict=True)
    ]
    for level in range(len(shares) - 1, 0, -1):
        children = np.bincount(parents[level], minlength=shares[level - 1].size)
        only = np.flatnonzero(children[parents[level]] == 1)
        shares[level - 1][parents[level][only]] += shares[level][only]
        shares[level][only] = Fraction(0)
    return shares


def _noise(strategy: topdown.Strategy, level: str, shares: NDArray[np.object_]) -> Floats:
    """Return the variance of the measured total of each node, 0 where there is none."""
    laws: Mapping[Fraction, float] = {
        share: float(strategy.sigma2(level, TOTAL, share)) if share else 0.0
        for share in set(shares.tolist())
    }
    return np.array([laws[share] for share in shares.tolist()], dtype=np.float64)
