"""Tell a promise in another output premetric, the other blocks unchanged.

`t` is the distance of one pair of laws. A conversion t -> phi(t) of one pair is used on a
budget per unit of distance, so the new budget is the largest phi(budget d)/d over the
distances d that occur. Where phi(t)/t falls with t, the smallest distance decides; where
it grows without bound (approximate differential privacy) only pairs up to a stated
distance can be promised anything, and the input premetric becomes "neighbours".

Every result is rounded up. Downwards only: pure, then zero-concentrated, then
approximate; there is no way back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from discreet.errors import BadInput
from discreet.spec.budget import (
    Amount,
    Budget,
    Exactly,
    FunctionOfUniverse,
    LogRational,
    NoFiniteBudget,
    Status,
    weakest,
)
from discreet.spec.inputs import neighbours
from discreet.spec.numbers import log_up, root_up, tanh_up
from discreet.spec.outputs import OutputPremetric
from discreet.spec.specification import Specification

Method = Literal["published", "tight"]

LARGEST_MU2 = 500


class NoConversion(BadInput):
    """A promise cannot be told in another output premetric, and why."""


@dataclass(frozen=True)
class Bound:
    """A converted amount with its source."""

    amount: Fraction
    source: str
    status: Status = "published"


def finite(budget: Budget) -> LogRational | Exactly:
    """Return the amount if it is a number; refuse with the reason if not."""
    amount: Amount = budget.amount
    if isinstance(amount, NoFiniteBudget):
        raise NoConversion(f"no finite budget exists ({amount.reason}): nothing to convert.")
    if isinstance(amount, FunctionOfUniverse):
        raise NoConversion("the budget is a function of the universe: give its facts first.")
    return amount


# -- one pair of laws ---------------------------------------------------------------------


def pure_to_concentrated(epsilon: Fraction, method: Method = "published") -> Bound:
    """Return rho^2 for laws `epsilon` apart.

    Published: epsilon^2 / 2 (Bun and Steinke 2016, Proposition 1.4). Tight: epsilon
    tanh(epsilon / 2), attained by randomised response; ours, proved in `psa.concentrated`.
    """
    if method == "published":
        source = "Bun and Steinke 2016, Proposition 1.4: rho^2 = epsilon^2 / 2"
        return Bound(epsilon * epsilon / 2, source)
    source = "ours: rho^2 = epsilon tanh(epsilon / 2)"
    return Bound(epsilon * tanh_up(epsilon / 2), source, "proved here")


def concentrated_to_approximate(
    rho2: Fraction, delta: Fraction, method: Method = "published"
) -> Bound:
    """Return epsilon for laws sqrt(`rho2`) apart.

    Published: rho^2 + 2 rho sqrt(ln(1/delta)) (Bun and Steinke 2016, Proposition 1.3), the
    formula in use for the 2020 census. Tight: the least epsilon for which some order a has
    exp((a-1)(a rho^2 - epsilon)) (1 - 1/a)^a / (a-1) <= delta (Canonne, Kamath and
    Steinke 2020, Corollary 13). Any order gives a valid bound, so the search for the best
    one need not be exact.

    >>> round(float(concentrated_to_approximate(Fraction("55.371"), Fraction(1, 10**10)).amount), 2)
    126.78
    """
    if rho2 == 0:
        return Bound(Fraction(0), "no loss")
    if method == "published":
        amount = rho2 + 2 * root_up(rho2 * log_up(1 / delta))
        return Bound(amount, "Bun and Steinke 2016, Proposition 1.3")
    order = _best_order(float(rho2), float(delta))
    # epsilon = a rho^2 + [ln(1/delta) + a ln(1 - 1/a) - ln(a-1)] / (a-1)
    a = Fraction(order).limit_denominator(10**9)
    inner = log_up(1 / delta) - a * _log_down(a / (a - 1)) - _log_signed_down(a - 1)
    amount = a * rho2 + inner / (a - 1)
    source = "Canonne, Kamath and Steinke 2020, Corollary 13"
    return Bound(max(amount, Fraction(0)), source)


def _best_order(rho2: float, delta: float) -> float:
    """Return an order near the best one, by golden-section search on ln(a - 1)."""

    def epsilon(log_excess: float) -> float:
        a = 1 + math.exp(log_excess)
        inner = -math.log(delta) + a * math.log1p(-1 / a) - math.log(a - 1)
        return a * rho2 + inner / (a - 1)

    low, high, golden = -20.0, 20.0, (math.sqrt(5) - 1) / 2
    for _ in range(120):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if epsilon(left) < epsilon(right) else (left, high)
    return 1 + math.exp((low + high) / 2)


def _log_down(value: Fraction) -> Fraction:
    """Return at most the logarithm of a number of at least 1."""
    return log_up(value) - Fraction(1, 10**40)


def _log_signed_down(value: Fraction) -> Fraction:
    """Return at most the logarithm of a positive number."""
    return _log_down(value) if value >= 1 else -log_up(1 / value)


def renyi_to_approximate(divergence: Fraction, order: Fraction, delta: Fraction) -> Bound:
    """Return epsilon for laws with a Renyi divergence of this order (Mironov 2017, Prop. 3)."""
    amount = divergence + log_up(1 / delta) / (order - 1)
    return Bound(amount, "Mironov 2017, Proposition 3")


def gaussian_to_approximate(mu2: Fraction, delta: Fraction) -> Bound:
    """Return epsilon for laws mu apart in Gaussian privacy (Dong, Roth and Su 2022, Cor. 1).

    Solves Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu) = delta by bisection, and moves the
    result up by 1e-9 of it, far more than the error of the normal distribution function.
    """
    if mu2 == 0:
        return Bound(Fraction(0), "no loss")
    if mu2 > LARGEST_MU2:  # beyond the floats: by way of zero-concentrated, which is looser
        return concentrated_to_approximate(mu2 / 2, delta, "tight")
    mu, target = math.sqrt(mu2), float(delta)
    low, high = 0.0, float(mu2) / 2 + mu * math.sqrt(2 * math.log(1 / target)) + 1
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _profile(mu, middle) > target else (low, middle)
    return Bound(Fraction(high) * (1 + Fraction(1, 10**9)), "Dong, Roth and Su 2022, Corollary 1")


def _profile(mu: float, epsilon: float) -> float:
    """Return delta(epsilon) of N(0,1) against N(mu,1)."""
    left, right = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    upper = math.erfc(-left / math.sqrt(2)) / 2
    lower = math.erfc(-right / math.sqrt(2)) / 2
    return upper - (math.exp(epsilon) * lower if lower > 0 else 0.0)


def pure_to_total_variation(epsilon: Fraction) -> Bound:
    """Return tanh(epsilon / 2), attained by randomised response (Kairouz et al. 2015)."""
    return Bound(tanh_up(epsilon / 2), "Kairouz, Oh and Viswanath 2015: tanh(epsilon / 2)")


def concentrated_to_total_variation(rho2: Fraction) -> Bound:
    """Return min(1, sqrt(rho^2 / 2)): Pinsker's inequality at order 1."""
    return Bound(min(Fraction(1), root_up(rho2 / 2)), "Pinsker's inequality: sqrt(rho^2 / 2)")


