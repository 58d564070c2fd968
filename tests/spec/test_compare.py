"""A verdict is a proof: derived block by block, or refuted by a mechanism and two data sets."""

import itertools
import json
from fractions import Fraction

import pytest

from discreet.spec import (
    MULTIPLICATIVE,
    Exactly,
    FunctionOfUniverse,
    InputPremetric,
    LogRational,
    NoFiniteBudget,
    approximate,
    hamming_of_multisets,
    neighbours,
    symmetric_difference,
)
from discreet.spec.comparison.amounts import at_most
from discreet.spec.comparison.compare import compare
from discreet.spec.comparison.facts import Facts
from discreet.spec.comparison.witness import check, refute
from promises import (
    ALL_PERSONS,
    ALL_UNITS,
    RAW,
    concentrated,
    promise,
    pure,
    swapping,
    swapping_of_households,
    table,
    topdown,
)

MIRRORED = {"stronger": "weaker", "weaker": "stronger"}
PERSONS = hamming_of_multisets("person")


def verdict(a, b, **claims):
    return compare(a, b, **claims).verdict


def near(epsilon, delta="1e-10", premetric=PERSONS, **blocks):
    """Return an approximate promise about neighbours."""
    return promise(
        Exactly(of=epsilon), output=approximate(delta), premetric=neighbours(premetric), **blocks
    )


# -- one block at a time ------------------------------------------------------------------------


def test_a_promise_is_equivalent_to_itself():
    for one in (swapping(), topdown(), near(1)):
        assert verdict(one, one) == "equivalent"


def test_a_smaller_budget_of_one_flavor_is_stronger_and_strictly():
    done = compare(pure(2), pure(3))
    assert done.verdict == "stronger"
    assert [(w.kind, w.satisfied) for w in done.witnesses] == [("budget", "second")]
    assert verdict(concentrated("0.5"), concentrated("0.4")) == "weaker"


def test_logarithms_are_compared_as_whole_numbers():
    """2 ln 2 = ln 4, and ln(1 + 1e-60) more is more; floats could tell neither."""
    twice = promise(LogRational(of=2, times=2))
    assert verdict(twice, pure(4)) == "equivalent"
    assert verdict(twice, pure(4 + Fraction(1, 10**60))) == "stronger"
    assert verdict(pure(4 + Fraction(1, 10**60)), twice) == "weaker"


def test_amounts_that_cannot_be_told_apart_are_not_ordered():
    """A logarithm and a rational next to it, and functions of the universe."""
    ln3 = LogRational(of=3)
    assert at_most(ln3, Exactly(of="1.0986122886681096")) is False
    assert at_most(ln3, Exactly(of="1.0986122886681097")) is True
    assert at_most(ln3, Exactly(of=ln3.upper_bound() - Fraction(1, 10**26))) is None
    one, other = FunctionOfUniverse(formula="ln b"), FunctionOfUniverse(formula="ln(b + 1)")
    assert at_most(one, one) is True
    assert at_most(one, other) is at_most(other, ln3) is None
    assert at_most(Exactly(of=0), one) is True
    assert at_most(NoFiniteBudget(reason="x"), ln3) is False


def test_more_invariants_are_weaker_and_the_witness_publishes_one():
    less, more = (
        pure(3, invariants=[ALL_UNITS]),
        pure(3, invariants=[table("units", "block", ("tenure",))]),
    )
    done = compare(less, more)
    assert done.verdict == "stronger"
    (witness,) = done.witnesses
    assert (witness.kind, witness.satisfied) == ("exact", "second")
    assert check(witness, less, more)


def test_more_invariants_with_a_smaller_budget_are_incomparable():
    """Bailie, Gong and Meng, Proposition 3: a smaller number bought with invariants."""
    done = compare(pure(2, invariants=[table("units", "block")]), pure(3))
    assert done.verdict == "incomparable"
    assert {w.kind for w in done.witnesses} == {"exact", "budget"}
    assert "W2" in {one.id for one in done.warnings}


