"""Curves of what swapping promises and what it really loses, as inline SVG with their numbers.

Each figure is a function from design choices to a picture, a caption and a small table of
the numbers in it, for readers who cannot or do not want to see the picture. Everything
is computed by the accountant of the Permutation Swapping Algorithm (`discreet.spec.psa`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from discreet.report.plot import Line, Plot, Points
from discreet.report.words import count, percent, short
from discreet.spec import psa

#: Sizes of the largest stratum in Figure 2 of Bailie, Gong and Meng.
STRATA = (2, 10, 100, 1_000, 10_000, 100_000, 1_000_000)

#: Rates that the paper computes tables for.
MARKED = (Fraction(1, 20), Fraction(1, 2))

#: Where the curves of the first figure carry their names.
NAMED_AT = Fraction(3, 10)

#: Marks of an axis of shares, and how many colours for ordered curves there are.
TENTHS, COLOURS = tuple(k / 10 for k in range(11)), 7

#: Rates for rows of tables.
SHOWN = (Fraction(1, 100), Fraction(1, 20), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10))


@dataclass(frozen=True)
class Figure:
    """A picture with its title, how to read it, and its numbers as a table."""

    title: str
    picture: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def rates(low: float, high: float, many: int, also: Sequence[float] = ()) -> list[Fraction]:
    """Return rates from `low` to `high`, dense where budgets bend: evenly spaced log-odds."""
    first, last = (math.log(rate / (1 - rate)) for rate in (low, high))
    steps = [first + (last - first) * k / (many - 1) for k in range(many)]
    chosen = {1 / (1 + math.exp(-step)) for step in steps} | {r for r in also if low < r < high}
    return sorted(Fraction(rate).limit_denominator(10**9) for rate in chosen)


def finite(points: Points) -> Points:
    """Return the points whose height is finite."""
    return [(x, y) for x, y in points if y < math.inf]


def _top(lines: Sequence[Line]) -> float:
    """Return the height of the plot: the next whole number above all curves."""
    return math.ceil(max(y for line in lines for _, y in line.points))


def _bounds(at: Sequence[tuple[float, int, Fraction]]) -> list[Line]:
    """Return Theorem 1 and the sharpened bound at places, each with its stratum and rate."""
    return [
        Line("Theorem 1", "published", [(x, psa.theorem_1(n, p).value) for x, n, p in at]),
        Line("sharpened", "sharp", [(x, psa.sharpened(n, p).value) for x, n, p in at]),
    ]


def _drawn(plot: Plot, lines: Sequence[Line], told: str) -> str:
    """Draw curves with their names at their ends and return the picture, described by `told`."""
    for line in lines:
        plot.curve(line)
    plot.names_at_ends(lines)
    return plot.svg.render("curves", told)


def _budget(value: float) -> str:
    if math.isnan(value):
        return "–"
    return "∞" if value == math.inf else f"{value:.2f}"


# -- Figure 2 of Bailie, Gong and Meng --------------------------------------------------------


def budgets_by_rate(strata: Sequence[int] = STRATA) -> Figure:
    """Draw the budget of Theorem 1 against the swap rate, one curve per largest stratum."""
    lines = []
    for number, b in enumerate(strata):
        grid = rates(0.005, 0.9995, 90, also=[psa.best_rate(b)])
        points = [(float(p), psa.theorem_1(b, p).value) for p in grid]
        lines.append(Line(f"b = {count(b)}", f"order{1 + number % COLOURS}", points))
    plot = Plot((0, 1), _top(lines), room=18)
    plot.axes(TENTHS, percent_plain, "swap rate (across), budget ε (up)")
    for rate in MARKED:
        plot.upright(float(rate), percent_plain(float(rate)))
    for line in lines:
        plot.curve(line)
    for line, b in zip(lines, strata, strict=True):
        _name_and_diamond(plot, line, b, below=b == min(strata))
    at_rates = tuple(f"ε at {percent_plain(float(rate))}" for rate in MARKED)
    return Figure(
        "Budget of swapping by rate and size of the largest stratum",
        plot.svg.render("curves", "Budget of Theorem 1 against the swap rate"),
        "each curve is the budget ε of Theorem 1 (Bailie, Gong and Meng; their Figure 2) for one "
        "size b of the largest stratum; diamonds mark the smallest budget of each curve. Left of "
        "its diamond a curve falls with the rate; right of it all follow one and rise again. A "
        "smaller b has a smaller budget because finer strata publish more exactly: curves of "
        "different b are not to be ranked.",
        ("b", *at_rates, "smallest ε", "at rate"),
        tuple(
            (
                count(b),
                *(_budget(psa.theorem_1(b, rate).value) for rate in MARKED),
                _budget(psa.minimum_epsilon(b)),
                percent(psa.best_rate(b)),
            )
            for b in strata
        ),
    )


def _name_and_diamond(plot: Plot, line: Line, b: int, below: bool) -> None:
    """Write the name beside a curve (the lowest has no room above it) and mark its minimum."""
    level = plot.up(psa.theorem_1(b, NAMED_AT).value) + (20 if below else -7)
    plot.svg.text(plot.across(float(NAMED_AT)), level, line.name, f"tag {line.kind} start")
    smallest, best = psa.minimum_epsilon(b), psa.best_rate(b)
    told = f"{line.name}: smallest ε {_budget(smallest)} at rate {percent(best)}"
    plot.diamond(best, smallest, line.kind, told)


def percent_plain(share: float) -> str:
    """Return a share as a round percentage.

    >>> percent_plain(0.05)
    '5 %'
    """
    return f"{100 * share:.3g} %"


# -- bounds against the exact loss ------------------------------------------------------------


def bounds_by_rate(holding: Sequence[int], swapping: Sequence[int]) -> Figure:
    """Draw Theorem 1, the sharpened bound and the exact loss of one stratum against the rate."""
    n = sum(holding)
    grid = rates(0.005, 0.995, 60, also=[psa.best_rate(n), psa.sharpened_best_rate(n)])

    def exact(p: Fraction) -> float:
        return psa.exact_loss(holding, swapping, p).value

    lines = [
        *_bounds([(float(p), n, p) for p in grid]),
        # At rate 1 the loss is finite for some margins, although no bound is.
        Line("exact loss", "exact", finite([(float(p), exact(p)) for p in [*grid, Fraction(1)]])),
    ]
    plot = Plot((0, 1), _top(lines))
    plot.axes(TENTHS, percent_plain, "swap rate (across), ε (up)")
    margins = " × ".join(f"({', '.join(map(str, margin))})" for margin in (holding, swapping))
    tables = psa.exact_loss(holding, swapping, Fraction(1, 2)).universe
    return Figure(
        f"Bounds against the exact loss, one stratum of {n} records",
        _drawn(plot, lines, "Theorem 1, sharpened bound and exact loss by swap rate"),
        f"the margins are {margins}, so the universe has {count(tables)} tables and the law of "
        "the output can be written down. The loss is what the mechanism really gives away; both "
        "bounds are functions of the stratum's size and the rate alone and must cover the worst "
        "margins of that size.",
        ("rate", "Theorem 1", "sharpened (ours)", "exact loss"),
        tuple(
            (
                percent_plain(float(p)),
                _budget(psa.theorem_1(n, p).value),
                _budget(psa.sharpened(n, p).value),
                _budget(exact(p)),
            )
            for p in (*SHOWN, Fraction(1))
        ),
    )


def bounds_by_size(
    sizes: Sequence[int] = (5, 10, 20, 30, 50, 80, 130, 200, 300, 400),
    rate: Fraction = Fraction(1, 20),
) -> Figure:
    """Draw the bounds and the loss for a binary variable against the size of the stratum."""
    named = (("one half each", Fraction(1, 2)), ("one fifth", Fraction(1, 5)))
    losses = [
        Line(f"loss, {name}", kind, [(n, _binary(n, share, rate)) for n in sizes])
        for (name, share), kind in zip(named, ("exact", "exact other"), strict=True)
    ]
    lines = [*_bounds([(n, n, rate) for n in sizes]), *losses]
    plot = Plot((sizes[0], sizes[-1]), _top(lines), math.log)
    ticks = [n for n in (5, 10, 20, 50, 100, 200, 400, 1000) if sizes[0] <= n <= sizes[-1]]
    plot.axes(ticks, short, "records in the stratum, log scale (across), ε (up)")
    return Figure(
        f"A binary variable: bounds and loss by stratum size, rate {percent_plain(float(rate))}",
        _drawn(plot, lines, "Bounds and loss for a binary variable by stratum size"),
        "if the holding (or the swapping) variable has two categories, the loss can be computed "
        "for any other variable (formula ours, proved here), here with half or a fifth of the "
        "records in the first category. Theorem 1 grows like ln n with the size n, the loss much "
        "more slowly.",
        ("records", *(line.name for line in lines)),
        tuple(
            (count(n), *(_budget(line.points[k][1]) for line in lines)) for k, n in enumerate(sizes)
        ),
    )


def _binary(n: int, share: Fraction, rate: Fraction) -> float:
    first = max(1, round(n * share))
    return psa.binary_loss((first, n - first), rate)


# -- other ways to permute --------------------------------------------------------------------


def variants_by_share(n: int = 100) -> Figure:
    """Draw the budgets of three ways to permute against the share of records that move."""
    grid = rates(0.01, 1 - 1.2 / n, 70)
    shuffled = [(psa.shuffle_moved_share(n, p), psa.shuffle_budget(n, p).value) for p in grid]
    swapped = [(psa.moved_probability(n, p), psa.sharpened(n, p).value) for p in grid]
    tilted = [(float(p), psa.mallows_theta_for(n, float(p))) for p in grid]
    lines = [
        Line("swapping", "published", swapped),
        Line("uniform shuffle", "shuffle", shuffled),
        Line("Mallows", "mallows", tilted),
    ]
    plot = Plot((0, 1), _top(lines))
    names = "expected share of records that move (across), budget ε (up)"
    plot.axes(TENTHS, percent_plain, names)
    return Figure(
        f"Three ways to permute a stratum of {count(n)} records",
        _drawn(plot, lines, "Budgets of three ways to permute by share moved"),
        "all three have the same flavor, so their budgets may be ranked. At the same expected "
        "share of moved records a permutation drawn from the Mallows law has the smallest budget "
        "(ours, proved here). A uniform shuffle of the selected (ours, proved here) costs about "
        "as much as swapping (sharpened bound), but keeps falling where swapping rises again.",
        ("share moved", *(line.name for line in lines)),
        tuple(
            (
                percent_plain(float(share)),
                *(_budget(_between(line.points, float(share))) for line in lines),
            )
            for share in SHOWN
        ),
    )


def _between(points: Points, x: float) -> float:
    """Return the height of a curve at x, interpolated between its points; NaN beyond them."""
    for (a, low), (b, high) in pairwise(points):
        if a <= x <= b:
            return low + (high - low) * (x - a) / (b - a)
    return math.nan
