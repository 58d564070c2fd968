"""Who may read what commands write: nobody but its owner, if it is made from confidential data.

What is made from a trial or from a census that is not simulated is readable by its owner only,
whatever the umask. Every option that names a file is listed here, so that a new one must be.
"""

import os
import shutil
import stat
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import narwhals as nw
import pytest
import typer
import yaml
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.engine import Engine
from discreet.run import run
from run.conftest import write_run

READ = "read"
SIMULATED = "written from simulated data only"
PARAMETERS = "written from parameters and published numbers, not from data"
REGISTER = "kept in the register, which is made for its owner only"

#: For each option or argument that names a file: that it is read, why it may be written for
#: everybody, or the command that is tried (`TRIED`).
FILES = {
    "demo out": SIMULATED,
    "simulate out": SIMULATED,
    "ingest source": READ,
    "ingest out": "ingest",
    "ingest waivers": READ,
    "ingest values": "ingest values",
    "validate census": READ,
    "validate waivers": READ,
    "validate values": "validate",
    "tabulate census": READ,
    "tabulate out": "tabulate",
    "pl94 records": READ,
    "pl94 out": "pl94",
    "run config": "run",
    "publish config": "publish",
    "register open register": REGISTER,
    "register open collection": READ,
    "register version register": REGISTER,
    "register version census": READ,
    "register show register": READ,
    "register add register": REGISTER,
    "register add specification": READ,
    "register approve register": REGISTER,
    "register approve config": READ,
    "register cancel register": REGISTER,
    "register verify register": READ,
    "register check release": READ,
    "register check register": READ,
    "register sign-off register": READ,
    "register sign-off out": "sign-off",
    "spec show html": "spec show",
    "spec registry metadata": READ,
    "spec registry out": "spec registry",
    "evaluate swap census": READ,
    "evaluate swap out": SIMULATED,
    "evaluate swap config": READ,
    "evaluate topdown census": READ,
    "evaluate topdown release": READ,
    "evaluate topdown out": "evaluate topdown",
    "plan topdown write": PARAMETERS,
    "plan phsafe sizes": READ,
    "plan phsafe write": PARAMETERS,
}

#: What is tried: the arguments, what they write, and in which modes others may read that.
PUBLIC = ("design", "release")
CSV = "--table P1 --level state --out made/table.csv"
CARD = "spec show out/specification.yaml --html made/card.html"
ENTRY = "spec registry out/specification.yaml --metadata metadata.yaml --out made/entry.yaml"
TRIED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "ingest": ("ingest census made/copy", "made/copy", ()),
    "ingest values": ("ingest broken made/copy --values made/values", "made/values", ()),
    "validate": ("validate broken --values made/values", "made/values", ()),
    "tabulate": (f"tabulate census {CSV}", "made/table.csv", ("design",)),
    "tabulate a release": (f"tabulate out/microdata {CSV}", "made/table.csv", PUBLIC),
    "pl94": ("pl94 census made/tables", "made/tables", ("design",)),
    "pl94 of a release": ("pl94 out made/tables", "made/tables", PUBLIC),
    "pl94 of its records": ("pl94 out/microdata made/tables", "made/tables", PUBLIC),
    "mdf": ("pl94 census made/mdf --mdf", "made/mdf", ("design",)),
    "mdf of a release": ("pl94 out made/mdf --mdf", "made/mdf", PUBLIC),
    "mdf of its records": ("pl94 out/microdata made/mdf --mdf", "made/mdf", PUBLIC),
    "run": ("run again.yaml", "made/out", PUBLIC),
    "publish": ("publish tables/run.yaml", "tables/out", PUBLIC),
    "evaluate topdown": ("evaluate topdown census out --out made/e.html", "made/e.html", ()),
    "spec show": (CARD, "made/card.html", PUBLIC),
    "spec registry": (ENTRY, "made/entry.yaml", PUBLIC),
    "sign-off": (
        "register sign-off register.sqlite tiny-2026 first made/s.html",
        "made/s.html",
        (),
    ),
}
METADATA = {
    "name": "A tiny census",
    "data_curators": ["An office"],
    "description": "Tables of a tiny census.",
    "intended_use": "A test.",
    "data_product_region": "Nowhere",
    "publication_date": "2026-04-01",
}


