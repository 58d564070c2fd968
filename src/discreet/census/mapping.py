"""Make the columns of one canonical table out of a foreign file, as its layout says.

Every value is first text; what cannot be read as its type is kept apart in a column
`_unread_NAME`, so that the checks can count it and nothing is lost silently.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import narwhals as nw
from narwhals.dtypes import DType

from discreet.census import condition
from discreet.census.checks import BLANK_ENDS, FILE, ROW, Check, unread
from discreet.census.declarations import TableName
from discreet.census.examine import Loaded, reading
from discreet.census.expand import expand
from discreet.census.findings import Finding
from discreet.census.joined import Joined, ambiguity, common_widths, conflict, tuple_text
from discreet.census.layout import Layout, Making, Part
from discreet.census.schema import Schema, model_columns
from discreet.census.sources import Sources
from discreet.census.validate import column_finding
from discreet.census.values import (
    FORMS,
    TYPES,
    as_text,
    is_exact,
    is_plain,
    legal,
    recoded,
    typed,
    without,
)
from discreet.engine import Engine, Frame

IDS = ("unit_id", "person_key", "donor_id")


@dataclass(frozen=True)
class RawCheck:
    """A check of a file before its columns are made."""

    place: TableName
    table: Loaded
    frame: Frame
    checks: list[Check]


@dataclass(frozen=True)
class Mapped:
    """A canonical table with what was found while making it."""

    table: Loaded
    findings: list[Finding]
    raw_checks: list[RawCheck]
    #: The code of the area, where it is put together.
    area: Joined | None


class Mapper:
    """Make one table of the columns of its file and of the one it looks up.

    `others` are the codes of areas in the tables made before: one code is one area in all.
    """

    def __init__(
        self,
        engine: Engine,
        sources: Sources,
        layout: Layout,
        schema: Schema,
        place: TableName,
        others: Sequence[Joined],
    ) -> None:
        self.engine, self.sources, self.schema, self.place = engine, sources, schema, place
        self.layout, self.plan = layout, layout.tables[place]
        self.others, self.given = others, dict[str, Making]()
        self.raw = sources.open(place)
        self.types: dict[str, DType] = self._own_columns()
        self.frame = self.raw.frame.select(*self.types)
        self.findings: list[Finding] = []
        self.raw_checks: list[RawCheck] = []
        self.computed: dict[str, nw.Expr] = {}

    def run(self) -> Mapped:
        """Return the table with typed columns, numbered rows, and nothing computed yet."""
        if self.plan.lookup is not None:
            self._look_up(self.plan.lookup.table, self.plan.lookup.by)
        # A file that lacks a column may have another from which the same can be made.
        self.given = {n: m.for_file(self.types) for n, m in self.plan.columns.items()}
        makings = dict(self._makings())
        if self.plan.distinct:
            self._once_each(makings)
        self._mark_found(makings)
        self._require(makings)
        made: dict[str, nw.Expr] = {}
        for name, making in makings.items():
            made |= self._column(name, making)
        area = self._check_joined(makings)
        if self.computed:
            self.frame = self.frame.with_columns(**self.computed)
        kept = [name for name in (FILE, ROW) if name in self.types]
        if self.plan.expand is not None:
            frame, checks, persons = expand(self.engine, self.frame, self.plan.expand, self._text)
            self.raw_checks.append(RawCheck(self.place, self.raw, self.frame, checks))
            self.frame, made = frame, made | persons
        frame = self._settle(self.frame.select(*kept, **made), makings)
        if self.plan.distinct:
            frame = frame.group_by(*made).agg(nw.col(ROW).min())
        return Mapped(Loaded(frame, self.raw.file), self.findings, self.raw_checks, area)

    # -- which columns, and from where ---------------------------------------------------

    def _own_columns(self) -> dict[str, DType]:
        """Return the columns of the file, without those that would pass for another's.

        Columns of a looked-up file are called `TABLE.NAME` here, and what is computed begins
        with an underscore. Columns of such names are left out unless the layout reads them.
        """
        looked_up = () if self.plan.lookup is None else (f"{self.plan.lookup.table}.",)
        read = {part.column for m in self.plan.columns.values() for part in m.parts}
        return {
            name: dtype
            for name, dtype in self.raw.columns.items()
            if name in (ROW, FILE)
            or not (name.startswith(looked_up) or (name.startswith("_") and name not in read))
        }

    def _makings(self) -> Iterator[tuple[str, Making]]:
        """Yield how each column is made: as the layout says, else from its namesake."""
        linked, taken = self._linked(), self._expanded()
        for name in model_columns(self.schema, self.place, linked):
            making = self.given.get(name) or _namesake(name)
            if name not in taken and all(part.column in self.types for part in making.from_):
                for part in making.from_:
                    self._use(part.column)
                yield name, making

    def _expanded(self) -> set[str]:
        plan = self.plan.expand
        return {plan.into, *plan.flags} if plan else set()

    def _linked(self) -> bool:
        if self.place != "persons":
            return True
        there = "unit_id" in self.plan.columns or "unit_id" in self.types
        return there and "units" in self.sources

    def _use(self, column: str) -> None:
        table, _, name = column.partition(".")
        if self.plan.lookup is not None and table == self.plan.lookup.table and name:
            self.sources.use(self.plan.lookup.table, name)
        else:
            self.sources.use(self.place, column)

    def _require(self, makings: Mapping[str, Making]) -> None:
        """Note columns that the layout or the model needs and the file does not have."""
        for name in self.plan.ignore:
            self.sources.use(self.place, name)
        wanted = {p.column for m in self.given.values() if not m.optional for p in m.from_}
        if self.plan.expand is not None:
            counted = {*self.plan.expand.counts.values()}
            wanted |= counted | {flag.column for flag in self.plan.expand.flags.values()}
            for name in wanted:
                self._use(name)
        lacking = sorted(wanted - {*self.types} - {finding.column for finding in self.findings})
        if self.findings and self.plan.lookup is not None:
            # Columns of a file that could not be looked up are not lacking themselves.
            seen_there = f"{self.plan.lookup.table}."
            lacking = [name for name in lacking if not name.startswith(seen_there)]
        made = {*makings, *self._expanded()}
        for name, required in model_columns(self.schema, self.place, self._linked()).items():
            if name == "person_key":  # given here, unless donors are named by the file's own ids
                required = "donor_id" in makings
            given = self.given.get(name)
            if required and name not in made and (given is None or given.optional):
                lacking.append(name)
        self.findings += [column_finding("column", self.place, self.raw.file, n) for n in lacking]

    def _look_up(self, table: TableName, on: str) -> None:
        """Join the row of another file that has the same key; check that keys pair up."""
        other = self.sources.open(table)
        for place, found in ((self.place, self.types), (table, other.columns)):
            if on not in found:
                file = self.raw.file if place == self.place else other.file
                self.findings.append(column_finding("column", place, file, on))
        if self.findings:
            return
        self.sources.use(self.place, on)
        self.sources.use(table, on)
        names = {c: f"{table}.{c}" for c in other.columns if c not in (ROW, FILE)}
        keyed = other.frame.with_columns(_key=as_text(on, other.columns[on]))
        self.frame = self.frame.with_columns(_key=as_text(on, self.types[on]))
        own = self.frame.select("_key")
        once = keyed.select("_key", ROW, *(nw.col(c).alias(new) for c, new in names.items()))
        if not self._pairs_up(other, keyed, own):
            once = once.unique(subset=["_key"], keep="first", order_by=[ROW])
            repeated = nw.col("_key").count().over("_key") != 1
            lost = repeated | nw.col("_known").is_null()
            check = Check("lookup", lost, (on,), mark_first=True)
            known = self.engine.distinct(own).with_columns(_known=nw.lit(True))
            marked = keyed.join(known, on="_key", how="left")
            self.raw_checks.append(RawCheck(table, other, marked, [check]))
        self.frame = self.frame.join(once.drop(ROW), on="_key", how="left")
        self.types |= {new: other.columns[c] for c, new in names.items()}

    def _pairs_up(self, other: Loaded, keyed: Frame, own: Frame) -> bool:
        """Say whether every row of a looked-up file has a key of its own that is wanted here."""
        with reading(other.file):
            lost = keyed.join(own, on="_key", how="anti").select(nw.len())
            return not (self.engine.repeated(keyed, "_key") or self.engine.rows(lost)[0][0])

    def _mark_found(self, makings: Mapping[str, Making]) -> None:
        """Add, for each part that asks for it, whether its value stands in another file."""
        parts = (part for making in makings.values() for part in making.from_)
        wanted = {(p.found_in, p.column) for p in parts if p.found_in is not None}
        for table, column in sorted(wanted):
            name, mark = found_in(table, column), nw.lit("0")
            if table in self.sources and column in self.sources.open(table).columns:
                other = self.sources.open(table)
                key = as_text(column, other.columns[column])
                known = self.engine.distinct(other.frame.select(_sought=key).drop_nulls())
                known = known.with_columns(nw.lit("1").alias(name))
                own = self.frame.with_columns(_sought=as_text(column, self.types[column]))
                self.frame = own.join(known, on="_sought", how="left").drop("_sought")
                mark = nw.col(name).fill_null("0")
            self.frame = self.frame.with_columns(mark.alias(name))

    def _once_each(self, makings: Mapping[str, Making]) -> None:
        """Keep the first of rows that agree on all that is wanted: most repeat another."""
        wanted = {part.column for making in makings.values() for part in making.from_}
        self.frame = self.frame.group_by(*sorted(wanted)).agg(nw.col(ROW).min())
        self.types.pop(FILE, None)

    def _check_joined(self, makings: Mapping[str, Making]) -> Joined | None:
        """Check codes put together that two combinations of columns may make; return the area's."""
        joined = {n: m for n, m in makings.items() if len(m.from_) > 1 and not _is_tuple(n, m)}
        firsts = {str(part): part for making in joined.values() for part in making.from_[:-1]}
        if not firsts:
            return None
        parts = [self._part(part) for part in firsts.values()]
        widths = dict(zip(firsts, common_widths(self.engine, self.frame, parts), strict=True))
        codes = {name: self._joined(making, widths) for name, making in joined.items()}
        area = codes.get(self.schema.block)
        checks = [ambiguity(code) for code in codes.values()]
        if area is not None:
            checks += [conflict(self.engine, area, other) for other in self.others]
        for frame, check in filter(None, checks):
            self.raw_checks.append(RawCheck(self.place, self.raw, frame, [check]))
        return area

    def _joined(self, making: Making, widths: Mapping[str, int | None]) -> Joined:
        return Joined(
            self.frame,
            self.raw.file,
            tuple(part.column for part in making.from_),
            tuple(self._part(part) for part in making.from_),
            tuple(widths[str(part)] for part in making.from_[:-1]),
        )

    # -- values --------------------------------------------------------------------------

    def _text(self, column: str) -> nw.Expr:
        """Return a column of the file as text; listed texts are missing."""
        if column not in self.types:
            return nw.lit(None, dtype=nw.String)
        return without(as_text(column, self.types[column]), self.layout.missing)

    def _part(self, part: Part) -> nw.Expr:
        if part.found_in is not None:
            return nw.col(found_in(part.found_in, part.column))
        text = without(self._text(part.column), part.missing)
        text = text if part.pad is None else text.str.zfill(part.pad)
        return text if part.first is None else text.str.head(part.first)

    def _column(self, name: str, making: Making) -> dict[str, nw.Expr]:
        """Return the typed column and, where reading can fail, what could not be read."""
        if making.value is not None:
            text = nw.lit(making.value)
        else:
            parts = [self._part(part) for part in making.from_]
            text = parts[0] if len(parts) == 1 else nw.concat_str(*parts)
        variable = self.schema.variables(self.place).get(name)
        text = without(text, [t for t in making.missing if not legal(variable, t)])
        kind = "text" if variable is None or name in IDS else variable.kind
        if not all(is_plain(self.types[part.column]) for part in making.from_):
            nothing = nw.lit(None, dtype=TYPES.get(kind, nw.String))
            return {name: nothing, unread(name): text}
        if making.recode:
            value, failed = recoded(self._once(f"_text_{name}", text), making.recode)
            return {name: typed(value, kind), unread(name): failed}
        if kind == "text":
            return self._text_column(name, making, text)
        readable = self._once(f"_readable_{name}", text.str.contains(FORMS[kind]))
        failed = nw.when(~readable).then(text)
        return {name: typed(nw.when(readable).then(text), kind), unread(name): failed}

    def _text_column(self, name: str, making: Making, text: nw.Expr) -> dict[str, nw.Expr]:
        """Return a column of text and, where a text can be no code or no id, those that are none.

        An id of several columns is a tuple; parts that are filled up must not be longer.
        """
        parts = [(part, self._part(part)) for part in making.from_]
        read = [(p.column, self.types[p.column], t) for p, t in parts if p.found_in is None]
        wrong = [~is_exact(column, dtype) for column, dtype, _ in read if dtype.is_float()]
        if name in IDS:
            wrong += [t.str.contains(BLANK_ENDS) for _, dtype, t in read if not dtype.is_numeric()]
        value = text
        if _is_tuple(name, making):
            widths = [part.width for part, _ in parts]
            wrong += [t.str.len_chars() != p.width for p, t in parts[:-1] if p.width is not None]
            value = nw.when(~text.is_null()).then(tuple_text([t for _, t in parts], widths))
        if not wrong:
            return {name: value}
        no_text = functools.reduce(operator.or_, wrong) & ~text.is_null()
        bad = self._once(f"_bad_{name}", no_text)
        return {name: nw.when(~bad).then(value), unread(name): nw.when(bad).then(text)}

    def _once(self, name: str, expression: nw.Expr) -> nw.Expr:
        """Return a column that holds an expression: used twice, it is computed once."""
        self.computed[name] = expression
        return nw.col(name)

    def _settle(self, frame: Frame, makings: Mapping[str, Making]) -> Frame:
        """Make legal values that the layout lists as missing so where they do not apply."""
        settled = {}
        present = set(frame.collect_schema().names())
        for name, making in makings.items():
            variable = self.schema.variables(self.place).get(name)
            texts = [text for text in making.missing if legal(variable, text)]
            if variable is None or not texts:
                continue
            column = nw.col(name)
            listed = column.cast(nw.String).is_in(texts)
            only = variable.only
            if only is not None and condition.columns_of(only) <= present:
                listed = listed & ~condition.to_expression(only)
            settled[name] = nw.when(~listed).then(column)
        return frame.with_columns(**settled) if settled else frame


def _is_tuple(name: str, making: Making) -> bool:
    """Say whether a column holds ids that are tuples of columns."""
    return name in IDS and len(making.from_) > 1 and not making.recode


def _namesake(name: str) -> Making:
    return Making.model_validate({"from": [Part(column=name)], "optional": True})


def found_in(table: str, column: str) -> str:
    """Return the name of the column that says whether a value stands in another file."""
    return f"_in_{table}_{column}"
