"""A missing need is a skip with its reason on a desk and a failure in CI."""

import subprocess
from pathlib import Path

import pytest

MARKERS = ["needs_java", "needs_browser"]
PROGRAM = {"needs_java": "java", "needs_browser": "chromium"}


@pytest.fixture
def suite(
    pytester: pytest.Pytester, root: Path, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    """Return a one-room suite with our conftest, on a machine with no programs at all."""
    pytester.makeconftest((root / "tests" / "conftest.py").read_text())
    pytester.makeini("[pytest]\nmarkers =\n    needs_java\n    needs_browser\n")
    (pytester.path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(pytester.path / "bin"))
    monkeypatch.delenv("DISCREET_CI", raising=False)
    return pytester


def marked(marker: str) -> str:
    return f"""
        import pytest

        @pytest.mark.{marker}
        def test_with_the_need():
            pass

        def test_without():
            pass
    """


@pytest.mark.parametrize("marker", MARKERS)
def test_without_the_program_the_test_is_skipped_with_the_reason(
    suite: pytest.Pytester, marker: str
) -> None:
    suite.makepyfile(marked(marker))
    result = suite.runpytest("-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines([f"SKIPPED*needs a *{PROGRAM[marker]}*is on the path"])


@pytest.mark.parametrize("marker", MARKERS)
def test_in_ci_the_same_test_fails(
    suite: pytest.Pytester, marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCREET_CI", "1")
    suite.makepyfile(marked(marker))
    result = suite.runpytest()
    # pytest counts a failure before the test body as an error; the run fails all the same.
    result.assert_outcomes(passed=1, errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"*{PROGRAM[marker]}*CI must provide it*"])


@pytest.mark.parametrize("ci", ["0", "1"])
@pytest.mark.parametrize("marker", MARKERS)
def test_with_the_program_the_test_runs(
    suite: pytest.Pytester, marker: str, ci: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCREET_CI", ci)
    fake = suite.path / "bin" / PROGRAM[marker]
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    suite.makepyfile(marked(marker))
    suite.runpytest().assert_outcomes(passed=2)


@pytest.mark.parametrize("ci", ["0", "1"])
def test_a_need_that_only_the_test_itself_can_look_for(
    suite: pytest.Pytester, ci: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCREET_CI", ci)
    suite.makepyfile("def test_font(missing_need): missing_need('needs the font Old')")
    suite.runpytest().assert_outcomes(skipped=int(ci == "0"), failed=int(ci == "1"))


def test_the_ci_script_allows_no_such_skip(root: Path) -> None:
    script = root / ".ci" / "run"
    assert script.stat().st_mode & 0o111, f"make it executable: chmod +x {script.name}"
    assert "export DISCREET_CI=1\nmake test\n" in script.read_text()
    subprocess.run(["bash", "-n", script], check=True)
