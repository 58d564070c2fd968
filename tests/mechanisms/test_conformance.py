"""What every mechanism must do, run over all of them.

A new mechanism joins by adding its configurations to CASES; it passes all of this
or it does not move in.
"""

import itertools
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.census import Census
from discreet.engine import Engine
from discreet.errors import BadInput, NewerFormat, UnreadableFile
from discreet.mechanisms import (
    MECHANISMS,
    Enumerable,
    Mechanism,
    Release,
    make_draw,
    mechanism,
    protect,
    publish_draw,
)
from discreet.noise import system, trial
from discreet.products import check_invariants
from discreet.spec import Exactly, LogRational, NoFiniteBudget, read_specification
from topdown.runs import FEWEST
from worlds import folder_bytes, register_census, us_census, write_census

ONE = [(40, "1", "01")]
PAIR = [(40, "1", "01"), (38, "2", "02")]
US = [
    (0, "1", ONE),
    (1, "1", [(70, "2", "02")]),
    (1, "1", [(25, "1", "04")]),
    (2, "1", ONE),
    (0, "3", PAIR),
    (2, "3", [(51, "2", "06"), (9, "1", "06")]),
]
REGISTER = [
    (0, "owner", [(40, "f", "national")]),
    (1, "owner", [(33, "m", "eu")]),
    (2, "renter", [(66, "f", "other"), (65, "m", "national")]),
    (1, "renter", [(30, "f", "national"), (28, "m", "national")]),
]


@dataclass(frozen=True)
class Case:
    name: str
    parameters: dict
    world: str

    @property
    def microdata(self) -> bool:
        return self.name not in ("noisy-tables", "phsafe")

    def census(self, engine: Engine) -> Census:
        return us_census(engine, US) if self.world == "us" else register_census(engine, REGISTER)

    def mechanism(self, census: Census) -> Mechanism:
        return mechanism(self.name, census.schema, self.parameters)


CASES = {
    "psa-us": Case(
        "permutation-swapping", {"rate": "1/2", "match": ["size"], "within": "county"}, "us"
    ),
    "psa-us-unmatched": Case(
        "permutation-swapping", {"rate": "1/3", "match": [], "within": "state"}, "us"
    ),
    "psa-register": Case(
        "permutation-swapping",
        {"rate": "0.5", "match": ["size", "tenure"], "within": "municipality"},
        "register",
    ),
    "psa-tenure": Case(
        "permutation-swapping",
        {"rate": "1/2", "match": [], "within": "county", "swap": ["tenure"], "table": ["size"]},
        "us",
    ),
    "psa-block-and-tenure": Case(
        "permutation-swapping",
        {"rate": "1/2", "match": ["size"], "within": "all", "swap": ["block", "tenure"]},
        "us",
    ),
    "psa-persons": Case(
        "permutation-swapping",
        {
            "rate": "1/3",
            "match": ["sex"],
            "within": "state",
            "records": "persons",
            "swap": ["age", "race"],
        },
        "us",
    ),
    "targeted-us": Case(
        "targeted-swapping", {"rate": "1/2", "within": "county", "leave": "block"}, "us"
    ),
    "targeted-us-code": Case(
        "targeted-swapping",
        {"rate": "2/3", "preset": "published-code", "match": ["size"], "leave": "block"},
        "us",
    ),
    "public-docs": Case(
        "public-docs-2010",
        {"rate": "1/2", "match": ["size"], "near": [], "unique_area": "county"},
        "us",
    ),
    "record": Case(
        "record-swapping",
        {
            "rate": "1/2",
            "within": "state",
            "hierarchy": ["block"],
            "similar": [["size"]],
            "risk_variables": ["race_group"],
        },
        "us",
    ),
    "noisy-us": Case(
        "noisy-tables",
        {
            "noise": "gaussian",
            "budget": "1/2",
            "change": "replace",
            "queries": [
                {"table": "H4", "level": "county", "share": "1/4"},
                {"table": "H9", "level": "block", "share": "3/4"},
            ],
        },
        "us",
    ),
    "noisy-register": Case(
        "noisy-tables",
        {
            "noise": "laplace",
            "budget": "1",
            "queries": [{"table": "R1", "level": "cell", "share": "1"}],
        },
        "register",
    ),
    "topdown-us": Case("topdown", {**FEWEST, "measurements": "lazy", "rounder": "deployed"}, "us"),
    "phsafe": Case("phsafe", {"configuration": "us-2020", "states": ["50"]}, "us"),
}

