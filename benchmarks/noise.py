"""Time exact discrete noise beside OpenDP's and beside NumPy's continuous normal.

    python benchmarks/noise.py [--json] [--draws 4000000] [--repeats 7]

Ours and OpenDP's are exact and use the operating system's randomness; NumPy's is
neither and stands here as the speed of not caring. OpenDP is timed where it is
installed (`pip install opendp`). One thread. Compilation, tables and memory are warm
before the clock starts: the first array of a process pays for its memory besides,
which the line "fresh memory" shows. Rates are draws per second, medians of the repeats.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from statistics import median

import numpy as np

from discreet.noise import DiscreteGaussian, discrete_gaussian, discrete_laplace, system

SIGMA2 = Fraction(100)
DISTINCT = 1000
GOALS = {"1 sigma2": 40e6, f"{DISTINCT} sigma2, scattered": 40e6, "own sigma2 each": 0.4e6}
REFERENCE_DRAWS = 50_000  # OpenDP is slow

Case = dict[str, object]


def cases(draws: int) -> dict[str, tuple[int, Callable[[], object]]]:
    """Return what is timed: a name, how many draws, and the call."""
    choose = np.random.default_rng(1)
    near = [SIGMA2 + Fraction(k, DISTINCT) for k in range(DISTINCT)]
    scattered = choose.integers(0, DISTINCT, draws)
    in_order = np.sort(scattered)
    few = max(1, draws // 10)
    own = [Fraction(int(n), 177339451520) for n in choose.integers(10**12, 10**14, few)]
    each = np.arange(few)
    rng, generator = system(), np.random.default_rng()
    found: dict[str, tuple[int, Callable[[], object]]] = {
        "1 sigma2": (draws, lambda: discrete_gaussian(rng, "bench", 0, SIGMA2, draws)),
        f"{DISTINCT} sigma2, scattered": (
            draws,
            lambda: discrete_gaussian(rng, "bench", 0, (near, scattered)),
        ),
        f"{DISTINCT} sigma2, sorted": (
            draws,
            lambda: discrete_gaussian(rng, "bench", 0, (near, in_order)),
        ),
        "own sigma2 each": (few, lambda: discrete_gaussian(rng, "bench", 0, (own, each))),
        "1 scale (Laplace)": (draws, lambda: discrete_laplace(rng, "bench", 0, 10, draws)),
        "own scale each": (few, lambda: discrete_laplace(rng, "bench", 0, (own, each))),
        "NumPy normal": (draws, lambda: np.rint(generator.normal(0, 10, draws)).astype(np.int64)),
    }
    reference = opendp_gaussian()
    if reference is not None:
        found["OpenDP make_gaussian"] = (REFERENCE_DRAWS, reference)
    return found


def opendp_gaussian() -> Callable[[], object] | None:
    """Return OpenDP's discrete Gaussian at the same scale on a vector, if it is installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    measurement = dp.m.make_gaussian(*space, scale=float(SIGMA2) ** 0.5)
    zeros = [0] * REFERENCE_DRAWS
    return lambda: measurement(zeros)


def rates(draws: int, call: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Return draws per second of CPU and of wall time."""
    call()
    cpu, wall = [], []
    for _ in range(repeats):
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        call()
        cpu.append(time.process_time() - cpu_start)
        wall.append(time.perf_counter() - wall_start)
    return draws / median(cpu), draws / median(wall)


def overheads(draws: int) -> dict[str, float]:
    """Return CPU seconds to compute the tables, and to write an array on fresh memory."""
    start = time.process_time()
    for k in range(DISTINCT):
        DiscreteGaussian(SIGMA2 + 1 + Fraction(k, DISTINCT)).ladder(62)
    tables = time.process_time() - start
    start = time.process_time()
    np.ones(draws, dtype=np.int64)
    return {f"{DISTINCT} tables": tables, "fresh memory": time.process_time() - start}


def main() -> None:
    """Run all cases and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--draws", type=int, default=4_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    extra = overheads(options.draws)
    results: dict[str, Case] = {}
    for name, (draws, call) in cases(options.draws).items():
        cpu, wall = rates(draws, call, options.repeats)
        goal = GOALS.get(name)
        results[name] = {"draws": draws, "per_cpu_second": cpu, "per_wall_second": wall}
        if goal is not None:
            results[name] |= {"goal_per_cpu_second": goal, "goal_met": cpu >= goal}
    ratios = compare(results)
    if options.json:
        document = {"benchmark": "noise", "sigma2": str(SIGMA2), "cases": results}
        json.dump({**document, "ratios": ratios, "cpu_seconds_once": extra}, sys.stdout, indent=2)
        print()
    else:
        show(results, ratios, extra)


def compare(results: dict[str, Case]) -> dict[str, float]:
    """Return the ratios of CPU rates: ours over each reference."""
    references = [name for name in ("OpenDP make_gaussian", "NumPy normal") if name in results]
    return {
        f"{ours} / {other}": float(str(results[ours]["per_cpu_second"]))
        / float(str(results[other]["per_cpu_second"]))
        for ours in GOALS
        for other in references
    }


def show(results: dict[str, Case], ratios: dict[str, float], extra: dict[str, float]) -> None:
    """Print the results as a table."""
    print(f"{'million draws per second':<30} {'CPU':>9} {'wall':>9}   goal")
    for name, case in results.items():
        cpu, wall = float(str(case["per_cpu_second"])), float(str(case["per_wall_second"]))
        goal = ""
        if "goal_met" in case:
            wanted = float(str(case["goal_per_cpu_second"])) / 1e6
            goal = f"{wanted:g} {'met' if case['goal_met'] else 'MISSED'}"
        print(f"{name:<30} {cpu / 1e6:9.3f} {wall / 1e6:9.3f}   {goal}")
    for name, ratio in ratios.items():
        print(f"{name:<52} {ratio:9.2f}")
    if "OpenDP make_gaussian" not in results:
        print("OpenDP is not installed: pip install opendp")
    for name, seconds in extra.items():
        print(f"{name + ', CPU seconds once':<52} {seconds:9.3f}")


if __name__ == "__main__":
    main()
