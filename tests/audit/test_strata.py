"""Swapping on a census, stratum by stratum, against the same figures counted one by one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest

from discreet.audit.strata import FIGURES, StrataAudit, audit_strata
from discreet.census import Census, unit_records
from discreet.engine import Engine
from discreet.mechanisms import mechanism
from discreet.mechanisms.swapping import PermutationSwapping
from discreet.spec import psa
from worlds import Household, register_census, us_census

BLOCKS = 8


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=2)


def households(count: int, ages: int) -> list[Household]:
    random = np.random.default_rng(5)
    return [
        (
            int(random.integers(BLOCKS)),
            "13"[int(random.integers(2))],
            [
                (20 + int(random.integers(ages)), "12"[int(random.integers(2))], "01")
                for _ in range(int(random.choice([1, 1, 1, 2, 2, 3, 4, 5, 6])))
            ],
        )
        for _ in range(count)
    ]


def swapping(census: Census, rate: str, within: str, match: list[str]) -> PermutationSwapping:
    parameters = {"rate": rate, "match": match, "within": within}
    made = mechanism("permutation-swapping", census.schema, parameters)
    assert isinstance(made, PermutationSwapping)
    return made


def margins(audited: PermutationSwapping, census: Census) -> list[tuple[list[int], list[int]]]:
    """Return the holding and swapping margin of every stratum, counted in Python."""
    rows = audited.swapped_records(census).join(unit_records(census), on="unit_id", how="inner")
    strata: dict[str, list[tuple[str, str]]] = {}
    for label, record, place in census.engine.rows(rows.select("label", "record", "value")):
        strata.setdefault(label, []).append((record, place))
    return [
        (
            list(Counter(record for record, _ in pairs).values()),
            list(Counter(place for _, place in pairs).values()),
        )
        for pairs in strata.values()
    ]


def rounded(rows: Iterable[tuple]) -> list[tuple]:
    return sorted(tuple(round(value, 9) for value in row) for row in rows)


def rows_of(audit: StrataAudit, engine: Engine) -> list[tuple]:
    return engine.rows(audit.table.select(*FIGURES))


@pytest.mark.parametrize("ages", [2, 60])
@pytest.mark.parametrize("rate", ["1/20", "1/2", "99/100"])
def test_figures_are_those_counted_one_by_one(engine: Engine, ages: int, rate: str) -> None:
    census = us_census(engine, households(150, ages), blocks=BLOCKS, per_county=4)
    audited = swapping(census, rate, "county", ["size", "tenure"])
    audit = audit_strata(audited, census)
    p = Fraction(rate)
    expected = []
    for holding, swapped in margins(audited, census):
        n, shown = sum(holding), min(len(holding), len(swapped)) == 1
        budgets = (psa.theorem_1(n, p).value, psa.sharpened(n, p).value) if not shown else (0, 0)
        expected.append((n, len(holding), len(swapped), *budgets))
    found = rows_of(audit, engine)
    assert rounded(row[:5] for row in found) == rounded(expected)
    assert audit.households == 150
    assert audit.strata == len(expected) == len(found)
    disclosed = [row for row in expected if min(row[1:3]) == 1]
    assert audit.disclosed_strata == len(disclosed) > 0
    assert audit.disclosed_households == sum(row[0] for row in disclosed)
    assert audit.largest_stratum == max(row[0] for row in expected)


@pytest.mark.parametrize("ages", [2, 60])
@pytest.mark.parametrize("rate", ["1/20", "99/100"])
def test_every_loss_that_is_told_is_the_loss(engine: Engine, ages: int, rate: str) -> None:
    """Small strata are enumerated again; for large ones both bounds have to meet."""
    census = us_census(engine, households(150, ages), blocks=BLOCKS, per_county=4)
    audited = swapping(census, rate, "county", ["size", "tenure"])
    audit = audit_strata(audited, census)
    p = Fraction(rate)
    told = rounded((*row[:3], row[5]) for row in rows_of(audit, engine) if row[0] <= 5)
    exact = rounded(
        (sum(holding), len(holding), len(swapped), psa.exact_loss(holding, swapped, p).value)
        for holding, swapped in margins(audited, census)
        if sum(holding) <= 5
    )
    assert told == exact
    assert len(told) > 5
    for size, _, _, theorem_1, sharpened, loss, known in rows_of(audit, engine):
        assert sharpened <= theorem_1
        assert (loss is None) == (known == "unknown")
        assert loss is None or loss <= sharpened + 1e-12
        assert known != "bounds meet" or loss == sharpened
        assert known != "disclosed" or (loss, theorem_1) == (0, 0)
        assert known != "enumerated" or size <= 6
    assert audit.loss_at_least <= audit.loss_at_most + 1e-15
    assert audit.loss_at_most <= psa.sharpened(audit.largest_open_stratum, p).value + 1e-12


def test_strata_with_varied_records_are_known_at_any_size(engine: Engine) -> None:
    """Two blocks with one household each, 60 ages: Theorem 4 attains the sharpened bound."""
    people: list[Household] = [(0, "1", [(20, "1", "01")]), (1, "1", [(21, "1", "01")])]
    people += [(2 + n % 6, "1", [(22 + n, "1", "01")]) for n in range(60)]
    census = us_census(engine, people, blocks=BLOCKS, per_county=BLOCKS, extras=False)
    audited = swapping(census, "1/20", "county", [])
    audit = audit_strata(audited, census)
    ((holding, swapped),) = margins(audited, census)
    assert psa.can_all_move(holding, swapped)
    bound = psa.sharpened(62, Fraction(1, 20)).value
    assert audit.loss_at_least == audit.loss_at_most == bound
    assert psa.lower_bound(holding, swapped, Fraction(1, 20)).value == pytest.approx(bound)
    assert audit.known_households == 62


def one_stratum(engine: Engine, ages: Iterable[int], blocks: Iterable[int]) -> StrataAudit:
    """Audit single-person households that differ in age and block only."""
    people: list[Household] = [
        (block, "1", [(age, "1", "01")]) for age, block in zip(ages, blocks, strict=True)
    ]
    census = us_census(engine, people, blocks=BLOCKS, per_county=BLOCKS, extras=False)
    return audit_strata(swapping(census, "1/20", "county", []), census)


@pytest.mark.parametrize(
    ("ages", "blocks"),
    [
        ([20 + n // 2 for n in range(62)], [0, 1, *(2 + n % 6 for n in range(60))]),
        ([20 + n for n in range(62)], [0, 0, *(1 + n % 6 for n in range(60))]),
        ([20 + n for n in range(62)], [0, 1, *(2 for _ in range(60))]),
        ([20, 21, *(22 for _ in range(60))], [0, 1, *(2 + n % 6 for n in range(60))]),
    ],
    ids=["no single record", "no single block", "one block too large", "one record too frequent"],
)
def test_the_loss_is_unknown_where_the_bound_may_not_be_attained(
    engine: Engine, ages: list[int], blocks: list[int]
) -> None:
    audit = one_stratum(engine, ages, blocks)
    assert [row[5:] for row in rows_of(audit, engine)] == [(None, "unknown")]
    assert audit.known_households == 0
    assert audit.loss_at_least == 0
    assert audit.loss_at_most == psa.sharpened(62, Fraction(1, 20)).value


def test_equal_records_are_disclosed_wherever_they_live(engine: Engine) -> None:
    audit = one_stratum(engine, [40] * BLOCKS, range(BLOCKS))
    assert rows_of(audit, engine) == [(BLOCKS, 1, BLOCKS, 0, 0, 0, "disclosed")]
    assert audit.disclosed_share == 1


def test_a_census_that_the_invariants_disclose(engine: Engine) -> None:
    one_block: list[Household] = [(0, "1", [(20 + n, "1", "01")]) for n in range(9)]
    census = us_census(engine, one_block, extras=False)
    audit = audit_strata(swapping(census, "1/20", "county", ["size"]), census)
    assert audit.disclosed_share == 1
    assert audit.largest_stratum == 9
    assert audit.largest_open_stratum == 0
    assert audit.loss_at_least == audit.loss_at_most == 0
    assert "means no protection" in "\n".join(audit.describe())


def test_matching_variables_stand_beside_the_figures(engine: Engine) -> None:
    people: list[Household] = [
        (n % 3, "13"[n % 2], [(20 + n, "1", "01")] * (1 + n % 2)) for n in range(12)
    ]
    census = us_census(engine, people)
    audit = audit_strata(swapping(census, "1/4", "county", ["size", "tenure"]), census)
    columns = audit.table.select("county", "size", "tenure", "stratum_size")
    assert sorted(engine.rows(columns)) == [("50001", 1, "1", 6), ("50001", 2, "3", 6)]
    data = json.loads(json.dumps(audit.as_data()))
    assert data["households"] == 12
    assert "functions of the invariants" in data["note"]
    assert len(audit.describe()) == 5
    assert (data["unit"], data["input_premetric"]) == ("household record", "hamming-of-multisets")
    assert data["output_premetric"] == "multiplicative"
    assert len(data["invariants"]) == 2


def test_no_budget_or_loss_stands_alone(engine: Engine) -> None:
    audit = one_stratum(engine, [20 + n for n in range(62)], [n % BLOCKS for n in range(62)])
    budgets, loss = audit.describe()[2:4]
    for line in (budgets, loss):
        assert "per household record (hamming-of-multisets; multiplicative)" in line
    assert "given exact publication of" in budgets
    # Budgets are rounded up: ln(63 x 19) = 7.08757...
    assert "epsilon 7.0876 by Theorem 1" in budgets


def test_another_profile(engine: Engine) -> None:
    people: list[Household] = [(n % 3, "owner", [(30 + n % 2, "f", "national")]) for n in range(6)]
    census = register_census(engine, people)
    audited = swapping(census, "1/4", "municipality", ["tenure"])
    audit = audit_strata(audited, census)
    exact = psa.exact_loss([3, 3], [2, 2, 2], Fraction(1, 4)).value
    assert audit.loss_at_least == pytest.approx(exact)
    assert audit.largest_open_stratum == 6