SWAPS = {name: case for name, case in CASES.items() if case.microdata}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


#: Releases of the cases made so far.
MADE: dict[str, Path] = {}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def copied(request, case, engine, tmp_path, tmp_path_factory) -> Path:
    """Return a copy of a release of the case, which is made once."""
    name = request.node.callspec.params["case"]
    if name not in MADE:
        census = case.census(engine)
        MADE[name] = tmp_path_factory.mktemp("made") / "release"
        protect(case.mechanism(census), census, trial(1), MADE[name])
    return Path(shutil.copytree(MADE[name], tmp_path / "release"))


@pytest.fixture(params=SWAPS)
def swap(request: pytest.FixtureRequest) -> Case:
    return SWAPS[request.param]


def test_every_mechanism_has_a_case():
    assert {case.name for case in CASES.values()} == set(MECHANISMS)


def test_it_is_a_mechanism(case, engine):
    assert isinstance(case.mechanism(case.census(engine)), Mechanism)


# -- invariants --------------------------------------------------------------------------


def test_declared_invariants_hold_exactly(swap, engine, tmp_path):
    census = swap.census(engine)
    made = swap.mechanism(census)
    for seed in range(3):
        release = protect(made, census, trial(seed), tmp_path / str(seed))
        differing = check_invariants(release.specification, census, release.microdata(engine))
        assert len(differing) >= 2
        assert not any(differing.values()), differing


def test_a_broken_invariant_is_seen(swap, engine, tmp_path):
    census = swap.census(engine)
    release = protect(swap.mechanism(census), census, trial(0), tmp_path / "release")
    block = census.schema.block
    moved = release.microdata(engine)
    blocks = sorted(row[0] for row in engine.rows(census.geography.select(block)))
    arrays = engine.to_numpy(moved.table("units").select("unit_id", block))
    places = arrays[block].copy()
    places[0] = blocks[0] if places[0] != blocks[0] else blocks[-1]
    new = engine.from_numpy({"unit_id": arrays["unit_id"], "new": places})
    units = moved.table("units").drop(block).join(new, on="unit_id").rename({"new": block})
    broken = replace(moved, units=units)
    assert any(check_invariants(release.specification, census, broken).values())


def universe(made: Enumerable, census: Census) -> set:
    """Enumerate every data set that agrees with the census on the declared invariants.

    Independent of the mechanism's law: tries every assignment of blocks to units.
    """
    engine, block = census.engine, census.schema.block
    specification = made.specify()
    blocks = sorted(row[0] for row in engine.rows(census.geography.select(block)))
    ids = sorted(row[0] for row in engine.rows(census.table("units").select("unit_id")))
    found = set()
    for choice in itertools.product(blocks, repeat=len(ids)):
        new = {"unit_id": np.array(ids), "new": np.array(choice, dtype=object)}
        units = census.table("units").drop(block)
        units = units.join(engine.from_numpy(new), on="unit_id").rename({"new": block})
        candidate = replace(census, units=engine.materialise(units))
        outcome = made.outcome(candidate)
        if outcome not in found and not any(
            check_invariants(specification, census, candidate).values()
        ):
            found.add(outcome)
    return found


SMALL_WORLDS = {
    # Four households in one stratum; two of them alike, so some swaps are invisible.
    "one-stratum": ([(0, "1", ONE), (1, "1", ONE), (2, "1", [(70, "2", "02")])], ["size"]),
    # Two strata that must not mix.
    "two-strata": (
        [(0, "1", ONE), (1, "1", [(70, "2", "02")]), (0, "1", PAIR), (1, "1", PAIR)],
        ["size"],
    ),
    "unmatched": ([(0, "1", ONE), (1, "3", PAIR), (1, "1", [(70, "2", "02")])], []),
}


