"""Plan a strategy: the noise each share buys, and the shares that wanted noise costs.

Margins of error are those of the measurements, before estimation: 1.645 standard
deviations, 90 percent of a normal distribution. The discrete Gaussian of parameter sigma^2
has variance below sigma^2 (Canonne, Kamath and Steinke 2020), so the
margins shown are never too small on its account.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.census import load_schema
from discreet.errors import BadInput
from discreet.mechanisms.targets import read_targets
from discreet.mechanisms.topdown.certificate import DELTA, Certificate, certificate
from discreet.mechanisms.topdown.histogram import Histogram
from discreet.mechanisms.topdown.promise import check_at_least_one, check_noise, check_quarters
from discreet.mechanisms.topdown.strategy import (
    DETAILED,
    TOTAL,
    Measured,
    Strategy,
    load_strategy,
)
from discreet.spec import concentrated_to_approximate

#: Standard deviations of a margin of error of 90 percent, as the Census Bureau takes it.
Z = Fraction(1645, 1000)

#: Why the budgets of some strategies are not added up.
NOT_ADDED = (
    "several of these strategies count the same. On the same people or dwellings their rho^2 "
    "would add up; on others (the United States and Puerto Rico) each record is in one of them "
    "only. Plan together what measures the same data"
)

#: Digits kept when the budget of a target is rounded up.
DIGITS = 6


@dataclass(frozen=True)
class Noise:
    """The noise of one query at one level."""

    level: str
    query: str
    rho: Fraction
    sigma2: Fraction

    @property
    def margin(self) -> float:
        """Return the margin of error at 90 percent."""
        return float(Z) * math.sqrt(self.sigma2)

    def as_row(self) -> tuple[str, ...]:
        """Return the noise as cells of a table."""
        sigma2 = float(self.sigma2)
        numbers = (f"{float(self.rho):.6f}", f"{sigma2:.4f}", f"{math.sqrt(sigma2):.4f}")
        return f"  {self.query}", *numbers, f"{self.margin:.2f}"

    def as_data(self) -> dict[str, Any]:
        """Return the noise as plain data, exact numbers as text."""
        return {
            "level": self.level,
            "query": self.query,
            "rho2": str(self.rho),
            "sigma2": str(self.sigma2),
            "sigma2_decimal": float(self.sigma2),
            "sigma": math.sqrt(self.sigma2),
            "margin_of_error": self.margin,
        }


@dataclass(frozen=True)
class TotalError:
    """The expected error of the totals of one level after estimation."""

    level: str
    children: int
    measured: float
    variance: float

    def as_data(self) -> dict[str, Any]:
        """Return the error as plain data."""
        return {
            "level": self.level,
            "children_per_parent": self.children,
            "sigma2_measured": self.measured,
            "variance": self.variance,
            "root_mean_square": math.sqrt(self.variance),
            "margin_of_error": float(Z) * math.sqrt(self.variance),
        }


@dataclass(frozen=True)
class Plan:
    """The noise of a whole strategy, its certificate and the expected error of totals."""

    strategy: Strategy
    noise: tuple[Noise, ...]
    certificate: Certificate
    totals: tuple[TotalError, ...] = ()

    def describe(self) -> list[str]:
        """Return the plan as lines of text."""
        lines = [f"{self.strategy.name}: {self.strategy.title}", ""]
        rows: list[tuple[str, ...]] = [("level, query", "rho^2", "sigma^2", "sigma", "margin")]
        for measured in self.strategy.levels:
            rows.append((measured.level, f"{float(self.strategy.rho_of(measured.level)):.6f}"))
            rows += [one.as_row() for one in self.noise if one.level == measured.level]
        lines += _aligned(rows)
        lines += ["(margin of error of a measurement: 90 percent, 1.645 sigma)", ""]
        if self.totals:
            lines.append("expected error of totals after estimation, where no bound is active:")
        for total in self.totals:
            error = math.sqrt(total.variance)
            lines.append(
                f"  {total.level} ({total.children} in each parent): root mean square "
                f"{error:.2f}, margin {float(Z) * error:.2f}"
            )
        return [*lines, *[""] * bool(self.totals), *self.certificate.describe()]

    def as_data(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        levels = self.strategy.level_names
        return {
            "strategy": self.strategy.name,
            "root": self.strategy.root,
            "rho2": str(self.strategy.rho),
            "rho2_decimal": float(self.strategy.rho),
            "levels": [
                {"level": level, "rho2": str(spent), "rho2_decimal": float(spent)}
                for level, spent in ((level, self.strategy.rho_of(level)) for level in levels)
            ],
            "noise": [one.as_data() for one in self.noise],
            "totals": [one.as_data() for one in self.totals],
            "certificate": self.certificate.as_data(),
        }


#: The width of the columns of a plan, unless a number is wider.
WIDTHS = (32, 12, 14, 10, 10)


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows as lines: the first column to the left, numbers to the right, never joined."""
    wide = [
        max(least, *(len(row[place]) + 1 for row in rows if place < len(row)))
        for place, least in enumerate(WIDTHS)
    ]
    numbers = ["".join(map(str.rjust, row[1:], wide[1:])) for row in rows]
    return [row[0].ljust(wide[0]) + right for row, right in zip(rows, numbers, strict=True)]


