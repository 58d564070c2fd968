"""What a careless word could turn into a wrong claim is refused or said."""

from fractions import Fraction

import pytest
from pydantic import ValidationError

from discreet.audit import verify
from discreet.spec import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    Budget,
    Exactly,
    Facts,
    InputPremetric,
    LogRational,
    MarginalTable,
    Multiverse,
    NoCompositionRule,
    NoConversion,
    NotAllowed,
    Specification,
    approximate,
    catalog,
    cautions,
    change_unit,
    compare,
    compose,
    convert,
    group,
    hamming_of_multisets,
    neighbours,
    parallel,
    preprocess,
    symmetric_difference,
)
from discreet.spec.numbers import tanh_up

TOPDOWN = catalog.specification("topdown")


def test_a_misspelt_word_does_not_switch_a_refusal_off():
    with pytest.raises(NoCompositionRule):
        compose([TOPDOWN, TOPDOWN], randomness="Shared")
    with pytest.raises(NoConversion):
        convert(TOPDOWN, approximate("1/1000"), "loose")
    with pytest.raises(NotAllowed):
        group(TOPDOWN, 1.5)


@pytest.mark.parametrize("unit", ["persons", "households", "people"])
def test_a_unit_is_one_of_them(unit):
    with pytest.raises(ValidationError, match="unit is one of them"):
        InputPremetric(name="hamming-of-multisets", unit=unit)


@pytest.mark.parametrize(
    "change", [{"level": "planet"}, {"level": "blok"}, {"where": {"kind": ["martian"]}}]
)
def test_invariants_are_about_the_domain(change):
    one = MarginalTable(**{"name": "n", "of": "units", "level": "block", **change})
    blocks = {**TOPDOWN.model_dump(), "multiverse": Multiverse(invariants=(one,))}
    with pytest.raises(ValidationError, match="the domain has no"):
        Specification.model_validate(blocks)


def test_under_approximate_nothing_is_said_about_larger_steps():
    near = convert(TOPDOWN, approximate("1e-10"))
    facts = Facts(copies=3, records_per_unit=5, stability=Fraction(2))
    told = {caution.id: caution.text for caution in cautions(near, facts=facts)}
    for number in ("W1", "W5", "W6"):
        assert "no budget that follows" in told[number]
    assert "nothing is promised for more than one record" in near.describe()
    assert "no budget that follows" not in str(cautions(TOPDOWN, facts=facts))


def test_figures_that_nobody_printed_are_called_derived():
    told = change_unit(catalog.specification("safetab-h"), "person", touched=2)
    assert told.budget.source.startswith("derived from ")
    assert change_unit(told, "household", records=3, same_sizes=True).budget.source.count(
        "derived"
    ) == (1)


def test_nothing_compared_is_not_called_satisfied():
    budget = Budget(unit="epsilon", amount=LogRational(of=2), source="s", status="published")
    assert verify({}, lambda x, y: 1, MULTIPLICATIVE, budget).answer == "vacuous"
    laws = {x: {x: Fraction(1)} for x in (0, 1)}
    apart = verify(laws, lambda x, y: float("inf"), MULTIPLICATIVE, budget)
    assert apart.answer == "vacuous"


def told(amount, output=MULTIPLICATIVE, premetric=None, status="published"):
    premetric = premetric or hamming_of_multisets("person")
    unit = output.properties.unit
    budget = Budget(unit=unit, amount=amount, source="s", status=status, conditions=(status,))
    blocks = {**TOPDOWN.model_dump(), "multiverse": {"invariants": []}, "budget": budget}
    blocks |= {"input_premetric": premetric, "output_premetric": output}
    return Specification.model_validate(blocks)


def test_a_person_removed_is_two_steps_between_households():
    """One household goes and another comes: its symmetric difference is 2."""
    households = told(LogRational(of=2), premetric=symmetric_difference("household"))
    persons = change_unit(households, "person", touched=1)
    assert persons.budget.amount == LogRational(of=4)


def test_a_fixed_number_of_users_is_not_lost_with_the_unit():
    users = told(LogRational(of=2), premetric=hamming_of_multisets("user"))
    with pytest.raises(NotAllowed, match="number of users is fixed"):
        change_unit(users, "event", touched=1)
    assert group(told(LogRational(of=2)), 2).hidden_invariants()


def test_neighbours_remember_what_they_are_neighbours_of():
    metres, kilometres = (
        InputPremetric(name="values", unit="person", detail=detail) for detail in ("m", "km")
    )
    one, other = (
        convert(told(Exactly(of=1), NORMALISED_RENYI, premetric), approximate("1e-10"))
        for premetric in (metres, kilometres)
    )
    assert compare(one, other).verdict != "equivalent"
    with pytest.raises(NoCompositionRule):
        compose([one, other])
    masked = InputPremetric(
        name="masked", unit="person", base=hamming_of_multisets("person"), detail="imputed records"
    )
    assert neighbours(masked).properties.bounded


def test_invariants_after_a_step_are_not_those_before_it():
    domain = TOPDOWN.domain.model_copy(update={"stage": "raw"})
    with pytest.raises(NotAllowed, match="which statistics of the earlier data"):
        preprocess(TOPDOWN, domain, Fraction(1), "minors are dropped")
    free = told(LogRational(of=2))
    assert preprocess(free, domain, Fraction(1), "sorting").domain == domain


def test_the_weakest_status_and_every_condition_stay():
    strong, weak = told(LogRational(of=3)), told(LogRational(of=2), status="checked numerically")
    together = parallel([strong, weak]).budget
    assert together.status == "checked numerically"
    assert {"published", "checked numerically"} <= set(together.conditions)
    nothing = told(LogRational(of=1), status="checked numerically")
    assert compose([strong, nothing]).specification.budget.status == "checked numerically"


def test_neighbours_have_no_other_distance():
    near = told(LogRational(of=2), premetric=neighbours(hamming_of_multisets("person")))
    with pytest.raises(NoConversion, match="1 apart"):
        convert(near, NORMALISED_RENYI, "tight", 2)


def test_small_tangents_are_rounded_up():
    for power in (5, 16, 25, 61):
        value = Fraction(1, 3 * 10**power)
        assert tanh_up(value) >= value - value**3 / 3


def test_no_witness_beyond_what_is_computed():
    normal = told(Exactly(of=300), NORMALISED_RENYI, neighbours(hamming_of_multisets("person")))
    near = told(Exactly(of="463.5"), approximate("1e-10"), normal.input_premetric)
    assert all(witness.kind != "budget" for witness in compare(normal, near).witnesses)


def test_order_is_no_witness_against_a_delta():
    ordered = told(
        LogRational(of="1001/1000"), premetric=InputPremetric(name="hamming", unit="person")
    )
    free = told(Exactly(of=0), approximate("1/10"))
    assert all(witness.kind != "order" for witness in compare(ordered, free).witnesses)
