"""Count the rows of a census into a table of its schema."""

from __future__ import annotations

import narwhals as nw

from discreet.census import Census, Table
from discreet.config import suggest
from discreet.engine import Frame
from discreet.errors import BadInput


def tabulate(census: Census, table: Table | str, level: str) -> Frame:
    """Return `area, <by columns>, count` for every nonempty cell of a table at a level.

    `level` is any kind of area of the schema, on the spine or not; rows that lie in no
    such area (a block outside every place) are not counted.
    """
    shell = census.schema.table(table) if isinstance(table, str) else table
    if level not in census.schema.area_names:
        known = census.schema.area_names
        raise BadInput(
            f"schema {census.schema.name} has no level '{level}'.{suggest(level, known)}"
        )
    rows = census.frame(shell.count, [level, *shell.by], where=shell.where)
    rows = rows.filter(~nw.col(level).is_null()).rename({level: "area"})
    return rows.group_by("area", *shell.by).agg(count=nw.len())
