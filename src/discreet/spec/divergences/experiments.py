"""Two finite laws as an experiment: the distribution of their likelihood ratio.

The likelihood ratio is a sufficient statistic, so every distance that no processing of
the outcome can increase depends on it alone. Outcomes with equal ratios are merged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from discreet.errors import BadInput

#: What each outcome's probability is; outcomes left out have none.
Law = Mapping[Any, Fraction]

_ZERO = Fraction(0)


class Cell(NamedTuple):
    """All outcomes with one likelihood ratio: their probability under each law."""

    p: Fraction
    q: Fraction


#: Both laws by their likelihood ratio p/q, from the largest down; ratios with q = 0 first.
Experiment = tuple[Cell, ...]


class Aligned(NamedTuple):
    """Several laws on one list of outcomes, as whole numbers in units of 1/`whole`."""

    outcomes: list[Any]
    rows: list[list[int]]
    whole: int


def aligned(laws: Iterable[Law]) -> Aligned:
    """Return laws on a common list of outcomes, after checking that they are laws."""
    known = list(laws)
    for law in known:
        if sum(law.values()) != 1 or min(law.values()) < 0:
            raise BadInput("a law must have probabilities that are not negative and sum to 1.")
    outcomes = list(dict.fromkeys(outcome for law in known for outcome in law))
    whole = math.lcm(*(chance.denominator for law in known for chance in law.values()))
    rows = [[int(law.get(outcome, _ZERO) * whole) for outcome in outcomes] for law in known]
    return Aligned(outcomes, rows, whole)


def experiment(p: Sequence[int], q: Sequence[int], whole: int) -> Experiment:
    """Return two aligned laws by their likelihood ratio; impossible outcomes are left out."""
    merged: dict[Fraction | None, Cell] = {}
    for (one, other), times in Counter(zip(p, q, strict=True)).items():
        if one or other:
            ratio = Fraction(one, other) if other else None
            old = merged.get(ratio, Cell(_ZERO, _ZERO))
            more = Cell(Fraction(times * one, whole), Fraction(times * other, whole))
            merged[ratio] = Cell(old.p + more.p, old.q + more.q)
    finite = sorted((ratio for ratio in merged if ratio is not None), reverse=True)
    return tuple(merged[ratio] for ratio in ([None] if None in merged else []) + finite)


def swapped(cells: Experiment) -> Experiment:
    """Return the experiment with the two laws exchanged."""
    return tuple(Cell(cell.q, cell.p) for cell in reversed(cells))


def power_curve(p: Law, q: Law) -> list[tuple[Fraction, Fraction]]:
    """Return the corners of the power curve: the most power against `q` at each size under `p`.

    By the lemma of Neyman and Pearson, reject for the smallest p/q. Between two corners
    the curve is a straight line (reject at random).
    """
    both = aligned([p, q])
    return corners(experiment(both.rows[0], both.rows[1], both.whole))


def corners(cells: Experiment) -> list[tuple[Fraction, Fraction]]:
    """Return (size, power) of the best tests that reject the last cells, from none to all."""
    found = [(_ZERO, _ZERO)]
    for cell in reversed(cells):
        size, power = found[-1]
        found.append((size + cell.p, power + cell.q))
    return found
