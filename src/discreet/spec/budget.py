"""Protection loss budgets, kept exact.

A budget belongs to a specification; a loss belongs to a mechanism. They never share
a name here. A pure budget is the logarithm of a rational and is stored as that
rational; a budget may also be a function of the universe, known only with its facts.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from discreet.config import Strict

#: Where a bound comes from. Only the first two may be charged to an account.
Status = Literal["published", "proved here", "checked numerically"]


def _fraction(value: Any) -> Any:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool | float):
        raise ValueError("must be exact: write it as text, for instance '1/8' or '0.125'")
    try:
        return Fraction(value)
    except (ValueError, TypeError, ZeroDivisionError):
        raise ValueError("must be a rational number such as '1/8' or '0.125'") from None


#: A rational number, written as text in files.
Rational = Annotated[Fraction, BeforeValidator(_fraction), PlainSerializer(str, return_type=str)]


class LogRational(Strict):
    """The number ln(`of`), exactly."""

    kind: Literal["log-rational"] = "log-rational"
    of: Annotated[Rational, Field(ge=1)]

    def value(self) -> float:
        """Return the logarithm rounded to a float, for display only."""
        return math.log(self.of.numerator) - math.log(self.of.denominator)


class FunctionOfUniverse(Strict):
    """A budget that depends on the realised universe through its invariants only."""

    kind: Literal["function-of-universe"] = "function-of-universe"
    formula: str


class Budget(Strict):
    """How much the output may tell, per unit of the input premetric."""

    unit: Literal["epsilon"]
    amount: Annotated[LogRational | FunctionOfUniverse, Field(discriminator="kind")]
    source: str
    status: Status
    conditions: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return the amount with its unit."""
        if isinstance(self.amount, LogRational):
            return f"{self.unit} = {self.amount.value():.4f}"
        return f"{self.unit} = {self.amount.formula}"
