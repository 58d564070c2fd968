"""A table as rows that name their kinds, beside the columns that rows of a kind share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import narwhals as nw

from discreet.census.columns import Columns
from discreet.census.declarations import TableName
from discreet.census.schema import Schema
from discreet.engine import Frame

#: Makes columns of others, row by row: of a frame, of which some columns are to be kept, and no
#: others but those made. May leave rows out.
Make = Callable[[Frame, Sequence[str]], Frame]

#: The columns that are looked at, and what is made of them.
Recode = tuple[Sequence[str], Make]


@dataclass(frozen=True)
class ByKind:
    """The rows with their ids and kinds; and the kinds, by the column that names them."""

    rows: Frame
    kinds: Mapping[str, Frame]

    def joined(self) -> Frame:
        """Return the rows with the columns of their kinds."""
        return self._joined(self.kinds.items()).drop(*self.kinds)

    def recoded(
        self,
        schema: Schema,
        tables: Mapping[TableName, Frame],
        place: TableName,
        ids: Sequence[str],
        recodes: Sequence[Recode],
    ) -> Frame | None:
        """Return ids, and what is made of each kind; None if something is made of several kinds.

        `tables` has the table as it is joined, whose types columns get, and the geography, of
        which columns may be looked at if a kind names the block.
        """
        types = tables[place].collect_schema()
        told: list[tuple[str, Frame]] = []
        made: list[str] = []
        for columns, make in recodes:
            on = next((on for on in self.kinds if self._tells(on, columns, schema, place)), None)
            if on is None or not {*ids} <= {*self.rows.collect_schema().names()}:
                return None
            kinds = Columns(schema, {**tables, place: self.kinds[on]}.__getitem__)
            casts = (nw.col(n).cast(types[n]) if n in types else nw.col(n) for n in columns)
            found = make(kinds.add(place, columns).select(on, *casts), [on])
            told.append((on, found))
            made += [name for name in found.collect_schema().names() if name != on]
        return self._joined(told).select(*ids, *made)

    def _tells(self, on: str, columns: Sequence[str], schema: Schema, place: TableName) -> bool:
        there = {*self.kinds[on].collect_schema().names()}
        above = schema.block in there
        return all(n in there or (above and schema.home(n, place) == "geography") for n in columns)

    def _joined(self, kinds: Iterable[tuple[str, Frame]]) -> Frame:
        frame = self.rows
        for on, told in kinds:
            frame = frame.join(told, on=on, how="inner")
        return frame
