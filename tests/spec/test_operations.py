"""Each operation on a promise keeps its conditions, and refuses with the reason otherwise."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.spec import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    Exactly,
    FunctionOfUniverse,
    InputPremetric,
    LogRational,
    NoCompositionRule,
    NoFiniteBudget,
    NotAllowed,
    OutputPremetric,
    approximate,
    chain,
    change_premetric,
    change_unit,
    compose,
    costs_nothing,
    group,
    hamming_of_multisets,
    neighbours,
    parallel,
    post_process,
    preprocess,
    release_of_invariants,
    symmetric_difference,
    to_contributors,
)
from discreet.spec.convert import NoConversion
from promises import (
    ALL_PERSONS,
    ALL_UNITS,
    RAW,
    concentrated,
    promise,
    pure,
    swapping,
    table,
    topdown,
)

PERSONS = hamming_of_multisets("person")
ADDED = symmetric_difference("person")
LISTS = InputPremetric(name="hamming", unit="person")
ratios = st.fractions(1, 50, max_denominator=20)


def amount(told):
    return told.budget.amount


# -- post-processing, invariants ------------------------------------------------------------------


def test_post_processing_keeps_the_promise_where_the_premetric_allows():
    for told in (pure(3), topdown(), promise(Exactly(of=1), output=approximate("1/9"))):
        assert post_process(told) == told
    loose = OutputPremetric(name="integral-probability", detail="1-Lipschitz functions")
    with pytest.raises(NotAllowed, match="may increase"):
        post_process(promise(Exactly(of=1), output=loose))


def test_only_functions_of_what_is_exact_are_free():
    assert costs_nothing(table("persons", "all"), topdown())
    assert not costs_nothing(table("persons", "county"), topdown())
    assert costs_nothing(ALL_PERSONS, pure(3))  # fixed by the premetric
    assert not costs_nothing(ALL_PERSONS, pure(3, premetric=ADDED))
    assert amount(release_of_invariants(topdown())) == Exactly(of=0)
    assert amount(release_of_invariants(swapping())) == LogRational(of=1)


# -- parts and groups -----------------------------------------------------------------------------


@given(st.lists(ratios, min_size=1, max_size=4))
def test_separate_parts_have_the_largest_budget(amounts):
    told = parallel([pure(ratio) for ratio in amounts])
    assert amount(told) == LogRational(of=max(amounts))
    assert "stays in its part" in told.budget.conditions[-1]
    assert amount(parallel([concentrated(a) for a in amounts])) == Exactly(of=max(amounts))


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ([], "no parts"),
        ([pure(3), concentrated(1)], "different flavors"),
        ([pure(3), pure(3, invariants=[ALL_UNITS])], "different flavors"),
        ([promise(Exactly(of=1), output=approximate("1/9"))] * 2, "no rule for separate parts"),
        ([promise(Exactly(of=1), output=OutputPremetric(name="chi-squared"))] * 2, "no rule"),
        ([pure(3, premetric=neighbours(PERSONS))] * 2, "several parts at once"),
    ],
)
def test_parts_are_refused(parts, says):
    with pytest.raises(NotAllowed, match=says):
        parallel(parts)


@given(ratios, st.integers(1, 9))
def test_groups_multiply_and_square(ratio, size):
    told = group(pure(ratio), size)
    assert amount(told).value() == pytest.approx(size * LogRational(of=ratio).value())
    assert amount(group(concentrated(ratio), size)) == Exactly(of=ratio * size**2)
    mu = promise(Exactly(of=ratio), output=OutputPremetric(name="gaussian"))
    assert amount(group(mu, size)) == Exactly(of=ratio * size**2)
    if size > 1:
        assert told.input_premetric.unit == f"group of {size} persons"


def test_groups_of_approximate_neighbours_have_a_larger_delta():
    """Dwork and Roth (2014): (k e, delta (exp(k e) - 1)/(exp(e) - 1))."""
    near = promise(LogRational(of=2), output=approximate("1/1000"), premetric=neighbours(PERSONS))
    told = group(near, 3)
    assert amount(told) == LogRational(of=8)
    delta = told.output_premetric.delta
    assert delta >= Fraction(7, 1000)  # (8 - 1)/(2 - 1)
    assert float(delta) == pytest.approx(7 / 1000)
    with pytest.raises(NotAllowed, match="1 or more"):
        group(near, 10)
    free = promise(Exactly(of=0), output=approximate("1/1000"), premetric=neighbours(PERSONS))
    assert group(free, 3).output_premetric.delta == Fraction(3, 1000)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (pure(3, premetric=neighbours(PERSONS), invariants=[ALL_UNITS]), "leave the universe"),
        (
            promise(
                Exactly(of=1),
                output=OutputPremetric(name="kullback-leibler"),
                premetric=neighbours(PERSONS),
            ),
            "no metric",
        ),
        (promise(Exactly(of=1), output=OutputPremetric(name="trade-off")), "not a number"),
    ],
)
def test_groups_are_refused(told, says):
    with pytest.raises(NotAllowed, match=says):
        group(told, 2)
    with pytest.raises(NotAllowed, match="at least one"):
        group(told, 0)
    assert group(told, 1) == told


# -- other premetrics -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origin", "to", "factor"),
    [
        (ADDED, PERSONS, 2),
        (ADDED, InputPremetric(name="deletions", unit="person"), 1),
        (ADDED, LISTS, 2),
        (PERSONS, LISTS, 1),
        (InputPremetric(name="deletions", unit="person"), LISTS, 2),
        (PERSONS, neighbours(PERSONS, 3), 3),
    ],
)
def test_known_factors_between_premetrics(origin, to, factor):
    told = change_premetric(concentrated(1, premetric=origin), to)
    assert amount(told) == Exactly(of=factor**2)
    assert told.input_premetric == to
    assert f"factor {factor}" in told.budget.conditions[-1]


@given(st.lists(st.integers(0, 2), max_size=5), st.lists(st.integers(0, 2), max_size=5))
def test_known_factors_hold_for_all_data_sets(x, y):
    deletions = InputPremetric(name="deletions", unit="person")
    for origin, to, factor in (
        (ADDED, PERSONS, 2),
        (ADDED, deletions, 1),
        (ADDED, LISTS, 2),
        (PERSONS, LISTS, 1),
        (deletions, LISTS, 2),
        (PERSONS, neighbours(PERSONS, 2), 2),
    ):
        assert origin.distance(x, y) <= factor * to.distance(x, y)
    if len(x) == len(y):
        assert PERSONS.distance(x, y) * 2 == ADDED.distance(x, y)


def test_bounded_promises_extend_to_adding_only_if_the_number_is_fixed():
    fixed = concentrated(4, invariants=[ALL_PERSONS])
    assert amount(change_premetric(fixed, ADDED)) == Exactly(of=1)
    with pytest.raises(NotAllowed, match="different size"):
        change_premetric(concentrated(4), ADDED)


@pytest.mark.parametrize(
    ("told", "to", "more", "says"),
    [
        (pure(3), hamming_of_multisets("household"), {}, "use change_unit"),
        (pure(3, premetric=LISTS), PERSONS, {}, "no factor between"),
        (pure(3), LISTS, {"factor": Fraction(2)}, "needs a reason"),
        (pure(3), LISTS, {"factor": Fraction(0), "because": "x"}, "positive"),
    ],
)
def test_changes_of_premetric_are_refused(told, to, more, says):
    with pytest.raises(NotAllowed, match=says):
        change_premetric(told, to, **more)


def test_a_factor_of_ones_own_is_kept_with_the_budget():
    told = change_premetric(pure(3), LISTS, Fraction(2), "my own proof")
    assert amount(told) == LogRational(of=9)
    assert "my own proof" in told.budget.conditions[-1]


# -- units ----------------------------------------------------------------------------------------


def test_from_households_to_persons_a_person_may_move():
    told = concentrated("25.56", unit="household", invariants=[ALL_UNITS])
    assert amount(change_unit(told, "person")) == Exactly(of="102.24")  # 2 unless said
    assert amount(change_unit(told, "person", touched=1)) == Exactly(of="25.56")
    assert change_unit(told, "household") == told


def test_the_2020_total_under_both_assumptions_about_moves():
    """55.371 if a person touches one household; 132.051 if two, for 0.07 + 7.70 + 17.79 of it."""
    households = concentrated("25.56", unit="household", invariants=[ALL_UNITS])
    persons = concentrated("29.811", invariants=[ALL_UNITS])
    for touched, total in ((1, "55.371"), (2, "132.051")):
        done = compose([persons, households], touched=touched)
        assert amount(done.specification) == Exactly(of=total)
        assert done.specification.input_premetric.unit == "person"
        assert any(f"alters at most {touched}" in text for text in done.weakenings)


@pytest.mark.parametrize(
    ("told", "unit", "more", "says"),
    [
        (pure(3), "household", {}, "give `records`"),
        (pure(3), "household", {"records": 3, "touched": 1}, "give `records`"),
        (pure(3), "household", {"records": 3}, "same_sizes"),
        (pure(3), "household", {"records": 0, "same_sizes": True}, "at least 1"),
        (pure(3, unit="household", invariants=[ALL_UNITS]), "person", {"records": 3}, "touched"),
        (pure(3, unit="household", invariants=[ALL_UNITS]), "person", {"touched": 0}, "at least 1"),
        (pure(3), "user", {}, "no order"),
    ],
)
def test_changes_of_unit_are_refused(told, unit, more, says):
    with pytest.raises(NotAllowed, match=says):
        change_unit(told, unit, **more)


def test_adding_and_removing_allows_sizes_to_vary():
    told = pure(2, premetric=ADDED)
    assert amount(change_unit(told, "household", records=3)) == LogRational(of=8)


@pytest.mark.parametrize(("copies", "rho2"), [(0, "55.371"), (1, "221.484")])
def test_contributors_stand_behind_their_copies(copies, rho2):
    """Bailie, Gong and Meng, section 5.2: one duplicate makes four times 55.371."""
    told = to_contributors(concentrated("55.371"), copies)
    assert amount(told) == Exactly(of=rho2)
    assert told.input_premetric.counts == "contributors"
    assert "donor" in told.budget.conditions[-1]
    with pytest.raises(NotAllowed, match="already"):
        to_contributors(told, 1)
    with pytest.raises(NotAllowed, match="negative"):
        to_contributors(concentrated(1), -1)


# -- before the mechanism -------------------------------------------------------------------------


@given(ratios, st.integers(1, 5))
def test_stability_multiplies_and_squares(ratio, factor):
    for step in (preprocess, chain):
        told = step(pure(ratio), RAW, Fraction(factor), "each answer makes so many records")
        assert amount(told).value() == pytest.approx(factor * LogRational(of=ratio).value())
        assert told.domain == RAW
        assert f"stability {factor}" in told.budget.conditions[-1]
        rho2 = step(concentrated(ratio), RAW, Fraction(factor), "so")
        assert amount(rho2) == Exactly(of=ratio * factor**2)
    assert preprocess(pure(ratio), RAW, Fraction(1), "x").budget.status == "published"
    assert chain(pure(ratio), RAW, Fraction(1), "x").budget.status == "proved here"


@pytest.mark.parametrize("step", [preprocess, chain])
@pytest.mark.parametrize(
    ("told", "stability", "because", "says"),
    [
        (pure(3), 0, "x", "positive"),
        (pure(3), 2, "", "needs a reason"),
        (pure(3, premetric=neighbours(PERSONS)), 2, "x", "farther apart than neighbours"),
    ],
)
def test_stability_is_refused(step, told, stability, because, says):
    with pytest.raises(NotAllowed, match=says):
        step(told, RAW, Fraction(stability), because)


def test_a_step_may_bring_its_own_premetric():
    told = preprocess(concentrated(1), RAW, Fraction(2), "clamping", premetric=ADDED)
    assert told.input_premetric == ADDED
    assert amount(told) == Exactly(of=4)


# -- composition beyond sums ----------------------------------------------------------------------


def test_everything_given_up_is_listed():
    one = pure(3, unit="household", invariants=[ALL_UNITS])
    other = concentrated(1, invariants=[ALL_UNITS, ALL_PERSONS])
    done = compose([one, other], touched=1)
    assert done.specification.output_premetric == NORMALISED_RENYI
    assert done.specification.input_premetric == PERSONS
    text = " ".join(done.weakenings)
    for needed in ("per person instead of household", "further invariants", "converted"):
        assert needed in text


def test_deltas_stand_beside_pure_and_concentrated_parts():
    steps = neighbours(PERSONS)
    near = promise(Exactly(of=1), output=approximate("1/1000"), premetric=steps)
    done = compose([near, pure(1, premetric=steps)]).specification
    assert done.output_premetric == approximate("1/1000")
    mixed = [near, concentrated(1, premetric=steps)]
    with pytest.raises(NoCompositionRule, match="give the delta"):
        compose(mixed)
    done = compose(mixed, delta=Fraction(1, 1000)).specification
    assert done.output_premetric == approximate("1/500")
    with pytest.raises(NoCompositionRule, match="neighbours first"):
        compose([promise(Exactly(of=1), output=approximate("1/9")), concentrated(1)], delta=1)


@pytest.mark.parametrize(
    ("parts", "more", "says"),
    [
        ([], {}, "nothing to compose"),
        ([pure(3), pure(3)], {"randomness": "shared"}, "joint law"),
        ([pure(3), pure(3, domain=RAW)], {}, "domains differ"),
        ([pure(3), pure(3, unit="household")], {}, "say how many household records"),
        ([pure(3), pure(3, premetric=ADDED)], {}, "input premetrics differ"),
        ([pure(3), promise(NoFiniteBudget(reason="pairs"), output=MULTIPLICATIVE)], {}, "pairs"),
        (
            [pure(3), promise(FunctionOfUniverse(formula="b"), output=MULTIPLICATIVE)],
            {},
            "facts",
        ),
        (
            [promise(Exactly(of=1), output=OutputPremetric(name="chi-squared"))] * 2,
            {},
            "faster than the distance",
        ),
        ([promise(Exactly(of=1), output=OutputPremetric(name="trade-off"))] * 2, {}, "no compos"),
        (
            [pure(3), promise(Exactly(of=1), output=OutputPremetric(name="total-variation"))],
            {},
            "across the output premetrics",
        ),
        (
            [promise(Exactly(of="1/9"), output=OutputPremetric(name="total-variation"))] * 2,
            {"adaptive": True},
            "adaptive",
        ),
    ],
)
def test_compositions_without_a_rule_are_refused(parts, more, says):
    with pytest.raises(NoCompositionRule, match=says):
        compose(parts, **more)


def test_adaptive_releases_cost_the_same_where_a_theorem_says_so():
    for told in (pure(3), concentrated(1), promise(Exactly(of=1), output=approximate("1/9"))):
        assert compose([told, told], adaptive=True) == compose([told, told])


def test_other_product_rules():
    hellinger = OutputPremetric(name="hellinger")
    done = compose(
        [promise(Exactly(of=3), output=hellinger), promise(Exactly(of=4), output=hellinger)]
    )
    assert amount(done.specification).value() == pytest.approx(5)
    mu = OutputPremetric(name="gaussian")
    done = compose([promise(Exactly(of=9), output=mu), promise(Exactly(of=16), output=mu)])
    assert amount(done.specification) == Exactly(of=25)


def test_a_budget_that_is_no_number_is_refused_or_carried():
    unknown = promise(FunctionOfUniverse(formula="ln b"), output=MULTIPLICATIVE)
    assert amount(group(unknown, 2)) == FunctionOfUniverse(formula="2 x (ln b)")
    with pytest.raises(NoConversion):
        parallel([unknown, unknown])
    nothing = promise(NoFiniteBudget(reason="pairs"), output=MULTIPLICATIVE)
    assert amount(group(nothing, 2)) == amount(nothing)
