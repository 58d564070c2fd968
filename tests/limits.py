"""Processes that may do less than the one that runs the tests."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

#: With these, root reads and writes whatever it likes (linux/capability.h).
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
PR_CAPBSET_DROP = 24


def heed_permissions() -> None:
    """Let the program that this process becomes heed permissions, even as root."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            assert libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0


def discreet(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as somebody who heeds permissions."""
    return _run("-m", "discreet", *arguments, cwd=cwd)


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run some code as somebody who heeds permissions."""
    return _run("-c", code, *arguments)


def _run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        preexec_fn=heed_permissions,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
