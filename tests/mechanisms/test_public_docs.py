"""Household swapping from public documents, against a slow re-statement in plain Python.

The re-statement reads the same words household by household, with fractions and lists; the
real thing must agree with it to the last pair.
"""

import functools
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.census import Census, unit_records
from discreet.config import BadConfig
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import protect
from discreet.mechanisms.swapping import public_docs as module
from discreet.mechanisms.swapping import public_docs_pass
from discreet.noise import trial
from discreet.products import check_invariants
from discreet.spec import NoFiniteBudget
from listed_towns import TOWNS, census_of, public_docs
from restated_docs import Restated
from towns import town_census
from worlds import folder_bytes


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


@pytest.fixture(scope="module")
def town_of(engine: Engine) -> Callable[[str], Census]:
    """Return towns by name as censuses, each made once."""
    return functools.cache(lambda name: census_of(engine, TOWNS[name]))


# -- the re-statement ------------------------------------------------------------------------

CASES = [
    ("two states", "1/10", {}),
    ("two states", "1/25", {"ranking": "closeness-first"}),
    ("few blocks", "3/10", {"most_imputed": "1/6"}),
    ("few blocks", "1/4", {"ranking": "closeness-first"}),
    ("small", "9/10", {}),
    ("small", "2/5", {"ranking": "closeness-first"}),
]


@pytest.mark.parametrize(("name", "rate", "parameters"), CASES)
def test_pairs_agree_with_the_restatement(town_of, name, rate, parameters):
    census = town_of(name)
    prepared = public_docs(census, rate=rate, **parameters).prepare(census)
    households = prepared.households
    for seed in (1, 2):
        swap = public_docs_pass.pair(prepared, trial(seed))
        for a, first in enumerate(households.offsets[:-1].tolist()):
            last = int(households.offsets[a + 1])
            told = Restated(TOWNS[name], households.area_codes[a], **parameters)
            pairs, alone, _ = told.swap(seed, Fraction(rate))
            inside = (swap.targets >= first) & (swap.targets < last)
            targets = swap.targets[inside]
            assert pairs == list(
                zip(
                    (targets - first).tolist(),
                    (swap.partner[targets] - first).tolist(),
                    strict=True,
                )
            )
            lonely = swap.without_partner
            assert set(alone) == set((lonely[(lonely >= first) & (lonely < last)] - first).tolist())
            assert pairs


def test_the_restatement_meets_every_priority():
    """Partners selected and not, of every distance, and targets without any all occur."""
    kinds, alone = set(), 0
    for name, rate, parameters in CASES:
        told = Restated(TOWNS[name], "10", **parameters)
        pairs, lonely, selected = told.swap(1, Fraction(rate))
        alone += len(lonely)
        for target, other in pairs:
            near = (told.county(target) == told.county(other)) + (
                told.tract(target) == told.tract(other)
            )
            kinds.add((other in selected, near))
    assert kinds == {(chosen, near) for chosen in (True, False) for near in (0, 1, 2)}
    assert alone


# -- what must hold whatever is drawn --------------------------------------------------------


@pytest.mark.parametrize("ranking", ["selected-first", "closeness-first"])
@pytest.mark.parametrize("rate", ["1/50", "1/10", "1/2", "99/100"])
def test_every_swap_keeps_what_it_must(town_of, rate, ranking):
    census = town_of("two states")
    prepared = public_docs(census, rate=rate, ranking=ranking).prepare(census)
    households, imputation = prepared.households, prepared.imputation
    everybody = np.arange(households.size)
    for seed in range(5):
        swap = public_docs_pass.pair(prepared, trial(seed))
        partner, moved = swap.partner, np.flatnonzero(swap.partner != everybody)
        assert (partner[partner] == everybody).all()
        assert set(moved.tolist()) == {*swap.targets.tolist(), *partner[swap.targets].tolist()}
        assert moved.size == 2 * swap.targets.size
        assert (households.stratum[partner] == households.stratum).all()
        assert (households.leave[partner[moved]] != households.leave[moved]).all()
        assert not imputation.wholly[moved].any()
        assert not imputation.wholly[swap.without_partner].any()
        for first, last in zip(households.offsets, households.offsets[1:], strict=False):
            inside = int(((moved >= first) & (moved < last)).sum())
            cap = 2 * int(Fraction(rate) * int(last - first) / 2)
            assert inside == cap if rate in ("1/50", "1/10") else inside <= cap
    assert imputation.wholly.any()


@pytest.mark.parametrize("rate", ["1/10", "1/2"])
def test_declared_invariants_hold_and_the_method_is_named(town_of, engine, tmp_path, rate):
    census = town_of("two states")
    mechanism_made = public_docs(census, rate=rate)
    release = protect(mechanism_made, census, trial(1), tmp_path / "release")
    released = release.microdata(engine)
    differing = check_invariants(release.specification, census, released)
    assert len(differing) == 3
    assert not any(differing.values()), differing
    assert mechanism_made.outcome(released) != mechanism_made.outcome(census)
    budget = release.specification.budget
    assert isinstance(budget.amount, NoFiniteBudget)
    claim = "from public documents, not the Bureau's algorithm"
    assert any(claim in condition for condition in budget.conditions)
    assert claim in released.note
    assert "Simulated" in released.note
    assert claim in module.__doc__.replace("From", "from")


