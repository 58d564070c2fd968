"""Time targeted swapping beside the same preset in plain pandas and SciPy.

    python benchmarks/targeted.py [--json] [--households 1000000] [--rate 0.1] [--repeats 3]

Simulated household rows (no persons table), Parquet to Parquet, preset `paper`: read, sort
by risk, pair, trade blocks, write. The reference keeps one tree of all households per
class, asks it for more and more neighbours until ten are free, and writes rows as they
come; ours also checks the census, sorts what it writes and hashes it. Each case runs in a
process of its own, kernels compiled before the clock starts; medians of the repeats. The
parts of ours are timed as well, for every preset: what is prepared once, and each further
replicate.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

RACES = ("white", "black", "aian", "asian", "nhpi", "other_race", "two_or_more")
COUNTS = (*RACES, "hispanic", "size", "adults")
TIERS = ((1, 1.0), (2, 0.6), (3, 0.3))
CANDIDATES = 10
PRESETS = ("paper", "published-code", "high-variance")
HOUSEHOLDS_PER_TRACT, BLOCKS_PER_TRACT = 1600, 114

SCHEMA = """
format_version: 1
name: household-counts
title: Households as rows of counts
spine:
  - {name: state}
  - {name: county}
  - {name: tract}
  - {name: block}
geography:
  latitude: {number: real, min: -90, max: 90}
  longitude: {number: real, min: -180, max: 180}
kinds: {occupied: [occupied]}
persons: {age: {number: integer}}
units:
  kind: {required: true, codes: [occupied]}
  tenure: {codes: ["1", "2", "3", "4"]}
