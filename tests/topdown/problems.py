"""Made-up problems of one parent, with the queries and weights of the 2020 release.

Sparse histograms of 8 x 2 x 2 x 63 cells (quarters, voting age, Hispanic origin, race):
most people in a few cells, collective quarters in a few children only, nobody under 18 in
nursing homes. The parent is an estimate: its groups are right, its cells are a little off.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SHAPE = (8, 2, 2, 63)
NURSING = 3
RHO = Fraction(293764, 114921)
LEVEL_SHARES = {"state": 1440, "county": 447, "tract": 687, "block_group": 1256, "block": 165}
#: Mean number of facilities of each type in a child.
FACILITIES = {"state": 30.0, "county": 2.0, "tract": 0.15, "block_group": 0.05, "block": 0.004}
#: The query `total` is measured first and carried over at all levels but the block.
TOTAL_FIRST = ("state", "county", "tract", "block_group")
QUERIES = (
    "total",
    "cenrace",
    "hispanic",
    "votingage",
    "hhinstlevels",
    "hhgq",
    "hispanic*cenrace",
    "votingage*cenrace",
    "votingage*hispanic",
    "votingage*hispanic*cenrace",
    "detailed",
)
FRACTIONS = {
    "state": (3773, 6, 6, 6, 6, 6, 12, 12, 6, 34, 230),
    "county": (3126, 10, 10, 10, 10, 10, 28, 28, 10, 101, 754),
    "tract": (1567, 8, 5, 5, 5, 5, 1933, 20, 5, 67, 482),
    "block_group": (1705, 3, 3, 3, 3, 3, 1055, 9, 3, 24, 1288),
    "block": (5, 9, 5, 5, 5, 5, 21, 21, 5, 71, 3945),
}


class Problem(NamedTuple):
    """The arguments of `least_squares.solve`, in its order."""

    row_of: NDArray[np.int32]
    query_of: NDArray[np.int32]
    answers: NDArray[np.float64]
    weights: NDArray[np.float64]
    parent: NDArray[np.int64]
    group_of: NDArray[np.int32]
    lower: NDArray[np.int64]
    allowed: NDArray[np.uint8]
    totals: NDArray[np.float64]


class Made(NamedTuple):
    """A problem with what it was made from.

    `truth` are the children's true counts of the active cells, `tree` the nested
    partitions of the rounder (total, quarters, by Hispanic origin, by race), `measured`
    and `precision` the answers and weights of the query `total`.
    """

    problem: Problem
    truth: NDArray[np.int64]
    tree: NDArray[np.int32]
    measured: NDArray[np.float64]
    precision: NDArray[np.float64]


def weights_of(level: str) -> NDArray[np.float64]:
    """Return one over the variance of every query of QUERIES at a level."""
    parts = FRACTIONS[level]
    share = RHO * Fraction(LEVEL_SHARES[level], 4099) / sum(parts)
    return np.array([float(share * part) for part in parts])


def partition(query: str) -> NDArray[np.int64]:
    """Return the row of each of the 2016 cells under a query."""
    quarters, age, hispanic, race = (axis.ravel() for axis in np.indices(SHAPE))
    institution = np.where(quarters == 0, 0, np.where(quarters <= 4, 1, 2))
    axes = {
        "total": 0 * quarters,
        "cenrace": race,
        "hispanic": hispanic,
        "votingage": age,
        "hhinstlevels": institution,
        "hhgq": quarters,
        "detailed": np.arange(quarters.size),
    }
    row = 0 * quarters
    for name in query.split("*"):
        row = row * (axes[name].max() + 1) + axes[name]
    return row.astype(np.int64)


def first_seen(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number labels by first appearance; return the numbers and the label of each."""
    values, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(order.size, dtype=np.int64)
    number[order] = np.arange(order.size)
    return number[inverse], values[order]


