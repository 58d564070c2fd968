"""Read somebody's files, check everything, and only then write or return a census."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import narwhals as nw

from discreet.census.census import SIMULATED, Census, Origin, read_header, write_header
from discreet.census.declarations import TableName
from discreet.census.examine import TABLES, Examination, Loaded, reading, write_values
from discreet.census.file_columns import FileColumns
from discreet.census.findings import (
    BUILT_IN,
    RECORD,
    Finding,
    Findings,
    InvalidCensus,
    Waiver,
    read_waivers,
)
from discreet.census.layout import Layout, check_columns, load_layout
from discreet.census.mapping import Mapped, Mapper
from discreet.census.parts import check_parts
from discreet.census.schema import Schema, load_schema
from discreet.census.sources import Sources
from discreet.census.store import Store
from discreet.census.validate import absent_table, with_wanted
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.files import FORMAT_VERSION, atomic_folder, check_path, scratch_folder, write_json


@dataclass(frozen=True)
class IngestReport:
    """What was found (warnings and waived findings; errors raise) and how many rows went in."""

    findings: Findings
    counts: dict[str, int]


def ingest(
    source: Path,
    out: Path,
    *,
    layout: str | Path = "canonical",
    schema: str | Path | None = None,
    origin: Origin | None = None,
    work: Path | None = None,
    waivers: Path | None = None,
    key: str | None = None,
    engine: Engine | None = None,
    values: bool = False,
) -> IngestReport:
    """Read `source` (a folder, or a file for layouts of one file) into a census folder `out`.

    Nothing is written unless every error is mended or waived; then `out` appears at once.

    Parameters
    ----------
    layout
        A shipped layout by name, or a layout file.
    schema
        A profile or schema file; default: the layout's, else `schema.yaml` in the source.
    work
        Folder for intermediates; default: a private one beside `out`, removed at the end.
    waivers
        A waiver file.
    key
        Secret of the person keys; default: a new one. It is kept in `out/person-key.txt`.
    values
        Write the values at fault to `values.csv` in `work`, readable by its owner only.
    """
    source, out = Path(source), Path(out)
    for path in (source, out, *([] if work is None else [work])):
        check_path(path)
    origin, plan, base = _plan(source, layout, schema, origin, key)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out.name} exists and is not empty. Choose another folder or delete it.")
    if not out.resolve().parent.is_dir():
        raise BadInput(f"the folder that is to hold {out.name} does not exist. Make it first.")
    if values and work is None:
        raise BadInput("values are written to the work folder only: name one.")
    if work is not None and work.exists() and (not work.is_dir() or any(work.iterdir())):
        raise BadInput(f"{work.name} is not empty: the work folder must be a new one of its own.")
    with _workplace(out, work, engine) as used:
        read = _examined(used, source, plan, base, waivers, work if values else None)
        with atomic_folder(out) as folder:
            counts = read.store.write(folder, key or secrets.token_hex(32))
            note = SIMULATED if origin == "simulated" else ""
            write_header(folder, read.store.schema, origin, note)
            write_json(folder / RECORD, _record(plan, read, counts), 0o600)
    return IngestReport(read.findings, counts)


def read_census(
    source: Path,
    *,
    layout: str | Path = "canonical",
    schema: str | Path | None = None,
    origin: Origin | None = None,
    waivers: Path | None = None,
    key: str | None = None,
    engine: Engine | None = None,
) -> Census:
    """Return the census in somebody's files after the same checks as `ingest`, not stored.

    For work in one go: nothing is written but what the engine spills to its work folder.
    Warnings and what was waived are in `findings` of the census. Person keys are made when
    they are needed, and for those who need one; without a `key` their secret is a new one each
    time, so give one to truncate households in the same way again. Parameters are those of
    `ingest`.
    """
    source = Path(source)
    origin, plan, base = _plan(source, layout, schema, origin, key)
    engine, secret = engine or Engine(), key or secrets.token_hex(32)
    read = _examined(engine, source, plan, base, waivers, None)
    store, frames = read.store, read.store.frames(secret, lazy=True)
    frames = {place: engine.named(frame) for place, frame in frames.items()}
    units, persons = frames.get("units"), frames.get("persons")
    made = persons is None or "person_key" in persons.collect_schema().names()
    return Census(
        store.schema,
        engine,
        frames["geography"],
        units,
        persons,
        origin,
        note=SIMULATED if origin == "simulated" else "",
        key=None if made else secret,
        findings=read.findings,
        waivers=tuple(read.waivers),
    )


def _plan(
    source: Path,
    layout: str | Path,
    schema: str | Path | None,
    origin: Origin | None,
    key: str | None,
) -> tuple[Origin, Layout, Schema]:
    """Return where data come from, and the layout and schema to read them by."""
    if not source.exists():
        raise BadInput(f"{source.name} does not exist. Check the path.")
    if key is not None and not key:
        raise BadInput("the secret of the person keys is empty. Give a long random text.")
    if origin is not None and origin not in get_args(Origin):
        raise BadInput(f"origin is not one of {', '.join(get_args(Origin))}.")
    plan = load_layout(layout)
    origin = origin or _origin_of(source)
    return origin, plan, load_schema(_schema_of(source, plan, schema))


def _origin_of(source: Path) -> Origin:
    """Return "simulated" for a simulated census read again, else "supplied"."""
    simulated = _is_census(source) and read_header(source).origin == "simulated"
    return "simulated" if simulated else "supplied"


def _is_census(source: Path) -> bool:
    """Say whether a source is a census folder, whose persons are named by keys."""
    return (source / "census.yaml").is_file()


def _schema_of(source: Path, layout: Layout, schema: str | Path | None) -> str | Path:
    if schema is not None or layout.schema_name is not None:
        return schema or str(layout.schema_name)
    own = source / "schema.yaml"
    if not own.is_file():
        raise BadInput(
            f"layout {layout.name} is for any schema: name one, or put schema.yaml in the source."
        )
    return own


@contextlib.contextmanager
def _workplace(out: Path, work: Path | None, engine: Engine | None) -> Iterator[Engine]:
    """Yield the engine to use; a work folder of our own is removed whatever happens."""
    if engine is not None:
        yield engine
        return
    with contextlib.nullcontext(work) if work else scratch_folder(out.resolve()) as folder:
        own = Engine(folder)
        try:
            yield own
        finally:
            own.close()
            shutil.rmtree(folder / "spill", ignore_errors=True)


@dataclass(frozen=True)
class _Examined:
    """Tables that keep every rule, or break only waived ones."""

    findings: Findings
    waivers: list[Waiver]
    store: Store


def _examined(
    engine: Engine,
    source: Path,
    layout: Layout,
    base: Schema,
    waivers: Path | None,
    values: Path | None,
) -> _Examined:
    """Read and check everything; refuse data that break a rule nobody waived."""
    checked = layout.checked(base)
    check_columns(layout, checked)
    given = read_waivers(waivers, checked) if waivers is not None else []
    sources = Sources(engine, source, layout)
    for place in (place for place in TABLES if place in sources):
        check_parts(engine, sources.path(place))
    found, tables, mapped = _mapped(engine, sources, layout, checked)
    own_ids = not _is_census(source)
    examination = Examination(engine, checked, tables, values is not None, own_ids)
    for raw in (raw for m in mapped for raw in m.raw_checks):
        found += examination.check(raw.place, raw.table.file, raw.frame, raw.checks)
    examined = examination.run()
    if values is not None:
        write_values(values, examination.values)
    told = FileColumns(sources, layout, tables).tell(examined.items)
    findings = Findings((*found, *told), examined.not_checked).waive(given)
    if not findings.ok:
        raise InvalidCensus(findings)
    # A waived number may lie outside the small type that its range would fit in.
    wide = {(item.table, item.column) for item in findings.items if item.rule == "range"}
    return _Examined(findings, given, Store(engine, layout.kept(base), tables, wide))


def _mapped(
    engine: Engine, sources: Sources, layout: Layout, schema: Schema
) -> tuple[list[Finding], dict[TableName, Loaded], list[Mapped]]:
    """Return every table mapped and computed, with what was found on the way."""
    found = [absent_table(place) for place in TABLES if place not in sources]
    tables: dict[TableName, Loaded] = {}
    mapped: list[Mapped] = []
    for place in TABLES:
        if place in sources:
            with reading(sources.open(place).file):
                found += _without_rows(engine, place, sources.open(place))
                areas = [m.area for m in mapped if m.area is not None]
                made = Mapper(engine, sources, layout, schema, place, areas).run()
                frame = engine.materialise(made.table.frame)
            tables[place] = Loaded(frame, made.table.file)
            found += made.findings
            mapped.append(made)
    if len(tables) < 2:
        raise BadInput("a census needs units or persons or both; the source has neither.")
    return with_wanted([*found, *sources.unused()]), tables, mapped


def _without_rows(engine: Engine, place: TableName, table: Loaded) -> Iterator[Finding]:
    """Yield the finding that a file has a header and nothing else: most likely it was cut off."""
    if not engine.rows(table.frame.select(nw.len()))[0][0]:
        yield Finding("rows", BUILT_IN["rows"], place, table.file, "error", 1)


def _record(layout: Layout, read: _Examined, counts: Mapping[str, int]) -> dict[str, object]:
    return {
        "format_version": FORMAT_VERSION,
        "layout": layout.name,
        "rows": dict(counts),
        "waivers": [waiver.model_dump() for waiver in read.waivers],
        **read.findings.data(),
    }
