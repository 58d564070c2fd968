"""Walk down the tree: estimate the root, then the children of every parent, level by level.

Everything here is a function of noisy answers and invariants; the census is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from discreet.engine import Engine
from discreet.mechanisms.stages import Stages
from discreet.mechanisms.topdown.active import Active, Estimate, Integers, Numbers, active_rows
from discreet.mechanisms.topdown.constraints import Bounds, Facts, Impossible, bounds_of
from discreet.mechanisms.topdown.design import Design
from discreet.mechanisms.topdown.failure import code_of, failure
from discreet.mechanisms.topdown.held import check_held, solve_held
from discreet.mechanisms.topdown.solve import OK, Floats, batch, gather, solve_batch

#: Bounds on what is worked on at a time, so that memory stays bounded.
MOST_CHILDREN = 40_000
MOST_ANSWERS = 20_000_000

#: The file of an estimate.
COUNTS = "counts.parquet"

#: Return the answers that matter, laid out as `place_answers` does.
Answers = Callable[[int, Active, Integers], Floats]


def parts(design: Design, level: int, parents: Estimate) -> Iterator[Active]:
    """Yield the parents of a level in parts of bounded size, with the rows that matter."""
    start = design.spine.child_start(level - 1)
    children = np.diff(start)
    queries = len(design.strategy.levels[level].queries)
    # Rows that matter are at most cells times queries.
    work = np.cumsum(np.diff(parents.start) * children * queries)
    row_of = np.ascontiguousarray([query.row_of for query in design.queries(level)])
    first = 0
    while first < children.size:
        before = work[first - 1] if first else 0
        last = int(np.searchsorted(work, before + MOST_ANSWERS, side="right"))
        last = min(
            last, int(np.searchsorted(start, start[first] + MOST_CHILDREN, side="right")) - 1
        )
        last = max(last, first + 1)
        yield active_rows(parents, start, row_of, first, last)
        first = last


def estimate_children(
    design: Design,
    level: int,
    parents: Estimate,
    bounds: Bounds,
    answers: Answers,
    threads: int = 1,
) -> Estimate:
    """Return whole counts for every node of a level below the root."""
    rules = design.rules(level, bounds)
    start = design.spine.child_start(level - 1)
    found: list[tuple[Integers, Numbers, Integers]] = []
    for active in parts(design, level, parents):
        task = batch(parents, start, active, answers(level, active, start), rules)
        held, failed = bounds.held[level], ""
        if held:
            solved, failed = solve_held(task, held)
        else:
            solved = solve_batch(task, threads)
        wrong = np.flatnonzero(solved.status > OK)
        if wrong.size:
            first, status = active.first + int(wrong[0]), int(solved.status[wrong[0]])
            raise failure(
                design, level, bounds, status, first, above=True, held=failed, others=wrong.size - 1
            )
        found.append(gather(task, solved))
    filled = np.concatenate([one[0] for one in found])
    made = Estimate(
        np.concatenate([[0], np.cumsum(filled)]).astype(np.int64),
        np.concatenate([one[1] for one in found]),
        np.concatenate([one[2] for one in found]),
    )
    check_estimate(design, level, made, parents, bounds)
    return made


def check_estimate(
    design: Design, level: int, made: Estimate, parents: Estimate | None, bounds: Bounds
) -> None:
    """Recompute every constraint from whole counts, whoever made them."""
    where = f"topdown, {design.strategy.name}, {design.spine.levels[level]}"
    node, nodes = made.node(), design.spine.size(level)
    if made.start.size != nodes + 1 or np.any(made.counted <= 0):
        raise Impossible(f"{where}: counts are missing or not positive. Restore the draw.")
    held = np.zeros((len(design.histogram.groups), nodes), dtype=np.int64)
    np.add.at(held, (design.histogram.group_of[made.cell], node), made.counted)
    exact = np.where(np.isnan(bounds.totals[level]), held.sum(axis=0), bounds.totals[level])
    zeros = np.bincount(node[design.histogram.zeros[made.cell]], minlength=nodes)
    quarters = (held < bounds.lower[level]) | (held > 0) & (bounds.allowed[level] == 0)
    for broken, rule in (
        (zeros > 0, "a cell that must be empty (zeros) is not"),
        (quarters.any(axis=0), "a bound of the quarters is broken"),
        (held.sum(axis=0) != exact, "a total that is exact is not met"),
    ):
        if broken.any():
            code = code_of(design, level, int(np.flatnonzero(broken)[0]))
            raise Impossible(f"{where} {code}: {rule}. Restore the draw.")
    failed = check_held(bounds.held[level], made, nodes)
    if failed:
        raise Impossible(f"{where}: {failed}, which is held exact, is not met. Restore the draw.")
    if parents is not None and not _sums_to(design, level, made, node, parents):
        raise Impossible(f"{where}: children do not add up to their parents. Restore the draw.")


def _sums_to(design: Design, level: int, made: Estimate, node: Integers, parents: Estimate) -> bool:
    key = design.spine.parents[level][node] * design.histogram.size + made.cell
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    sums = np.add.reduceat(made.counted[order], first) if first.size else made.counted
    wanted = parents.node() * design.histogram.size + parents.cell
    return np.array_equal(key[order][first], wanted) and np.array_equal(sums, parents.counted)


def keep_estimate(
    stages: Stages, name: str, make: Callable[[], Estimate], nodes: int, engine: Engine
) -> tuple[Path, Estimate]:
    """Return the folder of an estimate and the estimate, made now or by a run that was stopped."""
    made: list[Estimate] = []

    def write(path: Path) -> None:
        made.append(make())
        write_estimate(made[0], path / COUNTS, engine)

    kept = stages.stage(name, write, draws=False)
    return kept, made[0] if made else read_estimate(kept / COUNTS, nodes, engine)


def write_estimate(made: Estimate, path: Path, engine: Engine) -> None:
    """Write the counts of a level."""
    with engine.lend({"node": made.node(), "cell": made.cell, "count": made.counted}) as rows:
        engine.write_parquet(rows, path)


def read_estimate(path: Path, nodes: int, engine: Engine) -> Estimate:
    """Return what `write_estimate` wrote."""
    rows = engine.to_numpy(engine.read_parquet(path).sort("node", "cell"))
    inside = np.bincount(rows["node"], minlength=nodes)
    start = np.concatenate([[0], np.cumsum(inside)]).astype(np.int64)
    return Estimate(start, rows["cell"].astype(np.int32), rows["count"].astype(np.int64))


def bounds_for(design: Design, facts: Facts) -> Bounds:
    """Return the bounds of every level of a design."""
    return bounds_of(facts, design.histogram, design.spine)
