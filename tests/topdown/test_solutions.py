"""Every parent of a simulated census, solved again by general solvers.

Least squares by PIQP and the relaxed rounding by HiGHS know nothing of our methods.
"""

import numpy as np
import pytest

from discreet.census import Census
from discreet.engine import Engine
from discreet.mechanisms.stages import Stages
from discreet.mechanisms.topdown.answers import answers_from
from discreet.mechanisms.topdown.design import Design
from discreet.mechanisms.topdown.drawing import Drawing
from discreet.mechanisms.topdown.estimate import parts, read_estimate
from discreet.mechanisms.topdown.general import solve_general
from discreet.mechanisms.topdown.general_rounding import relaxed_rounding
from discreet.mechanisms.topdown.least_squares import SOLVED, solve
from discreet.mechanisms.topdown.measurement_reader import Measurements
from discreet.mechanisms.topdown.rounding import (
    DEPLOYED,
    DEPLOYED_TOGETHER,
    DONE,
    OURS,
    round_children,
)
from discreet.mechanisms.topdown.rounding_cost import Table, cost_of
from discreet.mechanisms.topdown.solve import (
    TOLERANCE,
    batch,
    problem_of,
    tree_of,
    without_total,
)
from discreet.mechanisms.topdown.spine import spine_of
from discreet.noise import trial
from discreet.simulate import simulate
from topdown.runs import drawn, topdown

PRODUCTION = {"persons": "pl94-us-persons-2020", "root": "state", "measurements": "lazy"}


def all_problems(census, folder):
    """Yield every parent's problem, the one that least squares see, and its tree."""
    draw = drawn(census, trial(6), folder / "draw", **PRODUCTION)
    histogram = topdown(census, **PRODUCTION).histograms["persons"]
    design = Design(histogram, spine_of(census, histogram.strategy.level_names))
    bounds = Drawing(design, census, trial(6), Stages(folder / "stages"), True).bounds
    answers = answers_from(design, Measurements(draw / "persons/measurements", census.engine))
    for level in range(1, len(design.spine.levels)):
        path = draw / f"persons/estimates/{level - 1}/counts.parquet"
        parents = read_estimate(path, design.spine.size(level - 1), census.engine)
        rules, start = design.rules(level, bounds), design.spine.child_start(level - 1)
        for active in parts(design, level, parents):
            task = batch(parents, start, active, answers(level, active, start), rules)
            for p in range(active.first, active.last):
                cells = parents.cell[parents.start[p] : parents.start[p + 1]]
                if start[p + 1] - start[p] > 1 and cells.size:
                    whole = problem_of(p, task)
                    fitted = without_total(whole) if rules.total_first else whole
                    yield whole, fitted, tree_of(rules.tree, cells), rules.total_first


def objective(problem, x):
    sums = np.zeros((problem.query_of.size, x.shape[1]))
    for rows in problem.row_of:
        np.add.at(sums, rows, x)
    return 0.5 * (problem.weights[problem.query_of] * (sums - problem.answers) ** 2).sum()


def breach(problem, x):
    """Return by how much any constraint is broken."""
    held = np.zeros(problem.lower.shape)
    np.add.at(held, problem.group_of, x)
    exact = np.nan_to_num(np.abs(x.sum(axis=0) - problem.totals)).max()
    off = np.abs(x.sum(axis=1) - problem.parent).max()
    return max(
        off,
        exact,
        -x.min(),
        (problem.lower - held).max(),
        held[problem.allowed == 0].max(initial=0),
    )


def check_least_squares(fitted):
    x, _, status = solve(*fitted, TOLERANCE)
    assert status == SOLVED
    assert breach(fitted, x) < 1e-5
    other, status = solve_general(*fitted)
    assert status == SOLVED
    ours, theirs = objective(fitted, x), objective(fitted, other)
    assert ours <= theirs * (1 + 1e-6) + 1e-9
    assert theirs <= ours * (1 + 1e-6) + 1e-6  # so that the comparison is with an optimum
    return x


def check_rounding(whole, x, tree, total_first):
    for mode in (OURS, DEPLOYED if total_first else DEPLOYED_TOGETHER):
        table = Table(
            x, whole.parent, tree, whole.lower, whole.allowed, whole.group_of, whole.totals, mode
        )
        ours, status = round_children(*table)
        assert status == DONE
        assert breach(whole, ours) == 0
        theirs, was_whole = relaxed_rounding(table)
        assert was_whole
        assert cost_of(table, ours) == cost_of(table, theirs)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("solutions")
    simulate("tiny", folder / "census", 1)
    return list(all_problems(Census.open(folder / "census", Engine(threads=1)), folder))


def test_every_parent_of_a_tiny_census_is_solved_and_rounded(tiny):
    assert len(tiny) >= 10
    for whole, fitted, tree, total_first in tiny:
        x = check_least_squares(fitted)
        check_rounding(whole, x, tree, total_first)


def test_a_solution_off_by_a_person_is_seen(tiny):
    # A whole person moved between two cells of two children keeps all sums but the fit.
    _, fitted, _, _ = max(tiny, key=lambda one: one[0].parent.size)
    x, _, _ = solve(*fitted, TOLERANCE)
    best, moved = objective(fitted, x), x.copy()
    moved[0, 0] += 1
    moved[0, 1] -= 1
    assert breach(fitted, moved) > 0.5 or objective(fitted, moved) > best * (1 + 1e-6)


@pytest.mark.slow
def test_every_parent_of_a_small_state(tmp_path):
    simulate("small-state", tmp_path / "census", 1, processes=2)
    census = Census.open(tmp_path / "census", Engine(threads=2))
    checked = 0
    for number, (whole, fitted, tree, total_first) in enumerate(all_problems(census, tmp_path)):
        x = check_least_squares(fitted)
        checked += 1
        if number % 20 == 0:
            check_rounding(whole, x, tree, total_first)
    spine = spine_of(census, ["state", "county", "tract", "block_group", "block"])
    assert checked == sum(int((np.diff(spine.child_start(n)) > 1).sum()) for n in range(4)) > 700
