"""Integer noise: distances against the sampler's own exact law, cut to a wide window."""

import math
from fractions import Fraction
from itertools import product
from statistics import NormalDist

import pytest

from discreet.audit import Shift, distance_of_shifts, judge, pairs
from discreet.errors import BadInput
from discreet.noise import DiscreteGaussian, DiscreteLaplace
from discreet.spec import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    Budget,
    Exactly,
    OutputPremetric,
    approximate,
)

F = Fraction
KINDS = {"gaussian": DiscreteGaussian, "laplace": DiscreteLaplace}
CASES = [
    ("gaussian", F(1, 2), (1,)),
    ("gaussian", F(2), (3,)),
    ("gaussian", F(2), (1, -1)),
    ("laplace", F(1, 2), (1,)),
    ("laplace", F(3, 2), (3,)),
    ("laplace", F(1), (2, -1)),
]


def wide_laws(noise, parameter, shifts):
    """Return the probabilities of both laws over a window with nearly all of the mass."""
    law = KINDS[noise](parameter)
    reach = 12 * max(1, round(math.sqrt(parameter))) if noise == "gaussian" else 60
    chances = {x: float(law.probability(x)) for x in range(-reach - 9, reach + 10)}
    cells = product(range(-reach, reach + 1), repeat=len(shifts))
    both = []
    for cell in cells:
        p = math.prod(chances[x] for x in cell)
        q = math.prod(chances[x - m] for x, m in zip(cell, shifts, strict=True))
        both.append((p, q))
    return both


def plain(output, both):
    """Compute a distance in floating point by its definition."""
    if output.name == "total-variation":
        return math.fsum(abs(p - q) for p, q in both) / 2
    if output.name == "hellinger":
        return math.sqrt(math.fsum((math.sqrt(p) - math.sqrt(q)) ** 2 for p, q in both))
    if output.name == "kullback-leibler":
        return math.fsum(p * math.log(p / q) for p, q in both if p and q)
    if output.name == "renyi":
        a = float(output.order)
        return math.log(math.fsum(p**a * q ** (1 - a) for p, q in both if p and q)) / (a - 1)
    low, high = 0.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        left = math.fsum(max(0.0, p - math.exp(middle) * q) for p, q in both)
        low, high = (middle, high) if left > output.delta else (low, middle)
    return low


@pytest.mark.parametrize(("noise", "parameter", "shifts"), CASES)
@pytest.mark.parametrize(
    "output",
    [
        OutputPremetric(name="total-variation"),
        OutputPremetric(name="hellinger"),
        OutputPremetric(name="kullback-leibler"),
        OutputPremetric(name="renyi", order=F(5, 3)),
        OutputPremetric(name="renyi", order=F(2)),
        approximate(F(1, 100)),
        approximate(F(1, 10**6)),
    ],
    ids=lambda output: output.name,
)
def test_against_the_samplers_law(noise, parameter, shifts, output):
    found = distance_of_shifts(output, [Shift(noise, parameter, m) for m in shifts])
    expected = plain(output, wide_laws(noise, parameter, shifts))
    assert found.bounds.lower <= expected * (1 + 1e-8) + 1e-12
    assert found.bounds.upper >= expected * (1 - 1e-8) - 1e-12
    assert found.bounds.upper - found.bounds.lower <= 1e-12 * max(1, found.bounds.upper)


@pytest.mark.parametrize("sigma2", [F(1, 100), F(1, 2), F(7, 3), F(100), F(10**8)])
def test_gaussian_noise_loses_exactly_its_closed_form(sigma2):
    one = distance_of_shifts(NORMALISED_RENYI, [Shift("gaussian", sigma2, 1)])
    assert one.exact.of == 1 / (2 * sigma2)
    square = one.bounds.squared()
    expected = float(1 / (2 * sigma2))
    assert square.lower <= expected <= square.upper <= square.lower * (1 + 1e-14)
    assert distance_of_shifts(MULTIPLICATIVE, [Shift("gaussian", sigma2, 1)]).bounds.lower == (
        math.inf
    )


