"""Make persons of rows that only count them.

A household row says how many persons of each kind live there, not who they are. Persons
are listed in the order of the layout's counts; a flag (say, adult) goes to the first
persons of that list, as many as the row counts. Each count is thus reproduced exactly,
and how flags and kinds go together within a household is an artefact of this order.
"""

from __future__ import annotations

from collections.abc import Callable

import narwhals as nw
import numpy as np

from discreet.census.checks import Check
from discreet.census.layout import Expand
from discreet.engine import Engine, Frame

#: A count in a household row; larger households are not housing units.
COUNT = r"^\d{1,3}$"


def expand(
    engine: Engine, frame: Frame, plan: Expand, text: Callable[[str], nw.Expr]
) -> tuple[Frame, list[Check], dict[str, nw.Expr]]:
    """Return one row per person, checks of the counts, and the persons' columns."""
    names = dict.fromkeys([*plan.counts.values(), *(f.column for f in plan.flags.values())])
    numbers = {name: f"_count_{place}" for place, name in enumerate(names)}
    counted = frame.with_columns(
        **{new: _number(text(name)).fill_null(0) for name, new in numbers.items()}
    )
    upto: list[tuple[str, nw.Expr]] = []
    total: nw.Expr = nw.lit(0)
    for code, name in plan.counts.items():
        total = total + nw.col(numbers[name])
        upto.append((code, total))
    most = engine.rows(counted.select(total.max().alias("most")))[0][0] or 0
    places = engine.from_numpy({"_place": np.arange(1, most + 1)})
    persons = counted.join(places, how="cross").filter(nw.col("_place") <= total)
    place = nw.col("_place")
    kind: nw.Expr = nw.lit(None, dtype=nw.String)
    for code, last in reversed(upto):
        kind = nw.when(place <= last).then(nw.lit(code)).otherwise(kind)
    columns = {plan.into: kind}
    for name, flag in plan.flags.items():
        first = place <= nw.col(numbers[flag.column])
        columns[name] = nw.when(first).then(nw.lit(flag.first)).otherwise(nw.lit(flag.rest))
    checks = [
        Check("type", _number(text(name)).is_null(), (name,), mark_first=True) for name in names
    ]
    listed: nw.Expr = nw.lit(0)
    for name in plan.counts.values():
        listed = listed + _number(text(name)).fill_null(0)
    for flag in plan.flags.values():
        more = (_number(text(flag.column)) > listed).fill_null(False)
        checks.append(Check("flag", more, (flag.column,), mark_first=True))
    return persons, checks, columns


def _number(text: nw.Expr) -> nw.Expr:
    return nw.when(text.str.contains(COUNT)).then(text).cast(nw.Int64)
