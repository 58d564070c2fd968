"""TopDown as a mechanism: measure with noise, estimate from the top down, write records.

The draw is the noisy measurement file and the invariants. In mode `full` everything is
measured in the draw and all estimation happens when the draw is published. In mode
`lazy` a level is measured only where the estimate of the level above can be affected
(`discreet.mechanisms.topdown.active`), so measuring and estimating take turns inside the
draw; each level is durable before the next is touched. Both give the same law of the
output (see the guide), and the same output under one seed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import PrivateAttr, model_validator

from discreet.census import Census, Schema
from discreet.config import Strict, suggest
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.files import read_yaml
from discreet.mechanisms.microdata import write_places
from discreet.mechanisms.stages import Stages
from discreet.mechanisms.topdown.counts import check_types
from discreet.mechanisms.topdown.design import Design
from discreet.mechanisms.topdown.drawing import Drawing, Exact, look
from discreet.mechanisms.topdown.held import check_solvers
from discreet.mechanisms.topdown.histogram import Histogram
from discreet.mechanisms.topdown.promise import (
    check_at_least_one,
    check_noise,
    check_quarters,
    promise,
)
from discreet.mechanisms.topdown.publishing import copy_measurements, publish_runs
from discreet.mechanisms.topdown.released import check_release, released_schema
from discreet.mechanisms.topdown.spine import Spine, spine_of
from discreet.mechanisms.topdown.strategy import Strategy, load_strategy, shipped_strategies
from discreet.mechanisms.topdown.top import check_held_together
from discreet.mechanisms.topdown.universe import blocks_of
from discreet.noise import Randomness
from discreet.products import pl94
from discreet.spec import Specification

RUNS = ("persons", "units")

#: The schema of records that have the cells of the redistricting file.
PL94 = "pl94"

#: Where stages go that nobody keeps.
STAGES = ".stages"


class TopDown(Strict):
    """Measure histograms at every level of the spine with noise, and fit records to them.

    Parameters
    ----------
    census_schema
        The schema of the censuses this mechanism takes.
    persons, units
        The strategy of each: the name of one that comes with discreet, or a whole strategy;
        one of the two may be left out.
    root
        The level to start from; by default that of the strategy. A census of one state
        starts at `state`: what the strategy spends above it is not spent.
    measurements
        "full" measures all, "lazy" only what can matter.
    rounder
        "ours", or "deployed" for the target of the 2020 production system.
    release_measurements
        Whether the noisy measurements are part of the release.
    tables
        Levels for which the redistricting tables P1 to P5 and H1 are part of the release.
    """

    name: ClassVar[str] = "topdown"
    #: Noisy measurements are paid for: they may be kept and shown.
    confidential_draw: ClassVar[bool] = False

    census_schema: Schema
    persons: str | dict[str, Any] | None = None
    units: str | dict[str, Any] | None = None
    root: str | None = None
    measurements: Literal["full", "lazy"] = "full"
    rounder: Literal["ours", "deployed"] = "ours"
    release_measurements: bool = False
    tables: tuple[str, ...] = ()

    _seen: tuple[Census, dict[str, tuple[Design, Exact]]] | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _possible(self) -> TopDown:
        if self.persons is None and self.units is None:
            raise ValueError("name a strategy for persons, for units, or for both")
        for level in self.tables:
            if level not in self.census_schema.area_names:
                hint = suggest(level, self.census_schema.area_names)
                raise ValueError(f"tables: no level '{level}'.{hint}")
        for histogram in self.histograms.values():
            check_quarters(histogram)
            check_at_least_one(histogram)
            check_noise(histogram.strategy)
        self.specify()
        check_release(self.census_schema, *self._both())
        if self.tables and released_schema(self.census_schema, *self._both()).name != PL94:
            raise ValueError("tables: only the cells of the redistricting file make its tables")
        return self

    @cached_property
    def strategies(self) -> dict[str, Strategy]:
        """Return the strategies by what they count, from the root on."""
        found: dict[str, Strategy] = {}
        for run in RUNS:
            given = getattr(self, run)
            if given is None:
                continue
            if isinstance(given, str) and given not in shipped_strategies():
                # A path would not be covered by the hash of the configuration.
                hint = suggest(given, shipped_strategies())
                raise BadInput(f"{run}: no strategy '{given}' comes with discreet.{hint}")
            strategy = load_strategy(given)
            if strategy.count != run:
                raise BadInput(f"{run}: strategy {strategy.name} counts {strategy.count}.")
            found[run] = strategy if self.root is None else strategy.rooted(self.root)
        return found

    @cached_property
    def histograms(self) -> dict[str, Histogram]:
        """Return the histograms of the strategies."""
        return {run: Histogram(one, self.census_schema) for run, one in self.strategies.items()}

    def _both(self) -> list[Histogram | None]:
        return [self.histograms.get(run) for run in RUNS]

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return self.model_dump(mode="json", exclude={"census_schema"})

    # -- what is promised -------------------------------------------------------------

    def check(self, census: Census) -> None:
        """Refuse a census without what the strategies need, or whose invariants cannot hold.

        Solvers that are not installed are missed here, not when the draw is paid for.
        """
        if any(strategy.hold for strategy in self.strategies.values()):
            check_solvers()
        for run, histogram in self.histograms.items():
            if census.units is None and (run == "units" or histogram.strategy.quarters):
                raise BadInput(f"topdown, {run}: this census has no units.")
            columns = [scale.column for scale in histogram.axes]
            census.frame(histogram.strategy.count, [census.schema.block, *columns])
            check_types(census, histogram)
        for level in self.tables:
            if level not in census.geography.collect_schema().names():
                raise BadInput(f"tables: this census has no areas of level '{level}'.")
        self._look(census)

    def _look(self, census: Census) -> dict[str, tuple[Design, Exact]]:
        """Return tree and counts of every strategy, counted once for the check and the draw."""
        if self._seen is not None and self._seen[0] is census:
            return self._seen[1]
        spines: dict[tuple[str, ...], Spine] = {}
        blocks, found = blocks_of(census, self.strategies), {}
        for run, histogram in self.histograms.items():
            levels = tuple(histogram.strategy.level_names)
            if levels not in spines:
                spines[levels] = spine_of(census, levels, blocks)
            design = Design(histogram, spines[levels], self.rounder == "deployed")
            found[run] = design, look(design, census)
            check_held_together(design, found[run][1].facts)
        self._seen = census, found
        return found

    def facts(self, census: Census) -> dict[str, int]:
        """Return nothing: the budget does not depend on the data."""
        return {}

    def specify(self, facts: Mapping[str, int] | None = None) -> Specification:
        """Return the specification: rho^2 of all noise, in the universe of the invariants."""
        return promise(list(self.strategies.values()), self.census_schema)

    # -- what is done -----------------------------------------------------------------

    def draw(self, census: Census, rng: Randomness, folder: Path, threads: int = 1) -> None:
        """Measure (and, if lazy, estimate) every level."""
        stages = Stages(folder / STAGES, threads=threads)
        self.draw_in_stages(census, rng, folder, stages)
        shutil.rmtree(stages.folder)

    def draw_in_stages(self, census: Census, rng: Randomness, folder: Path, stages: Stages) -> None:
        """Measure every level that is not measured yet."""
        seen, self._seen = self._look(census), None
        for number, (run, (design, exact)) in enumerate(seen.items()):
            drawing = Drawing(design, census, rng, stages, self.measurements == "lazy", exact)

            def say(part: float, step: str, number: int = number) -> None:
                stages.say((number + part) / len(self.histograms), step)

            drawing.draw(folder / run, say)
        write_places(census, folder / "places")

    def publish(self, folder: Path, out: Path, engine: Engine) -> None:
        """Estimate, and write the records."""
        stages = Stages(out / STAGES)
        self.publish_in_stages(folder, out, engine, stages)
        shutil.rmtree(stages.folder, ignore_errors=True)

    def publish_in_stages(self, folder: Path, out: Path, engine: Engine, stages: Stages) -> None:
        """Estimate every level that is not estimated yet, and write the records."""
        publish_runs(
            self.histograms,
            self.census_schema,
            folder,
            out,
            engine,
            stages,
            deployed=self.rounder == "deployed",
        )
        if self.release_measurements:
            mode = read_yaml(folder / "draw.yaml")["mode"]
            copy_measurements(list(self.histograms), folder, out, mode)
        if self.tables:
            stages.say(0.98, "tabulating")
            released = Census.open(out / "microdata", engine)
            counted = [n for n, shell in pl94.SHELLS.items() if shell.counts in self.strategies]
            pl94.write_tables(released, out / "tables", self.tables, counted)
