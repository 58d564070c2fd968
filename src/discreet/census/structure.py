"""What every promise rests on: blocks and units that exist once, and links that lead somewhere."""

from __future__ import annotations

import narwhals as nw

from discreet.census.census import Census
from discreet.engine import Frame
from discreet.errors import BadInput


def check_structure(census: Census) -> None:
    """Refuse a census in which a record could be counted twice or nowhere.

    One household in two rows of a join would count twice, and a promise made for a
    sensitivity of one would not hold.
    """
    block = census.schema.block
    _once(census, census.geography, block, "geography", block)
    if census.units is not None:
        _once(census, census.units, "unit_id", "units", "unit_id")
        _known(census, census.units, census.geography, block, "units")
        _sorted_out(census, census.units)
    if census.persons is not None and census.linked:
        if census.units is None:
            raise BadInput("persons name units, but this census has no units table.")
        _known(census, census.persons, census.units, "unit_id", "persons")
    elif census.persons is not None:
        _known(census, census.persons, census.geography, block, "persons")


def _sorted_out(census: Census, units: Frame) -> None:
    """Refuse units of no known kind: they would be neither protected nor declared as fixed."""
    kinds = census.schema.kinds
    named = [*kinds.occupied, *kinds.vacant, *kinds.collective]
    strange = units.filter(~nw.col("kind").is_in(named).fill_null(False)).select(rows=nw.len())
    rows = census.engine.rows(strange)[0][0]
    if rows:
        raise BadInput(f"units: {rows} rows have a kind the schema does not know. Mend them.")


def _once(census: Census, frame: Frame, key: str, table: str, column: str) -> None:
    counts = frame.select(rows=nw.len(), different=nw.col(key).n_unique())
    rows, different = census.engine.rows(counts)[0]
    if rows != different:
        raise BadInput(
            f"{table}: {rows - different} rows repeat a {column} or lack one. "
            f"Run `discreet validate` and mend the census."
        )


def _known(census: Census, frame: Frame, home: Frame, key: str, table: str) -> None:
    lost = frame.join(home.select(key), on=key, how="anti").select(rows=nw.len())
    rows = census.engine.rows(lost)[0][0]
    if rows:
        raise BadInput(
            f"{table}: {rows} rows name a {key} that does not exist. "
            f"Run `discreet validate` and mend the census."
        )
