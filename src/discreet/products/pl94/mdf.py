"""Write protected records in the layouts of the 2020 microdata detail files (PL94).

Two files with a header line and fields between bars, sorted by geography: one of persons,
one of units. The codes are those of the published layouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from discreet.census import Census
from discreet.engine import Frame
from discreet.errors import BadInput
from discreet.files import atomic_folder
from discreet.products.pl94.shells import AXES

#: The build of the layouts that the published files name.
BUILD = "1.1.0"
PERSONS_FILE, UNITS_FILE = "MDF_PER.txt", "MDF_UNIT.txt"

#: Fields of both layouts, as SQL over a 15-digit block; the block group repeats a digit.
HEAD = {
    "TABBLKST": "substr(block, 1, 2)",
    "TABBLKCOU": "substr(block, 3, 3)",
    "TABTRACTCE": "substr(block, 6, 6)",
    "TABBLKGRPCE": "substr(block, 12, 1)",
    "TABBLK": "substr(block, 12, 4)",
}


def _place(column: str) -> str:
    """Return, as SQL, the place of a value among the categories of its axis, from 1."""
    listed = ", ".join(f"'{category}'" for category in AXES[column])
    return f"list_position([{listed}], {column})"


PERSONS = {
    "SCHEMA_TYPE_CODE": "'MPD'",
    "SCHEMA_BUILD_ID": f"'{BUILD}'",
    **HEAD,
    "EPNUM": "row_number() over () - 1",
    "RTYPE": "case when hhgq = 'household' then 3 else 5 end",
    "GQTYPE_PL": f"{_place('hhgq')} - 1",
    "VOTING_AGE": _place("voting_age"),
    "CENHISP": "hispanic",
    "CENRACE": "race",
}
UNITS = {
    "SCHEMA_TYPE_CODE": "'MUD'",
    "SCHEMA_BUILD_ID": f"'{BUILD}'",
    **HEAD,
    "RTYPE": "case when kind = 'group_quarters' then 4 else 2 end",
    "HH_STATUS": "list_position(['group_quarters', 'occupied', 'vacant'], kind) - 1",
}


def write_mdf(census: Census, folder: Path) -> None:
    """Write microdata of the profile `pl94` as the files MDF_PER and MDF_UNIT."""
    if census.schema.name != "pl94":
        raise BadInput(
            f"this layout is for microdata of the profile pl94, not of {census.schema.name}."
        )
    persons = census.frame("persons", ["block", *AXES]).sort("block", *AXES)
    units = census.frame("units", ["block", "kind"]).sort("block", "kind")
    with atomic_folder(folder, 0o700 if census.origin == "supplied" else 0o755) as inside:
        _write(census, persons, PERSONS, inside / PERSONS_FILE)
        _write(census, units, UNITS, inside / UNITS_FILE)


def _write(census: Census, rows: Frame, fields: Mapping[str, str], path: Path) -> None:
    """Write the fields between bars: one column of text, which no comma or quote is in."""
    line = f"concat_ws('|', {', '.join(fields.values())})"
    census.engine.write_csv(census.engine.project(rows, {"|".join(fields): line}), path)
