"""The Supplemental DHC file: persons and households by type, tenure, age and race.

Tables PH1 to PH8 as data, their exact counts from a census of the US layout, and estimates
from noisy counts.
"""

from discreet.products.sdhc import estimates
from discreet.products.sdhc.codebook import codebook
from discreet.products.sdhc.counts import cells_of, check_cells, count_tables, counts_of, labels
from discreet.products.sdhc.groups import (
    ITERATIONS,
    LEVELS,
    NATION,
    PERSON_COLUMNS,
    PUERTO_RICO,
    STATES,
    UNIT_COLUMNS,
    Condition,
    Level,
    regions_of,
)
from discreet.products.sdhc.shells import (
    DERIVED,
    SHELLS,
    Aggregate,
    Cell,
    Derived,
    Shell,
    cell_column,
    hint,
    shell_of,
    truncated_tables,
)
from discreet.products.sdhc.tally import Tally, tally_census

__all__ = [
    "DERIVED",
    "ITERATIONS",
    "LEVELS",
    "NATION",
    "PERSON_COLUMNS",
    "PUERTO_RICO",
    "SHELLS",
    "STATES",
    "UNIT_COLUMNS",
    "Aggregate",
    "Cell",
    "Condition",
    "Derived",
    "Level",
    "Shell",
    "Tally",
    "cell_column",
    "cells_of",
    "check_cells",
    "codebook",
    "count_tables",
    "counts_of",
    "estimates",
    "hint",
    "labels",
    "regions_of",
    "shell_of",
    "tally_census",
    "truncated_tables",
]
