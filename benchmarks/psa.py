"""Time the draw of the Permutation Swapping Algorithm beside plain NumPy.

    python benchmarks/psa.py [--json] [--households 10000000] [--repeats 3] [--threads 1]

Both sides select, select anew where one record is alone, and derange, for the
same strata. Ours draws exactly and from the operating system's randomness; the
reference uses NumPy's generator and floating point, one stratum after the other.
Each case runs in a process of its own; compilation is done before the clock
starts. How often a derangement is refused is chance, so a case is repeated and
the median reported.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.swapping.kernel import permute_strata
from discreet.noise import key_of, system

Integers = NDArray[np.int64]

RATES = [Fraction(1, 20), Fraction(1, 2)]
# Shares of households of 1, 2, ..., 7 and more persons, about as in the United States.
SIZE_SHARES = [0.28, 0.34, 0.16, 0.13, 0.06, 0.02, 0.01]
LAYOUTS = {"one stratum": 1, "one state by size": len(SIZE_SHARES), "100,000 strata": 100_000}


def layout(name: str, households: int) -> Integers:
    """Return the offsets of the strata of a layout."""
    strata = LAYOUTS[name]
    shares = SIZE_SHARES if strata == len(SIZE_SHARES) else [1 / strata] * strata
    sizes = np.random.default_rng(1).multinomial(households, np.array(shares) / sum(shares))
    return np.concatenate(([0], np.cumsum(sizes)))


def swap_with_numpy(offsets: Integers, rate: float, rng: np.random.Generator) -> Integers:
    """Return the reference: Algorithm 1 with NumPy calls, stratum by stratum."""
    source = np.arange(offsets[-1])
    for first, last in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        if last - first < 2:
            continue
        chosen = np.flatnonzero(rng.random(last - first) < rate)
        while chosen.size == 1:
            chosen = np.flatnonzero(rng.random(last - first) < rate)
        order = rng.permutation(chosen.size)
        while (order == np.arange(chosen.size)).any():
            order = rng.permutation(chosen.size)
        source[first + chosen] = first + chosen[order]
    return source


def measure(
    side: str, name: str, rate: Fraction, households: int, threads: int
) -> dict[str, float]:
    """Return CPU seconds, wall seconds and memory of one draw in this process."""
    offsets = layout(name, households)
    keys = key_of([str(g) for g in range(offsets.size - 1)])
    generator = np.random.default_rng()
    permute_strata(np.array([0, 9]), keys[:1], rate, system())  # compile
    before = peak_mib()
    cpu, wall = time.process_time(), time.perf_counter()
    if side == "discreet":
        permute_strata(offsets, keys, rate, system(), threads=threads)
    else:
        swap_with_numpy(offsets, float(rate), generator)
    return {
        "cpu_seconds": time.process_time() - cpu,
        "wall_seconds": time.perf_counter() - wall,
        "peak_mib": peak_mib(),
        "peak_above_start_mib": peak_mib() - before,
    }


def peak_mib() -> float:
    """Return the largest memory this process has held (Linux)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def run_case(name: str, rate: Fraction, options: argparse.Namespace) -> dict[str, object]:
    """Return the medians of both sides for one layout and rate, and their ratio."""
    case: dict[str, object] = {
        "layout": name,
        "strata": LAYOUTS[name],
        "rate": str(rate),
        "households": options.households,
        "threads": options.threads,
    }
    cpu: dict[str, float] = {}
    spawn = multiprocessing.get_context("spawn")
    for side in ("discreet", "numpy"):
        with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
            runs = [
                pool.submit(measure, side, name, rate, options.households, options.threads).result()
                for _ in range(options.repeats)
            ]
        case[side] = {key: round(median(run[key] for run in runs), 3) for key in runs[0]}
        cpu[side] = median(run["cpu_seconds"] for run in runs)
    case["cpu_ratio_numpy_to_discreet"] = round(cpu["numpy"] / cpu["discreet"], 2)
    return case


def main() -> None:
    """Run all cases and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--households", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    cases = []
    heading = ("layout", "rate", "side", "CPU s", "wall s", "peak MiB", "above start")
    if not options.json:
        print("{:<18} {:>5} {:<9} {:>7} {:>7} {:>9} {:>12}".format(*heading))
    for name in LAYOUTS:
        for rate in RATES:
            case = run_case(name, rate, options)
            cases.append(case)
            if not options.json:
                show(case)
    if options.json:
        json.dump({"benchmark": "psa", "cases": cases}, sys.stdout, indent=2)
        print()


def show(case: dict[str, object]) -> None:
    """Print one case as two lines and the ratio."""
    for side in ("discreet", "numpy"):
        figures = case[side]
        assert isinstance(figures, dict)
        print(
            f"{case['layout']:<18} {case['rate']:>5} {side:<9} {figures['cpu_seconds']:7.2f} "
            f"{figures['wall_seconds']:7.2f} {figures['peak_mib']:9.0f} "
            f"{figures['peak_above_start_mib']:12.0f}"
        )
    print(f"{'':<24} NumPy / discreet, CPU: {case['cpu_ratio_numpy_to_discreet']}", flush=True)


if __name__ == "__main__":
    main()
