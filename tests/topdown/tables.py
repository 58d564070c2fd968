"""Made-up fractional tables that are feasible by construction: averages of whole tables."""

from __future__ import annotations

import numpy as np

from discreet.mechanisms.topdown.rounding import OURS
from discreet.mechanisms.topdown.rounding_cost import Table

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
