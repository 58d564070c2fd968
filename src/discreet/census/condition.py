"""Conditions on records, written as data.

A condition is a mapping; all its entries must hold::

    {kind: [occupied], age: {min: 18}}         codes listed; a range
    {vacancy: {missing: true}}                 is (not) missing
    {any: [cond, ...]}, {all: [cond, ...]}, {not: cond}
    {same: [column, column]}                   two columns agree

A missing value never satisfies a list or a range, so conditions are two-valued and
mean the same on every engine.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import narwhals as nw

Condition = Mapping[str, Any]

COMBINERS = ("any", "all", "not", "same")


def columns_of(condition: Condition) -> frozenset[str]:
    """Return the names of all columns a condition looks at."""
    found: set[str] = set()
    for key, value in condition.items():
        if key in ("any", "all"):
            for part in value:
                found |= columns_of(part)
        elif key == "not":
            found |= columns_of(value)
        elif key == "same":
            found |= set(value)
        else:
            found.add(key)
    return frozenset(found)


def to_expression(condition: Condition) -> nw.Expr:
    """Return the condition as a two-valued Narwhals expression."""
    parts = [_entry(key, value) for key, value in condition.items()]
    return functools.reduce(operator.and_, parts) if parts else nw.lit(True)


def _entry(key: str, value: Any) -> nw.Expr:
    if key == "any":
        return functools.reduce(operator.or_, [to_expression(part) for part in value])
    if key == "all":
        return functools.reduce(operator.and_, [to_expression(part) for part in value])
    if key == "not":
        return ~to_expression(value)
    if key == "same":
        left, right = (nw.col(name) for name in value)
        both_missing = left.is_null() & right.is_null()
        return (left == right).fill_null(False) | both_missing
    column = nw.col(key)
    if isinstance(value, Mapping):
        return _range(column, value)
    codes = list(value) if isinstance(value, list | tuple) else [value]
    return column.is_in(codes).fill_null(False)


def _range(column: nw.Expr, limits: Mapping[str, Any]) -> nw.Expr:
    parts: list[nw.Expr] = []
    if "min" in limits:
        parts.append((column >= limits["min"]).fill_null(False))
    if "max" in limits:
        parts.append((column <= limits["max"]).fill_null(False))
    if "missing" in limits:
        parts.append(column.is_null() if limits["missing"] else ~column.is_null())
    return functools.reduce(operator.and_, parts)


def check(condition: Any, column_problem: Callable[[str, Any], str | None]) -> list[str]:
    """Return what is wrong with the shape of a condition, one text per problem.

    `column_problem(name, value)` says what is wrong with one entry, or None.
    """
    if not isinstance(condition, Mapping):
        return ["a condition must be a mapping"]
    problems: list[str] = []
    for key, value in condition.items():
        if key in ("any", "all"):
            if not isinstance(value, list) or not value:
                problems.append(f"'{key}' needs a list of conditions")
            else:
                for part in value:
                    problems += check(part, column_problem)
        elif key == "not":
            problems += check(value, column_problem)
        elif key == "same":
            if not isinstance(value, list) or len(value) != 2:
                problems.append("'same' needs a list of two columns")
            else:
                problems += [p for name in value if (p := column_problem(str(name), None))]
        else:
            problem = _entry_problem(value) or column_problem(str(key), value)
            if problem:
                problems.append(problem)
    return problems


def _entry_problem(value: Any) -> str | None:
    if isinstance(value, Mapping):
        if not value or set(value) - {"min", "max", "missing"}:
            return "a range has only the keys min, max, missing"
        if any(isinstance(value.get(k, 0), bool) for k in ("min", "max")):
            return "min and max are numbers"
        if not all(isinstance(value.get(k, 0), int | float) for k in ("min", "max")):
            return "min and max are numbers"
        if not isinstance(value.get("missing", True), bool):
            return "missing is true or false"
        return None
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(v, str | int) and not isinstance(v, bool) for v in values):
        return "needs a code, a list of codes or a range"
    return None
