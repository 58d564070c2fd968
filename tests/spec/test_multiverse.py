"""What is called a function of published statistics is one: tried on every tiny data set."""

import random
from functools import cache
from itertools import combinations_with_replacement, product

import pytest
from pydantic import ValidationError

from discreet.spec import (
    WHOLE,
    Domain,
    Indicator,
    Inequality,
    LinearCombination,
    MarginalTable,
    Multiverse,
    determined,
)
from discreet.spec.invariants import value

SPINE = ("state", "tract", "block")
DOMAIN = Domain(
    records="units with their members",
    schema_name="tiny",
    spine=SPINE,
    places=("rural",),
    kinds=("occupied", "vacant"),
)
PLACES = [("s", "t1", "b1", "y"), ("s", "t1", "b2", "n"), ("s", "t2", "b3", "n")]
LIVES = [("occupied", "1", ("a",)), ("occupied", "2", ("a",)), ("vacant", "0", ())]
UNITS = [
    {
        **dict(zip((*SPINE, "rural"), place, strict=True)),
        "kind": kind,
        "tenure": tenure,
        "members": [{"race": race} for race in members],
    }
    for place in PLACES
    for kind, tenure, members in [*LIVES, ("occupied", "1", ("b",)), ("occupied", "2", ("a", "b"))]
]
DATA_SETS = [d for size in (1, 2) for d in combinations_with_replacement(UNITS, size)]

COLUMNS = ((), ("kind",), ("tenure",), ("rural",), ("tract",))
WHERES = (
    {},
    {"kind": ["occupied"]},
    {"tenure": ["1"]},
    {"tenure": ["1", "2"]},
    {"tract": ["t1"]},
    {"rural": ["y"]},
    {"rural": ["n", "y"]},
)
WEIGHTS = ({"1": "1"}, {"2": "1"}, {"1": "1", "2": "2"}, {"1": "3", "2": "-1"})


def every_invariant():
    for level, where, of in product([WHOLE, *SPINE], WHERES, ("units", "persons")):
        shared = {"name": "n", "level": level, "where": where, "of": of}
        for by in COLUMNS:
            yield MarginalTable(by=by, **shared)
            yield Indicator(by=by, **shared)
            yield Inequality(by=by, at_least=1, **shared)
            yield Inequality(by=by, at_least=2, **shared)
            if of == "units":
                yield MarginalTable(by=by, whole_record=True, **shared)
                yield MarginalTable(by=by, whole_record=True, without=("tenure",), **shared)
        for weights in WEIGHTS:
            yield LinearCombination(by=("tenure",), weights=weights, **shared)


INVARIANTS = list(every_invariant())


@cache
def labels(number):
    """Return a number per data set, equal where the invariant has equal values."""
    known = {}
    values = (value(INVARIANTS[number], units, SPINE, ("rural",)) for units in DATA_SETS)
    return tuple(known.setdefault(tuple(sorted(v.items())), len(known)) for v in values)


def broken(domain, tries):
    """Return cases called determined in which the target varies inside a universe, and all."""
    chance = random.Random(1)
    wrong, called = [], 0
    for number in range(tries):
        target, *published = (chance.randrange(len(INVARIANTS)) for _ in range(2 + number % 2))
        if determined(INVARIANTS[target], [INVARIANTS[i] for i in published], domain):
            called += 1
            universes = list(zip(*(labels(i) for i in published), strict=True))
            if len(set(zip(universes, labels(target), strict=True))) != len(set(universes)):
                wrong.append((target, published))
    return wrong, called


def test_nothing_called_determined_ever_varies_inside_a_universe():
    wrong, called = broken(DOMAIN, 60_000)
    assert not wrong, [(INVARIANTS[t], [INVARIANTS[i] for i in p]) for t, p in wrong[:3]]
    assert called > 1000


@pytest.mark.parametrize("forgotten", ["places", "spine"])
def test_a_domain_that_hides_its_places_is_caught(forgotten):
    """Planted: areas outside the spine, or the spine itself, taken for variables of records."""
    wrong, _ = broken(DOMAIN.model_copy(update={forgotten: ()}), 20_000)
    assert wrong


def table(level, by=(), of="units", **other):
    return MarginalTable(name="n", of=of, by=by, level=level, **other)


@pytest.mark.parametrize(
    ("target", "published"),
    [
        (table("tract"), [table("block")]),
        (table(WHOLE, ("tenure",)), [table("block", ("tenure", "kind"))]),
        (table("state", ("tract",)), [table("block")]),
        (table("state", of="persons"), [table("tract", whole_record=True)]),
        (
            table("tract"),
            [
                table("tract", where={"kind": ["occupied"]}),
                table("block", where={"kind": ["vacant"]}),
            ],
        ),
        (
            LinearCombination(
                name="n", of="units", by=("tenure",), level="state", weights={"1": "1"}
            ),
            [
                LinearCombination(
                    name="n", of="units", by=("tenure",), level="tract", weights={"1": w, "2": v}
                )
                for w, v in (("1", "1"), ("1", "-1"))
            ],
        ),
        (
            Inequality(name="n", of="units", level="state", at_least=1),
            [Indicator(name="n", of="units", level="block")],
        ),
    ],
)
def test_what_should_be_recognised_is(target, published):
    assert determined(target, published, DOMAIN)
    assert Multiverse(invariants=tuple(published)).refines(
        Multiverse(invariants=(target,)), DOMAIN
    ) == ("yes")


def test_it_never_says_no():
    coarse = Multiverse(invariants=(table("tract"),))
    fine = Multiverse(invariants=(table("block"),))
    assert coarse.refines(fine, DOMAIN) == "unknown"
    assert coarse.undetermined(fine, DOMAIN) == fine.invariants


def test_a_common_refinement_refines_both():
    one = Multiverse(invariants=(table("tract"),))
    other = Multiverse(invariants=(table("tract"), table("state", ("tenure",))))
    both = one.common_refinement(other)
    assert both.refines(one, DOMAIN) == both.refines(other, DOMAIN) == "yes"
    assert len(both.invariants) == 2


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Inequality(name="n", of="units", level="state"),
        lambda: Inequality(name="n", of="units", level="state", at_least=1, at_most=2),
        lambda: table("state", without=("tenure",)),
        lambda: LinearCombination(
            name="n", of="units", by=("a", "b"), level="x", weights={"1": "1"}
        ),
        lambda: LinearCombination(name="n", of="units", by=("a",), level="x", weights={"1": 0.5}),
    ],
)
def test_an_incomplete_invariant_is_refused(bad):
    with pytest.raises(ValidationError):
        bad()
