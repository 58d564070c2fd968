"""Commands that measure what protection does to data."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.console import Json, guarded, print_json, progress
from discreet.config import rational
from discreet.errors import BadInput

if TYPE_CHECKING:
    from discreet.census import Schema
    from discreet.evaluate import Direction, SwapStudy, TopDownStudy
    from discreet.mechanisms import Mechanism

evaluations = typer.Typer(
    name="evaluate",
    help="Measure what protection does to data.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

RATES = ["0.02", "0.1"]


@evaluations.callback()
def start() -> None:
    """Measure what protection does to data."""


@evaluations.command(
    epilog="Example: discreet evaluate swap census --out swaps.html --preset paper"
)
@guarded
def swap(
    census: Annotated[Path, typer.Argument(help="Folder of a simulated census.")],
    out: Annotated[Path, typer.Option(help="HTML file for the report.")],
    rate: Annotated[
        list[str], typer.Option(help="Share of households to swap; may be given several times.")
    ] = RATES,
    preset: Annotated[
        list[str] | None,
        typer.Option(
            help="paper, published-code, high-variance, public-docs-2010 or record-swapping; may "
            "be given several times. Default: all of them."
        ),
    ] = None,
    config: Annotated[
        list[Path] | None,
        typer.Option(help="Also the mechanism of a configuration, at these rates."),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each; two or more for variance.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first run.")] = 1,
    group: Annotated[str, typer.Option(help="Column of persons to group them by.")] = "race_group",
    level: Annotated[str, typer.Option(help="Level of areas to take the entropy of.")] = "tract",
    errors_at: Annotated[str, typer.Option(help="Level of areas to count in.")] = "county",
    as_json: Json = False,
) -> None:
    """Swap pairs of households of a simulated census, and report what it does.

    Entropy of areas, who is targeted, errors of counts and variance between runs, beside
    the directions that Ballesteros et al. (2025) report. The last line printed is the path
    of the report. With --config and without --preset, configurations only.
    """
    if not out.resolve().parent.is_dir() or out.is_dir():
        raise BadInput(f"--out: {out.name} must be a file in a folder that exists.")
    rates = _rates(rate)
    with progress() as shown:
        shown(0.0, "starting")
        from discreet.census import Census
        from discreet.evaluate import caution, directions, study_swaps
        from discreet.report import write_swap_report

        opened = Census.open(census)
        study = study_swaps(
            opened,
            _mechanisms(opened.schema, preset or [], config or [], rates),
            runs,
            seed,
            group=group,
            level=level,
            errors_at=errors_at,
            threads=os.cpu_count() or 1,
            progress=shown,
        )
        found = directions(study)
        write_swap_report(out, study)
    if as_json:
        told = {"directions": _as_data(found), "caution": caution(study)}
        print_json({"report": str(out), **study.as_data(), **told})
        return
    for line in _lines(study, found):
        print(line)
    print(out)


def _rates(texts: list[str]) -> list[str]:
    """Return the rates in ascending order, each once."""
    try:
        rates = {rational(text) for text in texts}
    except ValueError:
        rates = {Fraction(0)}
    if not all(0 < rate < 1 for rate in rates):
        raise BadInput("--rate: must be a number between 0 and 1, like 0.02 or 1/50.")
    return [str(rate) for rate in sorted(rates)]


def _mechanisms(
    schema: Schema, presets: list[str], configs: list[Path], rates: list[str]
) -> dict[str, list[Mechanism]]:
    from discreet.evaluate import SWAP_METHODS, swap_methods
    from discreet.mechanisms import mechanism
    from discreet.run import read_config

    names = presets if presets or configs else list(SWAP_METHODS)
    made = swap_methods(schema, names, rates)
    for path in configs:
        asked = read_config(path)
        if path.stem in made:
            raise BadInput(f"--config: two methods would be called {path.stem}. Rename the file.")
        made[path.stem] = [
            mechanism(asked.mechanism, schema, {**asked.parameters, "rate": rate}) for rate in rates
        ]
    return made


def _as_data(found: tuple[Direction, ...]) -> list[dict[str, Any]]:
    return [
        {
            "direction": direction.name,
            "statement": direction.statement,
            "section": direction.section,
            "found": {
                one.method: {"answer": one.answer, "numbers": one.told}
                for one in direction.findings
            },
        }
        for direction in found
    ]


def _lines(study: SwapStudy, found: tuple[Direction, ...]) -> list[str]:
    """Return, for each method, how many directions came out as published and which did not."""
    from discreet.evaluate import caution

    lines = [f"Note: {caution(study)}."] if caution(study) else []
    width = max(map(len, study.methods))
    for method in study.methods:
        judged = [
            (direction.name, finding)
            for direction in found
            for finding in direction.findings
            if finding.method == method
        ]
        same = sum(finding.answer == "same" for _, finding in judged)
        lines.append(f"{method:{width}}  {same} of {len(judged)} directions as published")
        lines += [
            f"{'':{width}}  {name}: {finding.answer} ({finding.told})"
            for name, finding in judged
            if finding.answer != "same"
        ]
    return lines


@evaluations.command(epilog="Example: discreet evaluate topdown census release --out errors.html")
@guarded
def topdown(
    census: Annotated[Path, typer.Argument(help="Folder of the census.")],
    release: Annotated[Path, typer.Argument(help="Folder of a release made from it.")],
    out: Annotated[
        Path | None, typer.Option(help="HTML file for the report, readable by its owner only.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare redistricting counts of a release with the census, level by level.

    Errors by level and size of area, the bias of small and large counts, the fitness target
    of the 2020 system and, for TopDown, the error of totals that theory expects. All of it
    compares with the truth and is internal.
    """
    if out is not None and (not out.resolve().parent.is_dir() or out.is_dir()):
        raise BadInput(f"--out: {out.name} must be a file in a folder that exists.")
    from discreet.census import Census
    from discreet.evaluate import persons_strategy, study_topdown
    from discreet.mechanisms import Release

    opened = Census.open(census)
    published = Release.open(release)
    strategy = persons_strategy(published)
    study = study_topdown(opened, published.microdata(opened.engine), strategy)
    if out is not None:
        from discreet.report import write_topdown_report

        write_topdown_report(out, study)
    if as_json:
        print_json({"report": None if out is None else str(out), **study.as_data()})
        return
    for line in _error_lines(study):
        print(line)
    if out is not None:
        print(out)


