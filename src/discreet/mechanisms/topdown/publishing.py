"""Estimate from a draw and write the records; the census is not needed and not seen."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from discreet.census import Schema, read_header
from discreet.engine import Engine
from discreet.mechanisms.stages import Stages
from discreet.mechanisms.topdown.active import Estimate
from discreet.mechanisms.topdown.constraints import Facts
from discreet.mechanisms.topdown.design import Design
from discreet.mechanisms.topdown.drawing import Say, also_compiling, estimate_level
from discreet.mechanisms.topdown.estimate import (
    COUNTS,
    bounds_for,
    check_estimate,
    keep_estimate,
    read_estimate,
)
from discreet.mechanisms.topdown.histogram import Histogram
from discreet.mechanisms.topdown.measurement_file import mark
from discreet.mechanisms.topdown.measurement_reader import Measurements
from discreet.mechanisms.topdown.microdata import Blocks, write_release
from discreet.mechanisms.topdown.spine import Spine


def estimate_blocks(
    design: Design, folder: Path, stages: Stages, engine: Engine, say: Say
) -> Blocks:
    """Return whole counts for the blocks from the draw of one strategy.

    A lazy draw holds its estimates, as the measurements depend on them; a full one is
    estimated here, level by level.
    """
    facts = Facts.read(folder / "facts", engine, design.histogram, design.spine)
    bounds = bounds_for(design, facts)
    measured = Measurements(folder / "measurements", engine)
    made: Estimate | None = None
    run, levels = design.strategy.count, design.spine.levels
    for level, name in enumerate(levels):
        size = design.spine.size(level)
        if measured.header.kind == "lazy":
            above, made = (
                made,
                read_estimate(folder / "estimates" / str(level) / COUNTS, size, engine),
            )
            check_estimate(design, level, made, above, bounds)
            continue
        say(level / len(levels), f"estimating {run}: {name}{also_compiling()}")
        make = partial(estimate_level, design, level, made, bounds, measured, stages)
        _, made = keep_estimate(stages, f"{run}-estimated-{level}", make, size, engine)
    if made is None:
        raise AssertionError("a spine has levels")
    return Blocks(design.histogram, made.start, made.cell, made.counted)


def publish_runs(
    histograms: dict[str, Histogram],
    schema: Schema,
    folder: Path,
    out: Path,
    engine: Engine,
    stages: Stages,
    *,
    deployed: bool,
) -> None:
    """Write the protected records of all strategies of a draw as one census."""
    blocks: dict[str, Blocks] = {}
    spine = quarters = None
    for number, (run, histogram) in enumerate(histograms.items()):
        spine = Spine.read(folder / run / "spine", histogram.strategy.level_names, engine)
        design = Design(histogram, spine, deployed)

        def say(part: float, step: str, number: int = number) -> None:
            stages.say((number + 0.9 * part) / len(histograms), step)

        blocks[run] = estimate_blocks(design, folder / run, stages, engine, say)
        if run == "persons" and histogram.strategy.quarters is not None:
            quarters = Facts.read(folder / run / "facts", engine, histogram, spine).units
    if spine is None:
        raise AssertionError("a release has at least one strategy")
    stages.say(0.95, "writing records")
    write_release(
        engine,
        out / "microdata",
        schema,
        engine.read_parquet(folder / "places" / "geography.parquet"),
        spine.codes[-1],
        blocks.get("persons"),
        blocks.get("units"),
        quarters,
        read_header(folder / "places").note,
    )


def copy_measurements(runs: list[str], folder: Path, out: Path, mode: str) -> None:
    """Put the noisy measurements into the release."""
    for run in runs:
        shutil.copytree(folder / run / "measurements", out / "measurements" / run)
        mark(out / "measurements" / run, mode)
