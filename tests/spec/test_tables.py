"""Tables 2 to 5 of Bailie, Gong and Meng come out of the catalog."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from discreet.errors import BadInput
from discreet.spec import catalog
from discreet.spec.tables import table
from discreet.spec.tables.table import rounds_to


def rows(number: int, where: str = "rows"):
    found = table(number)
    return {(row.label, row.quantity): row for row in getattr(found, where)}


def test_table_2():
    found = [row.recomputed for row in table(2).rows]
    assert found == pytest.approx([17.0801, 15.4294, 14.6822, 12.4850], abs=5e-5)
    assert all(row.agrees for row in table(2).rows)


def test_figures_in_the_text_beside_table_2():
    found = table(2).in_text
    wanted = [19.0021, 18.2883, 1.19895, 76.8338, 6.90776, 99.9001, 35.386, 95.257]
    assert [row.recomputed for row in found] == pytest.approx(wanted, abs=5e-4)
    assert [row.label for row in found if not row.agrees] == ["higher rate, b = 10, epsilon = 3"]
    assert "95.3" in found[-1].why


def test_table_3_at_the_printed_precision():
    found = rows(3)
    epsilons = {label: row for (label, quantity), row in found.items() if quantity == "epsilon"}
    wanted = {
        "PL, household": 2.609,
        "PL, person": 17.915,
        "DHC, household": 34.331,
        "DHC, person": 26.334,
        "Total": 52.817,
    }
    assert {k: row.recomputed for k, row in epsilons.items()} == pytest.approx(wanted, abs=5e-4)
    assert [label for label, row in epsilons.items() if row.agrees] == ["DHC, household"]
    assert all(row.agrees for (_, quantity), row in found.items() if quantity == "rho2")


def test_table_3_is_explained_by_rounding():
    needs = {
        "PL, household": (0.0746, 0.0751),
        "PL, person": (2.5549, 2.5574),
        "DHC, person": (4.9604, 4.9636),
        "Total": (15.2937, 15.2982),
    }
    for label, interval in needs.items():
        row = rows(3)[label, "epsilon"]
        assert row.needs == pytest.approx(interval, abs=5e-5)
        assert "two decimals" in row.why
        # The figures before rounding lie in the interval, and give what is printed.
        exact = rows(3)[label, "rho2"].unrounded
        assert row.needs[0] <= exact <= row.needs[1]
        assert row.agrees_unrounded


def test_table_4():
    found = rows(4)
    assert found["Overall, to date", "rho2"].recomputed == 55.371
    assert found["Overall, to date", "epsilon"].recomputed == pytest.approx(126.784, abs=5e-4)
    assert found["Swapping, smallest", "epsilon"].recomputed == pytest.approx(8.42, abs=5e-3)
    assert found["Swapping, largest", "epsilon"].recomputed == pytest.approx(19.36, abs=5e-3)
    assert [key for key, row in found.items() if not row.agrees] == [("TopDown", "epsilon")]
    copied = [row.recomputed for row in table(4).in_text]
    assert copied == pytest.approx([221.484, 364.311], abs=5e-4)
    assert all(row.agrees for row in table(4).in_text)


def test_table_4_says_what_rounding_hides():
    """The printed total adds rounded figures: before rounding it is larger by 0.004."""
    overall = rows(4)["Overall, to date", "rho2"]
    assert overall.unrounded == pytest.approx(55.37504, abs=5e-6)
    assert not overall.agrees_unrounded
    assert "before rounding it is 55.3750" in overall.why


def test_table_5_agrees_in_all_twelve():
    found = table(5).rows
    printed = [
        "19.36",
        "16.42",
        "18.13",
        "15.19",
        "17.99",
        "15.05",
        "16.70",
        "13.75",
        "11.68",
        "8.73",
        "11.37",
        "8.42",
    ]
    assert [row.printed for row in found] == printed
    assert all(row.agrees for row in found)
    assert found[0].as_dict()["largest_stratum"] == 13_475_623


@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_no_budget_stands_alone(number):
    found = table(number)
    for row in found.as_dict()["rows"]:
        assert row["unit"]
        assert row["invariants"]
        assert row["input_premetric"]
        assert row["output_premetric"]
    text = " ".join(found.describe().split())
    assert "per household record" in text or "per person record" in text
    assert "with exact publication of" in text
    json.dumps(found.as_dict())


@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_a_table_says_how_it_rounds(number):
    found = table(number)
    assert "to the nearest here" in found.describe()
    assert any("to the nearest here" in note for note in found.as_dict()["notes"])


@pytest.mark.parametrize("number", [1, 6, 0, 2.0, "2", True])
def test_other_tables_are_refused(number):
    with pytest.raises(BadInput, match="2 to 5"):
        table(number)


@pytest.mark.parametrize(
    ("value", "printed", "fits"),
    [
        (12.48496, "12.48", True),
        (12.4951, "12.49", False),
        (19.002, "19", True),
        (2.7, "2.75", False),
    ],
)
def test_rounding_to_what_is_printed(value, printed, fits):
    assert rounds_to(value, printed) is fits


def test_a_wrong_parameter_shows(monkeypatch):
    """A catalog with another stratum size no longer agrees with print."""
    true = catalog.specification

    def wrong(name, figures="printed", rate=None):
        told = true(name, figures, rate)
        amount = told.budget.amount
        if name.startswith("psa-2020"):
            amount = amount.model_copy(update={"of": amount.of * Fraction(102, 100)})
        return told.model_copy(update={"budget": told.budget.model_copy(update={"amount": amount})})

    monkeypatch.setattr(catalog, "specification", wrong)
    assert not all(row.agrees for row in table(5).rows)


def test_a_row_is_plain_data():
    row = table(3).rows[0]
    assert replace(row, printed="0.08").agrees is False
    assert row.as_dict()["difference"] == pytest.approx(0)
