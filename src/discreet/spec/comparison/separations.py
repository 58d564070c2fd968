"""What mechanisms under one promise may do that another promise forbids.

Six ways in which a mechanism can satisfy a promise A and break a promise B, at two data
sets that B compares. Ours, proved here; each rests on what is cited.

exact       publish an effective invariant of A that varies inside a universe of B
everything  A promises nothing at all
leak        A is approximate: with probability delta, publish everything
noise       A allows Gaussian noise, B is pure: its likelihood ratio has no bound
budget      noise that uses up the budget of A exceeds that of B at these two data sets
order       A protects lists and B what is in them: say what comes first

The last three tell one bit, or a distance, of the records at the unit of A. Different
lists of records are at least 1 apart under the premetrics of A that are used, so a
promise about a bit need hold at distance 1 only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from discreet.spec.budget import UNIT_NAMES, Amount, Budget, Exactly, LogRational
from discreet.spec.comparison.amounts import at_most, is_finite, lower_bound
from discreet.spec.comparison.tiny import WHOLE_STEPS, Pair, distance, records
from discreet.spec.convert import LARGEST_MU2, gaussian_to_approximate
from discreet.spec.inputs import ROWS
from discreet.spec.numbers import tanh_up
from discreet.spec.specification import Specification

Kind = Literal["exact", "everything", "leak", "noise", "budget", "order"]

#: What a mechanism does, why it satisfies A, and how it breaks B.
Words = tuple[str, str, str]

#: Output premetrics that Gaussian noise on a bit meets at any positive budget.
SMOOTH = ("normalised-renyi", "approximate", "gaussian", "renyi")
#: Output premetrics that are infinite as soon as one law may say what the other never does.
STRICT = (
    "multiplicative",
    "normalised-renyi",
    "renyi",
    "kullback-leibler",
    "chi-squared",
    "gaussian",
)
#: Output premetrics whose budget is attained by noise on a distance, at every distance.
ATTAINED = {
    "multiplicative": "two-sided geometric noise",
    "normalised-renyi": "Gaussian noise",
    "gaussian": "Gaussian noise",
}
CERTAIN = "but the output tells them apart with certainty, at no finite budget"


@dataclass(frozen=True)
class Separation:
    """When a way of breaking B applies, what it needs of two data sets, and its words.

    `shows` is also given how far apart the data sets are under B.
    """

    applies: Callable[[Specification, Specification], bool]
    shows: Callable[[Specification, Specification, Pair, int], bool]
    words: Callable[[Specification, Specification, Pair], Words]


def _positive(budget: Budget) -> bool:
    amount = budget.amount
    return isinstance(amount, LogRational | Exactly) and amount.upper_bound() > 0


def _in_whole_steps(a: Specification) -> bool:
    premetric = a.input_premetric
    base = premetric.base if premetric.name == "neighbours" else premetric
    name = premetric.name if base is None else base.name
    return premetric.unit in ROWS and name in WHOLE_STEPS


def _always(a: Specification, b: Specification, pair: Pair, apart: int) -> bool:
    return True


# -- everything, and a leak ---------------------------------------------------------------------


def _promises_nothing(a: Specification, b: Specification) -> bool:
    return not is_finite(a.budget.amount) and b.output_premetric.properties.infinite_when_disjoint


def _everything_words(a: Specification, b: Specification, pair: Pair) -> Words:
    return "Publish the whole data set.", "it promises nothing", CERTAIN


def _leaks(a: Specification, b: Specification) -> bool:
    own, other = a.output_premetric, b.output_premetric
    if own.delta is None:
        return False
    return other.name in STRICT or (other.delta is not None and other.delta < own.delta)


def _leak_words(a: Specification, b: Specification, pair: Pair) -> Words:
    delta = float(a.output_premetric.delta or 0)
    return (
        f"With probability {delta:g} publish the whole data set, otherwise nothing.",
        "events of this probability are not counted",
        "but with this probability the output tells them apart, at no finite budget",
    )


# -- noise without a bound on the likelihood ratio ------------------------------------------------


def _allows_noise(a: Specification, b: Specification) -> bool:
    return (
        a.output_premetric.name in SMOOTH
        and b.output_premetric.name == "multiplicative"
        and _positive(a.budget)
        and _in_whole_steps(a)
    )


def _differ(a: Specification, b: Specification, pair: Pair, apart: int) -> bool:
    """Tell whether two data sets have different records at the unit of `a`."""
    x, y = (Counter(records(data, a.input_premetric.unit)) for data in pair)
    return x != y


def _noise_words(a: Specification, b: Specification, pair: Pair) -> Words:
    unit = a.input_premetric.unit
    x, y = (Counter(records(data, unit)) for data in pair)
    often = max(max(x[one], y[one]) for one in x | y if x[one] != y[one])
    return (
        f"Publish 1 if a certain {unit} record (one in which the data sets below differ) occurs "
        f"{often} or more times and 0 if not, plus Gaussian noise of variance {_variance(a)}.",
        f"data sets with different {unit} records are 1 or more apart, and at a distance of 1 "
        f"this noise costs no more than the budget",
        "but the likelihood ratio of two normal laws has no bound, so no finite epsilon exists",
    )


def _variance(a: Specification) -> str:
    """Return the variance of noise on a bit that the budget asks for, rounded up.

    For rho^2 it is 1/(2 rho^2), for mu^2 its inverse, for a Renyi divergence order/(2 D). At
    variance 1/delta^2 the total variation is below delta, so any epsilon is met.
    """
    amount, output = a.budget.amount, a.output_premetric
    if output.delta is not None:
        return f"{float(1 / output.delta**2):.4g}"
    scale = {"normalised-renyi": Fraction(1, 2), "gaussian": Fraction(1)}.get(output.name)
    if scale is None:
        scale = (output.order or Fraction(1)) / 2
    least = lower_bound(amount) if isinstance(amount, LogRational | Exactly) else Fraction(1)
    return f"{float(scale / least) * 1.001:.4g}"


# -- the budget used up ---------------------------------------------------------------------------


def _may_exceed(a: Specification, b: Specification) -> bool:
    return (
        _positive(a.budget)
        and isinstance(b.budget.amount, LogRational | Exactly)
        and _in_whole_steps(a)
        and attained(a, b, 1) is not None
    )


def _exceeds(a: Specification, b: Specification, pair: Pair, apart: int) -> bool:
    """Tell whether noise at the budget of `a` is farther apart than `b` allows here."""
    steps = distance(a.input_premetric, pair)
    if steps is None or steps in (0, math.inf):
        return False
    reached = attained(a, b, int(steps))
    return reached is not None and at_most(reached, b.budget.scaled(apart).amount) is False


def attained(a: Specification, b: Specification, steps: int) -> Amount | None:
    """Return a distance in the output premetric of `b` that a mechanism satisfying `a` reaches.

    At data sets `steps` apart. In the premetric of `a` itself: noise on the distance from
    one of them, which no step changes by more than 1, attains the budget at any distance
    (a two-sided geometric law; a normal law, Bun and Steinke 2016, Proposition 1.6). Of an
    approximate budget, and in the premetric of another, what the extremal law on few
    outcomes (Kairouz, Oh and Viswanath 2015) or normal laws reach; rounded down.
    """
    own, other, amount = a.output_premetric, b.output_premetric, a.budget.amount
    if not isinstance(amount, LogRational | Exactly):
        return None
    if own == other and own.name in ATTAINED:
        return a.budget.scaled(_reach(a, steps)).amount
    if own == other and own.name == "approximate":
        return amount
    if (own.name, other.name) == ("multiplicative", "normalised-renyi"):
        # The supremum over orders is at least its limit at order 1, the Kullback-Leibler one.
        epsilon = lower_bound(amount)
        return Exactly(of=epsilon * tanh_up(epsilon / 2) * (1 - Fraction(1, 10**30)))
    if own.name in ("multiplicative", "approximate") and other.delta is not None:
        return _response_at(lower_bound(amount), own.delta or Fraction(0), other.delta)
    if own.name == "normalised-renyi" and other.delta is not None:
        return _normal_at(2 * lower_bound(amount) * _reach(a, steps) ** 2, other.delta)
    return None


#: Far above the rounding of floats in these two bounds, far below anything shown.
MARGIN = Fraction(1, 10**7)


def _normal_at(mu2: Fraction, delta: Fraction) -> Exactly | None:
    """Return how far apart N(0, 1) and N(mu, 1) are at delta, where floats do not overflow."""
    if mu2 > LARGEST_MU2:
        return None
    return Exactly(of=gaussian_to_approximate(mu2, delta).amount * (1 - MARGIN))


def _reach(a: Specification, steps: int) -> int:
    """Return up to where a distance can be told: of neighbours only a bit can."""
    return steps if a.input_premetric.name in WHOLE_STEPS else 1


def _response_at(epsilon: Fraction, own: Fraction, delta: Fraction) -> Exactly:
    """Return how far apart at delta a leak of probability `own` is, else randomised response.

    That is ln(E - x (1 + E)) with E = exp(epsilon) and x = (delta - own)/(1 - own).
    """
    excess = float((delta - own) / (1 - own))
    rest = 1 - excess * (1 + math.exp(-float(epsilon)))
    reached = float(epsilon) + math.log(rest) if rest > 0 else 0.0
    return Exactly(of=max(Fraction(0), Fraction(reached) - MARGIN))


def _budget_words(a: Specification, b: Specification, pair: Pair) -> Words:
    steps, apart = distance(a.input_premetric, pair) or 1, distance(b.input_premetric, pair) or 1
    normal = a.output_premetric.name in ("normalised-renyi", "gaussian")
    plain = a.output_premetric == b.output_premetric and not a.output_premetric.delta
    noise = ATTAINED[a.output_premetric.name] if normal or plain else "randomised response"
    far = _reach(a, int(steps)) if normal or plain else 1
    name = UNIT_NAMES[b.budget.unit]
    return (
        f"Tell how far the data are from the first data set below, up to {far}, by {noise} "
        f"that uses up the budget.",
        "no step changes this distance by more than 1",
        f"where it allows {name} = {_shown(b.budget.scaled(int(apart)).amount)}, but this output "
        f"reaches {name} = {_shown(attained(a, b, int(steps)))}",
    )


def _shown(amount: Amount | None) -> str:
    return f"{amount.value():.6g}" if isinstance(amount, LogRational | Exactly) else "infinity"


# -- the order of a list --------------------------------------------------------------------------


def _protects_order(a: Specification, b: Specification) -> bool:
    own, other = a.input_premetric, b.input_premetric
    return (
        own.properties.ordered is True
        and other.properties.ordered is False
        and own.unit == other.unit
        and a.output_premetric.name in ("multiplicative", *SMOOTH)
        # A small enough delta, or class of functions, would not notice.
        and b.output_premetric.name not in ("approximate", "integral-probability")
        and _positive(a.budget)
        and _in_whole_steps(a)
    )


def _starts_differ(a: Specification, b: Specification, pair: Pair, apart: int) -> bool:
    x, y = (records(data, a.input_premetric.unit) for data in pair)
    return Counter(x) == Counter(y) and x[:1] != y[:1]


def _order_words(a: Specification, b: Specification, pair: Pair) -> Words:
    return (
        f"Answer by randomised response whether a certain {a.input_premetric.unit} record is the "
        f"first of the list.",
        "lists in another order are 1 or more apart",
        "since order does not count: their outputs must have the same law, but have not",
    )


SEPARATIONS: dict[Kind, Separation] = {
    "everything": Separation(_promises_nothing, _always, _everything_words),
    "leak": Separation(_leaks, _always, _leak_words),
    "noise": Separation(_allows_noise, _differ, _noise_words),
    "budget": Separation(_may_exceed, _exceeds, _budget_words),
    "order": Separation(_protects_order, _starts_differ, _order_words),
}
