"""Profiles are data: shipped ones load, bad ones are refused before anything is written."""

import pytest
import yaml

from discreet.errors import BadInput
from discreet.simulate import profile_names, simulate
from discreet.simulate.profile import load_profile

NAMES = ["large-state", "mid-state", "nation", "other-country", "small-state", "tiny"]


def test_shipped_profiles():
    assert profile_names() == NAMES
    sizes = {}
    for name in NAMES:
        profile, schema = load_profile(name)
        assert profile.name == name
        assert schema.name == profile.schema_
        sizes[name] = sum(state.persons for state in profile.states) or profile.persons
    assert sizes["tiny"] == 1_000
    assert sizes["small-state"] == 640_000
    assert sizes["mid-state"] == 5_000_000
    assert sizes["large-state"] == 29_000_000
    assert sizes["nation"] == pytest.approx(331_400_000, rel=0.005)


def test_the_nation_has_51_states_and_its_own_mix():
    profile, _ = load_profile("nation")
    assert len(profile.states) == 51
    assert sum(state.counties for state in profile.states) == 3_143
    persons = sum(state.persons for state in profile.states)
    white = sum(state.persons * state.race[0] / sum(state.race) for state in profile.states)
    hispanic = sum(state.persons * state.hispanic / 100 for state in profile.states)
    assert white / persons == pytest.approx(0.616, abs=0.01)
    assert hispanic / persons == pytest.approx(0.187, abs=0.005)


def test_tiny_is_about_a_thousand_persons(tmp_path):
    for seed in range(3):
        summary = simulate("tiny", tmp_path / str(seed), seed)
        assert 800 < summary.persons < 1_200
        assert summary.blocks == 48


def test_progress_counts_to_the_end(tmp_path):
    seen = []
    simulate("tiny", tmp_path / "census", 1, progress=lambda *step: seen.append(step))
    assert seen[-1][:2] == (1, 1)
    assert all(done <= total and isinstance(label, str) for done, total, label in seen)


STATE = {
    "code": "09",
    "name": "A",
    "persons": 6000,
    "counties": 3,
    "tracts": 6,
    "blocks": 200,
    "latitude": 41,
    "longitude": -72,
    "race": [66, 11, 1, 5, 0, 8, 9],
    "hispanic": 17,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"states": [STATE | {"code": "99"}]}, "code"),
        ({"states": [STATE | {"code": "03"}]}, "not in schema us-decennial"),
        ({"states": [STATE | {"tracts": 2}]}, "at least one per county"),
        ({"states": [STATE | {"blocks": 10}]}, "at least four per tract"),
        ({"states": [STATE | {"blocks": 5_000}]}, "one per two persons"),
        ({"states": [STATE | {"race": [66, 11]}]}, "race"),
        ({"states": [STATE | {"race": [1] * 7}]}, "percentages"),
        ({"states": [STATE, dict(STATE, race=list(STATE["race"]))]}, "given twice"),
        ({"persons": 5000}, "either states"),
        ({"states": []}, "either states"),
        ({"schema": "register-country"}, "states are for schema"),
        ({"schema": "nowhere"}, "no schema file or profile"),
        ({"format_version": 99}, "format_version"),
        ({"colour": "red"}, "unknown key"),
    ],
)
def test_a_bad_profile_is_refused(tmp_path, change, message):
    good = {"format_version": 1, "name": "own", "schema": "us-decennial", "states": [STATE]}
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(good | change))
    with pytest.raises(BadInput, match=message):
        simulate(path, tmp_path / "out" / "census", 1)
    assert not (tmp_path / "out").exists()


def test_a_misspelt_profile_gets_a_suggestion(tmp_path):
    with pytest.raises(BadInput, match="'small-state'"):
        simulate("small-sate", tmp_path / "census", 1)


def test_unknown_states_and_no_processes_are_refused(tmp_path):
    with pytest.raises(BadInput, match="no state '03'"):
        simulate("nation", tmp_path / "census", 1, states=["03"])
    with pytest.raises(BadInput, match="no state was asked for"):
        simulate("nation", tmp_path / "census", 1, states=[])
    with pytest.raises(BadInput, match="at least 1"):
        simulate("tiny", tmp_path / "census", 1, processes=0)
    assert not (tmp_path / "census").exists()


def test_nothing_is_written_over(tmp_path):
    simulate("tiny", tmp_path / "census", 1)
    with pytest.raises(BadInput, match="not empty"):
        simulate("tiny", tmp_path / "census", 2)
