"""A table as rows that name their kinds, beside the columns that rows of a kind share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from discreet.census.columns import Columns
from discreet.census.declarations import TableName
from discreet.census.schema import Schema
from discreet.engine import Frame

#: Makes columns of others, row by row: of a frame, of which some columns are to be kept. May
#: leave rows out.
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
        return self._joined(self.kinds.items())

    def recoded(
        self, schema: Schema, place: TableName, geography: Frame, recodes: Sequence[Recode]
    ) -> Frame | None:
        """Return ids, and what is made of each kind; None if something is made of several kinds.

        What is looked at may be a column of the geography, if a kind names the block.
        """
        told = []
        for columns, make in recodes:
            on = next((on for on in self.kinds if self._tells(on, columns, schema, place)), None)
            if on is None:
                return None
            tables = {place: self.kinds[on], "geography": geography}
            kinds = Columns(schema, tables.__getitem__).add(place, columns)
            told.append((on, make(kinds, [on])))
        return self._joined(told)

    def _tells(self, on: str, columns: Sequence[str], schema: Schema, place: TableName) -> bool:
        there = {*self.kinds[on].collect_schema().names()}
        above = schema.block in there
        return all(n in there or (above and schema.home(n, place) == "geography") for n in columns)

    def _joined(self, kinds: Iterable[tuple[str, Frame]]) -> Frame:
        frame = self.rows
        for on, told in kinds:
            frame = frame.join(told, on=on, how="inner")
        return frame.drop(*self.kinds)
