"""The calculus does to promises what it should do to the losses of mechanisms.

Where a law can be written out, the loss is computed from it and set beside the promise.
Properties of swapping itself are in the tests of its accountant.
"""

import itertools
import math
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.spec import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    Exactly,
    LogRational,
    Multiverse,
    NoCompositionRule,
    NotAllowed,
    OutputPremetric,
    approximate,
    change_unit,
    compose,
    concentrated_to_approximate,
    convert,
    group,
    hamming_of_multisets,
    neighbours,
    parallel,
    refine,
    release_of_invariants,
)
from discreet.spec import divergences as laws
from discreet.spec.comparison.compare import compare
from discreet.spec.comparison.tiny import _units, distance, one_universe, records
from discreet.spec.invariants import value
from promises import (
    ALL_PERSONS,
    ALL_UNITS,
    CENSUS,
    concentrated,
    promise,
    pure,
    swapping,
    table,
    topdown,
)

DELTA = Fraction(1, 10**10)
ratios = st.fractions(1, 50, max_denominator=20)
budgets = st.fractions(Fraction(1, 100), 20, max_denominator=100)


# -- 1: refining ----------------------------------------------------------------------------------


PLACES = [table(of, level) for of in ("units", "persons") for level in ("all", "state", "block")]
TABLES = [*PLACES, table("units", "state", whole=True), table("units", "block", ("tenure",))]
HOUSEHOLDS = hamming_of_multisets("household")


#: How much each of these in a unit raises the odds of one output.
RAISES = {("state", "2"): 300, ("block", "2"): 60, ("tenure", "2"): 12, ("kind", "occupied"): 3}


@cache
def tiny_data():
    """Return data sets of one or two households, and for each the law of an output."""
    units = _units(CENSUS, TABLES, 1, False)
    data = [(unit,) for unit in units] + [(units[0], unit) for unit in units]
    odds = [
        1 + sum(by for unit in one for (k, v), by in RAISES.items() if unit[k] == v) for one in data
    ]
    return data, [{1: Fraction(o, 1 + o), 0: Fraction(1, 1 + o)} for o in odds]


@cache
def losses():
    """Return pairs of data sets with their distance in the output per step in households."""
    data, law = tiny_data()
    found = []
    for i, j in itertools.combinations(range(len(data)), 2):
        steps = distance(HOUSEHOLDS, (data[i], data[j]))
        if 0 < steps < math.inf:
            apart = laws.distance("multiplicative", law[i], law[j]).bounds.upper
            found.append(((data[i], data[j]), apart / steps))
    return found


@cache
def loss(chosen):
    """Return the largest of them over pairs that share a universe of the chosen tables."""
    invariants = [TABLES[k] for k in chosen]
    return max((r for pair, r in losses() if one_universe(invariants, pair, CENSUS)), default=0.0)


some = st.frozensets(st.integers(0, len(TABLES) - 1), max_size=2)


@settings(deadline=None)
@given(some, some)
def test_1_refining_never_raises_the_loss(old, new):
    """Where `refine` says yes, the old budget still covers the mechanism."""
    told = pure(3, unit="household", invariants=[TABLES[k] for k in old])
    try:
        refine(told, Multiverse(invariants=tuple(TABLES[k] for k in new)))
    except NotAllowed:
        return
    assert loss(new) <= loss(old)


def test_1_the_losses_differ():
    """So that the test above can fail."""
    found = [loss(frozenset(chosen)) for chosen in ((), (1,), (2,), (7,))]
    assert sorted(set(found), reverse=True) == found


@given(ratios)
def test_1_refining_keeps_the_promise_and_cannot_be_undone(ratio):
    """Bailie, Gong and Meng, Proposition 5."""
    told = pure(ratio, invariants=[table("units", "state")])
    more = Multiverse(invariants=(table("units", "block"), ALL_PERSONS))
    refined = refine(told, more)
    assert refined.budget == told.budget
    assert refined.multiverse == more
    assert compare(told, refined).forward.certified
    with pytest.raises(NotAllowed, match="not shown to be a refinement"):
        refine(refined, told.multiverse)


