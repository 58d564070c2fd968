"""Who is selected by the swapping after public documents: each factor, and imputation."""

import functools
import json
from collections.abc import Callable
from dataclasses import replace

import narwhals as nw
import numpy as np
import pytest

from discreet.census import Census
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms.swapping import donors, factors, public_docs_pass
from discreet.noise import trial
from listed_towns import TOWNS, census_of, imputed_members, public_docs, wholly
from restated_docs import Restated

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


@pytest.fixture(scope="module")
def town_of(engine: Engine) -> Callable[[str], Census]:
    """Return towns by name as censuses, each made once."""
    return functools.cache(lambda name: census_of(engine, TOWNS[name]))


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


def selected_rows(prepared: public_docs_pass.Prepared, replicate: int) -> np.ndarray:
    area = prepared.households.level("state")
    order = public_docs_pass.draw_order(prepared, area, trial(9), replicate)
    return order[: 2 * int(prepared.allowed.max())]


def wins(town_of, factor: dict, value, rate: str = "1/5") -> int:
    """Return in how many of 40 draws the factor raises the mean of `value` of the selected."""
    census = town_of("factors")
    off = public_docs(census, rate=rate, **NEUTRAL).prepare(census)
    on = public_docs(census, rate=rate, **{**NEUTRAL, **factor}).prepare(census)
    values = value(on)
    return sum(
        values[selected_rows(on, 2 * n)].mean() > values[selected_rows(off, 2 * n + 1)].mean()
        for n in range(40)
    )


def small_block(prepared: public_docs_pass.Prepared) -> np.ndarray:
    place = prepared.households.place
    return -np.bincount(place)[place].astype(float)


def little_imputed_around(prepared: public_docs_pass.Prepared) -> np.ndarray:
    place = prepared.households.place
    size = prepared.households.columns["size"]
    rate = np.bincount(place, weights=prepared.imputation.members) / np.bincount(place, size)
    return -rate[place]


def little_imputed_itself(prepared: public_docs_pass.Prepared) -> np.ndarray:
    return -(prepared.imputation.members / prepared.households.columns["size"])


def lonely_race(prepared: public_docs_pass.Prepared) -> np.ndarray:
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
    prepared = public_docs(census, **NEUTRAL).prepare(census)
    assert set(prepared.selection.weight[~prepared.imputation.wholly]) == {1.0}
    assert not prepared.selection.weight[prepared.imputation.wholly].any()
    assert not prepared.selection.always.any()


def test_the_unique_are_always_selected_while_the_cap_allows(town_of):
    census = town_of("two states")
    prepared = public_docs(census, rate="1/5", unique_on=["members_black", "size"]).prepare(census)
    always = prepared.selection.always
    assert 0 < always.sum() <= prepared.allowed[prepared.allowed > 0].min()
    for seed in range(5):
        swap = public_docs_pass.pair(prepared, trial(seed))
        met = swap.partner != np.arange(always.size)
        met[swap.without_partner] = True
        assert met[always].all()


def test_the_unique_come_first_if_the_cap_does_not_allow_all(town_of):
    census = town_of("two states")
    prepared = public_docs(census, rate="1/50", unique_area="tract").prepare(census)
    always = prepared.selection.always
    for seed in range(5):
        swap = public_docs_pass.pair(prepared, trial(seed))
        assert always[swap.targets].all()
        assert swap.notes["always_selected_but_not_swapped"] > 0


@pytest.mark.parametrize("flags", [(), ("units",), ("persons",), ("units", "persons")])
def test_what_is_known_of_imputation(engine, tmp_path, flags):
    town = TOWNS["few blocks"]
    census = census_of(engine, town, flags=flags)
    whole = public_docs(census, rate="99/100")
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


@pytest.mark.parametrize("flags", [("units",), ("persons",), ("units", "persons")])
def test_a_look_before_the_draw_sees_the_same_imputation(engine, flags):
    census = census_of(engine, TOWNS["few blocks"], flags=flags)
    made = public_docs(census)
    prepared = made.prepare(census)
    rows = factors.unit_imputation(census, ["block"], "size", made.imputed).sort("unit_id")
    told = engine.rows(rows.select("unit_id", "_members", "_wholly"))
    by_id = np.argsort(prepared.households.unit_id)
    columns = (prepared.imputation.members, prepared.imputation.wholly.astype(int))
    assert [row[1:] for row in told] == list(
        zip(*(column[by_id].tolist() for column in columns), strict=True)
    )


def imputed_everywhere(engine, table: str, but: int = 0):
    """Return a town in which all units, or all persons, are imputed, apart from some units."""
    census = census_of(engine, TOWNS["few blocks"], flags=(table,))
    kept = sorted(house.unit_id for house in TOWNS["few blocks"].houses)[:but]
    told = nw.when(nw.col("unit_id").is_in(kept)).then(nw.lit("0")).otherwise(nw.lit("1"))
    marked = engine.materialise(census.table(table).with_columns(imputed=told))
    return replace(census, **{table: marked})


@pytest.mark.parametrize("table", ["units", "persons"])
def test_a_census_imputed_throughout_is_not_released_as_it_is(engine, table, tmp_path):
    for but in (0, 1):  # of one that may move no other can be a partner
        census = imputed_everywhere(engine, table, but)
        with pytest.raises(BadInput, match="imputed wholly"):
            public_docs(census, rate="1/2").check(census)
    census = imputed_everywhere(engine, table, 200)
    made = public_docs(census, rate="1/2")
    made.check(census)
    made.draw(census, trial(1), tmp_path)
    assert json.loads((tmp_path / "internal.json").read_text())["swapped"] > 0


def test_blocks_imputed_too_much_for_any_target_are_refused(engine):
    """All members but householders are imputed: nobody wholly, and somebody in every block."""
    census = census_of(engine, TOWNS["few blocks"], flags=("persons",))
    others = nw.col("relationship") != "20"
    told = nw.when(others).then(nw.lit("1")).otherwise(nw.lit("0"))
    persons = engine.materialise(census.table("persons").with_columns(imputed=told))
    census = replace(census, persons=persons)
    made = public_docs(census, rate="1/2", most_imputed="0")
    prepared = made.prepare(census)
    assert not prepared.imputation.wholly.any()
    assert not prepared.selection.weight.any()
    with pytest.raises(BadInput, match="blocks imputed too much"):
        made.check(census)
    public_docs(census, rate="1/2").check(census)


def test_households_imputed_wholly_are_counted_as_unable_to_change(engine, tmp_path):
    census = census_of(engine, TOWNS["few blocks"])
    made = public_docs(census, rate="1/2")
    prepared, folder = made.prepare(census), tmp_path
    made.draw(census, trial(1), folder)
    report = json.loads((folder / "internal.json").read_text())
    # Told again, slowly: who stays, and who finds nobody else that may move.
    homes, stays = prepared.households, prepared.imputation.wholly
    rows = range(homes.size)
    stuck = [
        stays[h]
        or not any(
            homes.stratum[h] == homes.stratum[o] and homes.leave[h] != homes.leave[o]
            for o in rows
            if not stays[o]
        )
        for h in rows
    ]
    assert report["cannot_change"] == sum(stuck) >= stays.sum() > 0


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
    households = public_docs(census).read(census)
    special = factors.unique_race(census, households, ("members_white",))
    assert special[here[0]] == (residents == 0)
    assert not special[here[1:]].any()
