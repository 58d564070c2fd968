"""What swaps promise: what stays exact, and of pairs that no finite budget exists."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.census import Schema
from discreet.mechanisms.swapping.strata import Swapped
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

#: Of permutation swapping: what it is, what its rate means, and when its budget holds.
PERMUTATION = "Permutation Swapping Algorithm (Bailie, Gong and Meng, Algorithm 1)"
MEANING_OF_RATE = (
    "probability of selecting a record; a record alone in its stratum is never selected, and where "
    "exactly one record of a stratum is, its selection is repeated"
)

CONDITIONS = (
    "upper bound in the universe of these data, given exact publication of the listed statistics",
    "valid only if the rate and the variables were fixed without looking at these data",
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


def permutation_invariants(schema: Schema, swapped: Swapped) -> tuple[Invariant, ...]:
    """Return the margins that permutation swapping keeps, and whatever it does not touch.

    Counts by matching and holding variables, and by matching and swapping variables
    (Bailie, Gong and Meng, Proposition 4).
    """
    kinds, block = schema.kinds, schema.block
    moves = block in swapped.swap
    others = tuple(column for column in swapped.swap if column != block)
    of_units = swapped.records == "units"
    where = {"kind": list(kinds.occupied)} if of_units else {}
    what = "household records by stratum" if moves else "records without what is swapped"
    held = MarginalTable(
        name=what,
        of="units",
        where=where,
        by=swapped.match if of_units else (),
        level=swapped.within if moves else block,
        whole_record=True,
        without=others if of_units else tuple(f"persons.{column}" for column in others),
    )
    level = block if moves else swapped.within
    noun = "households" if of_units else "persons"
    traded = MarginalTable(
        name=f"{noun} by matching variables and {', '.join(swapped.swap)}",
        of=swapped.records,
        where=where,
        by=(*swapped.match, *others),
        level=level,
    )
    fixed = [*kinds.vacant, *kinds.collective] if of_units else []
    if not fixed:
        return (held, traded)
    stays = MarginalTable(
        name="vacant units and collective quarters with their residents",
        of="units",
        where={"kind": fixed},
        level=block,
        whole_record=True,
    )
    return (held, traded, stays)