"""


def write_rows(households: int, folder: Path) -> None:
    """Write a simulated census of household rows: races cluster by tract, blocks by place."""
    from discreet.census import read_schema, write_header
    from discreet.engine import Engine
    from discreet.files import write_text

    random = np.random.default_rng(1)
    tracts = max(2, households // HOUSEHOLDS_PER_TRACT)
    tract = np.repeat(np.arange(tracts), BLOCKS_PER_TRACT)
    centre = random.random((tracts, 2)) * [3.0, 3.5]
    point = centre[tract] + random.normal(0, 0.02, (tract.size, 2))
    block = random.integers(0, tract.size, households)
    rows = household_counts(random, tract[block], tracts)
    rows |= {"unit_id": random.permutation(households) + 1, "place": block}
    engine = Engine()
    area = "format('01{:03d}{:06d}', t // 40, t)"
    blocks = engine.project(
        engine.from_numpy(
            {
                "place": np.arange(tract.size),
                "t": tract,
                "latitude": 31 + point[:, 0],
                "longitude": -88 + point[:, 1],
            }
        ),
        {
            "place": "place",
            "state": "'01'",
            "county": f"substr({area}, 1, 5)",
            "tract": area,
            "block": f"{area} || format('{{:04d}}', 1000 + place % {BLOCKS_PER_TRACT})",
            "latitude": "latitude",
            "longitude": "longitude",
        },
    )
    blocks = engine.materialise(blocks)
    units = engine.from_numpy(rows).join(blocks.select("place", "block"), on="place")
    columns = {"unit_id": "unit_id", "block": "block", "kind": "'occupied'"}
    columns |= {"tenure": "(1 + unit_id % 4)::varchar", **{name: name for name in COUNTS}}
    folder.mkdir(parents=True)
    engine.write_parquet(blocks.drop("place"), folder / "geography.parquet", ["block"])
    engine.write_parquet(engine.project(units, columns), folder / "units.parquet", ["unit_id"])
    listed = "".join(f"  {name}: {{number: integer, min: 0}}\n" for name in COUNTS)
    write_text(folder / "schema.yaml", SCHEMA.lstrip() + listed)
    write_header(folder, read_schema(folder / "schema.yaml"), "simulated")


def household_counts(
    random: np.random.Generator, tract: np.ndarray, tracts: int
) -> dict[str, np.ndarray]:
    """Return counts of members per household; members mostly share a race."""
    n = tract.size
    size = 1 + np.minimum(random.poisson(1.5, n), 8)
    mix = random.dirichlet([6, 2, 0.1, 0.4, 0.05, 0.5, 0.6], tracts).cumsum(axis=1)
    own = (mix[tract] < random.random((n, 1))).sum(axis=1).clip(0, 6)
    counts = np.zeros((n, 7), dtype=np.int32)
    for member in range(9):
        lives = np.flatnonzero(size > member)
        other = random.integers(0, 7, lives.size)
        race = np.where(random.random(lives.size) < 0.95, own[lives], other)
        np.add.at(counts, (lives, race), 1)
    hispanic = random.binomial(size, np.where(random.random(n) < 0.1, 0.9, 0.02))
    rows = {race: counts[:, place] for place, race in enumerate(RACES)}
    rows |= {
        "hispanic": hispanic,
        "size": size,
        "adults": np.maximum(1, random.binomial(size, 0.75)),
    }
    return {name: values.astype(np.int32) for name, values in rows.items()}


# -- ours --------------------------------------------------------------------------------------


def targeted(schema: Any, rate: str, preset: str = "paper") -> Any:
    """Return the mechanism for household rows."""
    from discreet.mechanisms import mechanism

    flags = [*RACES, "hispanic", *(("size", "adults") if preset == "paper" else ())]
    parameters = {"rate": rate, "preset": preset, "flags": flags, "groups": RACES}
    return mechanism("targeted-swapping", schema, parameters)


def swap_with_discreet(folder: Path, out: Path, rate: str, threads: int) -> None:
    """Protect the census in `folder` and write the release to `out`."""
    from discreet.census import Census
    from discreet.engine import Engine
    from discreet.mechanisms import protect
    from discreet.noise import trial

    census = Census.open(folder, Engine(threads=threads))
    protect(targeted(census.schema, rate), census, trial(1), out, threads)


def time_parts(small: Path, folder: Path, rate: str, threads: int, preset: str) -> dict[str, float]:
    """Return CPU seconds of what is prepared once, and of each further replicate."""
    from discreet.census import Census
    from discreet.engine import Engine
    from discreet.mechanisms.swapping.nearest import pair
    from discreet.noise import trial

    census = Census.open(small, Engine(threads=threads))
    made = targeted(census.schema, rate, preset)
    pair(made.prepare(census), trial(1))  # compile
    census = Census.open(folder, census.engine)
    cpu = [time.process_time()]
    prepared = made.prepare(census)
    cpu.append(time.process_time())
    for replicate in range(1, 6):
        pair(prepared, trial(1), replicate, threads)
        cpu.append(time.process_time())
    spent = np.diff(cpu).tolist()
    return {"prepare_cpu_seconds": spent[0], "replicate_cpu_seconds": median(spent[1:])}


# -- the reference -----------------------------------------------------------------------------


def swap_with_pandas(folder: Path, out: Path, rate: str, threads: int) -> None:
    """Do the same with data frames, one k-d tree per class and a loop over targets."""
    import duckdb
    from scipy.spatial import cKDTree

    connection = duckdb.connect(config={"threads": threads})
    units = connection.sql(f"from read_parquet('{folder}/units.parquet')").df()
    blocks = connection.sql(f"from read_parquet('{folder}/geography.parquet')").df()
    units = units.merge(blocks, on="block").sort_values("unit_id", ignore_index=True)
    random = np.random.default_rng(1)
    n, s = len(units), float(rate)
    flags = ["block", *RACES, "hispanic", "size", "adults"]
    units["frequency"] = units.groupby(flags)["unit_id"].transform("size")
    units["tie"] = random.random(n)
    risk = units.sort_values(["frequency", "tie"]).index.to_numpy()
    chance, tier, at = np.full(n, 0.1), np.full(n, 1), 0
    for level, (multiple, accept) in enumerate(TIERS):
        members = risk[at : at + int(multiple * s / 1.6 * n)]
        chance[members], tier[members] = accept, 4 - level
        at += members.size
    visits = np.lexsort((random.random(n), -tier))
    phi, theta = np.radians(units["latitude"]), np.radians(units["longitude"])
    point = np.column_stack([np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)])
    tract = units["tract"].astype("category").cat.codes.to_numpy()
    groups = units.groupby(["size", "adults"]).indices
    trees = {key: cKDTree(point[members]) for key, members in groups.items()}
    keys = list(zip(units["size"], units["adults"], strict=True))
    swapped, partner, done = np.zeros(n, dtype=bool), np.arange(n), 0
    for target in visits:
        if done + 2 > s * n:
            break
        if swapped[target] or random.random() >= chance[target]:
            continue
        members, tree = groups[keys[target]], trees[keys[target]]
        ask = CANDIDATES + 1
        while True:
            _, near = tree.query(point[target], k=min(ask, members.size))
            found = members[np.atleast_1d(near)]
            found = found[~swapped[found] & (tract[found] != tract[target])]
            if found.size >= CANDIDATES or ask >= members.size:
                break
            ask *= 2
        if found.size:
            other = random.choice(found[:CANDIDATES])
            partner[target], partner[other] = other, target
            swapped[target] = swapped[other] = True
            done += 2
    units["block"] = units["block"].to_numpy()[partner]
    written = units[["unit_id", "block", "kind", "tenure", *COUNTS]]
    out.mkdir(parents=True)
    connection.register("written", written)
    connection.execute(f"copy (from written) to '{out}/units.parquet' (compression zstd)")


SIDES: dict[str, Callable[..., None]] = {"discreet": swap_with_discreet, "pandas": swap_with_pandas}


# -- measuring -----------------------------------------------------------------------------------


def measure(side: str, small: Path, folder: Path, rate: str, threads: int) -> dict[str, float]:
    """Return CPU seconds, wall seconds and memory of one run in this fresh process."""
    with tempfile.TemporaryDirectory() as scratch:
        SIDES[side](small, Path(scratch) / "small", rate, threads)  # compile and import
        before = peak_mib()
        cpu, wall = time.process_time(), time.perf_counter()
        SIDES[side](folder, Path(scratch) / "out", rate, threads)
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


def in_own_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `work` returns when it is called in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(work, *arguments).result()


def middle(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {key: round(median(run[key] for run in runs), 3) for key in runs[0]}


def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return the figures of both sides, and their ratio."""
    rate, threads = options.rate, options.threads
    in_own_process(write_rows, 20_000, folder / "small")
    in_own_process(write_rows, options.households, folder / "rows")
    told: dict[str, Any] = {
        "benchmark": "targeted",
        "preset": "paper",
        "households": options.households,
        "rate": rate,
        "threads": threads,
    }
    for side in SIDES:
        if side == "pandas" and not reference_installed():
            told[side] = "not measured: install the extra `bench` for pandas and SciPy"
            continue
        arguments = (side, folder / "small", folder / "rows", rate, threads)
        repeats = options.repeats if side == "discreet" else 1
        runs = [in_own_process(measure, *arguments) for _ in range(repeats)]
        told[side] = middle(runs)
    told["parts"] = {
        preset: middle(
            [in_own_process(time_parts, folder / "small", folder / "rows", rate, threads, preset)]
        )
        for preset in PRESETS
    }
    if isinstance(told["pandas"], dict):
        ratio = told["pandas"]["cpu_seconds"] / told["discreet"]["cpu_seconds"]
        told["cpu_ratio_pandas_to_discreet"] = round(ratio, 2)
    return told


def reference_installed() -> bool:
    """Tell whether pandas and SciPy are there."""
    return all(importlib.util.find_spec(name) is not None for name in ("pandas", "scipy"))


def main() -> None:
    """Run both sides and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--households", type=int, default=1_000_000)
    parser.add_argument("--rate", default="0.1")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        told = run(options, folder)
    finally:
        shutil.rmtree(folder)
    if options.json:
        json.dump(told, sys.stdout, indent=2)
        print()
        return
    for key, figures in told.items():
        print(f"{key}: {figures}")


if __name__ == "__main__":
    main()
