"""Curves lie where the accountant says, carry their numbers, and do not write over each other."""

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.report import curves, plot
from discreet.report.svg import Scale
from discreet.spec import psa
from pages import marks

FIGURES: dict[str, Callable[[], curves.Figure]] = {
    "budgets": curves.budgets_by_rate,
    "rates": lambda: curves.bounds_by_rate((2, 2), (2, 2)),
    "infinite at rate 1": lambda: curves.bounds_by_rate((1, 1), (1, 1)),
    "larger strata": lambda: curves.budgets_by_rate((100, 3_650_000, 10**9)),
    "sizes": lambda: curves.bounds_by_size((5, 10, 20)),
    "variants": lambda: curves.variants_by_share(20),
}


@pytest.fixture(scope="module", params=FIGURES)
def figure(request: pytest.FixtureRequest) -> curves.Figure:
    return FIGURES[request.param]()


def places(shape: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = (pair.split(",") for pair in shape.get("points", "").split())
    return [(float(x), float(y)) for x, y in pairs]


def test_every_figure_is_well_formed_and_has_its_numbers(figure: curves.Figure) -> None:
    root = ElementTree.fromstring(figure.picture)
    assert root.get("role") == "img"
    assert root.get("aria-label")
    assert figure.title
    assert figure.caption.endswith(".")
    assert figure.rows
    assert all(len(row) == len(figure.columns) for row in figure.rows)
    assert not any("nan" in value for row in figure.rows for value in row)


def test_nothing_is_drawn_outside_the_picture(figure: curves.Figure) -> None:
    root = ElementTree.fromstring(figure.picture)
    wide, tall = map(float, root.get("viewBox", "").split()[2:])
    for shape in marks(figure.picture, "polyline", "curve"):
        assert all(0 <= x <= wide and 0 <= y <= tall for x, y in places(shape)), shape.attrib
    for text in root.iter("text"):
        x, y = float(text.get("x", "")), float(text.get("y", ""))
        # Signs of this size are about 7 pixels wide.
        reach = x + (7 * len(text.text or "") if "tag" in text.get("class", "") else 0)
        assert 0 <= x <= reach <= wide
        assert 0 <= y <= tall


def test_names_of_curves_do_not_overlap(figure: curves.Figure) -> None:
    tags = [
        t
        for t in ElementTree.fromstring(figure.picture).iter("text")
        if "tag" in t.get("class", "")
    ]
    heights = sorted(float(tag.get("y", "")) for tag in tags)
    assert len(tags) >= 3
    assert all(b - a >= 14 for a, b in pairwise(heights))


def test_figure_2_shows_theorem_1() -> None:
    figure = curves.budgets_by_rate()
    found = marks(figure.picture, "polyline", "curve")
    assert len(found) == len(curves.STRATA) == 7
    # The scale is read off the axes, so that it cannot agree with the code by construction.
    texts = {t.text: t for t in ElementTree.fromstring(figure.picture).iter("text")}
    zero, ten = (float(texts[name].get("y", "")) - 4 for name in ("0", "10"))
    left, right = (float(texts[name].get("x", "")) for name in ("0 %", "100 %"))
    for shape, b in zip(found, curves.STRATA, strict=True):
        for x, y in places(shape)[5:-5:7]:
            rate = Fraction((x - left) / (right - left))
            told = psa.theorem_1(b, rate).value
            assert (zero - y) / (zero - ten) * 10 == pytest.approx(told, abs=0.12)


def test_diamonds_mark_the_smallest_budgets() -> None:
    figure = curves.budgets_by_rate()
    lines = marks(figure.picture, "polyline", "curve")
    diamonds = marks(figure.picture, "polygon", "diamond")
    for line, diamond in zip(lines, diamonds, strict=True):
        lowest = max(y for _, y in places(line))
        middle = sum(y for _, y in places(diamond)) / 4
        assert middle == pytest.approx(lowest, abs=0.11)
    assert "smallest ε 1.20 at rate 76.8 %" in "".join(diamonds[1].itertext())


def test_dotted_lines_stand_at_5_and_50_percent() -> None:
    picture = curves.budgets_by_rate().picture
    found = [float(line.get("x1", "")) for line in marks(picture, "line", "dotted")]
    across = Scale(0, 1, plot.LEFT, plot.WIDTH - 18)
    assert found == pytest.approx([across(0.05), across(0.5)], abs=0.1)


def test_rows_of_figure_2_are_those_printed() -> None:
    rows = {row[0]: row[1:] for row in curves.budgets_by_rate().rows}
    # Bailie, Gong and Meng, section 3.6.
    assert rows["10"][2:] == ("1.20", "76.8 %")
    assert rows["1,000,000"][2:] == ("6.91", ">99.9 %")


def test_the_loss_lies_below_both_bounds() -> None:
    figure = curves.bounds_by_rate((2, 2), (2, 2))
    for row in figure.rows:
        published, sharp, loss = (math.inf if v == "∞" else float(v) for v in row[1:])
        assert loss <= sharp <= published
    half = next(row for row in figure.rows if row[0] == "50 %")
    assert half[1:] == ("1.61", "1.10", "0.78")


def test_the_loss_of_a_binary_variable_grows_more_slowly_than_theorem_1() -> None:
    rows = [list(map(float, row[1:])) for row in curves.bounds_by_size((20, 400)).rows]
    grown = [after - before for before, after in zip(*rows, strict=True)]
    assert grown[0] == pytest.approx(math.log(401 / 21), abs=0.01)
    assert max(grown[2:]) < grown[0] / 3
    assert rows[1][2:] == [3.66, 4.22]


def test_mallows_has_the_smallest_budget_at_every_share() -> None:
    for row in curves.variants_by_share(100).rows:
        swapping, _, mallows = map(float, row[1:])
        assert mallows < swapping


@given(st.lists(st.floats(0, 300), min_size=1, max_size=8).map(sorted))
def test_labels_are_spread_inside_the_plot(places: list[float]) -> None:
    moved = plot.spread(places, 17, 350)
    assert all(b - a >= 17 - 1e-9 for a, b in pairwise(moved))
    assert moved[-1] <= 350


def test_names_are_escaped() -> None:
    drawn = plot.Plot((0, 1), 1)
    drawn.curve(plot.Line("<b> & c", "exact", [(0, 0), (1, 1)]))
    picture = drawn.svg.render("curves", "x")
    assert not re.search("<b>", picture)
    assert "".join(ElementTree.fromstring(picture).itertext()) == "<b> & c"
