"""A few kills in the suite; scripts/kill_runs.py does hundreds."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_killed_runs_resume_without_loss(root):
    done = subprocess.run(
        [sys.executable, "scripts/kill_runs.py", "--kills", "12", "--seed", "1"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost, nothing drawn twice" in done.stdout
