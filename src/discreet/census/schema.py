"""The schema: which variables a census has, their codes, and what must hold.

A schema is data (one YAML file). Nothing outside a schema file or a product may
assume the codes of one country. `load_schema` reads a profile shipped with the
package by name, or any file by path.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints, field_validator, model_validator

from discreet.census import condition
from discreet.config import Strict, parse, suggest
from discreet.errors import BadInput
from discreet.files import FORMAT_VERSION, check_format, read_yaml

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
TableName = Literal["geography", "units", "persons"]

#: Columns the model itself owns; a schema may not declare them.
RESERVED = frozenset({"unit_id", "person_key", "donor_id", "row", "any", "all", "not", "same"})


class Code(Strict):
    """One entry of a code list; `parent` makes the list hierarchical."""

    label: str
    parent: str | None = None


def _codes(value: Any) -> Any:
    """Accept `{code: label}` and `[code, ...]` beside the full form."""
    if isinstance(value, list):
        value = {code: code for code in value}
    if isinstance(value, Mapping):
        if not all(isinstance(code, str) and code for code in value):
            raise ValueError("codes are text: put them in quotes")
        return {c: {"label": v} if isinstance(v, str) else v for c, v in value.items()}
    return value


class Variable(Strict):
    """One column: a code list, a text pattern, or a number in a range.

    `required` columns must exist; others are optional. Where a column exists its
    values may not be missing unless `missing: true`, or unless `only` names the
    condition under which the value is present (and elsewhere it must be missing).
    """

    title: str = ""
    codes: Annotated[dict[str, Code] | None, BeforeValidator(_codes)] = None
    pattern: str | None = None
    number: Literal["integer", "real"] | None = None
    min: float | None = None
    max: float | None = None
    required: bool = False
    missing: bool = False
    only: dict[str, Any] | None = None
    derive: Name | None = None
    simulate: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Variable:
        kinds = [k for k in ("codes", "pattern", "number") if getattr(self, k) is not None]
        if len(kinds) != 1:
            raise ValueError("a variable has exactly one of codes, pattern, number")
        if self.codes is not None:
            if not self.codes:
                raise ValueError("the code list is empty")
            for code in self.codes.values():
                if code.parent is not None and code.parent not in self.codes:
                    raise ValueError("a code names a parent that is not in the list")
            for name in self.codes:
                self.top_code(name)
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error:
                raise ValueError("pattern is not a regular expression") from None
        if (self.min is not None or self.max is not None) and self.number is None:
            raise ValueError("min and max are for numbers")
        return self

    @property
    def leaves(self) -> list[str]:
        """Codes that records may carry: those that are nobody's parent."""
        codes = self.codes or {}
        parents = {code.parent for code in codes.values()}
        return [code for code in codes if code not in parents]

    def top_code(self, code: str) -> str:
        """Return the root above a code of a hierarchical list."""
        codes = self.codes or {}
        for _ in range(len(codes) + 1):
            parent = codes[code].parent
            if parent is None:
                return code
            code = parent
        raise ValueError("the parents of a code run in a circle")

    @property
    def kind(self) -> Literal["text", "integer", "real"]:
        """How values are stored."""
        return "text" if self.number is None else self.number


class Level(Strict):
    """One level of the spine, or one kind of area outside it."""

    name: Name
    title: str = ""
    pattern: str = ".+"
    simulate: dict[str, Any] | None = None


class Recode(Strict):
    """Map the values of one column to groups: bins of numbers, groups of codes, or roots."""

    of: Name
    bins: dict[str, tuple[int, int | None]] | None = None
    groups: dict[str, list[str]] | None = None
    otherwise: str | None = None
    roll_up: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> Recode:
        if (self.bins is not None) + (self.groups is not None) + self.roll_up != 1:
            raise ValueError("a recode has exactly one of bins, groups, roll_up")
        return self


class MemberCount(Strict):
    """Count the members of a unit that satisfy a condition (`{}`: all members)."""

    members: dict[str, Any]


class MemberValue(Strict):
    """Take one variable of the member that satisfies a condition, e.g. the householder."""

    member: dict[str, Any]
    take: Name


class Case(Strict):
    """One branch of `Cases`: a constant (`then`) or the value of a column (`take`)."""

    when: dict[str, Any]
    then: str | int | None = None
    take: Name | None = None

    @model_validator(mode="after")
    def _one_result(self) -> Case:
        if (self.then is None) == (self.take is None):
            raise ValueError("a case has exactly one of then, take")
        return self


