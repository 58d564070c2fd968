"""The pictures of a study of swaps, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.report.svg import Scale, Svg, round_ticks
from discreet.report.words import axis, decimal, percent, short

Floats = npt.NDArray[np.float64]

WIDTH = 860.0

#: Where rows begin: names end left of it.
LEFT = 178.0

#: Shares of areas below which the whiskers and the box of a group lie.
BOX = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Bar:
    """One row: what it shows, its mean, and the smallest and largest run."""

    label: str
    value: float
    low: float
    high: float
    told: str


def bars(
    methods: Sequence[tuple[str, Sequence[Sequence[Bar]]]],
    heads: Sequence[str],
    mark: float | None = None,
) -> str:
    """Draw rows of bars, grouped by method, in one column for each head.

    Every row has one bar per column; lighter bars are lower rates. A dashed line shows
    `mark` in every column.
    """
    step, gap, top = 24.0, 12.0, 34.0
    rows = sum(len(listed) for _, listed in methods)
    picture = Svg(WIDTH, top + rows * step + (len(methods) - 1) * gap + 6)
    wide = (WIDTH - LEFT) / len(heads)
    for column, head in enumerate(heads):
        found = [row[column] for _, listed in methods for row in listed]
        across = _bar_scale(found, LEFT + column * wide, LEFT + (column + 1) * wide - 86)
        picture.text(across.start, 13, head, "name start")
        y = top
        for name, listed in methods:
            for place, row in enumerate(listed):
                if column == 0:
                    label = f"{name}, {row[0].label}" if place == 0 else row[0].label
                    picture.text(LEFT - 14, y + 13, label, "label end")
                kind = "bar" if place == len(listed) - 1 else "bar low"
                _bar(picture, row[column], across, y, kind)
                y += step
            y += gap
        picture.line(across(0), top - 6, across(0), y - gap, "zero")
        if mark is not None:
            picture.line(across(mark), top - 6, across(mark), y - gap, "same")
    return picture.render("swap-bars", ", ".join(heads))


def _bar_scale(found: Sequence[Bar], start: float, end: float) -> Scale:
    low = min(0.0, *(bar.low for bar in found))
    high = max(0.0, *(bar.high for bar in found))
    return Scale(low, high if high > low else low + 1, start + (56 if low < 0 else 0), end)


def _bar(picture: Svg, bar: Bar, across: Scale, y: float, kind: str) -> None:
    left, right = sorted((across(0), across(bar.value)))
    picture.rect(left, y + 3, right - left, 14, kind, bar.told)
    if bar.low < bar.high:
        picture.line(across(bar.low), y + 10, across(bar.high), y + 10, "reach")
        for end in (bar.low, bar.high):
            picture.line(across(end), y + 6, across(end), y + 14, "reach")
    place = across(max(bar.high, bar.value, 0)) + 8
    picture.text(place, y + 14, bar.told, "value start")


# -- the parts of a swap --------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """A method with the change by each part alone and added up."""

    method: str
    names: Sequence[str]
    alone: Sequence[float]
    together: Sequence[float]


def components(methods: Sequence[Parts]) -> str:
    """Draw, for each method, what each part of a swap does alone and what all add up to."""
    step, head, top = 21.0, 26.0, 40.0
    tall = head + step * (len(methods[0].names) + 1) + 12
    picture = Svg(WIDTH, top + tall * len(methods))
    ends = [v for parts in methods for v in (*parts.alone, *parts.together)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    alone = Scale(low, high, LEFT + 50, 480)
    added = Scale(low, high, 570, WIDTH - 62)
    for scale, name in ((alone, "each part alone"), (added, "one after the other")):
        picture.text(scale(0), 14, name, "name middle")
    for number, parts in enumerate(methods):
        y = top + number * tall
        picture.text(LEFT - 14, y + 14, parts.method, "name end")
        _component_rows(picture, parts, (alone, added), y + head, step)
    return picture.render("swap-parts", "Change of mean entropy by the parts of a swap")


def _component_rows(
    picture: Svg, parts: Parts, scales: tuple[Scale, Scale], y: float, step: float
) -> None:
    alone, added = scales
    bottom = y + step * (len(parts.names) + 1)
    for scale in scales:
        picture.line(scale(0), y - 6, scale(0), bottom, "zero")
    before = 0.0
    for name, one, now in zip(parts.names, parts.alone, parts.together, strict=True):
        picture.text(LEFT - 14, y + 13, name, "label end")
        _signed_bar(picture, alone, (0.0, one), y, four(one))
        _signed_bar(picture, added, (before, now), y, four(now))
        picture.line(added(now), y + 3, added(now), y + step + 3, "leader")
        before, y = now, y + step
    picture.text(LEFT - 14, y + 13, "all four", "value end")
    _signed_bar(picture, added, (0.0, before), y, four(before))


def _signed_bar(
    picture: Svg, across: Scale, ends: tuple[float, float], y: float, told: str
) -> None:
    start, end = ends
    left, right = sorted((across(start), across(end)))
    picture.rect(left, y + 3, right - left, 13, "rise" if end > start else "fall", told)
    if end >= start:
        picture.text(right + 6, y + 13, told, "value start")
    else:
        picture.text(left - 6, y + 13, told, "value end")


def four(value: float) -> str:
    """Return a change with four decimals.

    >>> four(-0.01234)
    '−0.0123'
    """
    return f"{value:+.4f}".replace("-", "−")


# -- panels of rows: one panel per method, one row per group ---------------------------------


class Panels:
    """Small panels side by side that share their rows and their scale."""

    def __init__(self, titles: Sequence[str], rows: Sequence[str], columns: int = 3) -> None:
        self.titles, self.rows, self.columns = titles, rows, min(columns, len(titles))
        # Names of rows stand left of the first panel, at about 7 pixels a letter.
        self.left = max(104.0, 7 * max(map(len, rows)) + 16)
        self.gap, self.step, self.head, self.foot = 22.0, 22.0, 34.0, 26.0
        self.wide = (WIDTH - self.left - 14 - self.gap * (self.columns - 1)) / self.columns
        self.wide = min(self.wide, 360.0)
        self.tall = self.step * len(rows)
        lines = math.ceil(len(titles) / self.columns)
        self.svg = Svg(WIDTH, lines * (self.head + self.tall + self.foot) + 22)

    def place(self, number: int) -> tuple[float, float]:
        """Return the upper left corner of a panel."""
        line, column = divmod(number, self.columns)
        y = self.head + line * (self.head + self.tall + self.foot)
        return self.left + column * (self.wide + self.gap), y

    def frame(
        self,
        number: int,
        ends: tuple[float, float],
        ticks: Sequence[float],
        tell: Callable[[float], str],
        shape: Callable[[float], float] = float,
        still: float = 0.0,
    ) -> Scale:
        """Draw the empty panel and return its scale; the line at `still` means no change."""
        x, y = self.place(number)
        across = Scale(*ends, x + 8, x + self.wide - 8, shape)
        self.svg.text(x, y - 12, self.titles[number], "name start")
        self.svg.rect(x, y, self.wide, self.tall, "frame")
        for tick in ticks:
            kind = "zero" if tick == still else "grid"
            self.svg.line(across(tick), y, across(tick), y + self.tall, kind)
            self.svg.text(across(tick), y + self.tall + 15, tell(tick), "label middle")
        if number % self.columns == 0:
            for row, name in enumerate(self.rows):
                self.svg.text(x - 10, y + (row + 0.5) * self.step + 4, name, "label end")
        return across

    def middle(self, number: int, row: int) -> float:
        """Return the height of the middle of a row."""
        return self.place(number)[1] + (row + 0.5) * self.step

    def render(self, name: str, under: str, told: str) -> str:
        """Return the picture with words under it."""
        self.svg.text(self.left, self.svg.height - 5, under, "label start")
        return self.svg.render(name, told)


def ratios(methods: Sequence[tuple[str, Sequence[Floats]]], groups: Sequence[str]) -> str:
    """Draw shares among the targeted as multiples of shares among all, lower rates hollow."""
    panels = Panels([name for name, _ in methods], groups)
    found = np.concatenate([values for _, rates in methods for values in rates])
    positive = found[found > 0]
    low = min(0.5, float(positive.min())) if positive.size else 0.5
    high = max(2.0, float(positive.max())) if positive.size else 2.0
    ticks = [t for t in (0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64) if low <= t <= high]
    if len(ticks) > 6:
        ticks = [t for t in ticks if t not in (0.5, 2, 8, 32)]
    for number, (_, rates) in enumerate(methods):
        ends = (low * 0.85, high * 1.15)
        across = panels.frame(number, ends, ticks, _times, math.log, still=1)
        for row in range(len(groups)):
            y = panels.middle(number, row)
            for place, values in enumerate(rates):
                value = max(float(values[row]), ends[0])
                kind = "target" if place == len(rates) - 1 else "target hollow"
                if place == len(rates) - 1:
                    panels.svg.line(across(1), y, across(value), y, "stem")
                told = f"{groups[row]}: {decimal(float(values[row]))} times"
                panels.svg.circle(across(value), y, 4.5, kind, told)
    return panels.render(
        "swap-panels",
        "share among targeted persons, as a multiple of the share among all (log scale)",
        "Who is targeted: over- and under-represented groups, one panel per method",
    )


def _times(value: float) -> str:
    return f"×{short(value)}"


def sizes(methods: Sequence[tuple[str, Floats]], everybody: Floats, classes: Sequence[str]) -> str:
    """Draw households by size: targeted as bars, all as marks."""
    panels = Panels([name for name, _ in methods], classes)
    high = max(float(everybody.max()), *(float(values.max()) for _, values in methods))
    ticks = round_ticks(0, high, 4)
    for number, (_, values) in enumerate(methods):
        across = panels.frame(number, (0, high * 1.05), ticks, lambda t: f"{100 * t:.3g} %")
        for row in range(len(classes)):
            y = panels.middle(number, row)
            value, all_ = float(values[row]), float(everybody[row])
            told = f"{classes[row]}: {percent(value)} of targeted, {percent(all_)} of all"
            panels.svg.rect(across(0), y - 6, across(value) - across(0), 12, "target", told)
            panels.svg.line(across(all_), y - 9, across(all_), y + 9, "mark")
    return panels.render(
        "swap-panels",
        "share of households by number of persons: targeted (bar), all (upright mark)",
        "Households by size among targeted and among all, one panel per method",
    )


def boxes(methods: Sequence[tuple[str, Floats]], groups: Sequence[str], under: str) -> str:
    """Draw how errors are spread over areas, one box per group (areas x groups)."""
    panels = Panels([name for name, _ in methods], groups)
    # Whiskers must fit; areas beyond them are not drawn.
    ends = [np.abs(np.quantile(values, (BOX[0], BOX[-1]), axis=0)) for _, values in methods]
    reach = max(1.0, *(float(found.max()) for found in ends))
    ticks = round_ticks(-reach, reach, 6)
    for number, (_, values) in enumerate(methods):
        across = panels.frame(number, (-reach, reach), ticks, axis)
        for row, name in enumerate(groups):
            _box(panels, across, panels.middle(number, row), values[:, row], name)
    return panels.render("swap-panels", under, "Errors by group, one panel per method")


def relative_boxes(methods: Sequence[tuple[str, Floats]], groups: Sequence[str], under: str) -> str:
    """Draw how relative errors are spread over areas; 1 is no change."""
    panels = Panels([name for name, _ in methods], groups)
    found = [np.abs(np.quantile(values - 1, (BOX[0], BOX[-1]), axis=0)) for _, values in methods]
    away = max(0.01, *(float(ends.max()) for ends in found))
    ends = (max(0.0, 1 - away), 1 + away)
    ticks = [t for t in round_ticks(*ends, 4) if ends[0] <= t <= ends[1]]
    for number, (_, values) in enumerate(methods):
        across = panels.frame(number, ends, ticks, lambda t: f"{t:.3g}", still=1)
        for row, name in enumerate(groups):
            _box(panels, across, panels.middle(number, row), values[:, row], name)
    return panels.render("swap-panels", under, "Relative errors by group, one panel per method")


def _box(panels: Panels, across: Scale, y: float, values: Floats, name: str) -> None:
    low, first, median, third, high = (float(np.quantile(values, q)) for q in BOX)
    told = f"{name}: median {decimal(median)}, half between {decimal(first)} and {decimal(third)}"
    panels.svg.line(across(low), y, across(high), y, "reach")
    panels.svg.rect(across(first), y - 6, across(third) - across(first), 12, "box", told)
    panels.svg.line(across(median), y - 6, across(median), y + 6, "median")
