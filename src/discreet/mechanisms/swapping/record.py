"""Targeted record swapping in the manner of sdcMicro and of the Office for National Statistics.

After the documentation of `recordSwap` in sdcMicro (Templ, Kowarik and Meindl; Gussenbauer
and de Wolf), itself after the method used in the United Kingdom: households with members
that are rare in an area trade places with households outside of it that are like them.

1. The risk of a household at a level of the hierarchy is one over the smallest number of
   records of its area that are like one of its members.
2. It must be swapped at the first level, largest areas first, at which fewer than k are.
3. As many pairs as the rate asks for are spread over the smallest areas by their size.
4. At each level households stand in an order drawn at random, those at risk rather first.
5. Level by level those who must be swapped take a partner; at the last level also others,
   where that is needed to reach the number of pairs of their area.
6. The partner is the first in that order who is not yet swapped, lives outside the area
   and is similar; profiles of similarity are tried one after the other.

Where we differ: households of all areas of a level are visited in the order drawn, not
area by area, so that a cap does not favour areas by their code; one that finds no partner
is replaced by the next of its area; risks are counted in whole numbers.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from discreet.census import Census, Schema
from discreet.config import suggest
from discreet.mechanisms.swapping import anonymity
from discreet.mechanisms.swapping.donors import (
    Flags,
    Found,
    Free,
    arrivals,
    line_up,
    pair_up,
    words_of,
)
from discreet.mechanisms.swapping.exchange import check_level
from discreet.mechanisms.swapping.households import Households, Swap
from discreet.mechanisms.swapping.listed import ListedSwapping, NotedSwap, pairs_allowed
from discreet.mechanisms.swapping.numbering import Integers, numbered
from discreet.noise import Randomness, key_of


@dataclass(frozen=True)
class Prepared:
    """All that does not change from one draw to the next.

    `alike` has the smallest number of like records per level, `must` the level at which a
    household must be swapped, `profiles` a number per household and profile.
    """

    households: Households
    hierarchy: tuple[str, ...]
    alike: tuple[Integers, ...]
    must: Integers
    profiles: tuple[Integers, ...]
    rate: Fraction
    allowed: Integers | None


class RecordSwapping(ListedSwapping):
    """Swap households that are rare with others that are similar, level by level.

    Only the block moves, and with it everything above. No distance is looked at: to keep
    swaps near, name a level of the spine in a profile.

    Parameters
    ----------
    hierarchy
        Levels of the spine below `within`, from the largest areas to the smallest. It
        gives `leave`, the last of them.
    similar
        Profiles, the first to be tried first: columns of units, or levels of the spine,
        that agree in a pair. What all have in common gives `match`.
    risk_of, risk_variables
        Records that are compared, `persons` (members of households) or `units`, and the
        columns they are compared on.
    k_anonymity
        Who has fewer records alike must be swapped. 0: nobody must.
    cap
        `exact`: never more than 2 floor(rate households / 2) in an area of `within`; those
        who must be swapped come first, and how many are left over is reported. `none`: all
        who must and can be are, and the rate may be exceeded.
    """

    name: ClassVar[str] = "record-swapping"

    hierarchy: Annotated[tuple[str, ...], Field(min_length=1)]
    similar: tuple[tuple[str, ...], ...]
    risk_of: Literal["persons", "units"] = "persons"
    risk_variables: Annotated[tuple[str, ...], Field(min_length=1)]
    k_anonymity: Annotated[int, Field(ge=0, le=1_000_000)] = 3
    cap: Literal["exact", "none"] = "exact"

    @model_validator(mode="before")
    @classmethod
    def _with_derived(cls, given: Any) -> Any:
        """Fill in what follows from hierarchy and profiles; `_decided` checks all of it."""
        schema = given.get("census_schema") if isinstance(given, dict) else None
        if not isinstance(schema, Schema):
            return given
        derived: dict[str, Any] = {"leave": schema.block, "match": ()}
        with suppress(
            TypeError, LookupError, ValueError
        ):  # not of the right shape, as will be said
            if given["hierarchy"][-1] in schema.levels[schema.levels.index(given["within"]) + 1 :]:
                derived["leave"] = given["hierarchy"][-1]
        with suppress(TypeError, LookupError):
            derived["match"] = in_common(given["similar"], schema)
        return {**derived, **given}

    @model_validator(mode="after")
    def _decided(self) -> RecordSwapping:
        schema = self.census_schema
        inside = schema.levels[schema.levels.index(self.within) + 1 :]
        for level in self.hierarchy:
            check_level("hierarchy", level, inside)
        places = [schema.levels.index(level) for level in self.hierarchy]
        if places != sorted(set(places)):
            raise ValueError("hierarchy: name levels from the largest to the smallest, each once")
        if self.leave != self.hierarchy[-1]:
            raise ValueError("leave is the last level of the hierarchy: leave it out")
        if not self.similar or not all(self.similar):
            raise ValueError("similar: give at least one profile, each of at least one column")
        for profile in self.similar:
            self._check_columns("similar", profile, "units", inside)
        shared = [level for level in inside if all(level in one for one in self.similar)]
        if shared:
            raise ValueError(
                f"similar: all profiles name '{shared[-1]}', so whatever is counted there stays "
                f"exact: write `within: {shared[-1]}` instead, and it is declared"
            )
        if self.match != in_common(self.similar, schema):
            raise ValueError("match is what all profiles have in common: leave it out")
        self._check_columns("risk_variables", self.risk_variables, self.risk_of, [])
        return self

    def _check_columns(
        self,
        field: str,
        columns: tuple[str, ...],
        table: Literal["units", "persons"],
        levels: list[str],
    ) -> None:
        schema = self.census_schema
        known = {*schema.variables(table), *schema.computed(table), *levels}
        for column in columns:
            if column not in known:
                raise ValueError(
                    f"{field}: {table} have no column '{column}'.{suggest(column, known)}"
                )
        if len(set(columns)) != len(columns):
            raise ValueError(f"{field} names a column twice")

    def method(self) -> str:
        """Return which method this is."""
        return "targeted record swapping in the manner of sdcMicro, not its program"

    def columns(self) -> tuple[str, ...]:
        """Return the columns of units in profiles and risk variables."""
        named = [column for profile in self.similar for column in profile]
        named += self.risk_variables if self.risk_of == "units" else ()
        return tuple(name for name in named if name not in self.census_schema.levels)

    def levels(self) -> tuple[str, ...]:
        """Return the hierarchy, and the levels in profiles."""
        named = [name for profile in self.similar for name in profile]
        return (*self.hierarchy, *(n for n in named if n in self.census_schema.levels))

    def check(self, census: Census) -> None:
        """Refuse a census without a column the method looks at, or without partners."""
        super().check(census)
        census.frame(self.risk_of, self.risk_variables)

    @property
    def capped(self) -> bool:
        """Whether no more pairs are made than the rate allows."""
        return self.cap == "exact"

    # -- preparing and pairing ------------------------------------------------------------

    def prepare(self, census: Census, households: Households | None = None) -> Prepared:
        """Return all that the pass needs and that does not change from draw to draw."""
        households = households or self.read(census)
        if self.risk_of == "units":
            records = anonymity.of_units(households, self.risk_variables)
        else:
            records = anonymity.of_persons(census, households, self.risk_variables)
        alike = tuple(anonymity.fewest_alike(households, records, n) for n in self.hierarchy)
        area = households.level(self.within)
        profiles = []
        for profile in self.similar:
            values = [
                households.level(n) if n in self.census_schema.levels else households.columns[n]
                for n in profile
            ]
            profiles.append(numbered([area, *values])[0])
        return Prepared(
            households,
            self.hierarchy,
            alike,
            anonymity.must_swap(alike, self.k_anonymity),
            tuple(profiles),
            self.rate,
            pairs_allowed(households, self) if self.cap == "exact" else None,
        )

    def swap(
        self, census: Census, households: Households, rng: Randomness, threads: int = 1
    ) -> Swap:
        """Choose the pairs."""
        return pair(self.prepare(census, households), rng)


def in_common(profiles: Any, schema: Schema) -> tuple[str, ...]:
    """Return the columns of units that all profiles name, in the order of the first.

    Levels of the spine are left out: they say where a partner lives, not what it is like.
    """
    return tuple(
        name
        for name in profiles[0]
        if schema.home(name, "units") == "units" and all(name in profile for profile in profiles)
    )


def pair(prepared: Prepared, rng: Randomness, replicate: int = 0) -> NotedSwap:
    """Draw the pairs once; each replicate reads tapes of its own."""
    households, must = prepared.households, prepared.must
    last = len(prepared.hierarchy) - 1
    left = _left(prepared, rng, replicate)
    passes: list[Found] = []
    for number, level in enumerate(prepared.hierarchy):
        words = words_of(households, rng, f"record-swap-{level}", replicate)
        order = np.argsort(arrivals(words, 1 / prepared.alike[number]), kind="stable")
        lists = line_up([(profile, order) for profile in prepared.profiles])
        area = households.level(level)
        # Who found nobody outside a large area may find somebody outside the smallest.
        due = must[order] <= last if number == last else must[order] == number
        passes.append(pair_up(order[due], lists, area, left, False))
        if number == last:
            passes.append(pair_up(order[~due], lists, area, left, True))
            if prepared.allowed is not None:  # pairs an area could not make go to others
                passes.append(pair_up(order[~due], lists, area, left, False))
    targets, partners, family, alone = (
        np.concatenate(parts) for parts in zip(*passes, strict=True)
    )
    partner = np.arange(households.size)
    partner[targets], partner[partners] = partners, targets
    alone = np.unique(alone)
    alone = alone[left.free[alone]]
    return NotedSwap(partner, targets, alone, _notes(prepared, family, alone, left.free))


def _left(prepared: Prepared, rng: Randomness, replicate: int) -> Free:
    """Return what there is before the first pass: everybody free, all pairs to be made."""
    households = prepared.households
    codes, sizes = households.area_codes, np.diff(households.offsets)
    keys = key_of(codes, [str(replicate)] * len(codes))
    two = np.full(len(codes), 2)
    words = rng.words("record-swap-rounding", keys, np.zeros_like(two), two).tolist()
    area = households.level(households.places.within)
    home = households.level(prepared.hierarchy[-1])
    quota = np.zeros(int(home.max(initial=0)) + 1, dtype=np.int64)
    allowed = prepared.allowed
    for a, size in enumerate(sizes.tolist()):
        first, coin, word = int(households.offsets[a]), words[2 * a], words[2 * a + 1]
        wanted = prepared.rate * size / 2
        up = allowed is None and coin < 2**63
        homes, counts = np.unique(home[first : first + size], return_counts=True)
        quota[homes] = spread(ceil(wanted) if up else int(wanted), counts, word)
    if allowed is None:
        allowed = np.full(len(households.places.codes), households.size)
    free = np.ones(households.size, dtype=np.bool_)
    return Free(free, area, allowed.copy(), home, quota)


def spread(pairs: int, sizes: Integers, word: int) -> Integers:
    """Spread pairs over areas in proportion to their sizes, rounded up or down by one word.

    Systematic sampling: each area has pairs * size / all on average, and they add up.

    >>> spread(7, np.array([10, 20, 5]), 2**63).tolist()
    [2, 4, 1]
    """
    total = int(sizes.sum())
    reached = (np.cumsum(sizes) * pairs + (word * total >> 64)) // max(total, 1)
    return np.diff(reached, prepend=0)


def _notes(prepared: Prepared, family: Integers, alone: Integers, free: Flags) -> Counter[str]:
    """Return counts of what was done, for the internal report."""
    must, last = prepared.must, len(prepared.hierarchy) - 1
    notes = Counter[str]()
    for number, level in enumerate(prepared.hierarchy):
        notes[f"must_be_swapped_by_{level}"] = int((must == number).sum())
    notes["must_be_swapped_but_left"] = int(((must <= last) & free).sum())
    notes["must_be_swapped_but_without_partner"] = int((must[alone] <= last).sum())
    for number in range(len(prepared.profiles)):
        notes[f"pairs_by_profile_{number + 1}"] = int((family == number).sum())
    return notes
