"""Targeted swapping: households that stand out trade places with near ones like them.

The method of Ballesteros, Dwork, King, Olson and Raghavan (2025), "Evaluating the Impacts
of Swapping on the US Decennial Census", section 3, with every decision a parameter. It is
a reconstruction from public statements, not the algorithm of any statistical office.

Presets differ in the decisions: `paper` follows the text, `published-code` the choices of
the program published with it, `high-variance` is our own reconstruction of the variant
the paper mentions by that name.
"""

from __future__ import annotations

import difflib
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from discreet.census import Census
from discreet.config import Strict
from discreet.mechanisms.swapping.exchange import PairSwapping
from discreet.mechanisms.swapping.fields import check_columns, check_level
from discreet.mechanisms.swapping.geometry import Distance, plant
from discreet.mechanisms.swapping.households import Households, Swap
from discreet.mechanisms.swapping.nearest import Prepared, Rules, pair
from discreet.mechanisms.swapping.pair_law import Counts, law_of_release, targeted_law
from discreet.mechanisms.swapping.risk import (
    Rounding,
    Tier,
    frequencies,
    most_pairs,
    persons_in_blocks,
    rank,
    tier_sizes,
)
from discreet.noise import Randomness
from discreet.spec import Rational

RACES = (
    "members_white",
    "members_black",
    "members_aian",
    "members_asian",
    "members_nhpi",
    "members_other",
    "members_two_or_more",
)
RARE = (*RACES, "members_hispanic")

#: Characters of a name that are repeated in a message.
LONGEST_NAME = 60


class Preset(Strict):
    """A named set of decisions, and what it is."""

    label: str
    ours: bool = False
    decisions: dict[str, Any]


#: What all presets have in common: the program's, where the text leaves it open.
COMMON: dict[str, Any] = {
    "match": ("size", "adults"),
    "within": "state",
    "leave": "tract",
    "groups": RACES,
    "tier_unit": "8/5",
    "tiers": (
        {"share": "1", "chance": "1"},
        {"share": "2", "chance": "3/5"},
        {"share": "3", "chance": "3/10"},
        {"chance": "1/10"},
    ),
    "candidates": 10,
    "distance": "great-circle",
    "fallback": "nearest",
    "cap": "exact",
    "ties": "random",
    "tier_rounding": "exact",
}

PRESETS = {
    "paper": Preset(
        label="the text of the paper; what it leaves open is as in the published program",
        decisions={
            **COMMON,
            "flags": (*RARE, "size", "adults"),
            "flag_area": "block",
            "small_blocks_first": False,
        },
    ),
    "published-code": Preset(
        label="parity with the choices of the published program",
        decisions={
            **COMMON,
            "flags": RARE,
            "flag_area": "tract",
            "small_blocks_first": True,
            "distance": "degrees",
            "fallback": "highest-risk",
            "cap": "overshoot",
            "ties": "input-order",
            "tier_rounding": "floating-point",
        },
    ),
    "high-variance": Preset(
        label="our reconstruction",
        ours=True,
        decisions={
            **COMMON,
            "flags": RARE,
            "flag_area": "tract",
            "small_blocks_first": True,
            "candidates": 100,
            "tiers": ({"share": "4", "chance": "1/4"}, *COMMON["tiers"][1:]),
        },
    ),
}


