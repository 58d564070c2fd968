"""Tiny valid files in every layout, and a way to edit them."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.census import Findings, IngestReport, InvalidCensus, ingest
from discreet.engine import Engine

SAMPLES = Path(__file__).parent / "samples"
LAYOUTS = {
    "us": {"schema": "us-decennial"},
    "register": {"schema": "register-country"},
    "phsafe": {"layout": "phsafe"},
    "household-rows": {"layout": "household-rows"},
}


@pytest.fixture(scope="session")
def engine() -> Engine:
    return Engine(threads=1)


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str], Path]:
    """Copy a sample so that it may be edited."""

    def copy(sample: str) -> Path:
        return Path(shutil.copytree(SAMPLES / sample, tmp_path / sample))

    return copy


@pytest.fixture
def layouts() -> dict[str, dict[str, Any]]:
    """Return how each sample is read."""
    return LAYOUTS


@pytest.fixture
def take_in(tmp_path: Path, engine: Engine) -> Callable[..., IngestReport]:
    """Ingest a folder as the sample it was copied from."""

    def run(folder: Path, sample: str, **options: Any) -> IngestReport:
        out = options.pop("out", tmp_path / "census")
        return ingest(folder, out, **{"engine": engine, **LAYOUTS[sample], **options})

    return run


@pytest.fixture
def found(take_in: Callable[..., IngestReport]) -> Callable[..., Findings]:
    """Ingest and return the findings, whether the data were accepted or not."""

    def run(folder: Path, sample: str, **options: Any) -> Findings:
        try:
            return take_in(folder, sample, **options).findings
        except InvalidCensus as error:
            return error.findings

    return run


@pytest.fixture
def edit() -> Callable[[Path, list[Any]], None]:
    """Apply one edit, in the words of violations.yaml, to a folder of files."""
    return apply


def apply(folder: Path, change: list[Any]) -> None:
    table, action, *rest = change
    path = folder / f"{table}.csv"
    with path.open(newline="", encoding="utf-8") as handle:
        header, *rows = list(csv.reader(handle))
    if action == "delete":
        del rows[rest[0] - 1]
    elif action == "repeat":
        rows.append(rows[rest[0] - 1])
    elif action == "rename":
        header[header.index(rest[0])] = rest[1]
    elif action == "drop":
        place = header.index(rest[0])
        header, *rows = [line[:place] + line[place + 1 :] for line in (header, *rows)]
    elif action == "add":
        header, rows = [*header, rest[0]], [[*row, rest[1]] for row in rows]
    else:
        rows[action - 1][header.index(rest[0])] = rest[1]
    with path.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle, lineterminator="\n").writerows([header, *rows])
