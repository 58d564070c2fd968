"""Skip what this machine cannot run and say why; in CI a missing need is a failure."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

# For each marker: what is needed, and the programs of which one must be on the path.
NEEDS = {
    "needs_java": ("a Java virtual machine", ("java",)),
    "needs_strace": ("a tracer of system calls", ("strace",)),
    "needs_browser": ("a Chromium browser", ("chromium", "chromium-browser", "google-chrome")),
}


def program(marker: str) -> str | None:
    """Return the path of the first program that meets the need, or None."""
    _, names = NEEDS[marker]
    return next((found for name in names if (found := shutil.which(name))), None)


def lack(reason: str) -> NoReturn:
    """Skip a test for a missing need; in CI, fail it."""
    if os.environ.get("DISCREET_CI") == "1":
        pytest.fail(f"{reason}; CI must provide it (.ci/run)", pytrace=False)
    pytest.skip(reason)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The longest test goes first: the other worker has enough to do meanwhile.
    items.sort(key=lambda item: "documentation_builds" not in item.nodeid)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, (what, names) in NEEDS.items():
        if item.get_closest_marker(marker) is None or program(marker):
            continue
        lack(f"needs {what}: none of {', '.join(names)} is on the path")


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the top folder of the repository."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def missing_need() -> Callable[[str], NoReturn]:
    """Return what a test calls that finds a need missing which is no program."""
    return lack


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the browser's path; the test also carries `needs_browser`."""
    found = program("needs_browser")
    assert found, "mark this test with needs_browser"
    return found
