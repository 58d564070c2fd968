"""The parts a schema declares: variables, levels, computed columns, rules, tables."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    FiniteFloat,
    StringConstraints,
    model_validator,
)

from discreet.config import Strict

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
TableName = Literal["geography", "units", "persons"]


class Code(Strict):
    """One entry of a code list; `parent` makes the list hierarchical."""

    label: str
    parent: str | None = None


def _codes(value: Any) -> Any:
    """Accept `{code: label}` and `[code, ...]` beside the full form."""
    if isinstance(value, list | Mapping) and not all(isinstance(c, str) and c for c in value):
        raise ValueError("codes are text: put them in quotes")
    if isinstance(value, list):
        if len(set(value)) != len(value):
            raise ValueError("a code is given twice")
        value = {code: code for code in value}
    if isinstance(value, Mapping):
        return {c: {"label": v} if isinstance(v, str) else v for c, v in value.items()}
    return value


def _regular(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        raise ValueError("pattern is not a regular expression") from None
    return pattern


class Variable(Strict):
    """One column: a code list, a text pattern, or a number in a range.

    `required` columns must exist; others are optional. Where a column exists its
    values may not be missing unless `missing: true`, or unless `only` names the
    condition under which the value is present (and elsewhere it must be missing).
    Geography is public unless a column of it is `confidential`; that one is never released.
    A column of units or persons is `from_others` if it was made by looking at other records,
    too (a rank, a flag of uniqueness, a mean of neighbours): no protected count may use it.
    """

    title: str = ""
    codes: Annotated[dict[str, Code] | None, BeforeValidator(_codes)] = None
    pattern: str | None = None
    number: Literal["integer", "real"] | None = None
    min: FiniteFloat | None = None
    max: FiniteFloat | None = None
    required: bool = False
    missing: bool = False
    only: dict[str, Any] | None = None
    derive: Name | None = None
    confidential: bool = False
    from_others: bool = False
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
            _regular(self.pattern)
        if (self.min is not None or self.max is not None) and self.number is None:
            raise ValueError("min and max are for numbers")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("min is above max")
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
    """One level of the spine, or one kind of area outside it.

    `codes` lists all areas that there may be, where they are few and known.
    """

    name: Name
    title: str = ""
    pattern: Annotated[str, AfterValidator(_regular)] = ".+"
    codes: Annotated[list[str], Field(min_length=1)] | None = None
    simulate: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _listed(self) -> Level:
        codes = self.codes or []
        if len(set(codes)) != len(codes):
            raise ValueError("a code is given twice")
        if not all(re.fullmatch(self.pattern, code) for code in codes):
            raise ValueError("a code does not fit the pattern")
        return self


class Recode(Strict):
    """Map the values of one column to groups: bins of numbers, groups of codes, or roots."""

    of: Name
    bins: dict[str, tuple[int, int | None]] | None = Field(default=None, min_length=1)
    groups: dict[str, list[str]] | None = Field(default=None, min_length=1)
    otherwise: str | None = None
    roll_up: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> Recode:
        if (self.bins is not None) + (self.groups is not None) + self.roll_up != 1:
            raise ValueError("a recode has exactly one of bins, groups, roll_up")
        limits = sorted(self.bins.values(), key=lambda limit: limit[0]) if self.bins else []
        for (_, high), (low, _) in itertools.pairwise(limits):
            if high is None or high >= low:
                raise ValueError("bins overlap")
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
