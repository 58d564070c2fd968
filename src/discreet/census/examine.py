"""Run the checks of a census: one pass per table; failures are counted, and read, in others."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import functools
import io
import itertools
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import narwhals as nw
from narwhals.dtypes import DType

from discreet.census.checks import (
    FILE,
    ROW,
    Check,
    Sight,
    anchored,
    columns_looked_at,
    nesting_check,
    rule_checks,
    unique_check,
    unit_columns_for_persons,
    unread,
    value_checks,
)
from discreet.census.columns import Columns
from discreet.census.declarations import TableName
from discreet.census.findings import FIRST_ROWS, Finding, Findings
from discreet.census.provenance import made_from
from discreet.census.schema import Schema
from discreet.engine import Engine, EngineStopped, Frame
from discreet.errors import BadInput, UnreadableFile
from discreet.files import private_folder, write_text

TABLES: tuple[TableName, ...] = ("geography", "units", "persons")

#: Values listed per finding and column when somebody asks for them.
FIRST_VALUES = 1000


@dataclass(frozen=True)
class Loaded:
    """A table at hand: its rows (with `_row`, where known) and the file they came from."""

    frame: Frame
    file: str

    @functools.cached_property
    def columns(self) -> dict[str, DType]:
        """Names and types of the columns."""
        return dict(self.frame.collect_schema())


@contextlib.contextmanager
def reading(file: str) -> Iterator[None]:
    """Name the file when the engine stops on it: files are read late, and may be damaged."""
    try:
        yield
    except EngineStopped:
        raise UnreadableFile(file, "cannot be read to its end", "Write it again.") from None


class Examination:
    """Check the tables of one census, which hold only columns of the right type."""

    def __init__(
        self,
        engine: Engine,
        schema: Schema,
        tables: Mapping[TableName, Loaded],
        keep_values: bool = False,
        own_ids: bool = False,
    ) -> None:
        self.engine, self.schema, self.tables = engine, schema, dict(tables)
        #: Whether persons are named by somebody's ids, not by keys that were made of records.
        self.keep_values, self.own_ids = keep_values, own_ids
        self.values: list[list[str]] = []
        self.sight = Sight(schema, {place: t.columns for place, t in tables.items()})
        #: Tables as others look up in them: each id once, so that no join repeats rows.
        self.parents = {place: table.frame for place, table in tables.items()}
        #: Tables and columns whose values were found to stand in one row each.
        self.single: set[tuple[TableName, str]] = set()

    def run(self) -> Findings:
        """Return what was found, and the rules that could not be checked."""
        check_patterns(self.engine, self.schema)
        items: list[Finding] = []
        not_checked: dict[str, str] = {}
        for place in TABLES:
            if place not in self.tables:
                lost = [rule.id for rule in self.schema.rules if rule.table == place]
                not_checked |= dict.fromkeys(lost, f"the table {place}")
                continue
            rules, left_out = rule_checks(self.schema, place, self.sight)
            not_checked |= left_out
            checks = [*value_checks(self.schema, place, self.sight), *rules]
            if place == "persons" and self.sight.linked:
                checks = [self._of_known_units(check) for check in checks]
            checks = [*self._references(place), *checks]
            with reading(self.tables[place].file):
                frame = self._prepared(place)
            found = self.check(place, self.tables[place].file, frame, checks)
            repeated = [f.column for f in found if f.rule == "unique" and place != "persons"]
            if repeated:
                self.parents[place] = _first_of_each(self.parents[place], repeated[0])
            items += found
        return Findings(tuple(items), not_checked)

    def _references(self, place: TableName) -> Iterator[Check]:
        """Yield the checks of ids: unique, and known in the table they point to."""
        present, block = self.sight.present[place], self.schema.block
        if place == "geography":
            if set(self.schema.levels) <= present:
                yield from self._once(place, block)
                yield from self._nested()
            return
        if self._located(place):
            yield Check("block", _dangling(block), (block,))
        if place == "units" and "unit_id" in present:
            yield from self._once(place, "unit_id")
        if place == "persons" and self.sight.linked:
            yield Check("unit", _dangling("unit_id"), ("unit_id",))
        if place == "persons" and "person_key" in present:
            # Keys have 60 bits: in a census of hundreds of millions two may meet by chance,
            # which matters only where donors are named by them. Ids of people never do.
            strict = self.own_ids or "donor_id" in present
            yield from self._once(place, "person_key", "error" if strict else "warn")
            if "donor_id" in present:
                itself = (nw.col("donor_id") == nw.col("person_key")).fill_null(False)
                yield Check("donor", _dangling("donor_id") | itself, ("donor_id",))

    def _of_known_units(self, check: Check) -> Check:
        """Leave out persons whose unit is not there, if a check looks at columns of the unit.

        That is an error of its own which nobody can waive; another would only follow from it.
        """
        asked = check.looked_at - self.sight.present["persons"]
        pairs = (pair for name in asked for pair in made_from(self.schema, name, "persons"))
        if all(place == "persons" for place, _ in pairs):
            return check
        known = check.violated & ~_dangling("unit_id")
        return dataclasses.replace(check, violated=known)

    def _once(
        self, place: TableName, name: str, severity: Literal["error", "warn"] = "error"
    ) -> Iterator[Check]:
        """Yield the check that ids are unique, unless a count shows that they are.

        To count is cheap; to mark the rows that repeat an id takes an order of all.
        """
        with reading(self.tables[place].file):
            repeated = self.engine.repeated(self.tables[place].frame, name)
        if repeated:
            yield unique_check(name, severity)
        else:
            self.single.add((place, name))

    def _nested(self) -> Iterator[Check]:
        """Yield the check that areas nest, for levels where a count shows that some do not."""
        table, levels = self.tables["geography"], self.schema.levels
        for above, level in itertools.pairwise(levels):
            pairs = self.engine.distinct(table.frame.select(above, level))
            with reading(table.file):
                apart = self.engine.repeated(pairs, level)
            if apart:
                yield nesting_check(above, level)

    def _located(self, place: TableName) -> bool:
        """Say whether rows of a table name an area that the geography could know."""
        block = self.schema.block
        return block in self.sight.present[place] and block in self.sight.present["geography"]

    def _prepared(self, place: TableName) -> Frame:
        """Return the table with every column its checks look at."""

        def table(name: TableName) -> Frame:
            return self.tables[name].frame if name == place else self.parents[name]

        looked_at = columns_looked_at(self.schema, place, self.sight)
        again = unit_columns_for_persons(self.schema, self.sight) if place == "units" else set()
        frame = Columns(self.schema, table).add(place, sorted(looked_at | again))
        if any(of == "persons" for name in again for of, _ in made_from(self.schema, name, place)):
            # What is counted from members is wanted again by the checks of persons.
            frame = self.parents["units"] = self.engine.materialise(frame)
        block, present = self.schema.block, self.sight.present[place]
        if place != "geography" and self._located(place):
            frame = self._mark(frame, block, "geography", block)
        if place == "persons" and self.sight.linked:
            frame = self._mark(frame, "unit_id", "units", "unit_id")
        if place == "persons" and {"donor_id", "person_key"} <= present:
            frame = self._mark(frame, "donor_id", "persons", "person_key")
        return frame

    def _mark(self, frame: Frame, name: str, other: TableName, key: str) -> Frame:
        """Add `_known_NAME`: true where `name` is a `key` of the other table, else missing."""
        listed = self.parents[other].select(nw.col(key).alias(name)).drop_nulls()
        once = listed if (other, key) in self.single else self.engine.distinct(listed)
        known = once.with_columns(nw.lit(True).alias(f"_known_{name}"))
        return frame.join(known, on=name, how="left")

    def check(
        self, place: TableName, file: str, frame: Frame, checks: list[Check]
    ) -> list[Finding]:
        """Return the findings of `checks` on `frame`: one pass if there are none."""
        if not checks:
            return []
        flags = {f"c{i}": check.violated for i, check in enumerate(checks)}
        # Made where they are counted: to mark all rows first takes far longer to plan.
        apart = {f"c{i}": check.violated for i, check in enumerate(checks) if check.mark_first}
        marks = flags | {name: nw.col(name) for name in apart}
        counted = frame.with_columns(**apart) if apart else frame
        with reading(file):
            # Most data break no rule, and that is said more quickly than how often each is.
            broken = nw.any_horizontal(*marks.values(), ignore_nulls=False)
            if not self.engine.rows(counted.select(broken.any()))[0][0]:
                return []
            totals = {name: mark.cast(nw.Int64).sum() for name, mark in marks.items()}
            counts = self.engine.rows(counted.select(**totals))[0]
            failed = {i: int(count) for i, count in enumerate(counts) if count}
            return self._at_fault(place, file, frame.with_columns(**flags), checks, failed)

    def _at_fault(
        self,
        place: TableName,
        file: str,
        marked: Frame,
        checks: list[Check],
        failed: Mapping[int, int],
    ) -> list[Finding]:
        """Return findings with their first rows, read only for the checks that failed."""
        names = set(marked.collect_schema().names())
        looked_at = {c for i in failed for n in checks[i].columns for c in (n, unread(n))}
        kept = [name for name in (FILE, ROW) if name in names]
        kept += sorted(looked_at & names) if self.keep_values else []
        any_failed = functools.reduce(operator.or_, (nw.col(f"c{i}") for i in failed))
        flags = [f"c{i}" for i in failed]
        rows = self.engine.materialise(marked.filter(any_failed).select(*kept, *flags))
        findings = []
        for i, count in failed.items():
            check, at_fault = checks[i], rows.filter(nw.col(f"c{i}"))
            part, first = _first_rows(self.engine, at_fault, file)
            shown = ", ".join(check.columns)
            findings.append(
                Finding(check.rule, check.says, place, part, check.severity, count, shown, first)
            )
            if self.keep_values:
                self._list_values(at_fault, check, part)
        return findings

    def _list_values(self, at_fault: Frame, check: Check, file: str) -> None:
        names = at_fault.collect_schema().names()
        row = nw.col(ROW) if ROW in names else nw.lit(0)
        for column in check.columns:
            value = nw.col(column).cast(nw.String) if column in names else nw.lit("")
            if unread(column) in names:
                value = nw.coalesce(value, nw.col(unread(column)))
            listed = at_fault.select(number=row, value=value).sort("number").head(FIRST_VALUES)
            for number, found in self.engine.rows(listed):
                text = "" if found is None else str(found)
                self.values.append([file, str(number), column, check.rule, text])


def _dangling(name: str) -> nw.Expr:
    return nw.col(f"_known_{name}").is_null() & ~nw.col(name).is_null()


def _first_of_each(frame: Frame, name: str) -> Frame:
    order = [c for c in (FILE, ROW) if c in frame.collect_schema().names()]
    if not order:
        return frame.unique(subset=[name], keep="any")
    return frame.unique(subset=[name], keep="first", order_by=order)


def _first_rows(engine: Engine, rows: Frame, file: str) -> tuple[str, tuple[int, ...]]:
    """Return the first rows at fault and their file (of a table in parts: the first part)."""
    order = [name for name in (FILE, ROW) if name in rows.collect_schema().names()]
    if not order:
        return file, ()
    found = engine.rows(rows.select(*order).sort(*order).head(FIRST_ROWS))
    if FILE not in order or not file.endswith("/"):
        return file, tuple(int(row[-1]) for row in found)
    return f"{file}{found[0][0]}", tuple(int(r[1]) for r in found if r[0] == found[0][0])


def check_patterns(engine: Engine, schema: Schema) -> None:
    """Refuse patterns that the engine cannot match (look-ahead and back-references)."""
    patterns = {level.name: level.pattern for level in [*schema.spine, *schema.areas]}
    for place in TABLES:
        variables = schema.variables(place)
        patterns |= {n: v.pattern for n, v in variables.items() if v.pattern is not None}
    anchors = {name: anchored(pattern) for name, pattern in patterns.items()}
    refused = engine.cannot_match([*anchors.values()])
    for name, pattern in anchors.items():
        if pattern in refused:
            raise BadInput(
                f"schema {schema.name}: the pattern of '{name}' is one the engine cannot match. "
                f"Write it without look-ahead, look-behind and back-references."
            )


def write_values(folder: Path, values: list[list[str]]) -> None:
    """Write the values at fault where only their owner can read them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["file", "row", "column", "rule", "value"])
    writer.writerows(values)
    if not folder.exists():
        private_folder(folder)
    if (folder / "values.csv").exists():
        raise BadInput(f"{folder.name} holds a values.csv already. Choose another folder.")
    write_text(folder / "values.csv", text.getvalue(), mode=0o600)
