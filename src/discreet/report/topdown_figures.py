"""The figures of the errors of a TopDown release, each with its numbers as a table."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.evaluate import CELLS, GROUPS, MEASURES, Accuracy, LevelErrors, TopDownStudy
from discreet.report import topdown_pictures as draw
from discreet.report import words
from discreet.report.curves import Figure

#: Columns of a table of errors.
COLUMNS = ("counts", "mean count", "mean error", "mean absolute", "root mean square")


def size_figure(study: TopDownStudy, measure: str = "total") -> Figure:
    """Draw the errors of one kind of count by level and size of area."""
    found = [(_name(study, one), one.measures[measure].by_size) for one in spine(study)]
    told = MEASURES[measure]
    return Figure(
        f"Errors of {told} by level and size of area",
        draw.errors_by_level(found, "persons"),
        "areas are grouped by their true population. The bar is the mean absolute error, the "
        "whisker reaches to the root mean square error (in brackets). On the right the mean error: "
        "orange where the output is too high on average, blue where it is too low.",
        ("level", "true population", *COLUMNS),
        tuple((level, size, *_row(one)) for level, sizes in found for size, one in sizes.items()),
    )


def bias_figure(study: TopDownStudy) -> Figure:
    """Draw the bias of detailed counts against their true value."""
    found = [(_name(study, one), one.measures["cells"].by_count) for one in spine(study)]
    return Figure(
        f"Mean error of {CELLS}, by true count",
        draw.bias_by_count(found),
        "every cell of every area is counted, empty ones too. No estimate can be below 0, so a "
        "count that is truly 0 can only be too high; as all add up to the counts of the level "
        "above, others lose what it gains.",
        ("level", "true count", *COLUMNS),
        tuple((level, size, *_row(one)) for level, sizes in found for size, one in sizes.items()),
    )


def theory_figure(study: TopDownStudy) -> Figure | None:
    """Draw the realised error of totals beside the expected; None where there is no theory."""
    found = [
        draw.Beside(
            _name(study, one),
            one.areas,
            one.measures["total"].overall.root_mean_square,
            one.expected,
        )
        for one in study.levels
        if one.expected is not None
    ]
    if not found:
        return None
    return Figure(
        "Error of totals: realised, and expected by least squares",
        draw.realised_and_expected(found),
        "bars are the errors of this release, upright marks what the theory expects of the actual "
        "tree, without bounds and rounding. With few areas chance alone moves a bar far from its "
        "mark.",
        ("level", "areas", "realised", "expected", "ratio of squares"),
        tuple(
            (
                one.level,
                words.count(one.areas),
                f"{one.realised:.3f}",
                f"{one.expected:.3f}",
                f"{(one.realised / one.expected) ** 2:.2f}" if one.expected else "–",
            )
            for one in found
        ),
    )


def fitness_figure(study: TopDownStudy) -> Figure:
    """Draw how often the largest group's share is within five points, by size of area."""
    found = [(_name(study, one), one.fitness) for one in study.levels if one.areas > 1]
    return Figure(
        "Share of the largest group within five points",
        draw.fitness_by_size(found or [(_name(study, one), one.fitness) for one in study.levels]),
        f"of the 14 groups ({GROUPS}) the one that is largest in the output; a dot is the share "
        "of areas in which the output is within five points of the truth, filled from 95 % "
        "(dashed line) on. Areas that are empty in truth or output have no such share and are "
        "left out.",
        ("level", "true population", "areas", "left out", "within 5 points", "share"),
        tuple(
            (
                level,
                one.size,
                words.count(one.areas),
                words.count(one.undefined),
                words.count(one.within),
                words.percent(one.share) if one.areas > one.undefined else "–",
            )
            for level, sizes in found
            for one in sizes
        ),
    )


def spine(study: TopDownStudy) -> list[LevelErrors]:
    """Return the levels of the spine with more than one area, from the top down."""
    names = [level.name for level in study.schema.spine]
    found = [one for one in study.levels if one.level in names]
    return [one for one in found if one.areas > 1] or found


def overall_rows(study: TopDownStudy) -> list[tuple[str, int, Mapping[str, Accuracy]]]:
    """Return, for each level, its areas and the errors of every kind of count."""
    return [
        (
            _name(study, one),
            one.areas,
            {name: found.overall for name, found in one.measures.items()},
        )
        for one in study.levels
    ]


def _name(study: TopDownStudy, one: LevelErrors) -> str:
    return words.level_title(study.schema, one.level)


def _row(one: Accuracy) -> tuple[str, ...]:
    return (
        words.count(one.cells),
        words.decimal(one.mean_count),
        words.signed(one.mean),
        words.decimal(one.mean_absolute),
        words.decimal(one.root_mean_square),
    )
