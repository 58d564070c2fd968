"""Time the Supplemental DHC tables of a whole census, from its files to published tables.

    python benchmarks/phsafe.py [--json] [--csv] [--persons 1000000] [--states 51]
                                [--profile large-state | --census FOLDER] [--threads 2]
                                [--memory 2GB] [--repeats 3] [--no-reference] [--scratch .]

All nine tables at the budgets of 2020, with checks, noise, derived tables and estimates. Every run
is a new process, and the clock starts before it does: starting Python, importing and loading
compiled code are in the figures (compiling, once for each version of the program, is not, and is
told apart); `job_seconds` are those after imports, as in a session that is there already. Input is
Parquet, or with --csv the files persons, units and geo, whose reading and checking is then in the
figures, too.

The census is made here (--persons), simulated (--profile, such as large-state), or one that is
there already (--census). The reference is DuckDB alone on Parquet, without checks, noise and
estimates, the way the public code goes about it: one truncation of all persons and one join for
each table. Larger censuses are streamed: --memory bounds the engine, and what does not fit is
spilled to the scratch folder. From ten million persons on, the time for 330 million is projected:

    python benchmarks/phsafe.py --persons 100000000 --repeats 1 --no-reference --memory 4GB
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

PER_BLOCK = 16

#: Households of each size among 100, and persons per unit with one unit in ten vacant.
SIZES = [28, 34, 15, 13, 6, 2, 1]
PERSONS_PER_UNIT = 0.9 * 2.49

#: Every household from a few hashes of its number i; types follow as members are chosen.
UNITS = """
with drawn as (select i, hash(i) as h, hash(i, 1) as g, hash(i, 2) as r from range({a}, {b}) t(i)),
sized as (select *, r % 10 = 0 as vacant, (h >> 8) % 100 as x,
  case when x < 28 then 1 when x < 62 then 2 when x < 77 then 3 when x < 90 then 4
    when x < 96 then 5 when x < 98 then 6 else 7 + ((h >> 20) % 8)::int end as size,
  1 + (h >> 32) % 2 as sex, (g % 100) as c, 1 + (g >> 10) % 4 as tenure from drawn),
paired as (select *, case when size = 1 or c >= 65 then 0 when c < 50 then 21 when c < 52 then 23
    when c < 63 then 22 else 24 end as couple from sized),
filled as (select *, size - 1 - (couple > 0)::int as others, (g >> 20) % 3 as mode from paired)
select *, others > 0 and mode = 0 as kids, others > 0 and mode = 1 as kin,
  (1 + least((g >> 30) % 12, 6)) as group_,
  case when group_ = 7 then 7 + (g >> 40) % 57 else group_ end as race,
  1 + ((g >> 50) % 5 = 0)::int as hispanic,
  case when couple in (21, 23) then '1' when kids or kin then (1 + sex)::varchar
    when size = 1 then (2 + 2 * sex)::varchar else (3 + 2 * sex)::varchar end as hht,
  case when couple in (21, 23) then if(kids, 1, 2) when couple > 0 then if(kids, 3, 4)
    else if(sex = 1, 9, 5) + case when size = 1 then 0 when kids then 1 when kin then 2 else 3 end
    end as hht2,
  case couple when 21 then '1' when 23 then '2' when 22 then '3' when 24 then '4' else '5' end
    as cplt
