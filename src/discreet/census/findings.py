"""What a check of a census found, and which findings somebody has waived, with the reason.

A finding says file, rows, column, rule and count. It never carries a value: values go
to an owner-readable file in the work folder, and only when asked for.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from discreet.census.declarations import Name, TableName
from discreet.census.schema import Schema
from discreet.config import BadConfig, Strict, parse, suggest
from discreet.errors import BadInput, UnreadableFile
from discreet.files import check_format, read_yaml

Severity = Literal["error", "warn", "waived"]

#: The file of a census folder that keeps what was found and waived when it was made.
RECORD = "ingest.json"

#: Row numbers a finding lists; the count is of all rows.
FIRST_ROWS = 5

#: Built-in checks. The model stands on the structural ones, so they cannot be waived.
STRUCTURAL = {
    "column": "the column must be there",
    "type": "the value can be read as what the column holds",
    "unique": "the id stands for one row only",
    "block": "the smallest area is in the geography",
    "unit": "the unit of a person is in units",
    "nesting": "an area lies in one area of the level above",
    "lookup": "a row of the looked-up file belongs to exactly one unit",
    "ambiguous": "columns put together make a code in one way only (fill them up with `pad`)",
    "rows": "the file has at least one row (leave out a table that there is not)",
}
BUILT_IN = {
    "table": "the census has this table",
    "unknown-column": "the column is in the schema (it was left out)",
    "code": "the value is in the code list",
    "pattern": "the value has the form the schema asks for",
    "range": "the number lies in its range",
    "missing": "the value is there",
    "only": "the value is there only where it applies",
    "donor": "the donor is another person of this census",
    "flag": "a flag counts no more persons than its row has",
    **STRUCTURAL,
}


@dataclass(frozen=True)
class Finding:
    """One rule broken in one column (or table), with how often and where first."""

    rule: str
    title: str
    table: TableName
    file: str
    severity: Severity
    count: int
    column: str = ""
    rows: tuple[int, ...] = ()
    reason: str = ""
    by: str = ""
    #: Columns of the files that were read, by the column of the model that is made of them.
    made_of: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)

    @property
    def columns(self) -> list[str]:
        """The columns of the model (or of the file, while nothing was made of it yet)."""
        return self.column.split(", ") if self.column else []

    @property
    def shown(self) -> str:
        """The columns as people see them: with those of the files they are made of."""
        named = (f"{n} ({self.made_of[n]})" if n in self.made_of else n for n in self.columns)
        return ", ".join(named) or "-"


class Waiver(Strict):
    """Accept what one rule finds in one table (and column), for a stated reason."""

    rule: Annotated[str, StringConstraints(min_length=1)]
    table: TableName
    column: Name | None = None
    reason: Annotated[str, StringConstraints(strip_whitespace=True, min_length=10)]
    by: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

    def covers(self, finding: Finding) -> bool:
        """Say whether this waiver is for that finding."""
        same = (self.rule, self.table) == (finding.rule, finding.table)
        return same and self.column in (None, finding.column)


class _Waivers(Strict):
    waivers: list[Waiver] = Field(max_length=1000)


def read_waivers(path: Path, schema: Schema) -> list[Waiver]:
    """Return the waivers in a YAML list, after checking them against the schema's rules."""
    waivers = parse(_Waivers, {"waivers": read_yaml(path)}, path.name).waivers
    problems = [
        f"waivers.{place}: {problem}"
        for place, waiver in enumerate(waivers)
        if (problem := _waiver_problem(waiver, schema))
    ]
    if problems:
        raise BadConfig(path.name, problems)
    return waivers


def recorded_waivers(folder: Path) -> list[Waiver]:
    """Return the waivers with which a census folder was made."""
    path = folder / RECORD
    if not path.exists():
        return []
    try:
        record = check_format(json.loads(path.read_text(encoding="utf-8")), path.name)
    except (OSError, ValueError, RecursionError):
        raise UnreadableFile(path.name, "is not valid JSON", "Read the data in again.") from None
    return parse(_Waivers, {"waivers": record.get("waivers")}, path.name).waivers


def _waiver_problem(waiver: Waiver, schema: Schema) -> str | None:
    if waiver.rule in STRUCTURAL:
        return f"rule '{waiver.rule}' cannot be waived: the data model stands on it."
    homes = {rule.id: rule.table for rule in schema.rules}
    if waiver.rule not in homes and waiver.rule not in BUILT_IN:
        return f"there is no such rule.{suggest(waiver.rule, [*homes, *BUILT_IN])}"
    if waiver.rule in homes and homes[waiver.rule] != waiver.table:
        return f"rule '{waiver.rule}' is about {homes[waiver.rule]}."
    known = {*schema.variables(waiver.table), "unit_id", "person_key", "donor_id"}
    known |= set(schema.area_names) if waiver.table == "geography" else {schema.block}
    if waiver.column is not None and waiver.column not in known:
        return f"{waiver.table} have no such column.{suggest(waiver.column, known)}"
    return None


@dataclass(frozen=True)
class Findings:
    """All that a check of a census found."""

    items: tuple[Finding, ...] = ()
    #: Rules that need a column this census does not have: rule id -> what is lacking.
    not_checked: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings that make the census unusable."""
        return tuple(item for item in self.items if item.severity == "error")

    @property
    def ok(self) -> bool:
        """Whether no error is left."""
        return not self.errors

    def waive(self, waivers: Iterable[Waiver]) -> Findings:
        """Return the findings with the waived ones marked and their reason kept."""
        given = list(waivers)
        items = []
        for item in self.items:
            waiver = next((w for w in given if w.covers(item)), None)
            if waiver is not None and item.rule not in STRUCTURAL:
                item = dataclasses.replace(
                    item, severity="waived", reason=waiver.reason, by=waiver.by
                )
            items.append(item)
        return dataclasses.replace(self, items=tuple(items))

    def data(self) -> dict[str, Any]:
        """Return the findings as plain data for JSON."""
        items = [dataclasses.asdict(item) | {"rows": list(item.rows)} for item in self.items]
        return {"findings": items, "not_checked": dict(self.not_checked)}

    def text(self) -> str:
        """Return the findings as a table for people, most severe first."""
        order = {"error": 0, "warn": 1, "waived": 2}
        head = ("", "file", "column", "rule", "count", "first rows", "what must hold")
        lines: list[tuple[str, ...]] = [head]
        for item in sorted(self.items, key=lambda found: order[found.severity]):
            rows = ", ".join(map(str, item.rows)) or "-"
            title = f"{item.title} (waived by {item.by}: {item.reason})" if item.by else item.title
            lines.append(
                (item.severity, item.file, item.shown, item.rule, str(item.count), rows, title)
            )
        shown = _aligned(lines) if self.items else ["nothing to report"]
        for rule, lack in self.not_checked.items():
            shown.append(f"not checked: {rule} (needs {lack})")
        return "\n".join(shown)


def _aligned(lines: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
    return [line.rstrip() for line in padded]


class InvalidCensus(BadInput):
    """Data break rules that nobody waived; `findings` lists every one."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        broken = len(findings.errors)
        super().__init__(
            f"{'1 rule is' if broken == 1 else f'{broken} rules are'} broken; nothing was written. "
            f"Mend the data, or waive a rule with a reason.\n{findings.text()}"
        )
