"""The account of swapping at one rate, and the rates for one budget: all figures at once.

Theorem 1 of Bailie, Gong and Meng is what may be charged; the other figures stand
beside it with their status. A budget holds in the universe of the data, given exact publication
of the invariants of the swap, and only if rate and variables were not chosen from the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.spec.budget import rounded_up
from discreet.spec.psa.amount import LogAmount
from discreet.spec.psa.bounds import (
    SHARPENED,
    THEOREM_1,
    best_rate,
    minimum_epsilon,
    rates_for,
    sharpened,
    sharpened_best_rate,
    sharpened_minimum,
    theorem_1,
)
from discreet.spec.psa.concentrated import RHO2, rho2, rho2_loose, rho2_loose_upper, rho2_upper
from discreet.spec.psa.law import Rate, exact_rate
from discreet.spec.psa.moments import moved_probability

GIVEN = (
    "per record changed, in the universe of the data, given exact publication of the counts "
    "by matching and holding variables and by matching and swapping variables; "
    "multiplicative output premetric"
)

#: Of a swap of everybody.
ONLY_UPPER = (
    "at rate 1 the bounds are infinite, which is an upper limit only: the exact loss may be finite "
    "(discreet audit exact computes it from the margins of a stratum)"
)

#: Rates closer than this are one rate: the same but for rounding.
SAME = 1e-12

#: A budget of a rate that differs more than this from the one asked for is told.
CLOSE = 1e-4


@dataclass(frozen=True)
class Account:
    """What swapping at `rate` promises when the largest stratum has `stratum` records."""

    stratum: int
    rate: Fraction
    theorem_1: LogAmount
    sharpened: LogAmount
    minimum_epsilon: float
    best_rate: float
    minimum_epsilon_sharpened: float
    best_rate_sharpened: float
    moved_share: float

    @property
    def epsilon(self) -> float:
        """Return the budget of Theorem 1."""
        return self.theorem_1.value

    @property
    def epsilon_sharpened(self) -> float:
        """Return the sharpened budget."""
        return self.sharpened.value

    @property
    def rho2(self) -> float:
        """Return rho^2 implied by Theorem 1, from (epsilon/2) tanh(epsilon)."""
        return rho2(self.epsilon)

    @property
    def rho2_loose(self) -> float:
        """Return rho^2 implied by Theorem 1, from epsilon^2/2."""
        return rho2_loose(self.epsilon)

    @property
    def notes(self) -> list[str]:
        """Return what must be said beside infinite figures."""
        return [ONLY_UPPER] if self.rate == 1 and self.stratum else []

    def as_data(self) -> dict[str, Any]:
        """Return all figures as plain data; infinite ones as None."""
        upper = rho2_upper(self.theorem_1)
        figures = {
            "epsilon": self.epsilon,
            "epsilon_exact": str(self.theorem_1),
            "epsilon_status": THEOREM_1,
            "epsilon_sharpened": self.epsilon_sharpened,
            "epsilon_sharpened_exact": str(self.sharpened),
            "epsilon_sharpened_status": SHARPENED,
            "rho2": self.rho2,
            "rho2_upper": None if upper is None else str(upper),
            "rho2_status": RHO2,
            "rho2_loose": self.rho2_loose,
            "minimum_epsilon": self.minimum_epsilon,
            "best_rate": self.best_rate,
            "minimum_epsilon_sharpened": self.minimum_epsilon_sharpened,
            "best_rate_sharpened": self.best_rate_sharpened,
            "moved_share": self.moved_share,
            "notes": self.notes,
        }
        data = {"stratum": self.stratum, "rate": str(self.rate), **figures}
        return {key: None if value == float("inf") else value for key, value in data.items()}

    def describe(self) -> list[str]:
        """Return the account in plain lines; budgets are rounded up."""
        one, two = rho2_upper(self.theorem_1), rho2_loose_upper(self.theorem_1)
        return [
            f"swap rate {float(self.rate):g}, largest stratum {self.stratum:,} records",
            f"epsilon {_up(self.theorem_1.upper_bound())} ({THEOREM_1}), {GIVEN}",
            f"epsilon {_up(self.sharpened.upper_bound())} by the sharpened bound ({SHARPENED})",
            f"rho^2 {_up(one)} ({RHO2}); {_up(two)} by epsilon^2/2",
            *self.notes,
            f"the smallest epsilon Theorem 1 certifies for this stratum is "
            f"{_smallest(self.stratum)}, at rate {self.best_rate:.4%}",
            f"in the largest stratum {self.moved_share:.4%} of the records are expected to move",
        ]


@dataclass(frozen=True)
class Inversion:
    """The two rates whose Theorem 1 budget is `epsilon`, and the account of each."""

    stratum: int
    epsilon: float
    low: Account
    high: Account

    @property
    def rates(self) -> tuple[float, float]:
        """Return both rates."""
        return float(self.low.rate), float(self.high.rate)

    @property
    def moved_shares(self) -> tuple[float, float]:
        """Return the expected share of moved records at both rates."""
        return self.low.moved_share, self.high.moved_share

    @property
    def at_minimum(self) -> bool:
        """Tell whether both rates are one: the budget is the smallest there is."""
        return self.stratum > 0 and self.rates[1] - self.rates[0] < SAME

    @property
    def notes(self) -> list[str]:
        """Return which rates cannot be told as a number, being too close to 0 or 1."""
        return [
            f"the {which} rate is too near to {end} to be told exactly; the one given is just "
            f"inside, with epsilon {_up(one.theorem_1.upper_bound())}"
            for which, end, one in (("lower", 0, self.low), ("higher", 1, self.high))
            if self.stratum and self.epsilon - one.epsilon > CLOSE
        ]

    def as_data(self) -> dict[str, Any]:
        """Return both rates, what they move, and what lies between them."""
        return {
            "stratum": self.stratum,
            "epsilon": self.epsilon,
            "rates": list(self.rates),
            "moved_shares": list(self.moved_shares),
            "minimum_epsilon": self.low.minimum_epsilon,
            "best_rate": self.low.best_rate,
            "notes": self.notes,
        }

    def describe(self) -> list[str]:
        """Return both rates in plain lines; neither is recommended."""
        if not self.stratum:
            return [
                "no stratum has two records or more: nothing can be swapped, and the invariants "
                f"disclose everything. Every rate has epsilon 0, {GIVEN}"
            ]
        one, two = self.low, self.high
        asked = f"epsilon {self.epsilon:g} with a largest stratum of {self.stratum:,} records"
        first = f"rate {_rate(one.rate)}: {one.moved_share:.4%} of the records expected to move"
        if self.at_minimum:
            only = f"{asked} is certified by Theorem 1 at one rate only, {GIVEN}:"
            return [only, first, "it is the smallest epsilon that Theorem 1 certifies at any rate"]
        return [
            f"{asked} is certified by Theorem 1 at two rates, {GIVEN}:",
            first,
            f"rate {_rate(two.rate)}: {two.moved_share:.4%} of the records expected to move",
            *self.notes,
            f"rates between them have a smaller epsilon, down to {_smallest(self.stratum)} at "
            f"{one.best_rate:.4%}; a rate near 1 is not more private than that under Theorem 1",
        ]


def _up(value: Fraction | None) -> str:
    return "infinite" if value is None else rounded_up(value)


def _smallest(stratum: int) -> str:
    """Return the smallest budget of Theorem 1, ln(b+1)/2, rounded up."""
    return _up(LogAmount(Fraction(stratum + 1), 2).upper_bound())


def _rate(rate: Fraction) -> str:
    """Return a rate in percent, or as it is where that would read 0 or 100 %."""
    value = float(rate)
    if value < 5e-7:
        return f"{value:.3g}"
    return f"1 - {float(1 - rate):.3g}" if 1 - rate < 5e-7 else f"{value:.4%}"


def account(stratum: int, rate: Rate) -> Account:
    """Return the account of swapping at `rate` with a largest stratum of `stratum` records.

    >>> round(account(264_331, Fraction(1, 100)).epsilon, 2)
    17.08
    """
    rate = exact_rate(rate)
    return Account(
        stratum=stratum,
        rate=rate,
        theorem_1=theorem_1(stratum, rate),
        sharpened=sharpened(stratum, rate),
        minimum_epsilon=minimum_epsilon(stratum),
        best_rate=best_rate(stratum),
        minimum_epsilon_sharpened=sharpened_minimum(stratum),
        best_rate_sharpened=sharpened_best_rate(stratum),
        moved_share=moved_probability(stratum, rate),
    )


def invert(stratum: int, epsilon: float) -> Inversion:
    """Return the two rates with the Theorem 1 budget `epsilon`; refuses one that is too small.

    >>> [round(rate, 5) for rate in invert(10, 3).rates]
    [0.35386, 0.95257]
    """
    low, high = (account(stratum, Fraction(rate)) for rate in rates_for(epsilon, stratum))
    return Inversion(stratum, epsilon, low, high)
