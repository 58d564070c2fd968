"""What is measured, at which level, with which part of the budget: a strategy, as data.

A strategy describes one histogram (its axes and what is known to be empty), the queries
asked of it at every level of the spine, and how the budget is shared out. Every query is a
partition of the cells, so a record that is replaced lowers one answer by one and raises
another: squared L2 sensitivity 2, and discrete Gaussian noise of parameter sigma^2 costs
rho^2 = 1/sigma^2 (Canonne, Kamath and Steinke 2020, Theorem 4). All numbers are exact.

`load_strategy` reads a strategy shipped with the package by name, or a file by path.
What needs the categories of a schema is checked where both meet: in `histogram`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from discreet.config import Strict, parse, suggest
from discreet.errors import BadInput
from discreet.files import FORMAT_VERSION, check_format, read_yaml
from discreet.spec import WHOLE, Rational

TOTAL, DETAILED = "total", "detailed"

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
Part = Annotated[Rational, Field(gt=0, le=1)]


class Axis(Strict):
    """One axis of the histogram: the values of a column, in the order of the schema.

    With `groups` the categories are groups of values, in the order given. With `missing`
    records without a value form a category of that name, the first.
    """

    name: Name
    column: str
    missing: str | None = None
    groups: dict[str, list[str]] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _once(self) -> Axis:
        if self.groups is not None:
            _refuse_repeated("value", (value for group in self.groups.values() for value in group))
            if self.missing in self.groups:
                raise ValueError("`missing` names a group that is there already")
        return self


class Regroup(Strict):
    """Coarser categories of one axis; every category of it is in exactly one group."""

    of: Name
    groups: dict[str, list[str]] = Field(min_length=1)

    @model_validator(mode="after")
    def _once(self) -> Regroup:
        _refuse_repeated("category", (one for group in self.groups.values() for one in group))
        return self


class Quarters(Strict):
    """The number of units of each category of an axis is an invariant of every smallest area.

    A category without a unit holds no records; one listed in `at_least_one` holds at least
    one record per unit.
    """

    axis: Name
    at_least_one: list[str] = Field(default_factory=list)


class Hold(Strict):
    """Answers that are exact in every area of a level."""

    query: str
    level: str


class Measured(Strict):
    """The queries of one level: its share of the budget, and each query's part of that."""

    level: str
    share: Part
    queries: dict[str, Part] = Field(min_length=1)

    @model_validator(mode="after")
    def _whole(self) -> Measured:
        if sum(self.queries.values()) != 1:
            raise ValueError(f"the parts of the queries of {self.level} do not add up to exactly 1")
        if DETAILED not in self.queries:
            # Without it cells that no query tells apart have no estimate of their own.
            raise ValueError(f"level {self.level} must measure `detailed`: every cell needs it")
        return self


