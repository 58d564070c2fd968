"""Distances between finite laws: known values, what each must obey, and exact comparison."""

import math
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet.errors import BadInput
from discreet.spec import divergences, psa
from discreet.spec.divergences import LogOf, RootOf, at_most, certified, distance, power_curve

F = Fraction
NAMES = [
    "multiplicative",
    "approximate",
    "renyi",
    "normalised-renyi",
    "kullback-leibler",
    "total-variation",
    "hellinger",
    "chi-squared",
    "gaussian",
]
FINITE_WHEN_DISJOINT = {"total-variation": 1.0, "hellinger": math.sqrt(2)}


def measured(name, p, q, **options):
    if name == "approximate":
        options.setdefault("delta", F(1, 100))
    if name == "renyi":
        options.setdefault("order", F(5, 2))
    return distance(name, p, q, **options)


def response(t: float):
    """Return the two laws of randomised response with ratio e^t (rounded), and ln of the ratio."""
    ratio = F(math.exp(t))
    p = {0: ratio / (1 + ratio), 1: 1 / (1 + ratio)}
    return p, {0: p[1], 1: p[0]}, math.log(ratio)


@st.composite
def laws(draw, number=2, zeros=True):
    size = draw(st.integers(1, 5))
    made = []
    for _ in range(number):
        weights = draw(st.lists(st.integers(0 if zeros else 1, 20), min_size=size, max_size=size))
        if not sum(weights):
            weights[0] = 1
        made.append({t: F(w, sum(weights)) for t, w in enumerate(weights)})
    return made


# -- known values ---------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [1e-3, 0.1, 1.0, 2.0, 5.0, 30.0])
def test_randomised_response(t):
    p, q, t = response(t)
    zero_concentrated = distance("normalised-renyi", p, q).bounds.squared()
    expected = t * math.tanh(t / 2)
    assert zero_concentrated.lower <= expected * (1 + 1e-14)
    assert zero_concentrated.upper >= expected * (1 - 1e-14)
    assert zero_concentrated.upper <= zero_concentrated.lower * (1 + 1e-9)
    assert float(distance("kullback-leibler", p, q).bounds) == pytest.approx(expected, rel=1e-12)
    assert float(distance("total-variation", p, q).exact) == pytest.approx(math.tanh(t / 2))
    assert float(distance("multiplicative", p, q).bounds) == pytest.approx(t)
    # Renyi of order 2 by hand: ln(p0^2/q0 + p1^2/q1); chi-squared is exp(D_2) - 1.
    second = float(distance("renyi", p, q, order=F(2)).bounds)
    assert math.expm1(second) == pytest.approx(float(distance("chi-squared", p, q).exact))


# Margins, rate, rho^2 of the swap (the square of the largest normalised Renyi per record).
RHO2 = [
    ((1, 1), "1/20", 1.464086, 1.0),
    ((2, 2), "1/20", 1.431145, 1.0),
    ((2, 2), "1/2", 0.063848, 3.23),
    ((1, 1, 1, 1), "1/20", 1.458764, 1.0),
    ((1, 1, 1, 1), "1/2", 0.118314, 1.0),
    ((5, 5), "1/20", 1.280349, 1.0),
    ((5, 5), "1/2", 0.045445, 1.0),
]


def swapped_pairs(margin, rate):
    universe = psa.tables_with_margins(margin, margin)
    known = {x: psa.table_law(x, F(rate)) for x in universe}
    for x, y in combinations(universe, 2):
        flat = [[count for row in table for count in row] for table in (x, y)]
        yield known[x], known[y], sum(abs(a - b) for a, b in zip(*flat, strict=True)) // 2


@pytest.mark.parametrize(("margin", "rate", "rho2", "order"), RHO2)
def test_zero_concentrated_loss_of_swapping(margin, rate, rho2, order):
    found = [(distance("normalised-renyi", p, q), d) for p, q, d in swapped_pairs(margin, rate)]
    worst, d = max(found, key=lambda pair: pair[0].bounds.lower / pair[1])
    bounds = worst.bounds.over(F(d)).squared()
    assert float(bounds) == pytest.approx(rho2, abs=6e-7)
    assert bounds.upper <= bounds.lower * (1 + 1e-9)
    assert worst.order == pytest.approx(order, abs=0.005)


@pytest.mark.parametrize(("rate", "expected"), [("1/20", 0.4731), ("1/2", 0.1319)])
def test_total_variation_of_swapping(rate, expected):
    found = max(
        distance("total-variation", p, q).exact / d for p, q, d in swapped_pairs((5, 5), rate)
    )
    assert float(found) == pytest.approx(expected, abs=5e-5)