# -- 2: invariants are free -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "told",
    [
        swapping(),
        topdown(),
        promise(LogRational(of=3, times=Fraction(1, 2)), output=MULTIPLICATIVE),
        promise(Exactly(of="1.5"), output=MULTIPLICATIVE),
        promise(Exactly(of="1/3"), output=OutputPremetric(name="renyi", order="5/2")),
        promise(Exactly(of="1/3"), output=OutputPremetric(name="kullback-leibler")),
        promise(Exactly(of="1/3"), output=OutputPremetric(name="total-variation")),
        promise(Exactly(of="1/3"), output=OutputPremetric(name="gaussian")),
        concentrated(0),
    ],
    ids=lambda told: told.output_premetric.name,
)
def test_2_releasing_the_invariants_costs_nothing(told):
    free = release_of_invariants(told)
    assert free.budget.amount.upper_bound() == 0
    for parts in ([told, free], [free, told], [told, free, free]):
        assert compose(parts).specification.budget.amount == told.budget.amount
    assert compose([told, free]).specification == told
    assert compose([told, free]).weakenings == ()


# -- 3: groups and units --------------------------------------------------------------------------


@given(ratios, st.integers(1, 6), st.integers(1, 3))
def test_3_groups_and_changes_of_unit_agree(ratio, size, touched):
    for told in (pure(ratio), concentrated(ratio)):
        household = change_unit(told, "household", records=size, same_sizes=True)
        assert group(told, size).budget.amount == household.budget.amount
    for coarse in (pure(ratio, unit="household"), concentrated(ratio, unit="household")):
        coarse = coarse.model_copy(update={"multiverse": Multiverse(invariants=(ALL_UNITS,))})
        one = group(change_unit(coarse, "person", touched=touched), size).budget.amount
        other = group(coarse, touched * size).budget.amount
        assert one.upper_bound() == pytest.approx(other.upper_bound(), rel=1e-20)


@given(ratios, st.integers(1, 5), st.integers(1, 5))
def test_3_groups_of_groups_multiply(ratio, one, other):
    told = concentrated(ratio)
    twice = group(group(told, one), other).budget.amount
    assert twice == group(told, one * other).budget.amount == Exactly(of=ratio * (one * other) ** 2)


laws_of_few = st.lists(st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=3, max_size=4)


@settings(max_examples=12, deadline=None)
@given(laws_of_few)
def test_3_groups_of_a_metric_cost_no_more_than_their_steps(weights):
    """What `group` relies on for neighbours: steps along a path add up."""
    chain = [{t: Fraction(w, sum(row)) for t, w in enumerate(row)} for row in weights]
    for output in ("multiplicative", "normalised-renyi"):
        steps = [laws.distance(output, p, q).bounds.upper for p, q in itertools.pairwise(chain)]
        ends = laws.distance(output, chain[0], chain[-1]).bounds.lower
        assert ends <= sum(steps) * (1 + 1e-9)


# -- 4: convert late ------------------------------------------------------------------------------


def test_4_the_2020_budgets_are_converted_after_adding_up():
    """0.07 + 2.56 + 7.70 + 4.96 = 15.29: 52.82 instead of 2.61 + 17.92 + 34.33 + 26.33."""
    amounts = [Fraction(text) for text in ("0.07", "2.56", "7.70", "4.96")]
    each = [float(concentrated_to_approximate(rho2, DELTA).amount) for rho2 in amounts]
    assert [round(one, 2) for one in each] == [2.61, 17.92, 34.33, 26.33]
    total = compose([concentrated(rho2) for rho2 in amounts]).specification
    assert total.budget.amount == Exactly(of="15.29")
    converted = convert(total, approximate(DELTA)).budget.amount.value()
    assert round(converted, 2) == 52.82
    assert converted < sum(each)