# -- a whole specification ----------------------------------------------------------------

_Rule = Callable[[Specification, OutputPremetric, Method, int], Specification]


def convert(
    specification: Specification,
    to: OutputPremetric,
    method: Method = "published",
    distance: int = 1,
) -> Specification:
    """Return the promise told in another output premetric.

    `distance` is the smallest distance between two different data sets of a universe, if it
    is known to be more than 1: in a universe of swapping it is 2. For approximate
    differential privacy it is the largest distance promised anything, and delta refers to
    pairs at that distance.
    """
    origin = specification.output_premetric
    if origin == to:
        return specification
    if method not in ("published", "tight"):
        raise NoConversion("method is published or tight.")
    if distance < 1 or distance != int(distance):
        raise NoConversion("distance must be a positive whole number.")
    if distance > 1 and specification.input_premetric.name == "neighbours":
        raise NoConversion("neighbours are 1 apart, all other data sets infinitely far.")
    rule = _RULES.get((origin.name, to.name))
    if rule is None:
        raise NoConversion(
            f"nothing finite follows in {to.name} from a promise in {origin.name}: conversions "
            f"go from pure to zero-concentrated to approximate, and to total variation."
        )
    if _may_be_close(specification) and (method == "tight" or to.name == "total-variation"):
        raise NoConversion(
            "this conversion needs distances in whole numbers; those of the input premetric "
            f"{specification.input_premetric.name} may be arbitrarily small."
        )
    return rule(specification, to, method, distance)


