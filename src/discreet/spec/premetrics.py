"""The premetrics that the mechanisms at hand use."""

from __future__ import annotations

from discreet.spec.blocks import InputPremetric, OutputPremetric

#: Pure differential privacy; budgets are told in epsilon.
MULTIPLICATIVE = OutputPremetric(
    name="multiplicative",
    definition="largest |ln P(t)/Q(t)| over outcomes t; infinite where only one is zero",
)

#: Zero-concentrated differential privacy (Bun and Steinke 2016); budgets are told in rho^2.
NORMALISED_RENYI = OutputPremetric(
    name="normalised-renyi",
    definition="largest sqrt(D_a / a) over orders a > 1 and both directions, "
    "D_a the Renyi divergence",
)


def hamming_of_multisets(unit: str) -> InputPremetric:
    """Return half the symmetric difference of two equally large multisets of units."""
    return InputPremetric(
        name="hamming-of-multisets",
        unit=unit,
        definition=f"number of {unit} records to change; infinite if the numbers of records differ",
    )


def symmetric_difference(unit: str) -> InputPremetric:
    """Return the number of units to add or remove."""
    return InputPremetric(
        name="symmetric-difference",
        unit=unit,
        definition=f"number of {unit} records to add or remove",
    )