from filled
"""


def write_census(folder: Path, persons: int, states: int) -> None:
    """Write geography, units and persons; units and persons in parts of two million units."""
    from discreet.census import load_schema, write_header
    from discreet.products import sdhc

    codes = ", ".join(f"'{code}'" for code in sdhc.STATES[:states])
    units = int(persons / PERSONS_PER_UNIT)
    blocks = max(units // PER_BLOCK, states)
    block = f"([{codes}])[1 + (b % {states})] || format('{{:013d}}', b)"
    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false")
    for name in ("units", "persons"):
        (folder / name).mkdir(parents=True)
    connection.execute(
        f"copy (select {block} as block, left(block, 12) as block_group, left(block, 11) as tract, "
        f"left(block, 5) as county, left(block, 2) as state from range({blocks}) t(b)) "
        f"to '{folder}/geography.parquet'"
    )
    for part, a in enumerate(range(0, units, 2_000_000)):
        connection.execute(
            f"create or replace temp table made as {UNITS.format(a=a, b=min(a + 2_000_000, units))}"
        )
        file = f"part-{part:03d}.parquet' (compression zstd)"
        connection.execute(
            f"copy (select i + 1 as unit_id, {block} as block, if(vacant, 'vacant', 'occupied') as "
            "kind, if(vacant, null, tenure::varchar) as tenure, if(vacant, null, hht) as "
            "household_type, if(vacant, null, lpad(hht2::varchar, 2, '0')) as household_type2, "
            "if(vacant, null, cplt) as couple_type from (select *, "
            f"least(i // {PER_BLOCK}, {blocks - 1}) as b from made)) to '{folder}/units/{file}"
        )
        connection.execute(
            "copy (select i + 1 as unit_id, (hash(i, j, 7) >> 4)::bigint as person_key, "
            "(case when j > (couple > 0)::int and kids then hash(i, j) % 18 else 18 + hash(i, j) "
            "% 70 end)::smallint as age, '1' as sex, lpad(if(hash(i, j, 1) % 5 = 0, 1 + "
            "hash(i, j, 2) % 63, race)::varchar, 2, '0') as race, hispanic::varchar as hispanic, "
            "case when j = 0 then '20' when j = 1 and couple > 0 then couple::varchar when kids "
            "then '25' when kin then '33' else '36' end as relationship from (select *, "
            f"unnest(range(size)) as j from made where not vacant)) to '{folder}/persons/{file}"
        )
    write_header(folder, load_schema("us-decennial"), "simulated")


#: The files of layout phsafe from tables of a census: `homes` (units) and `people`.
NUMBERED = "select *, 100000000 + row_number() over (order by unit_id) as MAFID from homes"
FAMILY = "relationship in ('20','21','23','25','26','27','28','29','30','31','32','33')"
FILES = {
    "persons": "select if(u.kind = 'occupied', 3, 5) as RTYPE, u.MAFID, p.age as QAGE, "
    "p.hispanic as CENHISP, p.race as CENRACE, p.relationship as RELSHIP "
    "from people p join numbered u using (unit_id)",
    "units": "select if(kind = 'group_quarters', 4, 2) as RTYPE, MAFID, coalesce(n, 0) as "
    "FINAL_POP, if(kind = 'occupied' and n > 1 and f > 1, f, 0) as NPF, if(kind = 'occupied', h, "
    "'0') as HHSPAN, if(kind = 'occupied', r, '00') as HHRACE, coalesce(tenure, '0') as TEN, "
    "coalesce(household_type, '0') as HHT, coalesce(household_type2, '00') as HHT2, "
    "coalesce(couple_type, '0') as CPLT from numbered left join (select unit_id, count(*) as n, "
    f"count(*) filter ({FAMILY}) as f, max(race) filter (relationship = '20') as r, "
    "max(hispanic) filter (relationship = '20') as h from people group by unit_id) using (unit_id)",
    "geo": "select if(kind = 'group_quarters', 4, 2) as RTYPE, MAFID, block[1:2] as TABBLKST, "
    "block[3:5] as TABBLKCOU, block[6:11] as TABTRACTCE, block[12:15] as TABBLK, block[12:12] as "
    "TABBLKGRPCE, 1 as REGIONCE, 1 as DIVISIONCE, '99999' as PLACEFP, '9999' as AIANNHCE "
    "from numbered",
}


def write_csv(folder: Path, out: Path) -> None:
    """Write the files persons, units and geo of the census in `folder`."""
    from discreet.census import Census

    census, kept = Census.open(folder), out / "tables"
    types = ["tenure", "household_type", "household_type2", "couple_type"]
    names = ["age", "hispanic", "race", "relationship"]
    for table, of, columns in (
        ("homes", "units", ["block", "kind", *types]),
        ("people", "persons", names),
    ):
        frame = census.frame(of, ["unit_id", *columns])  # type: ignore[arg-type]
        census.engine.write_parquet(frame, kept / f"{table}.parquet")
    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false")
    for table in ("homes", "people"):
        connection.execute(f"create view {table} as from read_parquet('{kept}/{table}.parquet')")
    connection.execute(f"create table numbered as {NUMBERED}")
    for name, query in FILES.items():
        connection.execute(f"copy ({query}) to '{out}/{name}.csv'")
    shutil.rmtree(kept)


def simulated(profile: str, folder: Path, threads: int) -> None:
    """Simulate a census."""
    from discreet.simulate import simulate

    simulate(profile, folder, 1, processes=threads)


def size_of(folder: Path) -> tuple[int, list[str]]:
    """Return the number of persons of a census, and its states."""
    import narwhals as nw

    from discreet.census import Census

    census = Census.open(folder)
    (persons,) = census.engine.rows(census.persons.select(rows=nw.len()))[0]
    states = census.engine.rows(census.geography.select("state").unique())
    return int(persons), sorted(row[0] for row in states)


# -- ours ----------------------------------------------------------------------------------------


def with_discreet(folder: Path, out: Path, states: list[str], threads: int, memory: str) -> None:
    """Protect the census in `folder`, or in files of layout phsafe, and write the release."""
    import warnings

    from discreet.census import Census, read_census
    from discreet.engine import Engine
    from discreet.mechanisms import mechanism, protect
    from discreet.noise import trial

    warnings.simplefilter("ignore")  # that the nation is fewer than 51 states
    engine = Engine(work=out.parent / "work", memory_limit=memory, threads=threads)
    if (folder / "geo.csv").exists():
        census = read_census(folder, layout="phsafe", origin="simulated", engine=engine)
    else:
        census = Census.open(folder, engine)
    parameters = {"configuration": "us-2020", "states": states}
    protect(mechanism("phsafe", census.schema, parameters), census, trial(1), out, threads)
    engine.close()


# -- the reference -------------------------------------------------------------------------------

HOME = "u.kind = 'occupied'"
HEAD = "h.race, h.hispanic"
JOINED = {  # filter of persons, threshold, filter of units, what is counted
    "PH1_num": ("true", 10, HOME, f"p.age < 18, {HEAD}"),
    "PH2": ("true", 10, HOME, "u.household_type2, u.couple_type"),
    "PH3": ("age < 18", 6, HOME, "p.relationship, u.household_type2, p.race, p.hispanic"),
    "PH4": (FAMILY, 10, "u.household_type <= '3'", f"p.age < 18, {HEAD}"),
    "PH6": ("age < 18 and relationship = '25'", 6, HOME, "u.household_type2, p.age"),
    "PH7": ("true", 10, HOME, f"u.tenure, {HEAD}"),
}


def with_duckdb(folder: Path, out: Path, states: list[str], threads: int, memory: str) -> None:
    """Count the same tables one after another, each with a truncation and a join of its own."""
    spill = str(out.parent / "spill")
    connection = duckdb.connect(
        config={"threads": threads, "memory_limit": memory, "temp_directory": spill}
    )
    connection.execute("set enable_progress_bar = false")
    persons, units = (_parquet(folder, name) for name in ("persons", "units"))
    head = f"(select * from {persons} where relationship = '20')"
    for where, tau, home, by in JOINED.values():
        ranked = (
            "select *, row_number() over (partition by unit_id order by person_key) as place "
            f"from {persons} where {where}"
        )
        joined = f"({ranked}) p join {units} u using (unit_id)"
        if HEAD in by:
            joined += f" join {head} h using (unit_id)"
        connection.execute(
            f"select left(u.block, 2), {by}, count(*) from {joined} "
            f"where place <= {tau} and {home} group by all"
        ).fetchall()
    for by in ("1", "household_type <= '3'", "tenure"):
        connection.execute(
            f"select left(u.block, 2), {HEAD}, {by}, count(*) from {units} u join {head} h "
            f"using (unit_id) where {HOME} group by all"
        ).fetchall()


def _parquet(folder: Path, name: str) -> str:
    """Return a table of a census, one file or a folder of them, as DuckDB reads it."""
    files = f"{name}/*.parquet" if (folder / name).is_dir() else f"{name}.parquet"
    return f"read_parquet('{folder}/{files}')"


SIDES: dict[str, Callable[..., None]] = {"discreet": with_discreet, "duckdb": with_duckdb}


# -- measuring -------------------------------------------------------------------------------------


def measure(
    side: str, folder: Path, scratch: Path, started: float, *options: Any
) -> dict[str, float]:
    """Return CPU seconds, wall seconds and memory of this fresh process, from its very start."""
    for module in ("census", "mechanisms.phsafe") if side == "discreet" else ():
        importlib.import_module(f"discreet.{module}")
    ready = time.time()
    with tempfile.TemporaryDirectory(dir=scratch) as place:
        SIDES[side](folder, Path(place) / "out", *options)
        return {
            "cpu_seconds": time.process_time(),
            "wall_seconds": time.time() - started,
            "job_seconds": time.time() - ready,
            "peak_mib": peak_mib(),
        }


def peak_mib() -> float:
    """Return the largest memory this process has held (Linux)."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def in_own_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `work` returns when it is called in a process of its own."""
    os.environ["DISCREET_OWN_PROCESS"] = "1"  # as the command line does
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def middle(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {key: round(median(run[key] for run in runs), 2) for key in runs[0]}


def census_in(options: argparse.Namespace, scratch: Path) -> Path:
    """Return the folder of the census that is asked for, made if need be."""
    if options.census is not None:
        found: Path = options.census.resolve()
        return found
    if options.profile is not None:
        in_own_process(simulated, options.profile, scratch / "census", options.threads)
    else:
        in_own_process(write_census, scratch / "census", options.persons, options.states)
    return scratch / "census"


def timed(side: str, folder: Path, scratch: Path, *settings: Any) -> dict[str, float]:
    """Return the figures of one run in a process of its own, whose start counts, too."""
    started = time.time()
    found: dict[str, float] = in_own_process(measure, side, folder, scratch, started, *settings)
    return found


def run(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Return the figures of both sides, and their ratio."""
    folder = census_in(options, scratch)
    persons, states = in_own_process(size_of, folder)
    settings = (states, options.threads, options.memory)
    told: dict[str, Any] = {
        "benchmark": "phsafe",
        "census": options.profile or (folder.name if options.census else "made here"),
        "input": "csv" if options.csv else "parquet",
        "persons": persons,
        "states": len(states),
        "threads": options.threads,
        "memory_limit": options.memory,
    }
    in_own_process(write_census, scratch / "small", 20_000, 1)
    small, read = scratch / "small", folder
    if options.csv:
        read = scratch / "files"
        for source, files in ((small, scratch / "small-files"), (folder, read)):
            in_own_process(write_csv, source, files)
        small = scratch / "small-files"
    # The first run compiles what is not yet compiled; the second one is what a start costs.
    for name in ("first_small_run", "small_run"):
        told[name] = middle([timed("discreet", small, scratch, ["01"], *settings[1:])])
    runs = [timed("discreet", read, scratch, *settings) for _ in range(options.repeats)]
    told["discreet"] = middle(runs)
    if not options.no_reference:
        told["duckdb"] = middle([timed("duckdb", folder, scratch, *settings)])
        ratio = told["duckdb"]["cpu_seconds"] / told["discreet"]["cpu_seconds"]
        told["cpu_ratio_duckdb_to_discreet"] = round(ratio, 2)
    if persons >= 10_000_000:
        per_person = told["discreet"]["wall_seconds"] / persons
        told["projected_wall_seconds_330_million"] = round(330e6 * per_person, 1)
    return told


def main() -> None:
    """Run both sides and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--csv", action="store_true", help="read persons, units and geo as text")
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--profile", help="simulate this profile instead, such as large-state")
    parser.add_argument("--census", type=Path, help="take the census in this folder instead")
    parser.add_argument("--states", type=int, default=51, help="1 to 51")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", default="2GB", help="of the engine, as DuckDB writes it")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-reference", action="store_true")
    parser.add_argument("--scratch", type=Path, help="folder for the data; default: a new one")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.scratch))
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
