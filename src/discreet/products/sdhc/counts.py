"""Add kinds up to the cells of every table and level, empty ones too, and check that all fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.census import Census
from discreet.errors import BadInput
from discreet.products.sdhc.groups import ITERATIONS, LEVELS, regions_of
from discreet.products.sdhc.recode import PERSON_KINDS, UNIT_KINDS, Numbers
from discreet.products.sdhc.shells import SHELLS, Shell
from discreet.products.sdhc.tally import MEND, Entries, Tally, tally_census
from discreet.products.sdhc.truncate import Cut


def count_tables(
    census: Census, thresholds: Mapping[str, int], states: Sequence[str]
) -> dict[tuple[str, str], Numbers]:
    """Return the exact counts of all tables and levels: no noise, so they are confidential.

    Tables of persons without a threshold are left out. Refuses a census in which a record
    lies in no cell of a table.
    """
    tables = [n for n, shell in SHELLS.items() if shell.counts == "units" or n in thresholds]
    tally = tally_census(census, thresholds, states, tables)
    check_cells(tally, tables)
    return {
        (name, level): counts_of(tally, name, level, thresholds.get(name))
        for name in tables
        for level in SHELLS[name].levels
    }


def counts_of(tally: Tally, table: str, level: str, threshold: int | None = None) -> Numbers:
    """Return the counts of a table at a level: regions x iteration codes x basis cells.

    Regions are those of `regions_of`, iteration codes those of the level, each in order, as
    `labels` lists them.
    """
    shell, key = SHELLS[table], (table, threshold)
    if key not in tally.bases:
        tally.bases[key] = _base(shell, _entries(tally, table, threshold), len(tally.states))
    base = tally.bases[key]
    if LEVELS[level].region_type == "USA":
        base = base.sum(axis=0, keepdims=True)
    codes = LEVELS[level].iterations
    return np.stack([_group(shell, base, code) for code in codes], axis=1)


def _entries(tally: Tally, table: str, threshold: int | None) -> Entries:
    """Return what a table counts, without what its truncation leaves out."""
    shell = SHELLS[table]
    if shell.counts == "units":
        return tally.units
    if threshold is None:
        raise BadInput(f"table {table} counts persons, so it needs a threshold.")
    return tally.persons + -tally.cuts[Cut.of(shell.persons, threshold)]


def cells_of(level: str, table: str, states: Sequence[str]) -> int:
    """Return how many basis cells a table has at a level."""
    regions, codes = regions_of(level, states), LEVELS[level].iterations
    return len(regions) * len(codes) * len(SHELLS[table].cells)


def labels(table: str, level: str, states: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return `region_type`, `region`, `iteration` and `cell` of the counts, in their order."""
    regions, codes = regions_of(level, states), LEVELS[level].iterations
    cells = np.array([*SHELLS[table].cells], dtype=np.int64)
    iterations = np.repeat(np.array(codes, dtype=object), cells.size)
    rows = len(regions) * iterations.size
    return {
        "region_type": np.full(rows, LEVELS[level].region_type, dtype=object),
        "region": np.repeat(np.array(regions, dtype=object), iterations.size),
        "iteration": np.tile(iterations, len(regions)),
        "cell": np.tile(cells, len(regions) * len(codes)),
    }


def _passing(shell: Shell, entries: Entries) -> Entries:
    """Return the entries that pass the filters of a table."""
    return entries.where(
        PERSON_KINDS.meets(entries.person, shell.persons)
        & UNIT_KINDS.meets(entries.unit, shell.units)
    )


def _cell(shell: Shell, entries: Entries) -> Numbers:
    """Return the place of the cell each entry lies in, -1 where there is none."""
    cell = np.full(entries.unit.size, -1)
    for place, one in enumerate(shell.cells.values()):
        inside = PERSON_KINDS.meets(entries.person, one.where)
        inside &= UNIT_KINDS.meets(entries.unit, one.where)
        cell[inside] = place
    return cell


