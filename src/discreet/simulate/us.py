"""Simulate states of the US layout, part by part: a part is a run of counties."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.engine import Engine
from discreet.simulate.county import fill_county
from discreet.simulate.plan import Plan, plan_state
from discreet.simulate.profile import Profile, State
from discreet.simulate.write import Part, votes_frame, write_part

Progress = Callable[[int, int, str], None]

#: Units are numbered with nine digits. A state may spill over into the next number, but
#: no state that large is followed by another (06 California by 08).
FIRST_UNIT, UNITS_PER_STATE = 100_000_001, 14_000_000
#: Housing units of a part, unless a single county has more: some 1.5 million persons.
PART = 600_000
TABLES = ("geography", "units", "persons")


@dataclass(frozen=True)
class Run:
    """A run of counties of one state, and the place of its files."""

    plan: Plan
    first: int
    last: int
    units_before: int
    name: str
    """What its files are called; empty if the census has no other part."""

    def file(self, folder: Path, table: str) -> Path:
        """Return the path of one table."""
        return folder / table / f"{self.name}.parquet" if self.name else folder / f"{table}.parquet"


@dataclass(frozen=True)
class Filled:
    """What remains of a part once it is written."""

    run: Run
    counts: tuple[int, int, int]
    """Persons, units, blocks."""
    votes: list[tuple[int, npt.NDArray[np.int64]]]
    """County code and its votes by precinct and candidate."""


def order_key(seed: int) -> str:
    """Return the key of person keys; short, so that most records hash in one block."""
    return f"sim{seed}"


def simulate_states(
    profile: Profile,
    states: Sequence[State],
    folder: Path,
    seed: int,
    processes: int,
    progress: Progress,
) -> tuple[int, int, int]:
    """Write the tables of all `states` and their votes; return persons, units, blocks.

    Parts do not depend on each other, so threads share them; they share the cores too,
    because kernels and engine run without Python's lock. Each part has an engine with one
    thread: with more, the bytes of a Parquet file depend on how they take turns.
    """
    progress(0, 1, "planning (the first run also compiles)")
    several = len(profile.states) > 1
    runs: list[Run] = []
    for state in states:
        plan = plan_state(state, seed, profile.name, profile.quarters_size)
        runs += _runs(plan, several)
    done: list[Filled] = []
    with ThreadPoolExecutor(processes) as pool:
        waiting = [pool.submit(_simulate_run, run, folder, seed, profile.name) for run in runs]
        try:
            for future in as_completed(waiting):
                done.append(future.result())
                progress(len(done), len(runs), done[-1].run.plan.state.name)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    votes = sorted((pair for part in done for pair in part.votes), key=lambda pair: pair[0])
    engine = Engine(threads=1)
    engine.write_parquet(votes_frame(engine, votes), folder / "auxiliary" / "votes.parquet")
    engine.close()
    persons, units, blocks = (sum(part.counts[k] for part in done) for k in range(3))
    return persons, units, blocks


def _runs(plan: Plan, several: bool) -> Iterator[Run]:
    """Yield the parts of a state: counties in order, as many as come to `PART` units."""
    county = np.arange(plan.counties)
    units = np.bincount(plan.tract_county, plan.housing, plan.counties).astype(np.int64)
    units += np.bincount(plan.facility_county, minlength=plan.counties)
    before = np.concatenate([[0], np.cumsum(units)])
    # Cut where the middle of a county passes the next multiple of the size.
    part = ((before[:-1] + before[1:]) // 2) // PART
    firsts = np.flatnonzero(np.diff(part, prepend=-1))
    for number, first in enumerate(firsts):
        last = firsts[number + 1] if number + 1 < len(firsts) else len(county)
        name = plan.state.code if len(firsts) == 1 else f"{plan.state.code}-{number + 1:02d}"
        alone = len(firsts) == 1 and not several
        yield Run(plan, int(first), int(last), int(before[first]), "" if alone else name)


def _simulate_run(run: Run, folder: Path, seed: int, profile: str) -> Filled:
    """Fill and write one part."""
    counties = [fill_county(run.plan, n, seed, profile) for n in range(run.first, run.last)]
    code = run.plan.state.code
    first_unit = FIRST_UNIT + int(code) * UNITS_PER_STATE + run.units_before
    part = Part(code, first_unit, order_key(seed), *(run.file(folder, name) for name in TABLES))
    engine = Engine(threads=1)
    try:
        write_part(engine, part, counties)
    finally:
        engine.close()
    counts = (
        sum(len(county.persons) for county in counties),
        sum(len(county.units) for county in counties),
        sum(len(county.blocks.code) for county in counties),
    )
    votes = [(int(county.blocks.code[0] // 10**10), county.votes) for county in counties]
    return Filled(run, counts, votes)
