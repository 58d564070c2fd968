"""Do the directions that Ballesteros et al. (2025) report come out on another census?

Nothing is asserted: each direction is a comparison of computed numbers, judged run by run
and rate by rate, and told as found. The paper speaks of its own method on synthetic data
of five states; that another method or another census behaves otherwise is no error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from discreet.evaluate.swap_results import (
    Floats,
    SwapResult,
    SwapRun,
    SwapStudy,
    relative_errors,
)

Answer = Literal["same", "not the same", "not in every run", "cannot be told"]

#: With fewer areas, or fewer targets in a run, chance decides which way a number goes.
FEWEST_AREAS = 50
FEWEST_TARGETS = 200

#: Fewer groups than this have no rank correlation worth a word.
FEWEST_GROUPS = 3


@dataclass(frozen=True)
class Finding:
    """What came out for one method, and the numbers it follows from."""

    method: str
    answer: Answer
    told: str


@dataclass(frozen=True)
class Direction:
    """One direction: what the paper says, where, and what was found for each method."""

    name: str
    statement: str
    section: str
    findings: tuple[Finding, ...]


#: The outcome of each comparison of a direction, and the numbers in words.
Judged = tuple[Sequence[bool], str]
Judge = Callable[[SwapStudy, Sequence[SwapResult]], Judged]


def directions(study: SwapStudy) -> tuple[Direction, ...]:
    """Return every direction with what was found."""
    group, level, area = (
        name.replace("_", " ") for name in (study.group, study.level, study.errors_at)
    )
    largest = study.groups[0]
    listed: tuple[tuple[str, str, str, Judge], ...] = (
        ("entropy", f"swapping raises the mean {level} entropy of {group}", "4.4", _rises),
        ("entropy by rate", "a higher rate raises it more", "4.4", _rises_more),
        ("targets leave", "targets leaving alone lowers it", "4.4", _targets_leave),
        (
            "partners leave",
            "partners leaving alone lowers it too, but less than targets do",
            "4.4",
            _partners_leave,
        ),
        ("arrivals", "targets arriving and partners arriving each raise it", "4.4", _arrivals),
        (
            "largest group",
            f"the largest group ({largest}) is under-represented among targeted persons, "
            "but not absent",
            "4.4",
            _largest_group,
        ),
        (
            "mixed households",
            "mixed households are over-represented among the swapped",
            "4.4",
            _mixed,
        ),
        (
            "household size",
            "size decides too who is targeted: targeted households are larger",
            "4.4",
            _size,
        ),
        (
            "mean error",
            f"errors of each group add up to zero over all areas of level {area}",
            "4.2",
            _zero,
        ),
        ("absolute errors", f"by {area}, larger groups have larger errors", "4.2", _absolute),
        ("relative errors", "relative to their size, smaller groups do", "4.2", _relative),
        ("variance", "the variance between runs rises with the rate", "4.3", _variance),
    )
    return tuple(
        Direction(name, said, section, tuple(_find(study, one, judge) for one in study.methods))
        for name, said, section, judge in listed
    )


def caution(study: SwapStudy) -> str:
    """Return why the directions of a study mean little, or nothing if the study is large enough."""
    targets = min(run.targets.households for result in study.results for run in result.runs)
    if study.areas >= FEWEST_AREAS and targets >= FEWEST_TARGETS:
        return ""
    level = study.level.replace("_", " ")
    return (
        f"directions mean little on so small a census: {study.areas} areas of level {level}, and "
        f"as few as {targets} targets in a run"
    )


def _find(study: SwapStudy, method: str, judge: Judge) -> Finding:
    outcomes, told = judge(study, study.of(method))
    if not outcomes:
        return Finding(method, "cannot be told", told)
    answer: Answer = "not in every run"
    if all(outcomes) or not any(outcomes):
        answer = "same" if outcomes[0] else "not the same"
    return Finding(method, answer, told)


# -- mixing -------------------------------------------------------------------------------


def _rises(study: SwapStudy, results: Sequence[SwapResult]) -> Judged:
    def change(run: SwapRun) -> float:
        return run.entropy - study.entropy

    outcomes = [change(run) > 0 for result in results for run in result.runs]
    return outcomes, _by_rate(results, lambda result: f"{result.mean(change):+.4f}")


def _rises_more(study: SwapStudy, results: Sequence[SwapResult]) -> Judged:
    outcomes = [
        more.entropy > less.entropy
        for low, high in pairwise(results)
        for less, more in zip(low.runs, high.runs, strict=True)
    ]
    changes = [result.mean(lambda run: run.entropy) - study.entropy for result in results]
    if not outcomes:
        return outcomes, "one rate only"
    if changes[0] <= 0:
        return outcomes, f"from {changes[0]:+.4f} to {changes[-1]:+.4f}"
    return outcomes, f"{changes[-1] / changes[0]:.1f} times the change of the lowest rate"


def _part(part: str, results: Sequence[SwapResult]) -> str:
    return _by_rate(results, lambda result: f"{result.mean(lambda run: run.alone[part]):+.4f}")


def _targets_leave(study: SwapStudy, results: Sequence[SwapResult]) -> Judged:
    part = "targets leave"
    return [run.alone[part] < 0 for run in _runs(results)], _part(part, results)


def _partners_leave(study: SwapStudy, results: Sequence[SwapResult]) -> Judged:
    part = "partners leave"
    outcomes = [run.alone["targets leave"] < run.alone[part] < 0 for run in _runs(results)]
    return outcomes, _part(part, results)


def _arrivals(study: SwapStudy, results: Sequence[SwapResult]) -> Judged:
    parts = ("targets arrive", "partners arrive")
    outcomes = [all(run.alone[part] > 0 for part in parts) for run in _runs(results)]
    return outcomes, "; ".join(f"{part.split()[0]} {_part(part, results)}" for part in parts)


# -- who ----------------------------------------------------------------------------------


def _largest_group(study: SwapStudy, results: Sequence[SwapResult]) -> Judged:
    share = float(study.everybody.shares[0])
    found = [float(run.targets.shares[0]) for run in _runs(results) if run.targets.households]
    told = _by_rate(results, lambda r: f"{r.mean(lambda run: float(run.targets.shares[0])):.1%}")
    return [0 < one < share for one in found], f"{told}; of all {share:.1%}"


def _mixed(study: SwapStudy, results: Sequence[SwapResult]) -> Judged:
    share = study.everybody.share_mixed
    found = [_mixed_of_swapped(run) for run in _runs(results) if run.targets.households]
    told = _by_rate(results, lambda result: f"{result.mean(_mixed_of_swapped):.1%}")
    return [one > share for one in found], f"{told}; of all {share:.1%}"


def _mixed_of_swapped(run: SwapRun) -> float:
    """Return the share of mixed households among targets and partners."""
    swapped = run.targets.households + run.partners.households
    return (run.targets.mixed + run.partners.mixed) / max(swapped, 1)


def _size(study: SwapStudy, results: Sequence[SwapResult]) -> Judged:
    size = study.everybody.mean_size
    found = [run.targets.mean_size for run in _runs(results) if run.targets.households]
    told = _by_rate(results, lambda r: f"{r.mean(lambda run: run.targets.mean_size):.2f}")
    return [one > size for one in found], f"{told} persons; all {size:.2f}"


# -- counts -------------------------------------------------------------------------------


def _zero(study: SwapStudy, results: Sequence[SwapResult]) -> Judged:
    outcomes = [not run.errors.sum(axis=0).any() for run in _runs(results)]
    return outcomes, "exactly, in every run" if all(outcomes) else "not exactly"


def _absolute(study: SwapStudy, results: Sequence[SwapResult]) -> Judged:
    return _ranked(study, results, 1, lambda run: np.abs(run.errors).mean(axis=0))


def _relative(study: SwapStudy, results: Sequence[SwapResult]) -> Judged:
    def measure(run: SwapRun) -> Floats:
        away: Floats = np.abs(relative_errors(study.counts, run.errors) - 1).mean(axis=0)
        return away

    return _ranked(study, results, -1, measure)


def _ranked(
    study: SwapStudy,
    results: Sequence[SwapResult],
    sign: int,
    measure: Callable[[SwapRun], Floats],
) -> Judged:
    """Judge by the rank correlation of a measure with the size of the group."""
    if len(study.groups) < FEWEST_GROUPS:
        return [], "too few groups"
    sizes = study.persons.astype(np.float64)
    found = {id(run): rank_correlation(sizes, measure(run)) for run in _runs(results)}
    told = _by_rate(results, lambda result: f"{result.mean(lambda run: found[id(run)]):+.2f}")
    return [sign * value > 0 for value in found.values()], f"rank correlation {told}"


def _variance(study: SwapStudy, results: Sequence[SwapResult]) -> Judged:
    found = [result.variance for result in results if result.variance is not None]
    if len(found) < len(results) or len(found) < 2:
        return [], "one run or one rate only"
    return [a < b for a, b in pairwise(found)], _by_rate(results, lambda r: f"{r.variance:.2f}")


# -- what they share ------------------------------------------------------------------------------


def rank_correlation(one: Floats, other: Floats) -> float:
    """Return Spearman's rank correlation; 0 if all values of one are equal.

    >>> rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([9.0, 5.0, 1.0]))
    -1.0
    """
    left, right = (_ranks(values) - (values.size - 1) / 2 for values in (one, other))
    scale = float(np.sqrt((left @ left) * (right @ right)))
    return float(left @ right) / scale if scale else 0.0


def _ranks(values: Floats) -> Floats:
    """Return ranks from 0; equal values share the mean of theirs."""
    below = (values[:, None] > values).sum(axis=1)
    equal = (values[:, None] == values).sum(axis=1)
    shared: Floats = below + (equal - 1) / 2
    return shared


def _runs(results: Sequence[SwapResult]) -> list[SwapRun]:
    return [run for result in results for run in result.runs]


def _by_rate(results: Sequence[SwapResult], tell: Callable[[SwapResult], str]) -> str:
    return ", ".join(f"{tell(result)} at {100 * float(result.rate):.3g} %" for result in results)