def test_what_a_premetric_fixes_counts_as_an_invariant():
    told = pure(3, invariants=[ALL_PERSONS])
    assert verdict(told, pure(3)) == "equivalent"
    added = symmetric_difference("person")
    done = compare(pure(3), pure(9, premetric=added))
    assert done.forward.witness.invariant == ALL_PERSONS.model_copy(
        update={"name": "number of person records"}
    )


def test_unbounded_implies_bounded_at_twice_the_budget_and_never_back():
    added = symmetric_difference("person")
    assert verdict(pure(3, premetric=added), pure(9)) == "stronger"
    assert verdict(concentrated(1, premetric=added), concentrated(4)) == "stronger"
    done = compare(pure(3, premetric=added), pure(8))
    assert done.verdict == "incomparable"  # one change costs up to two steps: 2 ln 3 = ln 9
    assert {w.kind for w in done.witnesses} == {"budget", "exact"}


def test_a_bounded_premetric_with_its_count_invariant_is_worth_half():
    one = pure(9, invariants=[ALL_PERSONS])
    other = pure(3, invariants=[ALL_PERSONS], premetric=symmetric_difference("person"))
    assert verdict(one, other) == "equivalent"


def test_units_need_a_factor_that_is_never_guessed():
    one = pure(3, unit="household", invariants=[ALL_UNITS])
    other = pure(9, invariants=[ALL_UNITS])
    done = compare(one, other)
    assert done.forward.certified is False
    assert "touched" in done.forward.conditions[-1].text
    assert compare(one, other, touched=2).verdict == "stronger"
    assert not compare(one, other, touched=3).forward.certified
    assert compare(one, pure(3, invariants=[ALL_UNITS]), touched=1).verdict == "stronger"


def test_a_bounded_promise_about_households_needs_their_number_fixed():
    """Data sets with as many persons may have more households: infinitely far apart there."""
    done = compare(pure(3, unit="household"), pure(9), touched=1)
    assert done.verdict == "incomparable"
    assert done.forward.witness.invariant.of == "units"
    assert check(done.forward.witness, pure(3, unit="household"), pure(9))


def test_a_person_who_moves_touches_two_households():
    """The witness at equal budgets: one person moves, two household records change."""
    one = pure(3, unit="household", invariants=[ALL_UNITS])
    other = pure(3, invariants=[ALL_UNITS])
    witness = compare(one, other).forward.witness
    assert witness.kind == "budget"
    assert witness.distance == 1
    assert check(witness, one, other)
    assert not check(witness, one, pure(9, invariants=[ALL_UNITS]))


def test_fine_to_coarse_needs_the_most_records_and_equal_sizes():
    invariants = [table("units", "all", ("size",)), ALL_PERSONS]
    one = pure(3, invariants=invariants)
    other = pure(27, unit="household", invariants=invariants)
    assert not compare(one, other, records=3).forward.certified
    assert compare(one, other, records=3, same_sizes=True).forward.certified


def test_contributors_need_the_number_of_copies():
    one = concentrated(1)
    other = one.model_copy(
        update={"input_premetric": PERSONS.model_copy(update={"counts": "contributors"})}
    )
    four = other.model_copy(update={"budget": concentrated(4).budget})
    assert "copies" in compare(one, four).forward.conditions[-1].text
    assert compare(one, four, copies=1).forward.certified
    assert not compare(one, four, copies=2).forward.certified
    assert not compare(four, one, copies=1).forward.certified


def test_neighbours_are_as_good_as_all_pairs_under_a_metric_and_without_invariants():
    """Bailie (2025), appendix A.4: if and only if the output premetric is a metric."""
    steps = neighbours(PERSONS)
    assert verdict(pure(3, premetric=steps), pure(3)) == "equivalent"
    assert verdict(concentrated(1, premetric=steps), concentrated(1)) == "equivalent"
    fixed = [table("units", "block", ("tenure",))]
    one = pure(3, premetric=steps, invariants=fixed)
    assert verdict(one, pure(3, invariants=fixed)) == "weaker"  # the other way only
    loose = promise(Exactly(of=1), output=approximate("1e-6"))
    assert not compare(near(1, "1e-6"), loose).forward.certified


