"""The results of a study of swaps, and how they are told as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.census import Schema
from discreet.evaluate.people import Integers

Floats = npt.NDArray[np.float64]

#: The four parts of a swap, in the order they are added up.
COMPONENTS = ("targets leave", "partners leave", "targets arrive", "partners arrive")


@dataclass(frozen=True, eq=False)
class Who:
    """Some households: their persons by group, how large they are, how many are mixed."""

    households: int
    persons: Integers
    sizes: Mapping[int, int]
    mixed: int

    @property
    def shares(self) -> Floats:
        """Return the share of each group among the persons."""
        return self.persons / max(int(self.persons.sum()), 1)

    @property
    def mean_size(self) -> float:
        """Return the mean number of persons per household."""
        return float(self.persons.sum() / max(self.households, 1))

    @property
    def share_mixed(self) -> float:
        """Return the share of households with members of more than one group."""
        return self.mixed / max(self.households, 1)

    def as_data(self, groups: tuple[str, ...]) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {
            "households": self.households,
            "persons": dict(zip(groups, self.persons.tolist(), strict=True)),
            "mean_size": self.mean_size,
            "households_by_size": {str(size): count for size, count in self.sizes.items()},
            "share_mixed": self.share_mixed,
        }


@dataclass(frozen=True, eq=False)
class SwapRun:
    """One draw of one mechanism.

    `entropy` is the mean over areas after the swap; `rose` and `fell` count areas. `alone`
    and `together` are changes of that mean by the parts of the swap, each alone and one
    after the other. `exchanged[a, b]` counts pairs of a target of class a and a partner of
    class b: the number of the only group of the members, or, if there are several, the
    number of groups. `errors` are changes of counts by area and group.
    """

    seed: int
    entropy: float
    rose: int
    fell: int
    alone: Mapping[str, float]
    together: Mapping[str, float]
    targets: Who
    partners: Who
    exchanged: Integers
    errors: Integers
    kilometres: Mapping[str, float]
    swapped: int
    without_partner: int


@dataclass(frozen=True, eq=False)
class SwapResult:
    """One mechanism at one rate, all runs.

    `variance` is V-hat of Ballesteros et al. (2025), section 4.3: the unbiased variance of
    a block's count of a group from run to run, averaged over groups and blocks with persons
    (None for one run). `squared_error` is the mean squared error of these counts.
    """

    method: str
    told: str
    rate: Fraction
    runs: tuple[SwapRun, ...]
    variance: float | None
    squared_error: float

    def mean(self, of: Callable[[SwapRun], float]) -> float:
        """Return the mean over runs."""
        return float(np.mean([of(run) for run in self.runs]))


@dataclass(frozen=True, eq=False)
class SwapStudy:
    """All results on one census.

    `everybody` are all households; `persons` also count those who live in other units, by
    group, and `counts` by area of `errors_at` and group.
    """

    schema: Schema
    group: str
    groups: tuple[str, ...]
    level: str
    errors_at: str
    areas: int
    blocks: int
    entropy: float
    everybody: Who
    persons: Integers
    counts: Integers
    results: tuple[SwapResult, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the names of the methods, in the order they were given."""
        return tuple(dict.fromkeys(result.method for result in self.results))

    def of(self, method: str) -> tuple[SwapResult, ...]:
        """Return the results of a method, the lowest rate first."""
        found = [result for result in self.results if result.method == method]
        return tuple(sorted(found, key=lambda result: result.rate))

    def as_data(self) -> dict[str, Any]:
        """Return the study as plain data."""
        return {
            "schema": self.schema.name,
            "group": self.group,
            "groups": list(self.groups),
            "level": self.level,
            "errors_at": self.errors_at,
            "areas": self.areas,
            "blocks_with_persons": self.blocks,
            "persons": dict(zip(self.groups, self.persons.tolist(), strict=True)),
            "mean_entropy": self.entropy,
            "households": self.everybody.as_data(self.groups),
            "results": [self._result(result) for result in self.results],
        }

    def _result(self, result: SwapResult) -> dict[str, Any]:
        return {
            "method": result.method,
            "told": result.told,
            "rate": str(result.rate),
            "variance_between_runs": result.variance,
            "mean_squared_error": result.squared_error,
            "runs": [self._run(run) for run in result.runs],
        }

    def _run(self, run: SwapRun) -> dict[str, Any]:
        return {
            "seed": run.seed,
            "rate_realised": run.swapped / max(self.everybody.households, 1),
            "without_partner": run.without_partner,
            "mean_entropy": run.entropy,
            "areas_that_rose": run.rose,
            "areas_that_fell": run.fell,
            "change_by_part_alone": dict(run.alone),
            "change_added_up": dict(run.together),
            "targets": run.targets.as_data(self.groups),
            "partners": run.partners.as_data(self.groups),
            "pairs_by_class": run.exchanged.tolist(),
            "errors": error_table(self, run),
            "kilometres": dict(run.kilometres),
        }


def error_table(study: SwapStudy, run: SwapRun) -> dict[str, dict[str, float]]:
    """Return, for each group, errors over the areas of `errors_at`.

    `relative` is the mean distance of the relative error from 1, which is no change.
    """
    relative = np.abs(relative_errors(study.counts, run.errors) - 1)
    return {
        group: {
            "mean": float(run.errors[:, place].mean()),
            "mean_absolute": float(np.abs(run.errors[:, place]).mean()),
            "relative": float(relative[:, place].mean()),
        }
        for place, group in enumerate(study.groups)
    }


def relative_errors(before: Integers, errors: Integers) -> Floats:
    """Return 2 after / (before + after): 1 is unchanged, 0 all gone, 2 all new (1 if 0 and 0).

    The measure of Ballesteros et al. (2025), section 4.2.

    >>> relative_errors(np.array([4, 0, 3, 0]), np.array([0, 2, -3, 0])).tolist()
    [1.0, 2.0, 0.0, 1.0]
    """
    after = before + errors
    both = before + after
    return np.where(both > 0, 2 * after / np.maximum(both, 1), 1.0)
