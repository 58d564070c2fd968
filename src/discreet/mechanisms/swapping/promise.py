"""What a swap of pairs promises: what stays exact, and that no finite budget exists."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.census import Schema
from discreet.spec import Budget, Invariant, MarginalTable, NoFiniteBudget

REASON = (
    "disjoint swaps of pairs do not lead from every data set of a universe to every other, so "
    "some output has probability zero under one of two data sets and not under the other, and the "
    "loss is infinite; who is swapped depends on other records as well"
)
PLAINLY = "no finite budget exists for this method"
PUBLISHED = "Bailie, Gong and Meng, on the disjoint pairwise swapping of the 2010 census"
OURS = (
    "ours: the argument of Bailie, Gong and Meng on disjoint pairwise swapping, with a witness on "
    "tiny universes by the exact verifier"
)


def no_budget(method: str, also_exact: Sequence[str], *, ours: bool) -> Budget:
    """Return the budget that does not exist, and who says so.

    Of a method that is our own nobody has published it; we show it on examples.
    """
    return Budget(
        unit="epsilon",
        amount=NoFiniteBudget(reason=REASON),
        source=OURS if ours else PUBLISHED,
        status="checked numerically" if ours else "published",
        conditions=(
            PLAINLY,
            f"method: {method}",
            *(f"also exact: {text}" for text in also_exact),
        ),
    )


def swap_invariants(schema: Schema, match: tuple[str, ...], within: str) -> tuple[Invariant, ...]:
    """Return what every swap of pairs keeps exactly."""
    kinds, block = schema.kinds, schema.block
    occupied = {"kind": list(kinds.occupied)}
    fixed = [*kinds.vacant, *kinds.collective]
    swapped = (
        MarginalTable(
            name="household records by stratum",
            of="units",
            where=occupied,
            by=match,
            level=within,
            whole_record=True,
        ),
        MarginalTable(
            name=f"households by matching variables and {block}",
            of="units",
            where=occupied,
            by=match,
            level=block,
        ),
    )
    stays = MarginalTable(
        name="vacant units and collective quarters with their residents",
        of="units",
        where={"kind": fixed},
        level=block,
        whole_record=True,
    )
    return (*swapped, stays) if fixed else swapped
