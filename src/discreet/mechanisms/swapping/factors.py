"""Who is selected: the factors A to E of the public documents on the 2010 census.

Collected by Bailie, Gong and Meng, appendix C, step 1. The documents give directions, not
numbers; formulas and values are ours. Every factor can be switched off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import narwhals as nw
import numpy as np

from discreet.census import Census, columns_of
from discreet.engine import Frame
from discreet.mechanisms.numbering import Integers, order_of
from discreet.mechanisms.swapping.donors import Flags
from discreet.mechanisms.swapping.households import Floats, Households
from discreet.mechanisms.swapping.risk import frequencies


@dataclass(frozen=True)
class Imputation:
    """How many members of each household are imputed, and which households wholly are."""

    known: tuple[str, ...]
    members: Integers
    wholly: Flags


@dataclass(frozen=True)
class Selection:
    """Weights of selection (0: never selected), and who is always selected."""

    weight: Floats
    always: Flags


def read_imputation(
    census: Census,
    households: Households,
    size: Integers,
    imputed: Mapping[str, list[str]] | None,
) -> Imputation:
    """Return what is known of imputation; nothing is imputed where no column tells.

    A household is wholly imputed if its unit is, or every one of its members.
    """
    known: list[str] = []
    members = np.zeros(households.size, dtype=np.int64)
    unit = np.zeros(households.size, dtype=np.bool_)
    tables: tuple[Literal["units", "persons"], ...] = ("units", "persons")
    for table in tables:
        if not imputed or not _has(census, table, columns_of(imputed)):
            continue
        known.append(table)
        where = dict(imputed)
        if len(households.area_codes) < len(households.places.codes):
            where[households.places.within] = list(households.area_codes)
        rows = census.frame(table, ["unit_id"], where=where)
        arrays = census.engine.to_numpy(rows.group_by("unit_id").agg(number=nw.len()))
        at, found = rows_of(households, arrays["unit_id"])
        if table == "units":
            unit[at] = True
        else:
            members[at] = arrays["number"][found]
    members[unit] = size[unit]
    return Imputation(tuple(known), members, unit | ((members >= size) & (size > 0)))


def unit_imputation(
    census: Census,
    columns: Sequence[str],
    size: str,
    imputed: Mapping[str, list[str]] | None,
) -> Frame:
    """Return `columns`, `_members` (imputed) and `_wholly` (1: all is) of occupied units, lazily.

    The same rule as `read_imputation`, for a look before anything is read into arrays.
    """
    occupied = {"kind": list(census.schema.kinds.occupied)}
    units = census.frame("units", dict.fromkeys(["unit_id", size, *columns]), where=occupied)
    units = units.with_columns(_members=nw.lit(0), _wholly=nw.lit(0))
    tables: tuple[Literal["persons", "units"], ...] = ("persons", "units")
    for table in tables:
        if not imputed or not _has(census, table, columns_of(imputed)):
            continue
        rows = census.frame(table, ["unit_id"], where=dict(imputed))
        counted = rows.group_by("unit_id").agg(_found=nw.len())
        units = units.join(counted, on="unit_id", how="left")
        some, own = ~nw.col("_found").is_null(), nw.col("_found")
        number = own if table == "persons" else nw.col(size)
        whole = some if table == "units" else some & (own >= nw.col(size)) & (nw.col(size) > 0)
        units = units.with_columns(
            _members=nw.when(some).then(number).otherwise(nw.col("_members")),
            _wholly=nw.when(whole).then(1).otherwise(nw.col("_wholly")),
        ).drop("_found")
    return units


def _has(census: Census, table: Literal["units", "persons"], columns: frozenset[str]) -> bool:
    frame: Frame | None = census.units if table == "units" else census.persons
    return frame is not None and columns <= set(frame.collect_schema().names())


def rows_of(households: Households, unit_id: Integers) -> tuple[Integers, Flags]:
    """Return the rows of units that are among the households, and which units are."""
    by_id = order_of([households.unit_id])
    place = np.searchsorted(households.unit_id, unit_id, sorter=by_id)
    place = np.minimum(place, households.size - 1)
    found: Flags = households.unit_id[by_id[place]] == unit_id
    return by_id[place[found]], found


def block_size(households: Households, power: int) -> Floats:
    """Return factor A: one over the number of households in the block, to a power."""
    size = np.bincount(households.place)[households.place]
    factor: Floats = size.astype(np.float64) ** -power
    return factor


def unique_race(census: Census, households: Households, races: Sequence[str]) -> Flags:
    """Tell for factor B who has a member of a race found nowhere else in the block.

    Residents of collective quarters count as others of the block.
    """
    found = np.zeros(households.size, dtype=np.bool_)
    blocks = next(iter(households.places.areas.values())).size
    others = _in_quarters(census, households, races)
    for race in races:
        members = households.columns[race]
        total = np.bincount(households.place, weights=members, minlength=blocks)
        if others:
            total[others["_place"]] += others[race]
        found |= (members > 0) & (total[households.place] == members)
    return found


def _in_quarters(
    census: Census, households: Households, races: Sequence[str]
) -> Mapping[str, Integers]:
    """Return residents of collective quarters by block and race."""
    block, kinds = census.schema.block, census.schema.kinds.collective
    if not kinds or not races:
        return {}
    units = census.frame("units", [block, *races], where={"kind": list(kinds)})
    sums = units.group_by(block).agg(*(nw.col(race).sum().cast(nw.Int64) for race in races))
    joined = sums.join(households.places.frame, on=block, how="inner")
    return census.engine.to_numpy(joined.select("_place", *races))


def imputation_rate(households: Households, imputed: Integers, size: Integers) -> Floats:
    """Return for factor C the share of the members of the block's households imputed."""
    total = np.bincount(households.place, weights=size)
    share = np.bincount(households.place, weights=imputed) / np.maximum(total, 1)
    return share[households.place]


def alone_in_area(households: Households, columns: Sequence[str], area: str | None) -> Flags:
    """Tell for factor D who is the only household of an area with its values."""
    if area is None:
        return np.zeros(households.size, dtype=np.bool_)
    single: Flags = frequencies(households, columns, area) == 1
    return single


def falling(share: Floats, by: Fraction) -> Floats:
    """Return a factor that falls from 1 at share 0 to 1 - `by` at share 1."""
    factor: Floats = 1 - float(by) * share
    return factor