def _race(shell: Shell, entries: Entries) -> tuple[Numbers, Numbers]:
    """Return the classes of race and Hispanic origin that tell the population group."""
    if shell.race_of == "person":
        kinds, of, before = PERSON_KINDS, entries.person, ""
    else:
        kinds, of, before = UNIT_KINDS, entries.unit, "householder_"
    return kinds.class_of(of, f"{before}race"), kinds.class_of(of, f"{before}hispanic")


def _base(shell: Shell, entries: Entries, states: int) -> Numbers:
    """Return the counts by state, class of race, class of Hispanic origin, and cell."""
    entries = _passing(shell, entries)
    cell = _cell(shell, entries)
    race, hispanic = _race(shell, entries)
    sizes = tuple(UNIT_KINDS.axes[place].size for place in (-2, -1))
    shape = (states, *sizes, len(shell.cells))
    flat = np.ravel_multi_index((entries.state, race, hispanic, cell), shape)
    base = np.zeros(shape, dtype=np.int64)
    np.add.at(base.reshape(-1), flat, entries.count)
    return base


def _group(shell: Shell, base: Numbers, code: str) -> Numbers:
    """Return the counts of one population group: regions x cells."""
    if code == "*":
        return np.asarray(base.sum(axis=(1, 2)))
    where, before = ITERATIONS[code], "" if shell.race_of == "person" else "householder_"
    kinds = PERSON_KINDS if shell.race_of == "person" else UNIT_KINDS
    for place, column in enumerate(("race", "hispanic"), start=1):
        axis = kinds.axis(before + column)
        meant = axis.meant(where[column]) if column in where else list(range(axis.size))
        base = np.take(base, meant, axis=place)
    return np.asarray(base.sum(axis=(1, 2)))


# -- records that lie in no cell ------------------------------------------------------------


def check_cells(tally: Tally, tables: Sequence[str]) -> None:
    """Refuse records that some table has no cell for, naming table, rule and their number."""
    homeless = tally.persons.where(UNIT_KINDS.meets(tally.persons.unit, {"kind": ("vacant",)}))
    if homeless.count.size:
        raise BadInput(
            f"persons: {homeless.count.sum()} live in a vacant unit, which has no household "
            f"type. {MEND}"
        )
    for name in tables:
        shell = SHELLS[name]
        entries = tally.persons if shell.counts == "persons" else tally.units
        _check_filters(shell, entries)
        _check_table(shell, _passing(shell, entries))


def _check_filters(shell: Shell, entries: Entries) -> None:
    """Refuse records of which a filter cannot tell whether they belong to a table."""
    for column in (*shell.persons, *shell.units):
        persons, units = (
            {name: allowed for name, allowed in where.items() if name != column}
            for where in (shell.persons, shell.units)
        )
        others = replace(shell, persons=persons, units=units)
        passing = _passing(others, entries)
        of_person = column in shell.persons
        kinds, of = (PERSON_KINDS, passing.person) if of_person else (UNIT_KINDS, passing.unit)
        lost = passing.where(kinds.class_of(of, column) == 0)
        if lost.count.size:
            raise BadInput(
                f"table {shell.name}: {lost.count.sum()} {shell.counts} may belong to it or not, "
                f"because {column} is missing or not legal. {MEND}"
            )


def _check_table(shell: Shell, entries: Entries) -> None:
    lost = entries.where(_cell(shell, entries) < 0)
    if lost.count.size:
        raise BadInput(
            f"table {shell.name}: {lost.count.sum()} {shell.counts} lie in no cell, because "
            f"{shell.rule}. {MEND}"
        )
    if shell.race_of is None:
        return
    race, hispanic = _race(shell, entries)
    lost = entries.where((race == 0) | (hispanic == 0))
    if lost.count.size:
        who = "the person" if shell.race_of == "person" else "the householder"
        raise BadInput(
            f"table {shell.name}: {lost.count.sum()} {shell.counts} are in no population group, "
            f"because {who} is missing or has no legal race and Hispanic origin. {MEND}"
        )
