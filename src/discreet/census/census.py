"""A census at hand: schema, geography, units and persons, opened lazily.

A census is a folder::

    census.yaml       format version, schema name, origin
    schema.yaml       the whole schema, so that the folder explains itself
    geography.parquet units.parquet persons.parquet     (or folders of Parquet parts)
    auxiliary/        public side tables, for instance votes by precinct
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import narwhals as nw

from discreet.census import condition
from discreet.census.columns import Columns
from discreet.census.declarations import TableName
from discreet.census.findings import Findings, Waiver
from discreet.census.keys import with_person_key
from discreet.census.parts import check_parts
from discreet.census.schema import Schema, model_columns, read_schema
from discreet.config import Strict, parse
from discreet.engine import Engine, Frame
from discreet.errors import BadInput
from discreet.files import FORMAT_VERSION, check_format, read_yaml, write_yaml

Origin = Literal["simulated", "supplied", "released"]

#: The mode of the run that released records; empty for all others.
ReleaseMode = Literal["design", "trial", "release", ""]

#: Said wherever results of simulated data are shown.
SIMULATED = "Simulated data: says nothing about any country."


class Header(Strict):
    """The content of `census.yaml`."""

    format_version: int = FORMAT_VERSION
    schema_name: str
    origin: Origin
    note: str = ""
    mode: ReleaseMode = ""


@dataclass(frozen=True)
class Census:
    """Confidential (or simulated, or released) records under one schema.

    `persons` and `units` may be None: a register may hold persons without dwellings,
    and a housing file may hold no persons. Frames are lazy; only the engine computes.
    """

    schema: Schema
    engine: Engine = field(repr=False)
    # Never shown: printing a frame prints records.
    geography: Frame = field(repr=False)
    units: Frame | None = field(repr=False)
    persons: Frame | None = field(repr=False)
    origin: Origin
    folder: Path | None = None
    note: str = ""
    mode: ReleaseMode = ""
    #: Secret of the person keys where the census was read without making them.
    key: str | None = field(default=None, repr=False)
    #: What was found when files were read without storing them, and what somebody waived.
    findings: Findings | None = field(default=None, repr=False, compare=False)
    waivers: tuple[Waiver, ...] = field(default=(), repr=False, compare=False)
    _columns: Columns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names: tuple[TableName, ...] = ("geography", "units", "persons")
        for name in names:
            if (frame := getattr(self, name)) is not None:
                object.__setattr__(self, name, _of_schema(frame, self.schema, name))
        object.__setattr__(self, "_columns", Columns(self.schema, self.table))

    @classmethod
    def open(cls, folder: Path | str, engine: Engine | None = None) -> Census:
        """Return the census in `folder`, as `ingest`, `simulate` or a release wrote it."""
        folder = Path(folder)
        if not folder.is_dir():
            raise BadInput(
                f"{folder}: there is no such folder. Check the path to the census, or make one "
                f"with `discreet ingest` or `discreet simulate`."
            )
        engine = engine or Engine()
        header = read_header(folder)
        schema = read_schema(folder / "schema.yaml")
        if schema.name != header.schema_name:
            raise BadInput("census.yaml and schema.yaml name different schemas. Write both again.")
        units = _open_table(engine, folder, schema, "units")
        persons = _open_table(engine, folder, schema, "persons")
        geography = _open_table(engine, folder, schema, "geography")
        if geography is None or (units is None and persons is None):
            raise BadInput(
                f"{folder.name} has no geography.parquet, or neither units.parquet nor "
                f"persons.parquet. Make a census with `discreet ingest` or `discreet simulate`."
            )
        return cls(
            schema,
            engine,
            geography,
            units,
            persons,
            header.origin,
            folder,
            header.note,
            header.mode,
        )

    @property
    def banner(self) -> str:
        """Return what must be said with every result of these data."""
        return SIMULATED if self.origin == "simulated" else ""

    @property
    def private(self) -> bool:
        """Whether what is made from these records is for its owner only.

        All but simulated data and what may be published: a trial never may. Whoever writes a
        file from a census asks this, and gives it mode 0600 (folders 0700).
        """
        published = self.origin == "released" and self.mode in ("design", "release")
        return self.origin != "simulated" and not published

    @property
    def linked(self) -> bool:
        """Whether persons name the unit they live in."""
        return self.persons is not None and "unit_id" in self.persons.collect_schema().names()

    def table(self, name: TableName) -> Frame:
        """Return one of the three tables, or say that this census has none."""
        frame = {"geography": self.geography, "units": self.units, "persons": self.persons}[name]
        if frame is None:
            raise BadInput(
                f"this census has no {name} table. Add {name}.parquet to its folder, or ask for "
                f"columns of another table."
            )
        return frame

    def frame(
        self,
        table: TableName,
        columns: Iterable[str],
        where: condition.Condition | None = None,
    ) -> Frame:
        """Return `columns` of the rows of `table` that satisfy `where`.

        Columns may be variables, computed columns, and columns of the unit or the
        geography above; `unit_id`, `person_key` and `donor_id` are always known.
        """
        wanted = list(dict.fromkeys(columns))
        if self.key is not None and "person_key" in wanted:
            return self.keyed().frame(table, wanted, where)
        looked_at = condition.columns_of(where) if where else frozenset()
        frame = self._columns.add(table, [*wanted, *sorted(looked_at)])
        if where:
            frame = frame.filter(condition.to_expression(where))
        return frame.select(*wanted)

    def members(self, units: Frame) -> Census:
        """Return the census with persons of some units (`unit_id`) alone, each with its key.

        A key depends on the persons of its unit only, so where keys were not stored they are
        made for those who need one.
        """
        lives = self.table("persons").join(units.select("unit_id"), on="unit_id", how="semi")
        return replace(self, persons=lives).keyed(few=True)

    def keyed(self, few: bool = False) -> Census:
        """Return the census with a key for every person; `few` as in `with_person_key`."""
        if self.key is None or self.persons is None:
            return self
        persons = with_person_key(self.engine, self.persons, self.schema, self.key, few)
        return replace(self, persons=persons, key=None)

    @cached_property
    def kinds_by_block(self) -> Frame:
        """Return the number of units (`rows`) of each block and kind, counted once."""
        units = self.table("units").group_by(self.schema.block, "kind").agg(rows=nw.len())
        return self.engine.materialise(units)

    def auxiliary(self, name: str) -> Frame:
        """Return a public side table of the folder."""
        if self.folder is None:
            raise BadInput("this census was not opened from a folder, so it has no side tables.")
        return self.engine.read_parquet(self.folder / "auxiliary" / f"{name}.parquet")


def _of_schema(frame: Frame, schema: Schema, name: TableName, working: bool = True) -> Frame:
    """Return a table with the columns of its schema alone.

    A column of another name would be used in place of a computed one of that name, and
    nobody has said whether it may be published. No schema has names that begin with an
    underscore: with `working` such columns stay, which are added while a census is at work.
    """
    present = frame.collect_schema().names()
    known = model_columns(schema, name, linked="unit_id" in present)
    kept = [n for n in present if n in known or (working and n.startswith("_"))]
    return frame if kept == present else frame.select(*kept)


def _open_table(engine: Engine, folder: Path, schema: Schema, name: TableName) -> Frame | None:
    for path in (folder / f"{name}.parquet", folder / name):
        if path.exists():
            check_parts(engine, path)
            return _of_schema(engine.read_parquet(path), schema, name, working=False)
    return None


def read_header(folder: Path) -> Header:
    """Return the header of a census folder."""
    name = "census.yaml"
    return parse(Header, check_format(read_yaml(folder / name), name), name)


def write_header(folder: Path, schema: Schema, origin: Origin, note: str = "") -> None:
    """Write `census.yaml` and `schema.yaml`, which make a folder of tables a census."""
    header = Header(schema_name=schema.name, origin=origin, note=note)
    write_yaml(folder / "schema.yaml", as_data(schema))
    write_yaml(folder / "census.yaml", header.model_dump())


def as_data(schema: Schema) -> dict[str, Any]:
    """Return the schema as plain data that `read_schema` reads back to an equal schema."""
    data: dict[str, Any] = schema.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {"format_version": schema.format_version, **data}
