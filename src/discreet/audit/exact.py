"""The exact verifier: what a mechanism really loses, and whether that keeps a promise.

A mechanism satisfies a specification if in every universe, for every two data sets x and
x' of it, in both orders,

    D(law of T(x), law of T(x'))  <=  budget * d(x, x'),     with 0 * infinity = infinity

(Bailie, Gong and Meng, Definition 1). This is a Lipschitz condition over *all* pairs, not
only over neighbours. The loss of a mechanism is the smallest budget it satisfies: the
largest D / d. A pair at distance 0 whose laws differ makes it infinite; pairs infinitely
far apart do not matter.

What is found holds for the data sets that were given. It is the loss of a universe if all
of it was given, otherwise a lower bound; a violation is a violation in either case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Literal, TypeVar

from discreet.errors import BadInput
from discreet.spec import (
    Budget,
    Exactly,
    FunctionOfUniverse,
    LogRational,
    NoFiniteBudget,
    OutputPremetric,
    divergences,
)

Point = TypeVar("Point", bound=Hashable)

#: Which universe a data set lies in; none given: all lie in one.
Universe = Callable[[Point], Hashable]

#: How far apart two data sets are; infinity is a value.
Apart = Callable[[Point, Point], Fraction | float]

#: How far apart the laws of the output are for two data sets.
Measure = Callable[[Point, Point], divergences.Distance]


@dataclass(frozen=True)
class Pair:
    """Two data sets of one universe, how far apart they are, and how far their laws."""

    universe: Hashable
    one: Hashable
    other: Hashable
    apart: Fraction
    distance: divergences.Distance

    @cached_property
    def loss(self) -> divergences.Between:
        """Return bounds on the loss that this pair shows."""
        if self.apart:
            return self.distance.bounds.over(self.apart)
        if self.distance.bounds.upper == 0:
            return divergences.Between(0.0, 0.0)
        return divergences.Between(math.inf if self.distance.bounds.lower else 0.0, math.inf)

    @cached_property
    def exact(self) -> divergences.Exact | None:
        """Return the loss that this pair shows, where it has a closed form."""
        if self.distance.exact is None or not self.apart:
            return None
        return divergences.divided(self.distance.exact, self.apart)


@dataclass(frozen=True)
class Loss:
    """The smallest budget that the given laws satisfy, in the scale of the output premetric.

    `witness` is a pair that attains it (None if all laws are alike). The scale of
    normalised-renyi and gaussian is that of rho and mu; budgets are told in the squares.
    """

    bounds: divergences.Between
    exact: divergences.Exact | None
    witness: Pair | None
    by_universe: Mapping[Hashable, Loss] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """Whether a promise was kept, and the pair that decided.

    Vacuous: no two data sets given share a universe at a finite distance, so nothing was
    promised about them and nothing was checked.
    """

    answer: Literal["satisfied", "violated", "undecided", "vacuous"]
    loss: Loss
    witness: Pair | None
    told: str


def exact_loss_of(
    laws: Mapping[Point, divergences.Law],
    apart: Apart[Point],
    output: OutputPremetric,
    universe_of: Universe[Point] | None = None,
) -> Loss:
    """Return the loss of a mechanism known by its law on each of some data sets.

    >>> laws = {0: {"a": Fraction(3, 4), "b": Fraction(1, 4)},
    ...         1: {"a": Fraction(1, 4), "b": Fraction(3, 4)}}
    >>> loss = exact_loss_of(laws, lambda x, y: abs(x - y), OutputPremetric(name="multiplicative"))
    >>> str(loss.exact), loss.witness.distance.outcome
    ('ln(3)', 'a')
    """
    return loss_of(pairs(laws, apart, between(laws, output), universe_of))


def verify(
    laws: Mapping[Point, divergences.Law],
    apart: Apart[Point],
    output: OutputPremetric,
    budget: Budget | Callable[[Hashable], Budget],
    universe_of: Universe[Point] | None = None,
) -> Verdict:
    """Tell whether laws satisfy a budget, which may be a function of the universe."""
    return judge(pairs(laws, apart, between(laws, output), universe_of), output, budget)


def between(laws: Mapping[Point, divergences.Law], output: OutputPremetric) -> Measure[Point]:
    """Return the output premetric as a function of two data sets with known laws."""
    rows = divergences.aligned(laws.values())
    place = {point: number for number, point in enumerate(laws)}
    return lambda one, other: divergences.distance_in(
        rows, place[one], place[other], output.name, delta=output.delta, order=output.order
    )


def pairs(
    points: Iterable[Point],
    apart: Apart[Point],
    measure: Measure[Point],
    universe_of: Universe[Point] | None = None,
) -> list[Pair]:
    """Return every pair of data sets in one universe at a finite distance, in both orders.

    Where both orders are equally far apart, one stands for both: the output premetrics
    are symmetric (the larger of both directions).
    """
    universes: dict[Hashable, list[Point]] = {}
    for point in points:
        universes.setdefault(universe_of(point) if universe_of else None, []).append(point)
    found = []
    for universe, members in universes.items():
        for one, other in combinations(members, 2):
            there, back = apart(one, other), apart(other, one)
            ways = [(one, other, there)] + [(other, one, back)] * (back != there)
            finite = [(x, y, Fraction(d)) for x, y, d in ways if d != math.inf]
            if any(d < 0 for _, _, d in finite):
                raise BadInput("an input premetric must not be negative.")
            if finite:
                distance = measure(one, other)
                found += [Pair(universe, x, y, d, distance) for x, y, d in finite]
    return found


# -- the loss -----------------------------------------------------------------------------------


def loss_of(compared: Iterable[Pair]) -> Loss:
    """Return the largest loss that any of the pairs shows, also per universe."""
    universes: dict[Hashable, list[Pair]] = {}
    for pair in compared:
        universes.setdefault(pair.universe, []).append(pair)
    parts = {universe: _largest(members) for universe, members in universes.items()}
    whole = _largest([pair for members in universes.values() for pair in members])
    return Loss(whole.bounds, whole.exact, whole.witness, parts)


def _largest(members: list[Pair]) -> Loss:
    if not members:
        return Loss(divergences.Between(0.0, 0.0), Fraction(0), None)
    witness = members[0]
    for pair in members[1:]:
        if _larger(pair, witness):
            witness = pair
    bounds = divergences.Between(
        max(pair.loss.lower for pair in members), max(pair.loss.upper for pair in members)
    )
    closed = all(pair.exact is not None for pair in members if pair.loss.upper >= bounds.lower)
    if bounds.upper == 0:
        return Loss(bounds, Fraction(0), None)
    return Loss(bounds, witness.exact if closed else None, witness)


def _larger(one: Pair, other: Pair) -> bool:
    """Tell whether the first pair shows more loss; exactly, if both have a closed form."""
    if one.loss.lower > other.loss.upper or one.loss.upper < other.loss.lower:
        return one.loss.lower > other.loss.upper
    if one.exact is not None and other.exact is not None:
        return not divergences.at_most(one.exact, other.exact)
    return one.loss.lower > other.loss.lower


# -- the verdict --------------------------------------------------------------------------------


def judge(
    compared: list[Pair], output: OutputPremetric, budget: Budget | Callable[[Hashable], Budget]
) -> Verdict:
    """Tell whether every pair keeps the budget of its universe.

    Exact for distances with a closed form (whole numbers are compared); elsewhere decided
    by certified bounds, and undecided where these overlap.
    """
    broken: list[Pair] = []
    open_: list[Pair] = []
    budgets: dict[Hashable, Budget] = {}
    for pair in compared:
        if pair.universe not in budgets:
            budgets[pair.universe] = budget(pair.universe) if callable(budget) else budget
            _check_unit(output, budgets[pair.universe])
        kept = keeps(pair, budgets[pair.universe])
        if not kept:
            (broken if kept is False else open_).append(pair)
    loss = loss_of(compared)
    if not compared:
        return Verdict("vacuous", loss, None, "no two data sets are compared: nothing is checked")
    if broken:
        witness = _largest(broken).witness or broken[0]
        return Verdict("violated", loss, witness, _told(witness, output, "breaks the budget"))
    if open_:
        witness = _largest(open_).witness or open_[0]
        told = _told(witness, output, "is too close to the budget to tell")
        return Verdict("undecided", loss, witness, told)
    return Verdict("satisfied", loss, loss.witness, f"all {len(compared)} pairs keep it")


def keeps(pair: Pair, budget: Budget) -> bool | None:
    """Tell whether a pair keeps a budget; None if its bounds do not decide."""
    amount, distance = budget.amount, pair.distance
    if isinstance(amount, NoFiniteBudget):
        return True  # an infinite budget, also at distance 0
    if isinstance(amount, FunctionOfUniverse):
        raise BadInput("the budget is a function of the universe: give its facts first.")
    if distance.bounds.lower == math.inf:
        return False
    squared = budget.unit in ("rho2", "mu2")
    allowed = _times(amount, pair.apart**2 if squared else pair.apart)
    exact = _square(distance.exact) if squared else distance.exact
    if exact is not None:
        return divergences.at_most(exact, allowed)
    bounds = distance.bounds.squared() if squared else distance.bounds
    limit = divergences.bounds_of(allowed)
    if bounds.upper <= limit.lower:
        return True
    return False if bounds.lower > limit.upper else None


def _times(amount: LogRational | Exactly, factor: Fraction) -> divergences.Exact:
    if isinstance(amount, Exactly) or factor == 0:
        return amount.of * factor
    return divergences.LogOf(amount.of, 1 / (amount.times * factor))


def _square(number: divergences.Exact | None) -> divergences.Exact | None:
    if isinstance(number, divergences.RootOf):
        return number.of
    return number**2 if isinstance(number, Fraction) else None


def _check_unit(output: OutputPremetric, budget: Budget) -> None:
    unit = output.properties.unit
    if budget.unit != unit:
        raise BadInput(
            f"budgets for the output premetric '{output.name}' are told in {unit}, this one in "
            f"{budget.unit}. Convert the specification first."
        )


def _told(pair: Pair, output: OutputPremetric, what: str) -> str:
    """Return the witness in words: distances only, no data."""
    found = pair.distance.bounds
    shown = "infinite" if found.lower == math.inf else f"{float(found):.9g}"
    each = f"; delta = {output.delta} stands for each pair" if output.delta is not None else ""
    return f"a pair at distance {pair.apart} with {output.name} distance {shown} {what}{each}"
