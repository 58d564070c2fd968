"""Time TopDown from Parquet to microdata and tables, and its solvers beside PIQP.

    python benchmarks/topdown.py [--json] [--profile small-state] [--census FOLDER]
                                 [--measurements full] [--threads 2] [--sample 60] [--no-cold]

Production strategies of persons and units, rooted at the state, tables for all levels of
the spine. The run has a process of its own, with kernels compiled before the clock starts;
its steps are told apart by what it says of its progress, and each includes reading and
writing what it keeps. Then the problems of persons are solved again, one after the other in
one thread: `solve` is our least squares and our rounding, without files and measurement; the
least squares are then solved by PIQP. These are all parents up to a state of `small-state`,
else `--sample` parents of each level, evenly spaced; PIQP's time includes the
building of its matrices, and problems too large for it are left out. The first compilation is
the CPU time of a tiny census with a copy of the package that has no cache, less that of a
second run with the same copy. The load of the machine is printed: walls mean little under
load.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

LEVELS = ("state", "county", "tract", "block_group", "block")
#: Up to so many blocks all parents are solved by PIQP as well.
ALL_UP_TO = 30_000
#: Problems of more unknowns would keep PIQP busy for longer than all the rest takes.
MOST_UNKNOWNS = 60_000
SEED = 1

Figures = dict[str, Any]


class Clock:
    """CPU and wall seconds of the steps of a run, by what it says of its progress."""

    def __init__(self) -> None:
        self.steps: dict[str, list[float]] = {}
        self._now, self._since = "", (0.0, 0.0)

    def say(self, _part: float, step: str) -> None:
        """End the step before and begin this one."""
        since = time.process_time(), time.perf_counter()
        if self._now:
            spent = self.steps.setdefault(self._now, [0.0, 0.0])
            spent[0] += since[0] - self._since[0]
            spent[1] += since[1] - self._since[1]
        self._now, self._since = step, since

    def told(self) -> dict[str, Figures]:
        """Return the figures of all steps."""
        return {
            step: {"cpu_seconds": round(cpu, 3), "wall_seconds": round(wall, 3)}
            for step, (cpu, wall) in self.steps.items()
        }


def parameters(measurements: str) -> dict[str, Any]:
    """Return the parameters of the mechanism."""
    return {
        "persons": "pl94-us-persons-2020",
        "units": "pl94-us-units-2020",
        "root": "state",
        "measurements": measurements,
        "tables": LEVELS,
    }


def protect(folder: Path, out: Path, measurements: str, threads: int, clock: Clock) -> None:
    """Draw from the census in `folder` and publish; draw and release stay in `out`."""
    from discreet.census import Census
    from discreet.engine import Engine
    from discreet.mechanisms import make_draw, mechanism, publish_draw
    from discreet.mechanisms.stages import Stages
    from discreet.noise import trial

    clock.say(0, "reading and counting")
    engine = Engine(work=out / "work", threads=threads)
    census = Census.open(folder, engine)
    made = mechanism("topdown", census.schema, parameters(measurements))
    stages = Stages(out / "drawing", clock.say, threads)
    make_draw(made, census, trial(SEED), out / "draw", "design", threads, stages)
    clock.say(0, "checking the draw")
    publish_draw(out / "draw", out / "release", engine, Stages(out / "publ", clock.say, threads))
    clock.say(1, "")
    engine.close()


def measure(tiny: Path, folder: Path, out: Path, measurements: str, threads: int) -> Figures:
    """Return the figures of one run in this fresh process; the draw stays in `out`."""
    with tempfile.TemporaryDirectory() as scratch:
        protect(tiny, Path(scratch), measurements, threads, Clock())  # compile and import
    clock, before = Clock(), os.getloadavg()
    cpu, wall = time.process_time(), time.perf_counter()
    protect(folder, out, measurements, threads, clock)
    figures = {
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "wall_seconds": round(time.perf_counter() - wall, 2),
        "peak_mib": round(peak_mib()),
        "load": [round(before[0], 1), round(os.getloadavg()[0], 1)],
        "draw_mib": round(size_of(out / "draw") / 2**20),
        "release_mib": round(size_of(out / "release") / 2**20),
    }
    return {**figures, "by_kind": by_kind(clock), "steps": clock.told()}


def by_kind(clock: Clock) -> dict[str, Figures]:
    """Return the figures of reading, measuring, estimating, writing and tabulating."""
    sums: dict[str, list[float]] = {}
    for step, spent in clock.steps.items():
        kind = sums.setdefault(step.split()[0], [0.0, 0.0])
        kind[0] += spent[0]
        kind[1] += spent[1]
    return {
        kind: {"cpu_seconds": round(cpu, 2), "wall_seconds": round(wall, 2)}
        for kind, (cpu, wall) in sums.items()
    }


# -- the solvers alone, and PIQP on the same least squares -----------------------------------------


def problems(out: Path, level: int, sample: int | None) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield the problems of a level of persons from a draw with estimates.

    The least squares of a parent, and what rounding needs besides their solution.
    """
    from discreet.census import read_schema
    from discreet.engine import Engine
    from discreet.mechanisms import mechanism
    from discreet.mechanisms.topdown.answers import answers_from
    from discreet.mechanisms.topdown.constraints import Facts
    from discreet.mechanisms.topdown.design import Design
    from discreet.mechanisms.topdown.estimate import bounds_for, parts, read_estimate
    from discreet.mechanisms.topdown.measurement_reader import Measurements
    from discreet.mechanisms.topdown.solve import (
        batch,
        problem_of,
        tree_of,
        way_of_rounding,
        without_total,
    )
    from discreet.mechanisms.topdown.spine import Spine

    engine, draw = Engine(), out / "draw"
    made: Any = mechanism("topdown", read_schema(draw / "schema.yaml"), parameters("lazy"))
    histogram = made.histograms["persons"]
    spine = Spine.read(draw / "persons/spine", histogram.strategy.level_names, engine)
    design = Design(histogram, spine)
    bounds = bounds_for(design, Facts.read(draw / "persons/facts", engine, histogram, spine))
    answers = answers_from(design, Measurements(draw / "persons/measurements", engine))
    kept = next(
        path
        for path in (
            draw / f"persons/estimates/{level - 1}/counts.parquet",
            out / f"publ/persons-estimated-{level - 1}/counts.parquet",
        )
        if path.exists()
    )
    above = read_estimate(kept, spine.size(level - 1), engine)
    rules, start = design.rules(level, bounds), spine.child_start(level - 1)
    wanted = np.flatnonzero((np.diff(start) > 1) & (np.diff(above.start) > 0))
    if sample is not None and wanted.size > sample:
        wanted = wanted[np.linspace(0, wanted.size - 1, sample).astype(np.int64)]
    chosen = set(wanted.tolist())
    for active in parts(design, level, above):
        inside = [p for p in range(active.first, active.last) if p in chosen]
        if inside:
            task = batch(above, start, active, answers(level, active, start), rules)
            for p in inside:
                whole = problem_of(p, task)
                tree = tree_of(rules.tree, above.cell[above.start[p] : above.start[p + 1]])
                bounds_of = (whole.lower, whole.allowed, whole.group_of, whole.totals)
                rounding = (whole.parent, tree, *bounds_of, way_of_rounding(rules))
                yield (without_total(whole) if rules.total_first else whole), rounding


