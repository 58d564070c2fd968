"""The schema: which variables a census has, their codes, and what must hold.

A schema is data (one YAML file). Nothing outside a schema file or a product may
assume the codes of one country. `load_schema` reads a profile shipped with the
package by name, or any file by path.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints, field_validator, model_validator

from discreet.census.consistency import problems
from discreet.census.declarations import (
    Computed,
    Kinds,
    Level,
    Name,
    Rule,
    Table,
    TableName,
    Variable,
)
from discreet.config import Strict, parse, suggest
from discreet.errors import BadInput
from discreet.files import FORMAT_VERSION, check_format, read_yaml

#: Schemas read so far, by their text: a run reads the copies of one schema again and again.
_READ: dict[bytes, Schema] = {}

#: So many are kept.
MOST_READ = 16


class Schema(Strict):
    """A whole census layout."""

    format_version: int = FORMAT_VERSION
    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
    title: str
    spine: list[Level] = Field(min_length=1)
    areas: list[Level] = Field(default_factory=list)
    geography: dict[Name, Variable] = Field(default_factory=dict)
    units: dict[Name, Variable]
    persons: dict[Name, Variable]
    kinds: Kinds
    computed_units: dict[Name, Computed] = Field(default_factory=dict)
    computed_persons: dict[Name, Computed] = Field(default_factory=dict)
    rules: list[Rule] = Field(default_factory=list)
    tables: list[Table] = Field(default_factory=list)

    @field_validator("tables", "rules", "spine", "areas")
    @classmethod
    def _names_once(cls, value: list[Any]) -> list[Any]:
        names = [getattr(item, "name", None) or item.id for item in value]
        if len(set(names)) != len(names):
            raise ValueError("a name is given twice")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Schema:
        found = list(problems(self))
        if found:
            raise ValueError("; ".join(found[:5]))
        return self

    @property
    def block(self) -> str:
        """Name of the smallest level of the spine, the location a unit carries."""
        return self.spine[-1].name

    @property
    def levels(self) -> list[str]:
        """Names of the spine's levels, largest first."""
        return [level.name for level in self.spine]

    @property
    def area_names(self) -> list[str]:
        """Names of every kind of area: spine and non-nested."""
        return self.levels + [area.name for area in self.areas]

    def variables(self, table: TableName) -> dict[str, Variable]:
        """Return the declared variables of a table."""
        return {"geography": self.geography, "units": self.units, "persons": self.persons}[table]

    def computed(self, table: TableName) -> dict[str, Computed]:
        """Return the computed columns of a table."""
        if table == "units":
            return self.computed_units
        return self.computed_persons if table == "persons" else {}

    def table(self, name: str) -> Table:
        """Return a table shell by name."""
        for table in self.tables:
            if table.name == name:
                return table
        known = [table.name for table in self.tables]
        raise BadInput(f"schema {self.name} has no table '{name}'.{suggest(name, known)}")

    def home(self, name: str, table: TableName) -> TableName | None:
        """Return the table a column seen from `table` lives in (own first, then upwards).

        Persons see their unit's columns and units see their geography's.
        """
        upwards: dict[str, list[TableName]] = {
            "persons": ["persons", "units", "geography"],
            "units": ["units", "geography"],
            "geography": ["geography"],
        }
        for place in upwards[table]:
            own = set(self.variables(place)) | set(self.computed(place))
            if place == "geography":
                own |= set(self.area_names)
            if name in own:
                return place
        return None

    def visible(self, table: TableName) -> set[str]:
        """Return every column name that can be asked for from `table`."""
        names = set(self.area_names) | set(self.geography)
        if table in ("units", "persons"):
            names |= set(self.units) | set(self.computed_units)
        if table == "persons":
            names |= set(self.persons) | set(self.computed_persons)
        return names


def model_columns(schema: Schema, place: TableName, linked: bool) -> dict[str, bool]:
    """Return the columns of a table in order, and whether each is required."""
    variables = {name: v.required for name, v in schema.variables(place).items()}
    if place == "geography":
        areas = dict.fromkeys((area.name for area in schema.areas), False)
        return dict.fromkeys(schema.levels, True) | areas | variables
    if place == "units":
        return {"unit_id": True, schema.block: True} | variables
    home = "unit_id" if linked else schema.block
    return {home: True, "person_key": True} | variables | {"donor_id": False}


def load_schema(name_or_path: str | Path) -> Schema:
    """Return a shipped profile by name (`us-decennial`), or a schema file by path."""
    text = str(name_or_path)
    shipped = {p.name.removesuffix(".yaml"): p for p in _profiles()}
    if text in shipped:
        with resources.as_file(shipped[text]) as path:
            return read_schema(path)
    if not Path(text).is_file():
        raise BadInput(f"no schema file or profile of that name.{suggest(text, shipped)}")
    return read_schema(Path(text))


def _profiles() -> Iterator[Any]:
    folder = resources.files("discreet.census") / "profiles"
    return (entry for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def read_schema(path: Path) -> Schema:
    """Return the schema in a YAML file."""
    try:
        text = path.read_bytes()
    except OSError:
        text = b""  # the next reader says what is wrong
    if text not in _READ:
        schema = parse(Schema, check_format(read_yaml(path), path.name), path.name)
        while len(_READ) >= MOST_READ:
            del _READ[next(iter(_READ))]
        _READ[text] = schema
    return _READ[text].model_copy(deep=True)
