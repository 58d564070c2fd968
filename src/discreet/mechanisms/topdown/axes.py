"""The axes of a histogram: categories from the schema, and what may not be an axis.

An axis that lost records, or through which one record could change the cells of others,
would break the promise, so both are refused here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from discreet.census import (
    Cases,
    MemberCount,
    MemberValue,
    Recode,
    Schema,
    Table,
    TableName,
    categories,
    columns_of,
    made_from,
    refuse_confidential,
)
from discreet.config import parse, suggest
from discreet.errors import BadInput
from discreet.mechanisms.topdown.strategy import Axis, Strategy
from discreet.spec import WHOLE


@dataclass(frozen=True)
class Scale:
    """An axis with its categories, and the category of every value of its column.

    `place_of` maps values, as text, to places among the categories; None stands for a
    missing value and is there only if missing values have a category.
    """

    name: str
    column: str
    categories: tuple[str, ...]
    place_of: Mapping[str | None, int]


def scale_of(strategy: Strategy, schema: Schema, axis: Axis) -> Scale:
    """Return an axis with its categories; refuse one that would lose records."""
    check_own_record(strategy, schema, axis.column)
    values = categories(schema, strategy.count, axis.column)
    groups = axis.groups or {value: [value] for value in values}
    for value in (value for group in groups.values() for value in group):
        if value not in values:
            hint = suggest(value, values)
            raise BadInput(f"axis {axis.name}: {axis.column} has no '{value}'.{hint}")
    listed = {value for group in groups.values() for value in group}
    if not _allowed(strategy, axis.column, values) <= listed:
        raise BadInput(
            f"axis {axis.name}: the groups leave out values of {axis.column}. Add a group for "
            f"them, or leave these records out with `where`."
        )
    if axis.missing is None and _may_be_missing(strategy, schema, axis.column):
        raise BadInput(
            f"axis {axis.name}: {axis.column} may be missing. Name a category for records "
            f"without a value (`missing:`)."
        )
    first = () if axis.missing is None else (axis.missing,)
    names = (*first, *groups)
    if len(set(names)) != len(names):
        raise BadInput(f"axis {axis.name}: the name of `missing` is taken by a category.")
    place_of: dict[str | None, int] = {} if axis.missing is None else {None: 0}
    for place, group in enumerate(groups.values(), start=len(first)):
        place_of |= dict.fromkeys(group, place)
    return Scale(axis.name, axis.column, names, place_of)


def _allowed(strategy: Strategy, column: str, values: list[str]) -> set[str]:
    """Return the values that `where` leaves, as far as it lists them."""
    listed = strategy.where.get(column)
    if isinstance(listed, str | int):
        return {str(listed)}
    return {str(value) for value in listed} if isinstance(listed, list) else set(values)


def _may_be_missing(strategy: Strategy, schema: Schema, column: str) -> bool:
    """Return whether records that `where` leaves may have no value, by the schema."""
    limits = strategy.where.get(column)
    if limits is not None:  # a missing value never satisfies a list or a range
        return isinstance(limits, Mapping) and bool(limits.get("missing", False))
    home = schema.home(column, strategy.count) or "geography"
    variable = schema.variables(home).get(column)
    if variable is not None:
        if variable.only is None:
            return variable.missing
        return not all(
            isinstance(codes, list) and _allowed(strategy, name, [""]) <= set(codes)
            for name, codes in variable.only.items()
        )
    computed = schema.computed(home).get(column)
    if isinstance(computed, Recode):
        lost = _leaves_out(schema, home, computed)
        return lost or _may_be_missing(strategy, schema, computed.of)
    if isinstance(computed, Cases):
        return computed.otherwise is None
    return not isinstance(computed, MemberCount)


def _leaves_out(schema: Schema, home: TableName, recode: Recode) -> bool:
    """Return whether a recode has values without a group."""
    if recode.otherwise is not None or recode.roll_up:
        return False
    if recode.groups is not None:
        listed = {code for group in recode.groups.values() for code in group}
        return not set(categories(schema, home, recode.of)) <= listed
    bins = sorted((recode.bins or {}).values(), key=lambda limits: limits[0])
    least, most = _range(schema, home, recode.of)
    gaps = any(high is None or high + 1 < low for (_, high), (low, _) in pairwise(bins))
    last = math.inf if bins[-1][1] is None else bins[-1][1]
    return gaps or bins[0][0] > least or last < most


def _range(schema: Schema, home: TableName, column: str) -> tuple[float, float]:
    """Return the least and the largest value of a column of whole numbers, as far as known."""
    place = schema.home(column, home) or home
    if isinstance(schema.computed(place).get(column), MemberCount):
        return 0, math.inf
    variable = schema.variables(place).get(column)
    if variable is None or variable.number != "integer":
        return -math.inf, math.inf
    least = -math.inf if variable.min is None else variable.min
    return least, math.inf if variable.max is None else variable.max


def check_where(strategy: Strategy, schema: Schema) -> None:
    """Refuse a condition that the schema would refuse in a table of its own."""
    if not strategy.where:
        return
    fields = {name: getattr(schema, name) for name in type(schema).model_fields}
    counted = Table(
        name="counted",
        title="",
        count=strategy.count,
        levels=[schema.block],
        where=strategy.where,
    )
    parse(type(schema), {**fields, "tables": [counted]}, f"strategy {strategy.name}")
    for column in sorted(columns_of(strategy.where)):
        check_own_record(strategy, schema, column)


def check_own_record(strategy: Strategy, schema: Schema, column: str) -> None:
    """Refuse a column through which one record could change the cells of others.

    A person's household size or type changes when somebody else moves in. Columns of the
    unit that do not look at its members are fine for persons. For units the whole household
    is one record.
    """
    home = schema.home(column, strategy.count)
    if home is None:
        hint = suggest(column, schema.visible(strategy.count))
        raise BadInput(f"{strategy.count} have no column '{column}'.{hint}")
    if home == "geography":
        raise BadInput(
            f"'{column}' belongs to the geography, which is public. Use columns of "
            f"{strategy.count}, and levels for places."
        )
    refuse_confidential(schema, strategy.count, [column], f"strategy {strategy.name}")
    if strategy.count == "units":
        return
    for place, name in made_from(schema, column):
        if isinstance(schema.computed(place).get(name), MemberCount | MemberValue):
            raise BadInput(
                f"'{column}' depends on the other members of the unit, so that one person could "
                f"change many cells. Count units instead."
            )


def check_levels(strategy: Strategy, schema: Schema) -> None:
    """Refuse levels that are not on the spine, in another order, or end above its foot."""
    names = [level for level in strategy.level_names if level != WHOLE]
    for level in names:
        if level not in schema.levels:
            hint = suggest(level, schema.levels)
            raise BadInput(f"the spine of schema {schema.name} has no level '{level}'.{hint}")
    if names != [level for level in schema.levels if level in names]:
        raise BadInput(f"the levels of strategy {strategy.name} are not in the order of the spine.")
    if not names or names[-1] != schema.block:
        raise BadInput(f"strategy {strategy.name} must end at the smallest level, {schema.block}.")
