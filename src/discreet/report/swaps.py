"""The page of a study of swaps: what was run, which directions came out, and every number."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discreet.census import SIMULATED
from discreet.evaluate import Direction, SwapStudy, caution, directions
from discreet.files import write_text
from discreet.report import swap_figures as figures
from discreet.report import words
from discreet.report.curves import percent_plain
from discreet.report.swap_figures import highest_rate, labels_of, top_rate
from discreet.report.template import fill

#: How an answer is marked, and its look.
MARKS = {
    "same": ("✓", "tick"),
    "not the same": ("✗", "cross"),
    "not in every run": ("≈", "cross"),
    "cannot be told": ("–", "none"),
}


#: More methods than this stand in narrow columns.
FEW_METHODS = 3


@dataclass(frozen=True)
class Trade:
    """Who traded places with whom: pairs by class of target (row) and of partner."""

    method: str
    classes: tuple[str, ...]
    pairs: list[tuple[str, list[tuple[int, float]]]]


def write_swap_report(path: Path, study: SwapStudy) -> Path:
    """Write the page of a study as one HTML file that needs nothing else, and return its path.

    A study takes simulated data only, so everybody may read it.
    """
    write_text(path, render_swaps(study))
    return path


def render_swaps(study: SwapStudy) -> str:
    """Return the page of a study as HTML."""
    found = directions(study)
    return fill(
        "swaps.html",
        _filters(),
        banner=_banner(),
        study=study,
        seeds=[run.seed for run in study.results[0].runs],
        group=words.plain(study.group),
        level=words.level_title(study.schema, study.level),
        area=words.level_title(study.schema, study.errors_at),
        rate=top_rate(study),
        tiles=_tiles(study, found),
        directions=found,
        caution=caution(study),
        wide=len(study.methods) > FEW_METHODS,
        marks=MARKS,
        same=_same(study, found),
        entropy=figures.entropy_figure(study),
        parts=figures.parts_figure(study),
        groups=figures.groups_figure(study),
        sizes=figures.sizes_figure(study),
        mixed=figures.mixed_figure(study),
        trades=trades_of(study),
        errors=figures.errors_figure(study),
        relative=figures.relative_figure(study),
        totals_kept=not any(
            run.errors.sum(axis=1).any() for result in study.results for run in result.runs
        ),
        variance=figures.variance_figure(study),
        version=importlib.metadata.version("discreet"),
    )


def _filters() -> dict[str, Callable[..., str]]:
    """Return how the template may show a number."""
    named = {name: getattr(words, name) for name in ("count", "decimal", "percent", "sentence")}
    return {**named, "told": told, "rate": lambda rate: percent_plain(float(rate))}


def told(text: str) -> str:
    """Return numbers in words as they are printed: true minus signs, and no broken percentage.

    >>> told("-0.0123 at 10 %, 4% of all").replace(chr(160), "_")
    '−0.0123 at_10_%, 4_% of all'
    """
    text = re.sub(r"(?<![\w-])-(?=\d)", "−", text)
    text = re.sub(r"(?<=\d) ?%", "\u00a0%", text)
    return re.sub(r"\bat (?=\d)", "at\u00a0", text)


def _banner() -> list[tuple[str, str]]:
    """Return what every reader must know first, each with a short name."""
    name, text = SIMULATED.rstrip(".").split(": ", 1)
    return [
        (name, text),
        ("As found", "directions are computed from these runs, and none is asserted"),
        ("Reconstructions", "methods from public documents, not any office's own algorithm"),
    ]


def _tiles(study: SwapStudy, found: Sequence[Direction]) -> list[tuple[str, str]]:
    """Return the few numbers to start from, each with its words."""
    level = words.level_title(study.schema, study.level)
    tiles = [
        (words.count(study.everybody.households), "households"),
        (words.count(study.areas), f"areas of level {level}"),
    ]
    same = _same(study, found)
    for method in study.methods[:2]:
        tiles.append((f"{same[method]} of {len(found)}", f"directions as published ({method})"))
    return tiles


def _same(study: SwapStudy, found: Sequence[Direction]) -> dict[str, int]:
    """Return how many directions came out the same for each method."""
    answers = [finding for direction in found for finding in direction.findings]
    return {
        method: sum(one.method == method and one.answer == "same" for one in answers)
        for method in study.methods
    }


def trades_of(study: SwapStudy) -> list[Trade]:
    """Return who traded places with whom at the highest rate, all runs together."""
    classes = (*labels_of(study), "several")
    trades = []
    for result in highest_rate(study):
        pairs = sum((run.exchanged for run in result.runs), np.zeros_like(result.runs[0].exchanged))
        shares = pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1)
        rows = [
            (name, list(zip(pairs[row].tolist(), shares[row].tolist(), strict=True)))
            for row, name in enumerate(classes)
        ]
        trades.append(Trade(result.method, classes, rows))
    return trades
