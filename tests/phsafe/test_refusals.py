"""Whatever is wrong: one clear message without a value, exit code 2, and nothing left behind."""

import copy
import shutil
import warnings
from pathlib import Path

import pytest
import yaml

from discreet.census import ingest, load_schema
from discreet.config import BadConfig, parse
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism
from discreet.mechanisms.phsafe import Parameters, load_configuration
from discreet.products import sdhc
from discreet.run import run
from discreet.simulate import simulate
from phsafe.homes import Home, Person, census_of
from worlds import register_census, write_census

SAMPLE = Path(__file__).parent.parent / "census" / "samples" / "phsafe"
US = load_configuration("us-2020").model_dump(mode="json", exclude={"name", "title"})
US = {key: US[key] for key in ("states", "budgets", "thresholds", "noise")} | {"states": ["50"]}

FAMILY = (Person(40, "20"), Person(38, "21", sex="2"), Person(9, "25"))


# -- files ------------------------------------------------------------------------------------


def changed(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))


def without(name: str):
    return lambda folder: (folder / name).unlink()


def edit(name: str, old: str, new: str):
    return lambda folder: changed(folder, name, old, new)


def repeat(name: str):
    def twice(folder: Path) -> None:
        lines = (folder / name).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join([*lines, lines[1]]))

    return twice


#: What is done to the files, and what the message says.
FILES = {
    "missing file": (without("geo.csv"), "geo"),
    "missing persons": (without("persons.csv"), "persons"),
    "wrong column": (edit("units.csv", "HHSPAN", "SPANISH"), "HHSPAN"),
    "bad code": (edit("persons.csv", "3,100000001,40,1,01,20", "3,100000001,40,1,64,20"), "race"),
    "orphan person": (edit("persons.csv", "3,100000001,41", "3,100009999,41"), "unit"),
    "duplicated unit": (repeat("units.csv"), "unit_id|MAFID"),
}


def test_the_sample_is_read(tmp_path):
    ingest(SAMPLE, tmp_path / "census", layout="phsafe")


@pytest.mark.parametrize("what", FILES)
def test_bad_files_are_refused(tmp_path, what):
    spoil, message = FILES[what]
    shutil.copytree(SAMPLE, tmp_path / "files")
    spoil(tmp_path / "files")
    with pytest.raises(BadInput, match=message) as refused:
        ingest(tmp_path / "files", tmp_path / "census", layout="phsafe")
    assert refused.value.exit_code == 2
    assert "100009999" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


# -- configurations -----------------------------------------------------------------------------


def having(*path: str, value=None) -> dict:
    """Return the parameters with one entry changed, or taken out."""
    changed = copy.deepcopy(US)
    place = changed
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


