"""The report in a real browser: no complaint, the text is there, and something is drawn."""

from pathlib import Path

import pytest

from pages import assert_drawn_in_both_schemes, browse, console, text_in_browser


@pytest.mark.needs_browser
def test_the_report_opens_without_a_complaint(chromium: str, tmp_path: Path, made: Path) -> None:
    text = text_in_browser(chromium, tmp_path, made / "report.html")
    assert "How to read it:" in text
    assert text.count("<svg") >= 3


@pytest.mark.needs_browser
def test_a_planted_error_would_be_seen(chromium: str, tmp_path: Path) -> None:
    page = tmp_path / "broken.html"
    page.write_text("<!doctype html><script>nowhere()</script>")
    assert console(browse(chromium, tmp_path, page, "--dump-dom"))


@pytest.mark.needs_browser
def test_both_colour_schemes_are_drawn(chromium: str, tmp_path: Path, made: Path) -> None:
    assert_drawn_in_both_schemes(chromium, tmp_path, made / "report.html")
