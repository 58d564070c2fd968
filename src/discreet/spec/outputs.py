"""The fourth building block: how far apart two laws of the output are.

What may be done with a promise depends on the properties of its output premetric: group
privacy needs a metric, composition a rule for products, post-processing that no function
of the output increases the distance (Bailie, Gong and Meng; Bailie 2025, section 2.5).
Distances themselves are computed in `divergences`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from discreet.config import Strict
from discreet.spec.budget import Rational, Unit

OutputName = Literal[
    "multiplicative",
    "approximate",
    "renyi",
    "normalised-renyi",
    "kullback-leibler",
    "total-variation",
    "hellinger",
    "chi-squared",
    "trade-off",
    "gaussian",
    "integral-probability",
]

#: How distances of independent parts combine: added, as the root of the sum of squares, with
#: deltas added beside, as (1+a)(1+b)-1, or by no rule that a number could follow.
ProductRule = Literal["sum", "root-of-squares", "sum-with-deltas", "product-of-shifted", "none"]


@dataclass(frozen=True)
class OutputProperties:
    """What is known of an output premetric by its name."""

    symbol: str
    title: str
    definition: str
    metric: bool
    post_processing: bool
    product: ProductRule
    #: Laws that never produce the same output are infinitely far apart.
    infinite_when_disjoint: bool
    #: The unit that budgets are told in.
    unit: Unit
    #: A mixture of pairs is no farther apart than the farthest pair.
    quasi_convex: bool
    adaptive: bool


OUTPUTS: dict[str, OutputProperties] = {
    "multiplicative": OutputProperties(
        "D_MULT",
        "pure differential privacy",
        "largest |ln P(t)/Q(t)| over outcomes t; infinite where only one is zero",
        metric=True,
        post_processing=True,
        product="sum",
        infinite_when_disjoint=True,
        unit="epsilon",
        quasi_convex=True,
        adaptive=True,
    ),
    "approximate": OutputProperties(
        "D_MULT^delta",
        "approximate differential privacy",
        "smallest e >= 0 with sum of [P - exp(e) Q]+ at most delta = {delta}, in both directions",
        metric=False,
        post_processing=True,
        product="sum-with-deltas",
        infinite_when_disjoint=True,
        unit="epsilon",
        quasi_convex=True,
        adaptive=True,
    ),
    "renyi": OutputProperties(
        "D_alpha",
        "Renyi differential privacy",
        "Renyi divergence of order {order}, the larger of both directions",
        metric=False,
        post_processing=True,
        product="sum",
        infinite_when_disjoint=True,
        unit="value",
        quasi_convex=True,
        adaptive=True,
    ),
    "normalised-renyi": OutputProperties(
        "D_NoR",
        "zero-concentrated differential privacy",
        "largest sqrt(D_a / a) over orders a > 1 and both directions, D_a the Renyi divergence",
        metric=True,
        post_processing=True,
        product="root-of-squares",
        infinite_when_disjoint=True,
        unit="rho2",
        quasi_convex=True,
        adaptive=True,
    ),
    "kullback-leibler": OutputProperties(
        "D_KL",
        "bounded Kullback-Leibler divergence",
        "mean of ln P(t)/Q(t) under P, the larger of both directions",
        metric=False,
        post_processing=True,
        product="sum",
        infinite_when_disjoint=True,
        unit="value",
        quasi_convex=True,
        adaptive=False,
    ),
    "total-variation": OutputProperties(
        "d_TV",
        "bounded total variation",
        "half the sum of |P(t) - Q(t)|",
        metric=True,
        post_processing=True,
        product="sum",
        infinite_when_disjoint=False,
        unit="value",
        quasi_convex=True,
        adaptive=False,
    ),
    "hellinger": OutputProperties(
        "d_H",
        "bounded Hellinger distance",
        "root of the sum of (sqrt P(t) - sqrt Q(t))^2",
        metric=True,
        post_processing=True,
        product="root-of-squares",
        infinite_when_disjoint=False,
        unit="value",
        quasi_convex=True,
        adaptive=False,
    ),
    "chi-squared": OutputProperties(
        "chi^2",
        "bounded chi-squared divergence",
        "sum of (P(t) - Q(t))^2 / Q(t), the larger of both directions",
        metric=False,
        post_processing=True,
        product="product-of-shifted",
        infinite_when_disjoint=True,
        unit="value",
        quasi_convex=True,
        adaptive=False,
    ),
    "trade-off": OutputProperties(
        "f",
        "f-differential privacy",
        "power of the best test of P against Q, as a function of its size",
        metric=False,
        post_processing=True,
        product="none",
        infinite_when_disjoint=True,
        unit="value",
        quasi_convex=True,
        adaptive=False,
    ),
    "gaussian": OutputProperties(
        "mu",
        "Gaussian differential privacy",
        "smallest mu so that no test of P against Q beats one of N(0,1) against N(mu,1)",
        metric=True,
        post_processing=True,
        product="root-of-squares",
        infinite_when_disjoint=True,
        unit="mu2",
        quasi_convex=True,
        adaptive=False,
    ),
    "integral-probability": OutputProperties(
        "IPM",
        "integral probability metric",
        "largest difference of means over a class of functions ({detail})",
        metric=True,
        post_processing=False,
        product="none",
        infinite_when_disjoint=False,
        unit="value",
        quasi_convex=True,
        adaptive=False,
    ),
}


class OutputPremetric(Strict):
    """How far apart two laws of the output are.

    `delta` belongs to approximate, `order` to renyi; all but one parameter of a budget
    with several are part of the premetric, so that the budget stays one number.
    """

    name: OutputName
    delta: Annotated[Rational, Field(gt=0, lt=1)] | None = None
    order: Annotated[Rational, Field(gt=1)] | None = None
    detail: str = ""

    @model_validator(mode="after")
    def _complete(self) -> OutputPremetric:
        for field, name in (("delta", "approximate"), ("order", "renyi")):
            if (getattr(self, field) is not None) != (self.name == name):
                raise ValueError(f"{field} belongs to {name}, and to no other output premetric")
        return self

    @property
    def properties(self) -> OutputProperties:
        """Return what is known by the name."""
        return OUTPUTS[self.name]

    @property
    def definition(self) -> str:
        """Return the definition in words."""
        delta = f"{float(self.delta):g}" if self.delta is not None else ""
        return self.properties.definition.format(delta=delta, order=self.order, detail=self.detail)


#: Pure differential privacy (Dwork, McSherry, Nissim and Smith 2006); budgets in epsilon.
MULTIPLICATIVE = OutputPremetric(name="multiplicative")

#: Zero-concentrated differential privacy (Bun and Steinke 2016); budgets in rho^2.
NORMALISED_RENYI = OutputPremetric(name="normalised-renyi")


def approximate(delta: Rational | str) -> OutputPremetric:
    """Return the output premetric of approximate differential privacy at one delta."""
    return OutputPremetric.model_validate({"name": "approximate", "delta": delta})
