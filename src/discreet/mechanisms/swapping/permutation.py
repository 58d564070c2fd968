"""The Permutation Swapping Algorithm on a census (Bailie, Gong and Meng, Algorithm 1).

Records that agree on the matching variables and lie in the same `within` area form a
stratum; the values of the swapping variables are permuted inside it, everything else is
held. By default the records are households and the swapped value is their block. Vacant
units and collective quarters with their residents stay where they are then, as declared
in the multiverse.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal

import narwhals as nw
from pydantic import model_validator

from discreet.census import OF_RECORD_IN_UNIT, Census, Schema, check_matched, made_from
from discreet.config import Strict, suggest
from discreet.engine import Engine, Frame
from discreet.errors import BadInput
from discreet.files import read_yaml, write_json
from discreet.mechanisms.domain import domain_of
from discreet.mechanisms.swapping.packed import fits, permute_packed
from discreet.mechanisms.swapping.permutation_law import Outcome, law_of
from discreet.mechanisms.swapping.promise import (
    CONDITIONS,
    MEANING_OF_RATE,
    PERMUTATION,
    permutation_invariants,
)
from discreet.mechanisms.swapping.saturated import write_saturated
from discreet.mechanisms.swapping.strata import (
    Swapped,
    kinds_of_strata,
    permute,
    strata,
    write_down,
)
from discreet.noise import Randomness
from discreet.spec import (
    MULTIPLICATIVE,
    WHOLE,
    Budget,
    FunctionOfUniverse,
    InputPremetric,
    Invariant,
    LogRational,
    Multiverse,
    Rational,
    Specification,
    hamming_of_multisets,
    psa,
)

#: Above this, a rate does not fit the exact comparison with random bits.
LARGEST_DENOMINATOR = 2**62

#: Rows looked at first to see whether anything can change.
SOME_ROWS = 10_000

#: Of a draw: what to expect of it by rate and invariants, which anybody may know.
EXPECTED = "expected.json"


class PermutationSwapping(Strict):
    """Permute the values of the swapping variables among a random subset of each stratum.

    Parameters
    ----------
    census_schema
        The schema of the censuses this mechanism takes.
    rate
        Probability p of selecting a record, strictly between 0 and 1, exact
        (`Fraction(1, 20)` or the text "0.05").
    match
        Columns (variables or computed) on which records trading values agree.
    within
        The level of the spine inside which records trade values; "all" for everywhere.
    records
        What is swapped: occupied units with their members, or persons.
    swap
        The variables that trade places together. Of units, the block by default; of persons
        none is the default.
    table
        If given, also release the saturated table of the swapped records by the matching
        and swapping variables and these columns.
    """

    name: ClassVar[str] = "permutation-swapping"
    #: A draw beside its release would show nothing more, but it holds internal figures.
    confidential_draw: ClassVar[bool] = True

    census_schema: Schema
    rate: Rational
    match: tuple[str, ...]
    within: str
    records: Literal["units", "persons"] = "units"
    swap: tuple[str, ...] = ()
    table: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _possible(self) -> PermutationSwapping:
        if not 0 < self.rate < 1:
            raise ValueError("rate must lie strictly between 0 and 1")
        if self.rate.denominator >= LARGEST_DENOMINATOR:
            raise ValueError("rate must have a denominator below 2^62")
        self._check_swap()
        self._check_level()
        for what, columns in (("match", self.match), ("table", self.table or ())):
            self._check_columns(what, columns)
        swapped = {(self.records, column) for column in self.swapped}
        for column in self.match:
            if made_from(self.census_schema, column, self.records) & swapped:
                raise ValueError(f"match: '{column}' is made from a variable that is swapped")
        return self

    def _check_swap(self) -> None:
        schema = self.census_schema
        known = {*schema.variables(self.records)} - {"kind"}
        if self.records == "units":
            known.add(schema.block)
        if not self.swapped:
            raise ValueError("swap: name the variables of persons to swap")
        for column in self.swapped:
            if column not in known:
                hint = suggest(column, known)
                raise ValueError(f"swap: '{column}' is no variable of {self.records}.{hint}")
        OF_RECORD_IN_UNIT.check(schema, self.records, self.swapped, "swap")
        if len(set(self.swapped)) != len(self.swapped):
            raise ValueError("swap names a variable twice")

    def _check_level(self) -> None:
        moves = self.census_schema.block in self.swapped
        levels = [*self.census_schema.levels[: -1 if moves else None], WHOLE]
        if self.within not in levels:
            where = f"a level above {self.census_schema.block}" if moves else "a level"
            raise ValueError(f"within must be {where}, or all.{suggest(self.within, levels)}")

    def _check_columns(self, what: str, columns: tuple[str, ...]) -> None:
        schema, seen_from = self.census_schema, self.records
        for column in columns:
            if schema.home(column, seen_from) not in ("units", seen_from):
                known = {*schema.variables(seen_from), *schema.computed(seen_from)}
                hint = suggest(column, known)
                raise ValueError(f"{what}: {seen_from} have no column '{column}'.{hint}")
        OF_RECORD_IN_UNIT.check(schema, seen_from, columns, what)
        if what == "match" and schema.block in self.swapped:
            check_matched(schema, seen_from, columns, what)
        if len(set(columns)) != len(columns):
            raise ValueError(f"{what} names a column twice")

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return self.model_dump(mode="json", exclude={"census_schema"})

    @property
    def swapped(self) -> tuple[str, ...]:
        """Return the variables that are swapped."""
        block = (self.census_schema.block,) if self.records == "units" else ()
        return self.swap or block

    # -- what is promised -------------------------------------------------------------

    def check(self, census: Census) -> None:
        """Refuse a census whose persons do not name their units, or that nothing can change."""
        self.check_records(census)
        self._check_strata(census)

    def check_records(self, census: Census) -> None:
        """Refuse a census without the records to swap, or whose persons do not name their units."""
        if census.persons is not None and not census.linked:
            raise BadInput(
                "permutation-swapping moves records of units with their members, but persons of "
                "this census have no link to units."
            )
        if self.records == "persons" and census.persons is None:
            raise BadInput(
                f"permutation-swapping of persons ({', '.join(self.swapped)}): this census has no "
                f"persons table. Add persons.parquet, or swap units."
            )
        present = census.table(self.records).collect_schema().names()
        for column in self.swapped:
            if column not in present:  # a value that is derived cannot be traded
                raise BadInput(
                    f"swap: this census has no column {self.records}.{column}. Add it to the data, "
                    f"or swap another."
                )
        # Tabulated when the draw is published: what is not there is missed before it is paid for.
        if self.table:
            census.frame(self.records, self.table)

    def _check_strata(self, census: Census) -> None:
        """Refuse a census that no permutation can change: it would be released as it is."""
        swapped, what = self._swapped_records(), self.records
        # A look at some rows is enough for any census in which many can trade.
        strata, several, differing = kinds_of_strata(census, swapped, SOME_ROWS)
        if not differing:
            strata, several, differing = kinds_of_strata(census, swapped, None)
        told = ", ".join(swapped.stratum_columns) or "nothing"
        if not strata:
            one = "occupied unit" if what == "units" else "person"
            raise BadInput(f"{self.name}: the census has no {one} to swap.")
        if not several:
            raise BadInput(
                f"{self.name}: all {what} are alone in their stratum ({told}), so none can be "
                f"swapped and the census would be released as it is. Match on fewer columns, or "
                f"swap within a larger area."
            )
        if not differing:
            raise BadInput(
                f"{self.name}: in every stratum ({told}) all {what} have the same "
                f"{', '.join(self.swapped)}, so nothing can change and the census would be "
                f"released as it is. Match on fewer columns, or swap within a larger area."
            )

    def facts(self, census: Census) -> dict[str, int]:
        """Return invariant counts: records, strata, and the size of the largest stratum."""
        listed = strata(census, self._swapped_records())
        sizes = [row[0] for row in census.engine.rows(listed.select("_size"))]
        return {
            "households" if self.records == "units" else "persons": sum(sizes),
            "strata": len(sizes),
            "largest_stratum": psa.largest_stratum(sizes),
        }

    def specify(self, facts: Mapping[str, int] | None = None) -> Specification:
        """Return the specification; its budget is Theorem 1 of Bailie, Gong and Meng."""
        odds = self.rate / (1 - self.rate)
        amount: LogRational | FunctionOfUniverse = FunctionOfUniverse(
            formula=f"max(ln o, ln(b + 1) - ln o), o = {odds}, b = size of the largest stratum "
            f"({', '.join(self._swapped_records().stratum_columns) or 'all records'})"
        )
        if facts is not None:
            ratio = psa.theorem_1(facts["largest_stratum"], self.rate).ratio
            if ratio is None:  # excluded by the check of the rate
                raise ArithmeticError("Theorem 1 gives no finite budget at this rate")
            amount = LogRational(of=ratio)
        # A person is told from another by the unit, which is held: persons have a place in the
        # data, and trading values between alike persons of different units is a change.
        premetric = (
            hamming_of_multisets("household")
            if self.records == "units"
            else InputPremetric(name="hamming", unit="person")
        )
        return Specification(
            domain=domain_of(self.census_schema),
            multiverse=Multiverse(invariants=self._invariants),
            input_premetric=premetric,
            output_premetric=MULTIPLICATIVE,
            budget=Budget(
                unit="epsilon",
                amount=amount,
                source="Bailie, Gong and Meng, Theorem 1",
                status="published",
                conditions=CONDITIONS,
            ),
        )

    @property
    def _invariants(self) -> tuple[Invariant, ...]:
        return permutation_invariants(self.census_schema, self._swapped_records())

    def public_facts(self) -> dict[str, Any]:
        """Return what may be told of a swap to anybody: nothing here depends on the data."""
        return {
            "method": PERMUTATION,
            "rate": str(self.rate),
            "meaning_of_rate": MEANING_OF_RATE,
            "records": self.records,
            "swapped": list(self.swapped),
            "matched": list(self.match),
            "within": self.within,
            "exact": [invariant.describe() for invariant in self._invariants],
        }

    # -- what is done -----------------------------------------------------------------

    def _swapped_records(self) -> Swapped:
        return Swapped(self.records, self.match, self.within, self.swapped)

    def swapped_records(self, census: Census) -> Frame:
        """Return keys, `label`, `held` and `value` of every swapped record, as text.

        Records with equal labels share a stratum; inside it, what they hold and the
        value they carry make the table whose margins are invariant.
        """
        swapped = self._swapped_records()
        rows = swapped.read(swapped.numbered(census))
        told = {name: nw.col(f"_{name}") for name in ("label", "held", "value")}
        return rows.select(*swapped.keys, **told)

    def draw(self, census: Census, rng: Randomness, folder: Path, threads: int = 1) -> None:
        """Swap, and write the protected microdata; who was swapped is not kept."""
        swapped = self._swapped_records()
        way = permute_packed if fits(census, swapped) else permute
        moves = way(census, swapped, self.rate, rng, folder, threads)
        write_json(folder / "internal.json", moves.report(), 0o600)
        write_json(folder / EXPECTED, moves.expected(), 0o600)

    def publish(self, folder: Path, out: Path, engine: Engine) -> None:
        """Copy the protected microdata, final when they were drawn, tell of them, tabulate them."""
        shutil.copytree(folder / "microdata", out / "microdata")
        write_json(out / "swap.json", {**self.public_facts(), **read_yaml(folder / EXPECTED)})
        if self.table is not None:
            released = Census.open(out / "microdata", engine)
            write_saturated(released, self._swapped_records(), self.table, out / "tables")

    # -- the exact law, for audits on tiny censuses -------------------------------------

    def law(self, census: Census) -> dict[Outcome, Fraction]:
        """Return the probability of every released data set, by enumeration of strata."""
        return law_of(write_down(census, self._swapped_records()), self.rate)

    def outcome(self, released: Census) -> Outcome:
        """Return a data set in the form `law` uses."""
        return write_down(released, self._swapped_records()).outcome()
