"""What swapping pairs of households does: to mixing, to whom, to counts, from run to run.

The statistics of Ballesteros, Dwork, King, Olson and Raghavan (2025), "Evaluating the
Impacts of Swapping on the US Decennial Census", section 4, for any mechanism that swaps
pairs, any grouping of persons and any levels of a schema. Errors are after minus before;
the paper has the other sign.

Everything is computed from arrays; no release is written. It compares with the truth and
looks at who was swapped, so simulated data are taken and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from discreet.census import Census, check_structure
from discreet.config import suggest
from discreet.errors import BadInput
from discreet.evaluate.entropy import entropies
from discreet.evaluate.people import Integers, People, check_group, read_people, summed
from discreet.evaluate.swap_results import (
    COMPONENTS,
    Floats,
    SwapResult,
    SwapRun,
    SwapStudy,
    Who,
)
from discreet.mechanisms import Mechanism, swapping
from discreet.noise import trial

#: Told the part done (0 to 1) and what comes now.
Progress = Callable[[float, str], None]

#: Shares of pairs below which a distance is told.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def study_swaps(
    census: Census,
    mechanisms: Mapping[str, Sequence[Mechanism]],
    runs: int = 2,
    seed: int = 1,
    *,
    group: str = "race_group",
    level: str = "tract",
    errors_at: str = "county",
    threads: int = 1,
    progress: Progress | None = None,
) -> SwapStudy:
    """Swap a simulated census by each mechanism, several times, and measure what happened.

    Parameters
    ----------
    census
        A simulated census whose persons are linked to units.
    mechanisms
        Mechanisms that swap pairs, by the name of the method: one for each rate.
    runs, seed
        Run number i of every mechanism uses seed + i - 1.
    group
        Column of persons that sorts them into groups.
    level, errors_at
        Levels of the spine: of areas whose entropy is taken, and of areas whose errors are.
    threads, progress
        Cores to use; what is told meanwhile.
    """
    say = progress or (lambda part, step: None)
    todo = _checked(census, mechanisms, runs, (level, errors_at), group)
    say(0.0, "reading persons")
    look = _Look(census, read_people(census, group, (level, errors_at)), level, errors_at)
    results = []
    for done, (name, made) in enumerate(todo):
        say(0.1 + 0.9 * done / len(todo), f"{name}, rate {100 * float(made.rate):.3g} %")
        results.append(look.result(name, made, [seed + run for run in range(runs)], threads))
    people = look.people
    return SwapStudy(
        schema=census.schema,
        group=group,
        groups=people.groups,
        level=level,
        errors_at=errors_at,
        areas=int((look.before.sum(axis=1) > 0).sum()),
        blocks=int(look.lived_in.sum()),
        entropy=mean_entropy(look.before),
        everybody=look.everybody,
        persons=people.blocks.sum(axis=0),
        counts=people.at(errors_at, people.blocks),
        results=tuple(results),
    )


def _checked(
    census: Census,
    mechanisms: Mapping[str, Sequence[Mechanism]],
    runs: int,
    levels: tuple[str, str],
    group: str,
) -> list[tuple[str, swapping.PairSwapping]]:
    """Refuse what cannot be studied; return the mechanisms with their names."""
    if census.origin != "simulated":
        raise BadInput(
            "a study of swaps compares with the truth and looks at who was swapped, so it takes "
            "simulated data only. Simulate a census with `discreet simulate`."
        )
    if runs < 1:
        raise BadInput("runs: must be at least 1; two or more for the variance between runs.")
    for level in levels:
        if level not in census.schema.levels:
            raise BadInput(
                f"schema {census.schema.name} has no level '{level}' on its spine."
                f"{suggest(level, census.schema.levels)}"
            )
    check_group(census, group)
    check_structure(census)
    found = []
    for name, listed in mechanisms.items():
        for made in listed:
            if not isinstance(made, swapping.PairSwapping):
                raise BadInput(f"{name}: {made.name} does not swap pairs of households.")
            if made.census_schema != census.schema:
                raise BadInput(f"{name} is set up for another schema than the census has.")
            made.check(census)
            found.append((name, made))
    return found


class _Look:
    """A census with all that is the same for every mechanism and run."""

    def __init__(self, census: Census, people: People, level: str, errors_at: str) -> None:
        self.census, self.people, self.level, self.errors_at = census, people, level, errors_at
        self.before = people.at(level, people.blocks)
        self.lived_in = people.blocks.sum(axis=1) > 0
        occupied = {"kind": list(census.schema.kinds.occupied)}
        units = census.frame("units", ["unit_id"], where=occupied)
        self.everybody = who(people.of_units(census.engine.to_numpy(units)["unit_id"]))

    def result(
        self, name: str, made: swapping.PairSwapping, seeds: Sequence[int], threads: int
    ) -> SwapResult:
        """Draw all runs of one mechanism."""
        households = made.read(self.census)
        members = self.people.of_units(households.unit_id)
        found, changes = [], []
        for seed in seeds:
            swap = made.swap(self.census, households, trial(seed), threads)
            run, change = self.run(seed, households, members, swap)
            found.append(run)
            changes.append(change[self.lived_in])
        stacked = np.stack(changes).astype(np.float64)
        variance = float(stacked.var(axis=0, ddof=1).mean()) if len(seeds) > 1 else None
        squared = float((stacked**2).mean())
        return SwapResult(name, made.method(), made.rate, tuple(found), variance, squared)

    def run(
        self, seed: int, households: swapping.Households, members: Integers, swap: swapping.Swap
    ) -> tuple[SwapRun, Integers]:
        """Measure one draw; also return the changes of counts by block and group."""
        targets, partners = swap.targets, swap.partner[swap.targets]
        here, there = households.place[targets], households.place[partners]
        blocks = self.people.blocks.shape[0]
        moves = (
            (-1, targets, here),
            (-1, partners, there),
            (1, targets, there),
            (1, partners, here),
        )
        parts = {
            part: sign * summed(place, members[rows], blocks)
            for part, (sign, rows, place) in zip(COMPONENTS, moves, strict=True)
        }
        change = sum(parts.values(), np.zeros_like(self.people.blocks))
        after = self.before + self.people.at(self.level, change)
        rose, fell = _rose_and_fell(self.before, after)
        alone, together = self._steps(parts)
        several = len(self.people.groups)
        exchanged = np.zeros((several + 1, several + 1), dtype=np.int64)
        np.add.at(exchanged, (class_of(members[targets]), class_of(members[partners])), 1)
        run = SwapRun(
            seed=seed,
            entropy=mean_entropy(after),
            rose=rose,
            fell=fell,
            alone=alone,
            together=together,
            targets=who(members[targets]),
            partners=who(members[partners]),
            exchanged=exchanged,
            errors=self.people.at(self.errors_at, change),
            kilometres=_spread(households.places, here, there),
            swapped=int((swap.partner != np.arange(swap.partner.size)).sum()),
            without_partner=int(swap.without_partner.size),
        )
        return run, change

    def _steps(self, parts: Mapping[str, Integers]) -> tuple[dict[str, float], dict[str, float]]:
        """Return the change of mean entropy by each part alone, and by all up to it."""
        start, table = mean_entropy(self.before), self.before
        alone, together = {}, {}
        for part, by_block in parts.items():
            moved = self.people.at(self.level, by_block)
            table = table + moved
            alone[part] = mean_entropy(self.before + moved) - start
            together[part] = mean_entropy(table) - start
        return alone, together


def mean_entropy(table: Integers) -> float:
    """Return the unweighted mean entropy of the rows that are not empty.

    Natural logarithm, 0 log 0 = 0.

    >>> round(mean_entropy(np.array([[1, 1], [7, 0], [0, 0]])), 4)
    0.3466
    """
    values = _row_entropies(table)
    return float(values[~np.isnan(values)].mean()) if values.size else 0.0


def _row_entropies(table: Integers) -> Floats:
    """Return the entropy of each row; not a number where it is empty."""
    values = np.full(table.shape[0], np.nan)
    row, column = np.nonzero(table)
    lived_in, place = np.unique(row, return_inverse=True)
    values[lived_in] = entropies(table[row, column].astype(np.float64), place)
    return values


def _rose_and_fell(before: Integers, after: Integers) -> tuple[int, int]:
    """Return in how many areas entropy rose and fell; the last digits are rounding."""
    change = _row_entropies(after) - _row_entropies(before)
    return int((change > 1e-12).sum()), int((change < -1e-12).sum())


def who(members: Integers) -> Who:
    """Describe some households by their members."""
    sizes, counts = np.unique(members.sum(axis=1), return_counts=True)
    return Who(
        households=members.shape[0],
        persons=members.sum(axis=0),
        sizes=dict(zip(sizes.tolist(), counts.tolist(), strict=True)),
        mixed=int(((members > 0).sum(axis=1) > 1).sum()),
    )


def class_of(members: Integers) -> Integers:
    """Return the number of the only group of each household, else the number of groups.

    >>> class_of(np.array([[2, 0], [0, 1], [1, 1]])).tolist()
    [0, 1, 2]
    """
    alike = (members > 0).sum(axis=1) == 1
    found: Integers = np.where(alike, members.argmax(axis=1), members.shape[1])
    return found


def _spread(places: swapping.Places, here: Integers, there: Integers) -> dict[str, float]:
    """Return how far apart the blocks of the pairs are; nothing without points."""
    if places.latitude is None or not here.size:
        return {}
    apart = swapping.kilometres(places, here, there)
    told = {f"{q:.0%}": float(np.quantile(apart, q)) for q in QUANTILES}
    return {**told, "mean": float(apart.mean())}
