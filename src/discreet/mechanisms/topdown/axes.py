"""The axes of a histogram: categories from the schema, and what may not be an axis.

An axis that lost records, or through which one record could change the cells of others,
would break the promise, so both are refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from discreet.census import (
    OF_HOUSEHOLD,
    OF_PERSON_IN_UNIT,
    Schema,
    Table,
    categories,
    columns_of,
    listed_in,
    may_be_missing,
)
from discreet.config import parse, suggest
from discreet.errors import BadInput
from discreet.mechanisms.topdown.strategy import Axis, Strategy
from discreet.spec import WHOLE

#: Whose contribution a cell of each histogram counts.
CONTRIBUTIONS = {"units": OF_HOUSEHOLD, "persons": OF_PERSON_IN_UNIT}


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
    allowed = listed_in(strategy.where, axis.column)
    if not (set(values) if allowed is None else allowed) <= listed:
        raise BadInput(
            f"axis {axis.name}: the groups leave out values of {axis.column}. Add a group for "
            f"them, or leave these records out with `where`."
        )
    absent = may_be_missing(schema, strategy.count, axis.column, strategy.where)
    if axis.missing is None and absent:
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
    """Refuse a column through which one record could change the cells of others."""
    home = schema.home(column, strategy.count)
    if home is None:
        hint = suggest(column, schema.visible(strategy.count))
        raise BadInput(f"{strategy.count} have no column '{column}'.{hint}")
    if home == "geography":
        raise BadInput(
            f"'{column}' belongs to the geography, which is public. Use columns of "
            f"{strategy.count}, and levels for places."
        )
    used_as = f"strategy {strategy.name}"
    CONTRIBUTIONS[strategy.count].check(schema, strategy.count, [column], used_as)


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
