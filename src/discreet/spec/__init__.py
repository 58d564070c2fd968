"""The promises: what a differential-privacy specification says, as immutable values.

A specification has five building blocks (Bailie, Gong and Meng, "A Refreshment Stirred,
Not Shaken"): domain, multiverse, input premetric, output premetric and protection loss
budget. This room knows nothing of data, mechanisms or noise.

To read it from the definitions to the numbers of the 2020 census: `domain`, `invariants`
and `multiverse`, `inputs`, `outputs`, `budget`, `specification` are the blocks;
`operations`, `compose` and `convert` the calculus; `divergences` measures two laws and
`comparison` sets two promises side by side; `psa` accounts for the Permutation Swapping
Algorithm; `catalog` holds the published systems as data, from which `tables` computes the
published tables; `registry` exports a promise. These three are loaded when they are imported:
few need them.
"""

from discreet.spec import divergences, psa
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
from discreet.spec.comparison.cautions import Caution, cautions
from discreet.spec.comparison.compare import Comparison, compare
from discreet.spec.comparison.facts import NOTHING_KNOWN, Facts
from discreet.spec.compose import Composition, NoCompositionRule, compose
from discreet.spec.convert import (
    NoConversion,
    concentrated_to_approximate,
    convert,
    pure_to_concentrated,
)
from discreet.spec.domain import WHOLE, Domain
from discreet.spec.inputs import (
    INPUTS,
    InputPremetric,
    hamming_of_multisets,
    neighbours,
    symmetric_difference,
)
from discreet.spec.invariants import (
    Indicator,
    Inequality,
    Invariant,
    LinearCombination,
    MarginalTable,
)
from discreet.spec.multiverse import Multiverse, determined
from discreet.spec.operations import (
    NotAllowed,
    chain,
    change_premetric,
    change_unit,
    costs_nothing,
    group,
    parallel,
    post_process,
    preprocess,
    refine,
    release_of_invariants,
    to_contributors,
)
from discreet.spec.outputs import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    OUTPUTS,
    OutputPremetric,
    approximate,
)
from discreet.spec.specification import Specification, json_schema, read_specification

__all__ = [
    "INPUTS",
    "MULTIPLICATIVE",
    "NORMALISED_RENYI",
    "NOTHING_KNOWN",
    "OUTPUTS",
    "WHOLE",
    "Budget",
    "Caution",
    "Comparison",
    "Composition",
    "Domain",
    "Exactly",
    "Facts",
    "FunctionOfUniverse",
    "Indicator",
    "Inequality",
    "InputPremetric",
    "Invariant",
    "LinearCombination",
    "LogRational",
    "MarginalTable",
    "Multiverse",
    "NoCompositionRule",
    "NoConversion",
    "NoFiniteBudget",
    "NotAllowed",
    "OutputPremetric",
    "Rational",
    "Specification",
    "Status",
    "Unit",
    "approximate",
    "cautions",
    "chain",
    "change_premetric",
    "change_unit",
    "compare",
    "compose",
    "concentrated_to_approximate",
    "convert",
    "costs_nothing",
    "determined",
    "divergences",
    "group",
    "hamming_of_multisets",
    "json_schema",
    "neighbours",
    "parallel",
    "post_process",
    "preprocess",
    "psa",
    "pure_to_concentrated",
    "read_specification",
    "refine",
    "release_of_invariants",
    "symmetric_difference",
    "to_contributors",
]
