"""The second building block: where the promise holds.

A universe is a set of data sets that agree on every invariant; the multiverse is all of
them. Adding invariants refines the multiverse: universes become smaller, and the promise
says less (Bailie, Gong and Meng, Propositions 3 and 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from discreet.config import Strict
from discreet.spec.domain import Domain
from discreet.spec.invariants import (
    Indicator,
    Inequality,
    Invariant,
    LinearCombination,
    MarginalTable,
)

Answer = Literal["yes", "unknown"]


class Multiverse(Strict):
    """The universes a promise holds in: data sets with equal invariants."""

    invariants: tuple[Invariant, ...]

    def refines(self, other: Multiverse, domain: Domain) -> Answer:
        """Tell whether each universe of this one lies inside a universe of the other.

        For invariants c and c' that is the case if c' is a function of c. "yes" is a proof;
        where no rule applies the answer is "unknown", never "no".
        """
        return "unknown" if self.undetermined(other, domain) else "yes"

    def undetermined(self, other: Multiverse, domain: Domain) -> tuple[Invariant, ...]:
        """Return the invariants of the other not shown to be a function of the own ones."""
        return tuple(
            one for one in other.invariants if not determined(one, self.invariants, domain)
        )

    def common_refinement(self, other: Multiverse) -> Multiverse:
        """Return the multiverse of all invariants of both."""
        return Multiverse(
            invariants=(
                *self.invariants,
                *(i for i in other.invariants if i not in self.invariants),
            )
        )

    def without_repetition(self, domain: Domain) -> Multiverse:
        """Return the same multiverse without invariants that follow from the others."""
        kept = list(self.invariants)
        for one in reversed(self.invariants):
            others = [other for other in kept if other is not one]
            if determined(one, others, domain):
                kept = others
        return Multiverse(invariants=tuple(kept))


def determined(target: Invariant, given: Sequence[Invariant], domain: Domain) -> bool:
    """Tell whether a statistic is shown to be a function of given ones.

    Ours, proved here, by three rules: a table is a sum of cells of a finer table, if need
    be one kind of unit at a time; a linear combination follows from its table, or from
    combinations whose weights span its own; an indicator or inequality follows from its
    table, an indicator also from a finer indicator.
    """
    if target in given:
        return True
    table = MarginalTable(
        name="", of=target.of, by=target.by, level=target.level, where=target.where
    )
    if isinstance(target, MarginalTable):
        return _table_follows(target, given, domain)
    if _table_follows(table, given, domain):
        return True
    if isinstance(target, LinearCombination):
        return _spanned(target, given, domain)
    return _is_indicator(target) and any(
        _is_indicator(one) and _coarser_cells(target, one, domain) for one in given
    )


def _table_follows(target: MarginalTable, given: Sequence[Invariant], domain: Domain) -> bool:
    tables = [one for one in given if isinstance(one, MarginalTable)]
    if any(_sums_to(one, target, domain) for one in tables):
        return True
    kinds = frozenset(target.where.get("kind", domain.kinds))
    return bool(kinds) and _pieced_together(kinds, target, tables, domain)


def _pieced_together(
    kinds: frozenset[str], target: MarginalTable, tables: Sequence[MarginalTable], domain: Domain
) -> bool:
    """Tell whether the target's rows of these kinds are counted piece by piece, none twice."""
    if not kinds:
        return True
    first = min(kinds)
    pieces = {frozenset([first]), *(frozenset(t.where.get("kind", ())) for t in tables)}
    for piece in sorted(pieces, key=sorted):
        if first in piece <= kinds:
            part = target.model_copy(update={"where": {**target.where, "kind": sorted(piece)}})
            if any(_sums_to(one, part, domain) for one in tables) and _pieced_together(
                kinds - piece, target, tables, domain
            ):
                return True
    return False


def _sums_to(one: MarginalTable, target: MarginalTable, domain: Domain) -> bool:
    """Tell whether the cells of `target` are sums of cells of `one`."""
    if not one.whole_record:
        return not target.whole_record and _coarser_cells(target, one, domain)
    above = {level for level in domain.spine if domain.at_or_above(level, one.level)}
    chosen = {n for n, codes in target.where.items() if set(one.where.get(n, ())) != set(codes)}
    asked = {*target.by, *chosen} - above - set(one.by)
    if asked & {*domain.spine, *domain.places} or (one.without and asked):
        return False  # location below the level, or perhaps made from a column left out
    if target.whole_record and not set(one.without) <= set(target.without):
        return False
    return domain.at_or_above(target.level, one.level) and _selects_within(target, one)


def _coarser_cells(target: Invariant, one: Invariant, domain: Domain) -> bool:
    """Tell whether every cell of `target` is a union of cells of `one`."""
    if one.of != target.of or not domain.at_or_above(target.level, one.level):
        return False
    known = {*one.by, *(lv for lv in domain.spine if domain.at_or_above(lv, one.level))}
    chosen = {
        name for name, codes in target.where.items() if set(one.where.get(name, ())) != set(codes)
    }
    return {*target.by, *chosen} <= known and _selects_within(target, one)


def _selects_within(target: Invariant, one: Invariant) -> bool:
    """Tell whether the rows `target` counts are all among those `one` counts."""
    return all(
        name in target.where and set(target.where[name]) <= set(codes)
        for name, codes in one.where.items()
    )


def _is_indicator(one: Invariant) -> bool:
    if isinstance(one, Inequality):
        return one.at_least == 1 or one.at_most == 0
    return isinstance(one, Indicator)


def _spanned(target: LinearCombination, given: Sequence[Invariant], domain: Domain) -> bool:
    """Tell whether the weights lie in the span of those of combinations of the same table."""
    rows = [
        one.weights
        for one in given
        if isinstance(one, LinearCombination)
        and (one.of, one.by, one.where) == (target.of, target.by, target.where)
        and domain.at_or_above(target.level, one.level)
    ]
    cells = sorted({cell for row in (*rows, target.weights) for cell in row})
    matrix = [[row.get(cell, Fraction(0)) for cell in cells] for row in rows]
    wanted = [target.weights.get(cell, Fraction(0)) for cell in cells]
    return _rank(matrix) == _rank([*matrix, wanted])


def _rank(matrix: Sequence[Sequence[Fraction]]) -> int:
    """Return the rank by exact elimination."""
    rows, rank = [list(row) for row in matrix], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank
