"""Whatever comes out exactly is declared: shown by the strategy, and looked for in releases."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import narwhals as nw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.census import Census, load_schema
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism
from discreet.noise import trial
from discreet.spec import MarginalTable
from discreet.spec.multiverse import determined
from topdown.runs import LEAST, LEAST_UNITS, levels_of, run
from worlds import us_census

US = load_schema("us-decennial")
KINDS = ["occupied", "vacant", "group_quarters"]
HOUSING = ["occupied", "vacant"]
LEVELS = levels_of({"state": {"detailed": 1}, "block": {"detailed": 1}})

# -- what a strategy declares -----------------------------------------------------------------

ANY_KIND = {"name": "kind", "column": "kind"}
IMPUTED = {"name": "imputed", "column": "imputed"}

#: Units by kind and imputation, with much noise.
HOMES = {
    **LEAST_UNITS,
    "name": "odd-units",
    "rho": "1/50",
    "where": {},
    "axes": [ANY_KIND, IMPUTED],
    "total": None,
    "levels": LEVELS,
}

#: Persons by sex and voting age, with much noise.
PEOPLE = {
    **LEAST,
    "name": "odd-persons",
    "rho": "1/50",
    "axes": [{"name": "sex", "column": "sex"}, {"name": "voting_age", "column": "voting_age"}],
    "zeros": [],
    "total": None,
    "quarters": None,
    "rounding": ["total"],
    "levels": LEVELS,
}


def declared(**parameters):
    return mechanism("topdown", US, parameters).specify()


def follows(specification, **counted) -> bool:
    """Tell whether a table of counts follows from what is declared."""
    target = MarginalTable(name="looked for", **counted)
    return determined(target, specification.multiverse.invariants, specification.domain)


def test_a_total_of_some_units_is_declared_with_its_whole_condition():
    where = {"kind": HOUSING, "tenure": ["1"]}
    axes = [ANY_KIND, {"name": "tenure", "column": "tenure", "missing": "none"}]
    told = declared(units={**HOMES, "where": where, "axes": axes, "total": "block"})
    assert [(one.where, one.level) for one in told.multiverse.invariants] == [(where, "block")]


UNLISTED = {
    "either": {"any": [{"kind": ["vacant"]}, {"tenure": ["1"]}]},
    "both": {"all": [{"kind": ["vacant"]}]},
    "all but": {"not": {"kind": ["vacant"]}},
    "equal columns": {"same": ["kind", "tenure"]},
    "one code": {"kind": "vacant"},
    "a range": {"kind": HOUSING, "family_size": {"min": 2}},
}


EXACT = [{"total": "block"}, {"hold": [{"query": "total", "level": "state"}]}]


@pytest.mark.parametrize("why", UNLISTED)
@pytest.mark.parametrize("exact", EXACT)
def test_a_condition_that_an_invariant_cannot_state_is_refused(why, exact):
    with pytest.raises(BadInput, match="`where` must list the values"):
        declared(units={**HOMES, "where": UNLISTED[why], **exact})


subset = st.lists(st.sampled_from(KINDS), min_size=1, unique=True)
levels = st.sampled_from(["state", "block"])


@st.composite
def odd_units(draw) -> dict:
    """Return a strategy of units with any universe, total and statistics that are fixed."""
    where = {}
    if draw(st.booleans()):
        where["kind"] = draw(subset)
    if draw(st.booleans()):
        where["imputed"] = draw(st.sampled_from([["0"], ["1"], ["0", "1"]]))
    queries = st.sampled_from(["total", "kind", "imputed", "imputed*kind", "detailed"])
    held = st.fixed_dictionaries({"query": queries, "level": levels})
    total = draw(st.none() | levels)
    hold = draw(st.lists(held, max_size=2))
    return {**HOMES, "where": where, "total": total, "hold": hold}


@settings(deadline=None, max_examples=60)
@given(odd_units())
def test_every_exact_statistic_of_any_strategy_of_units_is_declared(strategy):
    told, where = declared(units=strategy), strategy["where"]
    if strategy["total"] is not None:
        assert follows(told, of="units", where=where, level=strategy["total"])
    columns = {"total": (), "detailed": ("kind", "imputed")}
    for held in strategy["hold"]:
        by = columns.get(held["query"], tuple(held["query"].split("*")))
        assert follows(told, of="units", where=where, by=by, level=held["level"])


@settings(deadline=None, max_examples=40)
@given(
    total=st.none() | levels,
    sexes=st.none() | st.sampled_from([["1"], ["2"]]),
    quarters=st.booleans(),
    held=st.none() | st.sampled_from(["total", "sex", "detailed"]),
)
def test_every_exact_statistic_of_any_strategy_of_persons_is_declared(total, sexes, quarters, held):
    where = {} if sexes is None else {"sex": sexes}
    strategy = {**PEOPLE, "where": where, "total": total}
    if quarters:
        strategy["axes"] = [
            {"name": "gq", "column": "gq_major", "missing": "none"},
            *PEOPLE["axes"],
        ]
        strategy |= {"quarters": {"axis": "gq"}, "rounding": ["total", "gq"]}
    if held is not None:
        strategy["hold"] = [{"query": held, "level": "state"}]
    told = declared(persons=strategy)
    if total is not None:
        assert follows(told, of="persons", where=where, level=total)
    if quarters:
        assert follows(told, of="units", where={"kind": HOUSING}, level="block")
        collective = {"kind": ["group_quarters"]}
        assert follows(told, of="units", where=collective, by=("gq_major",), level="block")
    if held is not None:
        columns = [axis["column"] for axis in strategy["axes"]]
        by = {"total": (), "sex": ("sex",), "detailed": tuple(columns)}[held]
        assert follows(told, of="persons", where=where, by=by, level="state")


# -- what releases show -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def census() -> Census:
    """Return 40 units of all kinds in five blocks, some imputed, none told by the others."""
    homes = [
        (
            block,
            "1",
            [(40, "12"[number % 2], "01"), (9 + 11 * (number % 3), "1", "02"), (8, "2", "02")],
        )
        for block in range(5)
        for number in range(4 + block)
    ]
    made = us_census(Engine(threads=1), homes, blocks=5, per_county=5)
    number = nw.col("unit_id")
    kind = nw.when(number % 5 == 0).then(nw.lit("vacant")).otherwise(nw.col("kind"))
    kind = (
        nw.when((number % 7 == 0) & (number < 1000)).then(nw.lit("group_quarters")).otherwise(kind)
    )
    quarters = nw.when(kind == "group_quarters").then(nw.lit("501"))
    imputed = nw.when(number % 3 == 0).then(nw.lit("1")).otherwise(nw.lit("0"))
    units = made.units.with_columns(kind=kind, imputed=imputed).with_columns(gq_type=quarters)
    empty = units.filter(nw.col("kind") == "vacant").select("unit_id")
    persons = made.persons.join(empty, on="unit_id", how="anti")
    engine = made.engine
    return replace(made, units=engine.materialise(units), persons=engine.materialise(persons))


COLUMNS = {
    "units": {"kind": KINDS, "imputed": ["0", "1"]},
    "persons": {"sex": ["1", "2"], "voting_age": ["under 18", "18 and over"]},
    "quarters": {"kind": KINDS, "gq_major": ["college", "nursing"]},
}

Rows = list[dict[str, str]]


def rows(census: Census, looked_for: str) -> Rows:
    names = ["state", "block", *COLUMNS[looked_for]]
    found = census.engine.rows(census.frame(counts_of(looked_for), names))
    return [dict(zip(names, row, strict=True)) for row in found]


def counts_of(looked_for: str) -> str:
    return "persons" if looked_for == "persons" else "units"


def parts(values: list[str]) -> list[list[str]]:
    """Return all subsets that leave something out; the empty one stands for all values."""
    return [list(some) for size in range(len(values)) for some in combinations(values, size)]


def tables_of_counts(looked_for: str) -> Iterator[dict]:
    """Yield conditions, columns and level of all tables of counts of two columns."""
    first, second = COLUMNS[looked_for]
    for codes in product(*(parts(values) for values in COLUMNS[looked_for].values())):
        where = {name: some for name, some in zip((first, second), codes, strict=True) if some}
        for by, level in product([(), (first,), (second,)], ["state", "block"]):
            # By the schema only group quarters have a type, which no rule of tables knows.
            typed = "gq_major" in {*by, *where}
            if typed and where.get("kind") != ["group_quarters"]:
                continue
            if any(len(where.get(column, "several")) == 1 for column in by):
                continue  # the same without the column
            yield {"where": where, "by": by, "level": level}


def counted(records: Rows, where: dict, by: tuple[str, ...], level: str) -> frozenset:
    """Return a table of counts; cells without records are left out."""
    chosen = (row for row in records if all(row[n] in codes for n, codes in where.items()))
    counts = Counter(tuple(row[name] for name in (level, *by)) for row in chosen)
    return frozenset(counts.items())


def nobody_in_some_part(records: Rows, where: dict) -> bool:
    """Tell whether a listed code adds nothing, so that the table equals one without it."""
    return not all(
        counted(records, {**where, n: [c]}, (), "state") for n in where for c in where[n]
    )


SOME = {"kind": HOUSING, "imputed": ["1"]}
ZEROS = [{"kind": ["vacant"], "imputed": ["1"]}]
QUARTERS = {
    "persons": {**LEAST, "rho": "1/50", "total": None},
    "units": {**LEAST_UNITS, "rho": "1/50", "total": None},
}

#: What tables are looked for, and the strategies.
ODD = {
    "nothing exact": ("units", {"units": HOMES}),
    "all units": ("units", {"units": {**HOMES, "total": "block"}}),
    "housing units": (
        "units",
        {"units": {**HOMES, "where": {"kind": HOUSING}, "total": "block"}},
    ),
    "imputed housing units": ("units", {"units": {**HOMES, "where": SOME, "total": "block"}}),
    "the same of states": ("units", {"units": {**HOMES, "where": SOME, "total": "state"}}),
    "imputed units": (
        "units",
        {"units": {**HOMES, "where": {"imputed": ["1"]}, "total": "block"}},
    ),
    "occupied units": (
        "units",
        {"units": {**HOMES, "where": {"kind": ["occupied"]}, "total": "block"}},
    ),
    "units by imputation": (
        "units",
        {"units": {**HOMES, "hold": [{"query": "imputed", "level": "block"}]}},
    ),
    "structural zeros": ("units", {"units": {**HOMES, "total": "block", "zeros": ZEROS}}),
    "women": ("persons", {"persons": {**PEOPLE, "where": {"sex": ["2"]}, "total": "block"}}),
    "persons by sex": (
        "persons",
        {"persons": {**PEOPLE, "hold": [{"query": "sex", "level": "block"}]}},
    ),
    "quarters": ("quarters", QUARTERS),
}


@pytest.mark.parametrize("what", ODD)
def test_no_count_can_be_read_off_a_release_exactly_unless_it_is_declared(census, what, tmp_path):
    """Whatever table of a release is the same in four draws and equals one of the census.

    The noise has a standard deviation of ten, so that no other table is met four times.
    """
    looked_for, parameters = ODD[what]
    told = declared(**parameters)
    truth = rows(census, looked_for)
    released = [
        rows(run(census, trial(seed), tmp_path / str(seed), **parameters), looked_for)
        for seed in range(4)
    ]
    constant = set()
    for one in tables_of_counts(looked_for):
        draws = {counted(draw, **one) for draw in released}
        constant |= draws if len(draws) == 1 else set()
    exact = [
        one
        for one in tables_of_counts(looked_for)
        if counted(truth, **one) in constant and not nobody_in_some_part(truth, one["where"])
    ]
    undeclared = [one for one in exact if not follows(told, of=counts_of(looked_for), **one)]
    assert undeclared == []
    assert bool(exact) == bool(told.multiverse.invariants)
