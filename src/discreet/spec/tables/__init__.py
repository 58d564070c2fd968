"""Tables 2 to 5 of Bailie, Gong and Meng, recomputed from the catalog beside what is printed.

A row agrees if the recomputed figure rounds to the printed one; where it does not, the row
says why. Budgets rounded for print are the usual reason, so a second figure is computed
from those before rounding. Figures that the text around a table gives are in `in_text`.
"""

from discreet.spec.tables.recompute import table
from discreet.spec.tables.table import DELTA, PublishedTable, Row

__all__ = ["DELTA", "PublishedTable", "Row", "table"]
