"""Who calls the two steps of a release directly is held to the rules of a run."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.census import Census
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.files import folder_hash
from discreet.mechanisms import Stages, make_draw, mechanism, publish_draw, self_test
from discreet.noise import system, tape
from discreet.register import Refused, Register, ReleaseRequest, ReservedRun
from discreet.run import run

from .conftest import MECHANISMS


@pytest.fixture
def reserved(configure, tmp_path, monkeypatch):
    """Return a mechanism, its census and a reservation for them; nothing may be drawn."""
    configure("noisy-tables", "release")
    census = Census.open(tmp_path / "census", Engine(threads=1))
    made = mechanism("noisy-tables", census.schema, MECHANISMS["noisy-tables"])
    request = ReleaseRequest(
        collection="tiny-2026",
        version="edited",
        fingerprint=folder_hash(tmp_path / "census"),
        release_id="first",
        run_id="run-1",
        configuration_hash="0" * 64,
        specification=made.specify(made.facts(census)),
    )
    with Register.open(tmp_path / "register.sqlite") as register:
        register.reserve(request)
    monkeypatch.setattr(tape.os, "urandom", lambda n: pytest.fail("drew all the same"))
    return made, census, ReservedRun(tmp_path / "register.sqlite", "run-1")


def draw(made, census, reserved, folder: Path, **options) -> None:
    options = {"stages": Stages(folder / "stages"), "reserved": reserved, **options}
    make_draw(made, census, system(), folder / "draw", "release", **options)


def test_a_reservation_does_not_pay_for_another_census(reserved, tmp_path):
    made, census, run_1 = reserved
    shutil.copytree(tmp_path / "census", tmp_path / "other")
    header = tmp_path / "other" / "census.yaml"
    header.write_text(header.read_text() + "\n")
    other = Census.open(tmp_path / "other", census.engine)
    with pytest.raises(Refused, match="another census"):
        draw(made, other, run_1, tmp_path)
    assert not (tmp_path / "draw").exists()


def test_a_release_is_drawn_only_from_a_census_in_a_folder(reserved, tmp_path):
    made, census, run_1 = reserved
    with pytest.raises(BadInput, match="opened from its folder"):
        draw(made, replace(census, folder=None), run_1, tmp_path)


@pytest.mark.parametrize("stages", [None, "ignoring"])
def test_what_is_drawn_is_entered_whatever_the_caller_gives(
    reserved, tmp_path, monkeypatch, stages
):
    made, census, run_1 = reserved
    monkeypatch.undo()
    given = None if stages is None else Stages(tmp_path / "stages", begin=lambda part: None)
    for name in ("draw", "again"):
        draw(made, census, run_1, tmp_path / name, stages=given)
    with Register.open(tmp_path / "register.sqlite") as register:
        found = register.run("run-1")
    assert found is not None
    assert found.begun == {"draw": 2}


def test_a_release_is_not_drawn_by_kernels_that_others_may_change(reserved, tmp_path, monkeypatch):
    made, census, run_1 = reserved
    monkeypatch.setattr(self_test, "others_may_write", lambda path: True)
    with pytest.raises(self_test.WritableCache):
        draw(made, census, run_1, tmp_path)


def test_a_trial_that_calls_itself_a_design_is_not_published(configure, tmp_path):
    run(configure("noisy-tables", "trial"), seed=1)
    file = tmp_path / "work" / "draw" / "draw.yaml"
    file.write_text(file.read_text().replace("mode: trial", "mode: design"))
    with pytest.raises(BadInput, match="mode design does not fit"):
        publish_draw(tmp_path / "work" / "draw", tmp_path / "public")
    assert not (tmp_path / "public").exists()
