"""The records that permutation swapping permutes: read, put into strata, traded, written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

import narwhals as nw
import numpy as np

from discreet.census import Census, person_columns, unit_columns, unit_records
from discreet.engine import Frame
from discreet.mechanisms.microdata import with_values, write_records
from discreet.mechanisms.swapping.households import points_by_number
from discreet.mechanisms.swapping.kernel import permute_strata
from discreet.mechanisms.swapping.moves import Moves
from discreet.mechanisms.swapping.permutation_law import Position, Written
from discreet.noise import Randomness, key_of
from discreet.spec import WHOLE


@dataclass(frozen=True)
class Swapped:
    """Which records trade which variables, among whom."""

    records: Literal["units", "persons"]
    match: tuple[str, ...]
    within: str
    swap: tuple[str, ...]

    @property
    def keys(self) -> list[str]:
        """Return the columns that tell one record from another."""
        return ["unit_id"] if self.records == "units" else ["_person"]

    def numbered(self, census: Census) -> Census:
        """Return the census with its persons numbered, if they are what is swapped.

        Persons of one unit that agree on everything are interchangeable, so their
        numbers tell nothing.
        """
        if self.records == "units":
            return census
        order = ["unit_id", *person_columns(census)]
        persons = census.engine.number_rows(census.table("persons"), order, "_person")
        return replace(census, persons=census.engine.materialise(persons))

    @property
    def stratum_columns(self) -> list[str]:
        """Return the columns whose values name a stratum."""
        area = [] if self.within == WHOLE else [self.within]
        return [*area, *self.match]

    def where(self, census: Census) -> dict[str, list[str]]:
        """Return which rows are swapped: occupied units, or all persons."""
        if self.records == "persons":
            return {}
        return {"kind": list(census.schema.kinds.occupied)}

    def values(self, census: Census) -> Frame:
        """Return `_label` (of the stratum) and `_value` of every record, and nothing else."""
        columns = dict.fromkeys([*self.stratum_columns, *self.swap])
        rows = census.frame(self.records, columns, where=self.where(census))
        rows = census.engine.fingerprint(rows, self.stratum_columns, "_label")
        return census.engine.fingerprint(rows, self.swap, "_value").select("_label", "_value")

    def labelled(self, census: Census) -> Frame:
        """Return keys, block, swapped variables, `_label` (of the stratum) and `_value`."""
        own = list(dict.fromkeys(["unit_id", *self.keys, census.schema.block, *self.swap]))
        columns = dict.fromkeys([*own, *self.stratum_columns])
        rows = census.frame(self.records, columns, where=self.where(census))
        rows = census.engine.fingerprint(rows, self.stratum_columns, "_label")
        kept = [*own, "_label"]
        return census.engine.fingerprint(rows.select(*kept), self.swap, "_value")

    def read(self, census: Census) -> Frame:
        """Return keys, swapped variables, `_label`, `_held` and `_value` of every record."""
        engine, block = census.engine, census.schema.block
        place = [] if block in self.swap else [block]
        rows = self.labelled(census)
        if self.records == "units":
            records = unit_records(census, self.swap)
        else:
            # Members of alike units are alike only if the rest of the unit is, swapped values
            # included: what a person holds is told with the whole unit as it is.
            records = unit_records(census)
            own = [name for name in person_columns(census) if name not in self.swap]
            mine = engine.fingerprint(census.table("persons"), own, "_own")
            rows = rows.join(mine.select(*self.keys, "_own"), on=self.keys, how="inner")
            place = [block, "_own"]
        records = records.select("unit_id", _record="record")
        rows = rows.join(records, on="unit_id", how="inner")
        rows = engine.fingerprint(rows, [*place, "_record"], "_held")
        return rows.select(*self.keys, *self.swap, "_label", "_held", "_value")


def strata(census: Census, swapped: Swapped) -> Frame:
    """Return `_label, _size, _stratum`: strata numbered in the order of their labels."""
    sizes = swapped.values(census).group_by("_label").agg(_size=nw.len().cast(nw.Int64))
    return census.engine.number_rows(sizes, ["_label"], "_stratum")


def kinds_of_strata(census: Census, swapped: Swapped, rows: int | None) -> tuple[int, int, int]:
    """Count strata, those of several records and of several values, among some rows or all."""
    told = swapped.values(census)
    found = (told if rows is None else told.head(rows)).group_by("_label")
    ends = found.agg(_size=nw.len(), _one=nw.col("_value").min(), _other=nw.col("_value").max())
    counts = ends.select(
        strata=nw.len(),
        several=nw.when(nw.col("_size") > 1).then(1).otherwise(0).sum(),
        differing=nw.when(nw.col("_one") != nw.col("_other")).then(1).otherwise(0).sum(),
    )
    strata, several, differing = census.engine.rows(counts)[0]
    return int(strata), int(several or 0), int(differing or 0)


def permute(
    census: Census,
    swapped: Swapped,
    rate: Fraction,
    rng: Randomness,
    folder: Path,
    threads: int = 1,
) -> Moves:
    """Permute the swapped values in each stratum, write the microdata, and tell what moved.

    Records enter their stratum in the order of what they carry and hold, so a draw is a
    function of the tapes and of the multiset of records: not of ids or of row order.
    """
    engine, census = census.engine, swapped.numbered(census)
    rows = engine.materialise(swapped.read(census))
    held = nw.col("_held")
    sizes = rows.group_by("_label").agg(
        _size=nw.len().cast(nw.Int64), _alike=(held.max() == held.min()).cast(nw.Int64)
    )
    listed = engine.materialise(engine.number_rows(sizes, ["_label"], "_stratum"))
    values = engine.distinct(rows.select("_value", *swapped.swap))
    values = engine.materialise(engine.number_rows(values, ["_value"], "_number"))
    ordered = (
        rows.join(listed.select("_label", "_stratum"), on="_label", how="inner")
        .join(values.select("_value", "_number"), on="_value", how="inner")
        .sort("_stratum", "_number", "_held")
    )
    arrays = engine.to_numpy(ordered.select(*swapped.keys, "_number"))
    told = engine.to_numpy(listed.sort("_stratum").select("_label", "_size", "_alike"))
    offsets = np.concatenate([[0], np.cumsum(told["_size"])]).astype(np.int64)
    source = permute_strata(offsets, key_of(told["_label"].tolist()), rate, rng, threads=threads)
    received = arrays["_number"][source]
    given = engine.from_numpy({**{key: arrays[key] for key in swapped.keys}, "_number": received})
    given = given.join(values, on="_number", how="inner").select(*swapped.keys, *swapped.swap)
    protected = with_values(census, swapped.records, swapped.keys, swapped.swap, given)
    known = unit_records(census) if swapped.swap == (census.schema.block,) else None
    write_records(protected, folder / "microdata", known)
    moves = Moves(rate, source.size)
    changed = moves.add(offsets, source, arrays["_number"], told["_alike"] > 0)
    if census.schema.block in swapped.swap:
        places = arrays["_number"] - 1
        moves.measure(
            *points_by_number(census, values, "_number"), places[changed], places[source[changed]]
        )
    return moves


def write_down(census: Census, swapped: Swapped) -> Written:
    """Return a tiny census in the form its exact law is told in."""
    if swapped.records == "persons":
        return _write_persons(census, swapped)
    engine, block = census.engine, census.schema.block
    taken = swapped.read(census)
    records = unit_records(census).join(census.frame("units", ["unit_id", block]), on="unit_id")
    rest = records.join(taken.select("unit_id"), on="unit_id", how="anti")
    fixed = engine.fingerprint(rest, [block, "record"], "text")
    carried = [
        (Position(label, 0, held), value)
        for label, held, value in engine.rows(taken.select("_label", "_held", "_value"))
    ]
    return Written(dict(engine.rows(fixed.select("unit_id", "text"))), carried, of_members=False)


def _write_persons(census: Census, swapped: Swapped) -> Written:
    engine, block, census = census.engine, census.schema.block, swapped.numbered(census)
    texts = engine.fingerprint(census.table("units"), [block, *unit_columns(census)], "text")
    own = [name for name in person_columns(census) if name not in swapped.swap]
    mine = engine.fingerprint(census.table("persons"), own, "_own")
    rows = swapped.labelled(census)
    rows = rows.join(mine.select(*swapped.keys, "_own"), on=swapped.keys, how="inner")
    carried = [
        (Position(label, unit, held), value)
        for label, unit, held, value in engine.rows(
            rows.select("_label", "unit_id", "_own", "_value")
        )
    ]
    return Written(dict(engine.rows(texts.select("unit_id", "text"))), carried, of_members=True)
