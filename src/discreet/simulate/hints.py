"""Draw any variable of any schema from the hint in its `simulate` entry.

A hint is `{shares: {code: weight}}`; with `by: column` the shares are a table with one row
per value of that column (a variable or a computed column), with `smooth: true` they vary
from place to place. Nothing here knows the codes of a country.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.census import Census, Schema, Variable
from discreet.engine import Engine
from discreet.errors import BadInput, DiscreetError
from discreet.simulate.field import smooth_field

Column = npt.NDArray[Any]
Place = Literal["units", "persons"]

#: Spread of the logits of a smooth variable, and how far neighbours are alike (degrees).
SMOOTH_SD, SMOOTH_LENGTH = 0.5, 0.08


class Tables:
    """The tables of a census while it is being drawn: columns of numbers and of text.

    `area` says in which smallest area the rows of units and of persons lie.
    """

    def __init__(self, schema: Schema, engine: Engine, points: Column) -> None:
        self.schema, self.engine, self._points = schema, engine, points
        self.columns: dict[str, dict[str, Column]] = {"geography": {}, "units": {}, "persons": {}}
        self.area: dict[str, Column] = {}

    def draw(self, place: Place, rng: np.random.Generator) -> None:
        """Draw every variable of a table that has a hint or must exist."""
        waiting = [
            name
            for name, variable in self.schema.variables(place).items()
            if name not in self.columns[place] and (variable.simulate or variable.required)
        ]
        while waiting:
            # A variable may depend on another that stands further down: try the rest first.
            later, problem = [], ""
            for name in waiting:
                try:
                    self._draw_one(place, name, rng)
                except _NotYet as error:
                    later.append(name)
                    problem = str(error)
            if len(later) == len(waiting):
                raise BadInput(problem)
            waiting = later

    def _draw_one(self, place: Place, name: str, rng: np.random.Generator) -> None:
        variable = self.schema.variables(place)[name]
        hint = variable.simulate or {}
        where = f"{place}.{name}.simulate"
        unknown = sorted(set(hint) - {"shares", "by", "smooth"})
        if unknown:
            raise BadInput(f"{where}: unknown key '{unknown[0]}'. Known: by, shares, smooth.")
        column: Column = np.full(len(self.area[place]), None, dtype=object)
        for rows, shares in self._cases(place, where, variable, hint):
            codes, weights = _weights(where, variable, shares)
            column[rows] = codes[self._choose(rng, weights, self.area[place][rows], hint)]
        whole = variable.kind == "integer" and variable.only is None
        self.columns[place][name] = column.astype(np.int64) if whole else column

    def _cases(
        self, place: Place, where: str, variable: Variable, hint: Mapping[str, Any]
    ) -> list[tuple[Column, Any]]:
        """Return (rows, shares): rows that carry a value, by the column shares depend on."""
        by = hint.get("by")
        if by is None and variable.only is None:
            return [(np.arange(len(self.area[place])), hint.get("shares"))]
        found = self._ask(place, [] if by is None else [by], variable.only, where)
        rows = found["row"]
        if by is None:
            return [(rows, hint.get("shares"))]
        table = hint.get("shares")
        if not isinstance(table, Mapping):
            raise BadInput(f"{where}.shares: needs one row of shares per value of '{by}'.")
        given = found[by].astype(str)
        named = {str(value): shares for value, shares in table.items()}
        if set(given) - set(named):
            raise BadInput(f"{where}.shares: has no row for some values of '{by}'. Add them.")
        return [(rows[given == value], shares) for value, shares in named.items()]

    def _ask(self, place: Place, columns: list[str], where: Any, why: str) -> dict[str, Column]:
        """Return columns of the rows where a condition holds, computed by the census itself."""
        frames = (self.engine.from_numpy(c) if c else None for c in self.columns.values())
        geography, units, persons = frames
        assert geography is not None, "areas come first"
        census = Census(self.schema, self.engine, geography, units, persons, "simulated")
        row = "unit_id" if place == "units" else "person_key"
        try:
            found = self.engine.to_numpy(census.frame(place, [row, *columns], where))
        except BadInput as error:
            raise _NotYet(f"{why}: {error}") from None
        except DiscreetError:
            raise BadInput(
                f"{why}: '{columns[0]}' has missing values. Exclude them with `only`."
            ) from None
        order = np.argsort(found[row])
        rows = np.searchsorted(self.columns[place][row], found[row][order])
        return {"row": rows, **{name: found[name][order] for name in columns}}

    def _choose(
        self, rng: np.random.Generator, weights: Column, area: Column, hint: Mapping[str, Any]
    ) -> Column:
        """Draw places in `weights`; if smooth, shares differ from area to area."""
        if not hint.get("smooth"):
            return rng.choice(len(weights), len(area), p=weights)
        field = SMOOTH_SD * smooth_field(rng, self._points, SMOOTH_LENGTH, len(weights))
        rows = np.bincount(area, minlength=len(field)) / max(len(area), 1)
        share = weights * np.exp(field)
        for _ in range(20):
            # Areas differ, the total keeps its shares.
            share /= share.sum(axis=1, keepdims=True)
            share *= weights / np.maximum(rows @ share, 1e-12)
        sums = np.cumsum(share, axis=1)
        above: Column = rng.random((len(area), 1)) * sums[area, -1:] >= sums[area]
        chosen: Column = np.minimum(above.sum(axis=1), len(weights) - 1)
        return chosen


class _NotYet(Exception):
    """A column a variable depends on has not been drawn (yet)."""


def _weights(where: str, variable: Variable, shares: Any) -> tuple[Column, Column]:
    """Return the values of a variable and their shares; equal shares if none are given."""
    values = _values(where, variable)
    if shares is None:
        return values, np.full(len(values), 1 / len(values))
    if not isinstance(shares, Mapping) or not shares:
        raise BadInput(f"{where}.shares: needs a mapping of codes to shares.")
    given = {str(code): weight for code, weight in shares.items()}
    if set(given) - {str(value) for value in values}:
        raise BadInput(f"{where}.shares: names a value the variable does not have.")
    weights = [given.get(str(value), 0) for value in values]
    numbers = all(isinstance(w, int | float) and not isinstance(w, bool) for w in weights)
    if not numbers or min(weights) < 0 or not 0 < sum(weights) < float("inf"):
        raise BadInput(f"{where}.shares: shares are numbers from zero with a positive sum.")
    return values, np.array(weights, dtype=np.float64) / sum(weights)


def _values(where: str, variable: Variable) -> Column:
    if variable.codes is not None:
        return np.array(variable.leaves, dtype=object)
    if variable.kind == "integer" and variable.min is not None and variable.max is not None:
        return np.arange(int(variable.min), int(variable.max) + 1).astype(object)
    raise BadInput(f"{where}: the simulator draws codes, and integers between a min and a max.")


def listed(values: Sequence[str | None]) -> Column:
    """Return text as a column; None is missing."""
    return np.array(values, dtype=object)
