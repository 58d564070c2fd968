"""Check one of each kind of rows: those that agree on all that is looked at stand or fall alike.

No check looks at more of a unit than its row, its row of the geography file and what is
counted of its members; nor at more of a person than its row and its unit. So the units are
put together that agree on all this, and the persons whose rows are of one kind and who live in
units that agree on what is looked at; one of each is mapped and examined as any census is. If
nothing is found, there is nothing to find. If anything is, or a layout asks for more than is
understood here, the answer is None, and everything is read and checked row by row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

import narwhals as nw
import numpy as np

from discreet.census.by_kind import ByKind
from discreet.census.checks import ROW, Sight, columns_above_persons, columns_looked_at
from discreet.census.columns import Columns
from discreet.census.consistency import made_from
from discreet.census.declarations import TableName
from discreet.census.examine import TABLES, Examination, Loaded
from discreet.census.findings import Finding, Findings
from discreet.census.grouping import Chosen, alike, choose, firsts, mark_firsts
from discreet.census.layout import Layout
from discreet.census.linked import LinkedFiles, Numbers, Places, read_linked
from discreet.census.mapping import Mapped, Mapper
from discreet.census.members import Members, count_members, member_columns
from discreet.census.schema import Schema
from discreet.census.sides import Sides
from discreet.census.sources import Sources
from discreet.census.validate import model_columns
from discreet.engine import Engine, EngineStopped, Frame, MemoryReached, Plain
from discreet.errors import UnreadableFile

#: More pairs of a kind of persons and a class of units than this are not worth listing.
MOST_PAIRS = 1 << 26

#: Below so many units any number of representatives will do; their texts have a limit, too.
FEW_UNITS, MOST_TEXT = 1 << 16, 1 << 28

#: Number of a representative among the units that were chosen; and of the first ones of a kind
#: of their own rows and of an area, these kinds.
CHOSEN, OWN, AREA = "_chosen", "_own", "_area"

#: Kind of the row of a person.
KIND = "_kind"


@dataclass(frozen=True)
class Flawless:
    """Tables that break no rule, and what was noted of their files."""

    notes: list[Finding]
    #: Rules that need a column these files do not have, as in `Findings`.
    not_checked: Mapping[str, str]
    tables: dict[TableName, Loaded]
    by_kind: dict[TableName, ByKind]


def by_representatives(
    engine: Engine, sources: Sources, layout: Layout, schema: Schema
) -> Flawless | None:
    """Return the tables of files in which nothing is wrong, or None: then look at every row."""
    files = read_linked(sources, layout)
    sides = None if files is None else Sides.of(layout, schema, files)
    if files is None or sides is None:
        return None
    try:
        with contextlib.ExitStack() as lent:
            examiner = _Examiner(engine, sources, layout, schema, files, sides, lent)
            examined = examiner.run()
    except (EngineStopped, MemoryReached, UnreadableFile):
        return None  # who reads every row can say at which, and spills
    # Only when nothing is lent any more: frames are looked at anew whenever a table comes or goes.
    return None if examined is None else examiner.flawless(examined)


class _Examiner:
    """Examine one census by representatives."""

    def __init__(
        self,
        engine: Engine,
        sources: Sources,
        layout: Layout,
        schema: Schema,
        files: LinkedFiles,
        sides: Sides,
        lent: contextlib.ExitStack,
    ) -> None:
        self.engine, self.sources, self.layout, self.schema = engine, sources, layout, schema
        self.files, self.sides, self.lent = files, sides, lent
        self.mapped: list[Mapped] = []
        self.tables: dict[TableName, Loaded] = {}
        self.looked_at = self._looked_at()

    def run(self) -> Findings | None:
        """Return the empty findings of the representatives, or None to look at every row."""
        files = self.files
        kinds = np.arange(files.persons.many)
        if files.persons.lengths.sum() > MOST_TEXT:
            return None
        people = self._map("persons", files.persons, kinds, kinds)
        wanted = member_columns(self.schema, self.looked_at, people.columns)
        if wanted is None or {"person_key", "donor_id"} & {*people.columns}:
            return None
        members = count_members(self.engine, self.schema, people.frame, wanted, files)
        if members is None:
            return None
        areas = self.sides.classes(self.looked_at)
        area = areas[files.area]
        grouped = alike(files.units.kinds, [area, *members.numbers.values()])
        if grouped is None or self.sides.of_id & self.looked_at:
            return None
        group, first = grouped
        chosen = choose(first, area[first], areas, files.units.keys)
        if self._too_many(chosen):
            return None
        self._choose(chosen, members)
        persons = self._persons(chosen, group)
        if persons is None or any(one.findings or one.raw_checks for one in self.mapped):
            return None
        tables = {**self.tables, "persons": persons}
        examined = Examination(self.engine, self.schema, tables).run()
        return None if examined.items else examined

    def flawless(self, examined: Findings) -> Flawless:
        """Return the tables with every row: its id, and the columns of its kind."""
        units, persons = self.files.units, self.files.persons
        rows = self.engine.from_numpy({"unit_id": persons.keys, KIND: persons.kinds})
        unit_rows = self.engine.from_numpy(
            {"unit_id": units.keys, OWN: units.kinds, AREA: self.files.area}
        )
        by_kind: dict[TableName, ByKind] = {
            "units": ByKind(unit_rows, self._kinds_of_units()),
            "persons": ByKind(rows, {KIND: self._kinds_of_persons(nw.Int32)}),
        }
        every: dict[TableName, Loaded] = {
            "geography": self.tables["geography"],
            "units": Loaded(self._with_ids(by_kind["units"].joined()), self.tables["units"].file),
            "persons": Loaded(by_kind["persons"].joined(), self.tables["persons"].file),
        }
        return Flawless(self.sources.unused(), examined.not_checked, every, by_kind)

    def _looked_at(self) -> set[str]:
        """Return the columns of units that checks of units or persons may look at, however made.

        With the block if that leads to the geography. As if every column were there, and all
        that columns are made from were looked at, too: more than is really looked at only
        makes finer groups.
        """
        schema = self.schema
        sight = Sight(schema, {p: {"unit_id", *model_columns(schema, p, True)} for p in TABLES})
        pairs = {
            pair
            for place in ("units", "persons")
            for name in columns_looked_at(schema, place, sight) | _only(schema, place)
            for pair in made_from(schema, name, place)
        }
        found = {name for place, name in pairs if place == "units"}
        above = any(place == "geography" for place, _ in pairs)
        return found | {schema.block} if above else found

    def _too_many(self, chosen: Chosen) -> bool:
        """Tell whether so many representatives are hardly fewer than all, or too much text."""
        files, many = self.files, len(self.files.units.keys)
        if many > FEW_UNITS and 2 * len(chosen.ids) > many:
            return True
        own, area = files.units.kinds[chosen.unit], chosen.area
        size = files.units.lengths[own].sum() + files.geography.lengths[area].sum()
        return bool(size > MOST_TEXT)

    # -- the representatives -----------------------------------------------------------------

    def _map(self, place: TableName, file: Plain, kinds: Places | Numbers, keys: Numbers) -> Loaded:
        """Return rows of these kinds, with these ids, mapped as if they were the file."""
        self._give(place, file, kinds, keys)
        return self._map_given(place)

    def _give(self, place: TableName, file: Plain, kinds: Places | Numbers, keys: Numbers) -> None:
        """Let rows of these kinds, with these ids, stand for a file."""
        lent = self.lent.enter_context(self.engine.lend_plain(file, kinds, keys, ROW))
        self.sources.give(place, Loaded(lent, file.name))

    def _map_given(self, place: TableName, told: Frame | None = None) -> Loaded:
        """Map the rows that stand for a file, and add what is told of them by their number."""
        given = (self.engine, self.sources, self.layout, self.schema, place)
        made = Mapper(*given, paired=True).run()  # as the files were linked
        self.mapped.append(made)
        frame = made.table.frame
        frame = frame if told is None else frame.join(told, on=ROW, how="inner")
        self.tables[place] = Loaded(self.engine.materialise(frame), made.table.file)
        return self.tables[place]

    def _choose(self, chosen: Chosen, members: Members) -> None:
        """Map the chosen units and their areas, and add what was counted of their members."""
        files, ids = self.files, chosen.ids
        self._give("geography", files.geography, chosen.area, ids)
        self._give("units", files.units, files.units.kinds[chosen.unit], ids)
        self._map_given("geography")
        numbers = np.arange(len(ids))
        kinds = {OWN: mark_firsts(files.units.kinds[chosen.unit]), AREA: mark_firsts(chosen.area)}
        counted = {ROW: numbers + 1, CHOSEN: numbers, **kinds, **members.of(chosen.unit)}
        with self.engine.lend_lists(counted) as lent:
            texts = {name: _filled(name) for name in members.values}
            self._map_given("units", lent.with_columns(**texts) if texts else lent)

    def _persons(self, chosen: Chosen, group: Numbers) -> Loaded | None:
        """Return one person of each kind and class of units, which lives in such a unit."""
        from discreet.census.passes import mark_pairs

        classes = self._classes()
        people, many = self.tables["persons"], int(classes.max()) + 1
        if self.files.persons.many * many > MOST_PAIRS:
            return None
        there = np.zeros((self.files.persons.many, many), dtype=bool)
        of_unit = classes[chosen.group][group]
        mark_pairs(self.files.home, self.files.persons.kinds, of_unit, there)
        kind, lives = np.nonzero(there)
        homes = chosen.ids[firsts(classes)]
        pairs = self.engine.from_numpy({KIND: kind, "_home": homes[lives]})
        joined = pairs.join(self._kinds_of_persons(nw.Int64), on=KIND, how="inner")
        others = [name for name in people.columns if name != "unit_id"]
        named = joined.select(*others, unit_id=nw.col("_home").cast(nw.String))
        return Loaded(self.engine.named(named), people.file)  # looked at once

    def _kinds_of_persons(self, number: type[nw.Int32 | nw.Int64]) -> Frame:
        """Return the kinds of persons with their number, which stands in their table as an id."""
        people = self.tables["persons"]
        others = [name for name in people.columns if name != "unit_id"]
        return people.frame.select(*others, nw.col("unit_id").cast(number).alias(KIND))

    def _classes(self) -> Numbers:
        """Return numbers of the chosen units: alike where they agree on what persons look at."""

        def table(place: TableName) -> Frame:
            return self.tables[place].frame

        sight = Sight(self.schema, {place: t.columns for place, t in self.tables.items()})
        names = sorted(columns_above_persons(self.schema, sight))
        frame = Columns(self.schema, table).add("units", names)
        numbers = self.engine.to_numpy(self.engine.number_alike(frame, names, CHOSEN, "class"))
        found = np.empty(len(numbers[CHOSEN]), dtype=np.int64)
        found[numbers[CHOSEN]] = numbers["class"]
        return found

    def _kinds_of_units(self) -> dict[str, Frame]:
        """Return the columns of units by their own kind, and by that of their area."""
        units = self.tables["units"]
        names = [n for n in model_columns(self.schema, "units", True) if n in units.columns]
        area = [name for name in names if name in self.sides.of_area]
        own = [n for n in names if n not in (*area, *self.sides.of_id, "unit_id")]
        return {
            kind: units.frame.filter(nw.col(kind) >= 0).select(kind, *columns)
            for kind, columns in ((OWN, own), (AREA, area))
        }

    def _with_ids(self, units: Frame) -> Frame:
        """Return units with the columns that are made of their ids."""
        types = self.tables["units"].columns
        ids = {name: nw.col("unit_id").cast(types[name]) for name in self.sides.of_id}
        return units.with_columns(**ids) if ids else units


def _only(schema: Schema, place: TableName) -> set[str]:
    """Return the variables that may be there only under a condition."""
    return {name for name, of in schema.variables(place).items() if of.only is not None}


def _filled(name: str) -> nw.Expr:
    """Return a column of texts; an empty one is missing."""
    return nw.when(nw.col(name) != "").then(nw.col(name))
