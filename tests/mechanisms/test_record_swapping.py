"""Record swapping level by level, against a slow re-statement in plain Python.

`restate` reads the same words household by household and looks for donors by going through
all households; the real thing must agree with it to the last pair.
"""

import functools
import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.census import Census, Recode, load_schema
from discreet.config import BadConfig
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism, protect
from discreet.mechanisms.swapping import record_pass
from discreet.mechanisms.swapping.record import weakest_of
from discreet.noise import key_of, trial
from discreet.products import check_invariants
from discreet.spec import NoFiniteBudget
from listed_towns import in_counties
from towns import House, Town, make_town, town_census
from worlds import folder_bytes

USUAL = {
    "rate": "1/10",
    "within": "state",
    "hierarchy": ["county", "tract"],
    "similar": [["size", "adults", "county"], ["size", "adults"], ["size"]],
    "risk_variables": ["race_group", "hispanic"],
    "k_anonymity": 3,
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


def made(census: Census, **parameters):
    return mechanism("record-swapping", census.schema, {**USUAL, **parameters})


TOWNS = {
    "two states": in_counties(make_town(500, states=2, tracts=6, blocks=6, seed=1), 3),
    "one county": make_town(150, tracts=3, blocks=4, seed=2),
    "small": in_counties(make_town(60, tracts=4, blocks=2, seed=3), 2),
}


@pytest.fixture(scope="module")
def census_of(engine: Engine) -> Callable[[str], Census]:
    """Return towns by name as censuses, each made once."""
    return functools.cache(lambda name: town_census(engine, TOWNS[name]))


# -- the re-statement ------------------------------------------------------------------------


@dataclass
class Turn:
    target: int
    partner: int
    level: str
    profile: int
    must: bool


@dataclass
class Restated:
    turns: list[Turn] = field(default_factory=list)
    alone: set[int] = field(default_factory=set)
    must: dict[int, str] = field(default_factory=dict)

    @property
    def swapped(self) -> set[int]:
        return {h for turn in self.turns for h in (turn.target, turn.partner)}


def restate(town: Town, state: str, seed: int, parameters: dict) -> Restated:
    """Swap one state, step by step as the module says."""
    houses = [h for h in town.houses if town.blocks[h.block][0] == state]
    everybody = range(len(houses))
    told, swapped = Restated(), set()

    def words(what: str, length: int) -> list[int]:
        start = np.zeros(1, dtype=np.int64)
        tape = trial(seed).words(
            f"record-swap-{what}", key_of([state], ["0"]), start, np.array([length])
        )
        return tape.tolist()

    def area(i: int, level: str) -> str:
        tract = town.blocks[houses[i].block][1]
        return {"county": tract[:5], "tract": tract, "block": f"{houses[i].block:06d}"}[level]

    def value(i: int, name: str):
        house: House = houses[i]
        return area(i, name) if name in ("county", "tract") else getattr(house, name)

    def records(i: int) -> list:
        if parameters["risk_of"] == "units":
            return [(houses[i].size, houses[i].hispanics)]
        return [(race, hispanic) for _, race, hispanic in houses[i].members]

    hierarchy = parameters["hierarchy"]
    alike = {}
    for level in hierarchy:
        counts = Counter((area(i, level), r) for i in everybody for r in records(i))
        for i in everybody:
            alike[level, i] = min(counts[area(i, level), r] for r in records(i))
            if alike[level, i] < parameters["k_anonymity"]:
                told.must.setdefault(i, level)

    wanted = Fraction(parameters["rate"]) * len(houses) / 2
    coin, offset = words("rounding", 2)
    pairs = math.floor(wanted)
    if parameters["cap"] == "none" and coin < 2**63:
        pairs = math.ceil(wanted)
    most = pairs if parameters["cap"] == "exact" else len(houses)
    quota, reached = Counter(), 0
    homes = Counter(area(i, hierarchy[-1]) for i in everybody)
    before = 0
    for home in sorted(homes):
        before += homes[home]
        upto = (before * pairs + (offset * len(houses) >> 64)) // len(houses)
        quota[home], reached = upto - reached, upto

    def visit(i: int, order: list[int], level: str, must: bool) -> None:
        for number, profile in enumerate(parameters["similar"]):
            for other in order:
                if (
                    other not in swapped
                    and area(other, level) != area(i, level)
                    and all(value(other, name) == value(i, name) for name in profile)
                ):
                    swapped.update((i, other))
                    quota[area(i, hierarchy[-1])] -= 1
                    told.turns.append(Turn(i, other, level, number, must))
                    return
        told.alone.add(i)

    for level in hierarchy:
        drawn = words(level, len(houses))

        def arrival(i: int, drawn: list[int] = drawn, level: str = level) -> float:
            return -math.log(((drawn[i] >> 11) + 0.5) / 2**53) * alike[level, i]

        order = sorted(everybody, key=arrival)
        lowest = level == hierarchy[-1]
        for i in order:
            due = i in told.must if lowest else told.must.get(i) == level
            if due and i not in swapped and len(told.turns) < most:
                visit(i, order, level, True)
        for respect in [True] + [False] * (parameters["cap"] == "exact"):
            for i in order if lowest else []:
                if i in told.must or i in swapped or len(told.turns) >= most:
                    continue
                if not respect or quota[area(i, level)] > 0:
                    visit(i, order, level, False)
    told.alone -= swapped
    return told


UNITS = {"risk_of": "units", "risk_variables": ["size", "members_hispanic"]}
DEEP = {"hierarchy": ["county", "tract", "block"]}
CASES = {
    "usual": ("two states", {}),
    "nobody must": ("two states", {"k_anonymity": 0}),
    "one is nobody": ("two states", {"k_anonymity": 1}),
    "must, no cap": ("two states", {"k_anonymity": 4, "cap": "none", "rate": "1/100"}),
    "must, cap binds": ("two states", {**DEEP, "rate": "1/50"}),
    "blocks": ("two states", {**DEEP, **UNITS, "cap": "none", "k_anonymity": 2}),
    "one level": ("one county", {"hierarchy": ["tract"], "rate": "1/4"}),
    "one profile": ("one county", {"similar": [["adults", "size"]], "hierarchy": ["block"]}),
    "no way out": ("one county", {"k_anonymity": 6, "rate": "1/2"}),
    "exhausted": ("small", {**UNITS, "rate": "99/100"}),
    "exhausted, no cap": ("small", {**DEEP, "rate": "99/100", "cap": "none"}),
}


def completed(parameters: dict) -> dict:
    return {"risk_of": "persons", "cap": "exact", **USUAL, **parameters}


@pytest.mark.parametrize("case", CASES)
def test_pairs_agree_with_the_restatement(census_of, case):
    name, parameters = CASES[case]
    census = census_of(name)
    prepared = made(census, **parameters).prepare(census)
    households = prepared.households
    for seed in (1, 2, 3):
        swap = record_pass.pair(prepared, trial(seed))
        for a, first in enumerate(households.offsets[:-1].tolist()):
            last = int(households.offsets[a + 1])
            told = restate(TOWNS[name], households.area_codes[a], seed, completed(parameters))
            targets = swap.targets[(swap.targets >= first) & (swap.targets < last)] - first
            assert {(turn.target, turn.partner) for turn in told.turns} == set(
                zip(targets.tolist(), (swap.partner[targets + first] - first).tolist(), strict=True)
            )
            lonely = swap.without_partner
            inside = (lonely >= first) & (lonely < last)
            assert told.alone == set((lonely[inside] - first).tolist())
            assert told.turns


def test_the_restatement_meets_every_branch():
    """Every profile, every level, must and need not, nobody found: all occur."""
    seen, alone = set(), 0
    for name, parameters in CASES.values():
        told = restate(TOWNS[name], "10", 1, completed(parameters))
        seen |= {(turn.level, turn.profile, turn.must) for turn in told.turns}
        alone += len(told.alone)
    assert {level for level, _, _ in seen} == {"county", "tract", "block"}
    assert {(profile, must) for _, profile, must in seen} == {
        (profile, must) for profile in range(3) for must in (True, False)
    }
    assert alone


# -- what must hold whatever is drawn --------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_every_swap_keeps_what_it_must(census_of, case):
    name, parameters = CASES[case]
    census = census_of(name)
    whole = made(census, **parameters)
    prepared = whole.prepare(census)
    households = prepared.households
    everybody = np.arange(households.size)
    for seed in range(5):
        swap = record_pass.pair(prepared, trial(seed))
        partner, moved = swap.partner, np.flatnonzero(swap.partner != everybody)
        assert (partner[partner] == everybody).all()
        assert moved.size == 2 * swap.targets.size
        assert (households.stratum[partner] == households.stratum).all()
        smallest = households.level(whole.hierarchy[-1])
        assert (smallest[partner[moved]] != smallest[moved]).all()
        for first, last in zip(households.offsets, households.offsets[1:], strict=False):
            inside = int(((moved >= first) & (moved < last)).sum())
            cap = 2 * int(whole.rate * int(last - first) / 2)
            if whole.cap == "exact":
                assert inside <= cap
                if not swap.without_partner.size:
                    assert inside == cap


@pytest.mark.parametrize("case", ["usual", "must, no cap", "one profile"])
def test_declared_invariants_hold(census_of, engine, tmp_path, case):
    name, parameters = CASES[case]
    census = census_of(name)
    whole = made(census, **parameters)
    release = protect(whole, census, trial(1), tmp_path / "release")
    released = release.microdata(engine)
    differing = check_invariants(release.specification, census, released)
    assert len(differing) == 3
    assert not any(differing.values()), differing
    assert whole.outcome(released) != whole.outcome(census)
    assert isinstance(release.specification.budget.amount, NoFiniteBudget)
    assert "sdcMicro" in release.specification.budget.conditions[1]


def test_rows_seeds_and_threads(census_of, tmp_path):
    town = TOWNS["one county"]
    census = census_of("one county")
    settings = {"rate": "1/4", "hierarchy": ["tract"]}
    runs = {}
    for name, seed, threads in (("one", 5, 1), ("again", 5, 2), ("other", 6, 1)):
        out = tmp_path / name
        protect(made(census, **settings), census, trial(seed), out, threads=threads)
        runs[name] = folder_bytes(out)
    order = np.random.default_rng(1).permutation(len(town.houses) + 3)
    shuffled = town_census(Engine(threads=2), town, order)
    protect(made(shuffled, **settings), shuffled, trial(5), tmp_path / "shuffled")
    assert runs["one"] == runs["again"] == folder_bytes(tmp_path / "shuffled")
    assert runs["one"] != runs["other"]


# -- risk, levels, caps ----------------------------------------------------------------------


def test_who_must_be_swapped_comes_first(census_of):
    census = census_of("two states")
    prepared = made(census, **DEEP, rate="1/10").prepare(census)
    must = prepared.must < 3
    assert must.sum() > 2 * prepared.allowed.sum()
    for seed in range(5):
        swap = record_pass.pair(prepared, trial(seed))
        assert must[swap.targets].all()
        swapped = swap.partner != np.arange(must.size)
        assert swapped.sum() == 2 * prepared.allowed.sum()
        assert swap.notes["must_be_swapped_but_left"] == int((must & ~swapped).sum()) > 0
        # Largest areas first: of those who must at the first level only such are left as
        # found nobody.
        first = np.flatnonzero((prepared.must == 0) & ~swapped)
        assert set(first.tolist()) <= set(swap.without_partner.tolist())


def test_without_a_cap_everybody_who_must_is_swapped(census_of):
    census = census_of("two states")
    prepared = made(census, **DEEP, rate="1/50", cap="none").prepare(census)
    must = prepared.must < 3
    swap = record_pass.pair(prepared, trial(1))
    swapped = swap.partner != np.arange(must.size)
    assert swapped.sum() > prepared.rate * must.size  # the rate is exceeded
    assert swapped[must].mean() > 0.9
    assert set(np.flatnonzero(must & ~swapped).tolist()) <= set(swap.without_partner.tolist())
    left = swap.notes["must_be_swapped_but_left"]
    assert left == swap.notes["must_be_swapped_but_without_partner"] == (must & ~swapped).sum()


def test_who_is_rare_in_a_county_leaves_it(census_of):
    census = census_of("two states")
    # No profile names a level, so that there is a partner in other counties.
    prepared = made(census, similar=[["size"]], rate="1/2", k_anonymity=5).prepare(census)
    county = prepared.households.level("county")
    rare = prepared.must == 0
    for seed in range(5):
        swap = record_pass.pair(prepared, trial(seed))
        # At the first level nobody else is a target: the first targets are exactly those.
        number = int(rare[swap.targets].sum())
        first = swap.targets[:number]
        assert rare[first].all()
        assert (county[first] != county[swap.partner[first]]).all()
        assert number


def test_the_first_profile_is_tried_first(engine):
    town = TOWNS["one county"]
    census = town_census(engine, town)
    strict = made(census, similar=[["size", "adults"], ["size"]], hierarchy=["block"])
    prepared = strict.prepare(census)
    adults = prepared.households.columns["adults"]
    swap = record_pass.pair(prepared, trial(2))
    same = adults[swap.targets] == adults[swap.partner[swap.targets]]
    assert swap.notes["pairs_by_profile_1"] == same.sum()
    assert swap.notes["pairs_by_profile_2"] == (~same).sum()
    loose = made(census, similar=[["size"], ["size", "adults"]], hierarchy=["block"])
    swap = record_pass.pair(loose.prepare(census), trial(2))
    assert swap.notes["pairs_by_profile_2"] == 0
    assert (adults[swap.targets] != adults[swap.partner[swap.targets]]).any()


def test_the_rare_are_taken_more_often(census_of):
    census = census_of("two states")
    prepared = made(census, k_anonymity=0).prepare(census)
    rare = 1 / prepared.alike[-1]
    # If risk did nothing, each win were a fair coin: 35 of 40 happen by chance with
    # probability below 1e-6.
    wins = 0
    for replicate in range(40):
        swap = record_pass.pair(prepared, trial(4), replicate)
        wins += rare[swap.targets].mean() > rare.mean()
    assert wins >= 35


def test_members_and_units_are_counted_apart(engine):
    town = TOWNS["two states"]
    census = town_census(engine, town)
    houses = {house.unit_id: house for house in town.houses}
    prepared = made(census).prepare(census)
    order = [houses[unit] for unit in prepared.households.unit_id.tolist()]
    counts = Counter(
        (town.blocks[h.block][1][:5], race, hispanic)
        for h in order
        for _, race, hispanic in h.members
    )  # residents of collective quarters are in nobody's household
    for house, alike in zip(order, prepared.alike[0].tolist(), strict=True):
        county = town.blocks[house.block][1][:5]
        assert alike == min(counts[county, race, hisp] for _, race, hisp in house.members)
    prepared = made(census, **UNITS).prepare(census)
    counts = Counter((town.blocks[h.block][1], h.size, h.hispanics) for h in order)
    assert prepared.alike[1].tolist() == [
        counts[town.blocks[h.block][1], h.size, h.hispanics] for h in order
    ]


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=8),
    share=st.fractions(0, 1),
)
def test_pairs_are_spread_without_bias(sizes, share):
    total = sum(sizes)
    pairs = int(share * total / 2)
    sums = np.zeros(len(sizes), dtype=np.int64)
    for offset in range(total):  # every way the rounding can fall, each equally likely
        given_out = record_pass.spread(pairs, np.array(sizes), -(-offset * 2**64 // total))
        assert given_out.sum() == pairs
        for number, size in zip(given_out.tolist(), sizes, strict=True):
            assert abs(number - Fraction(pairs * size, total)) < 1
        sums += given_out
    assert sums.tolist() == [pairs * size for size in sizes]


def test_the_internal_report_tells_what_was_done(census_of, tmp_path):
    census = census_of("two states")
    made(census).draw(census, trial(1), tmp_path)
    report = json.loads((tmp_path / "internal.json").read_text())
    assert (tmp_path / "internal.json").stat().st_mode & 0o077 == 0
    notes = report["notes"]
    assert notes["must_be_swapped_by_tract"] > 0
    assert sum(notes[f"pairs_by_profile_{n}"] for n in (1, 2, 3)) == report["targets"]
    assert report["rate_realised"] <= 0.1


# -- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rate": "0"}, "rate"),
        ({"rate": "1"}, "rate"),
        ({"rate": 0.5}, "exact"),
        ({"hierarchy": []}, "hierarchy"),
        ({"hierarchy": ["tract", "county"]}, "largest to the smallest"),
        ({"hierarchy": ["tract", "tract"]}, "each once"),
        ({"hierarchy": ["state"]}, "hierarchy"),
        ({"hierarchy": ["parish"]}, "hierarchy"),
        ({"similar": []}, "similar"),
        ({"similar": [[]]}, "similar"),
        ({"similar": ["size"]}, "similar"),
        ({"similar": [["sizes"]]}, "Did you mean 'size'"),
        ({"similar": [["size", "size"]]}, "twice"),
        ({"risk_variables": []}, "risk_variables"),
        ({"risk_variables": ["size"]}, "persons have no column 'size'"),
        ({"risk_of": "units", "risk_variables": ["race_group"]}, "units have no column"),
        ({"k_anonymity": -1}, "k_anonymity"),
        ({"cap": "some"}, "cap"),
        ({"match": ["adults"]}, "leave it out"),
        ({"leave": "block"}, "leave it out"),
        ({"within": "block"}, "within"),
        ({"within": "parish"}, "within must be one of"),
    ],
)
def test_bad_parameters_give_one_clear_error(census_of, parameters, message):
    census = census_of("small")
    with pytest.raises(BadConfig, match=message) as refused:
        made(census, **parameters)
    assert len(refused.value.problems) == 1


