"""The error of totals against the theory of least squares, where no bound is active.

With K siblings of equal noise the error of a child is its own noise, less the mean noise of
the siblings, plus a Kth of the error of the parent.
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

ROOTS, CHILDREN = 700, (8, 4, 3)
#: Persons in each cell of the smallest areas: far from 0 for any noise.
MANY = 10_000

STRATEGY = {
    "name": "sex-only",
    "title": "Persons by sex",
    "count": "persons",
    "rho": "1/5",
    "axes": [{"name": "sex", "column": "sex"}],
    "total": "state",
    "total_first": ["county", "tract", "block"],
    "levels": [
        {"level": "state", "share": "1/10", "queries": {"detailed": 1}},
        {"level": "county", "share": "3/10", "queries": {"total": "2/3", "detailed": "1/3"}},
        {"level": "tract", "share": "3/10", "queries": {"total": "1/2", "detailed": "1/2"}},
        {"level": "block", "share": "3/10", "queries": {"total": "1/3", "detailed": "2/3"}},
    ],
}


@pytest.fixture(scope="module")
def design():
    sizes = np.cumprod([ROOTS, *CHILDREN])
    parents = [np.zeros(ROOTS, np.int64)]
    parents += [np.arange(size) // inside for size, inside in zip(sizes[1:], CHILDREN, strict=True)]
    histogram = Histogram(load_strategy(STRATEGY), load_schema("us-decennial"))
    return Design(histogram, Spine(("state", "county", "tract", "block"), tuple(parents), ()))


def exact(design, level):
    """Return the true counts of a level: all blocks are alike."""
    nodes = design.spine.size(level)
    blocks = design.spine.size(len(design.spine.levels) - 1) // nodes
    start = 2 * np.arange(nodes + 1, dtype=np.int64)
    cell = np.tile(np.arange(2, dtype=np.int32), nodes)
    return Estimate(start, cell, np.full(2 * nodes, blocks * MANY, dtype=np.int64))


def measured(design, seed):
    """Return the answers that an estimate asks for, measured by the package."""

    def answers(level, active, start):
        true = exact(design, level)
        truth = truth_of(true.node(), true.cell, true.counted, design.spine.size(level), 2)
        queries = design.queries(level)
        at = block_start(active, start, len(queries))
        found = np.empty(int(at[-1]))
        part = active.first, active.last
        for number, query in enumerate(queries):
            asked = design.asked(level, query)
            places = places_of(
                active.start, active.row, start, *part, len(queries), number, asked.rows
            )
            values = measure_rows(asked, truth, places, trial(seed), "topdown-persons")
            place_answers(
                found,
                at,
                active.start,
                start,
                *part,
                len(queries),
                number,
                values.astype(np.int64),
            )
        return found

    return answers


def bounds_of(design):
    """Return no bounds but the exact totals of the roots."""
    levels = range(len(design.spine.levels))
    sizes = [design.spine.size(level) for level in levels]
    fields = {
        "lower": tuple(np.zeros((1, size), np.int64) for size in sizes),
        "allowed": tuple(np.ones((1, size), np.uint8) for size in sizes),
        "totals": tuple(np.full(size, np.nan) for size in sizes),
    }
    rest = set(Bounds.__dataclass_fields__) - set(fields)
    return Bounds(**fields, **{name: tuple([] for _ in sizes) for name in rest})


def total_errors(design, seed):
    """Return the errors of the totals of every level below the root."""
    made, errors = exact(design, 0), {}
    for level, name in enumerate(design.spine.levels[1:], 1):
        made = estimate_children(design, level, made, bounds_of(design), measured(design, seed))
        held = np.bincount(made.node(), weights=made.counted, minlength=design.spine.size(level))
        true = np.add.reduceat(exact(design, level).counted, exact(design, level).start[:-1])
        errors[name] = np.rint(held).astype(np.int64) - true
    return errors


def test_totals_have_the_error_that_theory_says(design):
    errors = total_errors(design, 20)
    expected = {one.level: one.variance for one in expected_totals(design.strategy, CHILDREN)}
    assert list(expected) == ["county", "tract", "block"]
    for level, error in errors.items():
        # State totals are exact at every level.
        assert not error.reshape(ROOTS, -1).sum(axis=1).any()
        # The mean square is that of at least ROOTS x 7 = 4900 independent normal errors (the
        # contrasts of 8 counties), so its relative standard deviation is at most
        # sqrt(2/4900) = 2.0 percent. Rounding of totals to whole numbers adds below 1/4 to a
        # variance of at least 21, about 1 percent. A false alarm is beyond 4.4 standard
        # deviations: probability below 2e-5 for each level.
        assert expected[level] > 21
        assert np.mean(error.astype(float) ** 2) == pytest.approx(expected[level], rel=0.1)


def test_the_theory_is_its_own_formula():
    strategy = load_strategy(STRATEGY)
    variance = Fraction(0)
    for level, inside, told in zip(
        ("county", "tract", "block"), CHILDREN, expected_totals(strategy, CHILDREN), strict=True
    ):
        own = 1 / (strategy.rho * strategy.at(level).share * strategy.at(level).queries["total"])
        variance = own * (1 - Fraction(1, inside)) + variance / inside**2
        assert told.variance == pytest.approx(float(variance))


def test_noise_a_tenth_too_large_would_be_seen(design):
    # The same errors against a theory that forgets the coupling of siblings: 1 - 1/K.
    errors = total_errors(design, 20)["tract"]
    uncoupled = float(design.strategy.sigma2("tract", "total"))
    assert np.mean(errors.astype(float) ** 2) != pytest.approx(uncoupled, rel=0.1)
