"""Which blocks are in the tree: only what the declared invariants tell may decide it.

The 2020 system leaves out blocks without any living quarter. That the others have one is
told by the numbers of housing units and of group quarters per block, which are invariants
there. Where these are not declared, leaving a block out would disclose what nobody declared:
two censuses one record apart could be told apart for certain.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.census import Census
from discreet.engine import Frame
from discreet.mechanisms.topdown.strategy import Strategy


def blocks_of(census: Census, strategies: Mapping[str, Strategy]) -> Frame | None:
    """Return the blocks that invariants show to hold records; None stands for all blocks."""
    block, units = census.schema.block, strategies.get("units")
    if any(strategy.quarters is not None for strategy in strategies.values()):
        return census.table("units").select(block)
    # Persons without declared quarters may live where no unit is counted.
    if units is not None and units.total == block and "persons" not in strategies:
        return census.frame("units", [block], where=units.where or None)
    return None
