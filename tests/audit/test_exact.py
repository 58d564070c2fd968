"""The exact verifier: it must find what is planted, and decide close calls exactly."""

import math
from fractions import Fraction
from itertools import permutations

import pytest

from discreet.audit import audit_margins, exact_loss_of, verify
from discreet.errors import BadInput
from discreet.spec import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    Budget,
    Exactly,
    FunctionOfUniverse,
    LogRational,
    NoFiniteBudget,
    OutputPremetric,
    approximate,
    psa,
)
from discreet.spec.divergences import LogOf

F = Fraction
LITTLE = F(1, 10**9)


def budget(amount, unit="epsilon"):
    return Budget(unit=unit, amount=amount, source="a test", status="proved here")


def step(x, y):
    return abs(x - y)


def changed(x, y):
    """Return half the sum of absolute differences of two tables."""
    flat = [[count for row in table for count in row] for table in (x, y)]
    return F(sum(abs(a - b) for a, b in zip(*flat, strict=True)), 2)


def universe(margin):
    return psa.tables_with_margins(margin, margin)


def swapping(margin, rate):
    return {x: psa.table_law(x, rate) for x in universe(margin)}


def permuting(margin, chances):
    """Return the laws on the all-distinct universe of a law on permutations (images of places).

    Independent of the accountant: each permutation is applied to each table.
    """
    laws = {}
    for x in universe(margin):
        at = [row.index(1) for row in x]
        laws[x] = law = dict.fromkeys(universe(margin), F(0))
        for images, chance in chances.items():
            moved = tuple(tuple(int(s == at[i]) for s in range(len(x))) for i in images)
            law[moved] += chance
    return laws


def moved(images):
    return sum(place != image for place, image in enumerate(images))


def is_cycle(images):
    """Tell whether the places that move form a single cycle."""
    start = next(place for place, image in enumerate(images) if place != image)
    place, length = images[start], 1
    while place != start:
        place, length = images[place], length + 1
    return length == moved(images)


def weights_of(kept, n, rate):
    """Return the law on permutations that draws one of those `kept` for a selection."""
    counts = {}
    for images in permutations(range(n)):
        if moved(images) == 0 or kept(images):
            chosen = frozenset(i for i, image in enumerate(images) if i != image)
            counts.setdefault(chosen, []).append(images)
    chances = {}
    for chosen, options in counts.items():
        mass = rate ** len(chosen) * (1 - rate) ** (n - len(chosen))
        for images in options:
            chances[images] = mass / len(options)
    total = sum(chances.values())
    return {images: chance / total for images, chance in chances.items()}


# -- the loss ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("margin", "rate"),
    [((2, 2), "1/2"), ((2, 1, 1), "1/10"), ((3, 2), "9/10"), ((1, 1, 1), "1/20")],
)
def test_the_verifier_agrees_with_the_accountant_exactly(margin, rate):
    loss = exact_loss_of(swapping(margin, F(rate)), changed, MULTIPLICATIVE)
    told = psa.exact_loss(margin, margin, F(rate))
    assert loss.exact == LogOf(told.ratio, F(told.distance)) or (
        loss.exact.of**told.distance == told.ratio ** int(loss.exact.over)
    )
    assert loss.bounds.lower <= told.value * (1 + 1e-14)
    assert loss.bounds.upper >= told.value * (1 - 1e-14)


def test_the_plain_algorithm_is_found_by_enumeration_too():
    chances = weights_of(lambda images: True, 4, F(1, 3))
    assert permuting((1, 1, 1, 1), chances) == swapping((1, 1, 1, 1), F(1, 3))


def test_the_exact_form_and_its_witness():
    loss = exact_loss_of(swapping((2, 2), F(1, 2)), changed, MULTIPLICATIVE)
    assert str(loss.exact) == "ln(19/4)/2"
    assert float(loss.bounds) == pytest.approx(0.779072, abs=6e-7)
    witness = loss.witness
    laws = swapping((2, 2), F(1, 2))
    chances = {laws[x][witness.distance.outcome] for x in (witness.one, witness.other)}
    assert max(chances) / min(chances) == F(19, 4)
    assert witness.apart == 2


def test_losses_of_universes_stay_apart():
    laws = {
        **{("big", x): law for x, law in swapping((2, 2), F(1, 20)).items()},
        **{("small", x): law for x, law in swapping((1, 1), F(1, 2)).items()},
    }
    loss = exact_loss_of(laws, lambda x, y: changed(x[1], y[1]), MULTIPLICATIVE, lambda x: x[0])
    assert float(loss.by_universe["big"].bounds) == pytest.approx(3.375697, abs=6e-7)
    assert loss.by_universe["small"].exact == 0
    assert loss.by_universe["small"].witness is None
    assert loss.bounds == loss.by_universe["big"].bounds


