"""The promises: what a differential-privacy specification says, as immutable values.

A specification has five building blocks (Bailie, Gong and Meng, "A Refreshment
Stirred, Not Shaken"): domain, multiverse, input premetric, output premetric and
protection loss budget. This room knows nothing of data, mechanisms or noise.
"""

from discreet.spec.blocks import Domain, InputPremetric, Invariant, Multiverse, OutputPremetric
from discreet.spec.budget import (
    Budget,
    Exactly,
    FunctionOfUniverse,
    LogRational,
    NoFiniteBudget,
    Rational,
    Status,
    Unit,
)
from discreet.spec.compose import Composition, NoCompositionRule, compose
from discreet.spec.premetrics import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    hamming_of_multisets,
    symmetric_difference,
)
from discreet.spec.specification import Specification, read_specification

__all__ = [
    "MULTIPLICATIVE",
    "NORMALISED_RENYI",
    "Budget",
    "Composition",
    "Domain",
    "Exactly",
    "FunctionOfUniverse",
    "InputPremetric",
    "Invariant",
    "LogRational",
    "Multiverse",
    "NoCompositionRule",
    "NoFiniteBudget",
    "OutputPremetric",
    "Rational",
    "Specification",
    "Status",
    "Unit",
    "compose",
    "hamming_of_multisets",
    "read_specification",
    "symmetric_difference",
]
