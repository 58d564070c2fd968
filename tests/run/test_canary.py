"""A census full of canaries: none may be found outside the census and the work folder.

Every identifier of the input is a unique number, and so is the exact count of one cell.
Released values themselves (ages, codes, blocks) are what a release of microdata is for;
what must not leave is whatever links a released row to an input row, exact counts that
are not invariant, and anything that only the input files say.
"""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import narwhals as nw
import numpy as np
import pytest
import yaml

from discreet.engine import Engine
from discreet.mechanisms import mechanism
from worlds import us_census, write_census

from .conftest import write_register

FIRST_ID = 7_310_007_700_000_000
NOTE = "canary-note-5a1c"
SECRET = "canary-secret-99e0"
#: The exact number of renters; the noise on it has a standard deviation of 1000.
RENTERS = 4_513

PARAMETERS = {
    "permutation-swapping": {"rate": "1/2", "match": ["size"], "within": "county"},
    "noisy-tables": {
        "noise": "gaussian",
        "budget": "1/1000000",
        "change": "replace",
        "queries": [{"table": "H4", "level": "state", "share": "1"}],
    },
}


def canary_census(folder: Path):
    """Write a supplied census whose identifiers are all canaries; return it."""
    engine = Engine(threads=1)
    random = np.random.default_rng(3)
    households = [
        (
            int(random.integers(3)),
            "3" if n < RENTERS else "1",
            [(int(random.integers(18, 99)), "1", "01")],
        )
        for n in range(RENTERS + 40)
    ]
    census = us_census(engine, households)
    shift = nw.col("unit_id") + FIRST_ID
    units = engine.materialise(census.table("units").with_columns(unit_id=shift))
    keys = (nw.col("person_key") // 1000 * 1000 + 777).alias("person_key")
    persons = census.table("persons").with_columns(shift.alias("unit_id"), keys)
    persons = persons.with_columns(donor_id=nw.col("person_key") + 1)
    census = replace(census, units=units, persons=engine.materialise(persons), origin="supplied")
    write_census(census, folder)
    header = folder / "census.yaml"
    header.write_text(yaml.safe_dump({**yaml.safe_load(header.read_text()), "note": NOTE}))
    (folder / "person-key.txt").write_text(SECRET)
    return census


def canaries(census) -> list[bytes]:
    """Return the canaries as text and as the eight bytes a Parquet page would hold."""
    engine = census.engine
    ids = engine.to_numpy(census.table("units").select("unit_id"))["unit_id"]
    keys = engine.to_numpy(census.table("persons").select("person_key"))["person_key"]
    numbers = [int(n) for n in (*ids[:200], *keys[:200], *(keys[:200] + 1))]
    found = [str(n).encode() for n in numbers] + [n.to_bytes(8, "little") for n in numbers]
    return [*found, NOTE.encode(), SECRET.encode()]


def discreet(config: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "discreet", "run", config.name, *options],
        cwd=config.parent,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )


def values(folder: Path) -> set[object]:
    """Return every value of every public Parquet file, decoded."""
    engine = Engine(threads=1)
    files = folder.rglob("*.parquet")
    return {
        value for file in files for row in engine.rows(engine.read_parquet(file)) for value in row
    }


@pytest.mark.parametrize("name", PARAMETERS)
def test_no_canary_leaves_the_work_folder(name, tmp_path):
    house = tmp_path / "house"
    house.mkdir()
    census = canary_census(house / "census")
    made = mechanism(name, census.schema, PARAMETERS[name])
    write_register(house / "register.sqlite", made, "100")
    config = house / "run.yaml"
    content = {
        "format_version": 1,
        "release": "first",
        "mode": "release",
        "census": "census",
        "work": "work",
        "out": "out",
        "mechanism": name,
        "parameters": PARAMETERS[name],
        "account": {"register": "register.sqlite", "collection": "tiny-2026", "version": "edited"},
    }
    config.write_text(yaml.safe_dump(content))
    outside = {key: str(tmp_path / key.lower()) for key in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    for folder in outside.values():
        Path(folder).mkdir()
    said = []
    for options, exit_code in ((["--dry-run"], 0), ([], 0), ([], 2), (["--resume"], 0)):
        done = discreet(config, *options, **outside)
        assert done.returncode == exit_code, done.stderr.decode()
        said.append(done.stdout + done.stderr)
    # An error in the middle of the work: a census that cannot be swapped or counted.
    (house / "census" / "persons.parquet").write_bytes(b"PAR1" + SECRET.encode() + b"PAR1")
    content.update(work="work2", out="out2", release="second")
    config.write_text(yaml.safe_dump(content))
    done = discreet(config, **outside)
    assert done.returncode == 2
    said.append(done.stdout + done.stderr)

    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    private = (house / "census", house / "work", house / "work2")
    public = [p for p in found if not any(folder in p.parents for folder in private)]
    assert {p.name for p in public} >= {"release.yaml", "specification.yaml", "register.sqlite"}
    texts = [*said, *(path.read_bytes() for path in public)]
    for canary in canaries(census):
        assert not any(canary in text for text in texts)
    numbers = {int(c) for c in canaries(census) if c.isdigit()}
    assert not numbers & values(house / "out")
    if name == "noisy-tables":  # equal by chance with probability 4e-4
        assert RENTERS not in values(house / "out")


def test_the_same_search_finds_a_planted_canary(tmp_path):
    census = canary_census(tmp_path / "census")
    census.engine.write_parquet(census.table("units"), tmp_path / "out" / "units.parquet")
    numbers = {int(c) for c in canaries(census) if c.isdigit()}
    assert numbers & values(tmp_path / "out")
