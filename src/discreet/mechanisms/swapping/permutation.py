"""The Permutation Swapping Algorithm on a census (Bailie, Gong and Meng, Algorithm 1).

Households that agree on the matching variables and live in the same `within` area
form a stratum; the block is the swapped value, everything else is held. Vacant units
and collective quarters with their residents stay where they are, as declared in the
multiverse.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import narwhals as nw
import numpy as np
from pydantic import model_validator

from discreet.census import Census, Schema, unit_records
from discreet.config import Strict, suggest
from discreet.engine import Engine, Frame
from discreet.errors import BadInput
from discreet.files import write_json
from discreet.mechanisms.domain import domain_of
from discreet.mechanisms.microdata import write_microdata
from discreet.mechanisms.swapping.kernel import permute_strata
from discreet.noise import Randomness, key_of
from discreet.spec import (
    MULTIPLICATIVE,
    Budget,
    FunctionOfUniverse,
    Invariant,
    LogRational,
    MarginalTable,
    Multiverse,
    Rational,
    Specification,
    hamming_of_multisets,
    psa,
)

#: Where each (block, record) pair of an outcome is counted.
Counts = frozenset[tuple[tuple[str, str], int]]

#: Above this, a rate does not fit the exact comparison with random bits.
LARGEST_DENOMINATOR = 2**62

CONDITIONS = (
    "upper bound in the universe of these data, given exact publication of the listed statistics",
    "valid only if the rate and the variables were fixed without looking at these data",
)


class PermutationSwapping(Strict):
    """Permute the blocks of a random subset of the households of each stratum.

    Parameters
    ----------
    census_schema
        The schema of the censuses this mechanism takes.
    rate
        Probability p of selecting a household, strictly between 0 and 1, exact
        (`Fraction(1, 20)` or the text "0.05").
    match
        Columns of units (variables or computed) on which households trading places agree.
    within
        The level of the spine inside which households trade places.
    """

    name: ClassVar[str] = "permutation-swapping"
    #: A draw beside its release would show nothing more, but it holds internal figures.
    confidential_draw: ClassVar[bool] = True

    census_schema: Schema
    rate: Rational
    match: tuple[str, ...]
    within: str

    @model_validator(mode="after")
    def _possible(self) -> PermutationSwapping:
        schema = self.census_schema
        if not 0 < self.rate < 1:
            raise ValueError("rate must lie strictly between 0 and 1")
        if self.rate.denominator >= LARGEST_DENOMINATOR:
            raise ValueError("rate must have a denominator below 2^62")
        levels = schema.levels[:-1]
        if self.within not in levels:
            raise ValueError(
                f"within must be a level above {schema.block}.{suggest(self.within, levels)}"
            )
        for column in self.match:
            if schema.home(column, "units") != "units":
                known = {*schema.units, *schema.computed_units}
                raise ValueError(f"match: units have no column '{column}'.{suggest(column, known)}")
        if len(set(self.match)) != len(self.match):
            raise ValueError("match names a column twice")
        return self

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return self.model_dump(mode="json", exclude={"census_schema"})

    # -- what is promised -------------------------------------------------------------

    def check(self, census: Census) -> None:
        """Refuse a census without units, or whose persons do not name theirs."""
        if census.persons is not None and not census.linked:
            raise BadInput(
                "permutation-swapping moves households, but persons of this census have no link "
                "to units."
            )
        self.households(census)

    def facts(self, census: Census) -> dict[str, int]:
        """Return invariant counts: households, strata, and the size of the largest stratum."""
        sizes = [row[0] for row in census.engine.rows(self._strata(census).select("size"))]
        return {
            "households": sum(sizes),
            "strata": len(sizes),
            "largest_stratum": psa.largest_stratum(sizes),
        }

    def specify(self, facts: Mapping[str, int] | None = None) -> Specification:
        """Return the specification; its budget is Theorem 1 of Bailie, Gong and Meng."""
        odds = self.rate / (1 - self.rate)
        amount: LogRational | FunctionOfUniverse = FunctionOfUniverse(
            formula=f"max(ln o, ln(b + 1) - ln o), o = {odds}, b = size of the largest stratum"
        )
        if facts is not None:
            ratio = psa.theorem_1(facts["largest_stratum"], self.rate).ratio
            if ratio is None:  # excluded by the check of the rate
                raise ArithmeticError("Theorem 1 gives no finite budget at this rate")
            amount = LogRational(of=ratio)
        return Specification(
            domain=domain_of(self.census_schema),
            multiverse=Multiverse(invariants=self._invariants()),
            input_premetric=hamming_of_multisets("household"),
            output_premetric=MULTIPLICATIVE,
            budget=Budget(
                unit="epsilon",
                amount=amount,
                source="Bailie, Gong and Meng, Theorem 1",
                status="published",
                conditions=CONDITIONS,
            ),
        )

    def _invariants(self) -> tuple[Invariant, ...]:
        kinds, block = self.census_schema.kinds, self.census_schema.block
        occupied = {"kind": list(kinds.occupied)}
        fixed = [*kinds.vacant, *kinds.collective]
        swapped = (
            MarginalTable(
                name="household records by stratum",
                of="units",
                where=occupied,
                by=self.match,
                level=self.within,
                whole_record=True,
            ),
            MarginalTable(
                name=f"households by matching variables and {block}",
                of="units",
                where=occupied,
                by=self.match,
                level=block,
            ),
        )
        if not fixed:
            return swapped
        stays = MarginalTable(
            name="vacant units and collective quarters with their residents",
            of="units",
            where={"kind": fixed},
            level=block,
            whole_record=True,
        )
        return (*swapped, stays)

    # -- what is done -----------------------------------------------------------------

    def households(self, census: Census) -> Frame:
        """Return `unit_id, block, label` of occupied units; equal labels share a stratum."""
        block = census.schema.block
        columns = ["unit_id", block, self.within, *self.match]
        occupied = {"kind": list(census.schema.kinds.occupied)}
        rows = census.frame("units", columns, where=occupied)
        labelled = census.engine.fingerprint(rows, [self.within, *self.match], "label")
        return labelled.select("unit_id", block, "label")

    def _strata(self, census: Census) -> Frame:
        """Return `label, size, stratum`: strata numbered in the order of their labels."""
        sizes = self.households(census).group_by("label").agg(size=nw.len().cast(nw.Int64))
        return census.engine.number_rows(sizes, ["label"], "stratum")

    def draw(self, census: Census, rng: Randomness, folder: Path, threads: int = 1) -> None:
        """Swap, and write the protected microdata; who was swapped is not kept."""
        engine, block = census.engine, census.schema.block
        strata = engine.materialise(self._strata(census))
        places = engine.number_rows(census.geography.select(block), [block], "place")
        places = engine.materialise(places)
        # Records in the order of their ids: what a trial draws may not depend on row order.
        rows = (
            self.households(census)
            .join(strata.select("label", "stratum"), on="label", how="inner")
            .join(places, on=block, how="inner")
            .select("unit_id", "stratum", "place")
            .sort("stratum", "unit_id")
        )
        arrays = engine.to_numpy(rows.select("unit_id", "place"))
        listed = engine.to_numpy(strata.sort("stratum").select("label", "size"))
        offsets = np.concatenate([[0], np.cumsum(listed["size"])]).astype(np.int64)
        keys = key_of(listed["label"].tolist())
        source = permute_strata(offsets, keys, self.rate, rng, threads=threads)
        place = arrays["place"][source]
        moved = engine.from_numpy({"unit_id": arrays["unit_id"], "place": place})
        located = moved.join(places, on="place", how="inner").select("unit_id", block)
        write_microdata(census, located, folder / "microdata")
        realised = {
            "households": len(source),
            "selected": int((source != np.arange(len(source))).sum()),
            "changed_block": int((place != arrays["place"]).sum()),
        }
        write_json(folder / "internal.json", realised, 0o600)

    def publish(self, folder: Path, out: Path, engine: Engine) -> None:
        """Copy the protected microdata; they were final when they were drawn."""
        shutil.copytree(folder / "microdata", out / "microdata")

    # -- the exact law, for audits on tiny censuses -------------------------------------

    def law(self, census: Census) -> dict[Counts, Fraction]:
        """Return the probability of every released data set, by enumeration of strata."""
        block = census.schema.block
        records = unit_records(census)
        rows = self.households(census).join(records, on="unit_id", how="inner")
        strata: dict[str, Counter[tuple[str, str]]] = {}
        for label, place, record in census.engine.rows(rows.select("label", block, "record")):
            strata.setdefault(label, Counter())[place, record] += 1
        collective = self._all(census) - sum(strata.values(), Counter())
        law: dict[Counts, Fraction] = {frozenset(collective.items()): Fraction(1)}
        for stratum in strata.values():
            law = _combine(law, _stratum_law(stratum, self.rate))
        return law

    def outcome(self, released: Census) -> Counts:
        """Return how often each (block, record) occurs in a data set."""
        return frozenset(self._all(released).items())

    @staticmethod
    def _all(census: Census) -> Counter[tuple[str, str]]:
        block = census.schema.block
        rows = census.frame("units", ["unit_id", block])
        joined = rows.join(unit_records(census), on="unit_id", how="inner")
        return Counter(census.engine.rows(joined.select(block, "record")))


def _stratum_law(stratum: Counter[tuple[str, str]], rate: Fraction) -> dict[Counts, Fraction]:
    """Return the law of one stratum over its (block, record) counts."""
    places = sorted({place for place, _ in stratum})
    records = sorted({record for _, record in stratum})
    if stratum.total() < 2:
        return {frozenset(stratum.items()): Fraction(1)}
    table: psa.Table = tuple(tuple(stratum[p, r] for p in places) for r in records)
    law: dict[Counts, Fraction] = {}
    for outcome, probability in psa.table_law(table, rate).items():
        counts = Counter[tuple[str, str]]()
        for record, row in zip(records, outcome, strict=True):
            for place, number in zip(places, row, strict=True):
                counts[place, record] = number
        law[frozenset((+counts).items())] = probability
    return law


def _combine(one: dict[Counts, Fraction], other: dict[Counts, Fraction]) -> dict[Counts, Fraction]:
    """Return the law of the union of two independent parts."""
    law: dict[Counts, Fraction] = {}
    for left, p in one.items():
        for right, q in other.items():
            union = frozenset((Counter(dict(left)) + Counter(dict(right))).items())
            law[union] = law.get(union, Fraction(0)) + p * q
    return law
