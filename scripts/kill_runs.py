"""Kill runs at named points and random moments, resume them, and check that all is in order.

Half of the kills (SIGKILL) strike just before or after a named step of a run, in turn; half
at random moments once the program is loaded. Seeded design runs must end with the public
folder of an uninterrupted run. Release runs must end with the one draw that was committed.

    python scripts/kill_runs.py --kills 500
    python scripts/kill_runs.py --mutant     # a runner that draws twice must be caught
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from discreet.files import folder_hash
from discreet.mechanisms import MECHANISMS as CLASSES
from discreet.mechanisms import Release
from discreet.register import Refused, Register
from discreet.run import check_release
from run.conftest import MECHANISMS, VARIANTS, write_run
from worlds import folder_bytes

COLLECTION = "tiny-2026"
RANDOM = "random moment"
PURGE = ["before purge", "during purge"]
#: For mechanisms that draw and publish in stages: between a stage and its seal, and after stages.
STAGES = ["before seal", "stage 1", "stage 2", "stage 3", "stage 4"]
POINTS = [
    "before reserve",
    "after reserve",
    "after draw",
    "before commit",
    "after commit",
    "before publish",
    "inside publish",
    "after publish",
    *PURGE,
]

# The package has no hooks for kills: the process that is to die replaces one function of its own.
# Arguments: the point ('' for none), 'mutant' or '', and those of the command line.
WRAPPER = r'''
import os, shutil, signal, sys
from pathlib import Path
from discreet.cli import main
from discreet.files import folder_hash
from discreet.mechanisms import Release, ReleaseHeader, stages
from discreet.register import Charged, Register
from discreet.run import ledger, runner

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def strike(owner, name, moment):
    real = getattr(owner, name)
    def struck(*args, **options):
        if moment == "before":
            die()
        real(*args, **options)
        die()
    setattr(owner, name, struck)

def strike_rename(path, target, real=Path.rename):
    if Path(target).name == "purged":
        die()
    return real(path, target)

def strike_removal(path, *args, real=shutil.rmtree, **options):
    if Path(path).name == "purged":
        next(inside for inside in Path(path).rglob("*") if inside.is_file()).unlink()
        die()
    return real(path, *args, **options)

def strike_stage(last):
    """Die when so many stages were made; finished ones that are only read do not count."""
    real, seen = stages.Stages.stage, []
    def struck(self, name, make, **options):
        fresh = not self.finished(name)
        made = real(self, name, make, **options)
        seen.extend([name] * fresh)
        if len(seen) == last:
            die()
        return made
    stages.Stages.stage = struck

def draw_twice():
    """Forget on resuming that a draw was committed, and hide it from the checks of a run."""
    kind, run = ledger.RegisterLedger, ledger.ReservedRun
    commit, committed, asked = kind.commit, kind.committed, []
    def told(self):
        asked.append(self)
        work = self.register.parent / "work"
        out = self.register.parent / "out"
        if (out / runner.HEADER).exists():
            return Release.open(out).header.draw
        return None if len(asked) == 1 else committed(self) and folder_hash(work / "draw")
    def reserved(self, specification):
        with Register.open(self.register) as register:
            found = register.run(self.run_id)
        given = found.request
        return Charged(
            collection=given.collection, release=given.release_id, entry=found.entry
        )
    kind.begin = lambda self, part: None
    kind.commit = lambda self, drawn: None if committed(self) else commit(self, drawn)
    kind.committed = told
    run.reserved = reserved
    run.check = lambda *_: None

point, mutant, *arguments = sys.argv[1:]
if mutant:
    draw_twice()
moment, _, step = point.partition(" ")
if step in ("reserve", "commit"):
    strike(ledger.RegisterLedger, step, moment)
    strike(ledger.FileLedger, step, moment)
elif point == "after draw":
    strike(runner, "make_draw", moment)
elif moment == "stage":
    strike_stage(int(step))
elif point == "before seal":
    strike(stages, "write_text", "before")
elif point == "inside publish":
    strike(ReleaseHeader, "sealed", "before")
elif step == "publish":
    strike(runner, "publish_draw", moment)
elif point == "before purge":
    Path.rename = strike_rename
elif point == "during purge":
    shutil.rmtree = strike_removal
elif point:
    raise SystemExit("unknown point")
print("loaded", flush=True)
sys.argv = ["discreet", *arguments]
main()
'''


class Wrong(Exception):
    """A killed run did not end as it should."""


class Killer:
    """Kills the runs of one mechanism, by turns at the next named point and at random."""

    def __init__(self, name: str, dice: random.Random, most: int, mutant: bool = False) -> None:
        self.name, self.dice, self.most, self.mutant = name, dice, most, mutant
        kind = CLASSES[name.split()[0]]
        self.confidential = kind.confidential_draw
        named = [point for point in POINTS if self.confidential or point not in PURGE]
        self.staged = hasattr(kind, "draw_in_stages")
        if self.staged:
            named = STAGES + named
        self.entered = 0
        self.points = cycle(["after commit"] if mutant else named)
        self.point = next(self.points)
        self.longest = 1.0
        self.kills: Counter[str] = Counter()
        self.random_too = True

    @property
    def spent(self) -> bool:
        """Tell whether all kills were made."""
        return self.kills.total() >= self.most

    def run(self, config: Path, options: list[str], point: str = "") -> bool:
        """Run, or resume; return whether the run got through."""
        resume = ["--resume"] if (config.parent / "work" / "run.yaml").exists() else []
        named = "" if point == RANDOM else point
        arguments = [named, "mutant" * self.mutant, "run", str(config), *options, *resume]
        process = subprocess.Popen(
            [sys.executable, "-c", WRAPPER, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        process.stdout.readline()
        began = time.monotonic()
        limit = self.dice.uniform(0, self.longest) if point == RANDOM else 600
        try:
            _, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
        if process.returncode > 0:
            raise Wrong(f"a resumed run failed: {errors.decode()}")
        if process.returncode == 0 and not resume:
            self.longest = time.monotonic() - began
        return process.returncode == 0

    def finish(
        self, config: Path, options: list[str], after_kill: Callable[[], None] | None = None
    ) -> None:
        """Run and kill until a run gets through, calling `after_kill` after each kill.

        A fresh run reaches every point. A resumed one may have passed its point before:
        then it gets through, and the next fresh run is killed at that point.
        """
        strike_at_random = False
        while True:
            point = "" if self.spent else RANDOM if strike_at_random else self.point
            if self.run(config, options, point):
                return
            self.kills[point] += 1
            if point != RANDOM:
                self.point = next(self.points)
            strike_at_random = self.random_too and not strike_at_random
            if after_kill is not None:
                after_kill()

    def redraws(self, kills: Counter[str]) -> int | None:
        """Return how often something is drawn again after these kills; None if none can tell."""
        if kills[RANDOM]:
            return None
        # With stages whatever was drawn is kept, except the one that was not sealed yet.
        lost = ["before seal"] if self.staged else ["after draw", "before commit"]
        return sum(kills[point] for point in lost)

    def kept_of_a_purged_draw(self) -> set[str]:
        """Return what a run keeps for its owner when the draw is gone: a swap's own figures."""
        return {"internal.json"} if self.name == "permutation-swapping" else set()

    def check_left(self, folder: Path) -> None:
        """Check that nothing is left that a run without kills would not leave."""
        left = {path.name for path in folder.iterdir() if not path.name.startswith("register.")}
        if left != {"census", "out", "run.yaml", "work"}:
            raise Wrong(f"left behind: {sorted(left)}")
        wanted = {"run.yaml", "lock", "committed.yaml"}
        inside = {path.name for path in (folder / "work").iterdir()} - wanted
        if inside != (self.kept_of_a_purged_draw() if self.confidential else {"draw"}):
            raise Wrong(f"beside its own files the work folder holds {sorted(inside)}")


