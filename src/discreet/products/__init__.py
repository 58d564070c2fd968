"""What is counted: table shells of a schema, and the invariants of a specification.

The redistricting tables are `discreet.products.pl94`, loaded only where they are asked for.
"""

from discreet.products.invariants import check_invariants, invariant_counts
from discreet.products.tabulate import tabulate

__all__ = ["check_invariants", "invariant_counts", "tabulate"]
