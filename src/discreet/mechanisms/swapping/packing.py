"""Units as single numbers: the codes of all their columns in mixed radix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from discreet.census import Census, unit_columns
from discreet.engine import Engine, Frame, list_literal
from discreet.errors import BadInput

Integers = NDArray[np.int64]

#: Numbers stay below this, so that they can be told from the mark of a wrong value.
LARGEST = 2**61

#: What a value outside its code list or range adds: more than any packed number.
_WRONG = 2**62


@dataclass(frozen=True)
class _Column:
    """One column: its codes, or the range of its numbers; 0 stands for a missing value."""

    name: str
    stored: nw.dtypes.DType
    codes: tuple[str, ...] = ()
    least: int = 0
    most: int = 0

    @property
    def size(self) -> int:
        return 1 + (len(self.codes) if self.codes else self.most - self.least + 1)

    def sql(self) -> str:
        """Return the digit of this column, or a large number if the value is none it may have."""
        name = f'"{self.name}"'
        if self.codes:
            listed = ", ".join("'" + code.replace("'", "''") + "'" for code in self.codes)
            digit = f"enum_code(try_cast({name} as enum({listed})))::bigint + 1"
        else:
            digit = (
                f"case when {name} between {self.least} and {self.most} "
                f"then {name}::bigint - {self.least} + 1 end"
            )
        return f"case when {name} is null then 0 else coalesce({digit}, {_WRONG}) end"


@dataclass(frozen=True)
class Packing:
    """How the columns of units are packed."""

    columns: tuple[_Column, ...]

    @property
    def names(self) -> list[str]:
        """Return the names of the columns."""
        return [column.name for column in self.columns]

    def sql(self) -> str:
        """Return the packed number of a row as an expression."""
        # Digits are added apart, each at most once wrong, so that nothing overflows: a wrong
        # value is found by its size, whatever else is added.
        terms, radix = [], 1
        for column in reversed(self.columns):
            wrong = f"({column.sql()})"
            terms.append(f"case when {wrong} >= {_WRONG} then null else {wrong} * {radix} end")
            radix *= column.size
        return f"coalesce({' + '.join(terms)}, -1)" if terms else "0"

    def holds(self, census: Census) -> bool:
        """Tell whether every value of the units has a code, so that all can be packed."""
        codes = census.engine.project(census.table("units"), {"_code": self.sql()})
        wrong = codes.filter(nw.col("_code") < 0).select(rows=nw.len())
        return not census.engine.rows(wrong)[0][0]

    def check(self, codes: Integers) -> None:
        """Refuse rows with a value that its column may not have."""
        wrong = int((codes < 0).sum())
        if wrong:
            raise BadInput(
                f"units: {wrong} rows have a value outside the codes or range of its column. "
                f"Validate the census (`discreet validate`) and mend it."
            )

    def unpacked(self, engine: Engine, codes: Integers) -> Frame:
        """Return `unit_id` (position from 0) and the columns that packed numbers stand for."""
        digits = engine.from_numpy({"unit_id": np.arange(len(codes)), **self.digits(codes)})
        return engine.materialise(self.values(engine, digits, ["unit_id"]))

    def digits(self, codes: Integers) -> dict[str, Integers]:
        """Return the digits of packed numbers, column by column."""
        rest, found = codes, {}
        for column in reversed(self.columns):
            found[column.name] = rest % column.size
            rest = rest // column.size
        return found

    def values(self, engine: Engine, digits: Frame, kept: Sequence[str]) -> Frame:
        """Return the columns that digits stand for, after those `kept` as they are."""
        expressions = {name: f'"{name}"' for name in kept}
        for column in self.columns:
            name = f'"{column.name}"'
            if column.codes:
                value = f"{list_literal(column.codes)}[{name}]"  # position 0 gives null
            else:
                value = f"{name}::bigint - 1 + {column.least}"  # digits may be of one byte
            expressions[column.name] = f"case when {name} = 0 then null else {value} end"
        typed = [nw.col(column.name).cast(column.stored) for column in self.columns]
        return engine.project(digits, expressions).with_columns(*typed)


def packing_of(census: Census) -> Packing | None:
    """Return how the units of a census are packed; None if they do not fit into one number."""
    columns = []
    stored = census.table("units").collect_schema()
    for name in unit_columns(census):
        variable = census.schema.units[name]
        if variable.codes is not None:
            columns.append(_Column(name, stored[name], codes=tuple(variable.codes)))
        elif variable.number == "integer" and None not in (variable.min, variable.max):
            columns.append(
                _Column(
                    name, stored[name], least=int(variable.min or 0), most=int(variable.max or 0)
                )
            )
        else:
            return None
    fits = math.prod(column.size for column in columns) < LARGEST
    return Packing(tuple(columns)) if fits else None
