"""What a file of the catalog may say: one published system, with its figures and its limits.

A file states a promise block by block, or names the parts it is composed from, or gives
the parameters of a swap from which Theorem 1 makes the budget. Numbers that follow from
others are never written down; figures as printed are, to be compared with.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, model_validator

from discreet.config import Strict
from discreet.files import FORMAT_VERSION
from discreet.spec.budget import Budget, Rational, Status
from discreet.spec.domain import Domain
from discreet.spec.inputs import InputPremetric
from discreet.spec.invariants import Invariant
from discreet.spec.outputs import OutputPremetric
from discreet.spec.registry import Metadata

#: A number as it stands on paper, with its decimals: "2.70" is not "2.7".
Printed = Annotated[str, Field(pattern=r"^\d+(\.\d+)?$")]

#: Whether budgets are the printed figures or, where known, those before rounding.
Figures = Literal["printed", "unrounded"]

NAME = r"^[a-z0-9]+(-[a-z0-9]+)*$"


class Shared(Strict):
    """Blocks that several systems have in common, by name."""

    format_version: int = FORMAT_VERSION
    domains: dict[str, Domain]
    invariants: dict[str, Invariant]


class Figure(Strict):
    """A figure as printed, and where; of another accounting if one is named."""

    where: str
    quantity: Literal["rho2", "epsilon"]
    value: Printed
    rate: Rational | None = None
    accounting: str | None = None

    @property
    def number(self) -> float:
        """Return the printed number."""
        return float(self.value)

    @property
    def half_a_digit(self) -> float:
        """Return half a unit of the last printed place."""
        exponent = Decimal(self.value).as_tuple().exponent
        return 0.5 * 10.0 ** int(exponent)


# -- where a promise comes from -----------------------------------------------------------------


class Unrounded(Strict):
    """The figure behind a rounded one."""

    of: Rational
    source: str


class Stated(Strict):
    """A promise given block by block, its budget as printed."""

    kind: Literal["stated"]
    domain: str
    invariants: tuple[str, ...]
    input_premetric: InputPremetric
    output_premetric: OutputPremetric
    budget: Budget
    unrounded: Unrounded | None = None


class Composed(Strict):
    """A promise that follows from those of its parts.

    `touched` is the number of household records that one person can alter.
    """

    kind: Literal["composed"]
    parts: tuple[str, ...] = Field(min_length=2)
    touched: int


class Swapped(Strict):
    """A promise of the Permutation Swapping Algorithm, by Theorem 1.

    Units of the kinds `moves` trade the area of level `exchanges` with others that agree
    on `match` inside an area of level `within`. `stands_for` is a procedure of the past that
    it imitates without being it.
    """

    kind: Literal["swapped"]
    domain: str
    match: tuple[str, ...]
    within: str
    exchanges: str
    moves: tuple[str, ...] = Field(min_length=1)
    largest_stratum: int = Field(ge=2)
    largest_stratum_is: str
    rates: tuple[Rational, ...] = Field(min_length=1)
    stands_for: str = ""


Basis = Annotated[Stated | Composed | Swapped, Field(discriminator="kind")]


# -- other accountings --------------------------------------------------------------------------


class _Alternative(Strict):
    name: str = Field(pattern=NAME)
    assumption: str


class Touched(_Alternative):
    """One person alters more household records than the published accounting assumes."""

    kind: Literal["touched"]
    touched: int


class Contributors(_Alternative):
    """Told per contributor, whose record imputation copied."""

    kind: Literal["contributors"]
    copies: int


class Unbounded(_Alternative):
    """Told for a unit added or removed, which is how the mechanism was calibrated."""

    kind: Literal["unbounded"]
    rho2: Rational
    source: str


class ByRule(_Alternative):
    """From the unbounded promise to the bounded one by the rule for all mechanisms."""

    kind: Literal["by-rule"]


class Term(Strict):
    """Some measurements with one factor from their unbounded rho^2 to the bounded one."""

    rho2: Rational
    times: Rational


class Counted(_Alternative):
    """Bounded by counting what a changed record changes in the measured vectors."""

    kind: Literal["counted"]
    terms: tuple[Term, ...] = Field(min_length=1)
    source: str
    status: Status


class Instead(_Alternative):
    """Composed with other accountings of some parts: part to name of its alternative."""

    kind: Literal["instead"]
    parts: dict[str, str] = Field(min_length=1)


class Sharpened(_Alternative):
    """Swapping accounted for by the sharpened bound."""

    kind: Literal["sharpened"]


Alternative = Annotated[
    Touched | Contributors | Unbounded | ByRule | Counted | Instead | Sharpened,
    Field(discriminator="kind"),
]


class System(Strict):
    """One published system.

    Parameters
    ----------
    covers, leaves_out
        Products that the promise is about, and products of the same data that it is not.
    printed
        Figures as printed, to compare with.
    notes
        What a reader must know before using the figures.
    alternatives
        Other accountings of the same system, each with its assumption.
    registry
        What the registry of deployments asks for beside the promise.
    """

    format_version: int = FORMAT_VERSION
    name: str = Field(pattern=NAME)
    title: str
    citations: tuple[str, ...] = Field(min_length=1)
    covers: tuple[str, ...] = Field(min_length=1)
    leaves_out: tuple[str, ...] = Field(min_length=1)
    basis: Basis
    printed: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = Field(min_length=1)
    alternatives: tuple[Alternative, ...] = ()
    registry: Metadata | None = None

    @model_validator(mode="after")
    def _one_name_each(self) -> System:
        names = [one.name for one in self.alternatives]
        if len(set(names)) != len(names) or "unrounded" in names:
            raise ValueError("alternatives: names must differ, and 'unrounded' is taken")
        return self
