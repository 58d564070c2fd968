"""Write what is published: noisy tables as Parquet and in the published text format."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.engine import Engine
from discreet.errors import DiscreetError
from discreet.files import FORMAT_VERSION, write_text
from discreet.mechanisms.phsafe.accounting import Change, Noise
from discreet.mechanisms.phsafe.configuration import Configuration
from discreet.products import sdhc

#: As the published files call the noise.
DISTRIBUTIONS: dict[Noise, str] = {
    "gaussian": "Discrete Gaussian",
    "geometric": "Two-Sided Geometric",
}

Columns = dict[str, NDArray[Any]]

CHANGES: tuple[Change, ...] = ("add-remove", "replace")


def write_release(
    drawn: Path,
    out: Path,
    engine: Engine,
    settings: Configuration,
    variances: Mapping[tuple[str, str], float],
) -> None:
    """Write every table that was drawn, what follows from them, a codebook, and estimates.

    `variances` are those of the noise, by table and level. Estimates are those of a normal
    law, so there are none for geometric noise.
    """
    released: dict[str, Columns] = {}
    for table in dict.fromkeys(table for table, _ in variances):
        levels = {level: spread for (of, level), spread in variances.items() if of == table}
        frame = engine.read_parquet(drawn / f"{table}.parquet")
        frame = frame.select("cell", "value", region=nw.col("region").cast(nw.Int64))
        released[table] = _labelled(table, engine.to_numpy(frame), levels, settings)
    for name, derived in sdhc.DERIVED.items():
        if derived.source in released:
            released[name] = derive(derived, released[derived.source])
    distribution = DISTRIBUTIONS[settings.noise]
    # The kernels of estimates release the lock: tables are written meanwhile.
    with ThreadPoolExecutor(2) as pool:
        normal = settings.noise == "gaussian"
        estimated = _estimates(pool, released, settings) if normal else ()
        for table, columns in released.items():
            _write(out / "tables" / table, engine, published_columns(table, columns, distribution))
        book = sdhc.codebook(released, settings.states, normal)
        _write_codebook(out / "codebook.csv", book)
        for tables in estimated:
            for table, columns in tables.items():
                _write(out / "estimates" / table, engine, columns)


def _labelled(
    table: str, drawn: Columns, variances: Mapping[str, float], settings: Configuration
) -> Columns:
    """Return what was drawn with its labels: numbers are read faster than texts."""
    parts = [sdhc.labels(table, level, settings.states) for level in variances]
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    same = np.array_equal(rows["cell"], drawn["cell"])
    if not same or not np.array_equal(rows["region"].astype(np.int64), drawn["region"]):
        raise DiscreetError(f"the drawn table {table} is not the one of these parameters.")
    sizes = [len(part["cell"]) for part in parts]
    rows["value"] = drawn["value"]
    rows["variance"] = np.repeat([*variances.values()], sizes)
    return rows


def _estimates(
    pool: ThreadPoolExecutor, released: Mapping[str, Columns], settings: Configuration
) -> Iterator[dict[str, Columns]]:
    """Start to make tables of estimates, each from those it needs; yield them as they are made."""
    asked: list[tuple[str, ...]] = [
        (one.numerator, one.denominator) for one in sdhc.estimates.AVERAGES.values()
    ]
    asked += [(table,) for table in sdhc.estimates.COUNTS]
    jobs = [{name: released[name] for name in names if name in released} for names in asked]
    # Averages take longest, then tables of many cells: first they, so that none is left alone.
    jobs.sort(key=lambda job: (len(job), sum(len(one["cell"]) for one in job.values())))
    make = sdhc.estimates.estimate_tables
    started = [pool.submit(make, job, settings.thresholds) for job in reversed(jobs)]
    return (one.result() for one in as_completed(started))


def derive(derived: sdhc.Derived, columns: Columns) -> Columns:
    """Return a table whose cells are sums of independent cells of another: variances add."""
    own = list(sdhc.SHELLS[derived.source].cells)
    groups = len(columns["cell"]) // len(own)
    made: Columns = {
        name: columns[name].reshape(groups, len(own))[:, : len(derived.cells)].reshape(-1)
        for name in ("region_type", "region", "iteration")
    }
    made["cell"] = np.tile(np.array(list(derived.cells), dtype=np.int64), groups)
    for name in ("value", "variance"):
        values = columns[name].reshape(groups, len(own))
        sums = [
            values[:, [own.index(part) for part in parts]].sum(axis=1)
            for parts in derived.cells.values()
        ]
        made[name] = np.stack(sums, axis=1).reshape(-1)
    return made


def _write(path: Path, engine: Engine, columns: Columns) -> None:
    """Write one table twice, as Parquet and as text with bars between the columns."""
    with engine.lend(columns) as frame:
        engine.write_parquet(frame, path.with_suffix(".parquet"))
    # Codes and numbers: none needs quotes, so that columns can be made into text one by one.
    rows = zip(*(_told(column.tolist()) for column in columns.values()), strict=True)
    lines = ["|".join(columns), *map("|".join, rows), ""]
    write_text(path.with_suffix(".csv"), "\n".join(lines))


def _told(values: list[Any]) -> Iterator[str]:
    """Return values as text; where there are few different ones, each is told once."""
    few = set(values)
    # Not where 0 occurs: it equals -0.0, which is told differently.
    if len(few) > len(values) // 8 or 0.0 in few:
        return map(str, values)
    return map({value: str(value) for value in few}.__getitem__, values)


def _write_codebook(path: Path, columns: Columns) -> None:
    """Write columns of any text with bars between them."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter="|", lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    write_text(path, text.getvalue())


def published_columns(table: str, columns: Columns, distribution: str) -> Columns:
    """Return the columns of a published file: no ITERATION_CODE where there are no groups."""
    shell = sdhc.SHELLS.get(table)
    grouped = shell is None or shell.race_of is not None
    named: Columns = {"REGION_ID": columns["region"], "REGION_TYPE": columns["region_type"]}
    if grouped:
        named["ITERATION_CODE"] = columns["iteration"]
    named[sdhc.cell_column(table)] = columns["cell"]
    named["COUNT"] = columns["value"]
    named["NOISE_DISTRIBUTION"] = np.full(len(columns["cell"]), distribution, dtype=object)
    named["VARIANCE"] = columns["variance"]
    return named


def account_of(settings: Configuration) -> dict[str, Any]:
    """Return the account as plain data: a function of the configuration alone."""
    account = settings.account
    unit = "rho^2" if account.parts[0].noise == "gaussian" else "epsilon"
    totals = {
        change: {
            "charged": str(account.published(change)),
            "tight": str(account.tight(change)),
        }
        for change in CHANGES
    }
    return {
        "format_version": FORMAT_VERSION,
        "account": settings.territory,
        "states": sorted(settings.states),
        "remark": settings.remark,
        "unit": unit,
        "per": "person; `tight` is ours, proved here, and shown only: `charged` is what counts",
        "totals": totals,
        "parts": [
            {
                "table": part.table,
                "level": part.level,
                "budget": str(part.budget),
                "threshold": part.threshold,
                "stability": part.stability,
                "parameter": str(part.parameter),
                "tight": {change: str(part.tight(change)) for change in CHANGES},
            }
            for part in account.parts
        ],
    }
