"""What a work folder remembers of its run, so that it can be resumed or refused."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

import discreet
from discreet.config import Strict, parse
from discreet.errors import BadInput
from discreet.files import (
    FORMAT_VERSION,
    check_format,
    private_folder,
    read_yaml,
    sha256_file,
    write_yaml,
)

FILE = "run.yaml"


class State(Strict):
    """The identity of a run. Internal: it holds a fingerprint of the input."""

    format_version: int = FORMAT_VERSION
    run: str
    configuration: str
    census: str
    code: str
    seed: int | None = None


def code_version() -> str:
    """Return the version and a hash of the package's own source files."""
    root = Path(discreet.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix in (".py", ".yaml", ".html"):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(path.read_bytes())
    return f"{discreet.__version__}+{digest.hexdigest()[:16]}"


def folder_hash(folder: Path) -> str:
    """Return one hash over the names and contents of all files of a folder."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder)}\n{sha256_file(path)}\n".encode())
    return digest.hexdigest()


def start(work: Path, state: State, resume: bool) -> State:
    """Return the state of a new run, or of the one to resume, or refuse.

    A run is resumed only if nothing that could change its result has changed.
    """
    file = work / FILE
    if not file.exists():
        if resume:
            raise BadInput(f"{work.name} holds no run to resume. Run without --resume.")
        # A run killed before it had written anything else may have left half of this file.
        halves = set(work.glob(f".{FILE}.*")) if work.exists() else set()
        if work.exists() and set(work.iterdir()) - halves:
            raise BadInput(f"{work.name} is not empty. Choose another work folder or delete it.")
        private_folder(work)
        for half in halves:
            half.unlink()
        write_yaml(file, state.model_dump(mode="json"), 0o600)
        return state
    if not resume:
        raise BadInput(
            f"{work.name} holds a run already. Add --resume to go on with it, "
            f"or choose another work folder."
        )
    old = parse(State, check_format(read_yaml(file), FILE), FILE)
    changed = [
        what
        for what, name in (
            ("the configuration", "configuration"),
            ("the census", "census"),
            ("the code of discreet", "code"),
            ("the seed", "seed"),
        )
        if getattr(old, name) != getattr(state, name)
    ]
    if changed:
        raise BadInput(
            f"cannot resume: {' and '.join(changed)} changed since the run began. "
            f"Restore it, or begin a new run in another work folder."
        )
    return old


def new_run_id() -> str:
    """Return an identifier that no other run has."""
    return secrets.token_hex(16)
