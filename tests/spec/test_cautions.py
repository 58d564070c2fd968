"""Each of the twenty cautions is said when called for, with its numbers, and not otherwise."""

from fractions import Fraction

import pytest

from discreet.spec import (
    MULTIPLICATIVE,
    Exactly,
    NoFiniteBudget,
    approximate,
    hamming_of_multisets,
    neighbours,
    symmetric_difference,
)
from discreet.spec.comparison.cautions import cautions
from discreet.spec.comparison.compare import compare
from discreet.spec.comparison.facts import Facts
from promises import (
    ALL_PERSONS,
    RAW,
    concentrated,
    promise,
    pure,
    swapping,
    swapping_of_households,
    table,
    topdown,
)

PERSONS = hamming_of_multisets("person")
CONTRIBUTORS = PERSONS.model_copy(update={"counts": "contributors"})
#: A promise that calls for as little as possible.
PLAIN = pure(3, domain=RAW)
NEAR = promise(Exactly(of=2), output=approximate("1e-6"), premetric=neighbours(PERSONS), domain=RAW)
NOTHING = promise(NoFiniteBudget(reason="swaps in pairs"), output=MULTIPLICATIVE, domain=RAW)


def said(*promises, **facts):
    return {one.id: one.text for one in cautions(*promises, **facts)}


#: (number, promises, facts, what the text has to say)
FIRED = [
    ("W1", [topdown()], {}, ["after editing, imputation", "c^2 times"]),
    ("W1", [pure(3)], {"facts": Facts(stability=Fraction(2))}, ["stability 2", "epsilon = 2.1973"]),
    ("W1", [concentrated(1), concentrated(1, domain=RAW)], {}, ["not the same data"]),
    (
        "W2",
        [pure(2, invariants=[table("units", "block")]), pure(3)],
        {},
        ["The smaller budget of A (epsilon = 0.6932, against epsilon = 1.0987)", "every block"],
    ),
    (
        "W3",
        [swapping(), topdown()],
        {"names": ("PSA", "TopDown")},
        ["Exact in TopDown, but not known to be so in PSA", "by gq_type", "No ratio"],
    ),
    (
        "W4",
        [swapping()],
        {"facts": Facts(disclosed_strata=17, disclosed_share=Fraction(1, 800))},
        ["17 strata (0.12% of the records) are fully disclosed"],
    ),
    ("W4", [swapping_of_households()], {}, ["does not protect: complete records of units (kind"]),
    (
        "W5",
        [topdown(), swapping()],
        {"facts": Facts(records_per_unit=10)},
        ["smaller than that of B (household) by up to 10", "rho^2 = 1529.0000"],
    ),
    ("W5", [topdown(), swapping()], {}, ["M^2 times"]),
    ("W5", [pure(3)], {"facts": Facts(records_per_unit=2)}, ["epsilon = 2.1973"]),
    ("W6", [topdown()], {"facts": Facts(copies=1)}, ["copied 1 times", "rho^2 = 61.1600"]),
    ("W6", [pure(3)], {}, ["(1 + k) times"]),
    (
        "W7",
        [pure(3), pure(3, premetric=symmetric_difference("person"))],
        {},
        ["number of person records is an invariant of A", "epsilon = 2.1973"],
    ),
    (
        "W7",
        [concentrated(1, premetric=symmetric_difference("person")), concentrated(1)],
        {},
        ["an invariant of B", "rho^2 = 4.0000"],
    ),
    ("W8", [PLAIN, NEAR], {}, ["cannot be compared", "catastrophic event of probability 1e-06"]),
    ("W9", [NEAR], {"facts": Facts(units=2_000_000)}, ["N = 2,000,000", "2 / N"]),
    ("W9", [NEAR], {"facts": Facts(units=1_000_000)}, ["1 / N"]),
    ("W10", [topdown()], {}, ["rho^2 = 15.2900, rho = 3.9103"]),
    ("W11", [PLAIN], {"facts": Facts(reduced_events="totals only")}, ["fewer events: totals only"]),
    (
        "W12",
        [PLAIN],
        {"facts": Facts(chosen_from_data=("the swap rate", "the truncation"))},
        ["the swap rate, the truncation"],
    ),
    ("W13", [PLAIN], {"facts": Facts(products=("PL 94-171", "DHC"))}, ["only: PL 94-171, DHC"]),
    ("W14", [PLAIN], {"facts": Facts(shared_randomness="cell keys")}, ["cell keys", "joint law"]),
    (
        "W15",
        [swapping(), swapping()],
        {"facts": Facts(largest_stratum=264_331), "other_facts": Facts(largest_stratum=4_549)},
        ["b = 264,331 (A) and b = 4,549 (B)", "do not rank"],
    ),
    (
        "W16",
        [swapping()],
        {"facts": Facts(largest_stratum=10, rates=(Fraction("0.35386"), Fraction("0.95257")))},
        ["35.386% (moving 37.", "95.257% (moving 95.257%", "76.834%"],
    ),
    (
        "W17",
        [swapping()],
        {"facts": Facts(sharper=("exact loss", Fraction("0.779072")))},
        ["epsilon = 17.0801", "not the loss; exact loss: 0.7791"],
    ),
    ("W17", [swapping()], {}, ["may be far smaller"]),
    ("W18", [PLAIN], {"facts": Facts(capped="at most 2 swaps")}, ["infinite", "at most 2 swaps"]),
    ("W18", [NOTHING], {}, ["swaps in pairs"]),
    ("W19", [PLAIN], {}, ["relative disclosure, not absolute"]),
    (
        "W20",
        [swapping()],
        {"facts": Facts(stands_for="the swapping of 2010")},
        ["epsilon = 17.0801 describes A, a stand-in for the swapping of 2010"],
    ),
]


