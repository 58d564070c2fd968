"""Draw small pictures as inline SVG: axes, marks and text, coloured by the page's style sheet.

Nothing here has a colour of its own. Marks carry class names, so the same picture
follows the reader's light or dark scheme and prints in black on white.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True)
class Scale:
    """Map numbers from `low..high` to pixels from `start..end`."""

    low: float
    high: float
    start: float
    end: float
    shape: Callable[[float], float] = float

    def __call__(self, value: float) -> float:
        """Return the place of `value` in pixels."""
        low, high = self.shape(self.low), self.shape(self.high)
        part = (self.shape(value) - low) / (high - low) if high > low else 0.5
        return self.start + part * (self.end - self.start)


def signed_log(value: float) -> float:
    """Return log(1 + |x|) with the sign of x: room for small and large counts, and for 0."""
    return math.copysign(math.log1p(abs(value)), value)


def powers_of_ten(high: float) -> list[int]:
    """Return 0, 1, 10, 100, ... up to `high`.

    >>> powers_of_ten(250)
    [0, 1, 10, 100]
    """
    return [0, *(10**power for power in range(int(math.log10(max(high, 1))) + 1))]


def round_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most about `most` round numbers inside `low..high`.

    >>> round_ticks(0, 23)
    [0.0, 5.0, 10.0, 15.0, 20.0]
    """
    if high <= low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


@dataclass
class Svg:
    """One picture: add marks, then `render` it with its description for screen readers."""

    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Add a straight line."""
        self.parts.append(
            f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
        )

    def rect(
        self, x: float, y: float, width: float, height: float, kind: str, title: str = ""
    ) -> None:
        """Add a rectangle; `title` is shown when the pointer rests on it."""
        size = f'width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"'
        self._mark("rect", f'x="{x:.1f}" y="{y:.1f}" {size}', kind, title)

    def circle(self, x: float, y: float, radius: float, kind: str, title: str = "") -> None:
        """Add a dot."""
        self._mark("circle", f'cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"', kind, title)

    def text(self, x: float, y: float, words: str, kind: str = "label") -> None:
        """Add a text; its anchor is set by the class (`start`, `middle`, `end`)."""
        self.parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>')

    def _mark(self, shape: str, place: str, kind: str, title: str) -> None:
        if title:
            told = f"<title>{escape(title)}</title>"
            self.parts.append(f'<{shape} class="{kind}" {place}>{told}</{shape}>')
        else:
            self.parts.append(f'<{shape} class="{kind}" {place}/>')

    def render(self, name: str, description: str) -> str:
        """Return the picture as markup that scales to the width of its column."""
        body = "".join(self.parts)
        return (
            f'<svg class="{escape(name)}" viewBox="0 0 {self.width:.0f} {self.height:.0f}" '
            f'role="img" aria-label="{escape(description)}">{body}</svg>'
        )
