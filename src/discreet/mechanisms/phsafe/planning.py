"""Plan a run: the noise its budgets buy, what truncation leaves out, and the way back.

Margins of error are 1.645 standard deviations, 90 percent of a normal law, as in Sexton et
al. (2024), Table 10; of geometric noise they are its own quantiles. The discrete Gaussian
of parameter sigma^2 has variance below sigma^2 (Canonne, Kamath and Steinke 2020), so the
margins shown are not too small on its account.

Nothing here looks at a census. The bias of truncation depends on how large households
are, so the sizes have to be given, with where they come from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.errors import BadInput
from discreet.mechanisms.phsafe.accounting import (
    Account,
    Change,
    Noise,
    Part,
    Z,
    budget_for_margin,
    stability,
)
from discreet.mechanisms.phsafe.configuration import Configuration, load_configuration
from discreet.mechanisms.phsafe.promise import CHANGES, Promise
from discreet.mechanisms.phsafe.sizes import Bias, Sizes, truncation_bias, without_sizes
from discreet.mechanisms.targets import read_targets
from discreet.noise import DiscreteGaussian
from discreet.products import sdhc

#: The delta of the published figures.
DELTA = Fraction(1, 10**10)

#: Below, epsilon could not be computed with floats.
SMALLEST_DELTA = Fraction(1, 10**300)

#: Digits kept when the budget of a target is rounded up.
DIGITS = 6

#: What distances between laws are told in, and what is left outside of every promise.
MEASURES = {"rho^2": "normalised Renyi divergence", "epsilon": "multiplicative distance"}
PUBLIC = "public: which blocks have housing units"

#: What margins of error are of each kind of noise, beside those of a release.
MARGINS: dict[Noise, str] = {
    "gaussian": "margins are 1.645 sigma, as in 2020; intervals of a release take 1.6448536",
    "geometric": "margins of cells are quantiles of the noise, of sums 1.645 sigma",
}

#: Margins of error the budgets of 2020 were set for (Sexton et al. 2024, Table 10): the
#: nation, states, and race groups in states, of PH3 and of all other tables.
NATION_2020, STATE_2020, GROUPS_2020, OTHER_GROUPS_2020 = 500, 200, {"PH3": 20}, 68


@dataclass(frozen=True)
class Plan:
    """Noise of every table and level, the promises, and what truncation leaves out."""

    configuration: Configuration
    promises: tuple[Promise, ...]
    biases: tuple[Bias, ...] = ()
    sizes: Sizes | None = None
    #: Measured tables of which no sizes are given, and the key that would give them.
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def account(self) -> Account:
        """Return what the run spends."""
        return self.configuration.account

    def describe(self) -> list[str]:
        """Return the plan as lines of text."""
        unit, settings = self.promises[0].unit, self.configuration
        lines = [": ".join(filter(None, (settings.name, settings.title)))]
        lines.append(f"the account of {settings.territory}; counted: {settings.covered}")
        lines += [f"warning: {settings.remark}"] if settings.remark else []
        lines.append("")
        lines.append(
            f"{'table':<11}{'level':<11}{'tau':>5}{'D':>5}{unit:>11}{'sigma':>10}{'margin':>9}"
            f"{'of the total':>14}"
        )
        for part in self.account.parts:
            cells = len(sdhc.SHELLS[part.table].cells)
            total = f"{margin(part, cells):>14.2f}" if cells > 1 else f"{'':>14}"
            line = (
                f"{part.table:<11}{part.level:<11}{part.threshold or '':>5}{part.stability:>5}"
                f"{float(part.budget):>11.6f}{deviation(part):>10.3f}{margin(part):>9.2f}{total}"
            )
            lines.append(line.rstrip())
        lines += [
            "(D: rows of the counts that one person added or removed may change; margin of error",
            " of a cell, and of the sum of its table's cells: 90 percent)",
            f"({MARGINS[settings.noise]})",
            "",
            f"promised in {MEASURES[unit]}, unit: person; {PUBLIC}:",
        ]
        lines += [line for promise in self.promises for line in promise.describe()]
        if self.sizes is not None:
            lines += ["", *self.sizes.describe(), *(bias.describe() for bias in self.biases)]
        if self.unknown:
            told = ", ".join(f"{table} ({key})" for table, key in self.unknown.items())
            lines.append(f"  not known, for want of the key in brackets: {told}")
        return lines

    def as_data(self) -> dict[str, Any]:
        """Return the plan as plain data, exact numbers as text."""
        told: dict[str, Any] = {
            "configuration": self.configuration.name,
            "title": self.configuration.title,
            "account": self.configuration.territory,
            "states": sorted(self.configuration.states),
            "remark": self.configuration.remark,
            "noise": self.configuration.noise,
            "parts": [_part(part) for part in self.account.parts],
            "output_premetric": MEASURES[self.promises[0].unit],
            "invariants": PUBLIC,
            "promises": [promise.as_data() for promise in self.promises],
        }
        if self.sizes is not None:
            told["truncation"] = {
                **self.sizes.source_as_data(),
                "tables": [bias.as_data() for bias in self.biases],
                "without_sizes": dict(self.unknown),
            }
        return told


def plan(
    configuration: str | Configuration, delta: Fraction = DELTA, sizes: Sizes | None = None
) -> Plan:
    """Return the noise of every table and level, the promises, and with `sizes` the bias.

    Sizes that were measured with noise on the same persons cost what they cost: it is added
    to the promises.
    """
    settings = _settings(configuration)
    if not SMALLEST_DELTA <= delta < 1:
        raise BadInput("delta must lie between 1e-300 and 1.")
    account = settings.account
    unit = "rho^2" if settings.noise == "gaussian" else "epsilon"
    promises = tuple(
        Promise(
            change,
            unit,
            account.published(change) + _charge(sizes, change, unit),
            account.tight(change) + _charge(sizes, change, unit),
            delta,
        )
        for change in CHANGES
    )
    if sizes is None:
        return Plan(settings, promises)
    taus = {part.table: part.threshold for part in account.parts if part.threshold is not None}
    return Plan(settings, promises, truncation_bias(sizes, taus), sizes, without_sizes(sizes, taus))


def _settings(given: str | Configuration) -> Configuration:
    return given if isinstance(given, Configuration) else load_configuration(given)


def _charge(sizes: Sizes | None, change: Change, unit: str) -> Fraction:
    """Return what the sizes themselves cost; by the general rule twice the distance costs four
    times the rho^2, and twice the epsilon.
    """
    if sizes is None or sizes.rho is None:
        return Fraction(0)
    if unit != "rho^2":
        raise BadInput("sizes: noised sizes are charged in rho^2, so the run must be, too.")
    return sizes.rho if change == "add-remove" else 4 * sizes.rho


def deviation(part: Part) -> float:
    """Return the standard deviation of the noise, for the Gaussian its parameter."""
    if part.noise == "gaussian":
        return math.sqrt(part.parameter)
    return 1 / (math.sqrt(2) * math.sinh(float(1 / (2 * part.parameter))))


def margin(part: Part, cells: int = 1) -> float:
    """Return the margin of error (90 percent) of a cell, or of the sum of some cells.

    A cell with geometric noise: the least m with P(|noise| > m) = 2 r^(m+1)/(1 + r) at most
    0.1, r = exp(-1/scale).
    """
    if part.noise == "gaussian" or cells > 1:
        return float(Z) * deviation(part) * math.sqrt(cells)
    rate = -1 / float(part.parameter)
    least = math.log(0.05 * (1 + math.exp(rate))) / rate - 1
    return float(max(math.ceil(least - 1e-12), 0))


def _part(part: Part) -> dict[str, Any]:
    cells = len(sdhc.SHELLS[part.table].cells)
    return {
        "table": part.table,
        "level": part.level,
        "threshold": part.threshold,
        "stability": part.stability,
        "budget": str(part.budget),
        "budget_decimal": float(part.budget),
        "parameter": str(part.parameter),
        "sigma": deviation(part),
        "margin_of_error": margin(part),
        "cells": cells,
        "margin_of_error_of_the_total": margin(part, cells),
        "published": {change: str(part.published(change)) for change in CHANGES},
        "tight": {change: str(part.tight(change)) for change in CHANGES},
    }


# -- the way back -----------------------------------------------------------------------------


def targets_of(texts: Sequence[str]) -> dict[tuple[str, str], Fraction]:
    """Return the margin by table and level of targets written `TABLE:LEVEL=MARGIN`."""
    return read_targets(texts, "TABLE:LEVEL=MARGIN", "'PH3:state_A-G=20'")


def budget_for(table: str, threshold: int | None, wanted: Fraction | int) -> Fraction:
    """Return a rho, rounded up to six digits, for which a cell has at most this margin.

    Refuses margins of noise that is not proved, which keeps the logarithm in range, too.

    >>> budget_for("PH3", 6, 20)
    Fraction(662977, 1000000)
    """
    try:
        DiscreteGaussian(Fraction(wanted) ** 2 / Z**2)
    except BadInput:
        least, largest = (float(Z) * sigma for sigma in (0.1, 1e4))
        raise BadInput(
            f"targets: the margin of {table} is out of range. Noise is proved for margins from "
            f"{least:g} to {largest:g}; leave a level out with the budget 0."
        ) from None
    exact = budget_for_margin(wanted, stability(table, threshold), digits=None)
    digit = Fraction(10) ** (math.floor(math.log10(exact)) - DIGITS + 1)
    return math.ceil(exact / digit) * digit


def budgets_2020(thresholds: Mapping[str, int]) -> dict[str, dict[str, Fraction]]:
    """Return the budgets of 2020 from their margins of error: the 46 rows of Table 10.

    The formula is z^2 D^2 / (2 margin^2) with z = 1.645, rounded to six decimals. (The text
    of Sexton et al. (2024) names z = 1.64, with which the table does not come out.)
    """
    return {
        table: {
            level: budget_for_margin(
                margin_2020(table, level), stability(table, thresholds.get(table))
            )
            for level in shell.levels
        }
        for table, shell in sdhc.SHELLS.items()
    }


def margin_2020(table: str, level: str) -> int:
    """Return the margin of error that a level had to meet in 2020."""
    if level.startswith("usa"):
        return NATION_2020
    return GROUPS_2020.get(table, OTHER_GROUPS_2020) if level == "state_A-G" else STATE_2020


def meet(
    configuration: str | Configuration, targets: Mapping[tuple[str, str], Fraction]
) -> Configuration:
    """Return the configuration whose named levels meet their margins; others stay.

    So the whole may cost more or less.
    """
    settings = _settings(configuration)
    if settings.noise != "gaussian":
        raise BadInput("targets: margins are met with Gaussian noise only.")
    budgets = {table: dict(levels) for table, levels in settings.budgets.items()}
    for (table, level), wanted in targets.items():
        if level not in sdhc.shell_of(table).levels:
            known = ", ".join(sdhc.shell_of(table).levels)
            raise BadInput(f"table {table} has no level '{level}'. Known: {known}.")
        budgets[table][level] = budget_for(table, settings.thresholds.get(table), wanted)
    asked = ", ".join(
        f"{table}:{level}={float(wanted):g}" for (table, level), wanted in targets.items()
    )
    base = settings.name.removesuffix("-planned")
    return load_configuration(
        {
            **settings.model_dump(mode="json"),
            "name": f"{base}-planned".removeprefix("-"),
            "title": f"planned for margins of error {asked}",
            "budgets": budgets,
        }
    )
