"""Runs of some mechanisms on a tiny census, simulated or supplied."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from discreet.engine import Engine
from discreet.files import folder_hash
from discreet.mechanisms import mechanism
from discreet.register import Collection, Register
from discreet.run import record_hashes
from topdown.runs import LEAST
from worlds import us_census, write_census

HOUSEHOLDS = [
    (0, "1", [(40, "1", "01")]),
    (1, "1", [(70, "2", "02")]),
    (1, "1", [(25, "1", "04")]),
    (2, "1", [(33, "1", "01")]),
    (0, "3", [(40, "1", "01"), (38, "2", "02")]),
    (2, "3", [(51, "2", "06"), (9, "1", "06")]),
]

MECHANISMS = {
    "permutation-swapping": {"rate": "1/2", "match": ["size"], "within": "county"},
    "noisy-tables": {
        "noise": "gaussian",
        "budget": "1/2",
        "change": "replace",
        "queries": [
            {"table": "H4", "level": "county", "share": "1/4"},
            {"table": "H9", "level": "tract", "share": "3/4"},
        ],
    },
    "topdown": {"persons": LEAST, "measurements": "lazy"},
}

#: Other parameters of the same, by the name of the mechanism and a word.
VARIANTS = {"topdown full": {"persons": LEAST, "measurements": "full"}}

Maker = Callable[..., Path]


@pytest.fixture(params=MECHANISMS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def write_run(folder: Path, name: str, mode: str, *, limit: str = "100", **changes) -> Path:
    """Write a census, a register and a configuration; return the configuration."""
    engine = Engine(threads=1)
    census = us_census(engine, HOUSEHOLDS)
    origin = "simulated" if mode == "design" else "supplied"
    if not (folder / "census").exists():
        write_census(replace(census, origin=origin), folder / "census")
    parameters = {**MECHANISMS, **VARIANTS}[name]
    name = name.split()[0]
    made = mechanism(name, census.schema, parameters)
    config = {
        "format_version": 1,
        "release": "first",
        "mode": mode,
        "census": "census",
        "work": "work",
        "out": "out",
        "mechanism": name,
        "parameters": parameters,
    }
    if mode != "design":
        config["account"] = {
            "register": "register.sqlite",
            "collection": "tiny-2026",
            "version": "edited",
        }
        if not (folder / "register.sqlite").exists():
            write_register(folder / "register.sqlite", made, limit)
    config.update(changes)
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def write_register(path: Path, made, limit: str) -> None:
    with Register.create(path) as register:
        register.open_collection(
            Collection(
                id="tiny-2026",
                title="Tiny",
                reference_date="2026-04-01",
                unit=made.specify().budget.unit,
                limit=limit,
                invariants=made.specify().multiverse.invariants,
                approvals_required=0,
            )
        )
        census = path.parent / "census"
        register.add_version(
            "tiny-2026", "edited", "original", folder_hash(census), records=record_hashes(census)
        )


@pytest.fixture
def configure(tmp_path: Path) -> Maker:
    def make(name: str, mode: str = "design", **options) -> Path:
        return write_run(tmp_path, name, mode, **options)

    return make
