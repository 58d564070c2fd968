"""Strata as lists of records, and laws of swapping found by enumeration alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, permutations
from math import inf, log

from discreet.spec.psa import Table, tables_with_margins

Law = dict[Table, Fraction]


def counts(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def records(x: Table) -> list[tuple[int, int]]:
    return [(h, s) for h, row in enumerate(x) for s, count in enumerate(row) for _ in range(count)]


def table_of(x: Table, moved: Sequence[int]) -> Table:
    """Return the table after record i receives the swapping value of record moved[i]."""
    listed = records(x)
    grid = [[0] * len(x[0]) for _ in x]
    for (h, _), giver in zip(listed, moved, strict=True):
        grid[h][listed[giver][1]] += 1
    return tuple(map(tuple, grid))


def law_by_permutations(x: Table, weights: Sequence[Fraction]) -> Law:
    """Add up the weights of all permutations."""
    n = len(records(x))
    law: Law = defaultdict(Fraction)
    for moved in permutations(range(n)):
        law[table_of(x, moved)] += weights[sum(i != j for i, j in enumerate(moved))]
    return dict(law)


def law_by_algorithm(
    x: Table, rates: Fraction | Sequence[Fraction], *, vacuous: bool = True
) -> Law:
    """Enumerate Algorithm 1 itself: selections, repetition of useless ones, derangements.

    `rates` may differ by holding value. Without `vacuous`, derangements that leave the
    table as it is are excluded, and selections that admit no other are repeated.
    """
    listed = records(x)
    n = len(listed)
    if isinstance(rates, Fraction):
        rates = [rates] * len(x)
    chances = [rates[h] for h, _ in listed]
    law: Law = defaultdict(Fraction)
    accepted = Fraction(0)
    for k in range(n + 1):
        for chosen in combinations(range(n), k):
            outcomes = []
            for order in permutations(chosen):
                moved = list(range(n))
                for i, j in zip(chosen, order, strict=True):
                    moved[i] = j
                outcome = table_of(x, moved)
                if all(moved[i] != i for i in chosen) and (vacuous or not k or outcome != x):
                    outcomes.append(outcome)
            if not outcomes:
                continue
            chance = Fraction(1)
            for i in range(n):
                chance *= chances[i] if i in chosen else 1 - chances[i]
            accepted += chance
            for outcome in outcomes:
                law[outcome] += chance / len(outcomes)
    return {z: chance / accepted for z, chance in law.items()}


def distance(x: Table, other: Table) -> int:
    pairs = zip(sum(x, ()), sum(other, ()), strict=True)
    return sum(abs(a - b) for a, b in pairs) // 2


def loss_of(rows: Sequence[int], columns: Sequence[int], law: Callable[[Table], Law]) -> float:
    """Return the loss of any mechanism on tables with these margins, in plain floats."""
    universe = tables_with_margins(rows, columns)
    laws = {x: law(x) for x in universe}
    largest = 0.0
    for x, other in combinations(universe, 2):
        for z in universe:
            a, b = laws[x].get(z, Fraction(0)), laws[other].get(z, Fraction(0))
            if a != b:
                step = abs(log(a) - log(b)) if a and b else inf
                largest = max(largest, step / distance(x, other))
    return largest
