"""No count of a release is exact unless it is declared, or follows from what is."""

import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import narwhals as nw
import pytest
from hypothesis.errors import UnsatisfiedAssumption

from discreet.census import check_structure, load_schema
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism
from discreet.mechanisms.topdown import mechanism as topdown_mechanism
from discreet.mechanisms.topdown import promise
from discreet.products import check_invariants
from mechanisms.test_conformance import CASES as SHIPPED
from mechanisms.test_conformance import US as HOUSEHOLDS
from neighbours import exactness
from neighbours.draws import sampled
from neighbours.subjects import (
    WITHOUT_BUDGET,
    Case,
    noisy_tables,
    permutation_swapping,
    topdown,
)
from topdown.runs import LEAST, LEAST_UNITS, levels_of
from worlds import us_census

#: Random cases of each mechanism, and what to begin the search for them with.
CASES = {
    "noisy-tables": (noisy_tables, 2),
    "topdown": (topdown, 2),
    "permutation-swapping": (permutation_swapping, 1),
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


@contextmanager
def folders():
    """Yield a function that returns a new folder with every call."""
    with tempfile.TemporaryDirectory() as root:
        number = count()
        yield lambda: Path(root) / str(next(number))


def quiet(case: Case):
    """Return the mechanism of a case with so small a budget that few releases tell enough."""
    made, d = case.made, case.distance
    parameters = made.parameters()
    if made.name == "noisy-tables":
        parameters["budget"] = f"1/{50 * d * d}" if made.noise == "gaussian" else f"1/{5 * d}"
    elif made.name == "topdown":
        runs = [run for run in ("persons", "units") if parameters[run]]
        for run in runs:
            parameters[run]["rho"] = f"1/{50 * d * d * len(runs)}"
    return mechanism(made.name, made.census_schema, parameters)


def cases(name: str, engine: Engine):
    """Yield a mechanism, two censuses of one universe, and how often to release them."""
    draw_case, number = CASES[name]
    for seed in count():
        try:
            (case,) = sampled(draw_case, 1, seed)
            made = quiet(case)
            pair = case.one.census(engine), case.other.census(engine)
            for census in pair:
                check_structure(census)
                made.check(census)
        except (UnsatisfiedAssumption, BadInput):
            continue
        told = made.specify(made.facts(pair[0]))
        if any(check_invariants(told, *pair).values()):
            continue
        times = exactness.repetitions(exactness.variation(told, case.distance))
        if times > MOST_TIMES or exactness.counts_of(pair[0]) == exactness.counts_of(pair[1]):
            continue
        yield made, pair, times
        number -= 1
        if not number:
            return


#: Budgets that would need more releases than this are passed over.
MOST_TIMES = 400


@pytest.mark.parametrize("name", CASES)
def test_no_count_is_exact_unless_it_is_declared(name, engine):
    for made, pair, times in cases(name, engine):
        with folders() as new_folder:
            found, power = exactness.search(made, pair, times, new_folder)
        print(f"{name}: {times} releases each, {power:.0%} of counts differ between the censuses")
        assert found == []


# -- planted mistakes -----------------------------------------------------------------------------

US = load_schema("us-decennial")
#: Households in three blocks, of two tenures and with different members.
HOMES = [
    (number % 3, "12"[number % 2], [(30 + number, "12"[number % 2], "01")] * (1 + number % 2))
    for number in range(9)
]
LEVELS = levels_of({"state": {"detailed": 1}, "block": {"detailed": 1}})
OWNERS = {
    **LEAST_UNITS,
    "rho": "1/5000",
    "where": {"kind": ["occupied", "vacant"], "tenure": ["1"]},
    "axes": [{"name": "kind", "column": "kind"}],
    "levels": LEVELS,
}


def found_in(made, pair) -> list:
    told = made.specify(made.facts(pair[0]))
    assert not any(check_invariants(told, *pair).values())
    times = exactness.repetitions(exactness.variation(told, 2))
    with folders() as new_folder:
        return exactness.search(made, pair, times, new_folder)[0]


def test_an_exact_total_of_some_units_is_found(engine, monkeypatch):
    """All housing units of a block are declared, and those with one tenure are exact."""
    one = us_census(engine, HOMES)
    tenures = {0: "2", 1: "1"}  # as many of each as before, in other blocks
    other = us_census(engine, [(b, tenures.get(n, t), m) for n, (b, t, m) in enumerate(HOMES)])
    made = mechanism("topdown", US, {"units": OWNERS})
    with monkeypatch.context() as planted:
        planted.setattr(promise, "_total", lambda strategy, schema: promise._housing_units(schema))
        assert found_in(made, (one, other)) != []
    assert any(check_invariants(made.specify(), one, other).values())  # as declared: two universes


def test_a_type_of_quarters_on_a_home_is_found(engine, monkeypatch):
    """Types of units that are no quarters are published as quarters; only quarters are declared."""
    one = us_census(engine, HOMES)
    typed = nw.when(nw.col("unit_id") == 1).then(nw.lit("501")).otherwise(nw.col("gq_type"))
    other = replace(one, units=engine.materialise(one.units.with_columns(gq_type=typed)))
    quiet_persons = {**LEAST, "rho": "1/5000", "total": None}
    quarters = {**quiet_persons, "quarters": {"axis": "hhgq"}}
    made = mechanism(
        "topdown", US, {"persons": quarters, "units": {**LEAST_UNITS, "rho": "1/5000"}}
    )
    with pytest.raises(BadInput, match="not collective"):
        made.check(other)
    monkeypatch.setattr(topdown_mechanism, "check_types", lambda census, histogram: None)
    assert found_in(made, (one, other)) != []


def test_a_forgotten_noise_term_is_found(engine, monkeypatch):
    queries = [{"table": "H4", "level": "block", "share": "1"}]
    parameters = {"noise": "gaussian", "budget": "1/5000", "queries": queries}
    made = mechanism("noisy-tables", US, parameters)
    one, other = us_census(engine, HOMES), us_census(engine, HOMES[:-1])
    assert found_in(made, (one, other)) == []
    where = sys.modules["discreet.noise.measure"]  # the package has a function of that name
    right = where.discrete_gaussian

    def forgets(*given, **options):
        noise = right(*given, **options)
        noise[noise.size // 2 :] = 0
        return noise

    monkeypatch.setattr(where, "discrete_gaussian", forgets)
    assert found_in(made, (one, other)) != []


# -- methods without a budget ------------------------------------------------------------------


@pytest.mark.parametrize("name", WITHOUT_BUDGET)
def test_what_a_method_without_a_budget_leaves_exact_is_reported(name, engine):
    """Nothing bounds what tells two censuses of a universe apart, so nothing is asserted."""
    case = next(case for case in SHIPPED.values() if case.name == name)
    one = case.census(engine)
    # Two households that match trade their blocks, which every swap may do.
    traded = [(1, *HOUSEHOLDS[0][1:]), (0, *HOUSEHOLDS[1][1:]), *HOUSEHOLDS[2:]]
    other = us_census(engine, traded)
    made = case.mechanism(one)
    assert not any(check_invariants(made.specify(), one, other).values())
    with folders() as new_folder:
        found, power = exactness.search(made, (one, other), 8, new_folder)
    print(f"{name}: {len(found)} counts tell two censuses apart ({power:.0%} of counts differ)")
