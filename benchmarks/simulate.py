"""Time the simulator beside plain random columns written to Parquet.

    python benchmarks/simulate.py [--json] [--states 10] [--processes 1] [--seed 1]

Cases: `small-state`, and the first states of `nation` by code, one after the other. The
reference draws as many person rows with the same columns from NumPy, each column on its
own, without households, areas, units or keys, and writes them with DuckDB. Every case
runs in a process of its own; figures are end to end with import, person keys and writing,
but kernels are compiled before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

#: Rows the reference draws at a time, so that its memory stays bounded too.
CHUNK = 1_000_000
#: Columns of a person record: number of distinct values, and the text of one.
CODED = {
    "sex": (2, "{}"),
    "race": (63, "{:02d}"),
    "hispanic": (2, "{}"),
    "relationship": (19, "{}"),
    **{f"race_detail_{k}": (30, "{:04d}") for k in range(1, 7)},
    "ethnicity_detail": (7, "{:04d}"),
    "imputed": (2, "{}"),
}


def simulate_profile(profile: str, states: list[str] | None, processes: int, seed: int) -> int:
    """Simulate into a temporary folder; return the number of persons."""
    from discreet.simulate import simulate

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "census"
        return simulate(profile, out, seed, states=states, processes=processes).persons


def write_random(persons: int, processes: int) -> int:
    """Draw and write unrelated columns; return the number of rows."""
    import duckdb
    import numpy as np

    rng = np.random.default_rng(1)
    connection = duckdb.connect(config={"threads": processes})
    with tempfile.TemporaryDirectory() as folder:
        for part, first in enumerate(range(0, persons, CHUNK)):
            count = min(CHUNK, persons - first)
            rows = {name: rng.integers(0, k, count, np.uint8) for name, (k, _) in CODED.items()}
            rows["age"] = rng.integers(0, 100, count, np.int16)
            rows |= {
                c: rng.integers(0, 2**60, count) for c in ("unit_id", "person_key", "donor_id")
            }
            listed = ["unit_id", "person_key", "age", "donor_id"]
            for name, (values, text) in CODED.items():
                codes = ", ".join(f"'{text.format(value)}'" for value in range(values))
                listed.append(f"[{codes}][{name} + 1] as {name}")
            connection.register("rows", rows)
            target = f"{folder}/{part}.parquet"
            connection.execute(
                f"copy (select {', '.join(listed)} from rows) to '{target}' "
                f"(format parquet, compression zstd)"
            )
    return persons


def measured(work: Callable[..., int], *arguments: Any) -> dict[str, float]:
    """Return persons, CPU and wall seconds and memory of one call in this fresh process."""
    wall = time.perf_counter()
    persons = work(*arguments)
    return {
        "persons": persons,
        # Counted from the start of the process, so importing is part of it.
        "cpu_seconds": time.process_time(),
        "wall_seconds": time.perf_counter() - wall,
        "peak_mib": peak_mib(),
    }


def peak_mib() -> float:
    """Return the largest memory this process has held (Linux)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def in_process(work: Callable[..., int], *arguments: Any) -> dict[str, float]:
    """Return `measured` from a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        found = pool.submit(measured, work, *arguments).result()
    per_second = {
        "persons_per_cpu_second": found["persons"] / found["cpu_seconds"],
        "persons_per_second": found["persons"] / found["wall_seconds"],
    }
    return {name: round(value, 2) for name, value in (found | per_second).items()}


def run_case(name: str, states: list[str] | None, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one profile, the reference of the same size, and their ratio."""
    ours = in_process(simulate_profile, name, states, options.processes, options.seed)
    plain = in_process(write_random, int(ours["persons"]), options.processes)
    return {
        "case": name if states is None else f"{name}, {len(states)} states",
        "states": states,
        "processes": options.processes,
        "discreet": ours,
        "plain": plain,
        "cpu_ratio_discreet_to_plain": round(ours["cpu_seconds"] / plain["cpu_seconds"], 2),
    }


def show(case: dict[str, Any]) -> None:
    """Print one case as two lines and the ratio."""
    for side in ("discreet", "plain"):
        figures = case[side]
        print(
            f"{case['case']:<20} {side:<9} {figures['persons']:>12,.0f} "
            f"{figures['cpu_seconds']:8.1f} {figures['wall_seconds']:8.1f} "
            f"{figures['persons_per_cpu_second']:>10,.0f} {figures['persons_per_second']:>10,.0f} "
            f"{figures['peak_mib']:9.0f}"
        )
    print(f"{'':<20} discreet / plain, CPU: {case['cpu_ratio_discreet_to_plain']}", flush=True)


def main() -> None:
    """Run all cases and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--states", type=int, default=10, help="how many states of the nation")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    from discreet.simulate.profile import load_profile

    in_process(simulate_profile, "tiny", None, 1, options.seed)  # compile
    codes = [state.code for state in load_profile("nation")[0].states][: options.states]
    cases = []
    if not options.json:
        heading = ("", "", "persons", "CPU s", "wall s", "per CPU s", "per s", "peak MiB")
        print("{:<20} {:<9} {:>12} {:>8} {:>8} {:>10} {:>10} {:>9}".format(*heading))
    for name, states in [("small-state", None), *([("nation", codes)] if codes else [])]:
        cases.append(run_case(name, states, options))
        if not options.json:
            show(cases[-1])
    if options.json:
        json.dump({"benchmark": "simulate", "cases": cases}, sys.stdout, indent=2)
        print()


if __name__ == "__main__":
    main()