class Cases(Strict):
    """The first branch whose condition holds; else `otherwise`, else missing."""

    cases: list[Case] = Field(min_length=1)
    otherwise: str | int | None = None


Computed = Recode | MemberCount | MemberValue | Cases


class Rule(Strict):
    """Where `if` holds, `then` must hold."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
    table: TableName
    title: str
    severity: Literal["error", "warn"] = "error"
    if_: dict[str, Any] = Field(default_factory=dict, alias="if")
    then: dict[str, Any]


class Table(Strict):
    """A table shell: what is counted, by which columns, for which levels."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
    title: str
    count: Literal["units", "persons"]
    by: list[Name] = Field(default_factory=list)
    levels: list[Name] = Field(min_length=1)
    where: dict[str, Any] = Field(default_factory=dict)


class Kinds(Strict):
    """Which codes of the unit variable `kind` mean occupied, vacant, collective."""

    occupied: list[str] = Field(min_length=1)
    vacant: list[str] = Field(default_factory=list)
    collective: list[str] = Field(default_factory=list)


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
        problems = list(_problems(self))
        if problems:
            raise ValueError("; ".join(problems[:5]))
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
    return parse(Schema, check_format(read_yaml(path), path.name), path.name)


def _problems(schema: Schema) -> Iterator[str]:
    """Yield what does not fit together: unknown columns, codes, levels."""
    for place in ("geography", "units", "persons"):
        declared = [*schema.variables(place), *schema.computed(place)]
        for name in declared:
            if name in RESERVED or (name in schema.area_names):
                yield f"{place}.{name}: the name is taken by the model"
        for name in set(schema.variables(place)) & set(schema.computed(place)):
            yield f"{place}.{name}: both a variable and computed"
    kind = schema.units.get("kind")
    if kind is None or kind.codes is None or not kind.required:
        yield "units.kind: must be a required variable with codes"
    else:
        for group in (schema.kinds.occupied, schema.kinds.vacant, schema.kinds.collective):
            for code in group:
                if code not in kind.codes:
                    yield "kinds: names a code that units.kind does not have"
    for place, where, cond in _conditions(schema):
        for problem in condition.check(cond, functools.partial(_entry, schema, place)):
            yield f"{where}: {problem}"
    yield from _computed_problems(schema)
    for table in schema.tables:
        for level in table.levels:
            if level not in schema.area_names:
                yield f"tables.{table.name}: no level '{level}'.{suggest(level, schema.area_names)}"
        for column in table.by:
            if schema.home(column, table.count) is None:
                yield _unknown(schema, table.count, f"tables.{table.name}", column)


def _unknown(schema: Schema, table: TableName, where: str, column: str) -> str:
    return f"{where}: no column '{column}'.{suggest(column, schema.visible(table))}"


def _conditions(schema: Schema) -> Iterator[tuple[TableName, str, Any]]:
    """Yield every condition of the schema with the table it is read in and its place."""
    for place in ("geography", "units", "persons"):
        for name, variable in schema.variables(place).items():
            if variable.only is not None:
                yield place, f"{place}.{name}.only", variable.only
        for name, computed in schema.computed(place).items():
            where = f"computed_{place}.{name}"
            if isinstance(computed, MemberCount):
                yield "persons", where, computed.members
            elif isinstance(computed, MemberValue):
                yield "persons", where, computed.member
            elif isinstance(computed, Cases):
                for case in computed.cases:
                    yield place, where, case.when
    for rule in schema.rules:
        yield rule.table, f"rules.{rule.id}.if", rule.if_
        yield rule.table, f"rules.{rule.id}.then", rule.then
    for table in schema.tables:
        yield table.count, f"tables.{table.name}.where", table.where


def _entry(schema: Schema, table: TableName, column: str, value: Any) -> str | None:
    home = schema.home(column, table)
    if home is None:
        return f"no column '{column}'.{suggest(column, schema.visible(table))}"
    if value is None:
        return None
    kind = kind_of(schema, table, column)
    if isinstance(value, Mapping):
        if kind == "text" and set(value) & {"min", "max"}:
            return f"'{column}' has codes, not a range"
        return None
    values = value if isinstance(value, list) else [value]
    if kind != "text":
        return None if all(isinstance(v, int) for v in values) else f"'{column}' holds numbers"
    if not all(isinstance(v, str) for v in values):
        return f"codes of '{column}' are text: put them in quotes"
    variable = schema.variables(home).get(column)
    codes = variable.codes if variable is not None else None
    if codes is not None and any(v not in codes for v in values):
        return f"'{column}' has no such code"
    return None


