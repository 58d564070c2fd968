"""A witness can be recomputed: the universe, the distance, and the laws of its mechanism."""

import dataclasses
import itertools
import math
from fractions import Fraction

import pytest

from discreet.spec import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    Domain,
    Exactly,
    Indicator,
    Inequality,
    InputPremetric,
    LinearCombination,
    MarginalTable,
    NoFiniteBudget,
    OutputPremetric,
    approximate,
    concentrated_to_approximate,
    hamming_of_multisets,
    neighbours,
    symmetric_difference,
)
from discreet.spec import divergences as laws
from discreet.spec.comparison.separations import SEPARATIONS, attained
from discreet.spec.comparison.tiny import STAGES, _units, distance, one_universe, pairs, records
from discreet.spec.comparison.witness import check, refute
from discreet.spec.invariants import value
from promises import (
    ALL_PERSONS,
    ALL_UNITS,
    CENSUS,
    RAW,
    concentrated,
    promise,
    pure,
    swapping,
    swapping_of_households,
    table,
    topdown,
)

PERSONS = hamming_of_multisets("person")
LISTS = InputPremetric(name="hamming", unit="person")
NOTHING = promise(NoFiniteBudget(reason="swaps in pairs"), output=MULTIPLICATIVE)
LOOSE = promise(Exactly(of=1), output=approximate("1e-6"), premetric=neighbours(PERSONS))

CASES = {
    "exact": (topdown(), swapping()),
    "everything": (NOTHING, topdown()),
    "leak": (LOOSE, topdown()),
    "noise": (topdown(), swapping_of_households()),
    "budget": (topdown("2.64"), topdown("2.63")),
    "order": (pure(3, premetric=LISTS), pure(3)),
}


def test_there_is_a_case_for_every_kind():
    assert set(CASES) == {"exact", *SEPARATIONS}


@pytest.mark.parametrize("kind", CASES)
def test_a_witness_of_every_kind_is_found_and_holds(kind):
    a, b = CASES[kind]
    witness = refute(a, b, ("one", "other"))
    assert witness.kind == kind
    assert check(witness, a, b)
    x, y = witness.pair
    for one in b.multiverse.invariants:
        assert value(one, x, b.domain.spine) == value(one, y, b.domain.spine)
    unit = b.input_premetric.unit
    apart = b.input_premetric.distance(records(x, unit), records(y, unit))
    assert apart == witness.distance
    assert (0 < apart < math.inf) or kind == "order"
    assert "Satisfies one" in witness.describe()
    assert "Breaks other" in witness.describe()


@pytest.mark.parametrize("kind", CASES)
def test_a_forged_witness_is_caught(kind):
    a, b = CASES[kind]
    witness = refute(a, b)
    x, y = witness.pair
    elsewhere = tuple({**unit, "state": "9", "block": "9", "county": "9"} for unit in y)
    for forged in (
        dataclasses.replace(witness, pair=(x, x)),  # nothing to tell apart
        dataclasses.replace(witness, pair=(x, (*y, *y))),  # not compared
        dataclasses.replace(witness, satisfied="second"),  # the other way round
    ):
        assert not check(forged, a, b)
    if b.multiverse.invariants:
        assert not check(dataclasses.replace(witness, pair=(x, elsewhere)), a, b)
    assert not check(witness, a, b.model_copy(update={"domain": RAW}))


def test_what_is_published_must_be_an_invariant_of_the_promise():
    a, b = CASES["exact"]
    witness = refute(a, b)
    assert not check(dataclasses.replace(witness, invariant=ALL_UNITS), a, b)
    assert not check(dataclasses.replace(witness, invariant=None), a, b)
    assert not check(witness, pure(3), b)


def test_noise_must_be_on_something_that_differs():
    """A vacant unit has no person records: what TopDown counts is the same in both data sets."""
    empty = {"block": "1", "kind": "vacant", "size": "0", "members": ()}
    pair = ({**empty, "answer": "a"},), ({**empty, "answer": "b"},)
    a, b = concentrated(1), pure(3, unit="household", invariants=[ALL_UNITS])
    witness = refute(a.model_copy(update={"multiverse": b.multiverse}), b)
    assert witness.kind == "exact"  # the number of persons
    noise = dataclasses.replace(witness, kind="noise", invariant=None)
    assert check(noise, a, b)
    assert not check(dataclasses.replace(noise, pair=pair), a, b)


# -- the mechanisms, by their laws -----------------------------------------------------------------


def response(ratio):
    """Return randomised response: the laws of its answer to yes and to no."""
    yes = Fraction(ratio) / (1 + Fraction(ratio))
    return {1: yes, 0: 1 - yes}, {1: 1 - yes, 0: yes}


def leak(delta):
    return {"first": delta, "": 1 - delta}, {"second": delta, "": 1 - delta}


