"""Look for counts that come out exactly although nobody declared them.

Two censuses of one universe are released R times each. A count that is constant for one of
them, and constant at another value for the other, tells the two apart for certain: it is exact
and was not declared, for what is declared is equal in both.

A promise bounds the total variation TV of the two laws: tanh(epsilon d / 2) for pure loss, and
sqrt(rho d^2 / 2) for zCDP (Pinsker). A count with chances p of one value from the first census
and q of another from the second has p + q <= 1 + TV, so a count that may change is constant both
times with a chance of at most ((1 + TV) / 2)^(2 (R - 1)).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from discreet.census import Census, person_columns, unit_columns
from discreet.mechanisms import Mechanism
from discreet.noise import trial
from discreet.spec import Specification
from neighbours.watch import Watch, watching

Counts = dict[Hashable, int]

#: Counts looked at in one release at most, and the chance of a false alarm over all of them.
MOST_COUNTS, FALSE_ALARM = 200_000, 1e-6


class Undeclared(AssertionError):
    """A count is exact, and follows from nothing that is declared."""


def variation(specification: Specification, distance: int) -> float:
    """Return a bound on the total variation of releases of two censuses so far apart."""
    amount, budget = specification.budget.amount, specification.budget
    if budget.unit == "rho2":
        return math.sqrt(float(amount.of) * distance**2 / 2)
    return math.tanh(amount.value() * distance / 2)


def repetitions(tv: float) -> int:
    """Return how many releases of each census keep false alarms below `FALSE_ALARM` together."""
    return 1 + math.ceil(math.log(FALSE_ALARM / MOST_COUNTS) / (2 * math.log((1 + tv) / 2)))


def counts_of(census: Census) -> Counts:
    """Return all counts of records by up to three columns, at every level."""
    found: Counts = Counter()
    for table, own in (("units", unit_columns), ("persons", person_columns)):
        frame = census.units if table == "units" else census.persons
        if frame is None:
            continue
        columns, levels = own(census), census.schema.levels
        rows = census.engine.rows(
            census.frame(table, [*levels, *columns]).select(*levels, *columns)
        )
        for row in rows:
            areas, values = row[: len(levels)], row[len(levels) :]
            found.update(_cells(table, levels, areas, columns, values))
    return found


def _cells(table: str, levels: list, areas: tuple, columns: list, values: tuple) -> Iterator:
    """Yield the cells in which one record is counted."""
    told = [*zip(columns, values, strict=True)]
    some = [cell for size in range(4) for cell in combinations(told, size)]
    for place in [("all", ""), *zip(levels, areas, strict=True)]:
        for cell in some:
            yield (table, place, cell)


@dataclass
class Seen:
    """What the counts of releases of one census were: the first values, and those that changed."""

    first: Counts | None = None
    changed: set[Hashable] = field(default_factory=set)

    def add(self, counts: Counts) -> None:
        """Look at one more release; a count that is not there is 0."""
        if self.first is None:
            self.first = counts
            return
        for name in self.first.keys() | counts.keys():
            if self.first.get(name, 0) != counts.get(name, 0):
                self.changed.add(name)

    def names(self) -> set[Hashable]:
        """Return all counts that were seen not to be 0."""
        return {*(self.first or {}), *self.changed}


def told_apart(one: Seen, other: Seen) -> list[Hashable]:
    """Return the counts that are constant for both, at different values."""
    names = (one.names() | other.names()) - one.changed - other.changed
    before, after = one.first or {}, other.first or {}
    return [name for name in names if before.get(name, 0) != after.get(name, 0)]


def released(made: Mechanism, census: Census, seed: int, folder: Path) -> Counts:
    """Return every number that was drawn, and every count of the records that were written."""
    watch, draw = Watch(trial(seed)), folder / "draw"
    with watching(watch):
        made.draw(census, watch, draw)
    found: Counts = {("number", at): number.value for at, number in watch.numbers.items()}
    where = draw
    if made.name == "topdown":
        made.publish(draw, folder / "out", census.engine)
        where = folder / "out"
    if (where / "microdata").is_dir():
        found |= counts_of(Census.open(where / "microdata", census.engine))
    assert len(found) < MOST_COUNTS
    return found


def search(
    made: Mechanism,
    pair: tuple[Census, Census],
    times: int,
    new_folder: Callable[[], Path],
) -> tuple[list[Hashable], float]:
    """Return the counts that tell two censuses apart, and the share of counts that could."""
    seen = []
    for which, census in enumerate(pair):
        made.check(census)
        seen.append(Seen())
        # Seeds of their own for each census: the bound rests on independent releases.
        for seed in range(which * times, (which + 1) * times):
            seen[-1].add(released(made, census, seed, new_folder()))
    truth = [counts_of(census) for census in pair]
    names = truth[0].keys() | truth[1].keys()
    differing = sum(truth[0].get(name, 0) != truth[1].get(name, 0) for name in names)
    return told_apart(*seen), differing / max(1, len(names))