def test_a_missing_parameter_is_named(census_of):
    census = census_of("small")
    given_ones = {name: value for name, value in USUAL.items() if name != "similar"}
    with pytest.raises(BadConfig, match="similar: Field required"):
        mechanism("record-swapping", census.schema, given_ones)


def test_parameters_read_back(census_of):
    census = census_of("small")
    whole = made(census)
    assert whole.match == ("size",)
    assert whole.leave == "tract"
    assert mechanism("record-swapping", census.schema, whole.parameters()) == whole


def test_a_census_without_partners_or_columns_is_refused(engine):
    town = TOWNS["small"]
    alone = replace(town, houses=tuple(replace(h, block=0) for h in town.houses))
    census = town_census(engine, alone)
    with pytest.raises(BadInput, match="no household has a possible partner"):
        made(census).check(census)
    census = town_census(engine, town)
    with pytest.raises(BadInput, match=r"persons\.imputed"):
        made(census, risk_variables=["imputed"]).check(census)


def test_the_weakest_profile_is_what_all_pairs_agree_on():
    """Partners of one profile have one size, those of the other one class of sizes."""
    schema = load_schema("us-decennial")
    assert weakest_of([["size"], ["size_class"]], schema) == ("size_class",)
    assert weakest_of([["tenure", "size_class"], ["tenure", "size"]], schema) == (
        "tenure",
        "size_class",
    )
    assert weakest_of([["size", "tract"], ["county"], ["block_group"]], schema) == ("county",)


#: Pairs agree on more than any name that the profiles have in common says.
HIDDEN = {
    "nothing at all": [["size"], ["tenure"]],
    "areas in areas": [["tract", "size"], ["block_group", "owner"]],
    "two recodes": [["size_fine"], ["size_coarse"]],
    "members": [["adults", "minors"], ["size"]],
}


@pytest.mark.parametrize("why", HIDDEN)
def test_profiles_without_a_weakest_one_are_refused(census_of, why):
    census = census_of("small")
    recodes = {
        "size_fine": Recode(of="size", bins={"1": (1, 1), "2": (2, 2), "3+": (3, None)}),
        "size_coarse": Recode(of="size", bins={"1-2": (1, 2), "3+": (3, None)}),
        "owner": Recode(of="tenure", groups={"yes": ["1", "2"]}, otherwise="no"),
    }
    computed = {**census.schema.computed_units, **recodes}
    schema = census.schema.model_copy(update={"computed_units": computed})
    with pytest.raises(BadConfig, match="must follow from each of the others"):
        made(replace(census, schema=schema), similar=HIDDEN[why])
