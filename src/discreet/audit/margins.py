"""The exact loss of swapping one stratum, known by its margins, under any output premetric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.audit.exact import Loss, Pair, exact_loss_of, loss_of
from discreet.spec import MULTIPLICATIVE, OutputPremetric, divergences, psa

#: Tables up to which every pair is compared under a premetric other than the multiplicative.
MOST_TABLES = 150


@dataclass(frozen=True)
class MarginAudit:
    """What one stratum loses, beside the bounds on its loss under pure differential privacy."""

    output: OutputPremetric
    tables: int
    loss: Loss
    theorem_1: psa.LogAmount
    sharpened: psa.LogAmount
    #: Whether Theorem 1 is at least the loss under pure differential privacy, exactly.
    theorem_1_holds: bool


def audit_margins(
    holding: Sequence[int],
    swapping: Sequence[int],
    rate: Fraction,
    output: OutputPremetric = MULTIPLICATIVE,
) -> MarginAudit:
    """Return the loss of the Permutation Swapping Algorithm in a stratum with these margins.

    >>> str(audit_margins([2, 2], [2, 2], Fraction(1, 2)).loss.exact)
    'ln(19/4)/2'
    """
    other = _other(holding, swapping, rate, output) if output != MULTIPLICATIVE else None
    pure = psa.exact_loss(holding, swapping, rate)
    # Theorem 1 counts strata of two records or more that are not all alike.
    kinds = max(sum(count > 0 for count in margin) for margin in (holding, swapping))
    b = psa.largest_stratum([sum(holding)] if kinds > 1 else [])
    published = psa.theorem_1(b, rate)
    return MarginAudit(
        output,
        pure.universe,
        other or _loss_of(pure),
        published,
        psa.sharpened(b, rate),
        not published < pure.amount,
    )


def _loss_of(pure: psa.ExactLoss) -> Loss:
    if pure.universe == 1:
        return loss_of([])
    exact = None if pure.ratio is None else divergences.LogOf(pure.ratio)
    bounds = divergences.INFINITE if exact is None else divergences.bounds_of(exact)
    distance = divergences.Distance(bounds, exact, pure.outcome)
    return loss_of([Pair(None, pure.x, pure.other, Fraction(pure.distance), distance)])


def _other(
    holding: Sequence[int], swapping: Sequence[int], rate: Fraction, output: OutputPremetric
) -> Loss:
    universe = psa.tables_with_margins(holding, swapping)
    if len(universe) > MOST_TABLES:
        raise psa.UniverseTooLarge(
            f"{len(universe)} tables: under this output premetric at most {MOST_TABLES} are "
            f"compared"
        )
    laws = {table: psa.table_law(table, rate) for table in universe}
    return exact_loss_of(laws, records_changed, output)


def records_changed(one: psa.Table, other: psa.Table) -> Fraction:
    """Return how many records must change to turn one table into the other."""
    rows = zip(one, other, strict=True)
    gaps = sum(abs(a - b) for x, y in rows for a, b in zip(x, y, strict=True))
    return Fraction(gaps, 2)
