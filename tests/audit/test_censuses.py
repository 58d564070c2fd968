"""Mechanisms verified on censuses that are written out."""

from fractions import Fraction

import pytest

from discreet.audit import verify_mechanism
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import NoisyTables, mechanism
from discreet.spec import Exactly, LogRational
from worlds import us_census

ONE, OLD, YOUNG = [(40, "1", "01")], [(70, "2", "02")], [(25, "1", "04")]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(threads=1)


@pytest.fixture(scope="module")
def exchanged(engine):
    """Return all censuses of two blocks with the same three records and sizes of the blocks.

    A fourth one has two records only, so it lies in another universe of the swap.
    """
    ways = [(0, 1, 1), (1, 0, 1), (1, 1, 0)]
    made = [
        us_census(
            engine,
            [(a, "1", ONE), (b, "1", OLD), (c, "1", YOUNG)],
            blocks=2,
            extras=False,
        )
        for a, b, c in ways
    ]
    return [*made, us_census(engine, [(0, "1", ONE), (1, "1", OLD)], blocks=2, extras=False)]


def swapping(schema, rate="1/2"):
    parameters = {"rate": rate, "match": ["size"], "within": "county"}
    return mechanism("permutation-swapping", schema, parameters)


def noisy(schema, noise="gaussian", change="replace"):
    return NoisyTables.model_validate(
        {
            "census_schema": schema,
            "noise": noise,
            "budget": "1/2",
            "change": change,
            "queries": [
                {"table": "H4", "level": "county", "share": "1/4"},
                {"table": "H9", "level": "block", "share": "3/4"},
            ],
        }
    )


def with_amount(specification, amount):
    budget = specification.budget.model_copy(update={"amount": amount})
    return specification.model_copy(update={"budget": budget})


def test_swapping_keeps_its_promise_and_no_smaller_one(exchanged):
    made = swapping(exchanged[0].schema)
    found = verify_mechanism(made, exchanged)
    assert found.answer == "satisfied"
    assert len(found.loss.by_universe) == 1  # the smaller census has nobody to be compared with
    assert found.loss.witness.apart == 2
    exact = found.loss.exact
    promised = made.specify(made.facts(exchanged[0]))
    tight = with_amount(promised, LogRational(of=exact.of, times=1 / exact.over))
    assert verify_mechanism(made, exchanged, tight).answer == "satisfied"
    less = with_amount(
        promised, LogRational(of=exact.of, times=(1 - Fraction(1, 10**9)) / exact.over)
    )
    broken = verify_mechanism(made, exchanged, less)
    assert broken.answer == "violated"
    assert {broken.witness.one, broken.witness.other} <= {0, 1, 2}


def test_another_rate_breaks_the_promise(exchanged):
    schema = exchanged[0].schema
    honest, hasty = swapping(schema), swapping(schema, "1/100")
    promised = honest.specify(honest.facts(exchanged[0]))
    assert verify_mechanism(honest, exchanged, promised).answer == "satisfied"
    assert verify_mechanism(hasty, exchanged, promised).answer == "violated"


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("change", ["replace", "add-remove"])
def test_noisy_tables_keep_their_promise(exchanged, noise, change):
    made = noisy(exchanged[0].schema, noise, change)
    assert verify_mechanism(made, exchanged).answer == "satisfied"


def test_noisy_tables_use_up_their_budget(engine):
    """A household that changes tenure and block moves one count in every cell it can."""
    pair = [
        us_census(engine, [(block, tenure, ONE)], blocks=2, extras=False)
        for block, tenure in ((0, "1"), (1, "3"))
    ]
    made = noisy(pair[0].schema)
    found = verify_mechanism(made, pair)
    assert found.answer == "satisfied"
    assert found.loss.exact.of == Fraction(1, 2)
    less = with_amount(made.specify(), Exactly(of=Fraction(1, 2) - Fraction(1, 10**20)))
    assert verify_mechanism(made, pair, less).answer == "violated"


class Careless(NoisyTables):
    """Noisy tables that forget that a change touches two counts."""

    def parameter(self, query):
        return super().parameter(query) / 2


def test_noise_for_half_the_sensitivity_is_found(engine):
    pair = [
        us_census(engine, [(block, tenure, ONE)], blocks=2, extras=False)
        for block, tenure in ((0, "1"), (1, "3"))
    ]
    honest = noisy(pair[0].schema)
    careless = Careless.model_validate({**honest.parameters(), "census_schema": pair[0].schema})
    assert verify_mechanism(careless, pair, honest.specify()).answer == "violated"


def test_a_specification_of_another_domain_is_refused(exchanged):
    made = swapping(exchanged[0].schema)
    promised = made.specify()
    raw = promised.domain.model_copy(update={"stage": "raw"})
    with pytest.raises(BadInput, match="different domains"):
        verify_mechanism(made, exchanged, promised.model_copy(update={"domain": raw}))


def test_a_mechanism_without_a_law_is_refused(exchanged):
    made = noisy(exchanged[0].schema)

    class Unknown:
        name = "unknown"

        def specify(self, facts=None):
            return made.specify()

    with pytest.raises(BadInput, match="no law"):
        verify_mechanism(Unknown(), exchanged)
