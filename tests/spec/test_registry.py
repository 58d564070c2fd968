"""Entries of the registry of deployments: its rules, and ours follow them."""

import copy
import math
from fractions import Fraction

import pytest
import yaml

from discreet.config import BadConfig
from discreet.errors import BadInput
from discreet.spec import (
    NORMALISED_RENYI,
    Budget,
    Exactly,
    LogRational,
    Multiverse,
    NoFiniteBudget,
    approximate,
    catalog,
    convert,
)
from discreet.spec.registry import (
    Metadata,
    as_yaml,
    missing,
    problems,
    problems_of_text,
    read_metadata,
    registry_entry,
    slug,
    write,
)

DEPLOYED = [name for name in catalog.names() if catalog.entry(name).registry]
LEAST = Metadata(
    name="A Census",
    data_curators=("Office One", "Office Two"),
    intended_use="Planning.",
    description="Counts.",
    data_product_region="Here",
    publication_date="2026-01-31",
)


def entry(name: str = "topdown-pl"):
    return registry_entry(catalog.specification(name), catalog.entry(name).registry)


@pytest.mark.parametrize("name", DEPLOYED)
def test_every_deployment_of_the_catalog_is_valid(name, tmp_path):
    made = entry(name)
    assert problems(made) == []
    assert made["tier"] == 3
    assert made["deployment"]["dp_variant"]["variant_name"] == "Custom"
    write(made, tmp_path / "one.yaml")
    text = (tmp_path / "one.yaml").read_text()
    assert problems_of_text(text) == []
    assert problems(yaml.safe_load(text)) == []


@pytest.mark.parametrize("name", [name for name in DEPLOYED if name.startswith("psa")])
def test_what_was_never_deployed_says_so(name):
    made = entry(name)["deployment"]
    assert "hypothetical" in made["basic"]["name"]
    assert "Hypothetical" in made["administrative"]["notes"]


def test_the_blocks_are_where_they_belong():
    made = entry()["deployment"]
    loss = made["privacy_loss"]
    assert loss["privacy_parameters"] == {"rho": 2.63}
    assert "Bun and Steinke" in loss["privacy_parameters_details"]
    assert "Budget, not achieved loss" in loss["privacy_parameters_details"]
    assert loss["privacy_unit"] == "person record"
    assert "after imputation" in loss["privacy_unit_details"]
    for invariant in catalog.specification("topdown-pl").multiverse.invariants:
        assert invariant.describe() in made["dp_variant"]["unprotected_quantities"]
    assert "edited" in made["dp_variant"]["data_domain"]


# -- which variant and which parameters ---------------------------------------------------------


def plain(output: str = "multiplicative", amount=None):
    """Return a promise without invariants."""
    told = catalog.specification("psa-2010" if output == "multiplicative" else "safetab-p")
    told = told.model_copy(update={"multiverse": Multiverse(invariants=())})
    if amount is not None:
        budget = Budget(unit=told.budget.unit, amount=amount, source="s", status="published")
        told = told.model_copy(update={"budget": budget})
    return told


@pytest.mark.parametrize(
    ("told", "variant", "keys"),
    [
        (plain(), "Pure DP", ["epsilon"]),
        (plain("zero-concentrated"), "Zero-concentrated DP", ["rho"]),
        (convert(plain("z"), approximate("1/1000000")), "Approximate DP", ["epsilon", "delta"]),
        (convert(plain(), NORMALISED_RENYI), "Zero-concentrated DP", ["rho"]),
    ],
)
def test_usual_names_only_without_invariants(told, variant, keys):
    made = registry_entry(told, LEAST)["deployment"]
    assert made["dp_variant"]["variant_name"] == variant
    assert list(made["privacy_loss"]["privacy_parameters"]) == keys
    assert problems(registry_entry(told, LEAST)) == []


def test_a_registered_budget_is_never_below_the_promised_one():
    ratio = Fraction(1000001, 3)
    made = registry_entry(plain(amount=LogRational(of=ratio)), LEAST)
    shown = made["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"]
    assert math.log(ratio) <= shown <= math.log(ratio) + 2e-6
    third = registry_entry(plain("z", amount=Exactly(of=Fraction(1, 3))), LEAST)
    assert third["deployment"]["privacy_loss"]["privacy_parameters"]["rho"] == 0.333334


def test_without_a_finite_budget_there_are_no_parameters():
    made = registry_entry(plain(amount=NoFiniteBudget(reason="capped swaps")), LEAST)
    assert "privacy_parameters" not in made["deployment"]["privacy_loss"]
    assert "capped swaps" in made["deployment"]["privacy_loss"]["privacy_parameters_details"]
    assert made["tier"] == 1
    assert problems(made) == []


def test_the_tier_is_what_is_filled_in():
    assert registry_entry(plain(), LEAST)["tier"] == 2
    lacking = missing(registry_entry(plain(), LEAST), 3)
    assert "deployment.implementation.mechanisms" in lacking