@pytest.mark.slow
@pytest.mark.parametrize("world", SMALL_WORLDS)
def test_reachable_set_is_the_declared_universe(world, engine, tmp_path):
    households, match = SMALL_WORLDS[world]
    blocks = 1 + max(block for block, _, _ in households)
    census = us_census(engine, households, blocks=blocks, extras=False)
    made = mechanism(
        "permutation-swapping", census.schema, {"rate": "1/2", "match": match, "within": "county"}
    )
    law = made.law(census)
    assert sum(law.values()) == 1
    declared = universe(made, census)
    assert len(declared) > 1
    assert {outcome for outcome, p in law.items() if p > 0} == declared
    if world != "one-stratum":
        return
    # What the mechanism really writes: inside the universe, and all of it. The seeds are
    # fixed; at other seeds 60 runs would miss an outcome with probability below
    # len(law) * (1 - min(law))^60, asserted to be at most 1 %.
    assert len(law) * (1 - min(law.values())) ** 60 < 0.01
    seen = Counter()
    for seed in range(60):
        made.draw(census, trial(seed), tmp_path / str(seed))
        seen[made.outcome(Census.open(tmp_path / str(seed) / "microdata", engine))] += 1
    assert set(seen) == declared


@st.composite
def small_censuses(draw):
    people = st.tuples(
        st.integers(18, 99), st.sampled_from("12"), st.sampled_from(["01", "02", "07"])
    )
    household = st.tuples(
        st.integers(0, 3), st.sampled_from("13"), st.lists(people, min_size=1, max_size=3)
    )
    return draw(st.lists(household, min_size=1, max_size=12))


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    households=small_censuses(),
    rate=st.fractions("1/100", "99/100", max_denominator=100),
    match=st.sampled_from([(), ("size",), ("adults", "tenure"), ("household_type",)]),
    within=st.sampled_from(["state", "county", "tract"]),
    seed=st.integers(0, 2**32),
)
def test_invariants_hold_for_any_valid_census(
    engine, tmp_path_factory, households, rate, match, within, seed
):
    census = us_census(engine, households, blocks=4, per_county=2)
    parameters = {"rate": rate, "match": list(match), "within": within}
    made = mechanism("permutation-swapping", census.schema, parameters)
    out = tmp_path_factory.mktemp("any") / "release"
    try:
        release = protect(made, census, trial(seed), out)
    except BadInput:  # rightly: the census is all that could come out
        assert set(made.law(census)) == {made.outcome(census)}
        return
    assert not any(
        check_invariants(release.specification, census, release.microdata(engine)).values()
    )


# -- public and confidential ----------------------------------------------------------------


def test_publishing_does_not_need_the_census(case, tmp_path):
    engine = Engine(threads=1)
    census = write_census(case.census(engine), tmp_path / "census")
    made = case.mechanism(census)
    draw = make_draw(made, census, trial(3), tmp_path / "draw", "design")
    publish_draw(draw, tmp_path / "with")
    engine.close()
    shutil.rmtree(tmp_path / "census")
    publish_draw(draw, tmp_path / "without")
    assert folder_bytes(tmp_path / "with") == folder_bytes(tmp_path / "without")


def test_the_draw_is_private_and_purged(case, engine, tmp_path):
    census = case.census(engine)
    draw = make_draw(case.mechanism(census), census, trial(3), tmp_path / "draw", "design")
    assert draw.stat().st_mode & 0o777 == 0o700
    protect(case.mechanism(census), census, trial(3), tmp_path / "out" / "release")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["release"]