def commands(group: typer.Typer, path: str = "") -> Iterator[tuple[str, Callable[..., None]]]:
    for command in group.registered_commands:
        assert command.callback is not None
        yield f"{path}{command.name or command.callback.__name__}", command.callback
    for inside in group.registered_groups:
        assert inside.typer_instance is not None
        yield from commands(inside.typer_instance, f"{path}{inside.typer_instance.info.name} ")


def names_a_file(name: str, hint: Any) -> bool:
    within = [hint, *get_args(hint), *(inner for one in get_args(hint) for inner in get_args(one))]
    return Path in within or name in ("out", "write", "html", "values", "folder", "file")


def test_every_option_that_names_a_file_is_listed() -> None:
    named = {
        f"{path} {name}"
        for path, command in commands(app)
        for name, hint in get_type_hints(command).items()
        if names_a_file(name, hint)
    }
    assert named == set(FILES)


def test_every_command_that_writes_is_tried_or_has_a_reason() -> None:
    assert set(FILES.values()) <= {READ, SIMULATED, PARAMETERS, REGISTER, *TRIED}


# -- trying -------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def no_umask(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # commands set it
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # in folders for everybody
    before = os.umask(0)
    yield
    os.umask(before)


Discreet = Callable[..., Any]


@pytest.fixture
def discreet() -> Discreet:
    """Return a function that runs a command in this process."""
    return lambda *arguments: CliRunner().invoke(app, arguments)


@pytest.fixture(scope="module", params=["design", "trial", "release"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a census, releases in some mode, and what is needed for more."""
    folder = tmp_path_factory.mktemp("house") / request.param
    folder.mkdir()
    config = write_run(folder, "permutation-swapping", request.param)
    run(config)
    content = yaml.safe_load(config.read_text())
    content.update(release="again", work="made/work", out="made/out")
    (folder / "again.yaml").write_text(yaml.safe_dump(content))
    (folder / "metadata.yaml").write_text(yaml.safe_dump(METADATA))
    shutil.copytree(folder / "census", folder / "broken")
    persons = folder / "broken" / "persons.parquet"
    engine = Engine(threads=1)
    aged = engine.read_parquet(persons).with_columns(age=nw.lit(999, dtype=nw.Int16))
    engine.write_parquet(engine.materialise(aged), persons)
    (folder / "tables").mkdir()
    run(write_run(folder / "tables", "noisy-tables", request.param))
    shutil.rmtree(folder / "tables" / "out")
    return folder


def readable(path: Path) -> bool:
    """Return whether others may read what is there: all of it or nothing."""
    files = [path, *path.rglob("*")]
    modes = {stat.S_IMODE(file.stat().st_mode) for file in files}
    if modes <= {0o600, 0o700}:
        return False
    assert modes <= {0o644, 0o755}, sorted(map(oct, modes))
    return True


@pytest.mark.parametrize("what", TRIED)
def test_only_what_may_be_published_is_readable_by_others(
    discreet: Discreet,
    house: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    arguments, written, modes = TRIED[what]
    if what == "sign-off" and house.name != "release":
        return  # nothing was released that could be signed for
    shutil.copytree(house, tmp_path, dirs_exist_ok=True)
    (tmp_path / "made").mkdir()
    monkeypatch.chdir(tmp_path)
    done = discreet(*arguments.split())
    assert done.exit_code == (2 if "broken" in arguments else 0), done.output
    assert readable(tmp_path / written) == (house.name in modes)


def test_a_register_is_for_its_owner_only(house: Path) -> None:
    for file in house.glob("register*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name


def test_a_study_of_swaps_takes_simulated_data_only(
    discreet: Discreet, house: Path, tmp_path: Path
) -> None:
    if house.name == "design":
        return
    out = tmp_path / "swaps.html"
    done = discreet("evaluate", "swap", str(house / "census"), "--out", str(out))
    assert done.exit_code == 2
    assert "simulated" in done.output
    assert not out.exists()
