"""Protection loss budgets, kept exact.

A budget belongs to a specification; a loss belongs to a mechanism. They never share
a name here. A pure budget is the logarithm of a rational and is stored as that
rational, a zero-concentrated one is a rational; a budget may also be a function of the
universe, known only with its facts, or not exist at all.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from discreet.config import Strict, rational

#: Where a bound comes from. Only the first two may be charged to an account.
Status = Literal["published", "proved here", "checked numerically"]

#: Pure and approximate budgets are told in epsilon; zero-concentrated ones in rho^2, the
#: parameter that Bun and Steinke (2016) call rho; Gaussian ones in mu^2; others as they are.
#: rho^2 and mu^2 are squares of the number that multiplies the distance.
Unit = Literal["epsilon", "rho2", "mu2", "value"]

#: What the source of a figure begins with that nobody published, though its rule is.
DERIVED = "derived from "

SQUARED: tuple[Unit, ...] = ("rho2", "mu2")


def _fraction(value: Any) -> Any:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool | float):
        raise ValueError("must be exact: write it as text, for instance '1/8' or '0.125'")
    try:
        return rational(value)
    except (ValueError, TypeError):
        raise ValueError("must be a rational number such as '1/8' or '0.125'") from None


#: A rational number, written as text in files.
Rational = Annotated[Fraction, BeforeValidator(_fraction), PlainSerializer(str, return_type=str)]


class LogRational(Strict):
    """The number `times` ln(`of`), exactly."""

    kind: Literal["log-rational"] = "log-rational"
    of: Annotated[Rational, Field(ge=1)]
    times: Annotated[Rational, Field(gt=0)] = Fraction(1)

    def value(self) -> float:
        """Return the number rounded to a float, for display only."""
        return float(self.times) * (math.log(self.of.numerator) - math.log(self.of.denominator))

    def upper_bound(self) -> Fraction:
        """Return a rational that is at least the number, and exceeds it by at most 1e-25 `times`.

        The decimal logarithm is correctly rounded, so one unit in its last place above
        the difference of two of them is an upper bound.
        """
        return self.times * self._logarithm()

    def _logarithm(self) -> Fraction:
        if self.of == 1:
            return Fraction(0)
        with decimal.localcontext(prec=40):
            top = decimal.Decimal(self.of.numerator).ln()
            bottom = decimal.Decimal(self.of.denominator).ln()
            # Three roundings, each below 1e-38 of a number below 1e9.
            return Fraction(top - bottom) + Fraction(1, 10**26)


class Exactly(Strict):
    """A rational number."""

    kind: Literal["rational"] = "rational"
    of: Annotated[Rational, Field(ge=0)]

    def value(self) -> float:
        """Return the number rounded to a float, for display only."""
        return float(self.of)

    def upper_bound(self) -> Fraction:
        """Return the number itself."""
        return self.of


class FunctionOfUniverse(Strict):
    """A budget that depends on the realised universe through its invariants only."""

    kind: Literal["function-of-universe"] = "function-of-universe"
    formula: str


class NoFiniteBudget(Strict):
    """The mechanism satisfies no finite budget, and why."""

    kind: Literal["none"] = "none"
    reason: str


Amount = Annotated[
    LogRational | Exactly | FunctionOfUniverse | NoFiniteBudget, Field(discriminator="kind")
]


class Budget(Strict):
    """How much the output may tell, per unit of the input premetric."""

    unit: Unit
    amount: Amount
    source: str
    status: Status
    conditions: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return the amount with its unit."""
        if isinstance(self.amount, NoFiniteBudget):
            return f"no finite budget exists: {self.amount.reason}"
        name = UNIT_NAMES[self.unit]
        if isinstance(self.amount, FunctionOfUniverse):
            return f"{name} = {self.amount.formula}"
        return f"{name} = {rounded_up(self.amount.upper_bound())}"

    def scaled(self, factor: Fraction | int, condition: str = "") -> Budget:
        """Return the budget per unit of a premetric `factor` times smaller.

        The number that multiplies the distance grows by the factor; of rho^2 and mu^2,
        which are its squares, the square.
        """
        conditions = (*self.conditions, condition) if condition else self.conditions
        if factor == 1:
            return self.model_copy(update={"conditions": conditions})
        derived = self.source if self.source.startswith(DERIVED) else f"{DERIVED}{self.source}"
        if isinstance(self.amount, FunctionOfUniverse):
            amount: Amount = FunctionOfUniverse(
                formula=f"{factor**2 if self.unit in SQUARED else factor} x ({self.amount.formula})"
            )
        elif isinstance(self.amount, NoFiniteBudget):
            amount = self.amount
        else:
            amount = times(self.amount, factor**2 if self.unit in SQUARED else factor)
        update = {"amount": amount, "conditions": conditions, "source": derived}
        return self.model_copy(update=update)


UNIT_NAMES: dict[Unit, str] = {"epsilon": "epsilon", "rho2": "rho^2", "mu2": "mu^2", "value": "D"}


def times(amount: LogRational | Exactly, factor: Fraction | int) -> LogRational | Exactly:
    """Return an amount times a positive rational, exactly."""
    factor = Fraction(factor)
    if isinstance(amount, Exactly):
        return Exactly(of=amount.of * factor)
    # A whole power keeps the plain form ln(a/b) while it is short enough to read.
    if (
        factor.denominator == 1
        and amount.times == 1
        and factor * amount.of.numerator.bit_length() < 256
    ):
        return LogRational(of=amount.of ** int(factor))
    return LogRational(of=amount.of, times=amount.times * factor)


def weakest(statuses: Iterable[Status]) -> Status:
    """Return the status of a bound that rests on several: the least certain one."""
    order: list[Status] = ["published", "proved here", "checked numerically"]
    return max(statuses, key=order.index)


def rounded_up(value: Fraction) -> str:
    """Return a number with four decimals that is never below the exact one."""
    shown = -(-value.numerator * 10**4 // value.denominator)
    return f"{shown // 10**4}.{shown % 10**4:04d}"
