"""The redistricting tables of Public Law 94-171: P1 to P5 and H1, for every kind of area.

From any census of the US layout, confidential or released, and from protected microdata
of the profile `pl94`.
"""

from discreet.products.pl94.histogram import BlockCounts, block_counts
from discreet.products.pl94.mdf import write_mdf
from discreet.products.pl94.shells import (
    AXES,
    QUARTERS,
    SHELLS,
    UNIT_CELLS,
    Shell,
    ShellCell,
    shell_of,
)
from discreet.products.pl94.tables import countable, tables, write_tables

__all__ = [
    "AXES",
    "QUARTERS",
    "SHELLS",
    "UNIT_CELLS",
    "BlockCounts",
    "Shell",
    "ShellCell",
    "block_counts",
    "countable",
    "shell_of",
    "tables",
    "write_mdf",
    "write_tables",
]
