"""The command `discreet audit exact`."""

import json

import pytest
import typer
from typer.testing import CliRunner

from discreet.cli import audits

MARGINS = ["--holding", "2,2", "--swapping", "2,2", "--rate", "1/2"]


def run(*arguments):
    app = typer.Typer()
    audits.add_to(app)
    return CliRunner().invoke(app, ["audit", "exact", *arguments])


def test_the_loss_is_printed_with_its_exact_form():
    done = run(*MARGINS)
    assert done.exit_code == 0
    assert "0.779072 = ln(19/4)/2" in done.stdout
    assert "1.609438 per record (holds)" in done.stdout
    assert "1.098613 per record" in done.stdout  # ln 3 = 1.0986123, rounded up


def test_json_has_the_bounds_and_the_exact_form():
    found = json.loads(run(*MARGINS, "--json").stdout)
    assert found["loss"] == pytest.approx(0.779072, abs=6e-7)
    assert found["theorem1"] == pytest.approx(1.609438, abs=6e-7)
    assert found["sharpened"] == pytest.approx(1.098612, abs=6e-7)
    assert found["exact"] == {"form": "ln(19/4)/2", "a": "19", "b": "4", "d": 2}
    assert found["theorem1_holds"] is True
    assert found["tables"] == 3
    assert found["witness"]["distance"] == 2


@pytest.mark.parametrize(
    ("output", "more", "key", "expected"),
    [
        ("normalised-renyi", [], "rho2", 0.063848),
        ("total-variation", [], "loss", 0.069444),
        ("approximate", ["--delta", "0.01"], "loss", 0.749812),
        ("renyi", ["--order", "2"], "loss", None),
        ("gaussian", [], "mu2", None),
    ],
)
def test_other_output_premetrics(output, more, key, expected):
    found = json.loads(run(*MARGINS, "--output", output, *more, "--json").stdout)
    assert found["at_least"] <= found["loss"] <= found["at_most"]
    assert expected is None or found[key] == pytest.approx(expected, abs=6e-7)


@pytest.mark.parametrize("output", ["multiplicative", "total-variation", "normalised-renyi"])
def test_a_loss_is_told_with_unit_invariants_and_premetrics(output):
    text = run(*MARGINS, "--output", output).stdout
    for line in text.splitlines():
        if line.split()[0] in ("loss", "rho2", "theorem", "sharpened"):
            assert "per record" in line
    assert "hamming-of-multisets" in text
    assert "by holding category; number of records in the stratum by swapping" in text
    found = json.loads(run(*MARGINS, "--output", output, "--json").stdout)
    assert found["unit"] == "record"
    assert found["input_premetric"] == "hamming-of-multisets"
    assert found["output_premetric"] == output
    assert len(found["invariants"]) == 2


def test_theorem_1_is_judged_against_pure_losses_only():
    text = run(*MARGINS, "--output", "total-variation").stdout
    assert "holds" not in text
    assert text.count("a budget in pure epsilon, not of this loss") == 2
    found = json.loads(run(*MARGINS, "--output", "total-variation", "--json").stdout)
    assert found["theorem1_holds"] is None
    assert "pure epsilon" in found["bounds_are"]


def test_what_is_too_large_to_enumerate_names_the_formula():
    done = run("--holding", "9,9,9,9", "--swapping", "9,9,9,9", "--rate", "1/2")
    assert "discreet.spec.psa.binary_loss" in done.stderr
    assert "discreet spec psa" in done.stderr


def test_an_infinite_loss_is_null():
    found = json.loads(run("--holding", "1,1", "--swapping", "1,1", "--rate", "1", "--json").stdout)
    assert found["loss"] is None
    assert found["theorem1"] is None
    assert found["witness"]["outcome"] is not None


def test_a_stratum_with_one_table_has_no_witness():
    done = run("--holding", "4", "--swapping", "2,2", "--rate", "1/2")
    assert "disclose it fully" in done.stdout
    same = run("--holding", "1,1", "--swapping", "1,1", "--rate", "1/2", "--json")
    assert json.loads(same.stdout)["exact"] == {"form": "0", "a": "1", "b": "1", "d": 1}


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--holding", "2,x", "--swapping", "2,2", "--rate", "1/2"], "--holding"),
        (["--holding", "2,-2", "--swapping", "0", "--rate", "1/2"], "--holding"),
        (["--holding", "2,2", "--swapping", "2,3", "--rate", "1/2"], "same total"),
        (["--holding", "2,2", "--swapping", "2,2", "--rate", "3/2"], "--rate"),
        (["--holding", "2,2", "--swapping", "2,2", "--rate", "1/0"], "--rate"),
        (["--holding", "9,9,9,9", "--swapping", "9,9,9,9", "--rate", "1/2"], "tables"),
        ([*MARGINS, "--output", "hellingr"], "hellinger"),
        ([*MARGINS, "--output", "trade-off"], "power_curve"),
        ([*MARGINS, "--output", "renyi"], "--order"),
        ([*MARGINS, "--delta", "0.1"], "--delta"),
        ([*MARGINS, "--output", "approximate", "--delta", "7"], "less than 1"),
    ],
)
def test_bad_input_is_one_message_and_exit_2(arguments, match):
    done = run(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "error: " in done.stderr  # a slow machine tells its progress first
    assert match in done.stderr
