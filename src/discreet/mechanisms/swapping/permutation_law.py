"""The exact law of permutation swapping on a census small enough to write down.

Slow and plain on purpose: audits and tests hold the mechanism against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from discreet.spec import psa

#: A released data set without identifiers: how often each unit occurs, members included.
Outcome = frozenset[tuple[str, int]]


class Position(NamedTuple):
    """A swapped record without the value it carries: all that is held.

    Units that hold the same are interchangeable, so they share a position. Members are
    so only inside their unit: its number is part of what they hold.
    """

    stratum: str
    unit: int
    held: str


#: How many records at each position carry each value.
Carried = frozenset[tuple[tuple[Position, str], int]]


@dataclass(frozen=True)
class Written:
    """A census written down: what nobody swaps, and who carries which swapped value."""

    #: Units by number. With `of_members` all of them, without their members; otherwise those
    #: that are not swapped, members included.
    fixed: Mapping[int, str]
    carried: Sequence[tuple[Position, str]]
    of_members: bool

    def outcome(self, carried: Carried | None = None) -> Outcome:
        """Return the data set in a form without identifiers."""
        counts = Counter(self.carried) if carried is None else Counter(dict(carried))
        if not self.of_members:
            units = Counter(self.fixed.values())
            for (position, value), count in counts.items():
                units[f"{position.held}={value}"] += count
            return frozenset(units.items())
        members: dict[int, list[str]] = {unit: [] for unit in self.fixed}
        for (position, value), count in counts.items():
            members[position.unit] += [f"{position.held}={value}"] * count
        texts = (f"{text}{sorted(members[unit])}" for unit, text in self.fixed.items())
        return frozenset(Counter(texts).items())


def law_of(written: Written, rate: Fraction) -> dict[Outcome, Fraction]:
    """Return the probability of every data set that swapping `written` can release."""
    strata: dict[str, Counter[tuple[Position, str]]] = {}
    for position, value in written.carried:
        strata.setdefault(position.stratum, Counter())[position, value] += 1
    law: dict[Carried, Fraction] = {frozenset(): Fraction(1)}
    for stratum in strata.values():
        law = _combine(law, _stratum_law(stratum, rate))
    total: dict[Outcome, Fraction] = {}
    for carried, probability in law.items():
        outcome = written.outcome(carried)
        total[outcome] = total.get(outcome, Fraction(0)) + probability
    return total


def _stratum_law(stratum: Counter[tuple[Position, str]], rate: Fraction) -> dict[Carried, Fraction]:
    """Return the law of one stratum over who carries which value."""
    if stratum.total() < 2:
        return {frozenset(stratum.items()): Fraction(1)}
    values = sorted({value for _, value in stratum})
    positions = sorted({position for position, _ in stratum})
    table: psa.Table = tuple(tuple(stratum[p, v] for v in values) for p in positions)
    law: dict[Carried, Fraction] = {}
    for outcome, probability in psa.table_law(table, rate).items():
        cells = zip(positions, outcome, strict=True)
        carried = frozenset(
            ((position, value), number)
            for position, row in cells
            for value, number in zip(values, row, strict=True)
            if number
        )
        law[carried] = probability
    return law


def _combine(
    one: Mapping[Carried, Fraction], other: Mapping[Carried, Fraction]
) -> dict[Carried, Fraction]:
    """Return the law of two independent strata together; they share no position."""
    return {left | right: p * q for left, p in one.items() for right, q in other.items()}
