"""The figures of a study of swaps, each with its numbers as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from discreet.census import Table
from discreet.evaluate import (
    COMPONENTS,
    SwapResult,
    SwapRun,
    SwapStudy,
    Who,
    error_table,
    relative_errors,
)
from discreet.report import swap_pictures as draw
from discreet.report import words
from discreet.report.curves import Figure, percent_plain

#: The largest size of a household with a row of its own.
LARGEST = 7


def entropy_figure(study: SwapStudy) -> Figure:
    """Draw the change of mean entropy by method and rate."""
    level = words.level_title(study.schema, study.level)
    return Figure(
        f"Change of the mean entropy of {words.plain(study.group)} over areas of level {level}",
        draw.bars(
            _by_method(study, lambda run: run.entropy - study.entropy, draw.four),
            ["after minus before"],
        ),
        f"the bar is the mean over runs, the whisker reaches from the lowest run to the highest. "
        f"Before swapping the mean is {study.entropy:.4f}. Entropy is 0 where all are alike; a "
        "rise means that areas look more mixed than they are.",
        ("method", "rate", "before", "after", "change", "areas up", "areas down"),
        tuple(
            (
                result.method,
                _rate(result),
                f"{study.entropy:.4f}",
                f"{result.mean(lambda run: run.entropy):.4f}",
                draw.four(result.mean(lambda run: run.entropy) - study.entropy),
                words.percent(result.mean(lambda run: run.rose) / study.areas),
                words.percent(result.mean(lambda run: run.fell) / study.areas),
            )
            for result in study.results
        ),
    )


def parts_figure(study: SwapStudy) -> Figure:
    """Draw what the four parts of a swap do to mean entropy, at the highest rate."""

    def parts(result: SwapResult, of: Callable[[SwapRun], Mapping[str, float]]) -> list[float]:
        return [result.mean(lambda run, part=part: of(run)[part]) for part in COMPONENTS]  # type: ignore[misc]

    def told(result: SwapResult) -> tuple[str, ...]:
        alone, together = parts(result, lambda r: r.alone), parts(result, lambda r: r.together)
        return (*(draw.four(v) for v in alone), *(draw.four(v) for v in together))

    return Figure(
        f"Change of mean entropy by the four parts of a swap, rate {top_rate(study)}",
        draw.components(
            [
                draw.Parts(
                    result.method,
                    COMPONENTS,
                    parts(result, lambda run: run.alone),
                    parts(result, lambda run: run.together),
                )
                for result in highest_rate(study)
            ]
        ),
        "on the left each part as if it were all that happened; on the right one after the other, "
        "each bar beginning where the one above it ended. Orange raises entropy, blue lowers it.",
        ("method", "rate", *(f"{p}, alone" for p in COMPONENTS), *(f"+ {p}" for p in COMPONENTS)),
        tuple((result.method, _rate(result), *told(result)) for result in study.results),
    )


def groups_figure(study: SwapStudy) -> Figure:
    """Draw which groups are over-represented among targeted persons."""
    labels, everybody = labels_of(study), study.everybody.shares

    def shares(result: SwapResult, of: Callable[[SwapRun], Who]) -> draw.Floats:
        mean: draw.Floats = np.mean([of(run).shares for run in result.runs], axis=0)
        return mean

    def ratio(result: SwapResult) -> draw.Floats:
        # A group may live outside households only; nobody of it can be swapped.
        return shares(result, _targets) / np.where(everybody > 0, everybody, 1)

    table = [("all households", "", *(words.percent(share) for share in everybody))]
    for result in study.results:
        for name, of in (("targets", _targets), ("partners", _partners)):
            found = (words.percent(share) for share in shares(result, of))
            table.append((f"{result.method}: {name}", _rate(result), *found))
    return Figure(
        "Who is targeted",
        draw.ratios(
            [(method, [ratio(one) for one in study.of(method)]) for method in study.methods],
            labels,
        ),
        "each dot is the share of a group among targeted persons divided by its share among all "
        "persons in households: right of ×1 it is targeted more often than its size says. Filled "
        f"dots: rate {top_rate(study)}; hollow dots: lower rates.",
        ("persons of", "rate", *labels),
        tuple(table),
    )


def sizes_figure(study: SwapStudy) -> Figure:
    """Draw the sizes of targeted households beside those of all."""
    classes = [*(str(n) for n in range(1, LARGEST)), f"{LARGEST}+"]
    rows = [("all", "", *_told_sizes([study.everybody]))]
    for result in study.results:
        for name, of in (("targets", _targets), ("partners", _partners)):
            told = _told_sizes([of(run) for run in result.runs])
            rows.append((f"{result.method}: {name}", _rate(result), *told))
    return Figure(
        f"Size of targeted households, rate {top_rate(study)}",
        draw.sizes(
            [
                (result.method, _by_size([run.targets for run in result.runs]))
                for result in highest_rate(study)
            ],
            _by_size([study.everybody]),
            [f"{name} person{'s' * (name != '1')}" for name in classes],
        ),
        "a bar that reaches beyond its mark is a size that is targeted more often than it occurs. "
        "Partners agree with their targets on size where the method matches on it.",
        ("households", "rate", "mean size", *classes),
        tuple(rows),
    )


def mixed_figure(study: SwapStudy) -> Figure:
    """Draw the share of mixed households among targets and partners."""
    everybody = study.everybody.share_mixed
    columns = [
        _by_method(study, lambda run: run.targets.share_mixed, words.percent),
        _by_method(study, lambda run: run.partners.share_mixed, words.percent),
    ]
    joined = [
        (name, [[*one, *other] for one, other in zip(rows, others, strict=True)])
        for (name, rows), (_, others) in zip(*columns, strict=True)
    ]
    return Figure(
        "Households with members of more than one group",
        draw.bars(joined, ["among targets", "among partners"], everybody),
        f"of all households {words.percent(everybody)} are mixed (dashed line).",
        ("method", "rate", "of targets", "of partners", "of all"),
        tuple(
            (
                result.method,
                _rate(result),
                words.percent(result.mean(lambda run: run.targets.share_mixed)),
                words.percent(result.mean(lambda run: run.partners.share_mixed)),
                words.percent(everybody),
            )
            for result in study.results
        ),
    )


def errors_figure(study: SwapStudy) -> Figure:
    """Draw the errors of counts by group over areas."""
    area = words.level_title(study.schema, study.errors_at)
    return Figure(
        f"Errors of counts by {area}, rate {top_rate(study)}",
        draw.boxes(
            [(r.method, np.vstack([run.errors for run in r.runs])) for r in highest_rate(study)],
            labels_of(study),
            f"error of the count of a group in a {area}, after minus before",
        ),
        f"each box holds the middle half of {words.count(len(study.counts))} areas (all runs), "
        "its whiskers 9 of 10, the line in it is the median. Over all areas the errors of a group "
        "add up to zero: swapping moves people, it makes none.",
        ("method", "rate", *labels_of(study)),
        _error_rows(study, "mean_absolute", words.decimal),
    )


def relative_figure(study: SwapStudy) -> Figure:
    """Draw the relative errors by group over areas."""
    area = words.level_title(study.schema, study.errors_at)
    return Figure(
        f"Relative errors by {area}, rate {top_rate(study)}",
        draw.relative_boxes(
            [
                (r.method, np.vstack([relative_errors(study.counts, run.errors) for run in r.runs]))
                for r in highest_rate(study)
            ],
            labels_of(study),
            f"2 × after / (before + after) of the count of a group in a {area}; 1 is no change",
        ),
        "boxes as above. 0 means that all of a group left an area, 2 that all of them are new. The "
        "table has the mean distance from 1.",
        ("method", "rate", *labels_of(study)),
        _error_rows(study, "relative", lambda value: f"{value:.4f}"),
    )


def variance_figure(study: SwapStudy) -> Figure:
    """Draw the variance between runs beside the error against the truth."""

    def bar(result: SwapResult, value: float | None) -> draw.Bar:
        shown, told = (0.0, "–") if value is None else (value, f"{value:.2f}")
        return draw.Bar(_rate(result), shown, shown, shown, told)

    return Figure(
        "Counts of groups in blocks: variance between runs, and error",
        draw.bars(
            [
                (
                    method,
                    [[bar(r, r.variance), bar(r, r.squared_error)] for r in study.of(method)],
                )
                for method in study.methods
            ],
            ["variance between runs", "mean squared error"],
        ),
        f"both are means over {words.count(study.blocks)} blocks with persons and all groups. The "
        "variance tells how much two runs differ from each other, not how far they are from the "
        "truth: a method that always moves the same households varies little and errs much.",
        ("method", "rate", "variance between runs", "mean squared error"),
        tuple(
            (
                result.method,
                _rate(result),
                "–" if result.variance is None else f"{result.variance:.4f}",
                f"{result.squared_error:.4f}",
            )
            for result in study.results
        ),
    )


# -- what figures share ----------------------------------------------------------------------


def _targets(run: SwapRun) -> Who:
    return run.targets


def _partners(run: SwapRun) -> Who:
    return run.partners


def highest_rate(study: SwapStudy) -> list[SwapResult]:
    """Return the result of each method at its highest rate."""
    return [study.of(method)[-1] for method in study.methods]


def top_rate(study: SwapStudy) -> str:
    """Return the highest rate in words."""
    return percent_plain(float(highest_rate(study)[0].rate))


def _rate(result: SwapResult) -> str:
    return percent_plain(float(result.rate))


def labels_of(study: SwapStudy) -> list[str]:
    """Return what the groups are called."""
    table = Table(name="groups", title="", count="persons", by=[study.group], levels=[study.level])
    return [words.code_label(study.schema, table, study.group, code) for code in study.groups]


def _by_method(
    study: SwapStudy, of: Callable[[SwapRun], float], tell: Callable[[float], str]
) -> list[tuple[str, list[list[draw.Bar]]]]:
    """Return one row of one bar per method and rate."""

    def bar(result: SwapResult) -> draw.Bar:
        values = [of(run) for run in result.runs]
        mean = result.mean(of)
        return draw.Bar(_rate(result), mean, min(values), max(values), tell(mean))

    return [(method, [[bar(r)] for r in study.of(method)]) for method in study.methods]


def _by_size(groups: Sequence[Who]) -> draw.Floats:
    """Return the share of households of each size class, all given ones together."""
    counts = np.zeros(LARGEST)
    for who in groups:
        for size, households in who.sizes.items():
            counts[min(max(size, 1), LARGEST) - 1] += households
    shares: draw.Floats = counts / max(counts.sum(), 1)
    return shares


def _told_sizes(groups: Sequence[Who]) -> tuple[str, ...]:
    mean = float(np.mean([who.mean_size for who in groups]))
    return (f"{mean:.2f}", *(words.percent(share) for share in _by_size(groups)))


def _error_rows(
    study: SwapStudy, measure: str, tell: Callable[[float], str]
) -> tuple[tuple[str, ...], ...]:
    rows = []
    for result in study.results:
        tables = [error_table(study, run) for run in result.runs]
        means = [float(np.mean([t[group][measure] for t in tables])) for group in study.groups]
        rows.append((result.method, _rate(result), *(tell(value) for value in means)))
    return tuple(rows)
