"""The page of errors says what it is, shows every number it draws, and stands alone."""

import dataclasses
import re
import stat

import pytest

from discreet.census import SIMULATED
from discreet.engine import Engine
from discreet.evaluate import TopDownStudy, study_topdown
from discreet.mechanisms.topdown import load_strategy
from discreet.report import render_topdown, write_topdown_report
from discreet.report import topdown_figures as figures
from pages import Outline, assert_drawn_in_both_schemes, assert_stands_alone, marks
from redistricting import random_census


@pytest.fixture(scope="module")
def study() -> TopDownStudy:
    engine = Engine(threads=1)
    census, other = (random_census(engine, blocks=14, units=200, seed=seed) for seed in (1, 2))
    strategy = load_strategy("pl94-us-persons-2020").rooted("state")
    return study_topdown(census, other, strategy)


@pytest.fixture(scope="module")
def page(study) -> str:
    return render_topdown(study)


def test_the_reader_is_told_that_it_is_internal_and_simulated(outline: Outline) -> None:
    assert SIMULATED.split(": ")[1].rstrip(".") in outline.text
    assert "Internal: compares with the truth; no part of the release" in outline.text
    assert "pl94-us-persons-2020" in outline.text


def test_data_of_others_are_not_called_simulated(study) -> None:
    supplied = dataclasses.replace(study, origin="supplied")
    text = Outline(render_topdown(supplied)).text
    assert "imulated" not in text
    assert "Internal:" in text


def test_only_its_owner_may_read_it(study, tmp_path) -> None:
    path = write_topdown_report(tmp_path / "errors.html", study)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_level_has_its_rows(study, outline) -> None:
    for one in study.levels:
        assert len(one.measures) == 4
    assert outline.tags.count("svg") == 6
    assert outline.tags.count("figure") == outline.tags.count("figcaption") == 6
    rows = sum(len(one.measures) for one in study.levels)
    assert outline.text.count("total population") >= len(study.levels)
    assert rows == 4 * len(study.levels)


@pytest.mark.parametrize(
    "figure",
    [
        figures.size_figure,
        figures.bias_figure,
        figures.theory_figure,
        figures.fitness_figure,
        lambda study: figures.size_figure(study, "cells"),
    ],
)
def test_every_picture_has_its_numbers(study, outline, figure) -> None:
    drawn = figure(study)
    assert not re.search(r"(nan|inf)\b", drawn.picture)
    assert drawn.rows
    assert all(len(row) == len(drawn.columns) for row in drawn.rows)
    assert drawn.title in outline.text
    for row in drawn.rows:
        assert all(value in outline.text for value in row)


def test_bars_are_as_long_as_errors(study) -> None:
    drawn = figures.theory_figure(study)
    bars = marks(drawn.picture, "rect", "bar")
    lengths = [float(bar.get("width")) for bar in bars]
    errors = [
        one.measures["total"].overall.root_mean_square
        for one in study.levels
        if one.expected is not None
    ]
    assert len(lengths) == len(errors) == 3
    for length, error in zip(lengths, errors, strict=True):
        assert length / max(lengths) == pytest.approx(error / max(errors), abs=0.01)


def test_bias_leans_to_its_side(study) -> None:
    drawn = figures.bias_figure(study)
    high = [row for row in drawn.rows if row[4].startswith("+")]
    low = [row for row in drawn.rows if row[4].startswith(("−", ">−"))]
    assert len(marks(drawn.picture, "rect", "rise")) == len(high)
    zero = len(drawn.rows) - len(high) - len(low)
    assert len(marks(drawn.picture, "rect", "fall")) == len(low) + zero


def test_without_a_strategy_there_is_no_theory(study) -> None:
    levels = tuple(dataclasses.replace(one, expected=None) for one in study.levels)
    plain = dataclasses.replace(study, strategy=None, levels=levels)
    assert figures.theory_figure(plain) is None
    page = render_topdown(plain)
    assert_stands_alone(page)
    assert "Realised and expected" not in Outline(page).text
    assert Outline(page).tags.count("svg") == 5


def test_one_area_at_every_level_can_be_drawn(study) -> None:
    levels = tuple(dataclasses.replace(one, areas=1) for one in study.levels)
    assert_stands_alone(render_topdown(dataclasses.replace(study, levels=levels)))


def test_the_page_needs_nothing_from_outside(page) -> None:
    assert_stands_alone(page)
    assert "://" not in page


@pytest.mark.needs_browser
def test_it_opens_without_a_complaint_in_both_schemes(chromium, page, tmp_path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    assert_drawn_in_both_schemes(chromium, tmp_path, file)
