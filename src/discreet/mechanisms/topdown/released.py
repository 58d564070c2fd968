"""The schema of protected records: what of a census the histograms of its strategies keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.census import Schema, Table, Variable, columns_of, load_schema
from discreet.config import parse
from discreet.errors import BadInput
from discreet.mechanisms.topdown.axes import Scale
from discreet.mechanisms.topdown.histogram import Histogram

Values = Mapping[str, NDArray[Any]]

#: The profile of the redistricting release: used where a release has just its columns.
REDISTRICTING = "pl94"


def released_schema(
    census_schema: Schema, persons: Histogram | None, units: Histogram | None = None
) -> Schema:
    """Return the schema of the records that stand for these histograms.

    Every axis is a variable. An axis whose categories are the values of its column keeps the
    column's name and codes; another has its own name. Tables that can still be counted stay,
    rules do not: estimates need not keep them.
    """
    people = {} if persons is None else _variables(census_schema, persons)
    homes = _unit_variables(census_schema, persons, units)
    profile = load_schema(REDISTRICTING)
    spine = [level.model_copy(update={"simulate": None}) for level in census_schema.spine]
    same_places = spine == profile.spine and census_schema.areas == profile.areas
    same_people = persons is None or _fits(people, profile.persons)
    if same_places and same_people and _fits(homes, profile.units):
        return profile
    kept = {name: v for name, v in census_schema.geography.items() if not v.confidential}
    bare: dict[str, Any] = {
        "name": f"{census_schema.name}-released",
        "title": f"{census_schema.title}, protected records",
        "spine": spine,
        "areas": census_schema.areas,
        "geography": kept,
        "units": homes,
        "persons": people,
        "kinds": census_schema.kinds,
        "computed_persons": dict(_recodes(census_schema, people)),
    }
    schema = parse(Schema, bare, bare["title"])
    tables = [table for table in census_schema.tables if _countable(schema, table)]
    return Schema(**bare, tables=tables)


def check_release(schema: Schema, persons: Histogram | None, units: Histogram | None) -> None:
    """Refuse strategies whose records could not be written, before anything is drawn."""
    for histogram in (one for one in (persons, units) if one is not None):
        names = Counter(_name(scale) for scale in histogram.axes)
        for name, times in names.items():
            if times > 1:
                raise BadInput(
                    f"axes: two of them would be the column '{name}' of the release, one by its "
                    f"name and one by its column. Give an axis another name."
                )
    if units is not None:
        _one_kind(schema, units)
        if persons is not None:
            quarters_cells(schema, persons, units)
    released_schema(schema, persons, units)


def person_cells(schema: Schema, histogram: Histogram) -> Values:
    """Return the values of the records of every cell."""
    return _cells(schema.persons, histogram)


def unit_cells(schema: Schema, histogram: Histogram) -> Values:
    """Return the values of the units of every cell."""
    values, kind = _cells(schema.units, histogram), _one_kind(schema, histogram)
    if kind is None:
        return values
    return {"kind": np.full(histogram.size, kind, dtype=object), **values}


def _one_kind(schema: Schema, histogram: Histogram) -> str | None:
    """Return the kind of all units that are counted; None if an axis says which."""
    strategy, kinds = histogram.strategy.name, _universe(schema, histogram)
    known = set(schema.units["kind"].leaves)
    for scale in histogram.axes:
        if _name(scale) == "kind":
            if scale.column != "kind" or not known.issuperset(scale.categories):
                raise BadInput(
                    f"strategy {strategy}: the axis 'kind' would be the kind of the released "
                    f"units, and has other categories. Give it another name."
                )
            return None
    if len(kinds) != 1:
        raise BadInput(
            f"strategy {strategy} counts units of several kinds or of none, and no axis tells "
            f"which. Add an axis of `kind`, or limit `where` to one kind."
        )
    return kinds[0]


def quarters_cells(schema: Schema, persons: Histogram, units: Histogram) -> Values:
    """Return the values of the units of every category of quarters.

    `kind` is missing where units of the category are no collective ones, or are counted by
    the histogram of units.
    """
    scale, covered = _quarters(persons), _universe(schema, units)
    if scale is None:
        return {"kind": np.empty(0, dtype=object)}
    kinds = [_collective(schema, scale, name, covered) for name in scale.categories]
    values = {"kind": np.array(kinds, dtype=object)}
    if scale.column != "kind":
        named = [None if k is None else n for k, n in zip(kinds, scale.categories, strict=True)]
        values[_quarters_name(scale)] = np.array(named, dtype=object)
    return values


# -- axes as variables --------------------------------------------------------------------


def _name(scale: Scale) -> str:
    """Return the name of an axis as a column of the release."""
    return scale.column if _keeps_values(scale) else scale.name


def _keeps_values(scale: Scale) -> bool:
    """Return whether each value is its own category; a missing value has one of another name."""
    return all(scale.categories[place] == value for value, place in scale.place_of.items())


def _variables(schema: Schema, histogram: Histogram) -> dict[str, Variable]:
    table = histogram.strategy.count
    return {_name(scale): _variable(schema, table, scale) for scale in histogram.axes}


def _variable(schema: Schema, table: Literal["persons", "units"], scale: Scale) -> Variable:
    """Return an axis as a variable: as it was if it keeps its values, else a list of codes."""
    home = schema.home(scale.column, table)
    source = None if home is None else schema.variables(home).get(scale.column)
    if _keeps_values(scale) and source is not None and source.number is not None:
        return Variable(number=source.number, min=source.min, max=source.max, required=True)
    labels = {} if source is None or source.codes is None else source.codes
    codes = {one: labels[one].label if one in labels else one for one in scale.categories}
    return Variable.model_validate({"codes": codes, "required": True})


def _cells(variables: Mapping[str, Variable], histogram: Histogram) -> dict[str, NDArray[Any]]:
    places = histogram.places(np.arange(histogram.size))
    values = {}
    for scale, place in zip(histogram.axes, places, strict=True):
        text = np.array(scale.categories, dtype=object)[place]
        number = variables[_name(scale)].number is not None
        values[_name(scale)] = _numbers(text) if number else text
    return values


def _numbers(text: NDArray[Any]) -> NDArray[Any]:
    """Return integers in a small type, if they fit: there is one for every record."""
    numbers = text.astype(np.int64)
    small = np.iinfo(np.int16)
    fits = numbers.size == 0 or (small.min <= numbers.min() and numbers.max() <= small.max)
    return numbers.astype(np.int16) if fits else numbers


# -- units --------------------------------------------------------------------------------


def _unit_variables(
    schema: Schema, persons: Histogram | None, units: Histogram | None
) -> dict[str, Variable]:
    """Return `kind`, the axes of units, and the type of quarters where that is not the kind."""
    found = {"kind": Variable(codes=schema.units["kind"].codes, required=True)}
    if units is None:
        return found
    covered = _universe(schema, units)
    for name, variable in _variables(schema, units).items():
        if name != "kind":
            # Collective units beside the estimated ones have no value.
            found[name] = variable.model_copy(update={"only": {"kind": covered}})
    scale = None if persons is None else _quarters(persons)
    if scale is not None and scale.column != "kind":
        kinds = {name: _collective(schema, scale, name, covered) for name in scale.categories}
        codes = {name: name for name, kind in kinds.items() if kind is not None}
        if codes:
            only = {"kind": sorted({kind for kind in kinds.values() if kind is not None})}
            given = {"codes": codes, "required": True, "only": only}
            name = _quarters_name(scale)
            if name in found:
                raise BadInput(
                    f"axes of units: '{name}' is the column of the types of quarters in the "
                    f"release. Give the axis another name."
                )
            found[name] = Variable.model_validate(given)
    return found


def _universe(schema: Schema, units: Histogram) -> list[str]:
    """Return the kinds of units that a histogram counts."""
    listed = units.strategy.where.get("kind")
    kinds = schema.units["kind"].leaves
    if isinstance(listed, str):
        return [listed]
    return [kind for kind in kinds if kind in listed] if isinstance(listed, list) else kinds


def _quarters(persons: Histogram) -> Scale | None:
    quarters = persons.strategy.quarters
    return None if quarters is None else persons.scale(quarters.axis)


def _quarters_name(scale: Scale) -> str:
    """Return the name of the type of quarters as a column of units, where none is missing."""
    named = {value: place for value, place in scale.place_of.items() if value is not None}
    kept = all(scale.categories[place] == value for value, place in named.items())
    return scale.column if kept else scale.name


def _collective(schema: Schema, scale: Scale, category: str, covered: list[str]) -> str | None:
    """Return the collective kind that units of a category of quarters have, if they have one."""
    place = scale.categories.index(category)
    values = [value for value, at in scale.place_of.items() if at == place]
    if scale.column == "kind":
        kinds = [value for value in values if value is not None]
    else:  # a type of quarters: units without one are no quarters
        kinds = [] if None in values else list(schema.kinds.collective)
    if not set(kinds) <= set(schema.kinds.collective) - set(covered) or not kinds:
        return None
    if len(kinds) > 1:
        raise BadInput(
            f"quarters: units of category '{category}' of {scale.name} may be of several kinds. "
            f"Use an axis that tells them apart."
        )
    return kinds[0]


# -- what stays ---------------------------------------------------------------------------


def _fits(found: Mapping[str, Variable], declared: Mapping[str, Variable]) -> bool:
    """Return whether the variables are those declared, with the same codes."""
    needed = {name for name, variable in declared.items() if variable.required}
    return needed <= set(found) <= set(declared) and all(
        variable.leaves == declared[name].leaves for name, variable in found.items()
    )


def _recodes(schema: Schema, people: Mapping[str, Variable]) -> Iterator[tuple[str, Any]]:
    """Yield the recodes of persons that rest on variables which keep their values."""
    for name, computed in schema.computed_persons.items():
        of = str(getattr(computed, "of", ""))
        kept = of in people and of in schema.persons and name not in people
        if kept and people[of].leaves == schema.persons[of].leaves:
            yield name, computed


def _countable(schema: Schema, table: Table) -> bool:
    """Return whether all columns of a table are there, without a link to units."""
    own = set(schema.variables(table.count)) | set(schema.computed(table.count))
    return set(table.by) | columns_of(table.where) <= own
