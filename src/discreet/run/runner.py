"""Run a configuration: plan, reserve, draw, commit, publish. Resume after a crash."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from discreet.census import Census, check_structure
from discreet.engine import Engine
from discreet.errors import BadInput, DiscreetError, InvariantBroken
from discreet.files import folder_hash, locked, remove_folder, write_text
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
from discreet.run.check import check_release
from discreet.run.config import RunConfig, read_config
from discreet.run.folders import Taken, check_head, check_separate, header_of, make_work, rehearse
from discreet.run.ledger import FileLedger, Ledger, LostEntry, RegisterLedger
from discreet.run.state import (
    FILE,
    LOCK,
    State,
    approval_of,
    begin,
    check_unchanged,
    code_version,
    new_run_id,
    read_state,
    write_state,
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

    @property
    def register(self) -> Path | None:
        """Return the file of the register, if the run has an account."""
        account = self.config.account
        return None if account is None else self.base / account.register_file

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
    state = _state(job)
    approval = approval_of(state.configuration, state.census, state.code)
    account = job.config.account
    if account is not None:
        with Register.open(job.base / account.register_file) as register:
            register.count_dry_run(
                account.collection, account.version, approval, fingerprint=state.census
            )
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
    taken = make_work(job.work, resume)
    with locked(job.work / LOCK):
        ledger, ready = _resume(job, say) if resume else _begin(job, taken, say)
        if ready is not None:
            _draw(job, ledger, ready, say)
        return _publish(job, ledger, say)


def internal_figures(path: Path) -> Path | None:
    """Return the file of internal figures that a run left in its work folder, if it did."""
    file = _job(path, None).work / INTERNAL
    return file if file.exists() else None


def publish(path: Path) -> Release:
    """Publish the committed draw of a run; the census is not needed and not opened.

    Configuration and code must be those of the run, the draw the one that was committed, and
    its specification the one that was charged.
    """
    job = _job(path, None)
    state = read_state(job.work)
    with locked(job.work / LOCK):
        check_unchanged(state, configuration=job.config.hash(), code=code_version())
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
    check_separate(job.census, job.work, job.out, register=job.register)
    if job.register is not None:
        check_head(job.register)
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
            census=job.census,
            accept_no_guarantee=account.accept_no_guarantee,
            entry=state.entry,
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


def _resume(job: Job, say: Progress) -> tuple[Ledger, Ready | None]:
    """Go on with a run; once its draw is committed, nothing is left but to publish it.

    Then the census is not needed any more, and may be gone.
    """
    state = read_state(job.work)
    check_unchanged(state, configuration=job.config.hash(), code=code_version(), seed=job.seed)
    ledger = _ledger(job, state)
    if ledger.committed() is not None:
        return ledger, None
    check_unchanged(state, census=folder_hash(job.census))
    ready = _prepare(job, say)
    say(0.24, "reserving")
    _remember(job, ledger.reserve(ready.specification))
    return ledger, ready


def _begin(job: Job, taken: Taken, say: Progress) -> tuple[Ledger, Ready]:
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
        say(0.24, "reserving")
        entry = ledger.reserve(ready.specification)
    except Exception as error:
        if isinstance(error, BadInput) or not reserving:
            if begun:
                remove_folder(job.work / "spill")
                (job.work / FILE).unlink()
            taken.give_back()
        raise
    _remember(job, entry)
    return ledger, ready


def _remember(job: Job, entry: str | None) -> None:
    """Keep where the run was charged, so that a register that lacks the entry is noticed."""
    state = read_state(job.work)
    if state.entry != entry:
        write_state(job.work, state.model_copy(update={"entry": entry}))


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
    census.engine.check_folder(job.work / "spill")
    _check_out(job, census.engine)
    _count_trial(job)
    say(0.2, "computing the promise")
    specification = made.specify(made.facts(census))
    return Ready(census, made, rng, specification)


def _check_out(job: Job, engine: Engine) -> None:
    """Refuse an `out` that cannot be published to."""
    header, account = header_of(job.out), job.config.account
    if header is not None and header.charged is not None and account is not None:
        # Whoever chose another folder now would go on with a register that forgot a release.
        file = job.base / account.register_file
        with Register.open(file) as register:
            if header.charged.entry not in {entry.hash for entry in register.entries()}:
                raise LostEntry(file, f"the release in {job.out.name}")
    if job.out.exists() and (not job.out.is_dir() or any(job.out.iterdir())):
        raise BadInput(f"{job.out.name} is not empty. Choose another folder or delete it.")
    rehearse(job.out, engine)


def _draw(job: Job, ledger: Ledger, ready: Ready, say: Progress) -> None:
    """Draw and commit.

    A draw that was made but not committed is deleted unread: whether it was seen cannot be
    known, so every beginning is entered in the register first, and a second one is a redraw.
    """
    say(0.25, "drawing")
    folder = job.work / DRAW
    make_draw(
        ready.mechanism,
        ready.census,
        ready.rng,
        folder,
        job.config.mode,
        threads=_cores(),
        stages=_stages(job, STAGES, say, 0.25, 0.8),
        reserved=ledger.reserved,
    )
    _check_drawn(ready, folder)
    ledger.commit(folder_hash(folder))
    ready.census.engine.close()


def _stages(job: Job, name: str, say: Progress, begin: float, end: float) -> Stages:
    """Return stages in the work folder that tell their progress as a part of the whole run's."""
    return Stages(
        job.work / name, lambda part, step: say(begin + part * (end - begin), step), _cores()
    )


def _cores() -> int:
    return os.cpu_count() or 1


def _check_drawn(ready: Ready, folder: Path) -> None:
    """Recompute every declared invariant from drawn microdata before it is committed."""
    if (folder / "microdata").exists():
        drawn = Census.open(folder / "microdata", ready.census.engine)
        for name, cells in check_invariants(ready.specification, ready.census, drawn).items():
            if cells:
                raise InvariantBroken(name, cells)


def _count_trial(job: Job) -> None:
    account = job.config.account
    if job.config.mode == "trial" and account is not None:
        with Register.open(job.base / account.register_file) as register:
            register.count_trial(
                account.collection,
                account.version,
                job.config.hash(),
                seed_known=job.seed is not None,
                fingerprint=read_state(job.work).census,
            )


def _publish(job: Job, ledger: Ledger, say: Progress) -> Release:
    """Publish the committed draw and purge it if it is confidential.

    This step opens the draw and the schema kept beside it, never the census.
    """
    say(0.8, "publishing")
    draw, purged = job.work / DRAW, job.work / "purged"
    for left in (STAGES, "spill"):  # of the draw, which is committed
        remove_folder(job.work / left)
    if _published(job, ledger):
        release = Release.open(job.out)
        account = job.config.account
        if ledger.reserved is not None and account is not None:
            check_release(job.out, job.base / account.register_file)
    else:
        if not draw.exists() or folder_hash(draw) != ledger.committed():
            raise CorruptDraw(draw)
        engine = Engine(work=job.work, memory_limit=job.config.memory_limit)
        stages = _stages(job, PUBLISHING, say, 0.8, 1.0)
        release = publish_draw(draw, job.out, engine, stages, ledger.reserved)
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
