"""A few kills in the suite; scripts/kill_runs.py does hundreds."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def kill_runs(root: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "scripts/kill_runs.py", "--seed", "1", *options],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_release_runs_survive_a_kill_at_every_point(root):
    which = ["--mechanism", "permutation-swapping", "--attack", "charged"]
    told = kill_runs(root, "--kills", "10", "--named-only", *which)
    assert "nothing lost, nothing drawn twice" in told
    points = {line.split(maxsplit=1)[1] for line in told.splitlines() if line.startswith(" ")}
    assert len(points) == 10, points
    assert "10 kills survived, 2 redraws entered" in told  # after the draw, before the commit


def test_seeded_runs_end_as_if_never_killed(root):
    told = kill_runs(root, "--kills", "2", "--mechanism", "noisy-tables", "--attack", "seeded")
    assert "nothing lost, nothing drawn twice" in told


def test_a_runner_that_draws_twice_is_caught(root):
    told = kill_runs(root, "--mutant", "--mechanism", "noisy-tables")
    # The register enters what is drawn, and takes no second draw of a committed run.
    assert "the mutant was caught: a resumed run failed: error: already ended" in told


def test_topdown_survives_a_kill_after_every_stage(root):
    which = ["--mechanism", "topdown", "--attack", "charged"]
    told = kill_runs(root, "--kills", "5", "--named-only", *which)
    assert "nothing lost, nothing drawn twice" in told
    points = {line.split(maxsplit=1)[1] for line in told.splitlines() if line.startswith(" ")}
    assert {"before seal", "stage 1", "stage 2", "stage 3", "stage 4"} <= points
    assert "5 kills survived, 1 redraws entered" in told  # of the stage that was not sealed
