"""From nothing to a report: simulate a census, swap it, check every promise, show the cost."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from discreet.census import Census, Schema
from discreet.engine import Engine
from discreet.errors import InvariantBroken
from discreet.evaluate import InvariantCheck, check_each_invariant, compare
from discreet.files import atomic_folder
from discreet.mechanisms import Mechanism, Release, mechanism, protect
from discreet.noise import Randomness, system, trial
from discreet.report import Run, write_report
from discreet.simulate import simulate

#: Called with the part done (0 to 1) and what is being done.
Progress = Callable[[float, str], None]

RATE = "1/20"

#: Matching variables by schema; others match on the size of the household.
MATCH = {"us-decennial": ("size", "adults", "tenure")}

#: Steps: what is told meanwhile, and the part of the time (measured on the small state).
STEPS = {
    "simulate": ("simulating a census", 0.12),
    "swap": ("swapping households", 0.19),
    "check": ("checking every invariant", 0.26),
    "compare": ("comparing tables", 0.40),
    "report": ("writing the report", 0.03),
}


def demo(
    out: Path,
    profile: str = "small-state",
    seed: int = 1,
    *,
    swap_seed: int | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Simulate and protect a census, check every invariant, and return the path of the report.

    Writes `census` (the truth), `release` (what may be published, and nothing else) and
    `report.html` (internal) to the new folder `out`; if anything fails, nothing.

    Parameters
    ----------
    profile, seed
        What to simulate.
    swap_seed
        Makes the swap repeatable; by default it uses the operating system's randomness.
    processes
        Cores to use; None: all of them.
    progress
        Called with the part done (0 to 1) and what is being done.
    """
    cores = processes or os.cpu_count() or 1
    steps = _Steps(progress or (lambda done, label: None))
    rng = system() if swap_seed is None else trial(swap_seed)
    with atomic_folder(Path(out)) as folder:
        with steps.step("simulate"):
            simulate(
                profile,
                folder / "census",
                seed,
                processes=cores,
                progress=lambda done, total, label: steps.inside(done / max(total, 1)),
            )
        engine = Engine(folder / ".work")
        try:
            run = _protected(folder, engine, rng, cores, steps)
            with steps.step("report"):
                write_report(folder / "report.html", run)
        finally:
            engine.close()
            shutil.rmtree(folder / ".work", ignore_errors=True)
    return Path(out) / "report.html"


def swapping(schema: Schema) -> Mechanism:
    """Return the swapping the demo uses: inside areas of the second level of the spine."""
    within = schema.levels[min(1, len(schema.levels) - 2)]
    match = list(MATCH.get(schema.name, ("size",)))
    return mechanism(
        "permutation-swapping", schema, {"rate": RATE, "match": match, "within": within}
    )


def _protected(folder: Path, engine: Engine, rng: Randomness, processes: int, steps: _Steps) -> Run:
    """Swap, check and compare; return what the report tells."""
    before = Census.open(folder / "census", engine)
    with steps.step("swap"):
        release = protect(swapping(before.schema), before, rng, folder / "release", processes)
    after = release.microdata(engine)
    with steps.step("check"):
        checks = _checked(release, before, after)
    with steps.step("compare"):
        comparison = compare(before, after)
    return Run(before, after, release, checks, comparison, _randomness(rng), steps.seconds)


def _checked(release: Release, before: Census, after: Census) -> list[InvariantCheck]:
    """Return the check of every invariant, recomputed from the released records."""
    checks = check_each_invariant(release.specification, before, after)
    for check in checks:
        if not check.holds:
            raise InvariantBroken(check.invariant.name, check.differing)
    return checks


def _randomness(rng: Randomness) -> str:
    if rng.mode == "trial":
        return "a seed: the swap can be repeated, and undone by whoever knows the seed"
    return "the operating system's generator, which takes no seed and cannot be repeated"


@dataclass
class _Steps:
    """Time the steps and say how far the whole has come."""

    say: Progress
    seconds: dict[str, float] = field(default_factory=dict)
    done: float = 0.0
    now: str = ""

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self.now, started = name, time.perf_counter()
        self.inside(0.0)
        yield
        self.seconds[name] = time.perf_counter() - started
        self.done += STEPS[name][1]

    def inside(self, part: float) -> None:
        label, share = STEPS[self.now]
        self.say(self.done + share * part, label)
