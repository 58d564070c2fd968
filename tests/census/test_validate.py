"""Validation of census folders: parts, damaged files, wrong types, findings as data."""

import json
from collections.abc import Callable
from pathlib import Path

import narwhals as nw
import pytest

from discreet.census import Census, IngestReport, validate
from discreet.engine import Engine
from discreet.errors import BadInput

Copy = Callable[[str], Path]
TakeIn = Callable[..., IngestReport]


@pytest.fixture
def folder(copied: Copy, take_in: TakeIn, tmp_path: Path) -> Path:
    take_in(copied("us"), "us")
    return tmp_path / "census"


def rewrite(folder: Path, engine: Engine, table: str, **columns: nw.Expr) -> None:
    path = folder / f"{table}.parquet"
    frame = engine.materialise(engine.read_parquet(path).with_columns(**columns))
    engine.write_parquet(frame, path)


def test_a_table_in_parts_names_the_part(folder: Path, engine: Engine) -> None:
    persons = engine.materialise(engine.read_parquet(folder / "persons.parquet"))
    (folder / "persons.parquet").unlink()
    for part, low, high in (("01", 0, 5), ("02", 6, 99)):
        rows = persons.filter((nw.col("unit_id") >= low) & (nw.col("unit_id") <= high))
        engine.write_parquet(rows, folder / "persons" / f"{part}.parquet", ["unit_id"])
    assert validate(Census.open(folder, engine)).ok
    bad = nw.when(nw.col("unit_id") >= 8).then(nw.lit("x")).otherwise(nw.col("sex"))
    rewrite(folder / "persons", engine, "02", sex=bad)
    findings = validate(Census.open(folder, engine))
    code = next(item for item in findings.items if item.rule == "code")
    assert (code.file, code.count) == ("persons/02.parquet", 5)
    assert code.rows == (4, 5, 6, 7, 8)


@pytest.mark.parametrize(
    ("table", "column", "dtype"),
    [
        ("persons", "age", nw.String),
        ("persons", "race", nw.Int64),
        ("units", "unit_id", nw.String),
        ("units", "kind", nw.Binary),
        ("geography", "latitude", nw.String),
        ("geography", "block", nw.Int64),
    ],
)
def test_a_column_of_the_wrong_type_is_named(
    table: str, column: str, dtype: type, folder: Path, engine: Engine
) -> None:
    rewrite(folder, engine, table, **{column: nw.col(column).cast(dtype)})
    findings = validate(Census.open(folder, engine))
    assert ("type", table, column) in [(i.rule, i.table, i.column) for i in findings.errors]


def test_extra_and_missing_columns_of_a_census(folder: Path, engine: Engine) -> None:
    rewrite(folder, engine, "units", surprise=nw.lit("x"))
    path = folder / "persons.parquet"
    frame = engine.materialise(engine.read_parquet(path).drop("person_key", "sex"))
    engine.write_parquet(frame, path)
    findings = validate(Census.open(folder, engine))
    named = {(i.rule, i.table, i.column) for i in findings.items}
    assert ("column", "persons", "person_key") in named
    assert ("column", "persons", "sex") in named
    assert ("unknown-column", "units", "column 12") in named
    assert findings.not_checked["household-type"] == "persons.sex"


def test_damaged_pages_are_bad_input(folder: Path) -> None:
    path = folder / "persons.parquet"
    data = bytearray(path.read_bytes())
    data[8:200] = b"\xff" * 192
    path.write_bytes(data)
    with pytest.raises(BadInput):
        validate(Census.open(folder, Engine(threads=1)))


def test_findings_as_data_and_as_text(folder: Path, engine: Engine) -> None:
    rewrite(folder, engine, "persons", sex=nw.lit("9"))
    findings = validate(Census.open(folder, engine))
    data = json.loads(json.dumps(findings.data()))
    code = next(item for item in data["findings"] if item["rule"] == "code")
    assert code["rows"] == [1, 2, 3, 4, 5]
    assert (code["file"], code["column"], code["count"]) == ("persons.parquet", "sex", 21)
    text = findings.text()
    assert text.splitlines()[0].split()[:3] == ["file", "column", "rule"]
    assert "persons.parquet" in text


def test_a_census_in_memory_is_checked_without_row_numbers(folder: Path, engine: Engine) -> None:
    opened = Census.open(folder, engine)
    persons = opened.table("persons").with_columns(sex=nw.lit("9"))
    census = Census(opened.schema, engine, opened.geography, opened.units, persons, opened.origin)
    findings = validate(census)
    code = next(item for item in findings.items if item.rule == "code")
    assert (code.count, code.rows, code.file) == (21, (), "persons")


def test_a_pattern_the_engine_cannot_match_is_refused(folder: Path, engine: Engine) -> None:
    schema = (folder / "schema.yaml").read_text()
    assert "[1-8]\\d{3}" in schema
    (folder / "schema.yaml").write_text(schema.replace("[1-8]\\d{3}", "(?=1)\\d{4}"))
    with pytest.raises(BadInput, match="cannot match"):
        validate(Census.open(folder, engine))
