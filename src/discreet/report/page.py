"""Put a report together: what is said, the numbers behind it, and the page itself."""

from __future__ import annotations

import importlib.metadata
import inspect
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import narwhals as nw

from discreet.census import SIMULATED, Census
from discreet.engine import Frame
from discreet.evaluate import Comparison, InvariantCheck
from discreet.files import write_text
from discreet.mechanisms import MECHANISMS, Release
from discreet.report import words
from discreet.report.changes import Changes, changes
from discreet.report.template import fill
from discreet.report.users import guide

#: Packages whose version may matter to what came out.
PACKAGES = ("discreet", "duckdb", "narwhals", "numba", "numpy")

MODES = {
    "design": "nothing was charged to an account",
    "trial": "confidential data and a draw for internal use; nothing here may be published",
    "release": "charged to the account of its collection",
}


LEDE = (
    "A census was protected, and every statement about what stays exact was checked on the "
    "released records. Here is the promise in plain words, what the protection changed, and "
    "what that means for those who use the tables."
)

#: How templates may show a number.
FILTERS = (
    "count",
    "decimal",
    "signed",
    "whole_signed",
    "fine_signed",
    "percent",
    "plain",
    "sentence",
)


@dataclass(frozen=True)
class Run:
    """Everything a report tells about one run; both censuses are open on one engine."""

    before: Census
    after: Census
    release: Release
    checks: list[InvariantCheck]
    comparison: Comparison
    randomness: str
    seconds: Mapping[str, float]


def write_report(path: Path, run: Run) -> Path:
    """Write the report of a run as one HTML file that needs nothing else, and return its path.

    It compares with the truth, so it is internal: readable by its owner only.
    """
    write_text(path, render(run), 0o600)
    return path


def render(run: Run) -> str:
    """Return the report as HTML."""
    schema, header = run.before.schema, run.release.header
    changed = changes(run.before, run.after, run.comparison)
    return fill(
        "report.html",
        {name: getattr(words, name) for name in FILTERS},
        banner=_banner(run),
        title=f"What {words.plain(header.mechanism)} kept, and what it changed",
        lede=LEDE,
        tiles=_tiles(run, changed),
        specification=run.release.specification,
        promise=words.promise(run.release.specification),
        checks=run.checks,
        made=_made(run),
        parameters=header.parameters,
        seconds=run.seconds,
        changed=changed,
        comparison=run.comparison,
        users=guide(run.before, run.release.specification, run.comparison),
        invariant_words=lambda invariant: words.invariant_words(schema, invariant),
        level_title=lambda level: words.level_title(schema, level),
    )


def _banner(run: Run) -> list[tuple[str, str]]:
    """Return what every reader must know first, each with a short name."""
    header = run.release.header
    said = []
    if header.origin == "simulated":
        name, text = SIMULATED.rstrip(".").split(": ", 1)
        said.append((name, text))
    said.append((f"{header.mode.capitalize()} mode", MODES[header.mode]))
    said.append(("Internal", "compares with the truth; no part of the release"))
    return said


def _rows(census: Census, frame: Frame | None) -> int:
    return 0 if frame is None else int(census.engine.rows(frame.select(n=nw.len()))[0][0])


def _tiles(run: Run, changed: Changes | None) -> list[tuple[str, str]]:
    """Return the few numbers to start from, each with its words."""
    census = run.before
    tiles = []
    if census.persons is not None:
        tiles.append((words.count(_rows(census, census.persons)), "persons"))
    if census.units is not None:
        occupied = {"kind": list(census.schema.kinds.occupied)}
        households = census.frame("units", ["kind"], where=occupied)
        tiles.append((words.count(_rows(census, households)), "households"))
    kept = sum(check.holds for check in run.checks)
    tiles.append((f"{kept} of {len(run.checks)}", "invariants hold exactly"))
    if changed is not None:
        share = words.percent(changed.chosen.errors.share_changed)
        title = changed.chosen.table.title.lower()
        tiles.append((share, f"of {changed.level} counts changed ({title})"))
    return tiles


def _made(run: Run) -> list[tuple[str, str]]:
    """Return how the release was made, as names and texts."""
    header = run.release.header
    told = inspect.getdoc(MECHANISMS[header.mechanism]) or ""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    return [
        ("Mechanism", f"{header.mechanism}. {told.splitlines()[0]}"),
        ("Data", f"{run.before.schema.title} (schema {run.before.schema.name}), {header.origin}"),
        ("Mode", f"{header.mode}: {MODES[header.mode]}"),
        ("Randomness", run.randomness),
        ("Versions", ", ".join([*versions, f"Python {platform.python_version()}"])),
        ("Released files", ", ".join(sorted([*header.files, "release.yaml"]))),
    ]
