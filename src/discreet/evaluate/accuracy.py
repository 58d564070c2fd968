"""How far counts are from the truth: summaries of errors by size of area and by true count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

#: Lowest true count of each class.
BLOCK_SIZES = (0, 1, 10, 50, 200)
AREA_SIZES = (0, 1, 100, 1_000, 10_000, 100_000, 1_000_000)
CELL_COUNTS = (0, 1, 5, 20, 100, 1_000)
FITNESS_SIZES = (1, 50, 100, 200, 300, 500, 1_000)


@dataclass(frozen=True)
class Accuracy:
    """Errors of some counts, output minus truth."""

    cells: int
    mean_count: float
    mean: float
    mean_absolute: float
    root_mean_square: float

    def as_data(self) -> dict[str, Any]:
        """Return the summary as plain data."""
        return {
            "cells": self.cells,
            "mean_count": self.mean_count,
            "mean_error": self.mean,
            "mean_absolute_error": self.mean_absolute,
            "root_mean_square_error": self.root_mean_square,
        }


@dataclass(frozen=True)
class Measure:
    """The errors of one kind of count at one level.

    `by_size` groups by the true population of the area, `by_count` by the true count.
    """

    overall: Accuracy
    by_size: Mapping[str, Accuracy]
    by_count: Mapping[str, Accuracy]

    def as_data(self) -> dict[str, Any]:
        """Return all summaries as plain data."""
        return {
            "overall": self.overall.as_data(),
            "by_size_of_area": {name: one.as_data() for name, one in self.by_size.items()},
            "by_true_count": {name: one.as_data() for name, one in self.by_count.items()},
        }


@dataclass(frozen=True)
class Counts:
    """Counts of cells of areas in truth and output.

    `area` is the number of each cell's area. Cells that are empty in both may be left out:
    there are `cells_per_area` in each of the areas.
    """

    area: Integers
    before: Integers
    after: Integers
    cells_per_area: int = 1


def labels(lowest: Sequence[int]) -> list[str]:
    """Return the names of classes by their lowest values.

    >>> labels((0, 1, 10, 1_000))
    ['0', '1-9', '10-999', '1,000+']
    """
    names = [f"{a:,}" if b == a + 1 else f"{a:,}-{b - 1:,}" for a, b in pairwise(lowest)]
    return [*names, f"{lowest[-1]:,}+"]


def summary(before: Integers, after: Integers, empty: int = 0) -> Accuracy:
    """Return the errors of counts, and of `empty` more that are 0 in truth and output.

    >>> one = summary(np.array([4, 0]), np.array([1, 1]), empty=2)
    >>> (one.cells, one.mean, one.mean_absolute, round(one.root_mean_square**2, 9))
    (4, -0.5, 1.0, 2.5)
    """
    number = before.size + empty
    if number == 0:
        return Accuracy(0, 0.0, 0.0, 0.0, 0.0)
    error = (after - before).astype(np.float64)
    return Accuracy(
        number,
        float(before.sum()) / number,
        float(error.sum()) / number,
        float(np.abs(error).sum()) / number,
        float((error**2).sum() / number) ** 0.5,
    )


def measure(counts: Counts, sizes: Integers, classes: Sequence[int]) -> Measure:
    """Return the errors of counts; `sizes` are the true populations of all areas."""
    absent = sizes.size * counts.cells_per_area - counts.area.size
    class_of_area = np.searchsorted(classes, sizes, side="right") - 1
    class_of_cell = class_of_area[counts.area]
    by_size = {}
    for number, name in enumerate(labels(classes)):
        inside = class_of_cell == number
        areas = int((class_of_area == number).sum())
        if areas:
            empty = areas * counts.cells_per_area - int(inside.sum())
            by_size[name] = summary(counts.before[inside], counts.after[inside], empty)
    class_of_count = np.searchsorted(CELL_COUNTS, counts.before, side="right") - 1
    by_count = {}
    for number, name in enumerate(labels(CELL_COUNTS)):
        inside, empty = class_of_count == number, absent if number == 0 else 0
        if empty or inside.any():
            by_count[name] = summary(counts.before[inside], counts.after[inside], empty)
    return Measure(summary(counts.before, counts.after, absent), by_size, by_count)


@dataclass(frozen=True)
class Fitness:
    """The fitness target of the 2020 system in areas of one size.

    The error is that of the share of the largest group, largest as published; it is not
    defined in an area that is empty in truth or output.
    """

    size: str
    areas: int
    undefined: int
    within: int

    @property
    def share(self) -> float:
        """Return the share of areas, among those where it is defined, that meet the target."""
        return self.within / max(self.areas - self.undefined, 1)

    def as_data(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        return {
            "size": self.size,
            "areas": self.areas,
            "undefined": self.undefined,
            "within_5_points": self.within,
            "share": self.share,
        }


def fitness(before: Integers, after: Integers, points: float = 0.05) -> list[Fitness]:
    """Return the fitness target by true population; rows are areas, columns are groups."""
    true, told = before.sum(axis=1), after.sum(axis=1)
    largest = after.argmax(axis=1)
    rows = np.arange(true.size)
    defined = (true > 0) & (told > 0)
    shares = after[rows, largest] / np.maximum(told, 1) - before[rows, largest] / np.maximum(
        true, 1
    )
    good = defined & (np.abs(shares) <= points)
    class_of = np.searchsorted(FITNESS_SIZES, true, side="right") - 1
    found = []
    for number, name in enumerate(labels(FITNESS_SIZES)):
        inside = class_of == number
        if inside.any():
            areas, kept = int(inside.sum()), int((inside & defined).sum())
            found.append(Fitness(name, areas, areas - kept, int(good[inside].sum())))
    return found
