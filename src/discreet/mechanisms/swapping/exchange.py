"""What all mechanisms that swap pairs of households share.

A pair trades blocks, and with the block everything above it; all else stays with the
household. Vacant units and collective quarters stay where they are.
"""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
from pydantic import model_validator

from discreet.census import Census, Schema, check_matched
from discreet.config import Strict
from discreet.engine import Engine, Frame
from discreet.errors import BadInput
from discreet.files import write_json
from discreet.mechanisms.coded import CodedUnits, read_coded
from discreet.mechanisms.domain import domain_of
from discreet.mechanisms.microdata import write_coded, write_microdata
from discreet.mechanisms.numbering import Integers
from discreet.mechanisms.swapping.fields import check_columns, check_level
from discreet.mechanisms.swapping.geometry import check_points
from discreet.mechanisms.swapping.households import (
    Households,
    Places,
    Swap,
    batches,
    households_by_area,
    read_households,
    read_places,
)
from discreet.mechanisms.swapping.pair_law import Counts, records_by_block
from discreet.mechanisms.swapping.promise import PLAINLY, no_budget, swap_invariants
from discreet.mechanisms.swapping.tally import Tally
from discreet.noise import Randomness
from discreet.spec import (
    MULTIPLICATIVE,
    Invariant,
    Multiverse,
    Rational,
    Specification,
    hamming_of_multisets,
)

#: Rows looked at first to see whether anybody has a partner.
SOME_ROWS = 10_000


