"""What tests of pages share: an outline of a page, marks of a picture, and a browser."""

import re
import subprocess
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "link", "br", "hr", "img", "input"}

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


class Outline(HTMLParser):
    """Collect text, tags and attributes, and complain about tags that do not match."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.words: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.tags: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def values(self, *names: str) -> list[str]:
        """Return the values of all attributes of these names."""
        return [value for name, value in self.attributes if name in names]

    def links(self) -> list[str]:
        """Return the ids that links lead to."""
        return [value[1:] for value in self.values("href") if value.startswith("#")]


def assert_stands_alone(page: str) -> None:
    """Check that a page fetches nothing, has no id twice, and that its links lead somewhere."""
    outline = Outline(page)
    assert not {"script", "img", "iframe", "object"} & set(outline.tags)
    assert not re.search(r"@import|url\(|src=", page)
    fetched = outline.values("src", "href", "srcset", "data")
    assert all(value.startswith("#") or value == "data:," for value in fetched)
    ids = outline.values("id")
    assert len(ids) == len(set(ids))
    assert {*outline.links(), *outline.values("aria-labelledby")} <= set(ids)


def marks(picture: str, tag: str, kind: str = "") -> list[ElementTree.Element]:
    """Return the elements of a picture with this tag, and of this class if one is given."""
    found = ElementTree.fromstring(picture).iter(tag)
    return [mark for mark in found if kind in mark.get("class", "").split() or not kind]


def browse(chromium: str, tmp_path: Path, page: Path, *flags: str) -> subprocess.CompletedProcess:
    """Open a page in the browser."""
    return subprocess.run(
        [chromium, *FLAGS, f"--user-data-dir={tmp_path / 'user'}", *flags, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def console(done: subprocess.CompletedProcess) -> list[str]:
    """Return what the page complained about."""
    return re.findall(r".*CONSOLE.*", done.stderr)


def text_in_browser(chromium: str, tmp_path: Path, page: Path) -> str:
    """Return the page as the browser holds it, which must have opened without a complaint."""
    done = browse(chromium, tmp_path, page, "--dump-dom")
    assert done.returncode == 0, done.stderr
    assert console(done) == []
    return done.stdout


def assert_drawn_in_both_schemes(chromium: str, tmp_path: Path, page: Path) -> None:
    """Check that something is drawn, without a complaint, and dark is not as light."""
    shots = []
    for scheme in (0, 1):  # dark, light
        shot = tmp_path / f"shot-{scheme}.png"
        setting = f"--blink-settings=preferredColorScheme={scheme}"
        done = browse(chromium, tmp_path, page, f"--screenshot={shot}", setting)
        assert done.returncode == 0, done.stderr
        assert console(done) == []
        shots.append(shot.read_bytes())
    # An empty page of this size compresses to a few kilobytes.
    assert min(map(len, shots)) > 100_000
    assert shots[0] != shots[1]