def distance_between(premetric, pair):
    found = laws.distance(premetric.name, *pair, delta=premetric.delta, order=premetric.order)
    return found.bounds


def test_a_leak_costs_nothing_at_its_delta_and_infinitely_much_below_and_elsewhere():
    delta = Fraction(1, 10**6)
    pair = leak(delta)
    assert distance_between(approximate(delta), pair).upper == 0
    assert distance_between(approximate(delta / 2), pair).lower == math.inf
    for name in ("multiplicative", "normalised-renyi", "kullback-leibler", "chi-squared"):
        assert distance_between(OutputPremetric(name=name), pair).lower == math.inf
    assert distance_between(OutputPremetric(name="renyi", order=2), pair).lower == math.inf


@pytest.mark.parametrize("ratio", [2, 3, 50])
@pytest.mark.parametrize("other", [MULTIPLICATIVE, NORMALISED_RENYI, approximate("1/100")])
def test_what_is_said_to_be_attained_is_attained_by_randomised_response(ratio, other):
    a, b = pure(ratio), promise(Exactly(of=1), output=other)
    found = distance_between(other, response(ratio)).upper
    said = attained(a, b, 1).value()
    reached = math.sqrt(said) if other == NORMALISED_RENYI else said
    assert reached <= found * (1 + 1e-9)
    assert reached == pytest.approx(found, abs=1e-5)


@pytest.mark.parametrize(("own", "delta"), [("1/1000", "1/1000"), ("1/1000", "1/10")])
def test_an_approximate_budget_is_attained_by_the_extremal_law(own, delta):
    """Kairouz, Oh and Viswanath (2015): four outcomes, two of them never shared."""
    ratio, small = 3, Fraction(own)
    yes, no = response(ratio)
    p = {"first": small, **{k: (1 - small) * v for k, v in yes.items()}}
    q = {"second": small, **{k: (1 - small) * v for k, v in no.items()}}
    epsilon = pure(ratio).budget.amount
    assert distance_between(approximate(own), (p, q)).upper == pytest.approx(math.log(3))
    a = promise(epsilon, output=approximate(own))
    b = promise(Exactly(of=1), output=approximate(delta))
    found = distance_between(approximate(delta), (p, q)).upper
    assert attained(a, b, 1).value() == pytest.approx(found, abs=1e-5)


def test_noise_on_a_distance_attains_pure_and_concentrated_budgets_at_every_distance():
    """A two-sided geometric law moved by 3, cut off far out: 3 ln 2."""
    cut = 60
    weights = {k: Fraction(1, 2 ** abs(k)) for k in range(-cut, cut + 1)}
    total = sum(weights.values())
    here, there = ({k + moved: w / total for k, w in weights.items()} for moved in (0, 3))
    inside = [abs(math.log(here[k] / there[k])) for k in here if k in there]
    assert max(inside) == pytest.approx(3 * math.log(2))
    assert attained(pure(2), pure(5), 3).value() == pytest.approx(3 * math.log(2))
    assert attained(concentrated(2), concentrated(5), 3) == Exactly(of=18)
    near = pure(2, premetric=neighbours(PERSONS))
    assert attained(near, pure(5), 3).value() == pytest.approx(math.log(2))


def test_normal_noise_reaches_less_than_the_best_known_bound():
    """The witness against approximate promises stays below what is proved to suffice."""
    for rho2 in ("0.07", "2.56", "15.29", "221.484"):
        a = concentrated(rho2)
        b = promise(Exactly(of=1), output=approximate("1e-10"), premetric=neighbours(PERSONS))
        best = concentrated_to_approximate(Fraction(rho2), Fraction(1, 10**10), "tight").amount
        assert 0.5 * best < attained(a, b, 1).of < best
    assert attained(concentrated(600), b, 1) is None


# -- the search -----------------------------------------------------------------------------------


def test_tiny_units_are_possible_ones():
    invariants = [*topdown().multiverse.invariants, *swapping().multiverse.invariants]
    for members, _, empty in STAGES:
        units = _units(CENSUS, invariants, members, empty)
        assert units
        for unit in units:
            assert unit["size"] == str(len(unit["members"]))
            assert (unit["kind"] == "vacant") == (not unit["members"])
            assert ("gq_type" in unit) == (unit["kind"] == "group_quarters")
        above = {}
        for unit in units:  # every block lies in one state
            assert above.setdefault(unit["block"], unit["state"]) == unit["state"]


def test_a_nation_is_one():
    units = _units(CENSUS, [table("persons", "nation")], 1, False)
    assert {unit["nation"] for unit in units} == {"1"}
    assert {unit["block"] for unit in units} == {"1", "2"}


