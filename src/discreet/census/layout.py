"""Layouts: how somebody else's files become the tables of a census, written as data.

A layout is a small YAML file. For each table it names the files to look for and how the
columns are made; columns it does not mention are taken from a column of the same name,
where the file has one. `load_layout` reads a shipped layout by name or any file by path.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints, field_validator, model_validator

from discreet.census.census import as_data
from discreet.census.declarations import Name, Rule, TableName, Variable
from discreet.census.schema import Schema
from discreet.config import BadConfig, Strict, parse, suggest
from discreet.errors import BadInput
from discreet.files import FORMAT_VERSION, check_format, read_yaml

#: Its length apart: a pattern that counts letters of all alphabets takes long to prepare.
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][\w .-]*$", max_length=101)]
Column = Annotated[str, StringConstraints(min_length=1, max_length=200)]
#: A recode becomes one branch per target; more branches than this no engine nests happily.
MOST_TARGETS = 200


class Part(Strict):
    """A column of the file: its text, zero-filled to `pad`, then only its `first` characters.

    Texts listed in `missing` make the whole value missing. A column of a looked-up file
    is written `geography.NAME`. With `found_in: TABLE` the part is 1 where the value stands
    in the same column of that table's file, else 0.
    """

    column: Column
    pad: Annotated[int, Field(ge=1, le=30)] | None = None
    first: Annotated[int, Field(ge=1, le=30)] | None = None
    missing: list[str] = Field(default_factory=list)
    found_in: TableName | None = None

    @property
    def width(self) -> int | None:
        """How many characters a value has, where that is known and it is not too long."""
        if self.found_in is not None:
            return 1
        return None if self.pad is None else min(self.pad, self.first or self.pad)


def _parts(value: Any) -> Any:
    """Accept a name, or a list of names and parts."""
    listed = value if isinstance(value, list) else [value]
    return [{"column": part} if isinstance(part, str) else part for part in listed]


def _making(value: Any) -> Any:
    """Accept `NAME` for `{from: NAME}`."""
    return {"from": value} if isinstance(value, str | list) else value


class Making(Strict):
    """How one column is made: parts put together or a constant, then recoded.

    `missing` lists texts that mean missing. One that is also a legal value (0 persons in
    the family) means missing only where the variable does not apply. `instead` is another
    way to make the column, for files that lack a column of `from`.
    """

    from_: Annotated[list[Part], BeforeValidator(_parts)] = Field(
        default_factory=list, alias="from"
    )
    value: str | None = None
    recode: dict[str, str] = Field(default_factory=dict)
    missing: list[str] = Field(default_factory=list)
    optional: bool = False
    instead: Annotated[Making, BeforeValidator(_making)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Making:
        if bool(self.from_) == (self.value is not None):
            raise ValueError("a column is made by exactly one of from, value")
        if len(set(self.recode.values())) > MOST_TARGETS:
            raise ValueError(f"a recode has at most {MOST_TARGETS} different results")
        return self

    @property
    def parts(self) -> list[Part]:
        """Return the parts of all ways to make the column."""
        return self.from_ if self.instead is None else [*self.from_, *self.instead.parts]

    @property
    def tables(self) -> set[str]:
        """Return the tables in whose files values are looked for."""
        return {part.found_in for part in self.parts if part.found_in is not None}

    def for_file(self, columns: Container[str]) -> Making:
        """Return how a file with these columns makes the column."""
        if self.instead is None or all(part.column in columns for part in self.from_):
            return self
        return self.instead.for_file(columns)


class FirstPersons(Strict):
    """Give the first persons of a row (as many as `column` says) the code `first`, the rest
    the code `rest`."""

    column: Column
    first: str
    rest: str


class Expand(Strict):
    """Make persons of a row that only counts them, in the order of `counts`."""

    into: Name
    counts: dict[str, Column] = Field(min_length=1)
    flags: dict[Name, FirstPersons] = Field(default_factory=dict)


class Lookup(Strict):
    """Find the row of another table's file that has the same value in column `by`."""

    table: TableName
    by: Column


class TableLayout(Strict):
    """Where one table comes from."""

    files: list[FileName] = Field(min_length=1)
    optional: bool = False
    distinct: bool = False
    lookup: Lookup | None = None
    expand: Expand | None = None
    columns: dict[Name, Annotated[Making, BeforeValidator(_making)]] = Field(default_factory=dict)
    ignore: list[Column] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_row_each(self) -> TableLayout:
        if self.distinct and self.expand is not None:
            raise ValueError("rows that count persons cannot be made distinct: each one counts")
        if self.distinct and self.lookup is not None:
            raise ValueError("rows that look up another file cannot be made distinct: leave one")
        return self


