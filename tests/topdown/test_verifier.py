"""What the measurements of tiny censuses really lose, against what is promised.

The laws of two sets of noisy answers differ by whole shifts of their centres, so the exact
distance is known (`discreet.audit.shifts`). The centres are what the measuring code writes
when its noise is 0, the parameters are those it draws with.
"""

import itertools
from collections import Counter
from fractions import Fraction

import pytest

from discreet.audit import Shift, distance_of_shifts, judge, pairs
from discreet.engine import Engine
from discreet.mechanisms import mechanism
from discreet.mechanisms.stages import Stages
from discreet.mechanisms.topdown.design import Design
from discreet.mechanisms.topdown.drawing import Drawing
from discreet.mechanisms.topdown.measurement import measure_full
from discreet.mechanisms.topdown.spine import Shares, spine_of
from discreet.spec import Exactly
from topdown.runs import Silent
from worlds import us_census

#: The four cells: sex by voting age.
PEOPLE = [(40, "1", "01"), (40, "2", "01"), (9, "1", "01"), (9, "2", "01")]

STRATEGY = {
    "name": "four-cells",
    "title": "Persons by sex and voting age",
    "count": "persons",
    "rho": "3/2",
    "axes": [{"name": "votingage", "column": "voting_age"}, {"name": "sex", "column": "sex"}],
    "total": "state",
}
TWO_LEVELS = [
    {"level": "state", "share": "1/3", "queries": {"sex": "1/4", "detailed": "3/4"}},
    {"level": "block", "share": "2/3", "queries": {"detailed": 1}},
]
THREE_LEVELS = [
    {"level": "state", "share": "1/6", "queries": {"sex": "1/4", "detailed": "3/4"}},
    {"level": "county", "share": "1/3", "queries": {"total": "1/5", "detailed": "4/5"}},
    {"level": "block", "share": "1/2", "queries": {"detailed": 1}},
]
#: Blocks, how many of them form a county, the levels, and what is declared empty.
TREES = {
    "two blocks": (2, 2, TWO_LEVELS),
    "one county": (2, 2, THREE_LEVELS),  # the root has an only child
    "two counties": (2, 1, THREE_LEVELS),  # every block is an only child
    "both kinds": (3, 2, THREE_LEVELS),  # shares differ inside a level
    # Some of the censuses break it; that alone must not tell them from the others.
    "cells declared empty": (2, 2, TWO_LEVELS, [{"votingage": ["under 18"], "sex": ["2"]}]),
}

#: Of these some node is an only child.
WITH_ONLY_CHILD = ("one county", "two counties", "both kinds")


class World:
    """All censuses of one person somewhere, beside a householder in each block."""

    def __init__(self, name, folder):
        blocks, per_county, levels, *zeros = TREES[name]
        engine = Engine(threads=1)
        self.data = [(place,) for place in itertools.product(range(blocks), range(4))]
        fixed = [(block, "1", PEOPLE[:1]) for block in range(blocks)]
        censuses = [
            us_census(
                engine,
                [*fixed, *((block, "1", [PEOPLE[cell]]) for block, cell in people)],
                blocks=blocks,
                per_county=per_county,
                extras=False,
            )
            for people in self.data
        ]
        schema = censuses[0].schema
        strategy = {**STRATEGY, "levels": levels, "zeros": [one for each in zeros for one in each]}
        self.mechanism = mechanism("topdown", schema, {"persons": strategy})
        self.histogram = self.mechanism.histograms["persons"]
        self.spine = spine_of(censuses[0], [one["level"] for one in levels])
        self.truths = []
        for census in censuses:
            self.mechanism.check(census)
            drawing = Drawing(self.design(), census, Silent(), Stages(folder), False)
            self.truths.append([drawing.truth(level) for level in range(len(levels))])

    def design(self, **changes) -> Design:
        if not changes:
            return Design(self.histogram, self.spine)
        strategy = self.mechanism.strategies["persons"].changed(changes)
        return Design(type(self.histogram)(strategy, self.histogram.schema), self.spine)

    def verdict(self, design, budget=None):
        """Compare all censuses with each other; they are all of one universe."""
        told = self.mechanism.specify()
        answers = [centres(design, truths) for truths in self.truths]
        compared = pairs(
            range(len(self.data)),
            lambda one, other: apart(self.data[one], self.data[other]),
            lambda one, other: distance_of_shifts(
                told.output_premetric, shifts(answers[one], answers[other])
            ),
        )
        return judge(compared, told.output_premetric, budget or told.budget)


def centres(design, truths):
    """Return (level, query, node, row) -> parameter of its noise, and answer without noise."""
    found = {}
    for level, truth in enumerate(truths):
        for query in design.queries(level):
            asked = design.asked(level, query)
            for _, chunk in measure_full([asked], truth, Silent(), "topdown-persons"):
                for node, values in zip(chunk.node.tolist(), chunk.value.tolist(), strict=True):
                    sigma2 = asked.sigma2[asked.law[node]]
                    for row, value in enumerate(values):
                        found[level, query.name, node, row] = (sigma2, value)
    return found


def shifts(one, other):
    assert one.keys() == other.keys()
    return [
        Shift("gaussian", one[key][0], other[key][1] - one[key][1])
        for key in one
        if other[key][1] != one[key][1]
    ]


def apart(one, other):
    """Return how many records must be replaced."""
    return (Counter(one) - Counter(other)).total()


@pytest.fixture(scope="module", params=TREES)
def world(request, tmp_path_factory):
    return World(request.param, tmp_path_factory.mktemp("stages"))


def test_the_loss_is_within_the_promise_and_attained(world):
    verdict = world.verdict(world.design())
    assert verdict.answer == "satisfied"
    budget = world.mechanism.specify().budget.amount.of
    assert budget == Fraction(3, 2)
    assert verdict.loss.exact.of == budget  # rho is the root of it
    assert verdict.witness.apart == 1


def test_an_understated_budget_is_caught(world):
    told = world.mechanism.specify().budget
    for factor in (Fraction(1, 2), Fraction(999, 1000)):
        less = told.model_copy(update={"amount": Exactly(of=told.amount.of * factor)})
        verdict = world.verdict(world.design(), less)
        assert verdict.answer == "violated"


def test_too_little_noise_is_caught(world):
    # sigma^2 of every query smaller by a tenth than the promise was made for.
    verdict = world.verdict(world.design(rho=Fraction(3, 2) * Fraction(10, 9)))
    assert verdict.answer == "violated"


@pytest.mark.parametrize("world", WITH_ONLY_CHILD, indirect=True)
def test_an_only_child_that_is_measured_again_is_caught(world):
    design = world.design()
    alone = [level for level, one in enumerate(design.shares.index) if (one == 0).any()]
    index = [one.copy() for one in design.shares.index]
    index[alone[0]][index[alone[0]] == 0] = 1
    design.__dict__["shares"] = Shares(design.shares.values, tuple(index))
    assert world.verdict(design).answer == "violated"
