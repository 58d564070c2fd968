"""Made-up fractional tables that are feasible by construction: averages of whole tables.

And the oracles they are rounded against: the relaxed program, and the cost by its definition.
"""

from __future__ import annotations

import numpy as np

from discreet.mechanisms.topdown.flow import Int64s
from discreet.mechanisms.topdown.general_rounding import built, no_rows, solve
from discreet.mechanisms.topdown.rounding import OURS, weights_of
from discreet.mechanisms.topdown.rounding_cost import (
    Table,
    Terms,
    classes_of,
    lowered,
    terms_of,
)

#: Whole values in a solution may be off by so much.
NEARLY_WHOLE = 1e-6

SHAPE = (3, 2, 2, 5)


def make_table(
    seed: int, cells: int = 20, children: int = 5, *, ties: bool = False, exact: bool = False
) -> Table:
    """Draw a table: with `ties` of few different fractions, with `exact` of whole totals.

    Whole tables with the same sums over children (and with `exact` over cells) are averaged, so
    the average keeps all limits, and many lower bounds are tight.
    """
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.choice(np.prod(SHAPE), min(cells, 60), replace=False))
    quarters, _, hispanic, race = np.unravel_index(chosen, SHAPE)
    chain = [0 * chosen, quarters, quarters * 2 + hispanic, (quarters * 2 + hispanic) * 5 + race]
    tree = np.array([np.unique(level, return_inverse=True)[1] for level in chain], np.int32)
    group_of = tree[1].copy()
    allowed = (rng.random((group_of.max() + 1, children)) < 0.8).astype(np.uint8)
    allowed[:, rng.integers(children)] = 1
    may = allowed[group_of] > 0
    first = rng.poisson(rng.choice([0.2, 2.0], may.shape)) * may
    first[np.arange(chosen.size), may.argmax(axis=1)] += 1
    parts = 4 if ties else 6
    tables = [moved(first, may, rng, exact) for _ in range(parts)]
    share = np.full(parts, 1 / parts) if ties else rng.dirichlet(np.ones(parts))
    x = np.einsum("p,pjc->jc", share, np.array(tables, float))
    held = np.zeros(allowed.shape)
    np.add.at(held, group_of, x)
    tight = rng.random(held.shape) < 0.5
    lower = np.where(tight, np.floor(held + 1e-9), 0).astype(np.int64)
    totals = first.sum(axis=0).astype(float) if exact else np.full(children, np.nan)
    return Table(x, first.sum(axis=1), tree, lower, allowed, group_of, totals, OURS)


def moved(first, may, rng, exact):
    """Return another whole table with the same sums."""
    table = first.copy()
    cells, children = table.shape
    for _ in range(3 * cells):
        one, other = rng.integers(cells, size=2)
        here, there = rng.integers(children, size=2)
        enough = table[one, here] > 0 and may[one, there]
        if exact:
            enough = enough and table[other, there] > 0 and may[other, here] and one != other
        if enough:
            table[one, here] -= 1
            table[one, there] += 1
            if exact:
                table[other, there] -= 1
                table[other, here] += 1
    return table


def relaxed_rounding(table: Table) -> tuple[Int64s, bool]:
    """Return the optimum of the relaxed program without rows of one's own, and if it was whole."""
    builder = built(table, no_rows(), loose=False)
    solution = solve(builder.model(), whole=False)
    if solution is None:
        return builder.whole, False
    off = np.abs(solution - np.rint(solution)).max(initial=0.0)
    return builder.result(solution), bool(off < NEARLY_WHOLE)


def cost_of(table: Table, result: Int64s) -> int:
    """Return the exact cost of a whole table, counted from all whole parts left as they are."""
    whole, fractions, _ = lowered(table)
    raised = result - whole
    weights = weights_of(table.mode, *table.tree.shape[::-1])
    found = _cost(
        terms_of(fractions.ravel(), 1 if table.mode == OURS else 2, table.mode, 0), raised.ravel()
    )
    for level, weight in enumerate(weights):
        nodes, many = classes_of(table, level)
        totals = np.bincount(nodes.ravel(), fractions.ravel(), many).astype(np.float64)
        sums = np.bincount(nodes.ravel(), raised.ravel(), many).astype(np.int64)
        found += _cost(terms_of(totals, int(weight), table.mode), sums)
    return found


def _cost(terms: Terms, values: Int64s) -> int:
    above = values - terms.base
    middle = np.where(above >= 1, terms.slope, 0).sum()
    return int(middle + terms.outer * (np.maximum(above - 1, 0) + np.maximum(-above, 0)).sum())
