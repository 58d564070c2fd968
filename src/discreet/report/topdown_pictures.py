"""The pictures of the errors of a TopDown release, as inline SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discreet.evaluate import Accuracy, Fitness
from discreet.report.svg import Scale, Svg, signed_log
from discreet.report.swap_pictures import Panels
from discreet.report.words import axis, count, decimal, percent, signed

WIDTH = 860.0

#: Where rows begin: names end left of it.
LEFT = 178.0

#: The share of areas that the fitness target asks for.
WANTED = 0.95


def errors_by_level(levels: Sequence[tuple[str, Mapping[str, Accuracy]]], counted: str) -> str:
    """Draw mean absolute and root mean square error, and the mean error, by level and size."""
    step, head, right = 25.0, 42.0, 600.0
    rows = [one for _, sizes in levels for one in sizes.values()]
    picture = Svg(WIDTH, head + step * len(rows) + 36 * len(levels) - 4)
    most = max(one.root_mean_square for one in rows) or 1.0
    size = Scale(0, most, LEFT, LEFT + 250)
    reach = max(abs(one.mean) for one in rows) or 1.0
    bias = Scale(-reach, reach, right - 40, WIDTH - 64)
    for x, name, note in (
        (LEFT, "size of the error", "bar: mean absolute · whisker: root mean square"),
        (bias.start - 40, "mean error (bias)", "output minus truth"),
    ):
        picture.text(x, 13, name, "name start")
        picture.text(x, 29, note, "label start")
    y = head
    for level, sizes in levels:
        picture.text(LEFT - 16, y + 14, level, "name end")
        y += 24
        top = y
        for name, one in sizes.items():
            picture.text(LEFT - 16, y + 13, f"{name.replace('-', '–')} {counted}", "label end")
            _error_row(picture, one, y, size, bias)
            y += step
        picture.line(bias(0), top - 2, bias(0), y - 4, "zero")
        y += 12
    return picture.render("topdown-errors", f"Errors by level and size of area in {counted}")


def _error_row(picture: Svg, one: Accuracy, y: float, size: Scale, bias: Scale) -> None:
    told = f"{count(one.cells)} counts, mean {decimal(one.mean_count)}"
    mean, root = size(one.mean_absolute), size(one.root_mean_square)
    picture.rect(size.start, y + 2, mean - size.start, 14, "bar", told)
    picture.line(size.start, y + 9, root, y + 9, "reach")
    picture.line(root, y + 4, root, y + 14, "reach")
    words = f"{decimal(one.mean_absolute)} ({decimal(one.root_mean_square)})"
    picture.text(max(mean, root) + 8, y + 13, words, "value start")
    _signed(picture, one.mean, y, bias, told)


def _signed(picture: Svg, value: float, y: float, across: Scale, told: str) -> None:
    left, right = sorted((across(0), across(value)))
    kind = "rise" if value > 0 else "fall"
    picture.rect(left, y + 3, right - left, 13, kind, told)
    if value >= 0:
        picture.text(right + 6, y + 13, lean(value), "value start")
    else:
        picture.text(left - 6, y + 13, lean(value), "value end")


def lean(value: float) -> str:
    """Return a mean error in few signs.

    >>> [lean(v) for v in (0.0, 0.001, -2.0)]
    ['0', '≈ 0', '−2.0']
    """
    return "≈ 0" if 0 < abs(value) < 0.01 else signed(value)


def bias_by_count(levels: Sequence[tuple[str, Mapping[str, Accuracy]]]) -> str:
    """Draw the mean error of counts by their true value, one panel per level."""
    rows = list(dict.fromkeys(name for _, found in levels for name in found))
    rows.sort(key=_lowest)
    panels = Panels([name for name, _ in levels], [name.replace("-", "–") for name in rows])
    reach = max(abs(one.mean) for _, found in levels for one in found.values())
    reach = max(reach * 2.5, 1.0)
    inside = [tick for tick in (1, 10, 100, 1000) if tick <= reach]
    ticks = [*(-tick for tick in reversed(inside)), 0, *inside]
    for number, (_, found) in enumerate(levels):
        across = panels.frame(number, (-reach, reach), ticks, axis, signed_log)
        for row, name in enumerate(rows):
            if name in found:
                one = found[name]
                told = f"{count(one.cells)} counts"
                _signed(panels.svg, one.mean, panels.middle(number, row) - 9, across, told)
    return panels.render(
        "topdown-bias",
        "mean error by true count (rows), log scale with both signs",
        "Mean error of counts by their true value, one panel per level",
    )


def _lowest(label: str) -> int:
    return int(label.split("-")[0].rstrip("+").replace(",", ""))


@dataclass(frozen=True)
class Beside:
    """Realised and expected root mean square error of the totals of a level."""

    level: str
    areas: int
    realised: float
    expected: float


def realised_and_expected(levels: Sequence[Beside]) -> str:
    """Draw the realised error of totals as bars, and what theory expects as a mark on each."""
    step, head = 34.0, 30.0
    picture = Svg(WIDTH, head + step * len(levels) + 6)
    most = max(max(one.realised, one.expected) for one in levels) or 1.0
    across = Scale(0, most, LEFT, WIDTH - 260)
    picture.text(LEFT, 13, "root mean square error of total population", "name start")
    for number, one in enumerate(levels):
        y = head + number * step
        picture.text(LEFT - 14, y + 16, f"{one.level} ({count(one.areas)})", "label end")
        told = f"{one.realised:.3f} realised, {one.expected:.3f} expected"
        picture.rect(LEFT, y + 3, across(one.realised) - LEFT, 18, "bar", told)
        mark = across(one.expected)
        picture.line(mark, y - 2, mark, y + 26, "mark")
        picture.text(max(mark, across(one.realised)) + 10, y + 16, told, "value start")
    picture.line(LEFT, head - 6, LEFT, head + step * len(levels), "zero")
    return picture.render("topdown-theory", "Realised and expected error of totals by level")


def fitness_by_size(levels: Sequence[tuple[str, Sequence[Fitness]]]) -> str:
    """Draw the share of areas that meet the fitness target, by size; a dashed line is 95 %."""
    rows = sorted({one.size for _, found in levels for one in found}, key=_lowest)
    panels = Panels([name for name, _ in levels], [name.replace("-", "–") for name in rows])
    for number, (_, found) in enumerate(levels):
        across = panels.frame(number, (0.0, 1.0), [0, 0.5], lambda v: f"{v:.0%}", still=-1)
        x, y = across(WANTED), panels.place(number)[1]
        panels.svg.line(x, y, x, y + panels.tall, "same")
        panels.svg.text(x, y + panels.tall + 15, f"{WANTED:.0%}", "label middle")
        for one in found:
            if one.areas > one.undefined:
                kind = "met" if one.share >= WANTED else "missed"
                told = f"{percent(one.share)} of {count(one.areas - one.undefined)} areas"
                middle = panels.middle(number, rows.index(one.size))
                panels.svg.circle(across(one.share), middle, 4.5, f"target {kind}", told)
    return panels.render(
        "topdown-fitness",
        "share of areas within 5 points, by true population (rows)",
        "Share of areas that meet the fitness target by size, one panel per level",
    )
