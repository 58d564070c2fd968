"""Run a configuration: plan, reserve, draw, commit, publish. Resume after a crash."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from discreet.census import Census, check_structure
from discreet.engine import Engine
from discreet.errors import BadInput, DiscreetError, InvariantBroken
from discreet.files import folder_hash, locked, private_folder, remove_folder, write_text
from discreet.mechanisms import (
    HEADER,
    MECHANISMS,
    Mechanism,
    Release,
    Stages,
    check_kernels,
    check_mode,
    make_draw,
    mechanism,
    publish_draw,
)
from discreet.noise import Randomness, system, trial
from discreet.products import check_invariants
from discreet.register import Register
from discreet.run.config import RunConfig, read_config
from discreet.run.ledger import FileLedger, Ledger, RegisterLedger
from discreet.run.state import (
    FILE,
    LOCK,
    State,
    approval_of,
    begin,
    code_version,
    new_run_id,
    read_state,
    resumed,
)
from discreet.spec import Specification

DRAW = "draw"

#: Finished stages of a draw, until it is committed, and of its publication, until that is done.
STAGES = "stages"
PUBLISHING = "publishing"

#: Figures that a draw leaves in the work folder when it is purged.
INTERNAL = "internal.json"

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
    approval: str

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
    check_structure(census)
    made.check(census)
    specification = made.specify(made.facts(census))
    approval = approval_hash(path)
    account = job.config.account
    if account is not None:
        with Register.open(job.base / account.register_file) as register:
            register.count_dry_run(account.collection, account.version, approval)
    return Plan(job.config, specification, approval)


def approval_hash(path: Path) -> str:
    """Return the hash that is approved for a configuration file with its census and our code."""
    state = _state(_job(path, None))
    return approval_of(state.configuration, state.census, state.code)


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
    if resume:
        read_state(job.work)
    fresh = not job.work.exists()
    if fresh:
        private_folder(job.work)
    with locked(job.work / LOCK):
        if resume:
            ledger = _ledger(job, resumed(job.work, _state(job)))
            published = _published(job, ledger)
            task = None if published else _reserve(ledger, _prepare(job, say), say)
        else:
            ledger, task = _begin(job, fresh, say)
        if task is not None:
            _draw_once(job, ledger, task, say)
        return _publish(job, ledger, say)


def internal_figures(path: Path) -> Path | None:
    """Return the file of internal figures that a run left in its work folder, if it did."""
    file = _job(path, None).work / INTERNAL
    return file if file.exists() else None


def publish(path: Path) -> Release:
    """Publish the committed draw of a run; the census is not needed and not opened."""
    job = _job(path, None)
    state = read_state(job.work)
    with locked(job.work / LOCK):
        ledger = _ledger(job, state)
        if ledger.committed() is None:
            raise BadInput(f"{job.work.name} holds no committed draw. Finish the run first.")
        return _publish(job, ledger, lambda part, step: None)


def _state(job: Job) -> State:
    return State(
        run=new_run_id(),
        configuration=job.config.hash(),
        census=folder_hash(job.census),
        code=code_version(),
        seed=job.seed,
    )


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
            approval=approval_of(state.configuration, state.census, state.code),
            fingerprint=state.census,
            accept_no_guarantee=account.accept_no_guarantee,
        )
    return FileLedger(job.work / "committed.yaml")


def _published(job: Job, ledger: Ledger) -> bool:
    """Return whether `out` holds the release of this very run."""
    if not (job.out / HEADER).exists():
        return False
    committed = ledger.committed()
    if committed is None or Release.open(job.out).header.draw != committed:
        raise BadInput(f"{job.out.name} holds another release. Choose another folder.")
    return True


@dataclass(frozen=True)
class Ready:
    """What is checked and may be reserved."""

    census: Census
    mechanism: Mechanism
    rng: Randomness
    specification: Specification


@dataclass(frozen=True)
class Task(Ready):
    """What is reserved, and whether it was drawn and committed before."""

    committed: bool


def _begin(job: Job, fresh: bool, say: Progress) -> tuple[Ledger, Task]:
    """Check and reserve a new run; if that fails before anything is reserved, leave nothing behind.

    A reservation that fails otherwise than by a refusal may have been entered all the same, and
    the work folder names the run that can use it: then it stays.
    """
    begun = reserving = False
    try:
        state = begin(job.work, _state(job))
        begun = True
        ledger = _ledger(job, state)
        ready = _prepare(job, say)
        reserving = True
        return ledger, _reserve(ledger, ready, say)
    except Exception as error:
        if isinstance(error, BadInput) or not reserving:
            if fresh:
                shutil.rmtree(job.work)
            elif begun:  # an empty folder was there before us
                remove_folder(job.work / "spill")
                (job.work / FILE).unlink()
        raise


def _prepare(job: Job, say: Progress) -> Ready:
    """Check everything that can be refused."""
    remove_folder(job.work / "spill")
    say(0.1, "opening the census")
    census, made = job.open(spill=job.work)
    rng = system() if job.seed is None else trial(job.seed)
    check_mode(job.config.mode, census, rng)
    check_kernels(made.name, job.config.mode)
    check_structure(census)
    made.check(census)
    if job.out.exists() and any(job.out.iterdir()):
        raise BadInput(f"{job.out.name} is not empty. Choose another folder or delete it.")
    _count_trial(job)
    say(0.2, "computing the promise")
    specification = made.specify(made.facts(census))
    return Ready(census, made, rng, specification)


def _reserve(ledger: Ledger, ready: Ready, say: Progress) -> Task:
    """Reserve the draw, or raise before anything is drawn."""
    say(0.24, "reserving")
    committed = ledger.reserve(ready.specification) is not None
    return Task(ready.census, ready.mechanism, ready.rng, ready.specification, committed)


def _draw_once(job: Job, ledger: Ledger, task: Task, say: Progress) -> None:
    """Draw and commit, unless the draw was committed before."""
    if not task.committed:
        say(0.25, "drawing")
        # A draw that is complete but was not committed is deleted unread: whether it was
        # seen cannot be known, and its reservation pays for the one that takes its place.
        folder = job.work / DRAW
        remove_folder(folder)
        make_draw(
            task.mechanism,
            task.census,
            task.rng,
            folder,
            job.config.mode,
            threads=_cores(),
            stages=_stages(job, STAGES, say, 0.25, 0.8),
        )
        _check_drawn(task, folder)
        ledger.commit(folder_hash(folder))
    remove_folder(job.work / STAGES)
    task.census.engine.close()
    remove_folder(job.work / "spill")


def _stages(job: Job, name: str, say: Progress, begin: float, end: float) -> Stages:
    """Return stages in the work folder that tell their progress as a part of the whole run's."""
    return Stages(
        job.work / name, lambda part, step: say(begin + part * (end - begin), step), _cores()
    )


