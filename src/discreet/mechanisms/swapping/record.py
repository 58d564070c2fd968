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

from contextlib import suppress
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from discreet.census import OF_RECORD_IN_UNIT, Census, Schema, check_matched, needs
from discreet.config import suggest
from discreet.mechanisms.numbering import numbered
from discreet.mechanisms.swapping import anonymity
from discreet.mechanisms.swapping.fields import check_level
from discreet.mechanisms.swapping.households import Households, Swap
from discreet.mechanisms.swapping.listed import ListedSwapping, pairs_allowed
from discreet.mechanisms.swapping.listed_law import record_law
from discreet.mechanisms.swapping.pair_law import Counts, law_of_release
from discreet.mechanisms.swapping.record_pass import Prepared, pair
from discreet.noise import Randomness


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
        that agree in a pair. One of them is the weakest: what it names follows from every
        other. All pairs agree on it, so it gives `match`, which is exact and declared.
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
            weakest = weakest_of(given["similar"], schema) or ()
            derived["match"] = tuple(name for name in weakest if name not in schema.levels)
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
            own = [name for name in profile if name not in inside]
            check_matched(schema, "units", own, "similar")
        weakest = weakest_of(self.similar, schema)
        if weakest is None:
            # What two profiles share without naming it would stay exact and not be declared.
            raise ValueError(
                "similar: what one of the profiles names must follow from each of the others, so "
                "that what all pairs agree on can be declared: add a profile of the columns that "
                "all others name"
            )
        shared = [level for level in inside if level in weakest]
        if shared:
            raise ValueError(
                f"similar: all profiles keep pairs inside one {shared[-1]}, so whatever is counted "
                f"there stays exact: write `within: {shared[-1]}` instead, and it is declared"
            )
        if self.match != weakest:
            raise ValueError("match is the weakest of the profiles: leave it out")
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
        OF_RECORD_IN_UNIT.check(schema, table, columns, field)
        if len(set(columns)) != len(columns):
            raise ValueError(f"{field} names a column twice")

    def method(self) -> str:
        """Return which method this is."""
        return (
            "targeted record swapping in the manner of sdcMicro, not its program: our "
            "reconstruction from its documentation"
        )

    @property
    def ours(self) -> bool:
        """Return yes: the documentation says what is done, not how."""
        return True

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
        """Choose the pairs; `threads` changes nothing."""
        return pair(self.prepare(census, households), rng)

    def law(self, census: Census) -> dict[Counts, Fraction]:
        """Return the probability of every released data set of a tiny census."""
        prepared = self.prepare(census)
        return law_of_release(census, prepared.households, lambda a: record_law(prepared, a))


def weakest_of(profiles: Any, schema: Schema) -> tuple[str, ...] | None:
    """Return the profile that follows from every other one, if there is one."""
    for weakest in profiles:
        if all(_implied(name, profile, schema) for profile in profiles for name in weakest):
            return tuple(weakest)
    return None


def _implied(name: str, profile: Any, schema: Schema) -> bool:
    """Return whether units that agree on a profile certainly agree on a column or level."""
    if name in profile:
        return True
    if name in schema.levels:
        return any(finer in profile for finer in schema.levels[schema.levels.index(name) :])
    inputs = needs(schema, "units", name)
    return bool(inputs) and all(_implied(one, profile, schema) for one in inputs)
