"""Releases without noise: what TopDown would write if its estimates were the counts."""

from pathlib import Path

import numpy as np

from discreet.census import Census
from discreet.mechanisms.topdown.counts import block_counts, units_by_quarters
from discreet.mechanisms.topdown.histogram import Histogram
from discreet.mechanisms.topdown.microdata import Blocks, write_release
from discreet.mechanisms.topdown.spine import Spine, spine_of
from discreet.mechanisms.topdown.strategy import Strategy, load_strategy

US = ("pl94-us-persons-2020", "pl94-us-units-2020")


def exact(census: Census, histogram: Histogram, spine: Spine) -> Blocks:
    """Return the counts themselves as an estimate: as if there were no noise."""
    counts = block_counts(census, histogram, spine)
    inside = np.bincount(counts.node, minlength=spine.size(-1))
    start = np.concatenate([[0], np.cumsum(inside)]).astype(np.int64)
    return Blocks(histogram, start, counts.cell, counts.counted)


def release(
    census: Census, folder: Path, persons: Strategy | None, units: Strategy | None = None
) -> Census:
    spine = spine_of(census, census.schema.levels)
    people = None if persons is None else Histogram(persons, census.schema)
    homes = None if units is None else Histogram(units, census.schema)
    write_release(
        census.engine,
        folder,
        census.schema,
        census.geography,
        spine.codes[-1],
        None if people is None else exact(census, people, spine),
        None if homes is None else exact(census, homes, spine),
        None if people is None else units_by_quarters(census, people, spine),
        census.banner,
    )
    return Census.open(folder, census.engine)


def us_release(census: Census, folder: Path) -> Census:
    persons, units = (load_strategy(name).rooted("state") for name in US)
    return release(census, folder, persons, units)