class PairSwapping(Strict):
    """Base of mechanisms that swap pairs; a method says how pairs are chosen (`swap`).

    Parameters
    ----------
    census_schema
        The schema of the censuses this mechanism takes.
    rate
        Share of the households of each area that are swapped, targets and partners
        together; strictly between 0 and 1, exact (`Fraction(1, 50)` or the text "0.02").
    match
        Columns of units (variables or computed) on which the households of a pair agree.
    within
        The level of the spine inside which households trade places.
    leave
        The level of the spine whose area a swapped household leaves.
    persons
        Column of units that counts the persons of a unit.
    groups
        Columns of units that count members by group, each member in one group, for the
        internal report on who was targeted.
    """

    name: ClassVar[str]
    #: The draw holds internal figures.
    confidential_draw: ClassVar[bool] = True

    census_schema: Schema
    rate: Rational
    match: tuple[str, ...]
    within: str
    leave: str
    persons: str = "size"
    groups: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _possible(self) -> PairSwapping:
        if not 0 < self.rate < 1:
            raise ValueError("rate must lie strictly between 0 and 1")
        levels = self.census_schema.levels
        check_level("within", self.within, levels[:-1])
        check_level("leave", self.leave, levels[levels.index(self.within) + 1 :])
        for field in ("match", "groups"):
            check_columns(field, getattr(self, field), self.census_schema)
        check_columns("persons", (self.persons,), self.census_schema)
        check_matched(self.census_schema, "units", self.match, "match")
        return self

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return self.model_dump(mode="json", exclude={"census_schema"})

    # -- what a method adds -------------------------------------------------------------

    @abstractmethod
    def method(self) -> str:
        """Return in words which method this is, for the specification."""

    @property
    @abstractmethod
    def ours(self) -> bool:
        """Whether the method is our own: what others published is not about it."""

    @property
    def exception(self) -> str:
        """Return in words which households never move, to be added to a message."""
        return ""

    def also_exact(self) -> tuple[str, ...]:
        """Return in words what stays exact beside the invariants, if no table can say it."""
        return ()

    @property
    def points(self) -> bool:
        """Whether the method looks at where blocks are."""
        return True

    def columns(self) -> tuple[str, ...]:
        """Return the columns of units that the method looks at beside those of `match`."""
        return ()

    def levels(self) -> tuple[str, ...]:
        """Return the levels of the spine that the method looks at beside those named here."""
        return ()

    @abstractmethod
    def swap(
        self, census: Census, households: Households, rng: Randomness, threads: int = 1
    ) -> Swap:
        """Choose the pairs."""

    # -- what is promised ---------------------------------------------------------------

    def check(self, census: Census) -> None:
        """Refuse a census without a column, without points, or in which nobody has a partner."""
        if census.persons is not None and not census.linked:
            raise BadInput(
                f"{self.name} moves households, but persons of this census have no link to units."
            )
        census.frame("units", [*self.columns(), self.persons, *self.groups])
        if self.points:
            check_points(census)
        # A look at some rows is enough for any census in which many have a partner.
        strata, possible = self._strata(census, SOME_ROWS)
        if not possible:
            strata, possible = self._strata(census, None)
        if not strata:
            raise BadInput(f"{self.name}: the census has no occupied unit{self.exception}.")
        if not possible:
            raise BadInput(
                f"{self.name}: no household has a possible partner. Households of one "
                f"{self.within} that agree on the matching columns all lie in one "
                f"{self.leave}{self.exception}. Match on fewer columns, or choose a smaller area "
                f"to leave."
            )
        self._check_rate(census)

    @property
    def capped(self) -> bool:
        """Whether no more pairs are made than the rate allows."""
        return True

    def targets_possible(self, households: int) -> bool:
        """Whether somebody may be chosen as a target among so many households of an area."""
        return True

    def _check_rate(self, census: Census) -> None:
        """Refuse a rate, or chances, that would release the census as it is."""
        sizes = list(households_by_area(census, self.within).values())
        if self.capped and self.rate * max(sizes) < 2:
            raise BadInput(
                f"{self.name}: at this rate no {self.within} may swap a single pair, and the "
                f"census would be released as it is. Choose a larger rate."
            )
        if not any(self.targets_possible(size) for size in sizes):
            raise BadInput(
                f"{self.name}: by these parameters no household can be chosen to be swapped, and "
                f"the census would be released as it is. Give some tier with households a chance."
            )

    def movable(self, census: Census) -> Frame:
        """Return `within`, `leave` and `match` of households that may move, and `_target`.

        `_target` is 1 for those that may also be chosen first, else 0.
        """
        occupied = {"kind": list(census.schema.kinds.occupied)}
        columns = [self.within, self.leave, *self.match]
        units = census.frame("units", columns, where=occupied)
        return units.with_columns(_target=nw.lit(1))

    def _strata(self, census: Census, rows: int | None) -> tuple[int, int]:
        """Count the strata among some rows, and those in which somebody can be swapped."""
        units = self.movable(census)
        areas = (units if rows is None else units.head(rows)).group_by(self.within, *self.match)
        spread = areas.agg(
            _one=nw.col(self.leave).min(),
            _other=nw.col(self.leave).max(),
            _targets=nw.col("_target").max(),
        )
        met = (nw.col("_one") != nw.col("_other")) & (nw.col("_targets") > 0)
        several = nw.when(met).then(1).otherwise(0).sum()
        counts = spread.select(strata=nw.len(), possible=several)
        strata, possible = census.engine.rows(counts)[0]
        return int(strata), int(possible or 0)

    def facts(self, census: Census) -> dict[str, int]:
        """Return nothing: there is no budget that could depend on counts."""
        return {}

    def specify(self, facts: Mapping[str, int] | None = None) -> Specification:
        """Return what stays exact, and that no finite budget exists."""
        return Specification(
            domain=domain_of(self.census_schema),
            multiverse=Multiverse(invariants=self._invariants()),
            input_premetric=hamming_of_multisets("household"),
            output_premetric=MULTIPLICATIVE,
            budget=no_budget(self.method(), self.also_exact(), ours=self.ours),
        )

    def _invariants(self) -> tuple[Invariant, ...]:
        return swap_invariants(self.census_schema, self.match, self.within)

    def public_facts(self) -> dict[str, Any]:
        """Return what may be told of a swap to anybody: nothing here depends on the data."""
        return {
            "method": self.method(),
            "rate": str(self.rate),
            "meaning_of_rate": f"share of the households of a {self.within} asked to be swapped, "
            "targets and partners together",
            "promise": PLAINLY,
            "swapped": self.census_schema.block,
            "matched": list(self.match),
            "within": self.within,
            "left": self.leave,
            "exact": [
                *(invariant.describe() for invariant in self._invariants()),
                *self.also_exact(),
            ],
        }

    # -- what is done -------------------------------------------------------------------

    def read(
        self,
        census: Census,
        places: Places | None = None,
        only: list[str] | None = None,
        units: CodedUnits | None = None,
    ) -> Households:
        """Return the households of some areas, or of all, with all the method looks at."""
        columns = [*self.columns(), self.persons, *self.groups]
        return read_households(
            census, places or self.places(census), self.match, self.leave, columns, only, units
        )

    def places(self, census: Census) -> Places:
        """Return the blocks with all the method looks at."""
        return read_places(census, self.within, [self.leave, *self.levels()], points=self.points)

    def draw(self, census: Census, rng: Randomness, folder: Path, threads: int = 1) -> None:
        """Swap, and write the protected microdata; who was swapped is not kept."""
        places = self.places(census)
        units = read_coded(census, places.frame)
        tally = Tally(self.name, self.rate, self.persons, self.groups, method=self.method())
        moved: list[tuple[Integers, Integers]] = []
        notes = Counter[str]()
        for codes in batches(census, places):
            households = self.read(census, places, codes, units)
            swap = self.swap(census, households, rng, threads)
            changed = np.flatnonzero(swap.partner != np.arange(households.size))
            moved.append((households.unit_id[changed], households.place[swap.partner[changed]]))
            tally.add(households, swap)
            notes.update(swap.notes)
        unit_id, place = (np.concatenate(parts) for parts in zip(*moved, strict=True))
        if units is not None:
            new_place = units.moved(unit_id, place)
            write_coded(census, places.frame, units, new_place, folder / "microdata")
        else:
            frame = census.engine.from_numpy({"unit_id": unit_id, "_place": place})
            write_microdata(census, places.frame, frame, folder / "microdata")
        report = {**tally.report(), "notes": dict(notes)} if notes else tally.report()
        write_json(folder / "internal.json", report, 0o600)

    def publish(self, folder: Path, out: Path, engine: Engine) -> None:
        """Copy the protected microdata, final when they were drawn, and say how they were made."""
        shutil.copytree(folder / "microdata", out / "microdata")
        write_json(out / "swap.json", self.public_facts())

    def outcome(self, released: Census) -> Counts:
        """Return how often each (block, record) occurs in a data set."""
        return frozenset(records_by_block(released).items())