@pytest.mark.parametrize("sigma2", [F(1, 100), F(1, 3), F(2)])
def test_no_order_of_gaussian_noise_exceeds_the_closed_form(sigma2):
    """The closed form rests on theta being largest at whole numbers: look at other orders."""
    for order in (F(11, 10), F(3, 2), F(5, 2), F(7, 3), F(2), F(9)):
        output = OutputPremetric(name="renyi", order=order)
        renyi = distance_of_shifts(output, [Shift("gaussian", sigma2, 1)]).bounds
        assert renyi.lower <= float(order / (2 * sigma2))
        if order.denominator > 1 and sigma2 < F(1, 2):
            assert renyi.upper < float(order / (2 * sigma2))


def test_laplace_noise_searched_over_orders_stays_below_the_tight_conversion():
    for scale, by in ((F(1, 2), 1), (F(2), 1), (F(2), 5), (F(10**4), 1)):
        shift = [Shift("laplace", scale, by)]
        t = float(by / scale)
        square = distance_of_shifts(NORMALISED_RENYI, shift).bounds.squared()
        assert square.upper <= t * math.tanh(t / 2) * (1 + 1e-9)
        entropy = distance_of_shifts(OutputPremetric(name="kullback-leibler"), shift).bounds
        assert square.lower >= entropy.lower * (1 - 1e-9)
        assert square.upper <= square.lower * (1 + 1e-9)


def test_wide_gaussian_noise_approaches_the_normal_law():
    mu, delta = 1 / 50, F(1, 10**6)
    found = float(distance_of_shifts(approximate(delta), [Shift("gaussian", F(2500), 1)]).bounds)
    phi = NormalDist().cdf
    limit = phi(mu / 2 - found / mu) - math.exp(found) * phi(-mu / 2 - found / mu)
    assert limit == pytest.approx(float(delta), rel=0.02)


def test_cells_that_do_not_differ_cost_nothing():
    output = OutputPremetric(name="total-variation")
    still, moved = Shift("laplace", F(2), 0), Shift("laplace", F(2), 1)
    assert distance_of_shifts(output, [still, still]).bounds.upper == 0
    assert distance_of_shifts(output, [still, moved]) == distance_of_shifts(output, [moved])


@pytest.mark.parametrize(("halved", "answer"), [(1, "satisfied"), (2, "violated")])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_noise_for_half_the_sensitivity_is_found(noise, halved, answer):
    """A record that moves changes two cells; noise for one of them only breaks the promise."""
    promised = F(1, 2)
    parameter = 2 / (2 * promised) if noise == "gaussian" else 2 / promised
    output = NORMALISED_RENYI if noise == "gaussian" else MULTIPLICATIVE
    tables = [(3, 0), (2, 1), (1, 2), (0, 3)]
    compared = pairs(
        tables,
        lambda x, y: F(sum(abs(a - b) for a, b in zip(x, y, strict=True)), 2),
        lambda x, y: distance_of_shifts(
            output, [Shift(noise, parameter / halved, b - a) for a, b in zip(x, y, strict=True)]
        ),
    )
    budget = Budget(
        unit="rho2" if noise == "gaussian" else "epsilon",
        amount=Exactly(of=promised),
        source="a test",
        status="proved here",
    )
    assert judge(compared, output, budget).answer == answer


@pytest.mark.parametrize(
    ("output", "shifts", "match"),
    [
        (OutputPremetric(name="gaussian"), [Shift("laplace", F(1), 1)], "not computed"),
        (
            NORMALISED_RENYI,
            [Shift("laplace", F(1), 1), Shift("gaussian", F(1), 1)],
            "two kinds",
        ),
        (approximate(F(1, 10**31)), [Shift("laplace", F(1), 1)], "delta"),
        (
            OutputPremetric(name="total-variation"),
            [Shift("gaussian", F(10007), 1), Shift("gaussian", F(10009), 1)],
            "too many",
        ),
    ],
)
def test_what_is_not_computed_is_refused(output, shifts, match):
    with pytest.raises(BadInput, match=match):
        distance_of_shifts(output, shifts)


@pytest.mark.parametrize(("parameter", "by"), [(F(1, 1000), 1), (F(10**9), 1), (F(1), 10**6)])
def test_parameters_without_a_proof_are_refused(parameter, by):
    with pytest.raises(BadInput):
        Shift("laplace", parameter, by)