@pytest.mark.parametrize("rng", [system(), trial(1)], ids=["system", "trial"])
def test_confidential_data_are_not_touched_unaccounted(case, engine, tmp_path, rng):
    census = replace(case.census(engine), origin="supplied")
    with pytest.raises(BadInput, match="register"):
        protect(case.mechanism(census), census, rng, tmp_path / "release")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_run_leaves_nothing_behind(case, engine, tmp_path, monkeypatch):
    census = case.census(engine)
    monkeypatch.setattr(Engine, "write_parquet", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        protect(case.mechanism(census), census, trial(1), tmp_path / "release")
    assert list(tmp_path.iterdir()) == []


def test_another_schema_is_refused(case, engine, tmp_path):
    census = case.census(engine)
    other = register_census(engine, REGISTER) if case.world == "us" else us_census(engine, US)
    with pytest.raises(BadInput, match="schema"):
        protect(case.mechanism(census), other, trial(1), tmp_path / "release")


# -- reading back ---------------------------------------------------------------------------


def test_a_release_reads_back(case, engine, tmp_path):
    census = case.census(engine)
    made = case.mechanism(census)
    release = protect(made, census, trial(1), tmp_path / "release")
    assert Release.open(tmp_path / "release") == release
    assert release.specification == made.specify(made.facts(census))
    assert isinstance(release.specification.budget.amount, LogRational | Exactly | NoFiniteBudget)
    again = tmp_path / "again.yaml"
    release.specification.write(again)
    assert read_specification(again) == release.specification
    assert made.specify().flavor() == release.specification.flavor()


def test_a_changed_release_is_refused(copied):
    file = next(copied.rglob("*.parquet"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(UnreadableFile, match=file.name):
        Release.open(copied)


def test_a_newer_format_is_refused(copied):
    header = copied / "release.yaml"
    content = yaml.safe_load(header.read_text())
    header.write_text(yaml.safe_dump({**content, "format_version": 2}))
    with pytest.raises(NewerFormat):
        Release.open(copied)


@pytest.mark.parametrize("damage", ["mode", "extra file", "missing file"])
def test_a_changed_manifest_is_refused(copied, damage):
    assert Release.open(copied)
    if damage == "mode":
        text = (copied / "release.yaml").read_text()
        (copied / "release.yaml").write_text(text.replace("mode: design", "mode: release"))
    elif damage == "extra file":
        (copied / "more.txt").write_text("x")
    else:
        next(copied.rglob("*.parquet")).unlink()
    with pytest.raises(UnreadableFile):
        Release.open(copied)


# -- repeating ------------------------------------------------------------------------------


def released(case: Case, engine: Engine, out: Path, seed: int, **options) -> dict[str, bytes]:
    census = case.census(engine)
    protect(case.mechanism(census), census, trial(seed), out, **options)
    return folder_bytes(out)


def test_seeded_runs_repeat_and_seeds_matter(case, engine, tmp_path):
    runs = [
        released(case, engine, tmp_path / f"{s}-{i}", s)
        for i, s in enumerate([5, 5, *range(6, 10)])
    ]
    assert runs[0] == runs[1]
    assert any(run != runs[0] for run in runs[2:])


@pytest.mark.parametrize("name", ["psa-us", "psa-register", "psa-persons", "targeted-us"])
def test_the_system_randomness_does_not_repeat(name, engine, tmp_path):
    census = CASES[name].census(engine)
    made = CASES[name].mechanism(census)
    # False alarm: all runs equal, probability at most (likeliest outcome)^(runs - 1).
    assert max(made.law(census).values()) ** 11 < 1e-3
    runs = set()
    for number in range(12):
        made.draw(census, system(), tmp_path / str(number))
        runs.add(made.outcome(Census.open(tmp_path / str(number) / "microdata", engine)))
    assert len(runs) > 1


def test_results_do_not_depend_on_processors_or_row_order(case, tmp_path):
    one = released(case, Engine(threads=1), tmp_path / "one", 9, threads=1)
    two = released(case, Engine(threads=2), tmp_path / "two", 9, threads=2)
    assert one == two
    if case.world == "us":
        engine = Engine(threads=2)
        rows = len(US) + 2
        shuffled = us_census(engine, US, order=np.random.default_rng(1).permutation(rows))
        protect(case.mechanism(shuffled), shuffled, trial(9), tmp_path / "shuffled")
        assert folder_bytes(tmp_path / "shuffled") == one