def cpu_of(work: Any, *arguments: Any) -> tuple[float, Any]:
    """Return the CPU seconds of a call and what it returned."""
    before = time.process_time()
    told = work(*arguments)
    return time.process_time() - before, told


def time_solvers(out: Path, sample: int | None) -> Figures:
    """Return CPU seconds of our solvers and of PIQP (if installed) by level."""
    from discreet.mechanisms.topdown.general import solve_general
    from discreet.mechanisms.topdown.least_squares import solve
    from discreet.mechanisms.topdown.rounding import round_children
    from discreet.mechanisms.topdown.solve import TOLERANCE

    compare = importlib.util.find_spec("piqp") is not None
    told: Figures = {}
    for level, name in enumerate(LEVELS[1:], start=1):
        fitting = rounding = theirs = 0.0
        parents = left_out = 0
        for problem, rest in problems(out, level, sample):
            if compare and problem.parent.size * problem.totals.size > MOST_UNKNOWNS:
                left_out += 1
                continue
            if not parents:
                round_children(solve(*problem, TOLERANCE)[0], *rest)  # load the kernels
            spent, (x, _, _) = cpu_of(solve, *problem, TOLERANCE)
            fitting += spent
            rounding += cpu_of(round_children, x, *rest)[0]
            theirs += cpu_of(solve_general, *problem)[0] if compare else 0.0
            parents += 1
        told[name] = {
            "parents": parents,
            "left_out": left_out,
            "solve_cpu_seconds": fitting + rounding,
            "least_squares_cpu_seconds": fitting,
            "rounding_cpu_seconds": rounding,
            "piqp_least_squares_cpu_seconds": theirs if compare else None,
        }
    which = "all parents" if sample is None else f"at most {sample} parents of each level"
    return {"which": which, **with_sums(told)}


