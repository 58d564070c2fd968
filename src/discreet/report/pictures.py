"""The pictures of a report. Each is a function from plain values to one SVG text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.evaluate import Errors
from discreet.report.svg import Scale, Svg, powers_of_ten, round_ticks, signed_log
from discreet.report.words import axis, count, decimal, percent, short

Numbers = npt.NDArray[np.int64]

#: Width of every picture, so that all text has one size.
WIDTH = 860.0

#: Dots drawn in one panel; more would only hide one another.
MOST_DOTS = 400

#: Steps of the diverging scale on each side of "no change".
STEPS = 3

#: Bars of a histogram inside one step of colour (odd, so that one bar is centred at zero),
#: and the most bars on each side of zero; what lies beyond is counted in the last.
BARS_PER_STEP = 7
MOST_BARS = 60

#: Radius of the ground drawn under each area of the map, in mean distances between areas.
GROUND = 0.82


@dataclass(frozen=True)
class Panel:
    """One category: its counts per area before and after, and a line of summary."""

    title: str
    note: str
    before: Numbers
    after: Numbers


def before_and_change(panels: Sequence[Panel], columns: int = 4) -> str:
    """Draw true counts (across) and how much they changed (up), one panel per category."""
    columns = min(columns, len(panels))
    tall, gap, left, head, foot = 150.0, 20.0, 46.0, 44.0, 30.0
    wide = min((WIDTH - left - 10 - gap * (columns - 1)) / columns, 260.0)
    rows = math.ceil(len(panels) / columns)
    picture = Svg(WIDTH, rows * (head + tall + foot) + 8)
    high = max((int(panel.before.max()) for panel in panels), default=1)
    reach = max((int(np.abs(panel.after - panel.before).max()) for panel in panels), default=1)
    for number, panel in enumerate(panels):
        x = left + (number % columns) * (wide + gap)
        y = head + (number // columns) * (head + tall + foot)
        across = Scale(0, max(high, 1), x + 6, x + wide - 8, signed_log)
        up = Scale(-max(reach, 1), max(reach, 1), y + tall - 8, y + 8, signed_log)
        picture.rect(x, y, wide, tall, "frame")
        _axes(picture, (across, up), (x, y, wide, tall), labelled=number % columns == 0)
        picture.text(x, y - 21, panel.title, "name start")
        picture.text(x, y - 7, panel.note, "label start")
        _dots(picture, panel, across, up)
    picture.text(left, picture.height - 4, "true count (across) and change (up), log scales")
    return picture.render("facets", "Change of counts by true count, one panel per category")


def _axes(
    picture: Svg,
    scales: tuple[Scale, Scale],
    box: tuple[float, float, float, float],
    labelled: bool,
) -> None:
    across, up = scales
    x, y, wide, tall = box
    for tick in powers_of_ten(across.high):
        picture.line(across(tick), y, across(tick), y + tall, "grid")
        if tick != 1 or across.high < 100:  # 0 and 1 stand close together
            picture.text(across(tick), y + tall + 15, short(tick), "label middle")
    for tick in powers_of_ten(up.high):
        for signed_tick in {tick, -tick}:
            place = up(signed_tick)
            picture.line(x, place, x + wide, place, "grid" if tick else "zero")
            if labelled and (tick != 1 or up.high < 100):
                picture.text(x - 7, place + 4, axis(signed_tick), "label end")


def _dots(picture: Svg, panel: Panel, across: Scale, up: Scale) -> None:
    for index in thinned(panel.before, MOST_DOTS):
        before, after = int(panel.before[index]), int(panel.after[index])
        change = after - before
        kind = f"dot {'rise' if change > 0 else 'fall' if change < 0 else 'still'}"
        told = f"{count(before)} became {count(after)}"
        picture.circle(across(before), up(change), 2.5, kind, told)


def thinned(values: Numbers, most: int) -> npt.NDArray[np.intp]:
    """Return positions of at most `most` values, spread evenly over their order."""
    order = np.argsort(values, kind="stable")
    if len(order) <= most:
        return order
    return order[np.linspace(0, len(order) - 1, most).round().astype(np.intp)]


def errors_by_size(levels: Mapping[str, Mapping[str, Errors]], counted: str) -> str:
    """Draw mean and 90th percentile of the error by size of area, and the relative error."""
    rows = sum(len(sizes) for sizes in levels.values())
    everything = [errors for sizes in levels.values() for errors in sizes.values()]
    left, right, step, head = 178.0, 560.0, 25.0, 42.0
    picture = Svg(WIDTH, head + step * rows + 36 * len(levels) - 4)
    most = max(max(e.percentile_90, e.mean_absolute) for e in everything)
    absolute = Scale(0, most or 1, left, left + 250)
    relative = Scale(0, max(e.relative for e in everything) or 1, right, right + 220)
    for x, name, note in (
        (left, "error in counts", "bar: mean · whisker: 9 of 10 cells within"),
        (right, "error relative to the count", "mean error divided by mean count"),
    ):
        picture.text(x, 13, name, "name start")
        picture.text(x, 29, note, "label start")
    y = head
    for level, sizes in levels.items():
        picture.text(left - 16, y + 14, level, "name end")
        y += 24
        for size, errors in sizes.items():
            picture.text(left - 16, y + 13, f"{size.replace('-', '–')} {counted}", "label end")
            _size_row(picture, errors, y, absolute, relative)
            y += step
        y += 12
    return picture.render("sizes", "Errors by size of area: mean, 90th percentile, relative")


def _size_row(picture: Svg, errors: Errors, y: float, absolute: Scale, relative: Scale) -> None:
    told = f"{count(errors.cells)} cells, {percent(errors.share_changed)} changed"
    mean, reach = absolute(errors.mean_absolute), absolute(errors.percentile_90)
    picture.rect(absolute.start, y + 2, mean - absolute.start, 14, "bar", told)
    picture.line(absolute.start, y + 9, reach, y + 9, "reach")
    picture.line(reach, y + 4, reach, y + 14, "reach")
    words = f"{decimal(errors.mean_absolute)} (≤ {decimal(errors.percentile_90)})"
    picture.text(max(reach, mean) + 8, y + 13, words, "value start")
    share = relative(errors.relative)
    picture.rect(relative.start, y + 2, share - relative.start, 14, "bar", told)
    picture.text(share + 8, y + 13, percent(errors.relative), "value start")


def diverging_step(value: float, limit: float) -> int:
    """Return which of the 2 × `STEPS` + 1 colours shows a change; 0 is "hardly any".

    >>> [diverging_step(v, 0.7) for v in (-9, -0.21, 0.05, 0.11, 0.7)]
    [-3, -1, 0, 1, 3]
    """
    if limit <= 0:
        return 0
    bins = 2 * STEPS + 1
    position = math.floor((value + limit) / (2 * limit) * bins)
    return min(max(position, 0), bins - 1) - STEPS


def histogram(changes: npt.NDArray[np.float64], limit: float, what: str, areas: str) -> str:
    """Draw how many areas changed by how much; bars are coloured like the map."""
    # Bars divide the colour steps evenly, so that no bar straddles two colours.
    wide = 2 * limit / (BARS_PER_STEP * (2 * STEPS + 1))
    numbers = np.clip(np.round(changes / wide), -MOST_BARS, MOST_BARS).astype(np.int64)
    first, last = min(int(numbers.min()), -6) - 1, max(int(numbers.max()), 6) + 1
    heights = np.bincount(numbers - first, minlength=last - first + 1)
    picture = Svg(WIDTH, 250)
    across = Scale((first - 0.5) * wide, (last + 0.5) * wide, 50, 850)
    up = Scale(0, max(int(heights.max()), 1), 200, 14)
    for tick in round_ticks(0, up.high, 4):
        picture.line(50, up(tick), 850, up(tick), "grid")
        picture.text(42, up(tick) + 4, count(tick), "label end")
    for number, height in enumerate(heights.tolist(), first):
        low, high = (number - 0.5) * wide, (number + 0.5) * wide
        kind = f"step{diverging_step(number * wide, limit)}"
        told = f"{count(height)} {areas}: {axis(low)} to {axis(high)}"
        x = across(low)
        picture.rect(x + 0.7, up(height), across(high) - x - 1.4, 200 - up(height), kind, told)
    picture.line(across(0), 8, across(0), 204, "zero")
    for tick in round_ticks(across.low, across.high, 8):
        picture.text(across(tick), 220, axis(tick), "label middle")
    picture.text(450, 243, f"change of {what}, after minus before", "label middle")
    return picture.render("histogram", f"Histogram of the change of {what} over {areas}")


@dataclass(frozen=True)
class Place:
    """One dot of the map."""

    longitude: float
    latitude: float
    size: float
    change: float
    told: str


def dot_map(places: Sequence[Place], limit: float, what: str) -> str:
    """Draw areas at their coordinates, as large as their population, coloured by change."""
    longitudes = [place.longitude for place in places]
    latitudes = [place.latitude for place in places]
    # Degrees of longitude shrink with the cosine of the latitude.
    squeeze = math.cos(math.radians((min(latitudes) + max(latitudes)) / 2))
    spread_x = max((max(longitudes) - min(longitudes)) * squeeze, 1e-6)
    spread_y = max(max(latitudes) - min(latitudes), 1e-6)
    zoom = min(740 / spread_x, 480 / spread_y)
    picture = Svg(WIDTH, zoom * spread_y + 152)
    across = Scale(0, spread_x, (WIDTH - zoom * spread_x) / 2, (WIDTH + zoom * spread_x) / 2)
    spots = [
        (
            across((p.longitude - min(longitudes)) * squeeze),
            54 + (max(latitudes) - p.latitude) * zoom,
        )
        for p in places
    ]
    # Soft ground under every area: together it shows where there is land with people.
    distance = zoom * math.sqrt(spread_x * spread_y / len(places))
    for x, y in spots:
        picture.circle(x, y, min(max(GROUND * distance, 12), 60), "ground")
    largest = max(place.size for place in places) or 1
    # Large dots first, so that small areas lie on top of them.
    for index in sorted(range(len(places)), key=lambda index: -places[index].size):
        place, (x, y) = places[index], spots[index]
        radius = 2 + 6 * math.sqrt(place.size / largest)
        picture.circle(x, y, radius, f"place step{diverging_step(place.change, limit)}", place.told)
    _legend(picture, limit, what)
    return picture.render("map", f"Map of areas, coloured by the change of {what}")


def _legend(picture: Svg, limit: float, what: str) -> None:
    bins = 2 * STEPS + 1
    wide = 52.0
    y, left = picture.height - 28, WIDTH / 2 - bins * wide / 2
    for number in range(bins):
        picture.rect(left + number * wide, y, wide - 2, 10, f"step{number - STEPS}")
    for number in range(1, bins):
        edge = -limit + 2 * limit * number / bins
        picture.text(left + number * wide - 1, y + 24, axis(edge), "label middle")
    picture.text(left - 10, y + 9, f"{what} fell", "label end")
    picture.text(left + bins * wide + 8, y + 9, "rose", "label start")