class Strategy(Strict):
    """A whole measurement strategy, all of whose numbers are exact."""

    format_version: int = FORMAT_VERSION
    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
    title: str
    citations: list[str] = Field(default_factory=list)
    count: Literal["persons", "units"]
    where: dict[str, Any] = Field(default_factory=dict)
    rho: Annotated[Rational, Field(gt=0)]
    axes: list[Axis] = Field(min_length=1)
    recodes: dict[Name, Regroup] = Field(default_factory=dict)
    zeros: list[dict[str, list[str]]] = Field(default_factory=list)
    total: str | None = None
    quarters: Quarters | None = None
    hold: list[Hold] = Field(default_factory=list)
    total_first: list[str] = Field(default_factory=list)
    rounding: list[str] = Field(default=[TOTAL], min_length=1)
    levels: list[Measured] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Strategy:
        found = [*_problems_of_names(self), *_problems_of_levels(self)]
        if found:
            raise ValueError("; ".join(found[:5]))
        return self

    # -- what there is ----------------------------------------------------------------

    @property
    def root(self) -> str:
        """Return the level at the top."""
        return self.levels[0].level

    @property
    def level_names(self) -> list[str]:
        """Return the names of the levels, from the top down."""
        return [measured.level for measured in self.levels]

    def at(self, level: str) -> Measured:
        """Return what is measured at a level."""
        for measured in self.levels:
            if measured.level == level:
                return measured
        hint = suggest(level, self.level_names)
        raise BadInput(f"strategy {self.name} has no level '{level}'.{hint}")

    def axis(self, name: str) -> Axis:
        """Return an axis by name."""
        for axis in self.axes:
            if axis.name == name:
                return axis
        hint = suggest(name, (axis.name for axis in self.axes))
        raise BadInput(f"strategy {self.name} has no axis '{name}'.{hint}")

    def factors(self, query: str) -> tuple[str, ...]:
        """Return the axes and recodes whose product a query is."""
        if query == DETAILED:
            return tuple(axis.name for axis in self.axes)
        factors = () if query == TOTAL else tuple(query.split("*"))
        known = {*(axis.name for axis in self.axes), *self.recodes}
        for factor in factors:
            if factor not in known:
                hint = suggest(factor, known)
                raise BadInput(f"query '{query}': '{factor}' is no axis or recode.{hint}")
        if len({self.axis_of(factor) for factor in factors}) != len(factors):
            raise BadInput(f"query '{query}' names one axis twice. Use the finer of the two.")
        return factors

    def axis_of(self, factor: str) -> str:
        """Return the axis that a factor of a query is, or is a recode of."""
        return self.recodes[factor].of if factor in self.recodes else factor

    def distinguishes(self, query: str, axis: str) -> bool:
        """Return whether answers to a query can change when only this attribute does."""
        return axis in {self.axis_of(factor) for factor in self.factors(query)}

    # -- the budget -------------------------------------------------------------------

    def rho_of(self, level: str, query: str | None = None) -> Fraction:
        """Return the part of rho^2 that a level costs, or one query of it."""
        measured = self.at(level)
        return self.rho * measured.share * (1 if query is None else self._part(measured, query))

    def sigma2(self, level: str, query: str, share: Fraction | None = None) -> Fraction:
        """Return the parameter of the noise, 1/(rho^2 x share x part of the query).

        `share` is that of the unit; a unit that stands for levels with one child below it
        has their shares together. By default it is that of the level.
        """
        measured = self.at(level)
        own = measured.share if share is None else share
        if own <= 0:
            raise BadInput("a unit without a share of the budget is not measured.")
        return 1 / (self.rho * own * self._part(measured, query))

    def _part(self, measured: Measured, query: str) -> Fraction:
        if query not in measured.queries:
            hint = suggest(query, measured.queries)
            raise BadInput(f"query '{query}' is not measured at {measured.level}.{hint}")
        return measured.queries[query]

    def rooted(self, level: str) -> Strategy:
        """Return the strategy with a lower root: the levels above are not measured.

        The noise of every level stays the same, so rho^2 is smaller by their part.
        """
        if level == self.root:
            return self
        kept = self.levels[self.level_names.index(self.at(level).level) :]
        names = [measured.level for measured in kept]
        exact = [self.total, *(held.level for held in self.hold)]
        for above in exact:
            if above is not None and above not in names:
                raise BadInput(
                    f"strategy {self.name} keeps statistics of every {above} exact and cannot "
                    f"start at {level} below it. Start at {above}, or change what is exact."
                )
        left = sum((measured.share for measured in kept), Fraction(0))
        changes = {
            "rho": self.rho * left,
            "levels": [m.model_copy(update={"share": m.share / left}) for m in kept],
            "total_first": [one for one in self.total_first if one in names[1:]],
        }
        return self.changed(changes)

    def changed(self, changes: Mapping[str, Any]) -> Strategy:
        """Return the strategy with some fields replaced, checked anew."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return parse(type(self), {**fields, **changes}, self.name)

    def as_data(self) -> dict[str, Any]:
        """Return the strategy as plain data, as in its file."""
        told: dict[str, Any] = self.model_dump(mode="json", exclude_defaults=True)
        return {"format_version": self.format_version, **told}


# -- checks ---------------------------------------------------------------------------------


def _refuse_repeated(what: str, names: Iterable[str]) -> None:
    if any(times > 1 for times in Counter(names).values()):
        raise ValueError(f"a {what} is given twice")


def _problems_of_names(strategy: Strategy) -> Iterator[str]:
    axes = [axis.name for axis in strategy.axes]
    for name, times in Counter([*axes, *strategy.recodes]).items():
        if times > 1 or name in (TOTAL, DETAILED):
            yield f"axes and recodes: the name '{name}' is taken"
    for column, times in Counter(axis.column for axis in strategy.axes).items():
        if times > 1:
            yield f"axes: column '{column}' is given twice"
    named = [(f"recodes.{name}", recode.of) for name, recode in strategy.recodes.items()]
    named += [("zeros", axis) for zero in strategy.zeros for axis in zero]
    if strategy.quarters is not None:
        named.append(("quarters", strategy.quarters.axis))
    yield from (
        f"{place}: no axis '{axis}'.{suggest(axis, axes)}"
        for place, axis in named
        if axis not in axes
    )
    if any(not zero for zero in strategy.zeros):
        yield "zeros: an entry names no axis, so that every cell would be empty"
    if any(recode.of not in axes for recode in strategy.recodes.values()):
        return
    yield from _problems_of_queries(strategy)


def _problems_of_queries(strategy: Strategy) -> Iterator[str]:
    asked = [
        *(query for measured in strategy.levels for query in measured.queries),
        *strategy.rounding,
        *(held.query for held in strategy.hold),
    ]
    for query in dict.fromkeys(asked):
        try:
            strategy.factors(query)
        except BadInput as reason:
            yield str(reason)
            return
    for measured in strategy.levels:
        seen = Counter(frozenset(strategy.factors(query)) for query in measured.queries)
        if max(seen.values()) > 1:
            yield f"level {measured.level} asks the same query under two names"


def _problems_of_levels(strategy: Strategy) -> Iterator[str]:
    names = strategy.level_names
    if len(set(names)) != len(names):
        yield "levels: a level is given twice"
    if sum(measured.share for measured in strategy.levels) != 1:
        yield "levels: the shares do not add up to exactly 1"
    if WHOLE in names[1:]:
        yield f"levels: `{WHOLE}` can only be the first"
    exact = [("total", strategy.total), *(("hold", held.level) for held in strategy.hold)]
    for place, level in [*exact, *(("total_first", level) for level in strategy.total_first)]:
        if level is not None and level not in names:
            yield f"{place}: no level '{level}'.{suggest(level, names)}"
    for measured in strategy.levels:
        if measured.level in strategy.total_first and TOTAL not in measured.queries:
            yield f"total_first: level {measured.level} does not measure `total`"
    if names[0] in strategy.total_first:
        yield "total_first: the first level has no parent, and is estimated in one step"
    if strategy.rounding[0] != TOTAL:
        yield "rounding: the chain begins with `total`"
    if strategy.quarters is not None and strategy.quarters.axis not in strategy.rounding:
        yield f"rounding: the chain must hold '{strategy.quarters.axis}', whose bounds are exact"


# -- reading --------------------------------------------------------------------------------


def load_strategy(source: str | Path | Mapping[str, Any]) -> Strategy:
    """Return a shipped strategy by name, one in a YAML file, or one given as a mapping."""
    if isinstance(source, Mapping):
        content = {"format_version": FORMAT_VERSION, **source}
        return parse(Strategy, check_format(content, "strategy"), "strategy")
    shipped = {entry.name.removesuffix(".yaml"): entry for entry in _shipped()}
    if str(source) in shipped:
        with resources.as_file(shipped[str(source)]) as path:
            return _read(path)
    if not Path(source).is_file():
        raise BadInput(f"no strategy or strategy file of that name.{suggest(str(source), shipped)}")
    return _read(Path(source))


def shipped_strategies() -> list[str]:
    """Return the names of the strategies that come with the package."""
    return sorted(entry.name.removesuffix(".yaml") for entry in _shipped())


def _shipped() -> Iterator[Any]:
    folder = resources.files("discreet.mechanisms.topdown") / "strategies"
    return (entry for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def _read(path: Path) -> Strategy:
    return parse(Strategy, check_format(read_yaml(path), path.name), path.name)
