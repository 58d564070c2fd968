"""The blocks of a census in the order of a release, and in batches of whole areas."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import Census
from discreet.engine import Frame
from discreet.mechanisms.numbering import Integers
from discreet.mechanisms.swapping.households import Floats, points_by_number
from discreet.mechanisms.swapping.strata import Swapped
from discreet.spec import WHOLE


@dataclass(frozen=True)
class Blocks:
    """All blocks, numbered from 0 in the order in which they are released."""

    frame: Frame
    #: By number: where a stratum lists the block, and the area of `within` it lies in.
    listed: Integers
    area: Integers
    #: What the label of a stratum in each area of `within` begins with.
    prefix: list[str]
    #: Where blocks are, if the census tells; not a number where it does not.
    latitude: Floats | None
    longitude: Floats | None

    @classmethod
    def of(cls, census: Census, swapped: Swapped) -> Blocks:
        """Return the blocks of a census, numbered."""
        engine, block = census.engine, census.schema.block
        whole = swapped.within == WHOLE
        top = nw.lit("") if whole else nw.col(census.schema.levels[0])
        area = nw.lit("") if whole else nw.col(swapped.within)
        rows = census.geography.select(
            nw.col(block), top.cast(nw.String).alias("_top"), area.cast(nw.String).alias("_area")
        )
        # The general way orders blocks by a text that begins with their length.
        rows = engine.fingerprint(rows, [block], "_text")
        rows = engine.number_rows(rows, ["_text"], "_listed")
        frame = engine.sort_and_number(
            rows.select(block, "_top", "_area", "_listed"), [block], "_n"
        )
        areas = sorted(row[0] for row in engine.rows(engine.distinct(frame.select("_area"))))
        numbers = engine.from_numpy(
            {"_area": np.array(areas, dtype=object), "_number": np.arange(len(areas))}
        )
        arrays = engine.to_numpy(
            frame.join(numbers, on="_area", how="inner")
            .select("_n", "_listed", "_number")
            .sort("_n")
        )
        prefix = [""] if whole else [f"{len(code)}:{code}" for code in areas]
        points = points_by_number(census, frame, "_n")
        return cls(frame, arrays["_listed"] - 1, arrays["_number"], prefix, *points)

    def codes(self, census: Census, first: int, last: int) -> NDArray[np.object_]:
        """Return the codes of the blocks numbered `first` to `last`."""
        inside = self.frame.filter((nw.col("_n") > first) & (nw.col("_n") <= last + 1))
        listed = census.engine.to_numpy(inside.select("_n", census.schema.block).sort("_n"))
        return listed[census.schema.block]


@dataclass(frozen=True)
class Batch:
    """Blocks whose units trade among themselves, and the codes between which they lie."""

    tops: list[str]
    low: str
    high: str
    #: Whether units of other blocks may lie between the two codes.
    mixed: bool


def batches_of_blocks(
    census: Census, places: Blocks, units: int, most_units: int
) -> Iterator[Batch]:
    """Yield whole areas of the top level, together of about `most_units` units or one area.

    How many units an area has is guessed from its number of blocks; only the size of a
    batch depends on the guess.
    """
    engine, block = census.engine, census.schema.block
    tops = places.frame.group_by("_top").agg(
        _blocks=nw.len(), _low=nw.col(block).min(), _high=nw.col(block).max()
    )
    areas = engine.rows(tops.select("_top", "_blocks", "_low", "_high").sort("_low", "_top"))
    share = units / max(sum(area[1] for area in areas), 1)
    mixed = any(after[2] <= before[3] for before, after in itertools.pairwise(areas))
    start = 0
    while start < len(areas):
        stop, size = start + 1, areas[start][1] * share
        while stop < len(areas) and size + areas[stop][1] * share <= most_units:
            size += areas[stop][1] * share
            stop += 1
        group = areas[start:stop]
        yield Batch([a[0] for a in group], group[0][2], max(a[3] for a in group), mixed)
        start = stop