def test_the_gaussian_distance_of_a_coarse_normal_pair():
    # Power at one size only: mu is the difference of the two normal quantiles.
    p, q = {0: F(1, 40), 1: F(39, 40)}, {0: F(1, 2), 1: F(1, 2)}
    bounds = distance("gaussian", p, q).bounds
    assert bounds.lower <= 1.959963984540054 <= bounds.upper
    assert bounds.upper - bounds.lower < 1e-9


def test_the_gaussian_distance_of_a_rare_event():
    p, q = {0: F(1, 10**400), 1: 1 - F(1, 10**400)}, {0: F(1, 2), 1: F(1, 2)}
    bounds = distance("gaussian", p, q).bounds
    assert 36.9 <= bounds.lower < 42.8 < bounds.upper < 43


def test_the_power_curve_rejects_the_likeliest_first():
    p = {"a": F(1, 2), "b": F(1, 2)}
    q = {"b": F(1, 4), "c": F(3, 4)}
    assert power_curve(p, q) == [(0, 0), (0, F(3, 4)), (F(1, 2), 1), (1, 1)]


def test_an_approximate_distance_is_solved_exactly():
    p, q = {0: F(3, 4), 1: F(1, 4)}, {0: F(1, 4), 1: F(3, 4)}
    found = distance("approximate", p, q, delta=F(1, 10))
    assert found.exact == LogOf(F(13, 5))  # (3/4 - 1/10) / (1/4)
    assert distance("approximate", p, q, delta=F(1, 2)).exact == LogOf(F(1))


def test_an_exclusive_point_of_mass_delta_is_free_once_but_not_twice():
    """Approximate distances at fixed delta are not closed under products."""
    delta = F(1, 1000)
    p = {"caught": delta, "other": 1 - delta}
    q = {"other": F(1)}
    assert distance("approximate", p, q, delta=delta).bounds.upper == 0
    twice = [{(s, t): a * b for s, a in law.items() for t, b in law.items()} for law in (p, q)]
    assert distance("approximate", *twice, delta=delta).bounds.lower == math.inf
    assert distance("approximate", *twice, delta=2 * delta).bounds.upper == 0