def _cores() -> int:
    return os.cpu_count() or 1


def _check_drawn(task: Task, folder: Path) -> None:
    """Recompute every declared invariant from drawn microdata before it is committed."""
    if (folder / "microdata").exists():
        drawn = Census.open(folder / "microdata", task.census.engine)
        for name, cells in check_invariants(task.specification, task.census, drawn).items():
            if cells:
                raise InvariantBroken(name, cells)


def _count_trial(job: Job) -> None:
    account = job.config.account
    if job.config.mode == "trial" and account is not None:
        with Register.open(job.base / account.register_file) as register:
            register.count_trial(
                account.collection, account.version, job.config.hash(), job.seed is not None
            )


def _publish(job: Job, ledger: Ledger, say: Progress) -> Release:
    """Publish the committed draw and purge it if it is confidential.

    This step opens the draw and the schema kept beside it, never the census.
    """
    say(0.8, "publishing")
    draw, purged = job.work / DRAW, job.work / "purged"
    if _published(job, ledger):
        release = Release.open(job.out)
    else:
        if not draw.exists() or folder_hash(draw) != ledger.committed():
            raise CorruptDraw(draw)
        engine = Engine(work=job.work, memory_limit=job.config.memory_limit)
        stages = _stages(job, PUBLISHING, say, 0.8, 1.0)
        release = publish_draw(draw, job.out, engine, stages)
        engine.close()
    remove_folder(job.work / "spill")
    remove_folder(job.work / PUBLISHING)
    if MECHANISMS[release.header.mechanism].confidential_draw:
        # Renamed first: half a draw must not be taken for a damaged one.
        if draw.exists():
            if (draw / INTERNAL).exists():  # figures about the swap, for those inside
                write_text(job.work / INTERNAL, (draw / INTERNAL).read_text(), 0o600)
            remove_folder(purged)
            draw.rename(purged)
        remove_folder(purged)
    return release
