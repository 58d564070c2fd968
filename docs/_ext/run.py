"""Run the snippets of the documentation while it is built and show what they really print.

    ```{run}
    discreet --version
    ```

Every snippet of a page runs in the same temporary folder, in the order of the page, so a later
snippet may use what an earlier one wrote. An unexpected exit status is a Sphinx warning: a build
with -W fails. Options:

    :language:      shell (default) or python
    :exit:          the exit status to expect (default 0)
    :hide-output:   run, but show only the code
    :max-lines:     show at most this many lines of output
"""

import atexit
import functools
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import loaded

logger = logging.getLogger(__name__)

SECONDS = 300
#: For each language: the command before the code, and the name of its colouring.
LANGUAGES = {
    "shell": (["bash", "-euo", "pipefail", "-c"], "bash"),
    "python": (["snippet"], "python"),
}
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def language(argument: str) -> str:
    """Return the snippet's language if we can run it."""
    return directives.choice(argument, tuple(LANGUAGES))


@functools.cache
def programs() -> str:
    """Return the folders of `discreet` and `snippet`, as in a path; the first call starts them."""
    shared = tempfile.mkdtemp(prefix="discreet-docs-")
    atexit.register(shutil.rmtree, shared, ignore_errors=True)
    return f"{loaded.start(Path(shared))}{os.pathsep}{sysconfig.get_path('scripts')}"


def execute(code: str, command: list[str], folder: Path) -> tuple[int, str]:
    """Return the exit status of `code` run in `folder`, and all it printed."""
    path = f"{programs()}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {
        **os.environ,
        "PATH": path,
        # The same text on every machine: no colours, one width, one encoding.
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "100",
        "PYTHONUTF8": "1",
        "DISCREET_OWN_PROCESS": "1",
    }
    try:
        done = subprocess.run(
            [shutil.which(command[0], path=path) or command[0], *command[1:], code],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"(stopped after {SECONDS} seconds)"
    return done.returncode, tidy(done.stdout.decode("utf-8", errors="replace"), folder)


def tidy(output: str, folder: Path) -> str:
    """Return the output without colours and without the temporary folder's name."""
    plain = ESCAPES.sub("", output).rstrip()
    plain = "\n".join(line.rstrip() for line in plain.splitlines())
    return plain.replace(f"{folder}/", "").replace(str(folder), ".")


def shorten(output: str, most: int | None) -> str:
    """Return the first `most` lines and how many were left out."""
    lines = output.splitlines()
    if most is None or len(lines) <= most:
        return output
    return "\n".join([*lines[:most], f"... ({len(lines) - most} more lines)"])


class Run(SphinxDirective):
    """Show a snippet and, below it, what it printed."""

    has_content = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = {
        "language": language,
        "exit": directives.nonnegative_int,
        "hide-output": directives.flag,
        "max-lines": directives.positive_int,
    }

    def run(self) -> list[nodes.Node]:
        """Return the code as a block and the output as another."""
        self.assert_has_content()
        code = "\n".join(self.content)
        command, colouring = LANGUAGES[self.options.get("language", "shell")]
        status, output = execute(code, command, self.folder())
        expected = self.options.get("exit", 0)
        if status != expected:
            logger.warning(
                "snippet ended with exit status %s, expected %s:\n%s\n--- it printed ---\n%s",
                status,
                expected,
                code,
                output,
                location=self.get_location(),
                type="run",
            )
        blocks = [self.block(code, colouring, "run-code")]
        if output and "hide-output" not in self.options:
            shown = shorten(output, self.options.get("max-lines"))
            blocks.append(self.block(shown, "text", "run-output"))
        return blocks

    def block(self, text: str, colouring: str, kind: str) -> nodes.Node:
        """Return `text` as a coloured block of class `kind`."""
        block = nodes.literal_block(text, text, language=colouring, classes=[kind])
        self.set_source_info(block)
        return block

    def folder(self) -> Path:
        """Return the folder shared by the snippets of this page."""
        # temp_data lives as long as one page is read; the object removes its folder with itself.
        shared = self.env.temp_data.setdefault("run-folder", None)
        if shared is None:
            shared = tempfile.TemporaryDirectory(prefix="discreet-docs-")
            self.env.temp_data["run-folder"] = shared
        return Path(shared.name).resolve()


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("run", Run)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
