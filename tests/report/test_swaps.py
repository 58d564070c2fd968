"""The page of a study of swaps says what it must, shows its numbers, and stands alone."""

import dataclasses
import re
import stat
from pathlib import Path

import numpy as np
import pytest

from discreet.census import SIMULATED
from discreet.engine import Engine
from discreet.evaluate import SwapStudy, caution, directions, study_swaps, swap_methods
from discreet.evaluate.directions import FEWEST_AREAS, FEWEST_TARGETS
from discreet.report import render_swaps, write_swap_report
from discreet.report import swap_figures as figures
from discreet.report.swaps import MARKS, told, trades_of
from pages import Outline, assert_drawn_in_both_schemes, assert_stands_alone, browse
from towns import make_town, town_census

FIGURES = (
    figures.entropy_figure,
    figures.parts_figure,
    figures.groups_figure,
    figures.sizes_figure,
    figures.mixed_figure,
    figures.errors_figure,
    figures.relative_figure,
    figures.variance_figure,
)


@pytest.fixture(scope="module")
def study() -> SwapStudy:
    census = town_census(Engine(threads=1), make_town(300, tracts=5, seed=4))
    made = swap_methods(census.schema, ["paper", "published-code"], ["1/20", "1/5"])
    return study_swaps(census, made, errors_at="tract")


@pytest.fixture(scope="module")
def page(study: SwapStudy) -> str:
    return render_swaps(study)


def test_the_reader_is_told_what_this_is(outline: Outline) -> None:
    assert SIMULATED.split(": ")[1].rstrip(".") in outline.text
    assert "As found: directions are computed from these runs, and none is asserted" in outline.text
    assert "not any office's own algorithm" in outline.text
    assert "No finite privacy budget exists" in outline.text
    assert "Ballesteros" in outline.text


def test_every_direction_is_shown_with_its_answer_and_numbers(study, outline) -> None:
    found = directions(study)
    assert len(found) == 12
    for direction in found:
        assert direction.statement[1:] in outline.text
        for finding in direction.findings:
            mark = f"{MARKS[finding.answer][0]} {finding.answer}"
            shown = " ".join(told(finding.told).split())
            assert f"{mark} {shown}" in outline.text
    same = sum(d.findings[0].answer == "same" for d in found)
    assert f"paper: {same} of 12 the same." in outline.text


def test_a_tiny_state_says_that_its_directions_mean_little(study, outline) -> None:
    assert "Directions mean little on so small a census: 5 areas of level tract" in outline.text
    many = dataclasses.replace(study.results[0].runs[0].targets, households=FEWEST_TARGETS)
    results = tuple(
        dataclasses.replace(
            result, runs=tuple(dataclasses.replace(run, targets=many) for run in result.runs)
        )
        for result in study.results
    )
    large = dataclasses.replace(study, areas=FEWEST_AREAS, results=results)
    assert caution(large) == ""
    assert "mean little" not in render_swaps(large)
    assert "1 areas" in caution(dataclasses.replace(large, areas=1))
    assert "as few as" in caution(dataclasses.replace(study, areas=FEWEST_AREAS))


def test_an_answer_that_changes_changes_the_page(study, page) -> None:
    high = dataclasses.replace(study, entropy=study.entropy + 5)
    assert "✗ not the same" in render_swaps(high)
    assert render_swaps(high) != page


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.__name__)
def test_every_picture_has_its_numbers_and_words(study, outline, figure) -> None:
    drawn = figure(study)
    assert 'role="img" aria-label="' in drawn.picture
    assert not re.search(r"(nan|inf)\b", drawn.picture)
    assert drawn.rows
    assert all(len(row) == len(drawn.columns) for row in drawn.rows)
    assert drawn.title in outline.text
    for method in study.methods:
        assert any(method in row[0] for row in drawn.rows)


def test_as_many_tables_as_pictures_and_more(outline: Outline) -> None:
    assert outline.tags.count("svg") == len(FIGURES)
    assert outline.tags.count("figure") == outline.tags.count("figcaption") == len(FIGURES)
    assert outline.tags.count("table") >= len(FIGURES) + 3


def test_the_page_needs_nothing_from_outside(page: str) -> None:
    assert_stands_alone(page)
    assert "://" not in page


def test_the_numbers_of_a_figure_are_those_of_the_study(study: SwapStudy) -> None:
    (first, *_) = figures.entropy_figure(study).rows
    result = study.results[0]
    assert first[:2] == ("paper", "5 %")
    assert float(first[3]) == pytest.approx(result.mean(lambda run: run.entropy), abs=5e-5)
    sizes = figures.sizes_figure(study).rows
    assert float(sizes[0][2]) == pytest.approx(study.everybody.mean_size, abs=5e-3)
    shares = [float(cell.split()[0].strip("<")) for cell in sizes[0][3:]]
    assert sum(shares) == pytest.approx(100, abs=0.5)
    trade = np.array([[n for n, _ in row] for _, row in trades_of(study)[0].pairs])
    assert trade.sum() == sum(run.targets.households for run in study.of("paper")[-1].runs)


def test_one_run_and_a_group_outside_households_can_be_drawn(study: SwapStudy) -> None:
    results = tuple(
        dataclasses.replace(result, runs=result.runs[:1], variance=None) for result in study.results
    )
    nobody = dataclasses.replace(study.everybody, persons=study.everybody.persons * [0, *[1] * 6])
    page = render_swaps(dataclasses.replace(study, results=results, everybody=nobody))
    assert "One run has no variance" in Outline(page).text


def test_minus_signs_and_percentages_are_printed_well() -> None:
    assert told("-0.5 at 10 %, 3% of record-9") == "−0.5 at\u00a010\u00a0%, 3\u00a0% of record-9"


def test_everybody_may_read_it(study: SwapStudy, tmp_path: Path) -> None:
    path = write_swap_report(tmp_path / "report.html", study)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.mark.needs_browser
def test_all_methods_fit_beside_each_other(chromium, study, tmp_path) -> None:
    """At 1000 pixels, where the column of the text is narrowest, nothing is cut."""
    names = ["paper", "published-code", "high-variance", "public-docs-2010", "record-swapping"]
    results = tuple(
        dataclasses.replace(result, method=name) for name in names for result in study.of("paper")
    )
    page = render_swaps(dataclasses.replace(study, results=results))
    told = (
        "<script>onload = () => { const box = document.querySelector('.edged');"
        "document.title = `${box.scrollWidth} in ${box.clientWidth}`; }</script></body>"
    )
    file = tmp_path / "report.html"
    file.write_text(page.replace("</body>", told), encoding="utf-8")
    done = browse(chromium, tmp_path, file, "--window-size=1000,900", "--dump-dom")
    wide, room = map(int, re.findall(r"<title>(\d+) in (\d+)</title>", done.stdout)[0])
    assert 600 < room < 720
    assert wide <= room


@pytest.mark.needs_browser
def test_it_opens_without_a_complaint_in_both_schemes(chromium, page, tmp_path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page, encoding="utf-8")
    assert_drawn_in_both_schemes(chromium, tmp_path, file)
