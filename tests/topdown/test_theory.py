"""The error of totals against the theory of least squares, where no bound is active.

Counties, tracts and block groups of one state after another, measured and estimated by the
persons strategy of the 2020 redistricting file, from the state on. With K siblings of equal
noise the error of a child is its own noise, less the mean noise of the siblings, plus a Kth
of the error of the parent.
"""

from fractions import Fraction

import numpy as np
import pytest

from discreet.census import load_schema
from discreet.mechanisms.topdown.active import Estimate, block_start, place_answers, places_of
from discreet.mechanisms.topdown.constraints import Bounds
from discreet.mechanisms.topdown.design import Design
from discreet.mechanisms.topdown.estimate import estimate_children
from discreet.mechanisms.topdown.histogram import Histogram
from discreet.mechanisms.topdown.measurement import measure_rows, truth_of
from discreet.mechanisms.topdown.planning import expected_totals
from discreet.mechanisms.topdown.spine import Spine
from discreet.mechanisms.topdown.strategy import load_strategy
from discreet.noise import trial

LEVELS = ("county", "tract", "block_group")
#: Children of each area from level to level; blocks are not estimated.
CHILDREN = (100, 2, 2)
#: Cells that are not empty: minors and adults of one race in households.
CELLS = np.array([0, 126], dtype=np.int32)
#: Persons in each of these cells of a block group: far from 0 for any noise.
MANY = 10_000


STRATEGY = load_strategy("pl94-us-persons-2020").rooted("state")


def designed(states, strategy=STRATEGY):
    """Return the design of some states; each block group has two blocks: nothing is bypassed."""
    inside = (*CHILDREN, 2)
    sizes = np.cumprod([states, *inside])
    parents = [np.zeros(states, np.int64)]
    parents += [np.arange(size) // many for size, many in zip(sizes[1:], inside, strict=True)]
    spine = Spine(("state", *LEVELS, "block"), tuple(parents), ())
    return Design(Histogram(strategy, load_schema("us-decennial")), spine)


def exact(design, level):
    """Return the true counts of a level: all block groups are alike."""
    nodes, bottom = design.spine.size(level), design.spine.size(3)
    start = CELLS.size * np.arange(nodes + 1, dtype=np.int64)
    cell = np.tile(CELLS, nodes)
    return Estimate(start, cell, np.full(cell.size, bottom // nodes * MANY, dtype=np.int64))


def measured(design, seed):
    """Return the answers that an estimate asks for, measured by the package."""

    def answers(level, active, start):
        true, nodes = exact(design, level), design.spine.size(level)
        cells = design.histogram.size
        truth = truth_of(true.node(), true.cell, true.counted, nodes, cells)
        queries = design.queries(level)
        at = block_start(active, start, len(queries))
        found = np.empty(int(at[-1]))
        part = active.first, active.last, len(queries)
        told = []
        for number, query in enumerate(queries):
            asked = design.asked(level, query)
            places = places_of(active.start, active.row, start, *part, number, asked.rows)
            values = measure_rows(asked, truth, places, trial(seed), "topdown-persons")
            told.append(values.astype(np.int64))
        place_answers(found, at, active.start, start, *part, np.concatenate(told))
        return found

    return answers


def no_bounds(design):
    """Return bounds that bind nothing: any number in all quarters, no exact total below."""
    groups = len(design.histogram.groups)
    sizes = [design.spine.size(level) for level in range(5)]
    return Bounds(
        lower=tuple(np.zeros((groups, size), np.int64) for size in sizes),
        allowed=tuple(np.ones((groups, size), np.uint8) for size in sizes),
        totals=tuple(np.full(size, np.nan) for size in sizes),
        held=tuple([] for _ in sizes),
    )


def mean_squares(design, noisy, seed):
    """Return the mean square error of the totals of every level, measured by `noisy`.

    State totals are exact, as the counts of the states are where it begins.
    """
    made, found = exact(design, 0), {}
    answers = measured(noisy, seed)
    for level, name in enumerate(LEVELS, 1):
        made = estimate_children(design, level, made, no_bounds(design), answers)
        held = np.bincount(made.node(), weights=made.counted, minlength=design.spine.size(level))
        error = held - CELLS.size * exact(design, level).counted[0]
        assert not error.reshape(design.spine.size(0), -1).sum(axis=1).any()
        found[name] = np.mean(error**2)
    return found


def expected():
    told = {one.level: one.variance for one in expected_totals(STRATEGY, (*CHILDREN, 2))}
    assert list(told) == list(LEVELS)
    return told


def test_totals_have_the_error_that_theory_says():
    """County, tract and block-group totals are within 10 percent of the least-squares theory.

    With S = 50 states the mean square of counties has 99 S degrees of freedom, so its relative
    standard deviation is sqrt(2 / 99 S) = 2.0 percent; that of tracts is 1.6 and that of
    block groups 1.1 percent. Rounding to whole persons is not in the theory: at every level it
    adds a twelfth, with what comes down from above 2, 3 and 4 percent. A false alarm is then
    4 standard deviations away: its probability is below 1e-4 for all levels together.
    """
    design = designed(50)
    found = mean_squares(design, design, seed=20)
    for level, variance in expected().items():
        assert found[level] == pytest.approx(variance, rel=0.1), level


def test_noise_a_quarter_too_large_is_seen_at_every_level():
    """The same with 4/5 of the budget, so 25 percent more variance, is beyond the 10 percent.

    It would be missed with a probability below 1e-4: 17 percent, at 4 percent each.
    """
    design = designed(20)
    noisy = designed(20, STRATEGY.model_copy(update={"rho": STRATEGY.rho * Fraction(4, 5)}))
    found = mean_squares(design, noisy, seed=20)
    for level, variance in expected().items():
        assert found[level] > 1.1 * variance, level


def test_the_theory_is_its_own_formula():
    variance = Fraction(0)
    for level, inside in zip(LEVELS, CHILDREN, strict=True):
        own = 1 / (STRATEGY.rho * STRATEGY.at(level).share * STRATEGY.at(level).queries["total"])
        variance = own * (1 - Fraction(1, inside)) + variance / inside**2
        assert expected()[level] == pytest.approx(float(variance))