def seeded(killer: Killer, folder: Path) -> None:
    """Kill seeded runs; their public folders must equal the uninterrupted one."""
    (folder / "whole").mkdir()
    options = ["--seed", "3"]
    killer.run(write_run(folder / "whole", killer.name, "design"), options)
    wanted = folder_bytes(folder / "whole" / "out")
    piece = folder / "piece"
    while not killer.spent:
        shutil.rmtree(piece, ignore_errors=True)
        piece.mkdir()
        killer.finish(write_run(piece, killer.name, "design"), options)
        if folder_bytes(piece / "out") != wanted:
            raise Wrong("the resumed public folder differs")
        killer.check_left(piece)


def charged(killer: Killer, folder: Path) -> None:
    """Kill release runs; each must end with one reservation, one commit and the draw of it."""
    number = 0
    while not killer.spent:
        number += 1
        for used in ("work", "out"):
            shutil.rmtree(folder / used, ignore_errors=True)
        release = f"r{number}"
        config = write_run(folder, killer.name, "release", limit="100000", release=release)
        watch = Watch(folder, release)
        before = Counter(killer.kills)
        killer.finish(config, [], watch.look)
        watch.check_end(number, killer.redraws(killer.kills - before))
        killer.entered += watch.redraws
        killer.check_left(folder)


