"""Three plain files of a census, read as numbers and linked by the id of a unit.

For layouts whose units look up their row of the geography file by the id that persons name,
too. Nothing is checked here but the links: ids of units stand once, every row of the geography
file belongs to one unit, every person to some unit.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.census.declarations import TableName
from discreet.census.layout import Layout, Making, Part
from discreet.census.sources import Sources
from discreet.engine import Plain, read_plain
from discreet.errors import UnreadableFile

Numbers = NDArray[np.int64]
Places = NDArray[np.int32]

#: Ids that lie closer than this, for each row, are found by a table of all that may occur.
SPREAD = 64


@dataclass(frozen=True)
class LinkedFiles:
    """The files by kinds of rows, and the links between their rows."""

    #: The column of every file that holds the id.
    key: str
    geography: Plain
    units: Plain
    persons: Plain
    #: Kind of the geography row of each unit, and the unit of each person.
    area: Places
    home: Places


def read_linked(sources: Sources, layout: Layout) -> LinkedFiles | None:
    """Return the files of a layout, or None if they cannot be read and linked in this way."""
    key = _key(layout)
    # The longest first, so that it is not left alone at the end.
    places: tuple[TableName, ...] = ("persons", "geography", "units")
    if key is None or not all(place in sources for place in places):
        return None
    paths = [sources.path(place) for place in places]
    if len({*paths}) < len(paths) or any(p.is_dir() or p.suffix == ".parquet" for p in paths):
        return None
    try:
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda path: read_plain(path, key), paths))
    except UnreadableFile:  # said again of the file that is read first
        return None
    persons, geography, units = found
    if geography is None or units is None or persons is None:
        return None
    owner, home = (_find(units.keys, other.keys) for other in (geography, persons))
    if owner is None or home is None or len(owner) != len(units.keys):
        return None
    area = np.full(len(units.keys), -1, dtype=np.int32)
    area[owner] = geography.kinds
    if area.min() < 0:  # as many rows as units, but two of them for one unit
        return None
    return LinkedFiles(key, geography, units, persons, area, home)


def _key(layout: Layout) -> str | None:
    """Return the column of ids, if the layout is of this form."""
    tables = layout.tables
    if not {"geography", "units", "persons"} <= tables.keys():
        return None
    geography, units, persons = (tables[place] for place in ("geography", "units", "persons"))
    lookup = units.lookup
    if lookup is None or lookup.table != "geography" or not geography.distinct:
        return None
    others = [geography.lookup, persons.lookup, persons.expand, persons.distinct, units.distinct]
    plain = Making.model_validate({"from": [Part(column=lookup.by)]})
    ids = [table.columns.get("unit_id") for table in (units, persons)]
    if any(others) or any(one != plain for one in ids):
        return None
    # An id that the layout calls missing is not an id.
    return None if any(text.isdecimal() for text in layout.missing) else lookup.by


def _find(ids: Numbers, wanted: Numbers) -> Places | None:
    """Return where each wanted id stands, or None if one does not, or if an id stands twice."""
    low, high = int(ids.min()), int(ids.max())
    if int(wanted.min()) < low or int(wanted.max()) > high:
        return None
    numbers = np.arange(len(ids), dtype=np.int32)
    if high - low < SPREAD * len(ids):
        table = np.full(high - low + 1, -1, dtype=np.int32)
        table[ids - low] = numbers
        found, once = table[wanted - low], bool((table[ids - low] == numbers).all())
    else:
        order = np.argsort(ids, kind="stable").astype(np.int32)
        ranked = ids[order]
        place = order[np.searchsorted(ranked, wanted)]
        found = np.where(ids[place] == wanted, place, -1).astype(np.int32)
        once = bool((ranked[1:] > ranked[:-1]).all())
    return found if once and found.min() >= 0 else None