def prepare(
    name: str,
    root: str | None = None,
    targets: Mapping[tuple[str, str], Fraction] | None = None,
    schema: str | None = None,
) -> Strategy:
    """Return a strategy with a lower root, or made to meet targets, checked against a schema.

    Its noise is checked, too: one that nothing can draw is no plan.
    """
    strategy = load_strategy(name)
    if root is not None:
        strategy = strategy.rooted(root)
    if targets:
        strategy = meet(strategy, targets)
    if schema is not None:
        histogram = Histogram(strategy, load_schema(schema))
        check_quarters(histogram)
        check_at_least_one(histogram)
    check_noise(strategy)
    return strategy


def plan(strategy: Strategy, children: Sequence[int] = (), delta: Fraction = DELTA) -> Plan:
    """Return the noise of every query, and with `children` the expected error of totals."""
    noise = tuple(
        Noise(level.level, query, strategy.rho_of(level.level, query), sigma2)
        for level in strategy.levels
        for query in level.queries
        for sigma2 in [strategy.sigma2(level.level, query)]
    )
    totals = expected_totals(strategy, children) if children else ()
    return Plan(strategy, noise, certificate(strategy, delta), totals)


def expected_totals(strategy: Strategy, children: Sequence[int]) -> tuple[TotalError, ...]:
    """Return the variance of totals that are estimated first, from the top down.

    With K siblings of equal noise the least-squares totals that add up to the parent's are
    the measured ones less the mean excess, so the error of a child is its noise, less the
    mean noise of the siblings, plus a Kth of the error of the parent: its variance is
    sigma^2 (1 - 1/K) + Var(parent)/K^2 (ours, proved here: noise minus its mean is
    uncorrelated with the mean). Bounds and only children are left out of account.
    `children` are typical numbers for each level below the one whose totals are exact.
    """
    names = strategy.level_names
    if strategy.total is None:
        raise BadInput(f"strategy {strategy.name} has no exact totals to start from.")
    below = names[names.index(strategy.total) + 1 :]
    first = [level for level in below if level in strategy.total_first]
    if below[: len(first)] != first or not first:
        raise BadInput(
            f"strategy {strategy.name} does not estimate totals first below {strategy.total}, so "
            f"there is no simple theory of their error. Leave the numbers of children out."
        )
    if len(children) not in (len(first), len(below)) or min(children) < 1:
        raise BadInput(
            f"give the number of children of a parent for each level below {strategy.total}, "
            f"at least 1 each: {', '.join(below)}."
        )
    found, variance = [], 0.0
    for level, count in zip(first, children, strict=False):
        own = float(strategy.sigma2(level, TOTAL))
        variance = own * (1 - 1 / count) + variance / count**2
        found.append(TotalError(level, count, own, variance))
    return tuple(found)


def together(strategies: Sequence[Strategy], delta: Fraction = DELTA) -> dict[str, Any]:
    """Return the budget of several strategies on the same people and dwellings.

    Strategies that count the same may be for different people, so these are not added up.
    """
    names = [strategy.name for strategy in strategies]
    if len({strategy.count for strategy in strategies}) != len(strategies):
        return {"strategies": names, "rho2": None, "reason": NOT_ADDED}
    rho = sum((strategy.rho for strategy in strategies), Fraction(0))
    return {
        "strategies": names,
        "rho2": str(rho),
        "rho2_decimal": float(rho),
        "epsilon": float(concentrated_to_approximate(rho, delta, "tight").amount),
        "epsilon_bun_steinke": float(concentrated_to_approximate(rho, delta).amount),
        "neighbours": "at most one record of each strategy is replaced by another",
    }


# -- the inverse ----------------------------------------------------------------------------


def targets_of(texts: Sequence[str]) -> dict[tuple[str, str], Fraction]:
    """Return the margin by level and query of targets written `LEVEL:QUERY=MARGIN`."""
    return read_targets(texts, "LEVEL:QUERY=MARGIN", "county:total=3")


def rho_for(margin: Fraction) -> Fraction:
    """Return a rho^2, rounded up, for which a query has at most this margin of error.

    >>> rho_for(Fraction(2))
    Fraction(676507, 1000000)
    """
    exact = Z * Z / (margin * margin)
    # The largest power of ten that keeps the digits: at least 10^(DIGITS - 1) units.
    unit = Fraction(10) ** (math.floor(math.log10(exact)) - DIGITS + 1)
    return math.ceil(exact / unit) * unit


def meet(strategy: Strategy, targets: Mapping[tuple[str, str], Fraction]) -> Strategy:
    """Return the strategy whose named queries meet their margins of error.

    Each named query gets what its target needs, no more, and is added if it was not asked;
    all others keep their noise. So rho^2 may grow or fall.
    """
    spent = {
        measured.level: {q: strategy.rho_of(measured.level, q) for q in measured.queries}
        for measured in strategy.levels
    }
    for (level, query), margin in targets.items():
        strategy.at(level)
        strategy.factors(query)
        spent[level][query] = rho_for(margin)
    rho = sum((sum(queries.values(), Fraction(0)) for queries in spent.values()), Fraction(0))
    levels = []
    for level, queries in spent.items():
        own = sum(queries.values(), Fraction(0))
        order = sorted(queries, key=lambda query: (query != TOTAL, query == DETAILED))
        parts = {query: queries[query] / own for query in order}
        levels.append(Measured(level=level, share=own / rho, queries=parts))
    base = strategy.name.removesuffix("-planned")
    asked = ", ".join(f"{level}:{query}={margin}" for (level, query), margin in targets.items())
    changes = {
        "name": f"{base}-planned",
        "title": f"{strategy.title}, planned for margins of error {asked}",
        "citations": [*strategy.citations, "ours: shares planned from target margins of error"],
        "rho": rho,
        "levels": levels,
    }
    return strategy.changed(changes)
