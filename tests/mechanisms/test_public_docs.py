"""Household swapping from public documents, against a slow re-statement in plain Python.

`restate` reads the same words household by household, with fractions and lists; the real
thing must agree with it to the last pair.
"""

import functools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import narwhals as nw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.census import Census
from discreet.config import BadConfig
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism, protect
from discreet.mechanisms.swapping import donors, public_docs
from discreet.noise import key_of, trial
from discreet.products import check_invariants
from discreet.spec import NoFiniteBudget
from towns import House, Town, make_town, town_census
from worlds import folder_bytes

#: All factors off; each test of one factor switches on that one.
NEUTRAL = {
    "block_size": 0,
    "unique_race": "1",
    "block_imputation": "0",
    "unique_area": None,
    "own_imputation": "0",
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


def in_counties(town: Town, tracts: int) -> Town:
    """Return the town with so many tracts in each county."""
    blocks = []
    for state, tract, latitude, longitude in town.blocks:
        county = 1 + 2 * (int(tract[5:]) // tracts)
        blocks.append((state, f"{state}{county:03d}{tract[5:]}", latitude, longitude))
    return replace(town, blocks=tuple(blocks))


def owns(house: House) -> bool:
    return house.unit_id % 3 > 0


def wholly(house: House) -> bool:
    """Tell whose unit is imputed."""
    return house.unit_id % 11 == 0


def partly(house: House) -> bool:
    """Tell where all members but the householder are imputed, or the only member is."""
    return house.unit_id % 5 == 0


def imputed_members(house: House) -> int:
    if wholly(house):
        return house.size
    return max(house.size - 1, 1) if partly(house) else 0


def census_of(
    engine: Engine, town: Town, order: np.ndarray | None = None, flags: tuple = ("units", "persons")
) -> Census:
    """Return the town with tenure, and with flags of imputation in some tables."""
    census = town_census(engine, town, order)
    home = nw.col("kind") == "occupied"
    owner = nw.when(home & (nw.col("unit_id") % 3 > 0)).then(nw.lit("1"))
    tenant = nw.when(home & (nw.col("unit_id") % 3 == 0)).then(nw.lit("3"))
    units = census.table("units").with_columns(tenure=nw.coalesce(owner, tenant))
    persons = census.table("persons")
    if "units" in flags:
        unit = home & (nw.col("unit_id") % 11 == 0)
        units = units.with_columns(imputed=nw.when(unit).then(nw.lit("1")).otherwise(nw.lit("0")))
    if "persons" in flags:
        single = [house.unit_id for house in town.houses if house.size == 1]
        some = (nw.col("unit_id") % 5 == 0) & (
            (nw.col("relationship") != "20") | nw.col("unit_id").is_in(single)
        )
        person = some | (nw.col("unit_id") % 11 == 0)
        persons = persons.with_columns(
            imputed=nw.when(person).then(nw.lit("1")).otherwise(nw.lit("0"))
        )
    return replace(census, units=engine.materialise(units), persons=engine.materialise(persons))


def made(census: Census, **parameters):
    return mechanism("public-docs-2010", census.schema, {"rate": "1/10", **parameters})


TOWNS = {
    "two states": in_counties(make_town(700, states=2, tracts=6, blocks=8, seed=1), 3),
    "few blocks": in_counties(make_town(300, tracts=4, blocks=2, seed=2), 2),
    "small": in_counties(make_town(80, tracts=4, blocks=3, seed=3), 2),
    "factors": in_counties(make_town(600, tracts=8, blocks=8, seed=11), 4),
}


@pytest.fixture(scope="module")
def town_of(engine: Engine) -> Callable[[str], Census]:
    """Return towns by name as censuses, each made once."""
    return functools.cache(lambda name: census_of(engine, TOWNS[name]))


# -- the re-statement ------------------------------------------------------------------------


class Restated:
    """One state, worked by hand with the default parameters."""

    def __init__(self, town: Town, state: str, **parameters) -> None:
        self.town = town
        self.houses = [h for h in town.houses if town.blocks[h.block][0] == state]
        self.state = state
        self.parameters = parameters
        self.members = Counter()
        self.neighbours = defaultdict(list)
        for house in self.houses:
            self.neighbours[house.block].append(house)
            self.members.update((house.block, race) for _, race, _ in house.members)
        for block, residents in town.residents.items():
            self.members[block, "01"] += residents

    def tract(self, i: int) -> str:
        return self.town.blocks[self.houses[i].block][1]

    def county(self, i: int) -> str:
        return self.tract(i)[:5]

    def never(self, i: int) -> bool:
        return imputed_members(self.houses[i]) >= self.houses[i].size

    def weight(self, i: int) -> Fraction:
        house = self.houses[i]
        neighbours = self.neighbours[house.block]
        if self.never(i):
            return Fraction(0)
        rate = Fraction(sum(map(imputed_members, neighbours)), sum(h.size for h in neighbours))
        most = self.parameters.get("most_imputed")
        if most is not None and rate > Fraction(most):
            return Fraction(0)
        share = Fraction(imputed_members(house), house.size)
        race = 4 if self.lonely_race(house) else 1
        return Fraction(race, len(neighbours)) * (1 - rate) * (1 - share)

    def lonely_race(self, house: House) -> bool:
        own = Counter(race for _, race, _ in house.members)
        return any(self.members[house.block, race] == own[race] for race in own)

    def values(self, i: int) -> tuple:
        return self.county(i), self.houses[i].races, self.houses[i].hispanics

    def words(self, what: str, seed: int) -> list[int]:
        keys = key_of([self.state], ["0"])
        start, length = np.zeros(1, dtype=np.int64), np.array([len(self.houses)])
        return trial(seed).words(f"public-docs-swap-{what}", keys, start, length).tolist()

    def swap(self, seed: int, rate: Fraction) -> tuple[list[tuple[int, int]], list[int], set[int]]:
        """Return pairs of target and partner in order, who found nobody, and the selected."""
        everybody = range(len(self.houses))
        select, ties = self.words("select", seed), self.words("ties", seed)
        weight = [self.weight(i) for i in everybody]
        alike_in_county = Counter(map(self.values, everybody))
        unique = [weight[i] > 0 and alike_in_county[self.values(i)] == 1 for i in everybody]

        def arrival(i: int) -> float:
            return -math.log(((select[i] >> 11) + 0.5) / 2**53) / float(weight[i])

        drawn = sorted(
            (i for i in everybody if weight[i]), key=lambda i: (not unique[i], arrival(i))
        )
        most = int(rate * len(self.houses) / 2)
        selected = set(drawn[: 2 * most])

        def preference(target: int, other: int) -> tuple:
            near = 2
            if self.county(target) == self.county(other):
                near = 1
            if self.tract(target) == self.tract(other):
                near = 0
            first, second = other not in selected, near
            if self.parameters.get("ranking") == "closeness-first":
                first, second = second, first
            return first, second, not unique[other], -weight[other], ties[other]

        def alike(i: int) -> tuple:
            return self.houses[i].adults, self.houses[i].size, owns(self.houses[i])

        pairs: list[tuple[int, int]] = []
        alone, swapped = [], set()
        for target in drawn:
            if len(pairs) == most:
                break
            if target in swapped:
                continue
            possible = [
                other
                for other in everybody
                if other not in swapped
                and not self.never(other)
                and alike(other) == alike(target)
                and self.houses[other].block != self.houses[target].block
            ]
            if not possible:
                alone.append(target)
                continue
            partner = min(possible, key=lambda other: preference(target, other))
            pairs.append((target, partner))
            swapped |= {target, partner}
        return pairs, alone, selected


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
    prepared = made(census, rate=rate, **parameters).prepare(census)
    households = prepared.households
    for seed in (1, 2):
        swap = public_docs.pair(prepared, trial(seed))
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
    prepared = made(census, rate=rate, ranking=ranking).prepare(census)
    households, imputation = prepared.households, prepared.imputation
    everybody = np.arange(households.size)
    for seed in range(5):
        swap = public_docs.pair(prepared, trial(seed))
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
    mechanism_made = made(census, rate=rate)
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
    assert claim in public_docs.__doc__.replace("From", "from")


def test_rows_seeds_and_threads(engine, tmp_path):
    town = TOWNS["few blocks"]
    census = census_of(engine, town)
    runs = {}
    for name, seed, threads in (("one", 5, 1), ("again", 5, 2), ("other", 6, 1)):
        protect(made(census), census, trial(seed), tmp_path / name, threads=threads)
        runs[name] = folder_bytes(tmp_path / name)
    order = np.random.default_rng(1).permutation(len(town.houses) + 3)
    shuffled = census_of(Engine(threads=2), town, order)
    protect(made(shuffled), shuffled, trial(5), tmp_path / "shuffled")
    assert runs["one"] == runs["again"] == folder_bytes(tmp_path / "shuffled")
    assert runs["one"] != runs["other"]


def test_replicates_differ(town_of):
    census = town_of("few blocks")
    prepared = made(census).prepare(census)
    one, two = (public_docs.pair(prepared, trial(1), replicate) for replicate in (0, 1))
    assert (one.partner != two.partner).any()


# -- selection -------------------------------------------------------------------------------


def test_first_arrivals_are_in_proportion_to_weight():
    weight = np.array([1.0, 2.0, 0.0, 3.0, 4.0])
    rounds = 20_000
    words = np.random.default_rng(1).integers(0, 2**64, rounds * 5, dtype=np.uint64)
    times = donors.arrivals(words, np.tile(weight, rounds)).reshape(rounds, 5)
    counts = np.bincount(times.argmin(axis=1), minlength=5)
    assert counts[2] == 0
    assert np.isinf(times[:, 2]).all()
    expected = rounds * weight[weight > 0] / 10
    # False alarm 1e-6: chi-square with three degrees of freedom.
    assert (((counts[weight > 0] - expected) ** 2) / expected).sum() < 30.7


def selected_rows(prepared: public_docs.Prepared, replicate: int) -> np.ndarray:
    area = prepared.households.level("state")
    order = public_docs.draw_order(prepared, area, trial(9), replicate)
    return order[: 2 * int(prepared.allowed.max())]


def wins(town_of, factor: dict, value, rate: str = "1/5") -> int:
    """Return in how many of 40 draws the factor raises the mean of `value` of the selected."""
    census = town_of("factors")
    off = made(census, rate=rate, **NEUTRAL).prepare(census)
    on = made(census, rate=rate, **{**NEUTRAL, **factor}).prepare(census)
    values = value(on)
    return sum(
        values[selected_rows(on, 2 * n)].mean() > values[selected_rows(off, 2 * n + 1)].mean()
        for n in range(40)
    )


def small_block(prepared: public_docs.Prepared) -> np.ndarray:
    place = prepared.households.place
    return -np.bincount(place)[place].astype(float)


def little_imputed_around(prepared: public_docs.Prepared) -> np.ndarray:
    place = prepared.households.place
    size = prepared.households.columns["size"]
    rate = np.bincount(place, weights=prepared.imputation.members) / np.bincount(place, size)
    return -rate[place]


def little_imputed_itself(prepared: public_docs.Prepared) -> np.ndarray:
    return -(prepared.imputation.members / prepared.households.columns["size"])


def lonely_race(prepared: public_docs.Prepared) -> np.ndarray:
    told = Restated(TOWNS["factors"], "10")
    return np.array([told.lonely_race(house) for house in told.houses], dtype=float)


FACTORS = {
    "A small blocks": ({"block_size": 1}, small_block),
    "B a race of its own": ({"unique_race": "4"}, lonely_race),
    "C little imputation around": ({"block_imputation": "1"}, little_imputed_around),
    "C threshold": ({"most_imputed": "1/5"}, little_imputed_around),
    "E little imputation at home": ({"own_imputation": "1"}, little_imputed_itself),
}


@pytest.mark.parametrize("name", FACTORS)
def test_each_factor_moves_selection_its_way(town_of, name):
    factor, value = FACTORS[name]
    # If the factor did nothing each win were a fair coin: 35 of 40 happen by chance with
    # probability below 1e-6.
    assert wins(town_of, factor, value) >= 35


@pytest.mark.parametrize("name", FACTORS)
def test_without_the_factor_nothing_moves(town_of, name):
    _, value = FACTORS[name]
    # A fair coin: fewer than 5 or more than 35 of 40 happen with probability below 1e-6.
    assert 5 <= wins(town_of, {}, value) <= 35


def test_neutral_factors_weigh_all_the_same(town_of):
    census = town_of("two states")
    prepared = made(census, **NEUTRAL).prepare(census)
    assert set(prepared.selection.weight[~prepared.imputation.wholly]) == {1.0}
    assert not prepared.selection.weight[prepared.imputation.wholly].any()
    assert not prepared.selection.always.any()


def test_the_unique_are_always_selected_while_the_cap_allows(town_of):
    census = town_of("two states")
    prepared = made(census, rate="1/5", unique_on=["members_black", "size"]).prepare(census)
    always = prepared.selection.always
    assert 0 < always.sum() <= prepared.allowed[prepared.allowed > 0].min()
    for seed in range(5):
        swap = public_docs.pair(prepared, trial(seed))
        met = swap.partner != np.arange(always.size)
        met[swap.without_partner] = True
        assert met[always].all()


def test_the_unique_come_first_if_the_cap_does_not_allow_all(town_of):
    census = town_of("two states")
    prepared = made(census, rate="1/50", unique_area="tract").prepare(census)
    always = prepared.selection.always
    for seed in range(5):
        swap = public_docs.pair(prepared, trial(seed))
        assert always[swap.targets].all()
        assert swap.notes["always_selected_but_not_swapped"] > 0


@pytest.mark.parametrize("flags", [(), ("units",), ("persons",), ("units", "persons")])
def test_what_is_known_of_imputation(engine, tmp_path, flags):
    town = TOWNS["few blocks"]
    census = census_of(engine, town, flags=flags)
    whole = made(census, rate="99/100")
    prepared = whole.prepare(census)
    houses = {house.unit_id: house for house in town.houses}
    told = [houses[unit] for unit in prepared.households.unit_id.tolist()]
    expected = []
    for house in told:
        unit = "units" in flags and wholly(house)
        members = 0
        if "persons" in flags:
            members = imputed_members(house)
        expected.append((house.size if unit else members, unit or members == house.size))
    assert expected == list(
        zip(prepared.imputation.members.tolist(), prepared.imputation.wholly.tolist(), strict=True)
    )
    whole.draw(census, trial(3), tmp_path)
    report = json.loads((tmp_path / "internal.json").read_text())
    unknown = {
        table: report["notes"][f"imputation_of_{table}_unknown"] for table in ("units", "persons")
    }
    assert unknown == {
        table: 0 if table in flags else len(town.houses) for table in ("units", "persons")
    }
    assert report["notes"]["imputed_wholly"] == sum(stays for _, stays in expected)


@pytest.mark.parametrize("residents", [30, 0])
def test_collective_quarters_count_as_neighbours(engine, residents):
    """A race found in the quarters of the block is not found nowhere else."""
    houses = list(TOWNS["few blocks"].houses)
    here = [i for i, house in enumerate(houses) if house.block == 0]
    assert len(here) > 1
    for i in here:
        race = "01" if i == here[0] else "02"
        members = tuple((age, race, hispanic) for age, _, hispanic in houses[i].members)
        houses[i] = replace(houses[i], members=members)
    town = replace(TOWNS["few blocks"], houses=tuple(houses), residents={0: residents, 1: 1})
    census = census_of(engine, town)
    households = made(census).read(census)
    special = public_docs.factors.unique_race(census, households, ("members_white",))
    assert special[here[0]] == (residents == 0)
    assert not special[here[1:]].any()


# -- the lists -------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 40),
    areas=st.integers(1, 5),
    families=st.integers(1, 3),
    bound=st.booleans(),
)
def test_lists_find_what_a_scan_finds(seed, n, areas, families, bound):
    random = np.random.default_rng(seed)
    leave = random.integers(0, areas, n)
    area = random.integers(0, 2, n)
    made_of = []
    for _ in range(families):
        group = 2 * random.integers(0, 3, n) + area
        made_of.append((group, random.permutation(n)[: random.integers(0, n + 1)]))
    visited = random.integers(0, n, 2 * n)
    pairs, quota = random.integers(0, n, 2), random.integers(-1, 3, areas)

    free, left, wanted = [True] * n, pairs.tolist(), quota.tolist()
    expected, alone = [], []
    for t in visited.tolist():
        if not free[t] or not left[area[t]] or (bound and wanted[leave[t]] <= 0):
            continue
        choices = [
            (f, h)
            for f, (group, ranked) in enumerate(made_of)
            for h in ranked.tolist()
            if free[h] and group[h] == group[t] and leave[h] != leave[t]
        ]
        if not choices:
            alone.append(t)
            continue
        f, h = choices[0]
        expected.append((t, h, f))
        free[t] = free[h] = False
        left[area[t]] -= 1
        wanted[leave[t]] -= 1

    state = donors.Free(np.ones(n, dtype=bool), area, pairs, leave, quota)
    found = donors.pair_up(visited, donors.line_up(made_of), leave, state, bound)
    assert list(zip(*(part.tolist() for part in found[:3]), strict=True)) == expected
    assert found.alone.tolist() == alone
    assert state.free.tolist() == free


def test_a_block_that_holds_nearly_everybody_takes_no_longer():
    """Planted: looking past the own block again and again would take hours."""
    n = 300_000
    leave = np.zeros(n, dtype=np.int64)
    leave[-10:] = 1
    everybody, group = np.arange(n), np.zeros(n, dtype=np.int64)
    state = donors.Free(
        np.ones(n, dtype=bool), group, np.array([n]), group, np.zeros(1, dtype=np.int64)
    )
    found = donors.pair_up(everybody, donors.line_up([(group, everybody)]), leave, state, False)
    assert found.targets.size == 10
    assert found.alone.size == n - 20


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
        made(census, **parameters)
    assert len(refused.value.problems) == 1


def test_a_census_without_partners_or_columns_is_refused(engine, tmp_path):
    alike = [replace(h, block=0) for h in TOWNS["small"].houses]
    census = town_census(engine, replace(TOWNS["small"], houses=tuple(alike)))
    with pytest.raises(BadInput, match="no household has a possible partner"):
        made(census).check(census)
    census = town_census(engine, TOWNS["small"])
    with pytest.raises(BadInput, match=r"units\.imputed"):
        made(census, unique_on=["imputed"]).check(census)


def test_a_census_without_points_will_do(town_of, tmp_path):
    census = town_of("small")
    reports = {}
    for name, geography in (
        ("with", census.geography),
        ("without", census.geography.drop("latitude", "longitude")),
    ):
        there = replace(census, geography=geography)
        made(there).check(there)
        made(there).draw(there, trial(1), tmp_path / name)
        reports[name] = json.loads((tmp_path / name / "internal.json").read_text())
    told = reports["with"].pop("kilometres_between_partners")
    assert told["mean"] > 0
    assert reports["with"] == reports["without"]
