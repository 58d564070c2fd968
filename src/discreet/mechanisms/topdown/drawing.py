"""Measure the levels of one strategy, all at once or in turns with the estimation.

A level is one stage: durable before anything reads it, and never measured twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from discreet.census import Census
from discreet.engine import Engine
from discreet.mechanisms.stages import Stages, link
from discreet.mechanisms.topdown.active import Estimate, places_of
from discreet.mechanisms.topdown.answers import answers_from, root_answers_from
from discreet.mechanisms.topdown.constraints import Bounds, Facts, check_facts, facts_of
from discreet.mechanisms.topdown.counts import Counts, block_counts, upwards
from discreet.mechanisms.topdown.design import Design
from discreet.mechanisms.topdown.estimate import (
    bounds_for,
    estimate_children,
    keep_estimate,
    parts,
)
from discreet.mechanisms.topdown.least_squares import descend
from discreet.mechanisms.topdown.measurement import (
    Truth,
    measure_full,
    measure_rows,
    truth_of,
)
from discreet.mechanisms.topdown.measurement_file import (
    Header,
    LevelHeader,
    LevelWriter,
    folder_name,
    write_header,
    writing,
)
from discreet.mechanisms.topdown.measurement_reader import Measurements
from discreet.mechanisms.topdown.top import estimate_root
from discreet.noise import Randomness

#: Residents of one unit that the file of measurements allows, as that of 2020 does: no bound
#: in practice, but 0 where there is no unit.
UNBOUNDED = 99_999

#: Tells how far a run is, as a part of its levels, and what comes now.
Say = Callable[[float, str], None]


class Exact(NamedTuple):
    """What the census holds: counts of all levels, and the invariant ones among them."""

    counts: tuple[Counts, ...]
    facts: Facts


def look(design: Design, census: Census) -> Exact:
    """Count a census, and refuse one that does not satisfy what its invariants demand."""
    found = [block_counts(census, design.histogram, design.spine)]
    for level in range(len(design.spine.levels) - 1, 0, -1):
        found.insert(0, upwards(found[0], design.spine.parents[level], design.histogram.size))
    facts = facts_of(census, design.histogram, design.spine, found[-1])
    check_facts(facts, design.histogram, design.spine, found[-1])
    return Exact(tuple(found), facts)


@dataclass(frozen=True)
class Drawing:
    """One strategy on one census, while it is being measured.

    `known` saves counting the census again where it was counted before.
    """

    design: Design
    census: Census
    rng: Randomness
    stages: Stages
    lazy: bool
    known: Exact | None = None

    @property
    def run(self) -> str:
        """Return what is counted."""
        return self.design.strategy.count

    @property
    def engine(self) -> Engine:
        """Return the engine of the census."""
        return self.census.engine

    @cached_property
    def exact(self) -> Exact:
        """Return what the census holds."""
        return self.known or look(self.design, self.census)

    @property
    def facts(self) -> Facts:
        """Return the invariant counts."""
        return self.exact.facts

    @cached_property
    def bounds(self) -> Bounds:
        """Return the bounds of all levels."""
        return bounds_for(self.design, self.facts)

    @cached_property
    def header(self) -> Header:
        """Return what is asked."""
        design = self.design
        levels = [
            LevelHeader(
                level=name,
                nodes=design.spine.size(level),
                queries={query.name: query.shape or (1,) for query in design.queries(level)},
            )
            for level, name in enumerate(design.spine.levels)
        ]
        return Header(
            kind="lazy" if self.lazy else "full",
            strategy=design.strategy.name,
            histogram=design.histogram.shape,
            levels=levels,
        )

    def truth(self, level: int) -> Truth:
        """Return the exact counts of a level as they are measured."""
        counts, design = self.exact.counts[level], self.design
        return truth_of(
            counts.node,
            counts.cell,
            counts.counted,
            design.spine.size(level),
            design.histogram.size,
        )

    # -- stages -----------------------------------------------------------------------

    def draw(self, folder: Path, say: Say) -> None:
        """Measure all levels, and put everything that was drawn into `folder`."""
        above: Estimate | None = None
        for level, name in enumerate(self.design.spine.levels):
            say(level / len(self.design.spine.levels), f"measuring {self.run}: {name}")
            make = partial(self._measure, level=level, above=above)
            drawn = self.stages.stage(f"{self.run}-measured-{level}", make)
            link(drawn / folder_name(name), folder / "measurements" / folder_name(name))
            if self.lazy:
                part = (level + 0.5) / len(self.design.spine.levels)
                say(part, f"estimating {self.run}: {name}{also_compiling()}")
                above = self._estimate(drawn, folder, level, above)
        write_header(folder / "measurements", self.header)
        self.facts.write(folder / "facts", self.engine)
        self.design.spine.write(folder / "spine", self.engine)

    def _measure(self, path: Path, level: int, above: Estimate | None) -> None:
        codes = self.engine.to_numpy(self.design.spine.codes[level].sort("node").select("code"))
        name = self.design.spine.levels[level]
        with writing(path, self.header, name, codes["code"].tolist(), self.engine) as writer:
            if above is None or not self.lazy:
                self._measure_full(writer, level)
            else:
                self._measure_some(writer, level, above)
            self._constrain(writer, level)
        write_header(path, self.header)

    def _measure_full(self, writer: LevelWriter, level: int) -> None:
        truth, purpose, threads = self.truth(level), f"topdown-{self.run}", self.stages.threads
        listed = [self.design.asked(level, query) for query in self.design.queries(level)]
        for asked, chunk in measure_full(listed, truth, self.rng, purpose, threads=threads):
            if not self.lazy:
                writer.add_full(asked, chunk)
                continue
            places = chunk.node[:, None] * asked.rows + np.arange(asked.rows)
            writer.add_rows(asked, places.ravel(), chunk.value.ravel())

    def _measure_some(self, writer: LevelWriter, level: int, above: Estimate) -> None:
        truth, purpose, threads = self.truth(level), f"topdown-{self.run}", self.stages.threads
        queries, start = self.design.queries(level), self.design.spine.child_start(level - 1)
        for active in parts(self.design, level, above):
            for number, query in enumerate(queries):
                asked = self.design.asked(level, query)
                places = places_of(
                    active.start,
                    active.row,
                    start,
                    active.first,
                    active.last,
                    len(queries),
                    number,
                    asked.rows,
                )
                values = measure_rows(asked, truth, places, self.rng, purpose, threads=threads)
                writer.add_rows(asked, places, values)

    def _constrain(self, writer: LevelWriter, level: int) -> None:
        """Write the bounds and exact totals of a level in the conventional form."""
        bounds, histogram = self.bounds, self.design.histogram
        node = np.arange(self.design.spine.size(level))
        if histogram.strategy.quarters is not None:
            shape, axis = (len(histogram.groups),), histogram.strategy.quarters.axis
            most = self._units(level) * UNBOUNDED
            writer.add_constraint(f"{axis}_total_lb", ">=", shape, node, bounds.lower[level].T)
            writer.add_constraint(f"{axis}_total_ub", "<=", shape, node, most.T)
        exact = bounds.totals[level]
        known = np.flatnonzero(~np.isnan(exact))
        if known.size:
            writer.add_constraint("total", "=", (1,), known, exact[known, None].astype(np.int64))

    def _units(self, level: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        units = self.facts.units
        for depth in range(len(self.design.spine.levels) - 1, level, -1):
            units = self.design.spine.upwards(units, depth)
        return units

    def _estimate(self, drawn: Path, folder: Path, level: int, above: Estimate | None) -> Estimate:
        """Return the estimate of a level that was just measured, and keep it with the draw."""
        measured, design = Measurements(drawn, self.engine), self.design
        kept, made = keep_estimate(
            self.stages,
            f"{self.run}-estimated-{level}",
            lambda: estimate_level(design, level, above, self.bounds, measured, self.stages),
            design.spine.size(level),
            self.engine,
        )
        link(kept, folder / "estimates" / str(level))
        return made


def also_compiling() -> str:
    """Return what to add to a step that has to compile the solver first."""
    kernel: Any = descend
    kept = kernel.stats.cache_path
    if kernel.signatures or (kept and any(Path(kept).glob(f"*.{kernel.__name__}-*.nbi"))):
        return ""
    return " (the first run also compiles, about half a minute)"


def estimate_level(
    design: Design,
    level: int,
    above: Estimate | None,
    bounds: Bounds,
    measured: Measurements,
    stages: Stages,
) -> Estimate:
    """Return the estimate of a level from its measurements and that of the level above."""
    if above is None:
        return estimate_root(design, bounds, root_answers_from(design, measured))
    answers = answers_from(design, measured)
    return estimate_children(design, level, above, bounds, answers, stages.threads)
