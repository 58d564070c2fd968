"""What may be known of a release that its promise does not say."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.spec.budget import SQUARED
from discreet.spec.specification import Specification


@dataclass(frozen=True)
class Facts:
    """What may be known of a release beyond the five blocks of its promise.

    Parameters
    ----------
    units
        Number of units in the data (N).
    stability
        Factor of the steps before the promise begins (c).
    disclosed_strata, disclosed_share
        Strata whose invariants leave one possible table, and the share of records in them.
    records_per_unit
        Most records of this unit in one of the next coarser unit (M).
    copies
        Most copies of one contributor's record (k).
    reduced_events
        How outputs were coarsened before the loss was computed, if they were.
    chosen_from_data
        What of the design was chosen by looking at the confidential data.
    products
        The products that the promise covers.
    shared_randomness
        What releases share, if their randomness is not fresh.
    largest_stratum, rates
        Of swapping: the size of the largest stratum (b), the rate, or both rates if it was
        found from a budget.
    sharper
        A smaller bound than the budget, or the exact loss, and what it is.
    capped
        What keeps the output from taking every value: a cap on swaps, swaps in pairs,
        bounded noise.
    stands_for
        The procedure in whose stead the promise is quoted.
    """

    units: int | None = None
    stability: Fraction | None = None
    disclosed_strata: int = 0
    disclosed_share: Fraction | None = None
    records_per_unit: int | None = None
    copies: int | None = None
    reduced_events: str = ""
    chosen_from_data: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    shared_randomness: str = ""
    largest_stratum: int | None = None
    rates: tuple[Fraction, ...] = ()
    sharper: tuple[str, Fraction] | None = None
    capped: str = ""
    stands_for: str = ""


NOTHING_KNOWN = Facts()


@dataclass(frozen=True)
class Side:
    """One promise with its name and facts."""

    name: str
    spec: Specification
    facts: Facts

    def times(self, factor: Fraction | int) -> str:
        """Return the budget for steps that many times as large, or that none is promised."""
        if not self.extends:
            return "no budget that follows from this one: only neighbours are promised anything"
        return self.spec.budget.scaled(factor).describe()

    @property
    def extends(self) -> bool:
        """Tell whether a budget per unit of distance covers larger steps as well."""
        return (
            self.spec.input_premetric.name != "neighbours"
            and self.spec.output_premetric.delta is None
        )

    @property
    def square(self) -> str:
        """Return the power to which factors enter the budget."""
        return "^2" if self.spec.budget.unit in SQUARED else ""
