"""Entropy of a variable inside areas: a usual measure of how mixed a place is."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.census import Census, Table
from discreet.products import tabulate

Floats = npt.NDArray[np.float64]


def entropy(
    census: Census, level: str, variable: str, count: Literal["units", "persons"] = "persons"
) -> dict[str, float]:
    """Return the entropy of `variable` in every area of `level` that is not empty.

    Natural logarithm, 0 log 0 = 0: zero where all are alike, at most ln k for k codes.
    A missing value counts as a code of its own.
    """
    table = Table(name="entropy", title="", count=count, by=[variable], levels=[level])
    counted = tabulate(census, table, level).select("area", "count").sort("area")
    columns = census.engine.to_numpy(counted)
    if not len(columns["area"]):
        return {}
    areas, place = np.unique(columns["area"].astype(str), return_inverse=True)
    values = entropies(columns["count"].astype(np.float64), place)
    return dict(zip(areas.tolist(), values.tolist(), strict=True))


def entropies(counts: Floats, place: npt.NDArray[np.intp]) -> Floats:
    """Return the entropy of the positive `counts` that share each value of `place`.

    >>> entropies(np.array([5.0, 5.0, 7.0]), np.array([0, 0, 1])).round(4).tolist()
    [0.6931, 0.0]
    """
    totals = np.bincount(place, weights=counts)
    shares = counts / totals[place]
    summed = np.bincount(place, weights=shares * np.log(shares))
    # Rounding can leave a negative zero for an area where all are alike.
    return np.maximum(-summed, 0.0)
