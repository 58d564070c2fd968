"""Which columns of units are made of their own file, and which of the geography file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from discreet.census import condition
from discreet.census.declarations import TableName
from discreet.census.layout import Layout, Making, Part
from discreet.census.linked import LinkedFiles, Places
from discreet.census.mapping import legal
from discreet.census.schema import Schema

LOOKED_UP = "geography."


@dataclass(frozen=True)
class Sides:
    """The columns of units by what they are made of."""

    files: LinkedFiles
    #: Columns that the layout makes of the geography file, and of which of its columns.
    of_area: Mapping[str, frozenset[str]]
    #: Columns made of the id alone, besides the id itself.
    of_id: frozenset[str]

    @classmethod
    def of(cls, layout: Layout, schema: Schema, files: LinkedFiles) -> Sides | None:
        """Return the sides of a layout, or None if a column is made of more than one."""
        makings = _makings(layout, files)
        if any(name.startswith(LOOKED_UP) for name in files.units.names):
            return None
        if not all(_plain(layout, schema, files.key, place, makings[place]) for place in makings):
            return None
        units = makings["units"]
        of_area = {
            name: frozenset(part.column.removeprefix(LOOKED_UP) for part in making.from_)
            for name, making in units.items()
            if any(part.column.startswith(LOOKED_UP) for part in making.from_)
        }
        one = all(
            part.column.startswith(LOOKED_UP) for name in of_area for part in units[name].from_
        )
        of_id = {n for n, m in units.items() if n != "unit_id" and _columns(m) == {files.key}}
        made = cls(files, of_area, frozenset(of_id))
        return made if one and made._settled(schema, units) else None

    def _settled(self, schema: Schema, makings: Mapping[str, Making]) -> bool:
        """Tell whether what is missing where it does not apply is so by columns of one side."""
        for name, making in makings.items():
            variable = schema.units.get(name)
            if variable is None or variable.only is None:
                continue
            if any(legal(variable, text) for text in making.missing):
                others = condition.columns_of(variable.only)
                if any((other in self.of_area) != (name in self.of_area) for other in others):
                    return False
        return True

    def classes(self, names: Iterable[str]) -> Places:
        """Return numbers of the kinds of geography rows: alike where these columns are."""
        raw = sorted({column for name in names for column in self.of_area.get(name, ())})
        area, number = self.files.geography, dict[tuple[str, ...], int]()
        if not raw:
            return np.zeros(area.many, dtype=np.int32)
        rows = zip(*(area.columns[name].listed() for name in raw), strict=True)
        return np.array([number.setdefault(row, len(number)) for row in rows], dtype=np.int32)


def _makings(layout: Layout, files: LinkedFiles) -> dict[TableName, dict[str, Making]]:
    """Return how these files make each column that the layout speaks of."""
    seen = {*files.units.names, *(LOOKED_UP + name for name in files.geography.names)}
    names: dict[TableName, set[str]] = {
        "geography": {*files.geography.names},
        "units": seen,
        "persons": {*files.persons.names},
    }
    found: dict[TableName, dict[str, Making]] = {}
    for place, there in names.items():
        made = {n: m.for_file(there) for n, m in layout.tables[place].columns.items()}
        # What a file lacks is not made; the mapping notes it.
        found[place] = {n: m for n, m in made.items() if _columns(m) <= there}
    return found


def _columns(making: Making) -> set[str]:
    return {part.column for part in making.from_}


def _plain(
    layout: Layout, schema: Schema, key: str, place: TableName, makings: Mapping[str, Making]
) -> bool:
    """Tell whether ids make nothing but ids, and numbers of which only the range is checked."""
    if key in schema.variables(place) or key in schema.area_names:
        return False
    for name, making in makings.items():
        if any(part.found_in is not None for part in making.from_):
            return False
        if not _columns(making) & {key, LOOKED_UP + key}:
            continue
        if name == "unit_id" and place != "geography":
            continue
        variable = layout.also.get(place, {}).get(name)
        alone = making == Making.model_validate({"from": [Part(column=key)]})
        if place != "units" or variable is None or not alone:
            return False
        if variable.kind != "integer" or variable.only is not None or variable.pattern is not None:
            return False
    return True
