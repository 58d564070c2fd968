"""Kill runs at random moments, resume them, and check that nothing was lost or drawn twice.

For each mechanism: one uninterrupted design run with a seed gives the public folder that
every interrupted run must end with; then release runs are killed (SIGKILL) at random
moments until they finish, and the register must verify with one commit per release.

    python scripts/kill_runs.py --kills 500
"""

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from discreet.mechanisms import Release
from discreet.register import Register
from run.conftest import MECHANISMS, write_run
from worlds import folder_bytes


def command(config: Path, *options: str) -> list[str]:
    """Return the command line of a run."""
    return [sys.executable, "-m", "discreet", "run", str(config), *options]


def finish_in_pieces(
    config: Path, options: list[str], longest: float, dice: random.Random, most: int
) -> int:
    """Run and kill until a run gets through or `most` kills are spent; return the kills."""
    kills = 0
    while True:
        resume = ["--resume"] if (config.parent / "work" / "run.yaml").exists() else []
        process = subprocess.Popen(
            command(config, *options, *resume), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            limit = dice.uniform(0, longest) if kills < most else 600
            _, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
            continue
        if process.returncode != 0:
            raise SystemExit(f"a resumed run failed: {errors.decode()}")
        return kills


def seeded(name: str, folder: Path, dice: random.Random, most: int) -> int:
    """Kill a seeded run; its public folder must equal the uninterrupted one."""
    (folder / "whole").mkdir()
    config = write_run(folder / "whole", name, "design")
    began = time.monotonic()
    subprocess.run(command(config, "--seed", "3"), check=True, capture_output=True)
    longest = time.monotonic() - began
    wanted = folder_bytes(folder / "whole" / "out")
    kills = 0
    while kills < most:
        piece = folder / "piece"
        shutil.rmtree(piece, ignore_errors=True)
        piece.mkdir()
        config = write_run(piece, name, "design")
        kills += finish_in_pieces(config, ["--seed", "3"], longest, dice, 5)
        if folder_bytes(piece / "out") != wanted:
            raise SystemExit(f"{name}: the resumed public folder differs")
        left = sorted(path.name for path in piece.iterdir())
        if left != ["census", "out", "run.yaml", "work"]:
            raise SystemExit(f"{name}: left behind {left}")
    return kills


def charged(name: str, folder: Path, dice: random.Random, most: int) -> int:
    """Kill release runs; each must end with one reservation, one commit and its own draw."""
    kills, number = 0, 0
    while kills < most:
        number += 1
        for used in ("work", "out"):
            shutil.rmtree(folder / used, ignore_errors=True)
        config = write_run(folder, name, "release", limit="100000", release=f"r{number}")
        kills += finish_in_pieces(config, [], 2.5, dice, 5)
        Release.open(folder / "out")
        with Register.open(folder / "register.sqlite") as register:
            if register.verify():
                raise SystemExit(f"{name}: {register.verify()}")
            events = [entry.event for entry in register.entries("tiny-2026")]
        for kind in ("reservation", "commit"):
            if sum(event.kind == kind for event in events) != number:
                raise SystemExit(f"{name}: {kind} is not once per release")
    return kills


def main() -> None:
    """Kill, resume, check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    done = 0
    share = -(-options.kills // (2 * len(MECHANISMS)))
    for name in MECHANISMS:
        for attack in (seeded, charged):
            with tempfile.TemporaryDirectory() as folder:
                kills = attack(name, Path(folder), dice, share)
            done += kills
            print(f"{name}, {attack.__name__}: {kills} kills survived", flush=True)
    print(f"{done} kills in all: nothing lost, nothing drawn twice, every register verifies")


if __name__ == "__main__":
    main()
