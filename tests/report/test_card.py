"""The card says all parts of a promise, computes its numbers, and needs nothing from outside."""

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.report import Figure, budgets_by_rate, card, write_card
from discreet.report.card import exactly, other_ways
from discreet.report.words import promise
from discreet.spec import (
    MULTIPLICATIVE,
    Budget,
    Domain,
    Exactly,
    FunctionOfUniverse,
    LogRational,
    NoFiniteBudget,
    Specification,
    catalog,
    neighbours,
    symmetric_difference,
)
from pages import Outline, assert_stands_alone, text_in_browser
from promises import promise as promised

MARKUP = "<b>bold & 'quoted'</b>"


def pure(amount: LogRational | Exactly | NoFiniteBudget | FunctionOfUniverse) -> Specification:
    """Return a promise without invariants, told in epsilon."""
    return promised(
        amount,
        output=MULTIPLICATIVE,
        premetric=symmetric_difference("person"),
        domain=Domain(records="lists", schema_name="lists", stage="raw"),
        source="a proof",
        status="proved here",
    )


@pytest.mark.parametrize("name", catalog.names())
def test_the_card_of_every_system_says_all_parts(name: str) -> None:
    entry = catalog.entry(name)
    specification = entry.specification
    outline = Outline(card(specification, title=entry.title, entry=entry))
    text = outline.text
    for heading in ("Who", "Where", "What", "How", "How much", "Not protected"):
        assert heading in text
    for said in (
        entry.title,
        specification.domain.schema_name,
        specification.input_premetric.definition,
        specification.input_premetric.per,
        specification.output_premetric.definition,
        specification.budget.describe().replace("^2", "²"),
        specification.budget.status,
        *(invariant.describe() for invariant in specification.multiverse.invariants),
        *(one.assumption for one in entry.alternatives),
        *(one.specification.budget.describe().replace("^2", "²") for one in entry.alternatives),
        *entry.citations,
    ):
        assert " ".join(said.split()) in text, said
    for part in (*specification.budget.conditions, *entry.covers, *entry.leaves_out, *entry.notes):
        assert part[1:].replace("^2", "²") in text


def test_the_page_needs_nothing_from_outside() -> None:
    entry = catalog.entry("das-2020")
    page = card(entry.specification, title="x", entry=entry, figures=[budgets_by_rate()])
    assert_stands_alone(page)
    assert Outline(page).values("aria-labelledby")


def test_zero_concentrated_budgets_are_told_as_epsilon_too() -> None:
    told = {one.how: one for one in other_ways(catalog.specification("das-2020"))}
    rho, published, tight = told.values()
    assert float(rho.amount) == pytest.approx(math.sqrt(55.371), abs=1e-4)
    assert float(rho.amount) ** 2 >= 55.371
    # Bailie, Gong and Meng, Table 4, and the tight conversion of the same number.
    assert float(published.amount) == pytest.approx(126.784, abs=1e-3)
    assert float(tight.amount) == pytest.approx(125.072, abs=1e-3)
    assert "Bun and Steinke" in published.source
    assert "Canonne" in tight.source
    assert all("1e-10" in how for how in list(told)[1:])


def test_pure_budgets_are_told_as_rho2_too() -> None:
    epsilon = catalog.specification("psa-2010").budget.amount.value()
    usual, tight, far = other_ways(catalog.specification("psa-2010"), distance=2)
    assert float(usual.amount) == pytest.approx(epsilon**2 / 2, abs=1e-3)
    assert float(tight.amount) == pytest.approx(epsilon * math.tanh(epsilon / 2), abs=1e-3)
    assert float(far.amount) == pytest.approx(epsilon / 2 * math.tanh(epsilon), abs=1e-3)


def test_swaps_of_the_catalog_know_that_their_tables_are_two_apart() -> None:
    entry = catalog.entry("psa-2010")
    assert "at least 2 apart" in card(entry.specification, title="x", entry=entry)
    entry = catalog.entry("topdown")
    assert "at least 2 apart" not in card(entry.specification, title="x", entry=entry)


@pytest.mark.parametrize(
    ("amount", "factor"),
    [
        (LogRational(of=Fraction(7, 2)), "4"),
        (LogRational(of=Fraction(9), times=Fraction(1, 2)), "4"),  # e^ε = 3, rounded up
        (LogRational(of=Fraction(2), times=Fraction(3)), "9"),
        (Exactly(of=Fraction(1)), "3"),
        (LogRational(of=Fraction(1)), "1"),
    ],
)
def test_the_factor_is_rounded_up_and_counts_the_multiple(
    amount: LogRational | Exactly, factor: str
) -> None:
    assert f"at most {factor} times as likely" in promise(pure(amount))


