"""What protection costs: errors of tables, entropy of areas, and which counts are exact.

Everything here compares with the truth and is internal.
"""

from discreet.evaluate.accuracy import Accuracy, Fitness, Measure
from discreet.evaluate.compare import Comparison, Errors, TableErrors, compare, paired_cells
from discreet.evaluate.directions import Direction, Finding, caution, directions
from discreet.evaluate.entropy import entropy
from discreet.evaluate.exactness import InvariantCheck, check_each_invariant, promised_exact
from discreet.evaluate.methods import SWAP_METHODS, swap_methods
from discreet.evaluate.swap_results import (
    COMPONENTS,
    SwapResult,
    SwapRun,
    SwapStudy,
    Who,
    error_table,
    relative_errors,
)
from discreet.evaluate.swaps import study_swaps
from discreet.evaluate.topdown import (
    CELLS,
    GROUPS,
    MEASURES,
    LevelErrors,
    TopDownStudy,
    persons_strategy,
    study_topdown,
)
from discreet.evaluate.totals_theory import expected_variances

__all__ = [
    "CELLS",
    "COMPONENTS",
    "GROUPS",
    "MEASURES",
    "SWAP_METHODS",
    "Accuracy",
    "Comparison",
    "Direction",
    "Errors",
    "Finding",
    "Fitness",
    "InvariantCheck",
    "LevelErrors",
    "Measure",
    "SwapResult",
    "SwapRun",
    "SwapStudy",
    "TableErrors",
    "TopDownStudy",
    "Who",
    "caution",
    "check_each_invariant",
    "compare",
    "directions",
    "entropy",
    "error_table",
    "expected_variances",
    "paired_cells",
    "persons_strategy",
    "promised_exact",
    "relative_errors",
    "study_swaps",
    "study_topdown",
    "swap_methods",
]
