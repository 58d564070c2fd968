"""Say which area could not be estimated, which constraints were in play, and what to do.

Names of areas and constraints are public; no count is told.
"""

from __future__ import annotations

import narwhals as nw
import numpy as np

from discreet.mechanisms.topdown.constraints import Bounds, Impossible
from discreet.mechanisms.topdown.design import Design
from discreet.mechanisms.topdown.solve import (
    INFEASIBLE,
    LOOSELY_ROUNDED,
    NOT_CONVERGED,
    NOT_ROUNDED,
)

WORDS = {
    NOT_CONVERGED: "least squares did not converge",
    INFEASIBLE: "no counts satisfy all constraints",
    NOT_ROUNDED: "no whole counts satisfy all constraints",
    LOOSELY_ROUNDED: "no whole counts lie within one of every query of `rounding`",
}

#: What can be done about it; the first for strategies that hold statistics.
HOLD_LESS = "Hold fewer or coarser queries, or hold them at a higher level only."
START_LOWER = (
    "Exact totals below the root can do this: let `root` be the level of `total`. If it is, the "
    "files of the draw were changed: restore them."
)
REPORT = "This is a fault of the solver, not of the data: please report it."


def failure(
    design: Design,
    level: int,
    bounds: Bounds,
    status: int,
    node: int,
    *,
    above: bool,
    held: str = "",
    others: int = 0,
) -> Impossible:
    """Return the error for a node that could not be estimated, or (`above`) not be split.

    `held` is the statistic of the user that fails, `others` the number of further nodes.
    """
    spine = design.spine
    at = level - 1 if above else level
    what = f"{spine.levels[at]} {code_of(design, at, node)}"
    if above:
        what += f" could not be split into areas of level {spine.levels[level]}"
    more = f" (nor could {others} others)" if others else ""
    fails = f" Held exact, and it fails: {held}." if held else ""
    if status in (NOT_CONVERGED, LOOSELY_ROUNDED):
        remedy = REPORT
    else:
        remedy = HOLD_LESS if bounds.held[level] else START_LOWER
    return Impossible(
        f"topdown, {design.strategy.name}, {what}{more}: {WORDS[status]}.{fails} "
        f"In play: {'; '.join(in_play(design, level, bounds))}. {remedy}"
    )


def code_of(design: Design, level: int, node: int) -> str:
    """Return the geocode of a node."""
    rows = design.spine.codes[level].filter(nw.col("node") == node).select("code")
    return str(nw.to_native(rows).fetchall()[0][0])


def in_play(design: Design, level: int, bounds: Bounds) -> list[str]:
    """Return every constraint on the areas of a level, as the strategy names them."""
    strategy, said = design.strategy, []
    if level:
        said.append(f"sums of the {design.spine.levels[level - 1]}")
    if not np.isnan(bounds.totals[level]).all():
        said.append("exact totals (total)")
    if strategy.quarters is not None:
        said.append(f"quarters by {strategy.quarters.axis} (quarters)")
    if strategy.zeros:
        said.append("empty cells (zeros)")
    said += [f"exact {one.name} (hold)" for one in bounds.held[level]]
    return said
