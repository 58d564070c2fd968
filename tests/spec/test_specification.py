"""A specification is exact, reads back, and never shows a budget alone."""

import json
import math
from fractions import Fraction

import pytest
from pydantic import ValidationError

from discreet.errors import BadInput
from discreet.spec import (
    MULTIPLICATIVE,
    Budget,
    Domain,
    FunctionOfUniverse,
    LogRational,
    MarginalTable,
    Multiverse,
    Specification,
    catalog,
    hamming_of_multisets,
    json_schema,
    read_specification,
)


def specification(amount) -> Specification:
    return Specification(
        domain=Domain(records="households", schema_name="us-decennial"),
        multiverse=Multiverse(
            invariants=(MarginalTable(name="n", of="units", by=("size",), level="block"),)
        ),
        input_premetric=hamming_of_multisets("household"),
        output_premetric=MULTIPLICATIVE,
        budget=Budget(
            unit="epsilon", amount=amount, source="somebody", status="published", conditions=("c1",)
        ),
    )


@pytest.mark.parametrize(
    "amount",
    [LogRational(of=Fraction(10**40 + 1, 3)), FunctionOfUniverse(formula="ln(b + 1)")],
)
def test_it_reads_back_exactly(tmp_path, amount):
    specification(amount).write(tmp_path / "s.yaml")
    assert read_specification(tmp_path / "s.yaml") == specification(amount)


def test_the_published_1940_number():
    """Table 2 of Bailie, Gong and Meng: b = 264331 at 1 % is 17.08."""
    odds = Fraction(1, 99)
    assert LogRational(of=Fraction(264_332) / odds).value() == pytest.approx(17.0801, abs=5e-5)


def test_huge_rationals_do_not_overflow():
    assert LogRational(of=Fraction(10) ** 400).value() == pytest.approx(400 * math.log(10))


@pytest.mark.parametrize("value", [0.5, True, "x", "1/0", None])
def test_budgets_must_be_exact(value):
    with pytest.raises(ValidationError):
        LogRational(of=value)


def test_a_budget_below_zero_is_refused():
    with pytest.raises(ValidationError):
        LogRational(of=Fraction(1, 2))


def test_values_are_immutable():
    with pytest.raises(ValidationError):
        specification(LogRational(of=2)).budget = None


def test_describe_never_shows_a_budget_alone():
    text = specification(LogRational(of=3)).describe()
    for needed in (
        "epsilon = 1.0987",
        "household",
        "by size, in every block",
        "multiplicative",
        "c1",
    ):
        assert needed in text


def test_unknown_keys_are_refused_with_a_suggestion(tmp_path):
    specification(LogRational(of=3)).write(tmp_path / "s.yaml")
    text = (tmp_path / "s.yaml").read_text().replace("budget:", "buget:")
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(BadInput, match="Did you mean 'budget'"):
        read_specification(tmp_path / "s.yaml")


@pytest.mark.parametrize("invariant", ["size", ["size"], 7, None])
def test_an_invariant_that_is_no_mapping_is_refused(tmp_path, invariant):
    content = specification(LogRational(of=3)).model_dump(mode="json")
    content["multiverse"]["invariants"] = [invariant]
    (tmp_path / "s.json").write_text(json.dumps(content))
    with pytest.raises(BadInput, match=r"multiverse\.invariants\.0"):
        read_specification(tmp_path / "s.json")


def test_the_published_schema_is_that_of_the_files(root):
    published = json.loads((root / "docs" / "_static" / "specification.schema.json").read_text())
    assert published == json_schema()


@pytest.mark.parametrize("name", catalog.names())
def test_every_catalogued_specification_is_lossless_in_yaml_and_json(tmp_path, name):
    promised = catalog.specification(name)
    promised.write(tmp_path / "s.yaml")
    assert read_specification(tmp_path / "s.yaml") == promised
    (tmp_path / "s.json").write_text(promised.model_dump_json())
    assert read_specification(tmp_path / "s.json") == promised