class Layout(Strict):
    """A whole layout; `also` and `rules` are for checking only and are not kept."""

    format_version: int = FORMAT_VERSION
    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
    title: str
    schema_name: str | None = Field(default=None, alias="schema")
    optional: list[str] = Field(default_factory=list)
    missing: list[str] = Field(default_factory=list)
    tables: dict[TableName, TableLayout]
    also: dict[TableName, dict[Name, Variable]] = Field(default_factory=dict)
    rules: list[Rule] = Field(default_factory=list)

    @field_validator("tables")
    @classmethod
    def _enough(cls, tables: dict[str, TableLayout]) -> dict[str, TableLayout]:
        if "geography" not in tables or len(tables) < 2:
            raise ValueError("a layout has geography, and units or persons or both")
        for name, table in tables.items():
            if table.expand is not None and name != "persons":
                raise ValueError("only persons are expanded from counts")
            if table.distinct and name == "persons":
                raise ValueError("persons cannot be made distinct: two persons may be equal")
            if table.lookup is not None and table.lookup.table not in tables:
                raise ValueError("a lookup names a table that the layout does not have")
            for making in table.columns.values():
                if not making.tables <= tables.keys():
                    raise ValueError("found_in names a table that the layout does not have")
        return tables

    def kept(self, schema: Schema) -> Schema:
        """Return the schema of the census: required columns this layout lacks are optional."""
        return parse(Schema, self._relaxed(schema), self.name)

    @model_validator(mode="after")
    def _one_id(self) -> Layout:
        """Refuse ids of units that two tables fill up to different widths: (1, 1) is (0, 11)."""
        made = [
            table.columns["unit_id"] for table in self.tables.values() if "unit_id" in table.columns
        ]
        widths = [[part.width for part in one.from_] for one in made if len(one.from_) > 1]
        if any(len(one) == len(widths[0]) and one != widths[0] for one in widths):
            raise ValueError("unit_id: units and persons must fill its parts up to the same `pad`")
        return self

    def checked(self, schema: Schema) -> Schema:
        """Return the schema to check with: the columns and rules of this layout added."""
        data = self._relaxed(schema)
        for place, variables in self.also.items():
            added = {n: v.model_dump(exclude_defaults=True) for n, v in variables.items()}
            data[place] = {**data.get(place, {}), **added}
        data["rules"] = data.get("rules", []) + [
            rule.model_dump(by_alias=True, exclude_defaults=True) for rule in self.rules
        ]
        return parse(Schema, data, self.name)

    def _relaxed(self, schema: Schema) -> dict[str, Any]:
        data = as_data(schema)
        for path in self.optional:
            place, _, name = path.partition(".")
            if name not in data.get(place, {}) or not isinstance(data[place], Mapping):
                problem = f"optional: schema {schema.name} has no such column."
                raise BadConfig(self.name, [problem])
            data[place] = {**data[place], name: {**data[place][name], "required": False}}
        return data


def load_layout(name_or_path: str | Path) -> Layout:
    """Return a shipped layout by name (`phsafe`), or a layout file by path."""
    text = str(name_or_path)
    shipped = {entry.name.removesuffix(".yaml"): entry for entry in _shipped()}
    if text in shipped:
        with resources.as_file(shipped[text]) as path:
            return _read(path)
    if not Path(text).is_file():
        raise BadInput(f"no layout file or layout of that name.{suggest(text, shipped)}")
    return _read(Path(text))


def _shipped() -> Iterator[Any]:
    folder = resources.files("discreet.census") / "layouts"
    return (entry for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def _read(path: Path) -> Layout:
    return parse(Layout, check_format(read_yaml(path), path.name), path.name)


def check_columns(layout: Layout, schema: Schema) -> None:
    """Refuse columns that the layout makes although the schema has none of that name."""
    problems = []
    for place, table in layout.tables.items():
        known = {"unit_id", "person_key", "donor_id", schema.block, *schema.variables(place)}
        known |= set(schema.area_names) if place == "geography" else set()
        expanded = [table.expand.into, *table.expand.flags] if table.expand else []
        for name in [*table.columns, *expanded]:
            if name not in known:
                where = f"tables.{place}.columns.{name}"
                problems.append(f"{where}: schema {schema.name} has none.{suggest(name, known)}")
    if problems:
        raise BadConfig(layout.name, problems)
