"""The figure of the guide to PHSafe: how often intervals hold a given truth."""

import runpy
from pathlib import Path

import numpy as np

from discreet.products.sdhc import estimates
from discreet.report import Figure
from discreet.report.plot import Line, Plot

#: Noise of under-18s of a group in a state (PH3), of persons there, and of a whole state.
SIGMAS = (12.158, 41.337, 121.582)
SHOWN = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0)


def main(out: Path) -> None:
    """Write one file per figure."""
    piece = runpy.run_path(str(Path(__file__).with_name("specifications.py")))["piece"]
    (out / "phsafe-coverage.html").write_text(piece(coverage_by_truth()), encoding="utf-8")


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
        "noise. From about three sigma on it is 90 percent for every truth. Below it is more, "
        "and near zero it falls: intervals of counts at zero start above it. Ends are rounded "
        "outwards, which helps where the noise is small.",
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
