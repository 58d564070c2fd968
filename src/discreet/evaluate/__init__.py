"""What protection costs: errors of tables, entropy of areas, and which counts are exact.

Everything here compares with the truth and is internal.
"""

from discreet.evaluate.compare import Comparison, Errors, TableErrors, compare, paired_cells
from discreet.evaluate.entropy import entropy
from discreet.evaluate.exactness import InvariantCheck, check_each_invariant, promised_exact

__all__ = [
    "Comparison",
    "Errors",
    "InvariantCheck",
    "TableErrors",
    "check_each_invariant",
    "compare",
    "entropy",
    "paired_cells",
    "promised_exact",
]
