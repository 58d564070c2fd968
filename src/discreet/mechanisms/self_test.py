"""Refuse compiled code that others may change, or that does not draw what its sources say.

Machine code is kept on the disk (`discreet.compiled`), and whatever is in the cache is run. So
before a release is charged, nobody else may be able to write there, and every kernel that draws
must give the answers that are known (`discreet.noise.self_test` and the module `self_test` of
a mechanism's package). A kernel that was tested takes no more code from the disk: should it meet
arguments of types that were not tested, it is compiled from the sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from discreet.compiled import PACKAGE, kernels
from discreet.errors import DiscreetError
from discreet.files import others_may_write
from discreet.mechanisms.catalogue import MECHANISMS
from discreet.mechanisms.contract import Mode
from discreet.noise import NOISE_ANSWERS, KnownAnswer, check_answers

_HERE = "discreet.mechanisms"

#: Modules (or packages) whose kernels draw, by the package of the mechanisms that use them. The
#: kernels of `topdown` that are missing estimate from noisy answers, and see nothing else.
DRAWING = {
    "swapping": (f"{_HERE}.swapping", f"{_HERE}.numbering"),
    "topdown": tuple(f"{_HERE}.topdown.{m}" for m in ("active", "answers", "measurement_kernels")),
}
NOISE = ("discreet.noise",)


class WritableCache(DiscreetError):
    """Others may change compiled code.

    The exit code is that of a failure, not of bad input: no configuration can be at fault.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path}: others may write here, or own it, and could change the compiled code that a "
            f"release draws with. Nothing was drawn or charged. Make it yours and take their "
            f"rights (chmod -R go-w {path}), or install discreet for yourself."
        )


def check_kernels(name: str, mode: Mode) -> None:
    """Refuse a release by the mechanism `name` unless its compiled code can be relied on."""
    if mode != "release":
        return
    own = MECHANISMS[name].__module__.removeprefix(f"{_HERE}.").partition(".")[0]
    answers = [*NOISE_ANSWERS, *answers_of(own)]  # first: this also loads the kernels
    check_cache()
    check_answers(answers)
    for kernel in drawing((*NOISE, *DRAWING.get(own, ()))):
        kernel._cache.disable()


def answers_of(own: str) -> tuple[KnownAnswer, ...]:
    """Return the known answers of a package of mechanisms, beside those of noise."""
    if own not in DRAWING:
        return ()  # draws by noise alone
    answers: tuple[KnownAnswer, ...] = import_module(f"{_HERE}.{own}.self_test").ANSWERS
    return answers


def drawing(modules: tuple[str, ...]) -> Iterator[Any]:
    """Yield the kernels of some modules or packages."""
    for kernel in kernels():
        home = f"{kernel.py_func.__module__}."
        if any(home.startswith(f"{module}.") for module in modules):
            yield kernel


def check_cache() -> None:
    """Refuse folders and files of compiled code that others may write to."""
    kept = {Path(path) for kernel in kernels() if (path := kernel.stats.cache_path)}
    for folder in sorted(kept):
        check_folder(folder)
        check_folder(folder.resolve())


def check_folder(folder: Path) -> None:
    """Refuse a folder if others may write to it, to a file in it or to a folder above it.

    Above it is the package; or whatever there is, if the folder is elsewhere. A sticky folder
    is refused like any other. What is in a folder that others cannot enter is safe.
    """
    within = [folder, *folder.parents]
    for package in {PACKAGE, PACKAGE.resolve()} & {*within}:
        within = within[: within.index(package) + 1]
    for path in reversed(within):
        if others_may_write(path):
            raise WritableCache(path)
        if not path.stat().st_mode & 0o011:
            return
    for file in folder.iterdir():
        if others_may_write(file):
            raise WritableCache(file)
