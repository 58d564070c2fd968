"""The figures of the guide to PHSafe: truncation, and how often intervals hold a given truth.

Intervals of single counts are exact; those of totals are drawn.
"""

import runpy
from pathlib import Path

import numpy as np

from discreet.mechanisms.phsafe import load_configuration
from discreet.products.sdhc import SHELLS, estimates
from discreet.products.sdhc.estimates import coverage_of_sums
from discreet.report import Figure
from discreet.report.plot import Line, Plot
from discreet.report.svg import Svg

#: Under-18s and persons in families of a group in a state, own children of a whole state.
MEASURED = (("PH3", "state_A-G"), ("PH4", "state_A-G"), ("PH6", "state_*"))
PARTS = {(part.table, part.level): part for part in load_configuration("us-2020").account.parts}
SIGMAS = tuple(float(PARTS[one].parameter) ** 0.5 for one in MEASURED)
SHOWN = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0)


def main(out: Path) -> None:
    """Write one file per figure."""
    piece = runpy.run_path(str(Path(__file__).with_name("specifications.py")))["piece"]
    figures = {
        "coverage": coverage_by_truth(),
        "totals": coverage_of_totals(),
        "truncation": truncation(),
    }
    for name, figure in figures.items():
        (out / f"phsafe-{name}.html").write_text(piece(figure), encoding="utf-8")


def coverage_by_truth() -> Figure:
    """Draw coverage of the intervals of counts against truth/sigma."""
    across = np.concatenate([np.linspace(0, 0.5, 101), np.linspace(0.51, 5, 200)])
    lines = [Line("not rounded", "sharp", points(across, 1.0, rounded=False))]
    lines += [
        Line(f"sigma {sigma:.0f}", f"order{2 * number + 1}", points(across, sigma))
        for number, sigma in enumerate(SIGMAS)
    ]
    plot = Plot((0, 5), 100)
    plot.axes(range(6), str, "true count in units of sigma (across), percent of intervals (up)")
    for line in lines:
        plot.curve(line)
    plot.names_at_ends(lines)
    rows = [
        (f"{at:g}", *(f"{dict(line.points)[at]:.1f}" for line in numbers(lines))) for at in SHOWN
    ]
    return Figure(
        "How often the 90 percent interval of a count holds the truth",
        plot.svg.render("curves", "Coverage of intervals against the true count"),
        "each curve is the part of intervals that hold a given true count, for one size of the "
        "noise. Before rounding it is within half a point of 90 percent from three sigma on, up to "
        "94.5 percent around one sigma, and it falls towards zero: intervals of counts at zero "
        "start above it. Ends are rounded outwards, which adds up to 2 points far out (1.6 for "
        "sigma 12, 0.2 for sigma 122), and more near zero.",
        ("truth/sigma", *(line.name for line in lines)),
        tuple(rows),
    )


def points(across: np.ndarray, sigma: float, rounded: bool = True) -> list[tuple[float, float]]:
    """Return coverage in percent; a published count is whole, so rounding asks whole truths."""
    truth = np.rint(across * sigma) if rounded else across * sigma
    held = estimates.coverage(truth, sigma**2, rounded=rounded)
    return [(float(x), float(100 * y)) for x, y in zip(across, held, strict=True)]


def numbers(lines: list[Line]) -> list[Line]:
    """Return the curves at the places of the table."""
    at = np.array(SHOWN)
    return [
        Line(line.name, line.kind, points(at, sigma, rounded=line.kind != "sharp"))
        for line, sigma in zip(lines, (1.0, *SIGMAS), strict=True)
    ]


# -- totals ---------------------------------------------------------------------------------------

#: Cells in the total, and their noise, from few cells to many.
TOTALS = {
    f"{table}, {cells} cells": (cells, sigma)
    for cells, table, sigma in sorted(
        (len(SHELLS[table].cells), table, sigma)
        for (table, _), sigma in zip(MEASURED, SIGMAS, strict=True)
    )
}
PLACES = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)

#: Cells drawn for each place and total.
WORK = 4000


