"""Demos made once for all tests of the report."""

from pathlib import Path

import pytest

from discreet.demo import demo
from pages import Outline

#: Profile, and a seed of the swap that changes something even in the tiny state.
PROFILES = {"tiny": 5, "other-country": 1}


@pytest.fixture(scope="session", params=PROFILES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a demo, for each profile."""
    out = tmp_path_factory.mktemp("report") / request.param
    demo(out, request.param, swap_seed=PROFILES[request.param])
    return out


@pytest.fixture(scope="session")
def page(made: Path) -> str:
    """Return the report as text."""
    return (made / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    """Return the outline of the page, which a test file may replace by its own."""
    return Outline(page)
