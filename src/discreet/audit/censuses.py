"""Verify a mechanism on censuses small enough to write its law down.

Universes follow from the invariants of the specification, distances from its input
premetric. Data sets are known by their place in the list: a verdict shows no data.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.audit.exact import Measure, Verdict, between, judge, pairs
from discreet.audit.shifts import Shift, distance_of_shifts
from discreet.errors import BadInput
from discreet.spec import Budget, InputPremetric, OutputPremetric, Specification

if TYPE_CHECKING:  # these rooms are slow to open, and the verifier is often used without
    from discreet.census import Census
    from discreet.mechanisms import Mechanism, NoisyTables

#: The cells of all tables of a release with the law of their noise: (query, cell) -> count.
Counts = Mapping[tuple[int, Hashable], int]


def verify_mechanism(
    mechanism: Mechanism, censuses: Sequence[Census], specification: Specification | None = None
) -> Verdict:
    """Tell whether a mechanism satisfies a specification on the given censuses.

    Without a specification its own promise is checked, with the facts of each universe.
    A mechanism with a written law (`Enumerable`) and noisy tables can be verified.
    """
    own = mechanism.specify()
    asked = specification or own
    if asked.domain != own.domain:
        raise BadInput(
            "the mechanism and the specification have different domains: a promise about other "
            "data sets says nothing about this mechanism."
        )
    _check_premetric(asked.input_premetric)
    records = [_records(census, asked.input_premetric.unit) for census in censuses]
    universes = [_universe(census, asked) for census in censuses]
    compared = pairs(
        range(len(censuses)),
        lambda one, other: asked.input_premetric.distance(records[one], records[other]),
        _measure(mechanism, censuses, asked.output_premetric),
        lambda place: universes[place],
    )

    def budget(universe: Hashable) -> Budget:
        if specification is not None:
            return specification.budget
        census = censuses[universes.index(universe)]
        return mechanism.specify(mechanism.facts(census)).budget

    return judge(compared, asked.output_premetric, budget)


def _check_premetric(premetric: InputPremetric) -> None:
    if premetric.properties.ordered is not False:
        raise BadInput(
            f"the order of records counts in {premetric.name}, and a census has none: give the "
            f"distances yourself (`verify`)."
        )
    if premetric.counts == "contributors":
        raise BadInput("a census does not tell who stands behind which record.")


def _records(census: Census, unit: str) -> list[str]:
    """Return the records of a census at the resolution of a unit, with their location."""
    from discreet.census import person_columns, unit_records

    block, engine = census.schema.block, census.engine
    if unit == "household":
        rows = census.frame("units", ["unit_id", block])
        rows = rows.join(unit_records(census), on="unit_id", how="inner")
        columns = [block, "record"]
    elif unit == "person":
        columns = [block, *person_columns(census)]
        rows = census.frame("persons", columns)
    else:
        raise BadInput(f"records of the unit '{unit}' are not known; use household or person.")
    written = engine.fingerprint(rows, list(dict.fromkeys(columns)), "written")
    return sorted(str(row[0]) for row in engine.rows(written.select("written")))


def _universe(census: Census, specification: Specification) -> Hashable:
    """Return what the invariants publish about a census."""
    from discreet.products import invariant_counts

    return tuple(
        frozenset(census.engine.rows(invariant_counts(census, invariant)))
        for invariant in specification.multiverse.invariants
    )


def _measure(
    mechanism: Mechanism, censuses: Sequence[Census], output: OutputPremetric
) -> Measure[int]:
    from discreet.mechanisms import Enumerable, NoisyTables

    if isinstance(mechanism, Enumerable):
        return between({i: mechanism.law(c) for i, c in enumerate(censuses)}, output)
    if not isinstance(mechanism, NoisyTables):
        raise BadInput(
            f"the mechanism '{mechanism.name}' has no law that could be written down; audit it "
            f"by sampling."
        )
    counts = [_counts(mechanism, census) for census in censuses]
    return lambda one, other: distance_of_shifts(
        output, _shifts(mechanism, counts[one], counts[other])
    )


def _counts(mechanism: NoisyTables, census: Census) -> Counts:
    """Return the exact counts of every query, empty cells left out."""
    from discreet.products import tabulate

    counts: dict[tuple[int, Hashable], int] = {}
    for place, query in enumerate(mechanism.queries):
        frame = tabulate(census, query.table, query.level)
        by = census.schema.table(query.table).by
        for *cell, count in census.engine.rows(frame.select("area", *by, "count")):
            counts[place, tuple(cell)] = int(count)
    return counts


def _shifts(mechanism: NoisyTables, one: Counts, other: Counts) -> list[Shift]:
    parameters: list[Fraction] = [mechanism.parameter(query) for query in mechanism.queries]
    shifts = []
    for place, cell in {**one, **other}:
        by = other.get((place, cell), 0) - one.get((place, cell), 0)
        if by:
            shifts.append(Shift(mechanism.noise, parameters[place], by))
    return shifts