def coverage_of_totals() -> Figure:
    """Draw coverage of the intervals of totals of equal cells against truth/sigma of a cell."""
    one = SIGMAS[-1]
    lines = [Line("one cell", "sharp", points(np.linspace(0, 5, 201), one))]
    table = [[f"{share:.0f}" for _, share in points(np.array(PLACES), one)]]
    for number, (name, (cells, sigma)) in enumerate(TOTALS.items()):
        truth = np.rint(np.outer(np.multiply(PLACES, sigma), np.ones(cells)))
        found = coverage_of_sums(truth, sigma**2, draws=WORK // cells)
        held = (100 * found.held).tolist()
        lines.append(Line(name, f"order{2 * number + 1}", list(zip(PLACES, held, strict=True))))
        off = found.bias / (estimates.tables.Z * sigma * np.sqrt(cells))
        table += [[f"{share:.0f}" for share in held], [f"{bias:.2f}" for bias in off]]
    plot = Plot((0, 5), 100)
    plot.axes(range(6), str, "every cell in units of sigma (across), percent of intervals (up)")
    for line in lines:
        plot.curve(line)
    plot.names_at_ends(lines)
    heads = [head for name in TOTALS for head in (name, "bias/margin")]
    return Figure(
        "How often the 90 percent interval of a total holds the truth",
        plot.svg.render("curves", "Coverage of intervals of totals against the true cells"),
        "all cells of a total have the same true count, which is told in units of their noise; "
        "each curve is the part of intervals that hold the true total, drawn and so known to 1 to "
        "3 points (the one of a cell is exact). The more cells, the larger they must be. In the "
        "numbers bias/margin is the mean error of the estimate in units of the margin of error "
        "of the noisy total; where it is above 1, the noisy total is the better one by far.",
        ("truth/sigma", "one cell", *heads),
        tuple((f"{at:g}", *(column[row] for column in table)) for row, at in enumerate(PLACES)),
    )


# -- truncation ----------------------------------------------------------------------------------

#: Ages of the members of a household in the order of their keys, and who comes.
AGES, NEWCOMER, PLACE, TAU = (9, 45, 3, 43, 12, 7, 15), 70, 2, 5

#: Colours of persons that are counted: in a rented unit, in an owned one, and who is new.
LOOKS = """<style>
svg.truncation .rented { fill: var(--o4); } svg.truncation .owned { fill: var(--o7); }
svg.truncation .out { fill: none; stroke: var(--soft); stroke-dasharray: 3 3; stroke-width: 1.4; }
svg.truncation .new { fill: none; stroke: var(--published); stroke-width: 3; }
svg.truncation .age { fill: var(--card); font-weight: 600; text-anchor: middle; }
svg.truncation .left { text-anchor: middle; }
</style>"""


def truncation() -> Figure:
    """Draw a household, who of it is counted, and what one person changes."""
    after = (*AGES[:PLACE], NEWCOMER, *AGES[PLACE:])
    stages = (
        ("Seven persons, rented", AGES, "rented"),
        ("One comes", after, "rented"),
        ("... and the unit is owned", after, "owned"),
    )
    svg = Svg(860, 250)
    for row, (name, ages, tenure) in enumerate(stages):
        y = 56 + 72 * row
        svg.text(0, y + 5, name, "name")
        for place, age in enumerate(ages):
            _person(svg, 240 + 46 * place, y, age, tenure if place < TAU else "out")
        for place, number in enumerate(_counts(ages, tenure)):
            svg.text(650 + 65 * place, y + 5, str(number), "name middle")
    edge = 240 + 46 * TAU - 23
    svg.line(edge, 20, edge, 232, "zero")
    svg.text(edge - 8, 14, f"counted: the first {TAU} by key", "label end")
    svg.text(edge + 8, 14, "left out", "label start")
    for place, cell in enumerate(("under 18", "18+", "rented", "owned")):
        svg.text(650 + 65 * place, 14, cell, "label middle")
    told = [_counts(ages, tenure) for _, ages, tenure in stages]
    cells = ("PH1 under 18", "PH1 18 and over", "PH7 rented", "PH7 owned with a mortgage")
    return Figure(
        f"A household under truncation to {TAU} persons",
        LOOKS + svg.render("curves truncation", "Who of a household is counted, in three stages"),
        "circles are persons with their ages, in the order of person_key. A newcomer of 70 with an "
        "early key takes the place of the child of 12: one row comes, one goes. With the person "
        f"the record of the unit may change as well, and then {TAU} rows leave a cell and {TAU} "
        f"enter another. Together at most 2 x {TAU} + 2 = {2 * TAU + 2} rows change; the numbers "
        "on the right are the counts.",
        ("cell", "before", "one comes", "and the record changes"),
        tuple((cell, *(str(one[row]) for one in told)) for row, cell in enumerate(cells)),
    )


def _person(svg: Svg, x: float, y: float, age: int, look: str) -> None:
    svg.circle(x, y, 17, look)
    if age == NEWCOMER:
        svg.circle(x, y, 20, "new")
    svg.text(x, y + 5, str(age), "label left" if look == "out" else "age")


def _counts(ages: tuple[int, ...], tenure: str) -> tuple[int, int, int, int]:
    """Return the four cells of the table that a household is counted in."""
    kept = ages[:TAU]
    young = sum(age < 18 for age in kept)
    rented = len(kept) if tenure == "rented" else 0
    return young, len(kept) - young, rented, len(kept) - rented
