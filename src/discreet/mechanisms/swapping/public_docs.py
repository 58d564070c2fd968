"""Household swapping of the 2010 census, as far as public documents tell it.

From public documents, not the Bureau's algorithm: Bailie, Gong and Meng, appendix C,
collect what is known, and much is not. The three steps and the directions of all factors
are theirs; formulas, values and whatever was left open are ours, and all are parameters.

1. Select households at random: rather in small blocks (A), with a race found nowhere else
   in the block (B), in blocks with little imputation (C); always if nobody in an area is
   like them (D); the less, the more of their own record is imputed, and never if all is (E).
2. Pair each with one that matches, is in the same state and in another block: rather a
   selected one, a near one, and one at high risk.
3. Pairs trade blocks, and with the block everything above it.

The number of swapped households, selected or partners, is capped in every state.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import narwhals as nw
import numpy as np
from pydantic import Field, model_validator

from discreet.census import OF_RECORD_IN_UNIT, Census, TableName
from discreet.config import suggest
from discreet.engine import Engine, Frame
from discreet.files import read_yaml, write_yaml
from discreet.mechanisms.numbering import Integers, numbered
from discreet.mechanisms.swapping import factors
from discreet.mechanisms.swapping.fields import check_columns, check_level
from discreet.mechanisms.swapping.households import Households, Swap
from discreet.mechanisms.swapping.listed import ListedSwapping, pairs_allowed
from discreet.mechanisms.swapping.listed_law import public_docs_law
from discreet.mechanisms.swapping.pair_law import Counts, law_of_release
from discreet.mechanisms.swapping.public_docs_pass import Prepared, pair
from discreet.mechanisms.swapping.targeted import RACES, RARE
from discreet.noise import Randomness
from discreet.spec import Rational

ORIGIN = "from public documents, not the Bureau's algorithm"

#: A weight has up to five factors, and is a float that must stay finite.
LARGEST_FACTOR = 1_000_000

Share = Annotated[Rational, Field(ge=0, le=1)]


class PublicDocs2010(ListedSwapping):
    """Swap households by the public documents on the 2010 census; not the Bureau's algorithm.

    Weights of selection are products of factors; households are drawn one after the other,
    each time in proportion to weight. As many are selected as may be swapped, 2 floor(rate
    households / 2) in each area of `within`, and visited in the order they were drawn until
    that many are swapped. If selected ones find no partner, more are drawn.

    Parameters
    ----------
    block_size
        A: the weight is divided by the households of the block to this power. Neutral: 0.
    unique_race, races
        B: the weight is multiplied by `unique_race` if some column of `races` counts a
        member, and nobody else in the block. Neutral: 1.
    block_imputation
        C: multiplied by 1 - block_imputation * rate, where rate is the share of members of
        the block's households who are imputed. Neutral: 0.
    most_imputed
        C: nobody is selected in blocks with a higher rate, though partners may come from
        there. One document speaks of such a threshold, others of none. Neutral: null.
    unique_area, unique_on
        D: always selected, before all others, if no other household of the area has the
        same values. Neutral: null.
    own_imputation
        E: multiplied by 1 - own_imputation * share, the share of members imputed. Neutral: 0.
        Households imputed wholly stay where they are, whatever the parameters.
    imputed
        Which records are imputed: codes of a column of units, of persons, or of both. Where
        the census has no such column C and E are neutral. Nobody: null.
    near
        Levels of the spine, smallest first, in whose area a partner is preferred.
    ranking
        What counts first in a partner, being selected or being near; risk counts last, the
        unique before the others, then by weight, and then chance.
    """

    name: ClassVar[str] = "public-docs-2010"

    match: tuple[str, ...] = ("adults", "minors", "tenure")
    within: str = "state"
    leave: str = "block"
    groups: tuple[str, ...] = RACES
    block_size: Annotated[int, Field(ge=0, le=4)] = 1
    unique_race: Annotated[Rational, Field(ge=1, le=LARGEST_FACTOR)] = Fraction(4)
    races: tuple[str, ...] = RACES
    block_imputation: Share = Fraction(1)
    most_imputed: Share | None = None
    unique_area: str | None = "county"
    unique_on: tuple[str, ...] = RARE
    own_imputation: Share = Fraction(1)
    imputed: dict[str, list[str]] | None = Field(default_factory=lambda: {"imputed": ["1"]})
    near: tuple[str, ...] = ("tract", "county")
    ranking: Literal["selected-first", "closeness-first"] = "selected-first"

    @model_validator(mode="after")
    def _decided(self) -> PublicDocs2010:
        schema = self.census_schema
        check_columns("races", self.races, schema)
        check_columns("unique_on", self.unique_on, schema)
        inside = schema.levels[schema.levels.index(self.within) :]
        if self.unique_area is not None:
            check_level("unique_area", self.unique_area, inside)
        for level in self.near:
            check_level("near", level, inside)
        places = [schema.levels.index(level) for level in self.near]
        if places != sorted(set(places), reverse=True):
            raise ValueError("near: name levels from the smallest to the largest, each once")
        known = {*schema.units, *schema.persons}
        for column in self.imputed or ():
            if column not in known:
                raise ValueError(
                    f"imputed: neither units nor persons have a column '{column}'."
                    f"{suggest(column, known)}"
                )
        tables: tuple[TableName, ...] = ("units", "persons")
        for table in tables:
            variables = schema.variables(table)
            own = {name: codes for name, codes in (self.imputed or {}).items() if name in variables}
            OF_RECORD_IN_UNIT.check(schema, table, own, "imputed")
            for name, codes in own.items():
                if not set(codes) <= set(variables[name].leaves):
                    raise ValueError(f"imputed: '{name}' of {table} has no such code")
        return self

    def method(self) -> str:
        """Return which method this is, and which it is not."""
        own = f"; with own decisions: {', '.join(self.own_decisions)}" if self.ours else ""
        return (
            f"household swapping of the 2010 census {ORIGIN} (Bailie, Gong and Meng, appendix C); "
            f"formulas and values of the factors are ours; households imputed wholly stay{own}"
        )

    @property
    def own_decisions(self) -> tuple[str, ...]:
        """Return what the documents do say and the parameters say otherwise."""
        fields = type(self).model_fields
        told = [name for name in ("within", "leave") if getattr(self, name) != fields[name].default]
        return tuple(["match"] * (set(self.match) != set(fields["match"].default)) + told)

    @property
    def ours(self) -> bool:
        """Whether the method is no longer what is told of the 2010 census."""
        return bool(self.own_decisions)

    @property
    def exception(self) -> str:
        """Return that some households never move."""
        return ", apart from households imputed wholly (or, as targets, in blocks imputed too much)"

    def movable(self, census: Census) -> Frame:
        """Return households that are not imputed wholly; targets are in blocks imputed little."""
        schema, size, members = census.schema, nw.col(self.persons), nw.col("_members")
        columns = [schema.block, self.within, self.leave, *self.match]
        units = factors.unit_imputation(census, columns, self.persons, self.imputed)
        target = nw.lit(1)
        if self.most_imputed is not None:
            share = members.sum().over(schema.block) / size.sum().over(schema.block)
            target = nw.when(share > float(self.most_imputed)).then(0).otherwise(1)
        movable = units.with_columns(_target=target).filter(nw.col("_wholly") == 0)
        return movable.select(*dict.fromkeys([self.within, self.leave, *self.match]), "_target")

    def also_exact(self) -> tuple[str, ...]:
        """Return that households imputed wholly stay; no column of units tells who they are."""
        columns, schema = set(self.imputed or ()), self.census_schema
        tables = (("of the unit", schema.units), ("of every member", schema.persons))
        whose = [text for text, known in tables if columns and columns <= set(known)]
        if not whose:
            return ()
        codes = "; ".join(f"{name}: {', '.join(c)}" for name, c in (self.imputed or {}).items())
        return (
            f"complete records of households imputed wholly ({codes}, {' or '.join(whose)}), "
            f"in every {schema.block}",
        )

    def columns(self) -> tuple[str, ...]:
        """Return the columns of units that make a household stand out."""
        return (*self.races, *self.unique_on)

    def levels(self) -> tuple[str, ...]:
        """Return the levels at which a household may be unique or a partner near."""
        return self.near if self.unique_area is None else (*self.near, self.unique_area)

    def publish(self, folder: Path, out: Path, engine: Engine) -> None:
        """Copy the protected microdata, and say in them where the method comes from."""
        super().publish(folder, out, engine)
        path = out / "microdata" / "census.yaml"
        header = read_yaml(path)
        note = f"Swapped by {self.name}: {ORIGIN}."
        write_yaml(path, {**header, "note": f"{header.get('note', '')} {note}".strip()})

    # -- selecting and pairing ------------------------------------------------------------

    def prepare(self, census: Census, households: Households | None = None) -> Prepared:
        """Return all that the pass needs and that does not change from draw to draw."""
        households = households or self.read(census)
        size = households.columns[self.persons].astype(np.int64)
        imputation = factors.read_imputation(census, households, size, self.imputed)
        stratum = households.stratum
        near = [numbered([stratum, households.level(level)])[0] for level in self.near]
        return Prepared(
            households,
            imputation,
            self._select(census, households, imputation, size),
            self.near,
            (*near, stratum),
            self.ranking == "selected-first",
            pairs_allowed(households, self),
        )

    def _select(
        self,
        census: Census,
        households: Households,
        imputation: factors.Imputation,
        size: Integers,
    ) -> factors.Selection:
        """Return the weights of selection, factor by factor."""
        weight = factors.block_size(households, self.block_size)
        if self.unique_race > 1:
            special = factors.unique_race(census, households, self.races)
            weight[special] *= float(self.unique_race)
        rate = factors.imputation_rate(households, imputation.members, size)
        weight *= factors.falling(rate, self.block_imputation)
        weight *= factors.falling(imputation.members / np.maximum(size, 1), self.own_imputation)
        never = imputation.wholly
        if self.most_imputed is not None:
            never = never | (rate > float(self.most_imputed))
        weight[never] = 0
        unique = factors.alone_in_area(households, self.unique_on, self.unique_area)
        return factors.Selection(weight, unique & ~never)

    def swap(
        self, census: Census, households: Households, rng: Randomness, threads: int = 1
    ) -> Swap:
        """Choose the pairs; `threads` changes nothing."""
        return pair(self.prepare(census, households), rng)

    def law(self, census: Census) -> dict[Counts, Fraction]:
        """Return the probability of every released data set of a tiny census."""
        prepared = self.prepare(census)
        return law_of_release(census, prepared.households, lambda a: public_docs_law(prepared, a))