@pytest.mark.parametrize("claim", [{"touched": 2}, {"copies": 1}])
def test_neighbours_do_not_stretch(claim):
    steps = neighbours(hamming_of_multisets("household"))
    one = pure(3, premetric=steps, invariants=[ALL_UNITS])
    counts = "contributors" if "copies" in claim else "records"
    unit = "household" if "copies" in claim else "person"
    to = steps.told(unit=unit, counts=counts)
    done = compare(one, pure(100, premetric=to, invariants=[ALL_UNITS]), **claim)
    assert not done.forward.certified
    assert "neighbours" in done.forward.conditions[-1].text


def test_ordered_lists_are_weaker_than_multisets():
    listed = InputPremetric(name="hamming", unit="person")
    done = compare(pure(3), pure(3, premetric=listed))
    assert done.verdict == "stronger"
    assert done.backward.witness.kind == "order"


# -- output premetrics ---------------------------------------------------------------------------


def test_pure_to_concentrated_is_decided_at_the_tight_bound():
    """epsilon = ln 3: rho^2 = ln 3 tanh(ln 3 / 2) = 0.549306 is enough, and needed."""
    assert verdict(pure(3), concentrated("0.549307")) == "stronger"
    done = compare(pure(3), concentrated("0.549305"))
    assert done.verdict == "incomparable"
    assert {w.kind for w in done.witnesses} == {"budget", "noise"}


def test_pure_to_concentrated_is_known_to_be_strict():
    done = compare(pure(3), concentrated(1))
    assert done.verdict == "stronger"
    assert done.backward.witness.kind == "noise"


def test_concentrated_to_approximate_uses_the_better_published_bound():
    """rho^2 = 15.29 is epsilon 51.563 at delta 1e-10; normal noise reaches 49.8 of it."""
    told = concentrated("15.29")
    assert verdict(told, near("51.564")) == "stronger"
    assert compare(told, near("51.564")).backward.witness.kind == "leak"
    assert verdict(told, near(50)) == "unknown"
    done = compare(told, near(49))
    assert done.verdict == "incomparable"
    assert {w.kind for w in done.witnesses} == {"budget", "leak"}


def test_an_approximate_promise_about_all_pairs_does_not_follow():
    everywhere = promise(Exactly(of=100), output=approximate("1e-10"))
    assert not compare(concentrated("15.29"), everywhere).forward.certified


def test_deltas_are_ordered():
    assert verdict(near(1, "1e-12"), near(1, "1e-10")) == "stronger"
    assert verdict(near(1, "1e-10"), near(2, "1e-12")) == "incomparable"
    assert verdict(pure(3, premetric=neighbours(PERSONS)), near("1.1")) == "stronger"
    done = compare(near(2), near(1))
    assert done.verdict == "weaker"
    assert done.forward.witness.kind == "budget"


def test_nothing_finite_follows_upwards():
    done = compare(near(1), concentrated(100))
    assert not done.forward.certified
    assert done.forward.witness.kind == "leak"
    assert compare(concentrated("0.0001"), pure(10**9)).forward.witness.kind == "noise"


# -- no number to compare --------------------------------------------------------------------------


def test_no_finite_budget_promises_nothing():
    nothing = promise(NoFiniteBudget(reason="swaps in pairs"), output=MULTIPLICATIVE)
    done = compare(topdown(), nothing)
    assert done.verdict == "stronger"
    assert done.backward.witness.kind == "everything"
    assert verdict(nothing, nothing) == "equivalent"


def test_functions_of_the_universe_are_equal_or_unknown():
    one = promise(FunctionOfUniverse(formula="ln b"), output=MULTIPLICATIVE)
    other = promise(FunctionOfUniverse(formula="ln(b + 1)"), output=MULTIPLICATIVE)
    assert verdict(one, one) == "equivalent"
    assert verdict(one, other) == "unknown"