# -- the registry's rules, each broken once -----------------------------------------------------


def changed(path: str, value):
    made = copy.deepcopy(entry())
    *parents, last = path.split(".")
    place = made
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return made


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("surprise", "x", "unknown key"),
        ("deployment.surprise", {}, "unknown key"),
        ("deployment.basic.author", "x", "unknown key"),
        ("deployment.privacy_loss.privacy_parameters.mu", 1.0, "unknown key"),
        ("url_slug", "something-else", "name, curators and year"),
        ("status", "Final", "one of"),
        ("tier", 0, "1, 2 or 3"),
        ("tier", True, "1, 2 or 3"),
        ("deployment.basic.name", None, "required"),
        ("deployment.basic.name", 3, "text"),
        ("deployment.basic.data_curators", [], "list of texts"),
        ("deployment.basic.data_curators", "Office", "list of texts"),
        ("deployment.basic.data_product_type", "Tables", "one of"),
        ("deployment.basic.data_product_sector", "Census", "one of"),
        ("deployment.basic.publication_date", "1/1/2026", "YYYY-MM-DD"),
        ("deployment.basic.publication_date", "2026-02-30", "YYYY-MM-DD"),
        ("deployment.dp_variant.variant_name", "Bounded DP", "one of"),
        ("deployment.privacy_loss.privacy_parameters.rho", "2.63", "number"),
        ("deployment.privacy_loss.privacy_parameters.rho", -1, "number"),
        ("deployment.privacy_loss.privacy_unit_details", None, "needed for tier 3"),
        ("deployment.deployment_model.model_name", "Trusted", "one of"),
        ("deployment.deployment_model.access_type", "Open", "one of"),
        ("deployment.accounting.composition", "", "needed for tier 3"),
        ("deployment.implementation.mechanisms", r"noise \(\sigma\)", "two backslashes"),
        ("deployment.administrative.registry_authors", None, "required"),
        ("deployment", [], "must hold keys"),
    ],
)
def test_a_broken_rule_is_named(path, value, rule):
    found = problems(changed(path, value))
    assert any(path in line and rule in line for line in found), found


def test_a_custom_variant_spells_out_its_relation():
    made = changed("deployment.privacy_loss.privacy_unit_details", None)
    made["tier"] = 2
    assert any("relation" in line for line in problems(made))


def test_delta_may_be_text_and_formulas_need_two_backslashes():
    assert problems(changed("deployment.privacy_loss.privacy_parameters.delta", "1e-10")) == []
    assert problems(changed("deployment.implementation.mechanisms", r"\\(\sigma\\)")) == []


def test_the_address():
    assert slug("A: File_B", ["U.S. Office", "Two"], "2021-08-12") == "a-file-b-u-s-office-two-2021"


# -- formatting ---------------------------------------------------------------------------------


def test_text_of_several_lines_is_a_literal_block():
    text = as_yaml(changed("deployment.implementation.mechanisms", "one  \ntwo: x\n- three #"))
    assert "mechanisms: |\n" in text
    assert ">" not in [line.rstrip()[-1:] for line in text.splitlines()]
    assert yaml.safe_load(text)["deployment"]["implementation"]["mechanisms"].startswith("one\ntwo")


def test_a_long_line_is_not_folded():
    text = as_yaml(changed("deployment.implementation.mechanisms", "word " * 100))
    assert problems_of_text(text) == []
    assert max(map(len, text.splitlines())) > 400


@pytest.mark.parametrize(
    "written", ["a: >\n  x\n  y\n", "a: >-\n  x\n", "a: x\n  y\n", "a: 'x\n  y'\n"]
)
def test_folded_text_is_refused(written):
    assert problems_of_text(written)


def test_dates_are_quoted():
    assert "publication_date: '2021-08-12'" in as_yaml(entry())


@pytest.mark.parametrize("name", ["Upper.yaml", "with-hyphen.yaml", "one.yml"])
def test_the_name_of_a_file_follows_the_registry(name, tmp_path):
    with pytest.raises(BadInput, match="name"):
        write(entry(), tmp_path / name)
    assert not (tmp_path / name).exists()


def test_an_entry_with_problems_is_not_written(tmp_path):
    with pytest.raises(BadInput, match="url_slug"):
        write(changed("url_slug", "x"), tmp_path / "one.yaml")


# -- metadata -----------------------------------------------------------------------------------


def test_metadata_from_a_file(tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text(
        yaml.safe_dump(LEAST.model_dump(mode="json")).replace("'2026", "2026").replace("31'", "31")
    )
    assert "publication_date: 2026-01-31" in path.read_text()
    assert read_metadata(path) == LEAST


@pytest.mark.parametrize("change", [{"publication_date": "soon"}, {"sector": "x"}, {"name": ""}])
def test_metadata_is_checked(change, tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text(yaml.safe_dump({**LEAST.model_dump(mode="json"), **change}))
    with pytest.raises(BadConfig):
        read_metadata(path)