@settings(max_examples=50, deadline=None)
@given(st.lists(budgets, min_size=2, max_size=4), st.sampled_from(["published", "tight"]))
def test_4_convert_late_is_never_worse(amounts, method):
    """Even though the converted parts together also have a larger delta."""
    steps = neighbours(hamming_of_multisets("person"))
    parts = [concentrated(rho2, premetric=steps) for rho2 in amounts]
    late = convert(compose(parts).specification, approximate(DELTA), method)
    early = compose([convert(part, approximate(DELTA), method) for part in parts]).specification
    assert late.budget.amount.upper_bound() <= early.budget.amount.upper_bound()
    assert early.output_premetric.delta == len(parts) * DELTA
    assert late.output_premetric.delta == DELTA


# -- 9: swapping against TopDown ------------------------------------------------------------------


def test_9_swapping_and_topdown_are_incomparable_with_two_witnesses():
    """Bailie, Gong and Meng, section 5: neither promise implies the other."""
    a, b = swapping(), topdown()
    done = compare(a, b, names=("PSA", "TopDown"))
    assert done.verdict == "incomparable"
    ahead, back = done.witnesses
    assert (ahead.satisfied, back.satisfied) == ("first", "second")
    for witness, satisfied, broken in ((ahead, a, b), (back, b, a)):
        x, y = witness.pair
        assert witness.invariant in satisfied.multiverse.invariants
        assert value(witness.invariant, x, a.domain.spine) != value(
            witness.invariant, y, a.domain.spine
        )
        for one in broken.multiverse.invariants:
            assert value(one, x, a.domain.spine) == value(one, y, a.domain.spine)
        premetric = broken.input_premetric
        apart = premetric.distance(records(x, premetric.unit), records(y, premetric.unit))
        assert 0 < apart < math.inf


@pytest.mark.parametrize(("rho2", "ratio"), [("0.001", 10**9), ("1000", 2)])
def test_9_no_budget_changes_that(rho2, ratio):
    assert compare(swapping(Fraction(ratio)), topdown(rho2)).verdict == "incomparable"


# -- 10: a fixed delta does not compose -----------------------------------------------------------

exclusive = st.integers(1, 8).map(lambda k: Fraction(1, 10 * k))


@given(exclusive)
def test_10_a_point_of_mass_delta_is_free_once_and_infinite_twice(delta):
    """Against Bailie (2025), section 2.4.5, which lists this premetric as composing."""
    p = {"exclusive": delta, "common": 1 - delta}
    q = {"common": Fraction(1)}
    both = [
        {(s, t): v * w for (s, v), (t, w) in itertools.product(law.items(), repeat=2)}
        for law in (p, q)
    ]
    assert laws.distance("approximate", p, q, delta=delta).bounds.upper < math.inf
    # The masses that are exclusive add up to 2 delta - delta^2, above delta and below 2 delta.
    assert laws.distance("approximate", *both, delta=delta).bounds.lower == math.inf
    assert laws.distance("approximate", *both, delta=2 * delta).bounds.upper < math.inf


def test_10_deltas_add_up_and_a_total_of_one_is_refused():
    told = promise(Exactly(of="1/2"), output=approximate("1/3"))
    twice = compose([told, told])
    assert twice.specification.output_premetric == approximate("2/3")
    assert twice.specification.budget.amount == Exactly(of=1)
    assert any("deltas add up" in text for text in twice.weakenings)
    with pytest.raises(NoCompositionRule, match="1 or more"):
        compose([told, told, told])
    with pytest.raises(NotAllowed, match="no rule for separate parts"):
        parallel([told, told])


def test_10_concentrated_budgets_do_compose():
    """Unlike approximate ones, at no further cost: rho^2 of a product is the sum."""
    p, q = {0: Fraction(3, 4), 1: Fraction(1, 4)}, {0: Fraction(1, 4), 1: Fraction(3, 4)}
    both = [
        {(s, t): v * w for (s, v), (t, w) in itertools.product(law.items(), repeat=2)}
        for law in (p, q)
    ]
    once = float(laws.distance(NORMALISED_RENYI.name, p, q).bounds)
    assert float(laws.distance(NORMALISED_RENYI.name, *both).bounds) == pytest.approx(
        math.sqrt(2) * once, rel=1e-6
    )
