"""What a work folder remembers of its run, so that it can be resumed or refused."""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

import discreet
from discreet.config import Strict, parse
from discreet.errors import BadInput
from discreet.files import FORMAT_VERSION, check_format, read_yaml, write_yaml

FILE = "run.yaml"
LOCK = "lock"


class State(Strict):
    """The identity of a run. Internal: it holds a fingerprint of the input.

    `entry` is the hash of the entry that charges it, once it is reserved.
    """

    format_version: int = FORMAT_VERSION
    run: str
    configuration: str
    census: str
    code: str
    seed: int | None = None
    entry: str | None = None


def code_version() -> str:
    """Return the version and a hash of the package's own source files."""
    root = Path(discreet.__file__).parent
    digest = hashlib.sha256()
    for folder, inside, files in os.walk(root):
        # Compiled files are no sources, and there may be thousands of them.
        inside[:] = sorted(name for name in inside if name != "__pycache__")
        for name in sorted(files):
            path = Path(folder, name)
            if path.suffix in (".py", ".yaml", ".html"):
                digest.update(str(path.relative_to(root)).encode())
                digest.update(path.read_bytes())
    return f"{discreet.__version__}+{digest.hexdigest()[:16]}"


def approval_of(configuration: str, census: str, code: str) -> str:
    """Return the hash that people approve: configuration, input and code together.

    Names in a configuration mean what the schema in the census folder says they mean, so
    the configuration alone would not say what is approved.
    """
    return hashlib.sha256(f"{configuration}\n{census}\n{code}\n".encode()).hexdigest()


def read_state(work: Path) -> State:
    """Return the state of the run in a work folder."""
    if not (work / FILE).exists():
        raise BadInput(f"{work.name} holds no run to resume. Run without --resume.")
    return parse(State, check_format(read_yaml(work / FILE), FILE), FILE)


def write_state(work: Path, state: State) -> State:
    """Write the state durably, and return it."""
    for half in _halves(work):
        half.unlink()
    write_yaml(work / FILE, state.model_dump(mode="json"), 0o600)
    return state


def _halves(work: Path) -> set[Path]:
    """Return what runs left that were killed while they wrote their state."""
    return set(work.glob(f".{FILE}.*.part"))


def check_unused(work: Path) -> None:
    """Refuse a folder that holds a run, or anything but our lock, which is empty."""
    if (work / FILE).exists():
        raise BadInput(
            f"{work.name} holds a run already. Add --resume to go on with it, "
            f"or choose another work folder."
        )
    lock = work / LOCK
    ours = {lock} if not lock.is_symlink() and lock.is_file() and not lock.stat().st_size else set()
    if set(work.iterdir()) - _halves(work) - ours:
        raise BadInput(f"{work.name} is not empty. Choose another work folder or delete it.")


def begin(work: Path, state: State) -> State:
    """Write the state of a new run into a folder that is not in use."""
    check_unused(work)
    return write_state(work, state)


#: What a run depends on, by the name of its field.
_PARTS = {
    "configuration": "the configuration",
    "census": "the census",
    "code": "the code of discreet",
    "seed": "the seed",
}


def check_unchanged(state: State, **now: str | int | None) -> None:
    """Refuse to go on with a run if what it depends on is not what it was."""
    changed = [_PARTS[name] for name, value in now.items() if getattr(state, name) != value]
    if changed:
        raise BadInput(
            f"cannot go on: {' and '.join(changed)} changed since the run began. "
            f"Restore it, or begin a new run in another work folder."
        )


def new_run_id() -> str:
    """Return an identifier that no other run has."""
    return secrets.token_hex(16)
