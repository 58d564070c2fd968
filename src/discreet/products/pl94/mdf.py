"""Write protected records in the layouts of the 2020 microdata detail files (PL94).

Two files with a header line and fields between bars, sorted by geography: one of persons,
one of units; records without persons or units have one of the two. The codes are those of
the published layouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from discreet.census import Census
from discreet.engine import Frame
from discreet.errors import BadInput
from discreet.files import atomic_folder
from discreet.products.pl94.histogram import person_records
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
    """Write records of the US layout as the files MDF_PER and MDF_UNIT.

    Records of confidential data and of trials are readable by their owner only.
    """
    if census.schema.block != "block":
        raise BadInput(
            f"detail files are of blocks of the United States, and schema {census.schema.name} has "
            f"none. Use records of the profile us-decennial or pl94."
        )
    found = {}
    if census.persons is not None:
        found[PERSONS_FILE] = PERSONS, person_records(census).sort("block", *AXES)
    if census.units is not None:
        found[UNITS_FILE] = UNITS, census.frame("units", ["block", "kind"]).sort("block", "kind")
    with atomic_folder(folder, 0o700 if census.private else 0o755) as inside:
        for name, (fields, rows) in found.items():
            _write(census, rows, fields, inside / name)


def _write(census: Census, rows: Frame, fields: Mapping[str, str], path: Path) -> None:
    """Write the fields between bars: one column of text, which no comma or quote is in."""
    line = f"concat_ws('|', {', '.join(fields.values())})"
    census.engine.write_csv(census.engine.project(rows, {"|".join(fields): line}), path)
