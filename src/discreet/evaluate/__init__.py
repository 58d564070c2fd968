"""What protection costs: errors of tables, entropy of areas, and which counts are exact.

Everything here compares with the truth and is internal.
"""

from discreet.evaluate.compare import Comparison, Errors, TableErrors, compare, paired_cells
from discreet.evaluate.directions import Direction, Finding, directions
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

__all__ = [
    "COMPONENTS",
    "SWAP_METHODS",
    "Comparison",
    "Direction",
    "Errors",
    "Finding",
    "InvariantCheck",
    "SwapResult",
    "SwapRun",
    "SwapStudy",
    "TableErrors",
    "Who",
    "check_each_invariant",
    "compare",
    "directions",
    "entropy",
    "error_table",
    "paired_cells",
    "promised_exact",
    "relative_errors",
    "study_swaps",
    "swap_methods",
]
