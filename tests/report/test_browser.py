"""The report in a real browser: no complaint, the text is there, and something is drawn."""

import re
import subprocess
from pathlib import Path

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--window-size=1280,3000",
]


def browse(chromium: str, tmp_path: Path, page: Path, *flags: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [chromium, *FLAGS, f"--user-data-dir={tmp_path / 'user'}", *flags, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def console(done: subprocess.CompletedProcess) -> list[str]:
    return re.findall(r".*CONSOLE.*", done.stderr)


@pytest.mark.needs_browser
def test_the_report_opens_without_a_complaint(chromium: str, tmp_path: Path, made: Path) -> None:
    done = browse(chromium, tmp_path, made / "report.html", "--dump-dom")
    assert done.returncode == 0, done.stderr
    assert console(done) == []
    assert "How to read it:" in done.stdout
    assert done.stdout.count("<svg") >= 3


@pytest.mark.needs_browser
def test_a_planted_error_would_be_seen(chromium: str, tmp_path: Path) -> None:
    page = tmp_path / "broken.html"
    page.write_text("<!doctype html><script>nowhere()</script>")
    assert console(browse(chromium, tmp_path, page, "--dump-dom"))


@pytest.mark.needs_browser
def test_both_colour_schemes_are_drawn(chromium: str, tmp_path: Path, made: Path) -> None:
    shots = []
    for scheme in (0, 1):  # dark, light
        shot = tmp_path / f"report-{scheme}.png"
        setting = f"--blink-settings=preferredColorScheme={scheme}"
        done = browse(chromium, tmp_path, made / "report.html", f"--screenshot={shot}", setting)
        assert done.returncode == 0, done.stderr
        shots.append(shot.read_bytes())
    # An empty page of this size compresses to a few kilobytes.
    assert min(map(len, shots)) > 100_000
    assert shots[0] != shots[1]