def test_a_promise_about_neighbours_is_told_so() -> None:
    near = pure(Exactly(of=Fraction(1))).model_copy(
        update={"input_premetric": neighbours(symmetric_difference("person"))}
    )
    assert "If they are neighbours" in promise(near)


def test_exact_amounts_are_shown_while_short() -> None:
    assert exactly(pure(LogRational(of=Fraction(19, 4), times=Fraction(1, 2)))) == "1/2 × ln(19/4)"
    assert exactly(pure(LogRational(of=Fraction(10**60)))) == ""


def test_no_finite_budget_is_told_first_and_nothing_is_converted() -> None:
    none = pure(NoFiniteBudget(reason="swaps are capped"))
    text = Outline(card(none, title="x")).text
    assert (
        "No finite budget exists for this method, so nothing is promised: swaps are capped." in text
    )
    assert "other measures" not in text
    assert other_ways(none) == []


def test_a_function_of_the_universe_is_shown_as_its_formula() -> None:
    text = Outline(card(pure(FunctionOfUniverse(formula="ln(b + 1)")), title="x")).text
    assert "epsilon = ln(b + 1)" in text
    assert "other measures" not in text


def test_what_is_not_protected_is_what_the_specification_tells() -> None:
    lines = catalog.specification("safetab-h").unprotected()
    told = catalog.specification("safetab-h").describe()
    assert len(lines) >= 3
    assert all(f"  - {line}" in told for line in lines)
    assert not any("Who:" in line for line in lines)


def test_everything_is_escaped() -> None:
    hostile = pure(LogRational(of=Fraction(2))).model_copy(
        update={
            "domain": Domain(records=MARKUP, schema_name=MARKUP, steps=(MARKUP,)),
            "budget": Budget(
                unit="epsilon",
                amount=LogRational(of=Fraction(2)),
                source=MARKUP,
                status="published",
                conditions=(MARKUP,),
            ),
        }
    )
    figure = Figure(MARKUP, "<svg></svg>", MARKUP, (MARKUP,), ((MARKUP,),))
    page = card(hostile, title=MARKUP, figures=[figure])
    assert "<b>" not in page
    assert Outline(page).text.count(MARKUP) >= 9


def test_the_specification_stands_in_the_page_as_data() -> None:
    specification = catalog.specification("psa-2010")
    page = Outline(card(specification, title="x"))
    data = next(words for words in page.words if words.startswith("{"))
    assert Specification.model_validate(json.loads(data)) == specification


def test_figures_carry_their_numbers() -> None:
    figure = budgets_by_rate()
    page = card(catalog.specification("psa-2010"), title="x", figures=[figure])
    text = Outline(page).text
    assert figure.picture in page
    assert all(value in text for row in figure.rows for value in row)


def test_a_card_may_be_read_by_everybody(tmp_path: Path) -> None:
    path = write_card(catalog.specification("topdown"), tmp_path / "card.html", title="TopDown")
    assert path.stat().st_mode & 0o777 == 0o644
    assert re.match("<!doctype html>", path.read_text(encoding="utf-8"))


@pytest.mark.needs_browser
def test_the_card_opens_in_a_browser_without_a_complaint(chromium: str, tmp_path: Path) -> None:
    entry = catalog.entry("psa-2010")
    page = write_card(
        entry.specification,
        tmp_path / "card.html",
        title=entry.title,
        entry=entry,
        figures=[budgets_by_rate()],
    )
    assert "Not protected" in text_in_browser(chromium, tmp_path, page)


def test_rounding_is_a_note_and_no_condition() -> None:
    entry = catalog.entry("das-2020")
    text = Outline(card(entry.specification, title="x", entry=entry)).text
    conditions, _, rest = text.partition("Only if")[2].partition("Not protected")
    assert "before rounding" not in conditions
    assert "before rounding" in rest.partition("To know, and sources")[2]


def test_derived_figures_are_not_ascribed_to_a_publication() -> None:
    entry = catalog.entry("das-2020")
    text = Outline(card(entry.specification, title="x", entry=entry)).text
    others = text.partition("Other accountings")[2]
    assert "derived from Bailie, Gong and Meng, Table 3" in others
    assert "Proof of the rule" in others
    for one in other_ways(catalog.specification("psa-2010"), distance=2):
        assert one.source.startswith("derived")
