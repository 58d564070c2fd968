"""A Parquet file may hold any type: it is read or refused in our words, without its values."""

from pathlib import Path

import duckdb
import pytest

from discreet.census import Census, check_structure, ingest, validate
from discreet.engine import Engine
from discreet.errors import BadInput
from worlds import us_census, write_census

TYPES = {
    "list": "['SECRET']",
    "struct": "{'a': 'SECRET'}",
    "map": "map {'a': 'SECRET'}",
    "nested": "[{'a': ['SECRET']}]",
    "array": "array_value(1, 2, 3)",
    "enum": "'SECRET'::enum('SECRET', 'b')",
    "decimal": "1.5::decimal(9, 2)",
    "huge": "1::hugeint",
    "unsigned": "18446744073709551615::ubigint",
    "uuid": "uuid()",
    "blob": "'SECRET'::blob",
    "interval": "interval 1 day",
    "time": "time '10:00'",
    "zoned": "timestamptz '2020-01-01 00:00:00+01'",
    "nanoseconds": "'2020-01-01'::timestamp_ns",
    "date": "date '2020-01-01'",
    "boolean": "true",
    "nan": "'nan'::double",
    "json": "'\"SECRET\"'::json",
}
COLUMNS = [
    ("persons", "age"),
    ("persons", "sex"),
    ("units", "unit_id"),
    ("units", "kind"),
    ("geography", "block"),
    ("units", "notes"),
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a valid census."""
    folder = tmp_path_factory.mktemp("stored") / "census"
    engine = Engine(threads=1)
    write_census(
        us_census(engine, [(0, "1", [(40, "1", "01")]), (1, "1", [(20, "1", "01")])]), folder
    )
    return folder


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_any_type_is_read_or_refused(
    table: str, column: str, stored: Path, engine: Engine, tmp_path: Path
) -> None:
    refused: dict[str, str] = {}
    for kind, sql in TYPES.items():
        folder = tmp_path / kind
        folder.mkdir()
        for file in stored.iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        source, target = stored / f"{table}.parquet", folder / f"{table}.parquet"
        others = "*" if column == "notes" else f"* exclude ({column})"
        duckdb.sql(f"select {others}, {sql} as {column} from '{source}'").write_parquet(str(target))
        for step in (
            lambda folder=folder: check_structure(Census.open(folder, engine)),
            lambda folder=folder: validate(Census.open(folder, engine)),
            lambda folder=folder: ingest(
                folder, folder / "again", schema="us-decennial", engine=engine
            ),
        ):
            try:
                step()
            except BadInput as error:
                refused[kind] = refused.get(kind, "") + str(error)
    # A column that the schema does not know is left out, whatever it holds.
    expected = set() if column == "notes" else {"list", "struct", "map", "nested", "array", "zoned"}
    assert expected <= refused.keys()
    assert "SECRET" not in "".join(refused.values())
