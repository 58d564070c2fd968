"""Every problem of a simulated census, root and parents, solved again by general solvers.

Least squares by PIQP and the relaxed rounding by HiGHS know nothing of our methods.
"""

from itertools import permutations
from typing import NamedTuple

import numpy as np
import pytest

from discreet.census import Census
from discreet.engine import Engine
from discreet.mechanisms.stages import Stages
from discreet.mechanisms.topdown.answers import answers_from, root_answers_from
from discreet.mechanisms.topdown.design import Design
from discreet.mechanisms.topdown.drawing import Drawing
from discreet.mechanisms.topdown.estimate import parts, read_estimate
from discreet.mechanisms.topdown.general import solve_general
from discreet.mechanisms.topdown.least_squares import SOLVED, solve
from discreet.mechanisms.topdown.measurement_reader import Measurements
from discreet.mechanisms.topdown.root import solve_root
from discreet.mechanisms.topdown.rounding import (
    DEPLOYED,
    DEPLOYED_TOGETHER,
    DONE,
    OURS,
    round_children,
)
from discreet.mechanisms.topdown.rounding_cost import Table
from discreet.mechanisms.topdown.solve import (
    TOLERANCE,
    Problem,
    batch,
    problem_of,
    tree_of,
    without_total,
)
from discreet.mechanisms.topdown.spine import spine_of
from discreet.mechanisms.topdown.top import root_problem
from discreet.noise import trial
from discreet.simulate import simulate
from topdown.runs import drawn, topdown
from topdown.tables import cost_of, relaxed_rounding

PRODUCTION = {
    "persons": "pl94-us-persons-2020",
    "units": "pl94-us-units-2020",
    "root": "state",
    "measurements": "lazy",
}


class Case(NamedTuple):
    """A problem, the one that least squares see, the tree of rounding, and both ways of it."""

    whole: Problem
    fitted: Problem
    tree: np.ndarray
    modes: tuple[int, int]


class Drawn:
    """One strategy on a census, drawn, with all that its problems are made of."""

    def __init__(self, census, folder, run):
        self.census, self.folder = census, folder / "draw" / run
        histogram = topdown(census, **PRODUCTION).histograms[run]
        self.design = Design(histogram, spine_of(census, histogram.strategy.level_names))
        stages = Stages(folder / "stages")
        self.bounds = Drawing(self.design, census, trial(6), stages, True).bounds
        self.measured = Measurements(self.folder / "measurements", census.engine)

    def estimate(self, level):
        path = self.folder / f"estimates/{level}/counts.parquet"
        return read_estimate(path, self.design.spine.size(level), self.census.engine)

    def root(self):
        """Return the problem of the root, and its tree."""
        design, rules = self.design, self.design.rules(0, self.bounds)
        allowed = rules.allowed[:, 0] > 0
        cells = np.flatnonzero(~design.histogram.zeros & allowed[rules.group_of]).astype(np.int32)
        problem = root_problem(rules, 0, cells, root_answers_from(design, self.measured))
        return problem, tree_of(rules.tree, cells)

    def cases(self):
        """Yield every parent's problem that is not trivial."""
        design, answers = self.design, answers_from(self.design, self.measured)
        for level in range(1, len(design.spine.levels)):
            parents, rules = self.estimate(level - 1), design.rules(level, self.bounds)
            start = design.spine.child_start(level - 1)
            modes = (OURS, DEPLOYED if rules.total_first else DEPLOYED_TOGETHER)
            for active in parts(design, level, parents):
                task = batch(parents, start, active, answers(level, active, start), rules)
                for p in range(active.first, active.last):
                    cells = parents.cell[parents.start[p] : parents.start[p + 1]]
                    if start[p + 1] - start[p] > 1 and cells.size:
                        whole = problem_of(p, task)
                        fitted = without_total(whole) if rules.total_first else whole
                        yield Case(whole, fitted, tree_of(rules.tree, cells), modes)


def draw(census, folder):
    """Return persons and units of one draw."""
    drawn(census, trial(6), folder / "draw", **PRODUCTION)
    return {run: Drawn(census, folder, run) for run in ("persons", "units")}


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
    # The cells of a root have no sum to keep.
    off = np.where(problem.parent >= 0, np.abs(x.sum(axis=1) - problem.parent), 0).max()
    return max(
        off,
        exact,
        -x.min(),
        (problem.lower - held).max(),
        held[problem.allowed == 0].max(initial=0),
    )


def check_optimum(problem, x, other):
    """Hold a solution against one by a general solver."""
    assert breach(problem, x) < 1e-5
    ours, theirs = objective(problem, x), objective(problem, other)
    assert ours <= theirs * (1 + 1e-6) + 1e-9, "not the least sum of squares"
    assert theirs <= ours * (1 + 1e-6) + 1e-6  # so that the comparison is with an optimum