def with_sums(told: dict[str, Figures]) -> dict[str, Figures]:
    """Return the figures of all levels, rounded, and their sums with the ratio to PIQP's."""
    levels = list(told.values())
    sums = {
        key: None if value is None else sum(figures[key] for figures in levels)
        for key, value in levels[0].items()
    }
    told = {**told, "together": sums}
    for figures in told.values():
        ours, theirs = (figures[f"{who}least_squares_cpu_seconds"] for who in ("", "piqp_"))
        figures["ratio"] = round(theirs / ours, 1) if ours and theirs else None
        for key, value in figures.items():
            figures[key] = round(value, 3) if isinstance(value, float) else value
    return told


# -- the first compilation -------------------------------------------------------------------------


def time_compilation(tiny: Path, folder: Path, measurements: str) -> Figures:
    """Return CPU and wall seconds that a first run needs more than a second one."""
    import discreet

    package = Path(discreet.__file__).parent
    no_cache = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, folder / "src" / "discreet", ignore=no_cache)
    runs = []
    for number in range(2):
        call = [sys.executable, __file__, "--once", str(tiny), str(folder / f"run-{number}")]
        paths = {"PYTHONPATH": str(folder / "src")}
        before, wall = os.times(), time.perf_counter()
        subprocess.run([*call, "--measurements", measurements], env=os.environ | paths, check=True)
        after = os.times()
        cpu = after.children_user + after.children_system
        cpu -= before.children_user + before.children_system
        runs.append((cpu, time.perf_counter() - wall))
    return {
        "cpu_seconds": round(runs[0][0] - runs[1][0], 1),
        "wall_seconds": round(runs[0][1] - runs[1][1], 1),
        "load": round(os.getloadavg()[0], 1),
    }


# -- measuring -------------------------------------------------------------------------------------


def peak_mib() -> float:
    """Return the largest memory this process has held (Linux)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def size_of(folder: Path) -> int:
    """Return the bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def in_own_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `work` returns when it is called in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(work, *arguments).result()


def simulated(profile: str, folder: Path) -> Path:
    """Return the folder of a census simulated there."""
    from discreet.simulate import simulate

    simulate(profile, folder, SEED)
    return folder


def blocks_of(folder: Path) -> int:
    """Return the number of smallest areas of a census."""
    import duckdb

    files = [*folder.glob("geography.parquet"), *folder.glob("geography/*.parquet")]
    listed = [str(file) for file in files]
    query = "select count(*) from read_parquet(?)"
    return int(duckdb.connect().execute(query, [listed]).fetchall()[0][0])


def run(options: argparse.Namespace, folder: Path) -> Figures:
    """Return all figures."""
    tiny = in_own_process(simulated, "tiny", folder / "tiny")
    census = options.census or in_own_process(simulated, options.profile, folder / "census")
    told: Figures = {
        "benchmark": "topdown",
        "census": options.census.name if options.census else options.profile,
        "measurements": options.measurements,
        "threads": options.threads,
    }
    out = folder / "out"
    arguments = (tiny, census, out, options.measurements, options.threads)
    told["run"] = in_own_process(measure, *arguments)
    print(json.dumps(told["run"]), file=sys.stderr)  # the reference may take far longer
    sample = None if blocks_of(census) <= ALL_UP_TO else options.sample
    told["solvers"] = in_own_process(time_solvers, out, sample)
    if importlib.util.find_spec("piqp") is None:
        told["piqp"] = "not measured: install the extra `solvers`"
    if not options.no_cold:
        told["first_compilation"] = time_compilation(tiny, folder / "cold", options.measurements)
    return told


def main() -> None:
    """Run and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--profile", default="small-state")
    parser.add_argument("--census", type=Path, help="a census folder instead of a profile")
    parser.add_argument("--measurements", choices=["full", "lazy"], default="full")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sample", type=int, default=60, help="parents per level for PIQP")
    parser.add_argument("--no-cold", action="store_true", help="leave the compilation out")
    parser.add_argument("--work", type=Path, default=None, help="folder for the files")
    parser.add_argument("--once", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        census, out = options.once
        protect(census, out, options.measurements, options.threads, Clock())
        return
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        told = run(options, Path(folder))
    if options.json:
        print(json.dumps(told, indent=2))
        return
    for key, figures in told.items():
        if not isinstance(figures, dict):
            print(f"{key}: {figures}")
            continue
        print(f"{key}:")
        for name, value in figures.items():
            lines = value.items() if name in ("steps", "by_kind") else [("", value)]
            for step, shown in lines:
                print(f"  {name} {step}: {shown}")


if __name__ == "__main__":
    main()