def test_swapping_without_facts_is_still_refuted_both_ways():
    unknown = swapping().model_copy(
        update={"budget": promise(FunctionOfUniverse(formula="ln b"), output=MULTIPLICATIVE).budget}
    )
    assert verdict(unknown, topdown()) == "incomparable"


def test_different_domains_are_not_compared():
    done = compare(pure(3), pure(3, domain=RAW))
    assert done.verdict == "unknown"
    assert done.reasons[0].name == "domain"
    assert "W1" in {one.id for one in done.warnings}


# -- the published systems ------------------------------------------------------------------------


def test_swapping_of_households_only_is_incomparable_with_topdown():
    """All invariants of TopDown follow from those of swapping; noise tells them apart."""
    done = compare(swapping_of_households(), topdown())
    assert done.verdict == "incomparable"
    ahead, back = done.witnesses
    assert (ahead.kind, back.kind) == ("exact", "noise")
    assert all(check(one, swapping_of_households(), topdown()) for one in done.witnesses)
    held = [one for one in done.backward.conditions if one.holds]
    assert "multiverse" in {one.name for one in held}


def test_the_words_say_verdict_conditions_witnesses_and_cautions():
    facts = Facts(stands_for="the swapping of 2010")
    done = compare(swapping(), topdown(), names=("PSA", "TopDown"), facts=(facts, Facts()))
    text = done.describe()
    for needed in (
        "PSA and TopDown are incomparable",
        "must not be ranked",
        "Does PSA imply TopDown? no.",
        "Does TopDown imply PSA? no.",
        "Publish exactly: complete records of units",
        "One data set: [state 1, block 1, kind occupied",
        "W3 ",
        "W20 ",
    ):
        assert needed in text
    assert "ratio of the two budgets means anything" in text


def test_plain_values_survive_json():
    done = compare(swapping(), topdown())
    plain = json.loads(json.dumps(done.as_dict()))
    assert plain["verdict"] == "incomparable"
    assert [one["satisfied"] for one in plain["witnesses"]] == ["first", "second"]
    assert all(len(one["data_sets"]) == 2 for one in plain["witnesses"])
    assert {"id", "title", "text"} == set(plain["warnings"][0])
    assert set(plain["reasons"]) == {"A implies B", "B implies A"}


# -- proofs and refutations never meet ------------------------------------------------------------

FIXED = [table("units", "block", (), ("occupied", "vacant"))]
POOL = [
    promise(amount, output=output, premetric=premetric, invariants=invariants)
    for invariants, premetric in (
        ([], PERSONS),
        ([], symmetric_difference("person")),
        ([], neighbours(PERSONS)),
        (FIXED, PERSONS),
    )
    for output, amount in (
        (MULTIPLICATIVE, LogRational(of=3)),
        (MULTIPLICATIVE, LogRational(of=9)),
        (concentrated(1).output_premetric, Exactly(of="0.55")),
        (approximate("1e-6"), Exactly(of=3)),
    )
]


def test_nothing_is_both_proved_and_refuted_and_verdicts_are_mirrored():
    seen = set()
    for a, b in itertools.combinations(POOL, 2):
        done, back = compare(a, b), compare(b, a)
        assert back.verdict == MIRRORED.get(done.verdict, done.verdict)
        assert all(check(witness, a, b) for witness in done.witnesses)
        if done.forward.certified:
            assert refute(a, b) is None
        if done.backward.certified:
            assert refute(b, a) is None
        seen.add(done.verdict)
    assert {"stronger", "weaker", "equivalent", "incomparable"} <= seen


def test_proofs_chain():
    """If A implies B and B implies C are proved, C is never shown not to follow from A."""
    certified = {
        (i, j): compare(a, b).forward
        for (i, a), (j, b) in itertools.permutations(enumerate(POOL[:12]), 2)
    }
    for i, j, k in itertools.permutations(range(12), 3):
        if certified[i, j].certified and certified[j, k].certified:
            assert certified[i, k].witness is None
