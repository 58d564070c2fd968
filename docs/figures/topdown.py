"""The figures of the guide to TopDown: the errors of one draw on a simulated state."""

import runpy
import tempfile
from importlib.resources import files
from pathlib import Path

from discreet.census import Census
from discreet.evaluate import TopDownStudy, study_topdown
from discreet.mechanisms import protect
from discreet.mechanisms.topdown import TopDown
from discreet.noise import trial
from discreet.report import topdown_figures
from discreet.simulate import simulate

TOPDOWN = files("discreet.report") / "templates" / "topdown.css"

COLOURS = """
.curves-figure { --n1: light-dark(#a8cae4, #35597d); --n2: light-dark(#5c9ace, #4d8bc8);
  --n3: light-dark(#1f63a8, #79b8f5); --rise: light-dark(#dd8628, #f3a655); }
"""

# A part of a small state, so that pages build quickly.
PROFILE = """
format_version: 1
name: part-of-a-state
title: A part of a small state, 100,000 persons
schema: us-decennial
states:
  - {code: "50", name: A part of a state, persons: 100000, counties: 4, tracts: 32, blocks: 4000,
     latitude: 44.0, longitude: -72.7, race: [61.6, 12.4, 1.1, 6.0, 0.2, 8.4, 10.2], hispanic: 18.7}
"""


def main(out: Path) -> None:
    """Write one file per figure."""
    piece = runpy.run_path(str(Path(__file__).with_name("specifications.py")))["piece"]
    lines = TOPDOWN.read_text(encoding="utf-8").splitlines()
    style = COLOURS + "\n".join(line for line in lines if line.startswith("svg"))
    study = study_one_draw()
    for name, figure in (
        ("topdown-errors", topdown_figures.size_figure(study)),
        ("topdown-theory", topdown_figures.theory_figure(study)),
        ("topdown-bias", topdown_figures.bias_figure(study)),
        ("topdown-fitness", topdown_figures.fitness_figure(study)),
    ):
        drawn = piece(figure).replace("</style>", f"{style}</style>", 1)
        (out / f"{name}.html").write_text(drawn, encoding="utf-8")
    (out / "topdown-levels.html").write_text(table(study), encoding="utf-8")


def table(study: TopDownStudy) -> str:
    """Return the errors of total population, level by level, as a table."""
    rows = [("level", "areas", "mean error", "root mean square", "expected")]
    for one in study.levels:
        error = one.measures["total"].overall
        expected = "" if one.expected is None else f"{one.expected:.2f}"
        numbers = (f"{one.areas:,}", f"{error.mean:+.2f}", f"{error.root_mean_square:.2f}")
        rows.append((one.level.replace("_", " "), *numbers, expected))
    head, *body = ("".join(f"<{tag}>{text}</{tag}>" for text in row) for tag, row in tagged(rows))
    lines = "".join(f"<tr>{row}</tr>" for row in body)
    return f'<table class="docutils"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>'


def tagged(rows: list[tuple[str, ...]]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the rows of a table with the tag of their cells: the first is the head."""
    return [("th" if place == 0 else "td", row) for place, row in enumerate(rows)]


def study_one_draw() -> TopDownStudy:
    """Return the errors of one draw by the strategy of 2020."""
    with tempfile.TemporaryDirectory(prefix="discreet-docs-") as name:
        folder = Path(name)
        (folder / "profile.yaml").write_text(PROFILE, encoding="utf-8")
        simulate(folder / "profile.yaml", folder / "census", 1)
        census = Census.open(folder / "census")
        topdown = TopDown(
            census_schema=census.schema,
            persons="pl94-us-persons-2020",
            root="state",
            measurements="lazy",
        )
        release = protect(topdown, census, trial(seed=7), folder / "release")
        study = study_topdown(
            census, release.microdata(census.engine), topdown.strategies["persons"]
        )
        census.engine.close()
    return study
