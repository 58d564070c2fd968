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
    """What one stratum loses per record, beside budgets that bound the loss in pure epsilon.

    The budgets say something about this loss only if the output premetric is the
    multiplicative one; `theorem_1_holds` is None under every other.
    """

    output: OutputPremetric
    tables: int
    loss: Loss
    theorem_1: psa.LogAmount
    sharpened: psa.LogAmount
    #: Whether Theorem 1 is at least the loss, exactly.
    theorem_1_holds: bool | None


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
    # Theorem 1 counts strata of two records or more that are not all alike.
    kinds = max(sum(count > 0 for count in margin) for margin in (holding, swapping))
    b = psa.largest_stratum([sum(holding)] if kinds > 1 else [])
    published, sharpened = psa.theorem_1(b, rate), psa.sharpened(b, rate)
    if output != MULTIPLICATIVE:
        tables, loss = _other(holding, swapping, rate, output)
        return MarginAudit(output, tables, loss, published, sharpened, None)
    pure = psa.exact_loss(holding, swapping, rate)
    holds = not published < pure.amount
    return MarginAudit(output, pure.universe, _loss_of(pure), published, sharpened, holds)


def _loss_of(pure: psa.ExactLoss) -> Loss:
    if pure.universe == 1:
        return loss_of([])
    exact = None if pure.ratio is None else divergences.LogOf(pure.ratio)
    bounds = divergences.INFINITE if exact is None else divergences.bounds_of(exact)
    distance = divergences.Distance(bounds, exact, pure.outcome)
    return loss_of([Pair(None, pure.x, pure.other, Fraction(pure.distance), distance)])


def _other(
    holding: Sequence[int], swapping: Sequence[int], rate: Fraction, output: OutputPremetric
) -> tuple[int, Loss]:
    """Return the number of tables, and the loss from all pairs of them."""
    universe = psa.tables_with_margins(holding, swapping)
    if len(universe) > MOST_TABLES:
        raise psa.UniverseTooLarge(
            f"{len(universe)} tables: under this output premetric at most {MOST_TABLES} are "
            f"compared"
        )
    laws = {table: psa.table_law(table, rate) for table in universe}
    return len(universe), exact_loss_of(laws, records_changed, output)


def records_changed(one: psa.Table, other: psa.Table) -> Fraction:
    """Return how many records must change to turn one table into the other."""
    rows = zip(one, other, strict=True)
    gaps = sum(abs(a - b) for x, y in rows for a, b in zip(x, y, strict=True))
    return Fraction(gaps, 2)