def _error_lines(study: TopDownStudy) -> list[str]:
    """Return the errors of the total population and of groups, level by level."""
    from discreet.census import SIMULATED

    lines = [SIMULATED] if study.origin == "simulated" else []
    lines.append("Internal: compares with the truth; no part of the release.")
    table = [["level", "areas", "mean", "absolute", "rms", "expected", "absolute", "rms"]]
    for one in study.levels:
        total, cells = one.measures["total"].overall, one.measures["cells"].overall
        expected = "-" if one.expected is None else f"{one.expected:,.2f}"
        numbers = [total.mean, total.mean_absolute, total.root_mean_square]
        row = [one.level, f"{one.areas:,}", *(f"{number:,.2f}" for number in numbers), expected]
        table.append([*row, f"{cells.mean_absolute:,.3f}", f"{cells.root_mean_square:,.2f}"])
    # As wide as what is in them: a nation's numbers are longer than a town's.
    widths = [max(map(len, column)) + 2 for column in zip(*table, strict=True)]
    totals, groups = sum(widths[:5]), sum(widths[5:])
    lines.append(f"{'total population':>{totals}}{'race by origin':>{groups}}")
    for level, *row in table:
        padded = (f"{text:>{width}}" for text, width in zip(row, widths[1:], strict=True))
        lines.append(f"{level:{widths[0]}}{''.join(padded)}")
    return lines


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(evaluations)
