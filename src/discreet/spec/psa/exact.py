"""The loss of swapping one stratum, exactly, where its universe can be enumerated.

The loss is the smallest epsilon with P(z|x) <= e^(epsilon d(x, x')) P(z|x') for all
tables x, x', z of the universe; d is half the sum of absolute differences, the number of
records to change. It is always ln(a/b)/d with whole a, b and d, and is returned so,
with the tables where it is attained. A census of several strata has the largest of their losses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import inf, log
from typing import TYPE_CHECKING, Any

from discreet.errors import BadInput
from discreet.spec.psa.amount import LogAmount
from discreet.spec.psa.law import (
    MOST_WORK,
    Cells,
    Staying,
    Table,
    UniverseTooLarge,
    permutation_weights,
    scaled_differences,
    tables_with_margins,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

ONLY_COARSE = "holds only if nothing finer than the merged categories is ever published"

#: Losses whose floating-point values are closer than this are compared exactly.
CLOSE = 1e-9


@dataclass(frozen=True)
class ExactLoss:
    """The loss ln(a/b)/d of one stratum and where it is attained.

    `ratio` is a/b, None if the loss is infinite; `distance` is d. A universe of one
    table has loss 0 at distance 0: nothing is hidden there, so nothing can be lost.
    """

    ratio: Fraction | None
    distance: int
    x: Table
    other: Table
    outcome: Table
    universe: int
    condition: str = ""

    @property
    def amount(self) -> LogAmount:
        """Return the loss as an exact number."""
        return LogAmount(self.ratio, max(self.distance, 1))

    @property
    def value(self) -> float:
        """Return the loss rounded to a float."""
        return self.amount.value

    def describe(self) -> list[str]:
        """Return the loss, its exact form and its witness in plain lines."""
        if self.universe == 1:
            return ["loss 0: these margins admit one table, so they disclose it fully."]
        lines = [
            f"loss {self.value:.6f} = {self.amount}, over {self.universe} tables",
            f"attained by {self.x} and {self.other} at distance {self.distance}, "
            f"on seeing {self.outcome}",
        ]
        return [*lines, f"condition: {self.condition}"] if self.condition else lines


def exact_loss(holding: Sequence[int], swapping: Sequence[int], rate: Fraction) -> ExactLoss:
    """Return the loss of swapping a stratum with these margins at this rate.

    Refuses universes of more than `MOST_TABLES` tables and computations of more than
    `MOST_WORK` products. Finite at rate 1 for some margins, although Theorem 1 is not.

    >>> str(exact_loss([2, 2], [2, 2], Fraction(1, 2)).amount)
    'ln(19/4)/2'
    """
    return weighted_loss(holding, swapping, permutation_weights(sum(holding), rate))


def weighted_loss(
    holding: Sequence[int], swapping: Sequence[int], weights: Sequence[Fraction]
) -> ExactLoss:
    """Return the loss when a permutation that moves k records has probability weights[k]."""
    universe = tables_with_margins(holding, swapping)
    if len(weights) != sum(holding) + 1:
        raise BadInput("weights: one is needed for each number of moved records, from 0 to n")
    only = universe[0]
    if len(universe) == 1:
        return ExactLoss(Fraction(1), 0, only, only, only, 1)
    count = Staying(holding, swapping)
    some = universe[:: 1 + len(universe) // 20]
    average = sum(count.work(count.shared(x, z)) for x in some for z in some) / len(some) ** 2
    if average * len(universe) ** 2 / 2 > MOST_WORK:
        raise UniverseTooLarge(
            f"the loss of these margins takes more than about {MOST_WORK:,} products"
        )
    return _Comparison(universe, weights, count).worst()


def coarsened_loss(
    holding: Sequence[int],
    swapping: Sequence[int],
    rate: Fraction,
    *,
    holding_groups: Sequence[Sequence[int]] | None = None,
    swapping_groups: Sequence[Sequence[int]] | None = None,
) -> ExactLoss:
    """Return the loss of publishing only a table with merged categories.

    Groups list the positions merged into one published category and must partition
    the categories; None merges nothing. The loss is that of a stratum with the merged
    margins, never above that of the full table (ours, proved here): the law of the merged
    output depends on the merged input only, and merged tables x, x' at distance d come
    from fine tables at distance d, because the d records that differ can trade their fine
    values. It says nothing once a finer table of the same swap is published.

    >>> str(coarsened_loss([1, 1, 2], [2, 2], Fraction(1, 2), holding_groups=[[0, 1], [2]]).amount)
    'ln(19/4)/2'
    """
    loss = exact_loss(_merged(holding, holding_groups), _merged(swapping, swapping_groups), rate)
    return replace(loss, condition=ONLY_COARSE)


def _merged(margin: Sequence[int], groups: Sequence[Sequence[int]] | None) -> list[int]:
    if groups is None:
        return list(margin)
    if sorted(place for group in groups for place in group) != list(range(len(margin))):
        raise BadInput("groups: each category must be in exactly one group")
    return [sum(margin[place] for place in group) for group in groups]


class _Comparison:
    """All tables of a universe against each other.

    Q(x, z) = scale * prod z! * P(z|x) is a whole number, symmetric in x and z, and
    P(z|x) / P(z|x') = Q(x, z) / Q(x', z). Equal numbers are kept once, so that ties,
    which are common, cost nothing.
    """

    def __init__(self, universe: list[Table], weights: Sequence[Fraction], count: Staying) -> None:
        import numpy as np

        self.universe = universe
        self.codes = np.empty((len(universe), len(universe)), dtype=np.int64)
        differences, _ = scaled_differences(weights)
        known: dict[Cells, int] = {}
        places: dict[int, int] = {}
        for i, x in enumerate(universe):
            for j, z in enumerate(universe[: i + 1]):
                cells = count.shared(x, z)
                if cells not in known:
                    terms = zip(differences, count.counts(cells), strict=True)
                    number = sum(c * t for c, t in terms)
                    known[cells] = places.setdefault(number, len(places))
                self.codes[i, j] = self.codes[j, i] = known[cells]
        self.numbers = list(places)

    @cached_property
    def flat(self) -> NDArray[Any]:
        """Return the tables as rows of counts."""
        import numpy as np

        return np.array([[count for row in table for count in row] for table in self.universe])

    def worst(self) -> ExactLoss:
        """Return the largest loss; among equals, at the smallest distance and first in order."""
        best: tuple[LogAmount, tuple[int, int, int, int]] | None = None
        for ratio, at in self._candidates():
            amount = LogAmount(ratio, at[0])
            if best is None or best[0] < amount or (not amount < best[0] and at < best[1]):
                best = amount, at
        if best is None:  # there are at least two tables, hence a candidate
            raise ArithmeticError("no pair of tables was compared")
        amount, (distance, x, other, outcome) = best
        codes = self.codes[:, outcome]
        if self.numbers[codes[x]] < self.numbers[codes[other]]:
            x, other = other, x
        return ExactLoss(
            ratio=amount.ratio,
            distance=distance,
            x=self.universe[x],
            other=self.universe[other],
            outcome=self.universe[outcome],
            universe=len(self.universe),
        )

    def _candidates(self) -> Iterator[tuple[Fraction | None, tuple[int, int, int, int]]]:
        """Yield ratio and (distance, x, x', z) of all that may be largest, up to rounding."""
        import numpy as np

        logs = np.array([log(number) if number else -inf for number in self.numbers])[self.codes]
        found: dict[int, tuple[float, tuple[int, int, int, int]]] = {}
        largest, many = 0.0, len(self.numbers)
        for i in range(len(self.universe) - 1):
            distances = np.abs(self.flat[i + 1 :] - self.flat[i]).sum(axis=1) // 2
            with np.errstate(invalid="ignore"):  # impossible from both: no evidence either way
                losses = np.nan_to_num(np.abs(logs[i + 1 :] - logs[i]), nan=0.0, posinf=inf)
            losses /= distances[:, None]
            largest = max(largest, float(losses.max()))
            others, outcomes = np.nonzero(losses >= largest - CLOSE)
            one, two = self.codes[i, outcomes], self.codes[others + i + 1, outcomes]
            keys = (distances[others] * many + np.minimum(one, two)) * many + np.maximum(one, two)
            unique, first = np.unique(keys, return_index=True)
            for key, place in zip(unique.tolist(), first.tolist(), strict=True):
                j, z = int(others[place]), int(outcomes[place])
                at = (int(distances[j]), i, i + 1 + j, z)
                found.setdefault(key, (float(losses[j, z]), at))
        for loss, at in found.values():
            if loss >= largest - CLOSE:
                pair = (self.numbers[self.codes[row, at[3]]] for row in at[1:3])
                low, high = sorted(pair)
                yield (Fraction(high, low) if low else None if high else Fraction(1)), at