class Watch:
    """Remembers the committed draw of a release as kills left it, apart from the register."""

    def __init__(self, folder: Path, release: str) -> None:
        self.folder, self.release = folder, release
        self.seen: set[str] = set()
        self.discarded: set[str] = set()

    def look(self) -> None:
        """Take down the draw that is there: one that counts, or one that will be discarded."""
        draw = self.folder / "work" / "draw"
        with Register.open(self.folder / "register.sqlite") as register:
            try:
                committed = register.reservation(COLLECTION, self.release).draw_hash
            except Refused:
                return
        if committed is not None:
            self.seen.add(committed)
            if draw.exists():
                self.seen.add(folder_hash(draw))
        else:
            self.discarded |= self._drawn()

    def _drawn(self) -> set[str]:
        """Return what was drawn and not committed: the draw, or a stage that is not sealed."""
        work = self.folder / "work"
        stages = [path for path in (work / "stages").glob("*measured*") if path.is_dir()]
        if (work / "stages").exists():
            left = [path for path in stages if not path.with_name(f"{path.name}.sha256").exists()]
        else:
            left = [path for path in (work / "draw", work / ".draw.draw.part") if path.exists()]
        return {folder_hash(path) for path in left if any(path.rglob("*.parquet"))}

    def check_end(self, number: int, named: int | None) -> None:
        """Check that what was released is what was committed, then and now, and only once.

        Every draw that was discarded must have been entered; `named` is how many there were,
        if all kills were at points that tell.
        """
        with Register.open(self.folder / "register.sqlite") as register:
            if findings := register.verify():
                raise Wrong(f"the register does not verify: {findings}")
            made = register.reservation(COLLECTION, self.release)
            events = [entry.event.kind for entry in register.entries(COLLECTION)]
        committed = made.draw_hash
        for kind in ("reservation", "commit"):
            if events.count(kind) != number:
                raise Wrong(f"{kind} is not once per release")
        released = Release.open(self.folder / "out").header.draw
        if released != committed:
            raise Wrong("the draw released is not the one committed: drawn twice")
        if self.seen - {committed}:
            raise Wrong("a committed draw was replaced: drawn twice")
        check_release(self.folder / "out", self.folder / "register.sqlite")
        if made.redraws < len(self.discarded):
            raise Wrong(f"{len(self.discarded)} draws were discarded, {made.redraws} are entered")
        if named is not None and made.redraws != named:
            raise Wrong(f"{made.redraws} redraws are entered, but {named} were made")
        self.redraws = made.redraws


ATTACKS = {"seeded": seeded, "charged": charged}


def attack(kind: str, killer: Killer) -> None:
    """Make all kills of a killer and tell how many were survived at each point."""
    with tempfile.TemporaryDirectory() as folder:
        ATTACKS[kind](killer, Path(folder))
    redraws = f", {killer.entered} redraws entered" if kind == "charged" else ""
    print(f"{killer.name}, {kind}: {killer.kills.total()} kills survived{redraws}")
    for point, count in killer.kills.items():
        print(f"    {count:4} {point}", flush=True)


def show_mutant_caught(names: list[str], dice: random.Random) -> None:
    """Run a runner that discards a committed draw and draws again; it must be found out."""
    for name in names:
        try:
            attack("charged", Killer(name, dice, 1, mutant=True))
        except Wrong as wrong:
            print(f"{name}: the mutant was caught: {wrong}", flush=True)
        else:
            raise SystemExit(f"{name}: the mutant drew twice and was not caught")


def main() -> None:
    """Kill, resume, check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--mechanism", choices=[*MECHANISMS, *VARIANTS], action="append")
    parser.add_argument("--attack", choices=ATTACKS, action="append")
    parser.add_argument("--named-only", action="store_true", help="no kills at random moments")
    parser.add_argument("--mutant", action="store_true", help="show that drawing twice is caught")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    names, kinds = options.mechanism or [*MECHANISMS, *VARIANTS], options.attack or list(ATTACKS)
    if options.mutant:
        return show_mutant_caught(names, dice)
    done = 0
    for name in names:
        for kind in kinds:
            killer = Killer(name, dice, -(-options.kills // (len(names) * len(kinds))))
            killer.random_too = not options.named_only
            try:
                attack(kind, killer)
            except Wrong as wrong:
                raise SystemExit(f"{name}, {kind}: {wrong}; kills: {dict(killer.kills)}") from None
            done += killer.kills.total()
    print(f"{done} kills in all: nothing lost, nothing drawn twice, every register verifies")


if __name__ == "__main__":
    main()
