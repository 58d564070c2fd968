"""Runs that stop after any stage go on from it: what was drawn is not drawn again.

A run is stopped by an exception that nobody catches, at the same places where
scripts/kill_runs.py kills the process.
"""

import shutil

import pytest

from discreet.files import folder_hash
from discreet.mechanisms import Release
from discreet.mechanisms.stages import DamagedStage, Stages
from discreet.register import Register
from discreet.run import run
from run.conftest import write_run
from topdown.runs import LEAST
from worlds import folder_bytes

WAYS = {
    # Stages of the draw, then of its publication.
    "full": (["persons-measured-0", "persons-measured-1"], 2),
    "lazy": (
        ["persons-measured-0", "persons-estimated-0", "persons-measured-1", "persons-estimated-1"],
        0,
    ),
}


class Stopped(BaseException):
    """The process is gone."""


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


def configured(folder, way, mode):
    folder.mkdir(exist_ok=True)
    parameters = {"persons": LEAST, "measurements": way}
    return write_run(folder, "topdown", mode, parameters=parameters)


def stop(monkeypatch, number, moment):
    """Stop when stage `number` of this process is made: before its seal or after it."""
    real, seen = Stages.stage, []

    def stage(self, name, make, **options):
        fresh = not self.finished(name)

        def unsealed(path):
            make(path)
            if fresh and len(seen) == number and moment == "before the seal":
                raise Stopped

        made = real(self, name, unsealed, **options)
        if fresh:
            seen.append(name)
            if len(seen) > number:
                raise Stopped
        return made

    monkeypatch.setattr(Stages, "stage", stage)


def seals(config):
    work = config.parent / "work"
    return {path.stem: path.read_text() for path in sorted(work.rglob("*.sha256"))}


def entries(config):
    with Register.open(config.parent / "register.sqlite") as register:
        assert not register.verify()
        return [entry.event.kind for entry in register.entries("tiny-2026")]


def test_a_release_goes_on_after_every_stage(tmp_path, way, monkeypatch):
    config = configured(tmp_path, way, "release")
    drawn_in, publishing = WAYS[way]
    known: dict[str, str] = {}
    for number in range(len(drawn_in) + publishing):
        for moment in ("before the seal", "after it"):
            with monkeypatch.context() as patched:
                stop(patched, 0, moment)
                with pytest.raises(Stopped):
                    run(config, resume=number > 0 or moment == "after it")
            now = seals(config)
            # Finished stages stay as they are. One without its seal was seen by nobody.
            assert {name: now.get(name) for name in known if name in now} == {
                name: seal for name, seal in known.items() if name in now
            }
            assert len({**known, **now}) == number + (moment == "after it")
            known.update(now)
            assert entries(config).count("reservation") == 1
            assert not (tmp_path / "out").exists()
    release = run(config, resume=True)
    assert set(known) == {*drawn_in, *(f"persons-estimated-{n}" for n in range(publishing))}
    assert [entries(config).count(kind) for kind in ("reservation", "commit")] == [1, 1]
    check_same_measurements(config, known)
    assert run(config, resume=True) == release
    assert not list((tmp_path / "work").rglob("*.sha256"))


def check_same_measurements(config, known):
    """Check that the committed draw holds the stages that were sealed, and is what was released."""
    draw = config.parent / "work" / "draw"
    assert Release.open(config.parent / "out").header.draw == folder_hash(draw)
    for number, level in enumerate(["State", "Block"]):
        stage = config.parent / "again" / str(number)
        stage.mkdir(parents=True)
        for name in (f"{level}.parquet", "measurements.yaml"):
            link = stage / name
            inside = draw / "persons" / "measurements" / name
            shutil.copytree(inside, link) if inside.is_dir() else shutil.copy(inside, link)
        assert folder_hash(stage) == known[f"persons-measured-{number}"]


def test_a_seeded_run_ends_as_if_never_stopped(tmp_path, way, monkeypatch):
    whole = configured(tmp_path / "whole", way, "design")
    run(whole, seed=3)
    pieces = configured(tmp_path / "pieces", way, "design")
    for number in range(sum(map(count, WAYS[way]))):
        with monkeypatch.context() as patched:
            stop(patched, 0, "after it")
            with pytest.raises(Stopped):
                run(pieces, resume=number > 0, seed=3)
    run(pieces, resume=True, seed=3)
    assert folder_bytes(tmp_path / "pieces" / "out") == folder_bytes(tmp_path / "whole" / "out")


def count(stages):
    return stages if isinstance(stages, int) else len(stages)


def test_a_damaged_stage_is_refused(tmp_path, monkeypatch):
    config = configured(tmp_path, "lazy", "release")
    with monkeypatch.context() as patched:
        stop(patched, 1, "after it")
        with pytest.raises(Stopped):
            run(config)
    stage = tmp_path / "work" / "stages" / "persons-measured-0"
    file = max(stage.rglob("*.parquet"), key=lambda path: path.is_file() and path.stat().st_size)
    good = file.read_bytes()
    bad = bytearray(good)
    bad[len(bad) // 2] ^= 1
    file.write_bytes(bad)
    with pytest.raises(DamagedStage, match="persons-measured-0"):
        run(config, resume=True)
    assert not (tmp_path / "out").exists()
    assert entries(config).count("commit") == 0
    file.write_bytes(good)
    run(config, resume=True)
    assert [entries(config).count(kind) for kind in ("reservation", "commit")] == [1, 1]


def test_a_stage_without_its_folder_is_refused(tmp_path):
    stages = Stages(tmp_path / "stages")
    made = stages.stage("first", lambda path: (path / "x").write_text("1"))
    assert stages.stage("first", lambda path: 1 / 0) == made
    shutil.rmtree(made)
    with pytest.raises(DamagedStage, match="first"):
        stages.stage("first", lambda path: (path / "x").write_text("2"))
