"""The promises: what a differential-privacy specification says, as immutable values.

A specification has five building blocks (Bailie, Gong and Meng, "A Refreshment
Stirred, Not Shaken"): domain, multiverse, input premetric, output premetric and
protection loss budget. This room knows nothing of data, mechanisms or noise.
"""

from discreet.spec.blocks import Domain, InputPremetric, Invariant, Multiverse, OutputPremetric
from discreet.spec.budget import Budget, FunctionOfUniverse, LogRational, Rational
from discreet.spec.premetrics import MULTIPLICATIVE, hamming_of_multisets
from discreet.spec.specification import Specification, read_specification

__all__ = [
    "MULTIPLICATIVE",
    "Budget",
    "Domain",
    "FunctionOfUniverse",
    "InputPremetric",
    "Invariant",
    "LogRational",
    "Multiverse",
    "OutputPremetric",
    "Rational",
    "Specification",
    "hamming_of_multisets",
    "read_specification",
]
