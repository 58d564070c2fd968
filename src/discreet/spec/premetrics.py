"""The premetrics that the mechanisms at hand use."""

from __future__ import annotations

from discreet.spec.blocks import InputPremetric, OutputPremetric

#: Pure differential privacy.
MULTIPLICATIVE = OutputPremetric(
    name="multiplicative",
    definition="largest |ln P(t)/Q(t)| over outcomes t; infinite where only one is zero",
)


def hamming_of_multisets(unit: str) -> InputPremetric:
    """Return half the symmetric difference of two equally large multisets of units."""
    return InputPremetric(
        name="hamming-of-multisets",
        unit=unit,
        definition=f"number of {unit} records to change; infinite if the numbers of records differ",
    )
