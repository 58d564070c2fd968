"""Commands on promises: their contract, and that no budget is printed alone."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner

from discreet.cli import specs
from discreet.spec import catalog
from discreet.spec.registry import problems, problems_of_text

app = typer.Typer(pretty_exceptions_enable=False)
specs.add_to(app)


@app.callback()
def start() -> None:
    """Make the app one of groups."""


@pytest.fixture
def spec(tmp_path, monkeypatch):
    """Return a function that runs `spec` with arguments in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, ["spec", *map(str, arguments)])


def data(done):
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


TELLS = ("unit", "invariants", "input_premetric", "output_premetric")


# -- swapping -----------------------------------------------------------------------------------


def test_the_account_of_swapping(spec):
    found = data(spec("psa", "--stratum", 264331, "--rate", "0.01", "--json"))
    assert found["epsilon"] == pytest.approx(17.0801, abs=5e-5)
    assert found["epsilon_sharpened"] < found["epsilon"]
    assert found["rho2"] == pytest.approx(found["epsilon"] / 2, abs=1e-6)
    assert found["minimum_epsilon"] == pytest.approx(6.24248, abs=5e-6)
    assert 0.998 < found["best_rate"] < 0.9981
    assert all(found[key] for key in TELLS)


def test_rates_may_be_fractions(spec):
    one = data(spec("psa", "--stratum", 10, "--rate", "1/20", "--json"))
    assert one == data(spec("psa", "--stratum", 10, "--rate", "0.05", "--json"))


def test_both_rates_of_a_budget(spec):
    found = data(spec("invert", "--stratum", 10, "--epsilon", 3, "--json"))
    assert found["rates"] == pytest.approx([0.35386, 0.95257], abs=1e-5)
    assert len(found["moved_shares"]) == 2
    assert all(found[key] for key in TELLS)
    text = spec("invert", "--stratum", 10, "--epsilon", 3).stdout
    assert "35.3862%" in text
    assert "expected to move" in text
    assert "hamming-of-multisets" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("psa", "--stratum", 1, "--rate", "0.5"),
        ("psa", "--stratum", 10, "--rate", "1.5"),
        ("psa", "--stratum", 10, "--rate", "half"),
        ("invert", "--stratum", 10, "--epsilon", 0.1),
        ("table", 6),
        ("show", "nothing.yaml"),
        ("registry", "topdown-dhc-units"),
        ("compose", "topdown", "safetab-h"),
        ("compose", "topdown", "psa-1940-massachusetts"),
        ("compose", "topdown", "phsafe", "--delta", "1"),
        ("show", "psa-2010@1"),
    ],
)
def test_what_cannot_be_answered_is_bad_input(spec, arguments):
    done = spec(*arguments)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "error: " in done.stderr  # a slow machine tells its progress first
    assert "unexpected" not in done.stderr


@pytest.mark.parametrize("command", ["show", "registry"])
def test_an_unknown_name_is_answered_with_a_known_one(spec, command):
    done = spec(command, "das-202")
    assert done.exit_code == 2
    assert "Did you mean 'das-2020'?" in done.stderr


# -- the catalog --------------------------------------------------------------------------------


def test_the_list(spec):
    assert [one["name"] for one in data(spec("list", "--json"))] == list(catalog.names())
    assert "SafeTab-P" in spec("list").stdout


@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_tables(spec, number):
    found = data(spec("table", number, "--json"))
    assert found["table"] == number
    for row in found["rows"]:
        assert {"printed", "recomputed", "difference", "agrees"} <= set(row)
        assert all(row[key] for key in TELLS)
    assert "recomputed" in spec("table", number).stdout


def test_show_in_words_and_as_data(spec):
    text = spec("show", "das-2020").stdout
    for needed in (
        "rho^2 = 55.3710 per person record",
        "number of persons, in every state",
        "hamming-of-multisets",
        "132.0510",
        "at least, to date",
        "W13",
    ):
        assert needed in text, needed
    found = data(spec("show", "das-2020", "--json"))
    assert found["specification"]["budget"]["amount"]["of"] == "55371/1000"
    assert {one["name"] for one in found["alternatives"]} >= {"moving-person", "one-copy"}


def test_a_swap_at_another_rate(spec):
    assert "18.2883" in spec("show", "psa-2010@0.04").stdout
    assert "19.0021" in spec("show", "psa-2010").stdout


