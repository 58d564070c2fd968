"""Pictures are well-formed and their marks lie where the numbers say."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.evaluate import Errors
from discreet.report.pictures import (
    MOST_DOTS,
    Panel,
    Place,
    before_and_change,
    diverging_step,
    dot_map,
    errors_by_size,
    histogram,
    thinned,
)
from discreet.report.svg import Scale, Svg, round_ticks, signed_log
from pages import marks


def counts(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_each_area_is_a_dot_above_on_or_below_the_line() -> None:
    panel = Panel("A & B <i>", "note", counts(5, 5, 5), counts(9, 5, 1))
    picture = before_and_change([panel])
    (rise,), (still,), (fall,) = (marks(picture, "circle", k) for k in ("rise", "still", "fall"))
    heights = [float(dot.get("cy", "nan")) for dot in (rise, still, fall)]
    assert heights == sorted(heights)
    assert "".join(rise.itertext()) == "5 became 9"


def test_dots_are_thinned_over_the_whole_range() -> None:
    values = np.arange(5000, dtype=np.int64)[::-1].copy()
    kept = values[thinned(values, MOST_DOTS)]
    assert len(kept) == MOST_DOTS
    assert (kept.min(), kept.max()) == (0, 4999)


def test_bars_are_as_long_as_the_errors() -> None:
    small, large = (Errors(10, 5, 10.0, mean, mean, 0.0, mean, 9) for mean in (1.0, 4.0))
    picture = errors_by_size({"town": {"1-9": small, "10-99": large}}, "persons")
    widths = [float(bar.get("width", "nan")) for bar in marks(picture, "rect", "bar")]
    assert widths[2] == pytest.approx(4 * widths[0], rel=0.01)  # error in counts
    assert widths[3] == pytest.approx(4 * widths[1], rel=0.01)  # relative


def test_a_histogram_counts_every_area_once() -> None:
    changes = np.array([0.0, 0.01, -0.2, 0.35, 5.0])
    bars = marks(histogram(changes, 0.35, "entropy", "areas"), "rect")
    told = ["".join(bar.itertext()) for bar in bars]
    assert sum(int(text.split()[0]) for text in told) == len(changes)


def test_colours_diverge_from_no_change() -> None:
    steps = [diverging_step(value, 0.7) for value in np.linspace(-0.69, 0.69, 70)]
    assert steps == sorted(steps)
    assert set(steps) == set(range(-3, 4))
    assert [diverging_step(value, 0.7) for value in (-9.0, 0.0, 9.0)] == [-3, 0, 3]
    assert diverging_step(1.0, 0.0) == 0


def test_north_is_up_and_east_is_right_on_the_map() -> None:
    south_west = Place(10, 50, 100, 0.1, "one")
    north_east = Place(11, 51, 400, -0.1, "two")
    dots = marks(dot_map([south_west, north_east], 0.35, "entropy"), "circle", "place")
    first = next(dot for dot in dots if "".join(dot.itertext()) == "one")
    second = next(dot for dot in dots if "".join(dot.itertext()) == "two")
    assert float(second.get("cx", "")) > float(first.get("cx", ""))
    assert float(second.get("cy", "")) < float(first.get("cy", ""))
    assert float(second.get("r", "")) > float(first.get("r", ""))


def test_a_map_of_one_place_is_drawn() -> None:
    assert marks(dot_map([Place(10, 50, 0, 0.0, "one")], 0.35, "entropy"), "circle")


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_round_and_inside(low: float, width: float) -> None:
    ticks = round_ticks(low, low + width)
    assert len(ticks) <= 7
    slack = width * 1e-6 + 1e-9
    assert all(low - slack <= tick <= low + width + slack for tick in ticks)


def test_scales_map_ends_to_ends() -> None:
    scale = Scale(-10, 10, 200, 0, signed_log)
    assert (scale(-10), scale(0), scale(10)) == (200, 100, 0)
    assert Scale(3, 3, 0, 10)(3) == 5


def test_text_is_escaped() -> None:
    picture = Svg(10, 10)
    picture.text(0, 0, "<b> & 'c'")
    picture.circle(0, 0, 1, "dot", "<i>")
    root = ElementTree.fromstring(picture.render("name", 'said "so"'))
    assert "".join(root.itertext()) == "<b> & 'c'<i>"
    assert root.get("aria-label") == 'said "so"'