class TargetedSwapping(PairSwapping):
    """Swap households at risk with near households that match.

    Parameters
    ----------
    preset
        The decisions that are taken where none is given: `paper`, `published-code`,
        `high-variance`. They name columns and levels of the US profile; for another
        schema give `match`, `within`, `leave`, `groups`, `flags` and `flag_area`.
    flags, flag_area
        A household is at risk if few households of its `flag_area` agree with it on `flags`.
    small_blocks_first
        Whether among equally rare households those of blocks with fewer persons (collective
        quarters included) are at higher risk.
    ties
        Who comes first among households of equal risk: `random`, or `input-order`, the order
        of `unit_id`.
    tiers, tier_unit, tier_rounding
        Tiers of risk, highest first; see `Tier`. A share of 1 is q = rate / tier_unit of the
        households. Sizes are whole numbers: `exact`, or truncated `floating-point` products.
    candidates
        How many nearest households a partner is chosen from, by the remainder of a 64-bit
        word: equally likely up to a factor of 1 + 2^-50.
    distance
        `great-circle`, or `degrees`: latitude and longitude as plane coordinates.
    fallback
        In strata too small for a request of the published program `highest-risk` takes the
        households most at risk, anywhere; `nearest` always takes the nearest.
    cap
        `exact`: at most rate times households are swapped. `overshoot`: pairs are made until
        at least as many are.
    """

    name: ClassVar[str] = "targeted-swapping"

    preset: Literal["paper", "published-code", "high-variance"] = "paper"
    flags: tuple[str, ...]
    flag_area: str
    small_blocks_first: bool
    ties: Literal["random", "input-order"]
    tiers: Annotated[tuple[Tier, ...], Field(min_length=1)]
    tier_unit: Annotated[Rational, Field(gt=0)]
    tier_rounding: Rounding
    candidates: Annotated[int, Field(ge=1, le=10_000)]
    distance: Distance
    fallback: Literal["nearest", "highest-risk"]
    cap: Literal["exact", "overshoot"]

    @model_validator(mode="before")
    @classmethod
    def _with_preset(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        name = given.get("preset", "paper")
        known = isinstance(name, str) and name in PRESETS  # else the next check speaks
        return {**PRESETS[name if known else "paper"].decisions, **given}

    @field_validator("preset", mode="before")
    @classmethod
    def _known(cls, name: object) -> object:
        if not isinstance(name, str) or name not in PRESETS:
            raise ValueError(no_preset(str(name)))
        return name

    @model_validator(mode="after")
    def _decided(self) -> TargetedSwapping:
        check_columns("flags", self.flags, self.census_schema)
        levels = self.census_schema.levels
        check_level("flag_area", self.flag_area, levels[levels.index(self.within) :])
        if any((tier.share is None) != (tier is self.tiers[-1]) for tier in self.tiers):
            raise ValueError("tiers: every tier but the last has a share, the last takes the rest")
        if any(tier.share is not None and tier.share < 0 for tier in self.tiers):
            raise ValueError("tiers: a share must not be negative")
        if any(not 0 <= tier.chance <= 1 for tier in self.tiers):
            raise ValueError("tiers: a chance must lie between 0 and 1")
        if not any(tier.chance for tier in self.tiers):
            raise ValueError("tiers: give some tier a chance above 0, or nobody is swapped")
        return self

    @property
    def capped(self) -> bool:
        """Whether no more pairs are made than the rate allows."""
        return self.cap == "exact"

    def targets_possible(self, households: int) -> bool:
        """Whether some tier among so many households holds anybody and takes them."""
        sizes = tier_sizes(households, self.rate, self.tiers, self.tier_unit, self.tier_rounding)
        return any(size and tier.chance for size, tier in zip(sizes, self.tiers, strict=True))

    @property
    def own_decisions(self) -> tuple[str, ...]:
        """Return the decisions that differ from those of the preset.

        Groups are not among them: they are for the internal report only. The order in which
        columns are named decides nothing.
        """
        listed = {k: v for k, v in PRESETS[self.preset].decisions.items() if k != "groups"}
        listed["tiers"] = tuple(Tier.model_validate(tier) for tier in listed["tiers"])
        listed["tier_unit"] = Fraction(listed["tier_unit"])
        for name in ("match", "flags"):
            if set(listed[name]) == set(getattr(self, name)):
                del listed[name]
        return tuple(name for name, value in listed.items() if getattr(self, name) != value)

    @property
    def ours(self) -> bool:
        """Whether the preset is our own, or no longer what was published."""
        return PRESETS[self.preset].ours or bool(self.own_decisions)

    def method(self) -> str:
        """Return which method this is, and which variant of it."""
        preset, own = PRESETS[self.preset], ", ".join(self.own_decisions)
        what = f" with own decisions: {own}" if own else f": {preset.label}"
        return (
            f"targeted swapping after Ballesteros, Dwork, King, Olson and Raghavan (2025), "
            f"preset {self.preset}{what}"
        )

    def columns(self) -> tuple[str, ...]:
        """Return the columns of units that flag a household."""
        return self.flags

    def levels(self) -> tuple[str, ...]:
        """Return the level of the area in which a household may be rare."""
        return (self.flag_area,)

    # -- preparing and pairing ------------------------------------------------------------

    def prepare(self, census: Census, households: Households | None = None) -> Prepared:
        """Return all that the pass needs and that does not change from draw to draw."""
        households = households or self.read(census)
        frequency = frequencies(households, self.flags, self.flag_area)
        persons = None
        if self.small_blocks_first:
            persons = persons_in_blocks(census, households.places, self.persons)
        sizes = np.diff(households.offsets).tolist()
        rules = Rules(
            tiers=self.tiers,
            sizes=[
                tier_sizes(n, self.rate, self.tiers, self.tier_unit, self.tier_rounding)
                for n in sizes
            ],
            most=[most_pairs(n, self.rate, overshoot=self.cap == "overshoot") for n in sizes],
            candidates=self.candidates,
            random_ties=self.ties == "random",
            riskiest=self.fallback == "highest-risk",
        )
        tree = plant(households, self.distance)
        return Prepared(households, tree, rank(households, frequency, persons), rules)

    def swap(
        self, census: Census, households: Households, rng: Randomness, threads: int = 1
    ) -> Swap:
        """Choose the pairs."""
        return pair(self.prepare(census, households), rng, threads=threads)

    def law(self, census: Census) -> dict[Counts, Fraction]:
        """Return the probability of every released data set of a tiny census."""
        prepared = self.prepare(census)
        return law_of_release(
            census, prepared.households, lambda a: targeted_law(prepared, self.distance, a)
        )


def no_preset(name: str) -> str:
    """Return what to say of a preset that does not exist: its name, and those there are.

    >>> no_preset("code")
    "there is none called 'code'. Known: high-variance, paper, published-code."
    """
    close = difflib.get_close_matches(name, PRESETS, n=1)
    meant = f" Did you mean '{close[0]}'?" if close else ""
    known = ", ".join(sorted(PRESETS))
    return f"there is none called {name[:LONGEST_NAME]!r}.{meant} Known: {known}."