def true_children(
    rng: np.random.Generator, level: str, children: int, people: float, homeless: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Draw true histograms [2016, K], numbers of facilities [8, K] and the allowed mask."""
    facilities = rng.poisson(FACILITIES[level], (8, children))
    housing = rng.random(children) >= homeless
    housing[0] = True
    facilities[0] = housing
    share = np.where(housing, rng.lognormal(0.0, 1.0, children), 0.0)
    size = rng.poisson(people * share / share.sum())
    rank = np.exp(-0.05 * np.arange(126)) / (1 + np.arange(126)) ** 1.1
    truth = np.zeros((2016, children), dtype=np.int64)
    for child in range(children):
        mix = rng.permuted(rank[:12]), rank[12:]
        origin = rng.dirichlet(40 * np.concatenate(mix) / rank.sum() + 1e-5)
        for group in range(8):
            count = size[child] if group == 0 else 0
            if group > 0 and facilities[group, child]:
                count = rng.poisson(facilities[group, child] * rng.exponential(30.0))
                count = max(count, facilities[group, child])
            adults = 1.0 if group == NURSING else 0.78
            ages = np.array([1 - adults, adults])
            law = (ages[:, None] * origin[None, :]).ravel()
            truth[group * 252 : (group + 1) * 252, child] = rng.multinomial(count, law)
    lower = facilities.astype(np.int64)
    lower[0] = 0
    return truth, lower, (facilities > 0).astype(np.uint8)


def estimated_parent(
    rng: np.random.Generator, truth: NDArray[np.int64], error: float
) -> NDArray[np.int64]:
    """Move a share of people to other cells of their group, mostly to those in use."""
    parent = truth.sum(axis=1)
    if error == 0.0:
        return parent
    for group in range(8):
        cells = np.arange(group * 252, (group + 1) * 252)
        if group == NURSING:
            cells = cells[126:]
        counts = parent[cells]
        moved = rng.binomial(counts, error)
        law = counts + 1e-3 * counts.sum() / cells.size
        if moved.sum():
            parent[cells] = counts - moved + rng.multinomial(moved.sum(), law / law.sum())
    return parent


def make_problem(
    rng: np.random.Generator,
    level: str = "tract",
    children: int = 6,
    people: float = 3000.0,
    *,
    noise: float = 1.0,
    error: float = 0.02,
    bypass: float = 0.0,
    homeless: float = 0.0,
    totals: str = "",
) -> Made:
    """Draw a problem whose children are at `level`.

    `noise` scales the standard deviations, `bypass` is the chance that a child has 2.5
    times the budget, `homeless` that it has no housing. `totals` is "free", "true" or
    "some"; by default free at the block and true at the levels that measure it first.
    """
    kind = totals or ("true" if level in TOTAL_FIRST else "free")
    names = QUERIES[1:] if level in TOTAL_FIRST else QUERIES
    truth, lower, allowed = true_children(rng, level, children, people, homeless)
    parent = estimated_parent(rng, truth, error)
    cells = np.flatnonzero(parent)
    budget = np.where(rng.random(children) < bypass, 2.5, 1.0)
    shares = dict(zip(QUERIES, weights_of(level), strict=True))
    rows, queries, answers = [], [], []
    begin = 0
    for number, name in enumerate(names):
        full = partition(name)
        local, labels = first_seen(full[cells])
        counts = np.zeros((full.max() + 1, children))
        np.add.at(counts, full, truth)
        deviation = np.sqrt(1.0 / (shares[name] * budget))
        drawn = rng.normal(0.0, 1.0, (labels.size, children)) * deviation * noise
        answers.append(np.rint(counts[labels] + drawn))
        rows.append(begin + local)
        queries.append(np.full(labels.size, number))
        begin += labels.size
    people_of = truth.sum(axis=0).astype(np.float64)
    known = np.ones(children, dtype=bool) if kind == "true" else rng.random(children) < 0.4
    problem = Problem(
        np.ascontiguousarray(rows, dtype=np.int32),
        np.concatenate(queries).astype(np.int32),
        np.concatenate(answers),
        np.array([shares[name] * budget for name in names]),
        parent[cells],
        (cells // 252).astype(np.int32),
        lower,
        allowed,
        np.where(known & (kind != "free"), people_of, np.nan),
    )
    chain = ("total", "hhgq", "hhgq*hispanic", "hhgq*hispanic*cenrace")
    tree = np.array([first_seen(partition(name)[cells])[0] for name in chain], dtype=np.int32)
    deviation = np.sqrt(1.0 / (shares["total"] * budget))
    measured = np.rint(people_of + rng.normal(0.0, 1.0, children) * deviation * noise)
    return Made(problem, truth[cells], tree, measured, shares["total"] * budget)
