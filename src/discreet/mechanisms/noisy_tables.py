"""Tables of counts with exact integer noise: hypercubes of any schema.

Every cell of every table gets independent noise, empty cells too; which cells exist
follows from the schema and the geography, which are public. Every record of the table's
universe is in one cell of an area, a missing value in a category of its own, so adding or
removing a record changes one count by one, and changing it lowers one count by one and
raises another.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from discreet.census import (
    MISSING,
    OF_HOUSEHOLD,
    OF_PERSON,
    Census,
    Schema,
    Table,
    categories,
    cells_per_area,
    check_placed,
    columns_of,
    may_be_missing,
    table_categories,
    write_header,
)
from discreet.config import Strict, suggest
from discreet.engine import Engine, Frame
from discreet.errors import BadInput
from discreet.mechanisms.domain import domain_of
from discreet.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Randomness,
    key_of,
    measure,
)
from discreet.products import tabulate
from discreet.spec import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    Budget,
    Exactly,
    Multiverse,
    Rational,
    Specification,
    hamming_of_multisets,
    symmetric_difference,
)

#: Whose contribution a cell of each kind of table counts.
CONTRIBUTIONS = {"units": OF_HOUSEHOLD, "persons": OF_PERSON}


class Query(Strict):
    """One table at one level, and its share of the budget."""

    table: str
    level: str
    share: Annotated[Rational, Field(gt=0, le=1)]

    @property
    def file(self) -> str:
        """Return the name of the file its counts are written to."""
        return f"{self.table}-{self.level}.parquet"


class NoisyTables(Strict):
    """Add discrete Gaussian or discrete Laplace noise to tables of the schema.

    Parameters
    ----------
    census_schema
        The schema of the censuses this mechanism takes.
    noise
        "gaussian" (budget in rho^2) or "laplace" (budget in epsilon).
    budget
        The total over all queries, exact ("1/2").
    change
        What one unit of distance is: "add-remove" or "replace" one record.
    queries
        Tables, levels and shares; the shares add up to 1.
    """

    name: ClassVar[str] = "noisy-tables"
    #: Noisy measurements are themselves what is published, so the draw may be kept.
    confidential_draw: ClassVar[bool] = False

    census_schema: Schema
    noise: Literal["gaussian", "laplace"]
    budget: Annotated[Rational, Field(gt=0)]
    change: Literal["add-remove", "replace"] = "add-remove"
    queries: tuple[Query, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _possible(self) -> NoisyTables:
        schema = self.census_schema
        counted = set()
        for query in self.queries:
            known = [table.name for table in schema.tables]
            if query.table not in known:
                raise ValueError(f"no table '{query.table}'.{suggest(query.table, known)}")
            if query.level not in schema.area_names:
                hint = suggest(query.level, schema.area_names)
                raise ValueError(f"no level '{query.level}'.{hint}")
            counted.add(schema.table(query.table).count)
        if len(counted) != 1:
            raise ValueError("all tables of one release count the same: units or persons")
        if len({query.file for query in self.queries}) != len(self.queries):
            raise ValueError("a table is asked for twice at one level")
        if sum(query.share for query in self.queries) != 1:
            raise ValueError("the shares must add up to exactly 1")
        for query in self.queries:
            table = schema.table(query.table)
            used = [*table.by, *sorted(columns_of(table.where))]
            CONTRIBUTIONS[table.count].check(schema, table.count, used, f"table {table.name}")
            cells_per_area(schema, table)
            # Refuses a parameter outside the range the noise is proved for.
            self._law(query)
        return self

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain data."""
        return self.model_dump(mode="json", exclude={"census_schema"})

    # -- what is promised -------------------------------------------------------------

    @property
    def counted(self) -> Literal["units", "persons"]:
        """Return what the tables count."""
        return self.census_schema.table(self.queries[0].table).count

    def parameter(self, query: Query) -> Fraction:
        """Return sigma^2 or the Laplace scale of a query, derived from its part of the budget.

        Gaussian: rho^2 = D^2 / (2 sigma^2) with D the L2 sensitivity (Canonne, Kamath and
        Steinke 2020, Theorem 4); D^2 is 1 to add or remove, 2 to replace a record.
        Laplace: epsilon = D / scale with D the L1 sensitivity, 1 or 2.
        """
        sensitivity = 1 if self.change == "add-remove" else 2
        part = self.budget * query.share
        return sensitivity / (2 * part) if self.noise == "gaussian" else sensitivity / part

    def _law(self, query: Query) -> DiscreteGaussian | DiscreteLaplace:
        """Return the law of the noise of a query."""
        return self._kind(self.parameter(query))

    @property
    def _kind(self) -> type[DiscreteGaussian] | type[DiscreteLaplace]:
        return DiscreteGaussian if self.noise == "gaussian" else DiscreteLaplace

    def check(self, census: Census) -> None:
        """Refuse a census without a column or level of a query, or with records in no cell."""
        for query in self.queries:
            if query.level not in census.geography.collect_schema().names():
                raise BadInput(f"this census has no areas of level '{query.level}'.")
            tabulate(census, query.table, query.level)
        for name in dict.fromkeys(query.table for query in self.queries):
            table = census.schema.table(name)
            values = {column: _values(census.schema, table, column) for column in table.by}
            check_placed(census, table.count, values, table.where, f"table {name}")

    def facts(self, census: Census) -> dict[str, int]:
        """Return nothing: the budget does not depend on the data."""
        return {}

    def specify(self, facts: Mapping[str, int] | None = None) -> Specification:
        """Return the specification: no invariants, and the budget that was asked for."""
        unit = CONTRIBUTIONS[self.counted].unit
        gaussian = self.noise == "gaussian"
        premetric = symmetric_difference if self.change == "add-remove" else hamming_of_multisets
        return Specification(
            domain=domain_of(self.census_schema),
            multiverse=Multiverse(invariants=()),
            input_premetric=premetric(unit),
            output_premetric=NORMALISED_RENYI if gaussian else MULTIPLICATIVE,
            budget=Budget(
                unit="rho2" if gaussian else "epsilon",
                amount=Exactly(of=self._spent()),
                source="Canonne, Kamath and Steinke 2020, Theorem 4"
                if gaussian
                else "Ghosh, Roughgarden and Sundararajan 2012",
                status="published",
            ),
        )

    def _spent(self) -> Fraction:
        """Return the budget the noise really drawn amounts to, from its own parameters."""
        sensitivity = 1 if self.change == "add-remove" else 2
        factor = 2 if self.noise == "gaussian" else 1
        parts = (sensitivity / (factor * self.parameter(query)) for query in self.queries)
        return sum(parts, Fraction(0))

    # -- what is done -----------------------------------------------------------------

    def draw(self, census: Census, rng: Randomness, folder: Path, threads: int = 1) -> None:
        """Write the noisy counts of every query; the exact ones are not kept."""
        for query in self.queries:
            grid = _grid(census, census.schema.table(query.table), query.level)
            exact = census.engine.to_numpy(grid.select("_cell", "count").sort("_cell"))["count"]
            noisy = self._measure(rng, query, exact)
            values = {"_cell": np.arange(1, len(noisy) + 1), "value": noisy}
            labels = grid.drop("count").join(census.engine.from_numpy(values), on="_cell")
            columns = ["area", *census.schema.table(query.table).by, "value"]
            census.engine.write_parquet(
                labels, folder / "tables" / query.file, ["_cell"], {c: c for c in columns}
            )
        write_header(folder / "tables", census.schema, "released", census.banner)

    def _measure(
        self, rng: Randomness, query: Query, exact: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        key = int(key_of([query.table], [query.level])[0])
        parameter = self.parameter(query)
        return measure(rng, self._kind, "noisy-tables", key, parameter, exact, exact.size)

    def publish(self, folder: Path, out: Path, engine: Engine) -> None:
        """Copy the noisy counts with the exact variance of each number beside it."""
        for query in self.queries:
            frame = engine.read_parquet(folder / "tables" / query.file)
            known = float(self._law(query).variance())
            written = frame.with_columns(variance=nw.lit(known))
            columns = written.collect_schema().names()
            order = ["area", *self.census_schema.table(query.table).by]
            engine.write_parquet(
                written, out / "tables" / query.file, order, {c: c for c in columns}
            )
        shutil.copy(folder / "tables" / "schema.yaml", out / "tables" / "schema.yaml")


def _values(schema: Schema, table: Table, column: str) -> list[str | None]:
    """Return the values of a column that have a category; None stands for a missing one."""
    values = categories(schema, table.count, column)
    absent = may_be_missing(schema, table.count, column, table.where)
    return [*values, None] if absent else [*values]


def _grid(census: Census, table: Table, level: str) -> Frame:
    """Return every cell of a table: `area, <by>, _cell, count`, cells numbered from 1."""
    engine = census.engine
    areas = census.geography.select(nw.col(level).alias("area"))
    grid = engine.distinct(areas.filter(~nw.col("area").is_null()))
    for column in table.by:
        values = table_categories(census.schema, table, column)
        places = np.arange(len(values))
        listed = {column: np.array(values, dtype=object), f"_order_{column}": places}
        grid = grid.join(engine.from_numpy(listed), how="cross")
    order = ["area", *(f"_order_{column}" for column in table.by)]
    grid = engine.number_rows(grid, order, "_cell").select("area", *table.by, "_cell")
    counts = tabulate(census, table, level)
    if table.by:
        named = (nw.col(column).cast(nw.String).fill_null(MISSING) for column in table.by)
        counts = counts.with_columns(*named)
    joined = grid.join(counts, on=["area", *table.by], how="left")
    return engine.materialise(joined.with_columns(nw.col("count").fill_null(0).cast(nw.Int64)))