@pytest.mark.parametrize(("number", "promises", "facts", "texts"), FIRED)
def test_it_is_said_with_its_numbers(number, promises, facts, texts):
    found = said(*promises, **facts)[number]
    for text in texts:
        assert text in found


#: (number, promises, facts) that come close without calling for it.
SILENT = [
    ("W1", [PLAIN, PLAIN], {}),
    ("W2", [pure(3, invariants=[table("units", "block")]), pure(2)], {}),  # larger, not smaller
    ("W2", [swapping_of_households(Fraction(9)), topdown()], {}),  # told in different units
    ("W2", [pure(2, invariants=[ALL_PERSONS]), pure(3)], {}),  # fixed by both
    ("W3", [topdown(), topdown("2.63")], {}),
    ("W3", [pure(3, invariants=[table("units", "block")]), pure(3)], {}),  # nested
    ("W4", [swapping()], {"facts": Facts(disclosed_strata=0)}),
    ("W5", [topdown(), concentrated(1)], {}),
    ("W6", [promise(Exactly(of=1), premetric=CONTRIBUTORS)], {"facts": Facts(copies=3)}),
    ("W6", [PLAIN], {}),
    ("W7", [pure(3), pure(3, unit="household")], {}),
    ("W8", [PLAIN, pure(9, domain=RAW)], {}),
    ("W9", [NEAR], {"facts": Facts(units=999_999)}),
    ("W9", [PLAIN], {"facts": Facts(units=10**9)}),
    ("W9", [NEAR], {}),
    ("W10", [PLAIN, NEAR], {}),
    ("W11", [PLAIN], {}),
    ("W12", [PLAIN], {}),
    ("W13", [PLAIN], {}),
    ("W14", [PLAIN], {}),
    (
        "W15",
        [swapping(), swapping(Fraction(9))],
        {"facts": Facts(largest_stratum=10), "other_facts": Facts(largest_stratum=10)},
    ),
    ("W15", [swapping()], {"facts": Facts(largest_stratum=10)}),
    ("W16", [swapping()], {"facts": Facts(largest_stratum=10, rates=(Fraction(1, 2),))}),
    ("W17", [topdown()], {}),
    ("W18", [swapping()], {}),
    ("W19", [NOTHING], {}),
    ("W20", [swapping()], {}),
]


@pytest.mark.parametrize(("number", "promises", "facts"), SILENT)
def test_it_stays_silent(number, promises, facts):
    assert number not in said(*promises, **facts)


def test_all_twenty_are_tried_both_ways():
    twenty = {f"W{number}" for number in range(1, 21)}
    assert {case[0] for case in FIRED} == {case[0] for case in SILENT} == twenty


def test_the_share_of_moved_records_is_the_exact_one():
    """n = 2, p = 1/2: a record moves with probability 1/2, since one alone is selected anew."""
    facts = Facts(largest_stratum=2, rates=(Fraction(1, 2), Fraction(3, 4)))
    assert "50.000% (moving 50.000%" in said(swapping(), facts=facts)["W16"]


def test_they_come_in_order_and_name_both_sides():
    found = cautions(swapping(), topdown(), names=("PSA", "TopDown"))
    numbers = [int(one.id[1:]) for one in found]
    assert numbers == sorted(numbers)
    assert all(one.title and one.text.endswith(".") for one in found)
    assert "PSA" in found[0].text
    assert "TopDown" in found[0].text


def test_a_comparison_says_them_too():
    facts = Facts(stands_for="the swapping of 2010"), Facts(products=("DHC",))
    done = compare(swapping(), topdown(), facts=facts)
    assert {"W3", "W5", "W8", "W10", "W13", "W17", "W19", "W20"} <= {w.id for w in done.warnings}