def test_places_outside_the_spine_follow_from_the_block():
    domain = Domain(records="r", schema_name="s", spine=("state", "block"), places=("rural",))
    units = _units(domain, [table("units", "block", ("rural",))], 1, False)
    of_block = {}
    for unit in units:
        assert of_block.setdefault(unit["block"], unit["rural"]) == unit["rural"]
    assert set(of_block.values()) == {"1", "2"}


@pytest.mark.parametrize("where", [["1"], ["1", "2"], ["1", "2", "3", "4"]])
def test_no_code_is_made_up_beside_several_named_ones(where):
    """All persons are of one of two sexes: their number is no news beside that of persons."""
    sexes = MarginalTable(name="n", of="persons", level="all", where={"sex": where})
    a, b = pure(3, invariants=[sexes]), pure(3, invariants=[ALL_PERSONS])
    found = refute(a, b)
    assert (found is not None) == (where == ["1"])


def test_what_follows_by_reasons_unknown_to_the_rules_is_not_refuted():
    """Persons live in units of two kinds only; the rules know of three."""
    kinds = ("occupied", "group_quarters")
    a = pure(3, invariants=[table("persons", "state")])
    b = pure(3, invariants=[table("persons", "state", (), kinds)])
    assert refute(a, b) is None


def test_pairs_share_a_universe_and_are_at_a_finite_distance():
    invariants = swapping().multiverse.invariants
    households = hamming_of_multisets("household")
    found = list(pairs(CENSUS, invariants, households))
    assert len(found) > 30
    for pair in found:
        assert one_universe(invariants, pair, CENSUS)
        assert distance(households, pair) == 2  # never 1 when swapping


def test_what_makes_no_difference_to_the_premetric_is_not_a_pair():
    """Under persons, two data sets that differ in a vacant unit only are not apart."""
    kinds = table("units", "block", (), ("occupied", "vacant"))
    found = [distance(PERSONS, pair) for pair in pairs(CENSUS, [kinds], PERSONS)]
    assert found
    assert all(0 < apart < math.inf for apart in found)


def test_pairs_that_must_differ_do():
    households = table("units", "block")
    for pair in itertools.islice(pairs(CENSUS, [ALL_UNITS], PERSONS, households), 200):
        assert not one_universe([households], pair, CENSUS)


@pytest.mark.parametrize(
    "premetric",
    [
        InputPremetric(name="edge", unit="edge"),
        hamming_of_multisets("user"),
        PERSONS.model_copy(update={"counts": "contributors"}),
        InputPremetric(
            name="masked",
            unit="person",
            base=InputPremetric(name="hamming", unit="person"),
            detail="imputed records",
        ),
    ],
)
def test_without_a_computed_distance_nothing_is_refuted(premetric):
    assert refute(pure(9), pure(3, premetric=premetric)) is None
    assert distance(premetric, ((), ())) is None


@pytest.mark.parametrize(
    "invariant",
    [
        Indicator(name="n", of="units", level="block", where={"kind": ["occupied"]}),
        Inequality(name="n", of="persons", level="block", at_least=2),
        LinearCombination(
            name="n", of="persons", by=("sex",), level="state", weights={"1": "1", "2": "-1"}
        ),
        MarginalTable(name="n", of="units", level="state", whole_record=True, without=("tenure",)),
    ],
)
def test_every_kind_of_invariant_can_be_published(invariant):
    a, b = pure(3, invariants=[invariant]), pure(3, invariants=[ALL_UNITS])
    witness = refute(a, b)
    assert (witness.kind, witness.invariant) == ("exact", invariant)
    assert check(witness, a, b)


def test_a_column_left_out_of_records_is_what_differs():
    whole = table("units", "state", whole=True)
    rest = whole.model_copy(update={"without": ("tenure",)})
    witness = refute(
        pure(3, invariants=[whole], unit="household"), pure(3, invariants=[rest], unit="household")
    )
    x, y = witness.pair
    assert {unit["tenure"] for unit in x} != {unit["tenure"] for unit in y}


def test_columns_taken_to_vary_freely_are_named():
    age, voting = table("persons", "block", ("age",)), table("persons", "block", ("voting_age",))
    witness = refute(pure(3, invariants=[voting]), pure(3, invariants=[age]))
    assert witness.assumes == "none of age, voting_age is a function of the others"
    assert witness.assumes in witness.describe()
    assert refute(topdown(), swapping()).assumes == ""


def test_total_variation_never_becomes_infinite_so_nothing_is_concluded():
    kind = OutputPremetric(name="total-variation")
    b = promise(Exactly(of=2), output=kind)
    assert refute(pure(3, invariants=[ALL_UNITS]), b) is None


def test_adding_a_record_is_seen_by_what_is_bounded_only():
    a, b = pure(3), pure(3, premetric=symmetric_difference("person"))
    witness = refute(a, b)
    assert witness.invariant.name == "number of person records"
    x, y = witness.pair
    assert len(records(x, "person")) != len(records(y, "person"))
    assert "never compared" in witness.satisfies
