"""What is exact by promise really never changes; what is not promised really can."""

import itertools
from pathlib import Path

import pytest

from discreet.census import Census, Table
from discreet.engine import Engine
from discreet.evaluate import check_each_invariant, compare, promised_exact
from discreet.mechanisms import mechanism, protect
from discreet.noise import trial
from discreet.spec import MarginalTable
from worlds import register_census, us_census

TABLES = ["P1", "P5", "H1", "H4", "H9", "H11"]
RACES = ("01", "02", "03", "06")


def town(engine: Engine) -> Census:
    """Return a census in which nearly every swap changes something: two counties, six blocks."""
    households = [
        (block, tenure, [(30 + block, "1", race), *([(8, "2", race)] if block % 2 else [])])
        for block, tenure, race in itertools.product(range(6), "13", RACES)
    ]
    return us_census(engine, households, blocks=6, per_county=3)


def swapping(census: Census, match: list[str], within: str = "county"):
    parameters = {"rate": "1/2", "match": match, "within": within}
    return mechanism("permutation-swapping", census.schema, parameters)


def swap(census: Census, out: Path, match: list[str], seed: int = 1):
    return protect(swapping(census, match), census, trial(seed), out)


@pytest.mark.parametrize("match", [[], ["size"], ["size", "tenure"], ["tenure"]])
def test_promised_tables_never_change_and_some_others_do(tmp_path: Path, match: list[str]):
    engine = Engine()
    census = town(engine)
    changed = set()
    for seed in range(2):
        release = swap(census, tmp_path / f"{seed}", match, seed)
        comparison = compare(census, release.microdata(engine), TABLES)
        for found in comparison.tables:
            if promised_exact(release.specification, census, found.table, found.level):
                assert found.errors.changed == 0, (found.table.name, found.level)
            elif found.errors.changed:
                changed.add((found.table.name, found.level))
    assert ("P1", "block") in changed


def promised(census: Census, match: list[str], table: str | Table, level: str) -> bool:
    shell = census.schema.table(table) if isinstance(table, str) else table
    return promised_exact(swapping(census, match).specify(), census, shell, level)


@pytest.mark.parametrize(
    ("match", "table", "level", "expected"),
    [
        (["size", "tenure"], "P1", "county", True),
        (["size", "tenure"], "P1", "state", True),
        (["size", "tenure"], "P1", "tract", False),
        (["size", "tenure"], "P1", "place", False),
        (["size", "tenure"], "P5", "tract", True),
        (["size", "tenure"], "H1", "block", True),
        (["size", "tenure"], "H1", "place", True),
        (["size", "tenure"], "H4", "tract", True),
        (["size"], "H4", "tract", False),
        (["size"], "H9", "tract", True),
        (["tenure"], "H9", "tract", False),
        (["size", "tenure"], "H11", "tract", False),
    ],
)
def test_what_follows_from_the_invariants(match, table, level, expected):
    assert promised(town(Engine()), match, table, level) is expected


@pytest.mark.parametrize(
    ("match", "extra", "expected"),
    [
        (["size"], {}, True),
        (["tenure"], {}, False),
        (["size"], {"by": ["sex"]}, False),
        (["size"], {"where": {"age": {"min": 18}}}, False),
        (["size"], {"where": {"kind": {"missing": False}}}, True),
        (["size"], {"where": {"any": [{"kind": ["occupied"]}]}}, False),
    ],
)
def test_the_number_of_persons_follows_from_the_size(match, extra, expected):
    table = Table(name="T", title="Persons", count="persons", levels=["block"], **extra)
    assert promised(town(Engine()), match, table, "block") is expected


def test_persons_without_a_link_follow_from_nothing():
    engine = Engine()
    census = register_census(engine, [(0, "owner", [(40, "f", "national")])] * 3)
    specification = swapping(census, ["size"], "province").specify()
    table = census.schema.table("R1")
    assert promised_exact(specification, census, table, "region")
    persons = census.table("persons").drop("unit_id")
    unlinked = Census(census.schema, engine, census.geography, census.units, persons, census.origin)
    assert not promised_exact(specification, unlinked, table, "region")


def test_invariants_are_counted_cell_by_cell(tmp_path: Path):
    engine = Engine()
    census = town(engine)
    release = swap(census, tmp_path / "release", ["size", "tenure"])
    checks = check_each_invariant(release.specification, census, release.microdata(engine))
    assert [check.invariant for check in checks] == list(
        release.specification.multiverse.invariants
    )
    assert all(check.holds for check in checks)
    by_block = next(c for c in checks if c.invariant.level == "block" and c.invariant.by)
    assert by_block.cells == 6 * 2  # six blocks, two tenures, one size in each block


def test_a_broken_invariant_is_seen_on_both_sides():
    engine = Engine()
    declared = swapping(town(engine), []).specify()
    wrong = MarginalTable(name="persons by race", of="persons", by=("race",), level="block")
    multiverse = declared.multiverse.model_copy(update={"invariants": (wrong,)})
    specification = declared.model_copy(update={"multiverse": multiverse})
    one = us_census(engine, [(0, "1", [(40, "1", "01")])], extras=False)
    other = us_census(engine, [(0, "1", [(40, "1", "02")])], extras=False)
    (check,) = check_each_invariant(specification, one, other)
    assert (check.cells, check.differing, check.holds) == (2, 2, False)