def test_a_file_is_shown_like_a_name(spec, tmp_path):
    printed = spec("show", "phsafe", "--yaml").stdout
    (tmp_path / "own.yaml").write_text(printed)
    assert spec("show", "own.yaml", "--yaml").stdout == printed
    assert "rho^2 = 2.5150 per person record" in spec("show", "own.yaml").stdout
    assert data(spec("compare", "own.yaml", "phsafe", "--json"))["verdict"] == "equivalent"


def test_the_page(spec, tmp_path):
    done = spec("show", "topdown", "--html", "card.html")
    assert (done.exit_code, done.stdout) == (0, "card.html\n")
    assert "15.29" in (tmp_path / "card.html").read_text()


def test_swapping_and_the_system_of_2020_are_incomparable(spec):
    found = data(spec("compare", "psa-2010", "das-2020", "--json"))
    assert found["verdict"] == "incomparable"
    assert len(found["witnesses"]) == 2
    assert found["warnings"]
    assert "incomparable" in spec("compare", "psa-2010", "das-2020").stdout


def test_compose_adds_what_the_catalog_adds(spec):
    parts = ("topdown", "safetab-p", "safetab-h", "phsafe")
    found = data(spec("compose", *parts, "--touched", 1, "--delta", "1e-10", "--json"))
    assert found["specification"]["budget"]["amount"]["of"] == "55371/1000"
    assert any("per person instead of household" in text for text in found["weakenings"])
    converted = found["converted"]
    assert converted["output_premetric"]["name"] == "approximate"
    text = spec("compose", *parts, "--touched", 1, "--delta", "1e-10").stdout
    assert "epsilon = 126.7843 per person record" in text
    assert "number of persons, in every state" in text


def test_the_factor_between_units_is_an_argument(spec):
    found = data(spec("compose", "topdown-pl-persons", "safetab-h", "--touched", 2, "--json"))
    assert found["specification"]["budget"]["amount"]["of"] == "1843/25"  # 2.56 + 4 x 17.79


def test_a_registry_entry(spec, tmp_path):
    text = spec("registry", "topdown-pl").stdout
    assert problems(yaml.safe_load(text)) == []
    assert problems_of_text(text) == []
    done = spec("registry", "topdown-pl", "--out", "redistricting.yaml")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "redistricting.yaml").read_text() == text


def test_a_registry_entry_for_a_file_needs_metadata(spec, tmp_path):
    (tmp_path / "own.yaml").write_text(spec("show", "safetab-p", "--yaml").stdout)
    done = spec("registry", "own.yaml")
    assert done.exit_code == 2
    assert "--metadata" in done.stderr
    (tmp_path / "about.yaml").write_text(
        "name: Own\ndata_curators: [Office]\nintended_use: Planning.\ndescription: Counts.\n"
        "data_product_region: Here\npublication_date: '2026-01-31'\n"
    )
    done = spec("registry", "own.yaml", "--metadata", "about.yaml")
    assert done.exit_code == 0, done.stderr
    assert yaml.safe_load(done.stdout)["url_slug"] == "own-office-2026"


def test_the_schema(spec):
    assert data(spec("schema"))["title"] == "Specification"


# -- what a new reader stumbled over ------------------------------------------------------------


def refused(done, *texts):
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "unexpected" not in done.stderr
    for text in texts:
        assert text in done.stderr


@pytest.mark.parametrize("name", ["topdown@0.1", "safetab-p@1/2"])
def test_only_swaps_take_a_rate(spec, name):
    refused(spec("compare", name, "topdown"), "has no swap rate")
    refused(spec("show", name), "has no swap rate")


def test_composing_says_what_it_assumes(spec):
    text = spec("compose", "topdown", "phsafe").stdout
    assert "Assumes that the releases use independent randomness" in text
    found = data(spec("compose", "topdown", "phsafe", "--json"))
    assert any("independent randomness" in one for one in found["assumes"])
    refused(spec("compose", "topdown", "phsafe", "--shared"), "share randomness", "joint law")


