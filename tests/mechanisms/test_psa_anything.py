"""Swapping of any variables, of units or persons: what it promises holds, exactly."""

from collections import Counter
from dataclasses import replace
from itertools import permutations

import pytest

from discreet.audit import verify, verify_mechanism
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism, protect
from discreet.noise import trial
from discreet.products import check_invariants, tabulate
from discreet.spec import compare
from worlds import register_census, us_census

HEAD, OTHER = (40, "f", "national"), (30, "f", "national")


def world(engine, citizenships):
    """Return two households in one cell: heads alike but for citizenship, and a man or a woman."""
    first, second = citizenships
    homes = [
        (0, "owner", [(40, "f", first), (30, "m", "eu")]),
        (0, "owner", [(40, "f", second), (30, "f", "eu")]),
    ]
    return register_census(engine, homes)


def swap(census, **parameters):
    asked = {"rate": "1/10", "match": [], "within": "region", **parameters}
    return mechanism("permutation-swapping", census.schema, asked)


def test_persons_have_a_place_so_trading_between_alike_ones_counts():
    """Heads alike trade citizenship: as a multiset of persons nothing changed, but it did."""
    engine = Engine(threads=1)
    worlds = [world(engine, pair) for pair in (("national", "other"), ("other", "national"))]
    made = swap(worlds[0], match=["age"], records="persons", swap=["citizenship"])
    promise = made.specify(made.facts(worlds[0]))
    assert promise.input_premetric.name == "hamming"
    assert not any(check_invariants(promise, *worlds).values())
    laws = {number: made.law(census) for number, census in enumerate(worlds)}
    assert laws[0] != laws[1]
    two_places = verify(laws, lambda x, y: 2, promise.output_premetric, promise.budget)
    assert two_places.answer == "satisfied"
    no_place = verify(laws, lambda x, y: 0, promise.output_premetric, promise.budget)
    assert no_place.answer == "violated"
    with pytest.raises(BadInput, match="order of records counts"):
        verify_mechanism(made, worlds)


@pytest.mark.parametrize("swapped", [["tenure"], ["cell", "tenure"]])
def test_swaps_of_attributes_keep_their_promise(swapped):
    engine = Engine(threads=1)
    homes = [((i % 2), "owner", [(20 + i, "f", "national")]) for i in range(3)]
    tenures = sorted(set(permutations(["owner", "owner", "renter"])))
    worlds = [
        register_census(engine, [(c, t, p) for (c, _, p), t in zip(homes, chosen, strict=True)])
        for chosen in tenures
    ]
    verdict = verify_mechanism(swap(worlds[0], swap=swapped), worlds)
    assert verdict.answer == "satisfied"
    assert verdict.loss.bounds.lower > 0


def test_a_level_of_any_name_is_checked():
    """The smallest area is called `cell`, as a column of the check once was."""
    engine = Engine(threads=1)
    census = register_census(engine, [(0, "owner", [HEAD]), (1, "renter", [OTHER])])
    changed = register_census(engine, [(0, "owner", [HEAD]), (1, "owner", [OTHER])])
    promise = swap(census, swap=["tenure"], within="cell").specify()
    assert any(check_invariants(promise, census, replace(changed)).values())


def test_budgets_that_depend_on_other_strata_are_not_compared():
    engine = Engine(threads=1)
    census = us_census(engine, [(0, "1", [(40, "1", "01")])])
    wide, narrow = (
        mechanism(
            "permutation-swapping", census.schema, {"rate": "1/20", "match": [], "within": level}
        ).specify()
        for level in ("state", "county")
    )
    assert wide.budget != narrow.budget
    assert compare(wide, narrow).verdict not in ("stronger", "equivalent")
    assert compare(wide, wide).verdict == "equivalent"


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"records": "persons"}, "name the variables of persons"),
        ({"swap": ["kind"]}, "no variable of units"),
        ({"swap": ["tenure", "tenure"]}, "twice"),
        ({"swap": ["tenure"], "match": ["owner"]}, "made from a variable that is swapped"),
        (
            {"records": "persons", "swap": ["race"], "match": ["members_white"]},
            "made from a variable that is swapped",
        ),
        ({"records": "persons", "swap": ["block"]}, "no variable of persons"),
        ({"table": ["sise"]}, "Did you mean 'size'"),
    ],
)
def test_impossible_swaps_are_refused(parameters, says):
    schema = us_census(Engine(), [(0, "1", [(40, "1", "01")])]).schema
    asked = {"rate": "1/2", "match": [], "within": "county", **parameters}
    with pytest.raises(BadInput, match=says):
        mechanism("permutation-swapping", schema, asked)


def test_every_product_of_one_release_agrees(tmp_path):
    """All tables are made from one draw, so they cannot contradict each other."""
    engine = Engine(threads=1)
    people = [(20 + i, "12"[i % 2], ("01", "02", "07")[i % 3]) for i in range(40)]
    homes = [(i % 4, "13"[i % 2], people[i : i + 1 + i % 3]) for i in range(30)]
    census = us_census(engine, homes, blocks=4, per_county=2)
    made = mechanism(
        "permutation-swapping",
        census.schema,
        {"rate": "1/2", "match": [], "within": "state", "table": ["size", "tenure"]},
    )
    release = protect(made, census, trial(3), tmp_path / "release")
    released = release.microdata(engine)

    def totals(name, level):
        counts = engine.rows(tabulate(released, name, level).select("area", "count"))
        found = Counter()
        for area, count in counts:
            found[area] += count
        return +found

    counted = {table.name: table for table in released.schema.tables}
    persons = [n for n, t in counted.items() if t.count == "persons" and not t.where]
    households = [n for n, t in counted.items() if t.where == {"kind": ["occupied"]}]
    for level in ("county", "block"):
        told = [totals(name, level) for name in persons]
        assert len(told) > 1
        assert all(one == told[0] for one in told)
    saturated = engine.read_parquet(tmp_path / "release" / "tables" / "saturated.parquet")
    by_block = Counter()
    for block, count in engine.rows(saturated.select("block", "count")):
        by_block[block] += count
    assert all(totals(name, "block") == by_block for name in households)
    assert households
