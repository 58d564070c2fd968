"""Decide whether a reader treated one spoilt input as it must.

It must either refuse it (a `DiscreetError` with exit status 2 that shows no value of the
input) or accept it because the mutation was harmless: then the census holds exactly the
records that an independent reader finds in the spoilt files, and every rule of the schema
holds. Either way nothing but the census itself is left on the disk.
"""

import csv
import io
import re
import shutil
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from discreet.census import Census, validate
from discreet.engine import Engine
from discreet.errors import EXIT_BAD_INPUT, DiscreetError
from fuzz.mutations import Spoilt

Listing = set[str]


def listing(folder: Path) -> Listing:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def judge(
    spoilt: Spoilt,
    room: Path,
    engine: Engine,
    canaries: Iterable[str],
    read: Callable[[Path], object],
    accepted: Callable[[Path], None],
    capture: pytest.CaptureFixture[str],
) -> bool:
    """Run `read(out)` on a spoilt input; return whether it was accepted, rightly.

    `accepted(out)` checks more than validity where the reader can be checked independently.
    """
    out = room / "out"
    before = listing(room)
    try:
        read(out)
    except DiscreetError as refusal:
        refused: DiscreetError | None = refusal
    else:
        refused = None
    said = "".join(capture.readouterr())
    if refused is not None:
        assert refused.exit_code == EXIT_BAD_INPUT, f"exit {refused.exit_code}: {refused}"
        said += "".join(traceback.format_exception(refused)) + repr(refused)
    show_nothing(said, canaries)
    assert refused is not None or not spoilt.must_refuse, "accepted silently"
    if refused is None and out.exists():
        findings = validate(Census.open(out, engine))
        assert findings.ok, f"accepted, but invalid: {findings.text()}"
        accepted(out)
        shutil.rmtree(out)
    assert listing(room) == before, f"left behind: {listing(room) - before}"
    return refused is None


#: Lines that name a key of a configuration file, or a column that a mapping file asks for:
#: those are the file's own words, not data.
OUR_WORDS = re.compile(
    r"^error +\S+ +.+ column +1 +- .*$"
    r"|^.*: (unknown key|Keys should be strings).*$"
    r"|Known: .*$",
    re.M,
)


def show_nothing(said: str, canaries: Iterable[str]) -> None:
    told = OUR_WORDS.sub("", said.replace("\\n", "\n"))
    seen = [canary for canary in canaries if canary in told]
    assert not seen, f"a value was shown: {seen} in {said}"


def records(path: Path) -> list[dict[str, str]]:
    """Return the rows of a delimited file as Python's own reader finds them."""
    text = path.read_bytes().decode("utf-8-sig")
    separator = max(",|;\t", key=text.partition("\n")[0].count)
    lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    header, *rows = [line for line in lines if line]
    return [dict(zip(header, row, strict=True)) for row in rows]


def same_records(source: Path, out: Path, engine: Engine) -> None:
    """Check that a canonical census holds the very records of the delimited files.

    Ids that are not plain numbers are replaced by others, so units and persons are compared
    by all else they hold, and a person together with its unit.
    """
    census = Census.open(out, engine)
    stored = {}
    for name in ("geography", "units", "persons"):
        frame = census.table(name)  # type: ignore[arg-type]
        columns = frame.collect_schema().names()
        stored[name] = [dict(zip(columns, row, strict=True)) for row in engine.rows(frame)]
    given = {name: records(source / f"{name}.csv") for name in stored}
    assert contents(given, stored) == contents(stored, stored)


Table = list[dict[str, Any]]


def contents(tables: dict[str, Table], like: dict[str, Table]) -> dict[str, Counter[Any]]:
    """Return the records of each table, compared on the columns that `like` has."""
    columns = {
        name: [c for c in rows[0] if c not in ("unit_id", "person_key")]
        for name, rows in like.items()
        if rows
    }
    record = {
        name: [tuple(_plain(row[c]) for c in columns[name]) for row in rows]
        for name, rows in tables.items()
        if rows
    }
    units = dict(zip((str(r["unit_id"]) for r in tables["units"]), record["units"], strict=True))
    homes = [units[str(row["unit_id"])] for row in tables["persons"]]
    return {
        "geography": Counter(record["geography"]),
        "units": Counter(record["units"]),
        "persons": Counter(zip(record.get("persons", []), homes, strict=True)),
    }


def _plain(value: object) -> str:
    """Return a value as text, numbers in one form."""
    try:
        return "" if value in (None, "") else str(float(str(value)))
    except ValueError:
        return str(value)
