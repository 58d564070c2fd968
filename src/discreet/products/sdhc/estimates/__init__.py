"""Estimates from the noisy tables: never negative, never infinite, with 90 percent intervals.

Statistical post-processing of released numbers, so it costs no budget. After Sexton et al.
(2024), whose posterior laws are kept; their sampling is replaced by closed forms and
quadrature (ours, checked against sampling in the tests).
"""

from discreet.products.sdhc.estimates.counts import (
    Estimate,
    estimate_cells,
    estimate_sums,
    posterior,
)
from discreet.products.sdhc.estimates.coverage import Sums, coverage, coverage_of_sums
from discreet.products.sdhc.estimates.ratios import Averages, averages, averages_by_age
from discreet.products.sdhc.estimates.tables import (
    AVERAGES,
    COUNTS,
    average_table,
    count_table,
    estimate_tables,
)

__all__ = [
    "AVERAGES",
    "COUNTS",
    "Averages",
    "Estimate",
    "Sums",
    "average_table",
    "averages",
    "averages_by_age",
    "count_table",
    "coverage",
    "coverage_of_sums",
    "estimate_cells",
    "estimate_sums",
    "estimate_tables",
    "posterior",
]
