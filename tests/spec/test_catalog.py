"""Published systems: files that cannot lie about sums, and other accountings beside them."""

import json
import math
from fractions import Fraction

import pytest

from discreet.config import BadConfig, parse
from discreet.errors import BadInput
from discreet.spec import LogRational, catalog, read_specification
from discreet.spec.catalog import UnknownSystem
from discreet.spec.catalog.entry import System
from discreet.spec.catalog.files import FOLDER, shared, system

CENSUS = [name for name in catalog.names() if not name.startswith("psa-1940")]
SWAPS = [name for name in catalog.names() if name.startswith("psa-")]
UNROUNDED_PL = Fraction(542, 339) ** 2 + Fraction(3379, 12343) ** 2


def rho2(name: str, of: str | None = None, figures: str = "printed") -> Fraction:
    return catalog.accounting(name, of, figures=figures).budget.amount.of


def test_the_systems_asked_for_are_there():
    wanted = {"topdown", "topdown-pl", "topdown-dhc", "safetab-p", "safetab-h", "phsafe"}
    wanted |= {"das-2020", "psa-2010", "psa-1940-massachusetts"}
    assert wanted <= set(catalog.names())
    assert len([name for name in catalog.names() if name.startswith("psa-2020-")]) == 6


@pytest.mark.parametrize("name", catalog.names())
def test_every_entry_is_complete(name):
    entry = catalog.entry(name)
    assert entry.name == system(name).name == name
    assert entry.citations
    assert entry.covers
    assert entry.leaves_out
    assert any("imputed" in note for note in entry.notes), "the unit is a record after imputation"
    text = entry.describe()
    assert "Not protected:" in text
    assert "Does not cover:" in text
    assert all(one.assumption and one.status in text for one in entry.alternatives)
    json.dumps(entry.as_dict())


@pytest.mark.parametrize("name", catalog.names())
def test_every_promise_reads_back(name, tmp_path):
    told = catalog.specification(name)
    told.write(tmp_path / "s.yaml")
    assert read_specification(tmp_path / "s.yaml") == told


def test_all_censuses_share_one_domain():
    domains = {catalog.specification(name).domain.model_dump_json() for name in CENSUS}
    assert len(domains) == 1
    domain = catalog.specification("topdown").domain
    assert (domain.stage, domain.steps) == ("edited", ("editing", "imputation"))


def test_unknown_keys_are_refused():
    from discreet.files import read_yaml

    content = read_yaml(FOLDER / "systems" / "phsafe.yaml")
    with pytest.raises(BadConfig, match="unknown key"):
        parse(System, {**content, "budgets": 1}, "phsafe.yaml")
    basis = {**content["basis"], "surprise": 1}
    with pytest.raises(BadConfig, match="unknown key"):
        parse(System, {**content, "basis": basis}, "phsafe.yaml")


def test_a_close_name_is_suggested():
    with pytest.raises(UnknownSystem, match="Did you mean 'topdown'"):
        catalog.specification("topdwn")
    with pytest.raises(UnknownSystem, match="moving-person"):
        catalog.accounting("das-2020", "moving-persons")


# -- sums ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "printed", "unrounded"),
    [
        ("topdown-pl", "2.63", UNROUNDED_PL),
        ("topdown-dhc", "12.66", "12.6627"),
        ("topdown", "15.29", UNROUNDED_PL + Fraction("12.6627")),
        ("das-2020", "55.371", UNROUNDED_PL + Fraction("12.6627") + Fraction("40.081166")),
    ],
)
def test_totals_are_exact_sums_of_their_parts(name, printed, unrounded):
    assert rho2(name) == Fraction(printed)
    assert rho2(name, figures="unrounded") == Fraction(unrounded)
    assert system(name).basis.kind == "composed"


def test_redistricting_before_rounding():
    assert float(rho2("topdown-pl-persons", "unrounded")) == pytest.approx(2.556226, abs=5e-7)
    assert float(rho2("topdown-pl-units", "unrounded")) == pytest.approx(0.074944, abs=5e-7)
    assert float(rho2("topdown-pl", "unrounded")) == pytest.approx(2.631170, abs=1e-6)


def test_the_overall_promise_has_the_invariants_of_topdown():
    overall, topdown = catalog.specification("das-2020"), catalog.specification("topdown")
    assert overall.multiverse == topdown.multiverse
    assert overall.input_premetric == topdown.input_premetric
    weakened = " ".join(catalog.entry("das-2020").weakenings)
    assert "told per person instead of household" in weakened
    assert "further invariants" in weakened


def test_overall_is_to_date_and_for_what_is_listed():
    entry = catalog.entry("das-2020")
    assert "at least, to date" in entry.title
    assert any("estimates" in line for line in entry.leaves_out)


def test_phsafe_is_told_per_person_and_bounded():
    told = catalog.specification("phsafe")
    assert (told.input_premetric.unit, told.input_premetric.properties.bounded) == ("person", True)
    assert rho2("phsafe", "unrounded") == Fraction("2.514562") == 2 * Fraction("1.257281")


@pytest.mark.parametrize(
    ("name", "accounting", "amount", "status"),
    [
        ("das-2020", "moving-person", "132.051", "published"),
        ("das-2020", "one-convention", "45.483", "proved here"),
        ("das-2020", "one-copy", "221.484", "published"),
        ("topdown", "moving-person", "38.6", "published"),
        ("safetab-h", "moving-person", "71.16", "published"),
        ("safetab-h", "changed-by-rule", "35.581208", "published"),
        ("safetab-p", "added-or-removed", "4.944", "published"),
        ("safetab-p", "changed-by-rule", "19.776", "published"),
        ("safetab-p", "changed-counted", "9.888", "proved here"),
        ("phsafe", "added-or-removed", "1.257281", "published"),
        ("phsafe", "changed-by-rule", "5.029124", "published"),
    ],
)
def test_other_accountings(name, accounting, amount, status):
    found = next(one for one in catalog.entry(name).alternatives if one.name == accounting)
    assert found.specification.budget.amount.of == Fraction(amount)
    assert found.status == status
    # A change of unit may have to say what the old premetric fixed without saying so.
    own = catalog.specification(name)
    assert found.specification.multiverse.refines(own.multiverse, own.domain) == "yes"