def check_least_squares(fitted):
    x, _, status = solve(*fitted, TOLERANCE)
    assert status == SOLVED
    other, status = solve_general(*fitted)
    assert status == SOLVED
    check_optimum(fitted, x, other)
    return x


def table_of(case, x, mode):
    whole = case.whole
    limits = whole.lower, whole.allowed, whole.group_of, whole.totals
    parent = whole.parent if (whole.parent >= 0).all() else np.zeros(0, np.int64)
    return Table(x, parent, case.tree, *limits, mode)


def check_whole(case, table, counts):
    """Hold a rounded table against the optimum of the relaxed program."""
    assert breach(case.whole, counts) == 0
    theirs, was_whole = relaxed_rounding(table)
    assert was_whole
    assert cost_of(table, counts) == cost_of(table, theirs), "not the cheapest table"


def check_rounding(case, x):
    for mode in case.modes:
        table = table_of(case, x, mode)
        ours, status = round_children(*table)
        assert status == DONE
        check_whole(case, table, ours)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("solutions")
    simulate("tiny", folder / "census", 1)
    return draw(Census.open(folder / "census", Engine(threads=1)), folder)


@pytest.mark.parametrize("run", ["persons", "units"])
def test_every_parent_of_a_tiny_census_is_solved_and_rounded(tiny, run):
    checked = 0
    for case in tiny[run].cases():
        check_rounding(case, check_least_squares(case.fitted))
        checked += 1
    assert checked >= 10


@pytest.mark.parametrize("run", ["persons", "units"])
def test_the_root_is_solved_and_rounded(tiny, run):
    problem, tree = tiny[run].root()
    limits = problem.group_of, problem.lower, problem.allowed, float(problem.totals[0])
    x = solve_root(problem.row_of, problem.query_of, problem.answers, problem.weights, *limits)
    other, status = solve_general(*problem)
    assert status == SOLVED
    check_optimum(problem, x[:, None], other)
    case = Case(problem, problem, tree, (OURS, DEPLOYED_TOGETHER))
    check_rounding(case, x[:, None])
    counts, _ = round_children(*table_of(case, x[:, None], OURS))
    assert counts[counts > 0].tolist() == tiny[run].estimate(0).counted.tolist()


def largest_swap(x, group_of):
    """Return cells i, j of one group and children a, b with much in (i, b) and (j, a)."""
    best, where = 0.0, None
    for group in np.unique(group_of):
        cells = np.flatnonzero(group_of == group)
        for a, b in permutations(range(x.shape[1]), 2):
            i, j = cells[x[cells, b].argmax()], cells[x[cells, a].argmax()]
            if i != j and min(x[i, b], x[j, a]) > best:
                best, where = min(x[i, b], x[j, a]), (i, j, a, b)
    assert best >= 1
    return where


def swapped(x, where, much):
    """Return a table in which two persons of one group changed places: no sum notices."""
    i, j, a, b = where
    moved = x.copy()
    moved[[i, j], [a, b]] += much
    moved[[i, j], [b, a]] -= much
    return moved


def test_two_persons_in_the_wrong_place_are_seen(tiny):
    """Mistakes that keep every constraint: only the comparison with the optimum sees them.

    A tenth of a person in the fractional counts, a whole one in the rounded ones.
    """
    case = max(tiny["persons"].cases(), key=lambda one: one.whole.parent.size)
    x, _, _ = solve(*case.fitted, TOLERANCE)
    other, _ = solve_general(*case.fitted)
    where = largest_swap(x, case.fitted.group_of)
    moved = swapped(x, where, 0.1)
    assert breach(case.fitted, moved) < 1e-5
    check_optimum(case.fitted, x, other)
    with pytest.raises(AssertionError, match="not the least"):
        check_optimum(case.fitted, moved, other)
    for mode in case.modes:
        table = table_of(case, x, mode)
        counts, _ = round_children(*table)
        where = largest_swap(counts, case.whole.group_of)
        assert breach(case.whole, swapped(counts, where, 1)) == 0
        with pytest.raises(AssertionError, match="not the cheapest"):
            check_whole(case, table, swapped(counts, where, 1))


@pytest.mark.slow
def test_every_parent_of_a_small_state(tmp_path):
    simulate("small-state", tmp_path / "census", 1, processes=2)
    census = Census.open(tmp_path / "census", Engine(threads=2))
    checked = 0
    for number, case in enumerate(draw(census, tmp_path)["persons"].cases()):
        x = check_least_squares(case.fitted)
        checked += 1
        if number % 20 == 0:
            check_rounding(case, x)
    spine = spine_of(census, ["state", "county", "tract", "block_group", "block"])
    assert checked == sum(int((np.diff(spine.child_start(n)) > 1).sum()) for n in range(4)) > 700
