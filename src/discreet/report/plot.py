"""A plot with two axes for curves: grid, lines, marks, and names that do not overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from discreet.report.svg import Scale, Svg, round_ticks

Points = Sequence[tuple[float, float]]

#: The plot inside its picture: left, top and height in pixels.
LEFT, TOP, TALL = 44.0, 20.0, 330.0

#: Width of the picture, and what is left free of it for names at the right ends of curves.
WIDTH, ROOM = 860.0, 150.0

#: Least distance between two labels, one above the other.
APART = 17.0


@dataclass(frozen=True)
class Line:
    """One curve: its name and its look (a class of the style sheet)."""

    name: str
    kind: str
    points: Points


class Plot:
    """A plot with two axes; the vertical one starts at 0."""

    def __init__(
        self,
        across: tuple[float, float],
        high: float,
        shape: Callable[[float], float] = float,
        room: float = ROOM,
    ) -> None:
        self.svg = Svg(WIDTH, TOP + TALL + 48)
        self.across = Scale(*across, LEFT, WIDTH - room, shape)
        self.up = Scale(0, high, TOP + TALL, TOP)

    def axes(self, ticks: Sequence[float], tell: Callable[[float], str], names: str) -> None:
        """Draw the grid with its numbers; `names` says what is across and what is up."""
        for tick in round_ticks(0, self.up.high, 6):
            y = self.up(tick)
            self.svg.line(LEFT, y, self.across.end, y, "grid" if tick else "zero")
            self.svg.text(LEFT - 9, y + 4, f"{tick:g}", "label end")
        for tick in ticks:
            x = self.across(tick)
            self.svg.line(x, TOP + TALL, x, TOP + TALL + 5, "zero")
            self.svg.text(x, TOP + TALL + 20, tell(tick), "label middle")
        self.svg.text(LEFT, TOP + TALL + 42, names, "label start")

    def curve(self, line: Line) -> None:
        """Draw a curve; its name is shown when the pointer rests on it."""
        places = " ".join(f"{self.across(x):.1f},{self.up(y):.1f}" for x, y in line.points)
        self._shape("polyline", places, f"curve {line.kind}", line.name)

    def diamond(self, x: float, y: float, kind: str, told: str) -> None:
        """Draw an outlined diamond."""
        a, b, r = self.across(x), self.up(y), 6.0
        places = f"{a:.1f},{b - r:.1f} {a + r:.1f},{b:.1f} {a:.1f},{b + r:.1f} {a - r:.1f},{b:.1f}"
        self._shape("polygon", places, f"diamond {kind}", told)

    def _shape(self, tag: str, places: str, kind: str, told: str) -> None:
        title = f"<title>{escape(told)}</title>"
        self.svg.parts.append(f'<{tag} class="{kind}" points="{places}">{title}</{tag}>')

    def upright(self, x: float, words: str) -> None:
        """Draw a dotted line from top to bottom, with words at its head."""
        at = self.across(x)
        self.svg.line(at, TOP, at, TOP + TALL, "dotted")
        self.svg.text(at, TOP - 6, words, "label middle")

    def names_at_ends(self, lines: Sequence[Line]) -> None:
        """Write the name of each curve beside its right end, none over another."""
        edge = self.across.end
        order = sorted(lines, key=lambda line: self.up(line.points[-1][1]))
        ends = [self.up(line.points[-1][1]) for line in order]
        for line, end, y in zip(order, ends, spread(ends, APART, TOP + TALL), strict=True):
            x = self.across(line.points[-1][0])
            if abs(end - y) > 3 or x < edge - 1:
                self.svg.line(x + 3, end, edge + 12, y, "leader")
            self.svg.text(edge + 16, y + 4, line.name, f"tag {line.kind}")


def spread(places: Sequence[float], apart: float, last: float) -> list[float]:
    """Return ascending places moved as little as needed to lie `apart`, none beyond `last`.

    >>> spread([10, 12, 50], 8, 54)
    [10, 18, 50]
    """
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + apart) if moved else place)
    for index in reversed(range(len(moved))):
        limit = moved[index + 1] - apart if index + 1 < len(moved) else last
        moved[index] = min(moved[index], limit)
    return moved