# -- what a distance must obey --------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(pair=laws())
def test_a_distance_is_symmetric_and_zero_for_equal_laws(name, pair):
    p, q = pair
    assert measured(name, p, p).bounds.upper == 0
    assert measured(name, p, q).bounds == measured(name, q, p).bounds
    assert measured(name, p, q).bounds.lower <= measured(name, p, q).bounds.upper


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None)
@given(pair=laws())
def test_processing_never_increases_a_distance(name, pair):
    p, q = pair

    def merged(law):
        made = {}
        for outcome, chance in law.items():
            made[outcome // 2] = made.get(outcome // 2, F(0)) + chance
        return made

    coarse = measured(name, merged(p), merged(q)).bounds
    assert coarse.lower <= measured(name, p, q).bounds.upper


@pytest.mark.parametrize("name", ["multiplicative", "normalised-renyi", "hellinger", "gaussian"])
@settings(max_examples=25, deadline=None)
@given(three=laws(number=3, zeros=False))
def test_metrics_satisfy_the_triangle_inequality(name, three):
    p, q, r = three
    way = measured(name, p, q).bounds.upper + measured(name, q, r).bounds.upper
    assert measured(name, p, r).bounds.lower <= way * (1 + 1e-12)


@settings(max_examples=25, deadline=None)
@given(one=laws(zeros=False), other=laws(zeros=False))
def test_products_follow_their_rule(one, other):
    both = [{(s, t): a[s] * b[t] for s in a for t in b} for a, b in zip(one, other, strict=True)]

    def value(name, pair):
        return float(measured(name, *pair).bounds)

    for name in ("multiplicative", "kullback-leibler"):
        # These two are symmetrised, so the larger directions need not be the same ones.
        assert value(name, both) <= value(name, one) + value(name, other) + 1e-12
    root = math.hypot(value("normalised-renyi", one), value("normalised-renyi", other))
    assert value("normalised-renyi", both) <= root * (1 + 1e-9) + 1e-15
    assert value("hellinger", both) <= math.hypot(
        value("hellinger", one), value("hellinger", other)
    )


@settings(max_examples=25, deadline=None)
@given(pair=laws(zeros=False))
def test_distances_are_in_their_known_order(pair):
    t = float(measured("multiplicative", *pair).bounds)
    rho2 = float(measured("normalised-renyi", *pair).bounds) ** 2
    assert rho2 <= t * math.tanh(t / 2) * (1 + 1e-9) + 1e-15
    assert rho2 >= float(measured("kullback-leibler", *pair).bounds) * (1 - 1e-9)
    for order in (F(3, 2), F(3), F(20)):
        renyi = float(measured("renyi", *pair, order=order).bounds)
        assert renyi <= rho2 * order * (1 + 1e-9) + 1e-15
    variation = float(measured("total-variation", *pair).exact)
    assert variation <= math.tanh(t / 2) + 1e-12
    assert measured("approximate", *pair).bounds.upper <= t + 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_an_outcome_that_only_one_law_has(name):
    p, q = {0: F(1, 2), 1: F(1, 2)}, {1: F(1)}
    apart = measured(name, {0: F(1)}, {1: F(1)}).bounds
    if name in FINITE_WHEN_DISJOINT:
        assert apart.lower <= FINITE_WHEN_DISJOINT[name] <= apart.upper
    else:
        assert apart.lower == math.inf
        assert measured(name, p, q).bounds.lower == math.inf


def test_listing_an_impossible_outcome_changes_nothing():
    p, q = {0: F(1, 3), 1: F(2, 3)}, {0: F(1, 2), 1: F(1, 2)}
    for name in NAMES:
        assert measured(name, {**p, 9: F(0)}, q) == measured(name, p, q)


def test_the_search_over_orders_finds_an_inner_maximum():
    """Against plain evaluation on a fine grid of orders."""
    p, q = {0: F(1, 10), 1: F(9, 10)}, {0: F(1, 50), 1: F(49, 50)}
    grid = [1 + F(2 * k + 1, 20) for k in range(400)]
    best = max(float(distance("renyi", p, q, order=a).bounds) / float(a) for a in grid)
    found = distance("normalised-renyi", p, q)
    assert found.bounds.lower**2 >= best * (1 - 1e-9)
    assert found.bounds.upper**2 <= best * (1 + 1e-4)


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("trade-off", {}, "power_curve"),
        ("integral-probability", {}, "class of functions"),
        ("nonsense", {}, "nonsense"),
        ("approximate", {}, "delta"),
        ("renyi", {"order": F(1)}, "order"),
    ],
)
def test_what_is_no_number_is_refused(name, options, match):
    with pytest.raises(BadInput, match=match):
        distance(name, {0: F(1)}, {0: F(1, 2), 1: F(1, 2)}, **options)


def test_what_is_no_law_is_refused():
    for bad in ({0: F(1, 2)}, {0: F(3, 2), 1: F(-1, 2)}, {}):
        with pytest.raises(BadInput, match="sum to 1"):
            distance("total-variation", bad, {0: F(1)})


# -- exact comparison -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (LogOf(F(9), F(2)), LogOf(F(3)), True),
        (LogOf(F(3)), LogOf(F(9), F(2)), True),
        (LogOf(F(9), F(2)), LogOf(F(3), 1 + F(1, 10**40)), False),
        (LogOf(F(3), 1 + F(1, 10**40)), LogOf(F(9), F(2)), True),
        (LogOf(F(1)), F(0), True),
        (F(0), LogOf(F(1)), True),
        (F(1, 10), LogOf(F(1)), False),
        (LogOf(F(2)), F("0.69314718055994530941723212145817656807551"), True),
        (LogOf(F(2)), F("0.69314718055994530941723212145817656807550"), False),
        (RootOf(F(2)), F(3, 2), True),
        (RootOf(F(9, 4)), F(3, 2), True),
        (F(3, 2), RootOf(F(2)), False),
    ],
)
def test_exact_numbers_are_compared_without_rounding(one, other, expected):
    assert at_most(one, other) is expected


@given(st.fractions(1, 50), st.fractions(F(1, 9), 9), st.fractions(F(1, 9), 9))
@example(1 + F(1, 10**26), F(1), F(1))  # so small that the slack is the wider part
def test_bounds_enclose_and_divide(of, over, divisor):
    number = LogOf(of, over)
    bounds, exact = divergences.bounds_of(number), divergences.divided(number, divisor)
    # The slack lies on both sides, and each side is rounded to a float once.
    width = 2 * F(certified.SLACK) + F(bounds.upper) / 2**51
    assert bounds.lower <= bounds.upper <= F(bounds.lower) + width
    assert float(divergences.bounds_of(exact)) == pytest.approx(float(bounds) / float(divisor))
    assert at_most(number, number)
