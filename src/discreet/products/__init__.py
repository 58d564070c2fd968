"""What is counted: table shells of a schema, and the invariants of a specification."""

from discreet.products.invariants import check_invariants, invariant_counts
from discreet.products.tabulate import tabulate

__all__ = ["check_invariants", "invariant_counts", "tabulate"]