PARAMETERS = {
    "negative budget": (having("budgets", "PH7", "usa_*", value="-1/2"), "PH7"),
    "budget in words": (having("budgets", "PH7", "usa_*", value="much"), "rational"),
    "budget as a float": (having("budgets", "PH7", "usa_*", value=0.1), "exact"),
    "tiny budget": (having("budgets", "PH7", "usa_*", value="1e-12"), r"budgets.PH7.usa_\*"),
    "huge budget": (having("budgets", "PH8_denom", "usa_*", value="10000"), "PH8_denom"),
    "no table": (having("budgets", "PH7"), "missing: PH7"),
    "strange table": (having("budgets", "PH9", value={"usa_*": "1"}), "no table 'PH9'"),
    "unknown level": (having("budgets", "PH7", "county_*", value="1"), "no level 'county_\\*'"),
    "level of another table": (having("budgets", "PH2", "usa_A-G", value="1"), "budgets.PH2"),
    "level left out": (having("budgets", "PH3", "state_A-G"), "missing: state_A-G"),
    "no threshold": (having("thresholds", "PH6"), "missing: PH6"),
    "threshold of units": (having("thresholds", "PH1_denom", value=3), "PH1_denom"),
    "threshold 0": (having("thresholds", "PH6", value=0), "thresholds.PH6"),
    "threshold half": (having("thresholds", "PH6", value=2.5), "thresholds.PH6"),
    "no state": (having("states", value=[]), "states"),
    "strange state": (having("states", value=["03"]), "states"),
    "state twice": (having("states", value=["50", "50"]), "twice"),
    "PR with others": (having("states", value=["50", "72"]), "account of its own"),
    "PR with a nation": (having("states", value=["72"]), "no nation level"),
    "noise": (having("noise", value="laplace"), "noise"),
    "unknown key": (having("epsilon", value="1"), "unknown key"),
    "no such configuration": ({"configuration": "us-2030"}, "us-2020"),
    "a file": ({"configuration": "mine.yaml"}, "not a file"),
    "nothing": ({}, "budgets"),
    "PR with a state": ({"configuration": "pr-2020", "states": ["44"]}, "account of Puerto Rico"),
    "US with PR": ({"configuration": "us-2020", "states": ["72"]}, "account of the United States"),
    "threshold of a city": (having("thresholds", "PH6", value=100_000), "thresholds.PH6"),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    write_census(census_of(Engine(threads=1), [Home(1, FAMILY)]), folder / "census")
    return folder


def write_run(folder: Path, parameters: dict) -> Path:
    config = {
        "format_version": 1,
        "release": "first",
        "mode": "design",
        "census": "census",
        "work": "work",
        "out": "out",
        "mechanism": "phsafe",
        "parameters": parameters,
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(config))
    return folder / "run.yaml"


@pytest.mark.parametrize("what", PARAMETERS)
def test_bad_parameters_are_refused(world, what):
    parameters, message = PARAMETERS[what]
    with pytest.raises(BadInput, match=message) as refused:
        run(write_run(world, parameters))
    assert refused.value.exit_code == 2
    assert sorted(path.name for path in world.iterdir()) == ["census", "run.yaml"]


#: The whole problem that is told, after the place where it is.
WORDED = {
    "no state": ({"states": []}, 'states: name at least one state, such as ["44"]'),
    "numbers": ({"states": [44, 50]}, 'states: write codes as texts, in quotes: "44"'),
    "no list": ({"states": "44"}, 'states: write a list of codes, such as ["44"]'),
    "table": ({"budgets": {"PH22": {}}}, "budgets: no table 'PH22'. Did you mean 'PH2'?"),
    "level": (
        {"budgets": {"PH3": {"state_AG": "1"}}},
        "budgets.PH3: no level 'state_AG'. Did you mean 'state_A-G'?",
    ),
    "an average": (
        {"budgets": {"PH8": {"usa_*": "1"}}},
        "budgets: no table 'PH8'. It comes from PH7 and PH8_denom.",
    ),
    "a numerator": (
        {"thresholds": {"PH5_num": 3}},
        "thresholds: no table of persons 'PH5_num'. It comes from PH4.",
    ),
}


@pytest.mark.parametrize("what", WORDED)
def test_one_problem_is_one_plain_sentence(what):
    given, sentence = WORDED[what]
    with pytest.raises(BadConfig) as refused:
        parse(Parameters, {"configuration": "us-2020", **given}, "parameters").settings  # noqa: B018
    assert refused.value.problems == [sentence]


@pytest.mark.parametrize("what", ["table", "level"])
def test_a_misspelt_name_is_not_buried_without_a_named_configuration(what):
    given, sentence = WORDED[what]
    with pytest.raises(BadConfig) as refused:
        load_configuration({**US, **given})
    assert refused.value.problems == [sentence]


def test_without_a_named_configuration_everything_is_needed():
    with pytest.raises(BadConfig, match="every table is needed; missing: PH1_num"):
        load_configuration({**US, "budgets": {"PH2": {"usa_*": "1", "state_*": "1"}}})


def test_a_message_names_what_was_given_and_not_what_comes_with_the_package(world):
    path = write_run(world, {"configuration": "us-2020", "states": ["03"]})
    with pytest.raises(BadInput, match=r"^parameters:\n  states") as refused:
        run(path)
    assert "us-2020.yaml" not in str(refused.value)


# -- censuses -----------------------------------------------------------------------------------


def test_a_record_in_no_cell_is_refused_before_anything_is_drawn(tmp_path):
    strange = Home(1, FAMILY, types=("1", "02", "1"))
    write_census(census_of(Engine(threads=1), [strange]), tmp_path / "census")
    with pytest.raises(BadInput, match=r"PH3: 1 persons lie in no cell.*discreet validate"):
        run(write_run(tmp_path, US))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["census", "run.yaml"]


def test_tables_that_are_not_asked_for_are_not_checked(tmp_path):
    strange = Home(1, FAMILY, types=("1", "02", "1"))
    write_census(census_of(Engine(threads=1), [strange]), tmp_path / "census")
    budgets = {t: dict.fromkeys(levels, "0") for t, levels in US["budgets"].items()}
    budgets["PH7"]["state_*"] = "1"
    run(write_run(tmp_path, {**US, "budgets": budgets}), seed=1)
    assert (tmp_path / "out" / "tables" / "PH7.csv").exists()


def test_a_state_without_blocks_is_refused(world):
    with pytest.raises(BadInput, match="no block in 44"):
        run(write_run(world, {**US, "states": ["44", "50"]}))
    assert sorted(path.name for path in world.iterdir()) == ["census", "run.yaml"]


def test_many_states_without_blocks_are_counted(world):
    with pytest.raises(BadInput, match=r"no block in 01, 02, 04, 05, 06 and 45 more\. List"):
        run(write_run(world, {"configuration": "us-2020"}))


def test_another_country_is_refused():
    census = register_census(Engine(threads=1), [(0, "owner", [(40, "f", "national")])])
    with pytest.raises(BadInput, match="us-decennial"):
        mechanism("phsafe", census.schema, US)


def test_waived_rules_do_not_open_the_door(tmp_path):
    """Two householders may be waived when files are read, but would be counted twice."""
    people = (Person(40, "20"), Person(41, "20"))
    home = Home(1, people, types=("5", "12", "5"))
    write_census(census_of(Engine(threads=1), [home]), tmp_path / "census")
    with pytest.raises(BadInput, match="exactly one householder"):
        run(write_run(tmp_path, US))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["census", "run.yaml"]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> Path:
    """Return the census that the first lines of the examples make."""
    folder = tmp_path_factory.mktemp("examples")
    simulate("tiny", folder / "census", 1)
    return folder


@pytest.mark.parametrize("example", ["phsafe-us.yaml", "phsafe-own.yaml"])
def test_examples_run_as_they_say(simulated, root, example):
    text = (root / "examples" / example).read_text()
    for line in ("simulate examples/census --profile tiny --seed 1", f"run examples/{example}"):
        assert f"#   discreet {line}" in text
    shutil.copy(root / "examples" / example, simulated / example)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a nation of one state, which one of them tells
        release = run(simulated / example, seed=7)
    assert release.header.mechanism == "phsafe"
    assert (release.folder / "estimates" / "PH1.csv").exists()


def test_what_to_write_instead_is_said():
    with pytest.raises(BadInput, match="give a budget for each level"):
        mechanism("phsafe", load_schema("us-decennial"), {**US, "budgets": {"PH2": 0}})
    with pytest.raises(BadInput, match="It comes from PH7 and PH8_denom"):
        sdhc.shell_of("PH8")
