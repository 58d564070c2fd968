"""The report renders for both profiles, says what it must, and needs nothing from outside."""

import dataclasses
import re
import stat
from pathlib import Path

import pytest

from discreet.census import SIMULATED, Census
from discreet.engine import Engine
from discreet.evaluate import InvariantCheck, check_each_invariant, compare
from discreet.mechanisms import Release
from discreet.report import Run, render
from discreet.spec import NoFiniteBudget
from pages import Outline, assert_stands_alone


def test_the_page_is_well_formed(outline: Outline) -> None:
    assert outline.tags.count("h1") == 1


def test_nothing_is_fetched_from_anywhere(page: str) -> None:
    assert_stands_alone(page)
    assert "://" not in page


@pytest.mark.parametrize(
    "planted",
    [
        "<script></script>",
        '<img alt="" src="data:,">',
        '<a href="other.html">x</a>',
        '<a href="#nowhere">x</a>',
        '<p id="b">x</p><p id="b">y</p>',
        '<section aria-labelledby="nowhere">x</section>',
        '<p style="background: url(x.png)">x</p>',
        "<p>never closed",
    ],
)
def test_what_does_not_stand_alone_would_be_seen(planted: str) -> None:
    page = '<!doctype html><html><body><a href="#a">x</a><p id="a">y</p>{}</body></html>'
    assert_stands_alone(page.format(""))
    with pytest.raises(AssertionError):
        assert_stands_alone(page.format(planted))


def test_the_contents_lead_to_every_section(outline: Outline) -> None:
    for wanted in ("promise", "run", "invariants", "changes", "users"):
        assert wanted in outline.links()


def test_the_banner_says_what_it_must(outline: Outline) -> None:
    for wanted in (SIMULATED.removesuffix("."), "Design mode", "Internal"):
        assert wanted in outline.text[:600]


def test_every_invariant_is_listed_and_ticked(made: Path, outline: Outline) -> None:
    invariants = Release.open(made / "release").specification.multiverse.invariants
    for invariant in invariants:
        assert invariant.name[1:] in outline.text
    assert outline.text.count("✓ holds") == len(invariants)
    assert "✗" not in outline.text


def test_the_budget_never_stands_alone(made: Path, page: str, outline: Outline) -> None:
    specification = Release.open(made / "release").specification
    told = specification.budget.describe()
    paragraphs = re.findall(r"<(?:p|pre)[^>]*>(.*?)</(?:p|pre)>", page, re.DOTALL)
    with_budget = [text for text in paragraphs if told in text]
    assert with_budget
    for text in with_budget:
        assert specification.output_premetric.name in text
        assert specification.input_premetric.unit in text
        assert "invariants" in text or "agree exactly on" in text
    for condition in specification.budget.conditions:
        assert condition[1:] in outline.text


def test_every_picture_is_explained(page: str) -> None:
    figures = re.findall(r"<figure>.*?</figure>", page, re.DOTALL)
    assert len(figures) >= 3
    for figure in figures:
        assert "<svg" in figure
        assert 'aria-label="' in figure
        assert "How to read it:" in figure


def test_every_table_is_in_the_guide_for_users(made: Path, page: str) -> None:
    guide = page[page.index('id="users"') :]
    census = Census.open(made / "census")
    for table in census.schema.tables:
        assert f">{table.name}<" in guide
    assert "✓ exact" in guide
    assert "±" in guide


def test_the_report_is_for_its_owner_only(made: Path) -> None:
    assert stat.S_IMODE((made / "report.html").stat().st_mode) == 0o600
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_no_variable_of_one_country_stands_in_the_code(root: Path) -> None:
    folder = root / "src" / "discreet" / "report"
    sources = [*folder.rglob("*.py"), *folder.rglob("*.html")]
    assert len(sources) > 5
    for source in sources:
        found = re.findall(
            r"(?i)\b(race|tract|county|hispanic|tenure|citizenship)\b", source.read_text()
        )
        assert not found, (source.name, found)


# --- rendered again with other facts ------------------------------------------------------------


@pytest.fixture(scope="module")
def run(made: Path) -> Run:
    engine = Engine()
    before = Census.open(made / "census", engine)
    release = Release.open(made / "release")
    after = release.microdata(engine)
    tables = [table.name for table in before.schema.tables[:2]]
    checks = check_each_invariant(release.specification, before, after)
    return Run(before, after, release, checks, compare(before, after, tables), "a seed", {})


def test_a_broken_invariant_is_shown(run: Run) -> None:
    broken = InvariantCheck(run.checks[0].invariant, 10, 3)
    outline = Outline(render(dataclasses.replace(run, checks=[broken, *run.checks[1:]])))
    assert "✗ broken" in outline.text
    assert f"invariants hold exactly {len(run.checks) - 1} of {len(run.checks)}" in outline.text


def test_a_method_without_a_finite_budget_says_so(run: Run) -> None:
    amount = NoFiniteBudget(reason="who is moved depends on the data")
    budget = run.release.specification.budget.model_copy(update={"amount": amount})
    specification = run.release.specification.model_copy(update={"budget": budget})
    release = dataclasses.replace(run.release, specification=specification)
    text = Outline(render(dataclasses.replace(run, release=release))).text
    assert "No finite budget exists for this method" in text
    assert "That is the bound" not in text


def test_nothing_changed_is_told_without_pictures(run: Run) -> None:
    tables = [found.table.name for found in run.comparison.tables]
    same = compare(run.before, run.before, dict.fromkeys(tables))
    page = render(dataclasses.replace(run, after=run.before, comparison=same))
    assert "Not one of" in Outline(page).text
    assert "<figure>" not in page


def test_without_coordinates_there_is_no_map(run: Run) -> None:
    geography = run.before.geography.drop("latitude", "longitude")
    before = dataclasses.replace(run.before, geography=geography)
    page = render(dataclasses.replace(run, before=before))
    assert 'class="map"' in render(run)
    assert 'class="map"' not in page
    Outline(page)


def test_labels_of_a_schema_are_text_not_markup(run: Run) -> None:
    table = run.comparison.tables[0].table.model_copy(update={"title": "<script>alert(1)</script>"})
    shown = [dataclasses.replace(found, table=table) for found in run.comparison.tables[:1]]
    comparison = dataclasses.replace(run.comparison, tables=tuple(shown))
    outline = Outline(render(dataclasses.replace(run, comparison=comparison)))
    assert "script" not in outline.tags
    assert "<script>alert(1)</script>" in outline.text


def test_no_table_at_all_is_no_error(run: Run) -> None:
    nothing = compare(run.before, run.after, [])
    text = Outline(render(dataclasses.replace(run, comparison=nothing))).text
    assert "No table of this schema can be compared" in text
