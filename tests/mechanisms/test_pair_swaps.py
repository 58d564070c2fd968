"""What all swaps of pairs refuse and say."""

import json
from dataclasses import replace

import pytest
import yaml

from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import make_draw, mechanism, protect
from discreet.mechanisms.swapping import households
from discreet.noise import trial
from worlds import us_census

HOMES = [(block, "1", [(30 + block, "1", "01")]) for block in (0, 1, 2, 0, 1, 2)]
RECORD = {
    "within": "state",
    "hierarchy": ["block"],
    "similar": [["size"]],
    "risk_variables": ["race_group"],
}
METHODS = {
    "targeted-swapping": {"within": "county", "leave": "block"},
    "public-docs-2010": {"match": ["size"], "near": [], "unique_area": "county"},
    "record-swapping": RECORD,
}


@pytest.fixture
def census():
    return us_census(Engine(threads=1), HOMES)


@pytest.mark.parametrize("name", METHODS)
def test_a_rate_that_swaps_nobody_does_not_release_the_census(census, name, tmp_path):
    made = mechanism(name, census.schema, {"rate": "1/1000", **METHODS[name]})
    with pytest.raises(BadInput, match="released as it is"):
        make_draw(made, census, trial(1), tmp_path / "draw", "design")
    assert list(tmp_path.iterdir()) == []


def test_a_column_that_needs_persons_is_named(census):
    alone = replace(census, persons=None)
    made = mechanism("targeted-swapping", census.schema, {"rate": "1/2"})
    with pytest.raises(
        BadInput, match=r"'members_white' is counted from persons.*no persons table.*Add"
    ):
        made.check(alone)


@pytest.mark.parametrize(
    ("tiers", "says"),
    [
        ([{"chance": "0"}], "a chance above 0"),
        ([{"share": "1", "chance": "0"}, {"chance": "0"}], "a chance above 0"),
        ([{"share": "0", "chance": "1"}, {"chance": "0"}], "released as it is"),
    ],
)
def test_chances_that_swap_nobody_do_not_release_the_census(census, tiers, says):
    asked = {"rate": "1/2", **METHODS["targeted-swapping"], "tiers": tiers}
    with pytest.raises(BadInput, match=says):
        mechanism("targeted-swapping", census.schema, asked).check(census)


@pytest.mark.parametrize("name", METHODS)
def test_public_files_say_that_there_is_no_budget(census, name, tmp_path):
    made = mechanism(name, census.schema, {"rate": "1/2", **METHODS[name]})
    folder = protect(made, census, trial(1), tmp_path / "release").folder
    told = json.loads((folder / "swap.json").read_text())
    assert told == made.public_facts()
    assert told["promise"] == "no finite budget exists for this method"
    promise = yaml.safe_load((folder / "specification.yaml").read_text())
    assert "no finite budget exists for this method" in promise["budget"]["conditions"]


@pytest.mark.parametrize(
    ("name", "parameters", "published"),
    [
        ("targeted-swapping", {"preset": "paper"}, True),
        ("targeted-swapping", {"preset": "published-code"}, True),
        ("targeted-swapping", {"preset": "high-variance"}, False),
        ("public-docs-2010", {}, True),
        ("record-swapping", RECORD, False),
    ],
)
def test_what_nobody_published_is_called_ours(census, name, parameters, published):
    made = mechanism(name, census.schema, {"rate": "1/2", **parameters})
    budget = made.specify().budget
    assert budget.status == ("published" if published else "checked numerically")
    assert budget.source.startswith("ours: ") is not published
    assert ("our reconstruction" in made.public_facts()["method"]) is not published


@pytest.mark.parametrize(
    ("name", "parameters", "own"),
    [
        ("targeted-swapping", {"tiers": [{"chance": "1/2"}]}, "tiers"),
        ("targeted-swapping", {"flags": ["size"], "match": ["size"]}, "match, flags"),
        ("targeted-swapping", {"preset": "published-code", "cap": "exact"}, "cap"),
        ("public-docs-2010", {"match": ["size"], "within": "county"}, "match, within"),
        # Said otherwise, but the same: the order of columns, another way to write a number,
        # and groups that only the internal report looks at.
        ("targeted-swapping", {"match": ["adults", "size"], "groups": []}, ""),
        ("targeted-swapping", {"tier_unit": "1.6"}, ""),
        ("public-docs-2010", {"match": ["tenure", "minors", "adults"]}, ""),
    ],
)
def test_own_decisions_are_named_and_no_longer_called_published(census, name, parameters, own):
    made = mechanism(name, census.schema, {"rate": "1/2", **parameters})
    method, budget = made.public_facts()["method"], made.specify().budget
    assert method.endswith(f"with own decisions: {own}" if own else method)
    assert ("own decisions" in method) is bool(own) is made.ours
    assert "the text of the paper" not in method or not own
    assert budget.status == ("checked numerically" if own else "published")
    assert f"method: {method}" in budget.conditions


@pytest.mark.parametrize("name", METHODS)
def test_notes_of_a_method_stand_in_the_internal_report(census, name, tmp_path):
    made = mechanism(name, census.schema, {"rate": "1/2", **METHODS[name]})
    folder = make_draw(made, census, trial(1), tmp_path / "draw", "design")
    told = json.loads((folder / "internal.json").read_text())
    notes = made.swap(census, made.read(census), trial(1)).notes
    assert told.get("notes", {}) == dict(notes)
    assert bool(notes) is (name != "targeted-swapping")


def test_notes_of_all_batches_are_added_up(tmp_path, monkeypatch):
    """Counties one after the other: their notes must not replace each other."""
    homes = [(n % 6, "1", [(30 + n, "1", "01")]) for n in range(12)]
    census = us_census(Engine(threads=1), homes, blocks=6, per_county=3)
    made = mechanism(
        "record-swapping", census.schema, {"rate": "1/2", **RECORD, "within": "county"}
    )
    monkeypatch.setattr(
        "discreet.mechanisms.swapping.exchange.batches",
        lambda census, places: households.batches(census, places, most=1),
    )
    made.draw(census, trial(1), tmp_path)
    told = json.loads((tmp_path / "internal.json").read_text())
    assert told["notes"]["pairs_by_profile_1"] == told["targets"] == 2


def test_a_level_that_all_profiles_share_must_be_declared(census):
    asked = {**RECORD, "rate": "1/2", "similar": [["size", "county"], ["county"]]}
    with pytest.raises(BadInput, match="within: county"):
        mechanism("record-swapping", census.schema, asked)


@pytest.mark.parametrize("preset", [["paper"], 3, "papr", None])
def test_no_preset_is_a_defect(census, preset):
    asked = {"rate": "1/2", "preset": preset}
    with pytest.raises(BadInput, match="preset"):
        mechanism("targeted-swapping", census.schema, asked)


def test_permutation_swapping_of_nothing_is_no_perfect_protection(tmp_path):
    census = us_census(Engine(threads=1), [])
    asked = {"rate": "1/2", "match": [], "within": "county"}
    made = mechanism("permutation-swapping", census.schema, asked)
    with pytest.raises(BadInput, match="no occupied unit"):
        make_draw(made, census, trial(1), tmp_path / "draw", "design")
