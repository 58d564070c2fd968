"""What commands share: errors as one message, JSON on stdout, progress on stderr."""

from __future__ import annotations

import errno
import functools
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Any, ParamSpec, TextIO

import typer

from discreet.errors import EXIT_BAD_INPUT, EXIT_FAILED, DiscreetError, DiskFull, no_room

Arguments = ParamSpec("Arguments")

#: The option of every command whose answer a machine may read.
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else.")]

#: What a shell reports for a program stopped by Ctrl-C.
EXIT_INTERRUPTED = 130

#: Errors of the engine that come from values or columns of another type than expected, and from
#: columns that are not there.
OF_TYPES = {
    "ConversionException",
    "InvalidTypeException",
    "OutOfRangeException",
    "TypeMismatchException",
    "InvalidInputException",
    "InvalidOperationError",
}
OF_COLUMNS = {"BinderException", "CatalogException", "ColumnNotFoundError", "DuplicateError"}

#: Errors of the system that come from a path that somebody gave.
OF_PATHS = {
    errno.ENOENT,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENOTEMPTY,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.EROFS,
    errno.EINVAL,
}

#: Seconds between two lines of progress where there is no terminal.
EVERY = 3.0

BAR = 24


def _tell_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Tell a remark of a mechanism without the line of code it comes from."""
    print(f"warning: {message}", file=sys.stderr)


def guarded(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Return the command with every error told in one message and as an exit code.

    An unexpected error shows its type only: its text and its traceback could carry data.
    """

    @functools.wraps(command)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        warnings.showwarning = _tell_warning
        with _noting_interrupts() as interrupted:
            try:
                command(*args, **kwargs)
                sys.stdout.flush()  # while an error of it can still be reported
            except typer.Exit:
                raise
            except BrokenPipeError:
                # The reader went away (`discreet tabulate ... | head`): no error of ours.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(EXIT_FAILED) from None
            except (Exception, KeyboardInterrupt) as error:
                message, code = _told(error, bool(interrupted))
                _drop_output()
                print(f"error: {message}", file=sys.stderr)
                raise typer.Exit(code) from None

    return run


def _drop_output() -> None:
    """Write what was printed, or forget it: Python would try again at the end, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _noting_interrupts() -> Iterator[list[int]]:
    """Yield a list that is no longer empty once Ctrl-C was pressed.

    DuckDB and process pools turn an interrupt into errors of their own, so the kind of
    error does not tell.
    """
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    # A polite end (TERM, HUP) must clean up as Ctrl-C does.
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(end, note) for end in ends]
    try:
        yield seen
    finally:
        for end, handler in zip(ends, before, strict=True):
            signal.signal(end, handler)


def _told(error: BaseException, interrupted: bool) -> tuple[str, int]:
    """Return the message and the exit code of an error."""
    if interrupted or isinstance(error, KeyboardInterrupt):
        text = "interrupted. Nothing half-written is left; a run can go on with --resume."
        return text, EXIT_INTERRUPTED
    if isinstance(error, DiscreetError):
        return str(error), error.exit_code
    if no_room(error):
        return str(DiskFull(_named(error) or "a file or the output")), EXIT_FAILED
    if isinstance(error, OSError) and error.strerror:
        return _of_system(error)
    if os.environ.get("DISCREET_DEBUG") == "1":
        traceback.print_exception(error)
    if type(error).__module__.partition(".")[0] in ("duckdb", "_duckdb", "narwhals"):
        return _of_engine(type(error).__name__)
    return (
        f"unexpected {type(error).__name__}; this is a defect. "
        f"DISCREET_DEBUG=1 shows the traceback (which may show data).",
        EXIT_FAILED,
    )


def _named(error: BaseException) -> str:
    """Return the file that an error of the system names, if it does."""
    file = getattr(error, "filename", None)
    return "" if file is None else str(file)


def _of_system(error: OSError) -> tuple[str, int]:
    """Return what to say of an error of the system: of a path, of rights, or of the machine."""
    where = f"{_named(error)}: " if _named(error) else ""
    if isinstance(error, PermissionError):
        text = f"{where}this user may not do that ({error.strerror})"
        return f"{text}. Ask the owner for the permission.", EXIT_BAD_INPUT
    if error.errno in OF_PATHS:
        return f"{where}{error.strerror}. Check the path.", EXIT_BAD_INPUT
    return f"{where}{error.strerror}. Check the disk and the machine.", EXIT_FAILED


def _of_engine(kind: str) -> tuple[str, int]:
    """Return what to say of an error of the engine; its own text may quote data."""
    if kind in OF_TYPES:
        text = f"the data do not have the types their schema says ({kind})."
        return f"{text} Run `discreet validate`.", EXIT_BAD_INPUT
    if kind in OF_COLUMNS:
        text = f"the data lack a column or table, or have one twice ({kind})."
        return f"{text} Run `discreet validate`.", EXIT_BAD_INPUT
    if kind == "OutOfMemoryException":
        text = (
            "the memory limit was reached. Raise memory_limit, or give a work folder to spill to."
        )
        return text, EXIT_FAILED
    if kind == "IOException":
        text = (
            "a file could not be read or written. Check that files are whole and the disk has room."
        )
        return text, EXIT_FAILED
    return (
        f"the engine stopped ({kind}); this is a defect. "
        f"DISCREET_DEBUG=1 shows the traceback (which may show data).",
        EXIT_FAILED,
    )


def print_json(value: Any) -> None:
    """Print a value as JSON, and nothing else."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


class Progress:
    """Show how far a long step is and how long it may still take.

    On a terminal one line is redrawn; elsewhere a plain line appears every few seconds.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._terminal = stream.isatty()
        self._started = self._last = clock()
        self._drawn = False

    def __call__(self, part: float, label: str) -> None:
        """Tell that `part` (0 to 1) is done and what comes now."""
        now = self._clock()
        wait = 0.1 if self._terminal else EVERY
        if now - self._last < wait and (self._drawn or not self._terminal):
            return
        self._last, self._drawn = now, True
        line = progress_line(part, label, now - self._started, bar=self._terminal)
        # \x1b[K clears what a longer line left behind.
        self._stream.write(f"\r{line}\x1b[K" if self._terminal else f"{line}\n")
        self._stream.flush()

    def close(self) -> None:
        """Remove the line from the terminal."""
        if self._terminal and self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def progress_line(part: float, label: str, elapsed: float, bar: bool) -> str:
    """Return one line of progress.

    >>> progress_line(0.25, "swap", 10, bar=False)
    ' 25 %  swap  (10 s, about 30 s left)'
    """
    part = min(max(part, 0.0), 1.0)
    filled = round(BAR * part)
    drawn = f"{'━' * filled}{'─' * (BAR - filled)} " if bar else ""
    # An estimate from the first percents would only be noise.
    left = f", about {elapsed * (1 - part) / part:.0f} s left" if part >= 0.05 else ""
    return f"{drawn}{100 * part:3.0f} %  {label}  ({elapsed:.0f} s{left})"


@contextmanager
def progress() -> Iterator[Progress]:
    """Yield a progress display on stderr and clear it at the end."""
    shown = Progress(sys.stderr)
    try:
        yield shown
    finally:
        shown.close()
