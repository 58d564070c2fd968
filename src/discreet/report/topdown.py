"""The page of the errors of a TopDown release: internal, since it compares with the truth."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

from discreet.census import SIMULATED
from discreet.evaluate import MEASURES, TopDownStudy
from discreet.files import write_text
from discreet.report import topdown_figures as figures
from discreet.report import words
from discreet.report.template import fill

FILTERS = ("count", "decimal", "signed", "sentence")


def write_topdown_report(path: Path, study: TopDownStudy) -> Path:
    """Write the page as one HTML file, readable by its owner only, and return its path."""
    write_text(path, render_topdown(study), 0o600)
    return path


def render_topdown(study: TopDownStudy) -> str:
    """Return the page of a study as HTML."""
    return fill(
        "topdown.html",
        {name: getattr(words, name) for name in FILTERS},
        banner=_banner(study),
        study=study,
        tiles=_tiles(study),
        measures={name: told for name, told in MEASURES.items() if name in _counted(study)},
        overall=figures.overall_rows(study),
        sizes=figures.size_figure(study),
        adults=figures.size_figure(study, "adults"),
        cells=figures.size_figure(study, "cells"),
        bias=figures.bias_figure(study),
        theory=figures.theory_figure(study),
        fitness=figures.fitness_figure(study),
        version=importlib.metadata.version("discreet"),
    )


def _counted(study: TopDownStudy) -> set[str]:
    return {name for one in study.levels for name in one.measures}


def _banner(study: TopDownStudy) -> list[tuple[str, str]]:
    """Return what every reader must know first, each with a short name."""
    said = []
    if study.origin == "simulated":
        name, text = SIMULATED.rstrip(".").split(": ", 1)
        said.append((name, text))
    return [*said, ("Internal", "compares with the truth; no part of the release")]


def _tiles(study: TopDownStudy) -> list[tuple[str, str]]:
    """Return the few numbers to start from, each with its words."""
    smallest = study.smallest
    block = words.level_title(study.schema, smallest.level)
    total = smallest.measures["total"].overall
    tiles = [
        (words.count(study.persons), "persons"),
        (words.count(smallest.areas), f"areas of level {block}"),
        (words.decimal(total.mean_absolute), f"mean absolute error of a {block}'s population"),
    ]
    upper = [one for one in figures.spine(study) if one.level != smallest.level]
    if upper:
        name = words.level_title(study.schema, upper[0].level)
        error = upper[0].measures["total"].overall.mean_absolute
        tiles.append((words.decimal(error), f"mean absolute error of a {name}'s population"))
    return tiles