def test_composing_hints_at_a_tighter_conversion_of_swaps(spec):
    parts = ("topdown", "psa-2010", "--touched", 1)
    found = data(spec("compose", *parts, "--json"))

    def amount(one):
        return float(Fraction(one["budget"]["amount"]["of"]))

    # 15.29 + epsilon^2/2, and 15.29 + (epsilon/2) tanh(epsilon), with epsilon = 19.0021.
    assert amount(found["specification"]) == pytest.approx(15.29 + 19.00207**2 / 2, abs=1e-3)
    assert amount(found["tighter"]) == pytest.approx(15.29 + 19.00207 / 2, abs=1e-3)
    assert "Told tighter" in spec("compose", *parts).stdout
    assert "24.7911 per person record" in spec("compose", *parts).stdout
    assert data(spec("compose", "topdown", "phsafe", "--json"))["tighter"] is None


def test_a_missing_factor_is_asked_for_as_an_option(spec):
    refused(spec("compose", "topdown", "safetab-h"), "--touched")
    told = spec("compare", "psa-2010", "topdown").stdout
    assert "--touched" in told
    assert "--records" in told
    assert "`" not in told
    reasons = json.dumps(data(spec("compare", "psa-2010", "topdown", "--json"))["reasons"])
    assert "--touched" in reasons
    assert "`touched`" not in reasons


def test_the_options_that_are_asked_for_exist(spec):
    told = spec("compare", "safetab-p", "safetab-h", "--records", 5).stdout
    assert "--same-sizes" in told
    told = spec("compare", "safetab-p", "safetab-h", "--records", 5, "--same-sizes").stdout
    assert "one household has at most 5 person records" in told
    assert "--same-sizes" not in told
    catalog.accounting("topdown", "one-copy").write(Path("own.yaml"))
    assert "--copies" in spec("compare", "topdown", "own.yaml").stdout
    found = data(spec("compare", "topdown", "own.yaml", "--copies", 1, "--json"))
    assert found["verdict"] == "stronger"


def test_nothing_is_written_into_a_folder_that_is_not_there(spec, tmp_path):
    refused(spec("registry", "topdown-pl", "--out", "missing/x.yaml"), "--out", "no folder")
    refused(spec("show", "topdown-pl", "--html", "missing/x.html"), "--html", "no folder")
    assert not (tmp_path / "missing").exists()


def test_what_was_read_is_not_overwritten(spec, tmp_path):
    text = spec("show", "safetab-p", "--yaml").stdout
    (tmp_path / "own.yaml").write_text(text)
    about = (
        "name: Own\ndata_curators: [Office]\nintended_use: Planning.\ndescription: Counts.\n"
        "data_product_region: Here\npublication_date: '2026-01-31'\n"
    )
    (tmp_path / "about.yaml").write_text(about)
    refused(spec("show", "own.yaml", "--html", "./own.yaml"), "is what was read")
    for target in ("own.yaml", "about.yaml"):
        done = spec("registry", "own.yaml", "--metadata", "about.yaml", "--out", target)
        refused(done, "is what was read")
    assert (tmp_path / "own.yaml").read_text() == text
    assert (tmp_path / "about.yaml").read_text() == about


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("compose", "psa-2010", "psa-2010@0.04", "--delta", "1e-10"), "--delta"),
        (("show", "topdown", "--json", "--yaml"), "--yaml"),
        (("show", "topdown", "--json", "--html", "x.html"), "--html"),
        (("table", "2.0"), "Tables 2 to 5"),
        (("table", "two"), "Tables 2 to 5"),
    ],
)
def test_options_that_would_be_ignored_are_refused(spec, arguments, text):
    refused(spec(*arguments), text)


def test_budgets_are_rounded_up_everywhere(spec):
    name = "psa-2020-state-county"
    assert "epsilon = 19.3609 " in spec("show", name).stdout
    assert "epsilon 19.3609 " in spec("psa", "--stratum", 13475623, "--rate", "0.05").stdout
    table = spec("table", 5).stdout
    assert "19.3608" in table
    assert "rounded to the nearest here" in table


def test_rates_that_cannot_be_told_are_not_told_as_0_and_1(spec):
    found = data(spec("invert", "--stratum", 10, "--epsilon", 800, "--json"))
    assert 0 < found["rates"][0] < found["rates"][1] < 1
    assert len(found["notes"]) == 2
    assert "may be finite" in spec("psa", "--stratum", 10, "--rate", 1).stdout
