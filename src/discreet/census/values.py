"""Values of somebody's files: every one is first text, and read as its type from there."""

from __future__ import annotations

import re
from collections.abc import Mapping

import narwhals as nw
from narwhals.dtypes import DType

from discreet.census.declarations import Variable

FORMS = {
    "integer": r"^-?\d{1,18}$",
    "real": r"^-?(\d{1,15}(\.\d{0,25})?|\.\d{1,25})([eE][+-]?\d{1,2})?$",
}
TYPES = {"integer": nw.Int64, "real": nw.Float64}


def is_plain(dtype: DType) -> bool:
    """Say whether a column holds texts or numbers, not dates, truth values or lists."""
    return dtype.is_numeric() or isinstance(dtype, nw.String | nw.Categorical | nw.Enum)


def as_text(name: str, dtype: DType) -> nw.Expr:
    """Return a column as text; whole numbers stored as floats are written as whole."""
    column = nw.col(name)
    if isinstance(dtype, nw.String):
        return column
    if not dtype.is_float():
        return column.cast(nw.String)
    whole = nw.when(is_exact(name, nw.Float64())).then(column).cast(nw.Int64).cast(nw.String)
    return nw.coalesce(whole, column.cast(nw.String))


def is_exact(name: str, dtype: DType) -> nw.Expr:
    """Say whether floats are integers, and so small that no two of them have one float."""
    column, limit = nw.col(name), 2**24 if isinstance(dtype, nw.Float32) else 2**53
    return (column.round(0) == column) & (column.abs() < limit)


def without(text: nw.Expr, missing: list[str]) -> nw.Expr:
    """Return the text with the listed ones missing."""
    return nw.when(~text.is_in(missing)).then(text) if missing else text


def legal(variable: Variable | None, text: str) -> bool:
    """Say whether a text is a value that the variable may take."""
    if variable is None:
        return False
    if variable.codes is not None:
        return text in variable.leaves
    if variable.pattern is not None:
        return re.fullmatch(variable.pattern, text) is not None
    if re.match(FORMS[variable.kind], text) is None:
        return False
    low, high = variable.min, variable.max
    return (low is None or float(text) >= low) and (high is None or float(text) <= high)


def recoded(text: nw.Expr, recode: Mapping[str, str]) -> tuple[nw.Expr, nw.Expr]:
    """Return the recoded text, and apart from it the texts that the recode does not list."""
    sources: dict[str, list[str]] = {}
    for source, target in recode.items():
        sources.setdefault(target, []).append(source)
    value: nw.Expr = nw.lit(None, dtype=nw.String)
    for target, listed in sources.items():
        value = nw.when(text.is_in(listed)).then(nw.lit(target)).otherwise(value)
    return value, nw.when(~text.is_in(list(recode))).then(text)


def typed(text: nw.Expr, kind: str) -> nw.Expr:
    """Return text as the stored type; it must be readable as that."""
    return text.cast(TYPES[kind]) if kind in TYPES else text