def kind_of(schema: Schema, table: TableName, column: str) -> Literal["text", "integer", "real"]:
    """Return how the values of a column seen from `table` are stored."""
    home = schema.home(column, table)
    variable = None if home is None else schema.variables(home).get(column)
    if variable is not None:
        return variable.kind
    computed = None if home is None else schema.computed(home).get(column)
    if isinstance(computed, MemberValue) and computed.take in schema.persons:
        return schema.persons[computed.take].kind
    if isinstance(computed, Cases):
        results = [*(case.then for case in computed.cases), computed.otherwise]
        return "integer" if any(isinstance(result, int) for result in results) else "text"
    return "integer" if isinstance(computed, MemberCount) else "text"


def _kind_problems(schema: Schema, place: TableName, name: str) -> Iterator[str]:
    """Yield where a computed column mixes text with numbers."""
    computed, where = schema.computed(place)[name], f"computed_{place}.{name}"
    if isinstance(computed, Recode):
        number = kind_of(schema, place, computed.of) != "text"
        if number != (computed.bins is not None):
            yield f"{where}: bins are for numbers, groups and roll_up for codes"
    elif isinstance(computed, Cases):
        number = kind_of(schema, place, name) != "text"
        literals = [case.then for case in computed.cases if case.then is not None]
        literals += [] if computed.otherwise is None else [computed.otherwise]
        taken = [case.take for case in computed.cases if case.take is not None]
        kinds = {isinstance(literal, int) for literal in literals}
        kinds |= {kind_of(schema, place, column) != "text" for column in taken}
        if kinds != {number}:
            yield f"{where}: cases give either text or whole numbers"


def _pairs(cond: Any) -> Iterator[tuple[str, str]]:
    """Yield the pairs of columns that a condition compares."""
    for key, value in cond.items() if isinstance(cond, Mapping) else ():
        if key == "same" and isinstance(value, list) and len(value) == 2:
            yield str(value[0]), str(value[1])
        for part in value if key in ("any", "all") and isinstance(value, list) else [value]:
            if key in ("any", "all", "not"):
                yield from _pairs(part)


def _computed_problems(schema: Schema) -> Iterator[str]:
    for place in ("units", "persons"):
        for name, computed in schema.computed(place).items():
            where = f"computed_{place}.{name}"
            if isinstance(computed, Recode):
                if schema.home(computed.of, place) is None:
                    yield _unknown(schema, place, where, computed.of)
            elif isinstance(computed, MemberValue):
                if computed.take not in schema.persons:
                    yield _unknown(schema, "persons", where, computed.take)
            elif isinstance(computed, Cases):
                for case in computed.cases:
                    if case.take is not None and schema.home(case.take, place) is None:
                        yield _unknown(schema, place, where, case.take)
            if isinstance(computed, MemberCount | MemberValue) and place != "units":
                yield f"{where}: only units have members"
            yield from _kind_problems(schema, place, name)
        for name, variable in schema.variables(place).items():
            if variable.derive is not None and variable.derive not in schema.computed(place):
                yield f"{place}.{name}.derive: no computed column '{variable.derive}'"
            elif variable.derive is not None:
                derived = kind_of(schema, place, variable.derive)
                if (derived == "text") != (variable.kind == "text"):
                    yield f"{place}.{name}.derive: '{variable.derive}' is of another kind"
        yield from _circles(schema, place)


def _circles(schema: Schema, place: TableName) -> Iterator[str]:
    """Yield computed columns that need themselves."""
    for start in schema.computed(place):
        seen: set[str] = set()
        todo = [start]
        while todo:
            for name in needs(schema, place, todo.pop()):
                if name == start:
                    yield f"computed_{place}.{start}: needs itself"
                    return
                if name not in seen and name in schema.computed(place):
                    seen.add(name)
                    todo.append(name)


def needs(schema: Schema, place: TableName, name: str) -> frozenset[str]:
    """Return the columns (seen from `place`) a computed column is made from.

    Member counts and values are made from persons, not from columns of the unit.
    """
    computed = schema.computed(place).get(name)
    if isinstance(computed, Recode):
        return frozenset({computed.of})
    if isinstance(computed, Cases):
        taken = {case.take for case in computed.cases if case.take is not None}
        return frozenset(taken).union(*(condition.columns_of(c.when) for c in computed.cases))
    return frozenset()