def imputed_wholly(made, census: Census) -> Counter:
    """Return how often each record of a household imputed wholly occurs in each block."""
    prepared = made.prepare(census)
    stays = set(prepared.households.unit_id[prepared.imputation.wholly].tolist())
    rows = census.frame("units", ["unit_id", "block"]).join(unit_records(census), on="unit_id")
    listed = census.engine.rows(rows.select("unit_id", "block", "record"))
    return Counter((block, record) for unit, block, record in listed if unit in stays)


def test_households_imputed_wholly_stay_and_the_promise_says_so(town_of, engine, tmp_path):
    census = town_of("two states")
    swapping = public_docs(census, rate="1/2")
    release = protect(swapping, census, trial(1), tmp_path / "release")
    stay = imputed_wholly(swapping, census)
    assert stay
    assert imputed_wholly(swapping, release.microdata(engine)) == stay
    told = (
        "complete records of households imputed wholly (imputed: 1, of the unit or of every "
        "member), in every block"
    )
    assert f"also exact: {told}" in release.specification.budget.conditions
    assert told in release.specification.describe()
    assert told in swapping.public_facts()["exact"]


@pytest.mark.parametrize(
    ("imputed", "told"),
    [
        (None, None),
        ({"tenure": ["3", "4"]}, "(tenure: 3, 4, of the unit)"),
        ({"imputed": ["1"], "hispanic": ["2"]}, "(imputed: 1; hispanic: 2, of every member)"),
        ({"tenure": ["3"], "hispanic": ["2"]}, None),  # no table has both: nobody is
    ],
)
def test_who_is_imputed_wholly_is_told_by_the_columns(town_of, imputed, told):
    found = public_docs(town_of("small"), imputed=imputed).also_exact()
    assert len(found) == (told is not None)
    assert all(told in text for text in found)


def test_rows_seeds_and_threads(engine, tmp_path):
    town = TOWNS["few blocks"]
    census = census_of(engine, town)
    runs = {}
    for name, seed, threads in (("one", 5, 1), ("again", 5, 2), ("other", 6, 1)):
        protect(public_docs(census), census, trial(seed), tmp_path / name, threads=threads)
        runs[name] = folder_bytes(tmp_path / name)
    order = np.random.default_rng(1).permutation(len(town.houses) + 3)
    shuffled = census_of(Engine(threads=2), town, order)
    protect(public_docs(shuffled), shuffled, trial(5), tmp_path / "shuffled")
    assert runs["one"] == runs["again"] == folder_bytes(tmp_path / "shuffled")
    assert runs["one"] != runs["other"]


def test_replicates_differ(town_of):
    census = town_of("few blocks")
    prepared = public_docs(census).prepare(census)
    one, two = (public_docs_pass.pair(prepared, trial(1), replicate) for replicate in (0, 1))
    assert (one.partner != two.partner).any()


# -- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rate": "0"}, "rate"),
        ({"rate": "1"}, "rate"),
        ({"rate": 0.1}, "exact"),
        ({"match": ["adult"]}, "Did you mean 'adults'"),
        ({"races": ["members_whit"]}, "Did you mean 'members_white'"),
        ({"unique_on": ["colour"]}, "unique_on"),
        ({"unique_area": "parish"}, "unique_area"),
        ({"near": ["county", "tract"]}, "smallest to the largest"),
        ({"near": ["nowhere"]}, "near"),
        ({"unique_race": "1/2"}, "unique_race"),
        ({"block_imputation": "2"}, "block_imputation"),
        ({"own_imputation": "-1"}, "own_imputation"),
        ({"block_size": -1}, "block_size"),
        ({"imputed": {"impute": ["1"]}}, "Did you mean 'imputed'"),
        ({"ranking": "at-random"}, "ranking"),
        ({"leave": "state"}, "leave"),
        ({"blocksize": 1}, "Did you mean 'block_size'"),
    ],
)
def test_bad_parameters_give_one_clear_error(town_of, parameters, message):
    census = town_of("small")
    with pytest.raises(BadConfig, match=message) as refused:
        public_docs(census, **parameters)
    assert len(refused.value.problems) == 1


def test_a_census_without_partners_or_columns_is_refused(engine, tmp_path):
    alike = [replace(h, block=0) for h in TOWNS["small"].houses]
    census = town_census(engine, replace(TOWNS["small"], houses=tuple(alike)))
    with pytest.raises(BadInput, match="no household has a possible partner"):
        public_docs(census).check(census)
    census = town_census(engine, TOWNS["small"])
    with pytest.raises(BadInput, match=r"units\.imputed"):
        public_docs(census, unique_on=["imputed"]).check(census)


def test_a_census_without_points_will_do(town_of, tmp_path):
    census = town_of("small")
    reports = {}
    for name, geography in (
        ("with", census.geography),
        ("without", census.geography.drop("latitude", "longitude")),
    ):
        there = replace(census, geography=geography)
        public_docs(there).check(there)
        public_docs(there).draw(there, trial(1), tmp_path / name)
        reports[name] = json.loads((tmp_path / name / "internal.json").read_text())
    told = reports["with"].pop("kilometres_between_partners")
    assert told["mean"] > 0
    assert reports["without"].pop("kilometres_between_partners") is None
    assert "latitude" in reports["without"].pop("kilometres_missing")
    assert reports["with"] == reports["without"]
