"""Who is at risk: how rare a household is where it lives, and what follows from it.

After Ballesteros, Dwork, King, Olson and Raghavan (2025), section 3: households are sorted
by how many others in an area agree with them on the flag columns, cut into tiers, and
visited tier by tier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

import narwhals as nw
import numpy as np

from discreet.census import Census
from discreet.config import Strict
from discreet.mechanisms.numbering import (
    Integers,
    numbered,
    packed,
    run_starts,
    sort_keys,
)
from discreet.mechanisms.swapping.households import Households, Places
from discreet.noise import Words
from discreet.spec import Rational

Rounding = Literal["exact", "floating-point"]


class Tier(Strict):
    """A tier of risk.

    Parameters
    ----------
    share
        Size of the tier as a multiple of q = rate / tier_unit, a share of all households;
        None for the last tier, which takes the rest.
    chance
        Probability of accepting a household of this tier as a target when it is visited.
    """

    share: Rational | None = None
    chance: Rational


@dataclass(frozen=True)
class Risk:
    """Households from highest to lowest risk, area after area.

    Ties are in the order of `unit_id`. `edges` are the places in `order` where households
    of another risk (or area) begin, and its end.
    """

    order: Integers
    edges: Integers


def frequencies(households: Households, flags: Sequence[str], flag_area: str) -> Integers:
    """Return how many households of the same area agree on the flags, the household included."""
    columns = [households.level(flag_area), *(households.columns[name] for name in flags)]
    number, counts = numbered(columns)
    return counts[number]


def rank(households: Households, frequency: Integers, persons: Integers | None) -> Risk:
    """Return the order of risk: rare first, and among equally rare ones small `persons` first.

    `persons` is the number of persons in each block, or None if the size of blocks does
    not count.
    """
    keys = [households.level(households.places.within), frequency]
    if persons is not None:
        keys.append(persons[households.place])
    key, span = packed(keys)
    order = sort_keys(key, span)
    return Risk(order, np.append(run_starts(key[order]), order.size))


def persons_in_blocks(census: Census, places: Places, persons: str) -> Integers:
    """Return the number of persons of each block, those of collective quarters included."""
    block = census.schema.block
    units = census.frame("units", [block, persons])
    sums = units.group_by(block).agg(persons=nw.col(persons).sum().cast(nw.Int64))
    joined = sums.join(places.frame, on=block, how="inner").select("_place", "persons")
    arrays = census.engine.to_numpy(joined)
    counted = np.zeros(next(iter(places.areas.values())).size, dtype=np.int64)
    counted[arrays["_place"]] = arrays["persons"]
    return counted


def tier_sizes(
    households: int, rate: Fraction, tiers: Sequence[Tier], unit: Fraction, rounding: Rounding
) -> list[int]:
    """Return how many households each tier holds, highest risk first.

    A tier takes its share or what the tiers above have left; the last takes the rest. With
    `floating-point` sizes are truncated products of doubles, as in the published program.

    >>> tiers = [Tier(share="1", chance="1"), Tier(share="2", chance="3/5"), Tier(chance="0")]
    >>> tier_sizes(20_000, Fraction(1, 50), tiers, Fraction(8, 5), "exact")
    [250, 500, 19250]
    >>> tier_sizes(20_000, Fraction(1, 50), tiers, Fraction(8, 5), "floating-point")
    [249, 499, 19252]
    """
    exact = rounding == "exact"
    q = rate / unit if exact else float(rate) / float(unit)
    taken: Fraction | float = 0
    sizes: list[int] = []
    for tier in tiers[:-1]:
        multiple = tier.share or Fraction(0)
        share = min((multiple if exact else float(multiple)) * q, 1 - taken)
        taken += share
        sizes.append(min(int(share * households), households - sum(sizes)))
    return [*sizes, households - sum(sizes)]


def most_pairs(households: int, rate: Fraction, *, overshoot: bool) -> int:
    """Return how many pairs may be swapped among some households.

    The members of all pairs are at most rate times households. With `overshoot` pairs are
    made until there are at least as many, so that the last one may be one household over.
    """
    if overshoot:
        return ceil(float(rate) * households / 2)
    return int(rate * households / 2)


def settle_ties(risk: Risk, ties: Words, cuts: Integers | None = None) -> Integers:
    """Return the order of risk with ties settled by words.

    Only groups of equal risk with a cut inside are settled if `cuts` are given: for the
    others it does not matter who comes first.
    """
    order = risk.order.copy()
    if cuts is None:
        group = np.repeat(np.arange(risk.edges.size - 1), np.diff(risk.edges))
        return order[np.lexsort((ties[order], group))]
    at = np.searchsorted(risk.edges, cuts, side="right") - 1
    inside = (cuts < order.size) & (risk.edges[at] < cuts)
    for group in np.unique(at[inside]):
        low, high = risk.edges[group], risk.edges[group + 1]
        segment = order[low:high]
        order[low:high] = segment[np.argsort(ties[segment], kind="stable")]
    return order
