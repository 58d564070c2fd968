"""Promises add up by theorems, or not at all."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.spec import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    Budget,
    Domain,
    Exactly,
    FunctionOfUniverse,
    LogRational,
    MarginalTable,
    Multiverse,
    NoCompositionRule,
    NoFiniteBudget,
    Specification,
    compose,
    hamming_of_multisets,
    symmetric_difference,
)


def promise(
    amount,
    *,
    pure=None,
    invariants=("a",),
    premetric=None,
    records="households",
    status="published",
):
    pure = isinstance(amount, LogRational) if pure is None else pure
    return Specification(
        domain=Domain(records=records, schema_name="us-decennial"),
        multiverse=Multiverse(
            invariants=tuple(
                MarginalTable(name=n, of="units", by=(n,), level="state") for n in invariants
            )
        ),
        input_premetric=premetric or hamming_of_multisets("household"),
        output_premetric=MULTIPLICATIVE if pure else NORMALISED_RENYI,
        budget=Budget(
            unit="epsilon" if pure else "rho2", amount=amount, source="somebody", status=status
        ),
    )


fractions = st.fractions(1, 1000, max_denominator=1000)


@given(st.lists(fractions, min_size=1, max_size=5))
def test_pure_budgets_add_exactly(ratios):
    total = compose([promise(LogRational(of=r)) for r in ratios]).specification.budget
    expected = Fraction(1)
    for ratio in ratios:
        expected *= ratio
    assert total.amount == LogRational(of=expected)


@given(st.lists(fractions, min_size=1, max_size=5))
def test_rho_squared_adds_exactly(amounts):
    done = compose([promise(Exactly(of=a)) for a in amounts])
    assert done.specification.budget.amount == Exactly(of=sum(amounts))
    assert done.weakenings == ()


@given(st.lists(fractions, min_size=1, max_size=4))
def test_rational_epsilons_add_exactly_and_mixtures_round_up(amounts):
    rational = [promise(Exactly(of=a), pure=True) for a in amounts]
    assert compose(rational).specification.budget.amount == Exactly(of=sum(amounts))
    mixed = compose([*rational, promise(LogRational(of=3))])
    value = mixed.specification.budget.amount.of - sum(amounts)
    assert Fraction("1.098612288668109691395") < value < Fraction("1.098612288668109691396")
    assert mixed.specification.output_premetric == MULTIPLICATIVE
    assert len(mixed.weakenings) == 1


def test_the_published_2020_total():
    """Bailie, Gong and Meng, Table 4: 15.29 + 19.776 + 17.79 + 2.515 = 55.371."""
    parts = [promise(Exactly(of=text)) for text in ("15.29", "19.776", "17.79", "2.515")]
    assert compose(parts).specification.budget.amount == Exactly(of="55.371")


def test_pure_beside_concentrated_is_converted_and_said():
    done = compose([promise(LogRational(of=3)), promise(Exactly(of="1/2"))])
    assert done.specification.output_premetric == NORMALISED_RENYI
    assert any("converted" in text for text in done.weakenings)
    value = done.specification.budget.amount.of
    assert Fraction("1.1034744") < value < Fraction("1.1034745")  # 1/2 + (ln 3)^2 / 2


def test_invariants_are_refined_and_said():
    done = compose([promise(LogRational(of=2)), promise(LogRational(of=2), invariants=("b",))])
    assert [i.name for i in done.specification.multiverse.invariants] == ["a", "b"]
    assert len(done.weakenings) == 2


def test_the_weakest_proof_status_stays():
    parts = [promise(LogRational(of=2)), promise(LogRational(of=2), status="checked numerically")]
    assert compose(parts).specification.budget.status == "checked numerically"


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (promise(LogRational(of=2), records="persons"), "domains differ"),
        (promise(LogRational(of=2), premetric=symmetric_difference("household")), "premetrics"),
        (promise(LogRational(of=2), premetric=hamming_of_multisets("person")), "premetrics"),
        (promise(NoFiniteBudget(reason="pairs")), "no finite budget"),
        (promise(FunctionOfUniverse(formula="b")), "facts"),
    ],
)
def test_without_a_rule_nothing_is_composed(other, says):
    with pytest.raises(NoCompositionRule, match=says):
        compose([promise(LogRational(of=2)), other])


@given(st.fractions(1, 10**9, max_denominator=10**6))
def test_the_bound_on_a_logarithm_is_above_and_close(ratio):
    amount = LogRational(of=ratio)
    bound = amount.upper_bound()
    assert float(bound) == pytest.approx(amount.value(), abs=1e-12)
    # exp(bound) >= ratio: a partial sum in whole numbers rounded down is below exp(bound).
    scale = 2**300
    argument = bound.numerator * scale // bound.denominator
    partial, term = 0, scale
    for k in range(1, 250):
        partial += term
        term = term * argument // (scale * k)
    assert partial * ratio.denominator >= ratio.numerator * scale
