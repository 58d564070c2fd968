"""Thousands of spoilt inputs for every reader: refused in our words, or harmless.

An eighth of them runs with the suite, all with `DISCREET_FUZZ=all`. What must hold is said in
`judge.py`. A failing case names its reader and number; run it alone with
`DISCREET_FUZZ=reader:number pytest tests/fuzz`.
"""

import os
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from discreet.census import Census, InvalidCensus, ingest, load_schema, read_waivers, validate
from discreet.engine import Engine
from fuzz.judge import judge, records, same_records
from fuzz.mutations import (
    BYTES,
    CANARY_NUMBER,
    CANARY_TEXT,
    Columns,
    Spoilt,
    spoil_delimited,
    spoil_yaml,
)

HERE = Path(__file__).parent
MINI = HERE / "mini"
SAMPLES = HERE.parent / "census" / "samples"
BATCH = 25

MINI_COLUMNS = {
    "geography": Columns(
        numbers={"latitude"}, never_missing={"region", "cell"}, required={"region", "cell"},
        unique_rows=True,
    ),
    "units": Columns(
        numbers={"rooms"}, codes={"kind", "tenure"}, references={"cell"}, unique_rows=True,
        never_missing={"unit_id", "cell", "kind", "rooms"}, required={"unit_id", "cell", "kind"},
    ),
    "persons": Columns(
        numbers={"age"}, codes={"role", "origin"}, references={"unit_id"},
        never_missing={"unit_id", "age", "role"}, required={"unit_id", "age"},
    ),
}  # fmt: skip
PHSAFE_COLUMNS = {
    "geo": Columns(
        codes={"TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK", "TABBLKGRPCE", "REGIONCE"},
        references={"MAFID"}, never_missing={"MAFID", "TABBLKST", "TABBLK", "REGIONCE", "RTYPE"},
        required={"MAFID", "RTYPE", "TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK", "PLACEFP"},
        unique_rows=True,
    ),
    "units": Columns(
        numbers={"NPF", "FINAL_POP"}, codes={"RTYPE", "HHSPAN", "HHRACE", "TEN", "HHT", "CPLT"},
        references={"MAFID"}, never_missing={"RTYPE", "MAFID", "FINAL_POP", "HHT"},
        required={"RTYPE", "MAFID", "FINAL_POP", "NPF", "HHRACE", "HHT", "HHT2"},
        unique_rows=True,
    ),
    "persons": Columns(
        numbers={"QAGE"}, codes={"RTYPE", "CENHISP", "CENRACE", "RELSHIP"}, references={"MAFID"},
        never_missing={"RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP"},
        required={"RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP"}, unique_rows=True,
    ),
}  # fmt: skip
COUNTS = {"W", "B", "AI_AN", "AS", "H_PI", "OTH", "TWO_OR_MORE", "NUM_HISP", "18_PLUS"}
ROWS_COLUMNS = {
    "households": Columns(
        numbers={*COUNTS, "TOTAL", "BLOCK_TOTAL"}, codes={"STATEA", "COUNTYA", "TRACTA", "BLOCKA"},
        never_missing={*COUNTS, "TOTAL", "STATEA", "COUNTYA", "TRACTA", "BLOCKA", "HH_NUM"},
        required={*COUNTS, "STATEA", "COUNTYA", "TRACTA", "BLOCKA", "HH_NUM"}, unique_rows=True,
    )
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A spoilt input and how to read it."""

    spoilt: Spoilt
    read: Callable[[Path], object]
    accepted: Callable[[Path], None] = lambda out: None


Maker = Callable[[Path, random.Random, int, Engine], Case]


def spoilt_copy(
    room: Path, original: Path, columns: dict[str, Columns], rng: random.Random, number: int
) -> Spoilt:
    """Copy the files of a sample into `room`, one of them spoilt."""
    source = Path(shutil.copytree(original, room / "source"))
    table = rng.choice(sorted(columns))
    path = source / f"{table}.csv"
    spoilt = spoil_delimited(path.read_bytes(), rng, number, columns[table])
    path.write_bytes(spoilt.data)
    return spoilt


def canonical_csv(room: Path, rng: random.Random, number: int, engine: Engine) -> Case:
    spoilt = spoilt_copy(room, MINI, MINI_COLUMNS, rng, number)
    own = None if number % 20 == 0 else engine  # now and then with its own work folder
    return Case(
        spoilt,
        lambda out: ingest(room / "source", out, engine=own),
        lambda out: same_records(room / "source", out, engine),
    )


def phsafe(room: Path, rng: random.Random, number: int, engine: Engine) -> Case:
    spoilt = spoilt_copy(room, SAMPLES / "phsafe", PHSAFE_COLUMNS, rng, number)

    def as_many(out: Path) -> None:
        census = Census.open(out, engine)
        for table in ("units", "persons"):
            rows = engine.rows(census.table(table))  # type: ignore[arg-type]
            assert len(rows) == len(records(room / "source" / f"{table}.csv"))

    return Case(
        spoilt, lambda out: ingest(room / "source", out, layout="phsafe", engine=engine), as_many
    )


def household_rows(room: Path, rng: random.Random, number: int, engine: Engine) -> Case:
    spoilt = spoilt_copy(room, SAMPLES / "household-rows", ROWS_COLUMNS, rng, number)

    def as_many(out: Path) -> None:
        given = records(room / "source" / "households.csv")
        census = Census.open(out, engine)
        assert len(engine.rows(census.table("units"))) == len(given)
        races = COUNTS - {"NUM_HISP", "18_PLUS"}
        persons = sum(int(row[race]) for row in given for race in races)
        assert len(engine.rows(census.table("persons"))) == persons

    return Case(
        spoilt,
        lambda out: ingest(room / "source", out, layout="household-rows", engine=engine),
        as_many,
    )


def parquet_source(room: Path, change: dict[str, str]) -> Path:
    """Write the mini tables as Parquet; `change` gives a query for some of them."""
    source = room / "source"
    source.mkdir()
    shutil.copy(MINI / "schema.yaml", source)
    with duckdb.connect() as connection:
        for table in MINI_COLUMNS:
            connection.execute(
                f"create table {table} as from read_csv('{MINI / table}.csv', all_varchar = true)"
            )
            query = change.get(table, f"from {table}")
            connection.execute(f"copy ({query}) to '{source / table}.parquet' (format parquet)")
    return source


def parquet_bytes(room: Path, rng: random.Random, number: int, engine: Engine) -> Case:
    source = parquet_source(room, {})
    path = source / f"{rng.choice(sorted(MINI_COLUMNS))}.parquet"
    spoilt = rng.choice([way for way in BYTES if way.__name__ != "not_utf8"])(
        path.read_bytes(), rng, number
    )
    path.write_bytes(spoilt.data)
    return Case(spoilt, lambda out: ingest(source, out, engine=engine))


def parquet_columns(room: Path, rng: random.Random, number: int, engine: Engine) -> Case:
    table = rng.choice(sorted(MINI_COLUMNS))
    columns = MINI_COLUMNS[table]
    column = rng.choice(sorted(columns.required | columns.numbers | columns.codes))
    canary = rng.choice([CANARY_TEXT, CANARY_NUMBER]).format(number)
    name = f'"{column}"'
    values = {
        "list": f"[{name}]", "struct": f"{{'a': {name}}}", "truth": f"{name} is null",
        "date": "date '2020-01-01'", "bytes": f"encode({name})", "time": "now()::timestamp",
        "missing": "null::varchar", "uuid": "uuid()", "interval": "interval 1 day",
        "huge": "170141183460469231731687303715884105727::hugeint", "infinite": "'inf'::double",
        "fraction": "1.5::double", "not a number": "'nan'::double", "null": "null",
        "canary": f"'{canary}'", "map": f"map {{'a': {name}}}", "decimal": "12.34::decimal(9,2)",
    }  # fmt: skip
    queries = {
        what: f"select * replace ({to} as {name}) from {table}" for what, to in values.items()
    }
    queries |= {
        "dropped": f"select * exclude ({name}) from {table}",
        "renamed": f'select * exclude ({name}), {name} as "{canary}" from {table}',
        "extra": f"select *, '{canary}' as \"{canary}\" from {table}",
        "empty": f"from {table} where false",
        "twice": f"from {table} union all from {table}",
    }
    what = rng.choice(sorted(queries))
    query = queries[what]
    source = parquet_source(room, {table: query})
    harmless = what == "extra"
    harmless |= what in ("dropped", "renamed") and column not in columns.required
    harmless |= column == "latitude" and what in ("missing", "null", "fraction", "decimal")
    harmless |= column == "origin" and what in ("missing", "null")
    return Case(
        Spoilt(f"Parquet {table}.{column} {what}", b"", must_refuse=not harmless),
        lambda out: ingest(source, out, engine=engine),
    )


def mapping_file(room: Path, rng: random.Random, number: int, engine: Engine) -> Case:
    text = (MINI / "mapping.yaml").read_text().replace("SCHEMA", str(MINI / "schema.yaml"))
    spoilt = spoil_yaml(text.encode(), rng, number)
    (room / "mapping.yaml").write_bytes(spoilt.data)
    return Case(spoilt, lambda out: ingest(MINI, out, layout=room / "mapping.yaml", engine=engine))


def schema_file(room: Path, rng: random.Random, number: int, engine: Engine) -> Case:
    spoilt = spoil_yaml((MINI / "schema.yaml").read_bytes(), rng, number)
    (room / "schema.yaml").write_bytes(spoilt.data)
    return Case(spoilt, lambda out: ingest(MINI, out, schema=room / "schema.yaml", engine=engine))


def waiver_file(room: Path, rng: random.Random, number: int, engine: Engine) -> Case:
    spoilt = spoil_yaml((MINI / "waivers.yaml").read_bytes(), rng, number)
    (room / "waivers.yaml").write_bytes(spoilt.data)
    return Case(
        spoilt, lambda out: read_waivers(room / "waivers.yaml", load_schema(MINI / "schema.yaml"))
    )


def census_folder(room: Path, rng: random.Random, number: int, engine: Engine) -> Case:
    folder = room / "census"
    ingest(MINI, folder, engine=engine)
    name = rng.choice(["census.yaml", "schema.yaml", "schema.yaml"])
    spoilt = spoil_yaml((folder / name).read_bytes(), rng, number)
    (folder / name).write_bytes(spoilt.data)

    def read(out: Path) -> None:
        findings = validate(Census.open(folder, engine))
        if not findings.ok:
            raise InvalidCensus(findings)

    return Case(spoilt, read)


READERS: dict[str, tuple[Maker, int]] = {
    "canonical-csv": (canonical_csv, 100),
    "phsafe": (phsafe, 50),
    "household-rows": (household_rows, 50),
    "parquet-bytes": (parquet_bytes, 425),
    "parquet-columns": (parquet_columns, 50),
    "mapping-file": (mapping_file, 450),
    "schema-file": (schema_file, 525),
    "waiver-file": (waiver_file, 325),
    "census-folder": (census_folder, 50),
}
#: Every eighth batch is enough for each change; DISCREET_FUZZ=all runs all of them.
STEP = 8 * BATCH if "DISCREET_FUZZ" not in os.environ else BATCH
BATCHES = [(name, first) for name, (_, cases) in READERS.items() for first in range(0, cases, STEP)]


def canaries(number: int) -> list[str]:
    """Return what must never be seen: planted values, and telling values of the samples."""
    own = ["91827364", "A4417001", "A4417002", "B4417003", "550123", "33.71875", "karelia"]
    own += ["100000001", "100000003", "440010301001000", "Autauga", "86.5"]
    planted = [CANARY_TEXT.format(number), CANARY_NUMBER.format(number)]
    return own + planted


def run(name: str, number: int, room: Path, engine: Engine, capture: object) -> bool:
    maker, _ = READERS[name]
    rng = random.Random(f"{name}:{number}")
    case = maker(room, rng, number, engine)
    try:
        return judge(
            case.spoilt, room, engine, canaries(number), case.read, case.accepted,
            capture,  # type: ignore[arg-type]
        )  # fmt: skip
    except BaseException as error:
        error.add_note(f"case {name}:{number} ({case.spoilt.what}), files in {room}")
        raise


@pytest.fixture
def engine() -> Engine:
    return sound_engine()


_engines: list[Engine] = []


def sound_engine() -> Engine:
    """Return the engine of this process; a damaged file may have stopped the last one."""
    if not _engines or _engines[-1].cannot_match(["x"]):
        _engines.append(Engine(threads=1))
    return _engines[-1]


@pytest.mark.parametrize(("name", "first"), BATCHES)
def test_spoilt_inputs(
    name: str,
    first: int,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # nothing here must survive a power cut
    only = os.environ.get("DISCREET_FUZZ")
    only = None if only == "all" else only
    judged = []
    for number in range(first, first + BATCH):
        if only is not None and only != f"{name}:{number}":
            continue
        room = tmp_path / str(number)
        room.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(room))  # stray files would be seen
            judged.append(run(name, number, room, sound_engine(), capfd))
        shutil.rmtree(room)
    assert only is not None or len(judged) == BATCH


@pytest.mark.parametrize("layout", ["canonical", "mapping"])
def test_the_unspoilt_originals_are_accepted(layout: str, engine: Engine, tmp_path: Path) -> None:
    text = (MINI / "mapping.yaml").read_text().replace("SCHEMA", str(MINI / "schema.yaml"))
    (tmp_path / "mapping.yaml").write_text(text)
    chosen = tmp_path / "mapping.yaml" if layout == "mapping" else layout
    assert ingest(MINI, tmp_path / "out", layout=chosen, engine=engine).findings.items == ()
    assert len(read_waivers(MINI / "waivers.yaml", load_schema(MINI / "schema.yaml"))) == 2


def test_there_are_enough_cases() -> None:
    assert sum(cases for _, cases in READERS.values()) >= 2000
    assert all(cases % BATCH == 0 for _, cases in READERS.values())
