"""Run a configuration: plan, reserve, draw, commit, publish. Resume after a crash."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from discreet.census import Census
from discreet.engine import Engine
from discreet.errors import BadInput, DiscreetError
from discreet.files import locked
from discreet.mechanisms import (
    HEADER,
    MECHANISMS,
    Mechanism,
    Release,
    check_mode,
    make_draw,
    mechanism,
    publish_draw,
)
from discreet.noise import Randomness, system, trial
from discreet.register import Register
from discreet.run.config import RunConfig, read_config
from discreet.run.ledger import FileLedger, Ledger, RegisterLedger
from discreet.run.state import FILE, State, code_version, folder_hash, new_run_id, start
from discreet.spec import Specification

#: Told how much is done (0 to 1) and what comes now.
Progress = Callable[[float, str], None]


class CorruptDraw(DiscreetError):
    """A committed draw is missing or differs from its hash."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder.name}: the committed draw is missing or differs from its hash. It was spent "
            f"and may not be drawn again; restore it from a copy of the work folder."
        )


@dataclass(frozen=True)
class Plan:
    """What a run would do, before anything is drawn."""

    config: RunConfig
    specification: Specification

    def describe(self) -> str:
        """Return the plan and the privacy statement."""
        account = self.config.account
        charged = {
            "design": "nothing is charged: simulated data",
            "trial": "counted as a trial, never publishable",
            "release": f"charged to collection {account.collection if account else ''}",
        }[self.config.mode]
        return (
            f"Release:   {self.config.release}\n"
            f"Mode:      {self.config.mode} ({charged})\n"
            f"Mechanism: {self.config.mechanism}\n"
            f"{self.specification.describe()}"
        )


@dataclass(frozen=True)
class Job:
    """A configuration with its files resolved."""

    config: RunConfig
    base: Path
    seed: int | None

    @property
    def census(self) -> Path:
        """Return the folder of the census."""
        return self.base / self.config.census

    @property
    def work(self) -> Path:
        """Return the work folder."""
        return self.base / self.config.work

    @property
    def out(self) -> Path:
        """Return the folder of the release."""
        return self.base / self.config.out

    def open(self, spill: Path | None) -> tuple[Census, Mechanism]:
        """Return the census and the mechanism, both checked."""
        engine = Engine(work=spill, memory_limit=self.config.memory_limit)
        census = Census.open(self.census, engine)
        return census, mechanism(self.config.mechanism, census.schema, self.config.parameters)


def plan(path: Path) -> Plan:
    """Return what a run of the configuration would do and promise; draw nothing.

    A dry run of confidential data is counted in the register: it looks at the data.
    """
    job = _job(path, None)
    census, made = job.open(spill=None)
    check_mode(job.config.mode, census, system())
    specification = made.specify(made.facts(census))
    if job.config.account is not None:
        with Register.open(job.base / job.config.account.register_file) as register:
            register.count_dry_run(
                job.config.account.collection, job.config.account.version, job.config.hash()
            )
    return Plan(job.config, specification)


def run(
    path: Path, *, resume: bool = False, seed: int | None = None, progress: Progress | None = None
) -> Release:
    """Run a configuration file and return its release.

    Parameters
    ----------
    path
        The configuration.
    resume
        Go on with the run in the work folder; draws that were committed are not made again.
    seed
        For design and trial runs only: makes the run repeatable.
    progress
        Called with the part that is done (0 to 1) and the name of the next step.
    """
    say = progress or (lambda part, step: None)
    say(0.02, "reading the configuration")
    job = _job(path, seed)
    state = State(
        run=new_run_id(),
        configuration=job.config.hash(),
        census=folder_hash(job.census),
        code=code_version(),
        seed=seed,
    )
    fresh = not (job.work / FILE).exists()
    state = start(job.work, state, resume)
    with locked(job.work / "lock"):
        try:
            task = _prepare(job, state, fresh, say)
        except BadInput:
            if fresh:  # refused before anything was reserved or drawn: leave nothing behind
                shutil.rmtree(job.work)
            raise
        draw = _obtain_draw(job, task, say)
        say(0.8, "publishing")
        return _publish(job, draw)


@dataclass(frozen=True)
class Task:
    """What is ready to be drawn, and the hash of the draw if it was committed before."""

    census: Census
    mechanism: Mechanism
    rng: Randomness
    ledger: Ledger
    committed: str | None


def _job(path: Path, seed: int | None) -> Job:
    config = read_config(path)
    job = Job(config, path.resolve().parent, seed)
    if seed is not None and config.mode == "release":
        raise BadInput("a release takes no seed. Use mode trial, or leave the seed out.")
    folders = [folder.resolve() for folder in (job.census, job.work, job.out)]
    for one, other in itertools.permutations(folders, 2):
        if one == other or one in other.parents:
            raise BadInput("census, work and out must be separate folders, none inside another.")
    return job


def _ledger(job: Job, state: State) -> Ledger:
    account = job.config.account
    if job.config.mode == "release" and account is not None:
        return RegisterLedger(
            register=job.base / account.register_file,
            collection=account.collection,
            version=account.version,
            release=job.config.release,
            run=state.run,
            configuration=state.configuration,
            accept_no_guarantee=account.accept_no_guarantee,
        )
    return FileLedger(job.work / "committed.yaml")


def _prepare(job: Job, state: State, fresh: bool, say: Progress) -> Task:
    """Open and check everything, and reserve the draw."""
    say(0.1, "opening the census")
    census, made = job.open(spill=job.work)
    rng = system() if job.seed is None else trial(job.seed)
    check_mode(job.config.mode, census, rng)
    used = job.out.exists() and any(job.out.iterdir())
    if used and (fresh or not (job.out / HEADER).exists()):
        raise BadInput(f"{job.out.name} is not empty. Choose another folder or delete it.")
    say(0.2, "reserving")
    ledger = _ledger(job, state)
    committed = ledger.reserve(made.specify(made.facts(census)))
    if committed is None and used:
        raise BadInput(f"{job.out.name} holds another release. Choose another folder.")
    return Task(census, made, rng, ledger, committed)


def _obtain_draw(job: Job, task: Task, say: Progress) -> Path:
    """Return the folder of the committed draw, making it if it was not made yet.

    A draw that is complete but was not committed is deleted unread: whether it was seen
    cannot be known, and its reservation pays for the one that takes its place.
    """
    folder = job.work / "draw"
    if task.committed is not None:
        if folder.exists() and folder_hash(folder) == task.committed:
            return folder
        if not folder.exists() and (job.out / HEADER).exists():
            return folder  # published and purged before
        raise CorruptDraw(folder)
    for leftover in job.work.glob("*draw*"):
        shutil.rmtree(leftover)
    account = job.config.account
    if job.config.mode == "trial" and account is not None:
        with Register.open(job.base / account.register_file) as register:
            register.count_trial(
                account.collection, account.version, job.config.hash(), job.seed is not None
            )
    say(0.25, "drawing")
    make_draw(task.mechanism, task.census, task.rng, folder, job.config.mode)
    task.ledger.commit(folder_hash(folder))
    return folder


def _publish(job: Job, draw: Path) -> Release:
    """Publish the draw and purge it if it is confidential.

    This step opens the draw and the schema kept beside it, never the census.
    """
    for leftover in job.out.parent.glob(f".{job.out.name}.*"):
        shutil.rmtree(leftover)
    done = (job.out / HEADER).exists()
    release = Release.open(job.out) if done else publish_draw(draw, job.out)
    if MECHANISMS[release.header.mechanism].confidential_draw:
        shutil.rmtree(draw, ignore_errors=True)
    return release