def _may_be_close(specification: Specification) -> bool:
    premetric = specification.input_premetric
    base = premetric.base.name if premetric.base is not None else None
    return bool({premetric.name, base} & {"values", "graph"})


def _with(
    specification: Specification,
    to: OutputPremetric,
    bound: Bound,
    amount: Exactly | LogRational,
    condition: str = "",
) -> Specification:
    budget = specification.budget
    conditions = (*budget.conditions, condition) if condition else budget.conditions
    told = Budget(
        unit=to.properties.unit,
        amount=amount,
        source=f"{budget.source}; {bound.source}",
        status=weakest([budget.status, bound.status]),
        conditions=conditions,
    )
    return specification.model_copy(update={"output_premetric": to, "budget": told})


def _pure_concentrated(
    specification: Specification, to: OutputPremetric, method: Method, distance: int
) -> Specification:
    epsilon = finite(specification.budget).upper_bound()
    bound = pure_to_concentrated(epsilon * distance, method)
    # phi(epsilon d)/d falls with d, so the smallest distance decides; rho^2 is its square.
    amount = Exactly(of=bound.amount / distance**2)
    tight = method == "tight" and distance > 1
    condition = f"no two data sets of a universe are closer than {distance}" if tight else ""
    return _with(specification, to, bound, amount, condition)


def _to_approximate(
    phi: Callable[[Fraction, OutputPremetric, OutputPremetric, Method], Bound],
) -> _Rule:
    def rule(
        specification: Specification, to: OutputPremetric, method: Method, distance: int
    ) -> Specification:
        budget = specification.budget
        squared = budget.unit in ("rho2", "mu2")
        total = finite(budget).upper_bound() * (distance**2 if squared else distance)
        bound = phi(total, specification.output_premetric, to, method)
        told = _with(specification, to, bound, Exactly(of=bound.amount))
        condition = f"delta is for data sets up to {distance} apart; farther ones have a larger one"
        budget = told.budget.model_copy(update={"conditions": (*told.budget.conditions, condition)})
        near = neighbours(specification.input_premetric, distance)
        if specification.input_premetric.name == "neighbours":
            near = specification.input_premetric
        return told.model_copy(update={"budget": budget, "input_premetric": near})

    return rule


def _pure_approximate(
    specification: Specification, to: OutputPremetric, method: Method, distance: int
) -> Specification:
    bound = Bound(Fraction(0), "a pure promise holds at every delta")
    return _with(specification, to, bound, finite(specification.budget))


def _linear(phi: Callable[[Fraction], Bound]) -> _Rule:
    def rule(
        specification: Specification, to: OutputPremetric, method: Method, distance: int
    ) -> Specification:
        bound = phi(finite(specification.budget).upper_bound())
        return _with(specification, to, bound, Exactly(of=bound.amount))

    return rule


def _need(value: Fraction | None) -> Fraction:
    if value is None:  # excluded by the check of the premetric
        raise ArithmeticError("an output premetric lacks its parameter")
    return value


_RULES: dict[tuple[str, str], _Rule] = {
    ("multiplicative", "normalised-renyi"): _pure_concentrated,
    ("multiplicative", "approximate"): _pure_approximate,
    ("multiplicative", "total-variation"): _linear(pure_to_total_variation),
    ("normalised-renyi", "approximate"): _to_approximate(
        lambda t, _, to, method: concentrated_to_approximate(t, _need(to.delta), method)
    ),
    ("normalised-renyi", "total-variation"): _linear(concentrated_to_total_variation),
    ("renyi", "approximate"): _to_approximate(
        lambda t, origin, to, _: renyi_to_approximate(t, _need(origin.order), _need(to.delta))
    ),
    ("gaussian", "normalised-renyi"): _linear(
        lambda mu2: Bound(mu2 / 2, "Dong, Roth and Su 2022: rho^2 = mu^2 / 2")
    ),
    ("gaussian", "approximate"): _to_approximate(
        lambda t, _, to, __: gaussian_to_approximate(t, _need(to.delta))
    ),
}
