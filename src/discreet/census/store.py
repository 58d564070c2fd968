"""Write checked tables as a census: ids as numbers, person keys, rows and columns in order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import narwhals as nw

from discreet.census.declarations import TableName, Variable
from discreet.census.examine import Loaded
from discreet.census.keys import with_person_key
from discreet.census.schema import Schema, model_columns
from discreet.engine import Engine, Frame
from discreet.files import write_text

Number = type[nw.Int16] | type[nw.Int32] | type[nw.Int64] | type[nw.Float64]

#: Ids that are plain whole numbers are kept; where one is not, all are replaced by their place.
PLAIN_ID = r"^(0|[1-9]\d{0,17})$"


class Store:
    """The tables of one checked census, ready to be written."""

    def __init__(
        self,
        engine: Engine,
        schema: Schema,
        tables: Mapping[TableName, Loaded],
        wide: set[tuple[TableName, str]],
    ) -> None:
        self.engine, self.schema, self.tables, self.wide = engine, schema, tables, wide
        persons = tables.get("persons")
        self.linked = persons is not None and "unit_id" in persons.columns

    def write(self, folder: Path, key: str) -> dict[str, int]:
        """Write the tables and the secret of the keys; return the numbers of rows."""
        block = self.schema.block
        frames = self.frames(key)
        if "persons" in frames:
            write_text(folder / "person-key.txt", key + "\n", mode=0o600)
        home = "unit_id" if self.linked else block
        orders = {"geography": [block], "units": ["unit_id"], "persons": [home, "person_key"]}
        counts: dict[str, int] = {}
        for place, frame in frames.items():
            self.engine.write_parquet(frame, folder / f"{place}.parquet", orders[place])
            counts[place] = int(self.engine.rows(frame.select(nw.len()))[0][0])
        return counts

    def frames(self, key: str, *, lazy: bool = False) -> dict[TableName, Frame]:
        """Return the tables of a census: ids as numbers, columns of the model in their order.

        With `lazy`, persons have no keys where these can be made later.
        """
        frames = {place: self._stored(place) for place in self.tables}
        plain = "units" not in frames or self._plain_ids(frames["units"])
        if "persons" in frames and not (lazy and plain and self._later()):
            # Before units are numbered: a number may depend on what other units there are.
            frames["persons"] = self._keyed(frames["persons"], key)
        if "units" in frames:
            self._number_units(frames, plain, lazy)
        for place, frame in frames.items():
            columns = model_columns(self.schema, place, self.linked)
            present = frame.collect_schema().names()
            frames[place] = frame.select(*(name for name in columns if name in present))
        return frames

    def _stored(self, place: TableName) -> Frame:
        """Return the table with whole numbers in the smallest type their range allows."""
        table = self.tables[place]
        smaller = {
            name: nw.col(name).cast(stored_type(variable))
            for name, variable in self.schema.variables(place).items()
            if name in table.columns and variable.number and (place, name) not in self.wide
        }
        return table.frame.with_columns(**smaller) if smaller else table.frame

    def _later(self) -> bool:
        """Say whether keys need not be made now: nobody is named by a key."""
        return not {"person_key", "donor_id"} & {*self.tables["persons"].columns}

    def _plain_ids(self, units: Frame) -> bool:
        """Say whether the ids of units are whole numbers, or written as such."""
        if units.collect_schema()["unit_id"].is_integer():
            return True
        others = units.filter(~nw.col("unit_id").str.contains(PLAIN_ID)).select(nw.len())
        return int(self.engine.rows(others)[0][0]) == 0

    def _number_units(self, frames: dict[TableName, Frame], plain: bool, lazy: bool) -> None:
        """Turn unit ids into whole numbers, the same in units and persons."""
        touched: list[TableName] = ["units", "persons"] if self.linked else ["units"]
        if plain:
            if lazy and frames["units"].collect_schema()["unit_id"].is_integer():
                return
            # From text whatever they are: the engine writes numbers that it knows to be there
            # in another way, and the same census should make the same file.
            number = nw.col("unit_id").cast(nw.String).cast(nw.Int64)
            frames |= {place: frames[place].with_columns(unit_id=number) for place in touched}
            return
        ids = self.engine.number_rows(frames["units"].select("unit_id"), ["unit_id"], "_number")
        numbers = self.engine.materialise(ids)
        for place in touched:
            joined = frames[place].join(numbers, on="unit_id", how="left").drop("unit_id")
            frames[place] = joined.rename({"_number": "unit_id"})

    def _keyed(self, persons: Frame, key: str) -> Frame:
        """Give every person a key; donors named by the file's own ids are named by keys."""
        present = persons.collect_schema().names()
        if "person_key" in present:
            persons = persons.rename({"person_key": "_own_id"})
        keyed = with_person_key(self.engine, persons, self.schema, key)
        if "donor_id" not in present:
            return keyed
        donors = keyed.select(nw.col("_own_id").alias("donor_id"), _donor=nw.col("person_key"))
        named = keyed.join(donors, on="donor_id", how="left").drop("donor_id")
        return named.rename({"_donor": "donor_id"})


def stored_type(variable: Variable) -> Number:
    """Return the type a number is stored in."""
    if variable.number == "real":
        return nw.Float64
    low, high = variable.min, variable.max
    if low is None or high is None or not -(2**31) <= low <= high < 2**31:
        return nw.Int64
    return nw.Int16 if low >= -(2**15) and high < 2**15 else nw.Int32