def test_merging_universes_can_only_raise_the_loss():
    p, q, r = ({0: F(k, 10), 1: 1 - F(k, 10)} for k in (2, 5, 9))
    fine = exact_loss_of({0: p, 1: q, 2: r}, step, MULTIPLICATIVE, lambda x: x // 2)
    coarse = exact_loss_of({0: p, 1: q, 2: r}, step, MULTIPLICATIVE)
    assert fine.bounds.upper < coarse.bounds.lower


def test_nothing_to_compare_loses_nothing():
    law = {"a": F(1)}
    assert exact_loss_of({0: law}, step, MULTIPLICATIVE).bounds.upper == 0
    apart = exact_loss_of({0: law, 1: {"b": F(1)}}, lambda x, y: math.inf, MULTIPLICATIVE)
    assert apart.bounds.upper == 0


# -- the verdict: close calls --------------------------------------------------------------------


def test_a_pure_budget_is_decided_exactly():
    laws = swapping((2, 2), F(1, 2))

    def answer(amount):
        return verify(laws, changed, MULTIPLICATIVE, budget(amount)).answer

    # The loss is ln(19/4)/2.
    assert answer(LogRational(of=F(19, 4), times=F(1, 2))) == "satisfied"
    for little in (LITTLE, F(1, 10**30)):
        assert answer(LogRational(of=F(19, 4), times=F(1, 2) * (1 - little))) == "violated"
        assert answer(LogRational(of=F(19, 4) * (1 - little), times=F(1, 2))) == "violated"
    close = F("0.779072309023274849")
    assert answer(Exactly(of=close - LITTLE)) == "violated"
    assert answer(Exactly(of=close + LITTLE)) == "satisfied"


@pytest.mark.parametrize(("little", "answer"), [(F(0), "satisfied"), (LITTLE, "violated")])
def test_a_rational_loss_meets_its_budget_exactly(little, answer):
    laws = {0: {0: F(2, 3), 1: F(1, 3)}, 1: {0: F(1, 3), 1: F(2, 3)}}
    output = OutputPremetric(name="total-variation")
    found = verify(laws, step, output, budget(Exactly(of=F(1, 3) * (1 - little)), "value"))
    assert found.answer == answer


def test_a_zero_concentrated_budget_is_decided_by_bounds():
    laws = swapping((2, 2), F(1, 2))
    rho2 = F(exact_loss_of(laws, changed, NORMALISED_RENYI).bounds.squared().lower)
    answers = {
        factor: verify(
            laws, changed, NORMALISED_RENYI, budget(Exactly(of=rho2 * factor), "rho2")
        ).answer
        for factor in (1 - LITTLE, F(1) + F(1, 10**13), 1 + LITTLE)
    }
    assert list(answers.values()) == ["violated", "undecided", "satisfied"]


def test_a_budget_may_depend_on_the_universe():
    laws = {
        **{(2, x): law for x, law in swapping((2, 2), F(1, 20)).items()},
        **{(1, x): law for x, law in swapping((1, 1), F(1, 20)).items()},
    }

    def of(universe):
        ratio = psa.theorem_1(2 * universe, F(1, 20)).ratio
        return budget(LogRational(of=ratio))

    apart = lambda x, y: changed(x[1], y[1])  # noqa: E731
    assert verify(laws, apart, MULTIPLICATIVE, of, lambda x: x[0]).answer == "satisfied"
    small = of(1).model_copy(update={"amount": LogRational(of=F(10))})
    found = verify(
        laws, apart, MULTIPLICATIVE, lambda u: small if u == 1 else of(u), lambda x: x[0]
    )
    assert found.answer == "violated"
    assert found.witness.universe == 1


# -- planted violations --------------------------------------------------------------------------


def keeps_theorem_1(margin, laws, rate):
    promised = psa.theorem_1(sum(margin), rate).ratio
    return verify(laws, changed, MULTIPLICATIVE, budget(LogRational(of=promised)))


def test_the_real_algorithm_keeps_theorem_1():
    for margin in ((1, 1), (2, 2), (1, 1, 1, 1)):
        assert keeps_theorem_1(margin, swapping(margin, F(1, 20)), F(1, 20)).answer == "satisfied"


def test_forgotten_reselection_is_found():
    n, rate = 2, F(1, 20)
    chances = weights_of(lambda images: True, n, rate)
    alone = n * rate * (1 - rate) ** (n - 1)
    kept = 1 - alone
    forgetful = {images: chance * kept for images, chance in chances.items()}
    forgetful[tuple(range(n))] += alone
    exact = psa.exact_loss((1, 1), (1, 1), rate).ratio
    honest = budget(LogRational(of=exact, times=F(1, 2)))
    assert verify(swapping((1, 1), rate), changed, MULTIPLICATIVE, honest).answer == "satisfied"
    found = verify(permuting((1, 1), forgetful), changed, MULTIPLICATIVE, honest)
    assert found.answer == "violated"


@pytest.mark.parametrize(
    ("flaw", "kept", "margin"),
    [
        ("cyclic derangements (Sattolo)", is_cycle, (1, 1, 1, 1)),
        ("at most two records moved", lambda images: moved(images) <= 2, (1, 1, 1)),
        (
            "disjoint pair swaps",
            lambda images: all(images[images[i]] == i for i in range(len(images))),
            (1, 1, 1, 1),
        ),
    ],
)
def test_permutations_left_out_make_the_loss_infinite(flaw, kept, margin):
    rate = F(1, 2)
    laws = permuting(margin, weights_of(kept, len(margin), rate))
    found = keeps_theorem_1(margin, laws, rate)
    assert found.answer == "violated", flaw
    assert found.loss.bounds.lower == math.inf
    witness = found.witness
    chances = [laws[x][witness.distance.outcome] for x in (witness.one, witness.other)]
    assert min(chances) == 0 < max(chances)


def test_a_one_sided_zero_is_found():
    laws = {0: {"a": F(1, 2), "b": F(1, 2)}, 1: {"a": F(1, 2), "b": F(1, 4), "rare": F(1, 4)}}
    found = verify(laws, step, MULTIPLICATIVE, budget(LogRational(of=F(10**9))))
    assert found.answer == "violated"
    assert found.witness.distance.outcome == "rare"


def test_a_violation_in_the_reverse_order_only_is_found():
    laws = {0: {0: F(2, 3), 1: F(1, 3)}, 1: {0: F(1, 3), 1: F(2, 3)}}
    easy = budget(LogRational(of=F(2)))

    def forth(x, y):
        return 1 if x <= y else math.inf

    def uneven(x, y):
        return 1 if x <= y else F(9, 10)

    assert verify(laws, forth, MULTIPLICATIVE, easy).answer == "satisfied"
    found = verify(laws, uneven, MULTIPLICATIVE, easy)
    assert found.answer == "violated"
    assert (found.witness.one, found.witness.other) == (1, 0)


def test_data_sets_at_distance_zero_must_have_one_law():
    laws = {0: {0: F(1, 2), 1: F(1, 2)}, 1: {0: F(501, 1000), 1: F(499, 1000)}}
    large = budget(LogRational(of=F(10**6)))
    found = verify(laws, lambda x, y: 0, MULTIPLICATIVE, large)
    assert found.answer == "violated"
    assert found.loss.bounds.lower == math.inf
    assert verify({0: laws[0], 1: laws[0]}, lambda x, y: 0, MULTIPLICATIVE, large).answer == (
        "satisfied"
    )


def test_approximate_budgets_do_not_compose_at_one_delta():
    delta = F(1, 1000)
    p, q = {"caught": delta, "other": 1 - delta}, {"other": F(1)}
    free = budget(Exactly(of=F(0)))
    once = verify({0: p, 1: q}, step, approximate(delta), free)
    assert once.answer == "satisfied"
    twice = {
        number: {(s, t): a * b for s, a in law.items() for t, b in law.items()}
        for number, law in enumerate((p, q))
    }
    found = verify(twice, step, approximate(delta), budget(LogRational(of=F(10**9))))
    assert found.answer == "violated"
    assert "stands for each pair" in found.told
    assert verify(twice, step, approximate(2 * delta), free).answer == "satisfied"


# -- refusals ------------------------------------------------------------------------------------


def test_an_infinite_budget_promises_nothing():
    laws = {0: {"a": F(1)}, 1: {"b": F(1)}}
    nothing = budget(NoFiniteBudget(reason="published exactly"))
    assert verify(laws, lambda x, y: 0, MULTIPLICATIVE, nothing).answer == "satisfied"


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        (budget(Exactly(of=F(1)), "rho2"), "told in epsilon"),
        (budget(FunctionOfUniverse(formula="b")), "function of the universe"),
    ],
)
def test_a_budget_of_another_kind_is_refused(asked, match):
    laws = {0: {"a": F(1)}, 1: {"a": F(1)}}
    with pytest.raises(BadInput, match=match):
        verify(laws, step, MULTIPLICATIVE, asked)


def test_a_negative_distance_is_refused():
    with pytest.raises(BadInput, match="negative"):
        exact_loss_of({0: {0: F(1)}, 1: {0: F(1)}}, lambda x, y: -1, MULTIPLICATIVE)


# -- one stratum by its margins ------------------------------------------------------------------


def test_an_audit_of_margins_under_two_premetrics():
    pure = audit_margins([2, 2], [2, 2], F(1, 2))
    assert (str(pure.loss.exact), pure.tables, pure.theorem_1_holds) == ("ln(19/4)/2", 3, True)
    other = audit_margins([2, 2], [2, 2], F(1, 2), NORMALISED_RENYI)
    assert float(other.loss.bounds.squared()) == pytest.approx(0.063848, abs=6e-7)
    assert other.theorem_1 == pure.theorem_1


def test_margins_with_one_table_lose_nothing():
    audit = audit_margins([4], [2, 2], F(1, 2))
    assert (audit.tables, audit.loss.bounds.upper, audit.loss.witness) == (1, 0, None)


def test_too_many_tables_are_refused():
    with pytest.raises(BadInput, match="at most 150"):
        audit_margins([1] * 6, [1] * 6, F(1, 2), NORMALISED_RENYI)