def test_phsafe_counted_directly():
    counted = rho2("phsafe", "changed-counted")
    assert float(counted) == pytest.approx(1.9536, abs=5e-5)
    basis = system("phsafe").alternatives[2]
    assert sum(term.rho2 for term in basis.terms) == Fraction("1.257281")
    expected = [2 * Fraction(10, 11) ** 2, 2 * Fraction(6, 7) ** 2, 2]
    assert [term.times for term in basis.terms] == expected


def test_unbounded_accountings_are_told_as_such():
    told = catalog.accounting("safetab-p", "added-or-removed")
    assert told.input_premetric.name == "symmetric-difference"
    assert catalog.accounting("das-2020", "one-copy").input_premetric.counts == "contributors"


def test_printed_figures_say_when_they_are_rounded():
    for name in ("topdown-pl-units", "topdown", "das-2020"):
        entry = catalog.entry(name)
        assert any("0.074944 before rounding" in one for one in entry.notes)
        assert "0.074944 before rounding" in entry.registry.notes if entry.registry else True
        # A remark on rounding is no condition of the promise.
        assert not any("rounding" in one for one in entry.specification.budget.conditions)


@pytest.mark.parametrize("name", catalog.names())
def test_no_figure_is_ascribed_to_a_publication_that_does_not_print_it(name):
    entry = catalog.entry(name)
    printed = {Fraction(one.value) for one in entry.printed if one.quantity == "rho2"}
    for told in (entry.specification, *(one.specification for one in entry.alternatives)):
        source, amount = told.budget.source, told.budget.amount
        if "Bailie" not in source or isinstance(amount, LogRational) or amount.of in printed:
            continue
        assert source.startswith("derived from "), source
        assert source.count("derived from") == 1


def test_derived_figures_keep_the_status_of_their_rule():
    entry = catalog.entry("das-2020")
    assert not entry.specification.budget.source.startswith("derived")
    derived = {one.name: one for one in entry.alternatives}
    assert derived["moving-person"].specification.budget.source.startswith("derived from ")
    assert derived["moving-person"].status == "published"
    assert "the rule is published" in derived["moving-person"].describe()
    swap = catalog.accounting("psa-2010", "one-copy").budget
    assert swap.source == "derived from Bailie, Gong and Meng, Theorem 1"
    # 12.66 is the sum of two printed figures, and not printed itself.
    assert catalog.specification("topdown-dhc").budget.source.startswith("derived from ")


def test_only_swaps_have_a_rate():
    with pytest.raises(BadInput, match="has no swap rate"):
        catalog.entry("topdown", Fraction(1, 10))
    with pytest.raises(BadInput, match="has no swap rate"):
        catalog.specification("safetab-p", rate=Fraction(1, 10))


# -- swaps --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SWAPS)
def test_swaps_are_accounted_for_by_theorem_1(name):
    basis = system(name).basis
    for rate in basis.rates:
        told = catalog.specification(name, rate=rate)
        odds = rate / (1 - rate)
        assert told.budget.amount == LogRational(of=(basis.largest_stratum + 1) / odds)
        assert told.budget.amount.value() == pytest.approx(
            math.log(basis.largest_stratum + 1) - math.log(odds)
        )
    sharper = catalog.accounting(name, "sharpened").budget
    assert sharper.amount.value() < catalog.specification(name).budget.amount.value()
    assert sharper.status == "proved here"


def test_the_first_rate_has_the_largest_budget():
    for name in SWAPS:
        values = [
            catalog.specification(name, rate=rate).budget.amount.value()
            for rate in system(name).basis.rates
        ]
        assert values == sorted(values, reverse=True)
        assert catalog.specification(name).budget.amount.value() == values[0]


def test_a_swap_of_nobody_has_no_budget():
    with pytest.raises(BadInput, match="no finite budget"):
        catalog.specification("psa-2010", rate=Fraction(0))


def test_the_stand_in_for_2010_says_so():
    entry = catalog.entry("psa-2010")
    assert entry.stands_for
    assert any("not the budget of 2010" in note for note in entry.notes)
    assert any("unclear" in note for note in entry.notes)
    assert any("imitates" in text for text in entry.specification.budget.conditions)


@pytest.mark.parametrize("name", [name for name in SWAPS if "1940" not in name])
def test_swapping_and_topdown_are_not_nested(name):
    swap, topdown = catalog.specification(name), catalog.specification("topdown")
    domain = swap.domain
    open_ = swap.multiverse.undetermined(topdown.multiverse, domain)
    assert shared().invariants["group-quarters"] in open_
    assert shared().invariants["state-population"] not in open_
    assert topdown.multiverse.undetermined(swap.multiverse, domain)


def test_coarser_matching_is_refined_by_finer_matching():
    """Table 5: within one level, matching on size too holds more exact."""
    for coarse, fine in [
        ("state-county", "state-size-county"),
        ("county-tract", "county-size-tract"),
    ]:
        one = catalog.specification(f"psa-2020-{coarse}")
        two = catalog.specification(f"psa-2020-{fine}")
        assert two.multiverse.refines(one.multiverse, one.domain) == "yes"
        assert two.budget.amount.value() < one.budget.amount.value()
