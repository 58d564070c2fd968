"""The saturated table of swapped records: matching, swapping and chosen holding variables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import narwhals as nw

from discreet.census import Census, write_header
from discreet.mechanisms.swapping.strata import Swapped


def write_saturated(
    released: Census, swapped: Swapped, columns: Sequence[str], folder: Path
) -> None:
    """Write the counts of swapped records of a release; cells without records are left out.

    A function of the released microdata, so it costs nothing and agrees with every other
    table made from them.
    """
    by = list(dict.fromkeys([*swapped.stratum_columns, *swapped.swap, *columns]))
    rows = released.frame(swapped.records, by, where=swapped.where(released))
    counts = rows.group_by(*by).agg(count=nw.len().cast(nw.Int64))
    file = folder / "saturated.parquet"
    released.engine.write_parquet(counts, file, by, {name: name for name in [*by, "count"]})
    write_header(folder, released.schema, "released", released.banner)
