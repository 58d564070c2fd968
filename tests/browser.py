"""A real browser that stays open: pages are shown, measured and printed without a new start."""

import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pages import FLAGS

#: Width and height in inches.
PAPERS = {"A4": (8.27, 11.69), "Letter": (8.5, 11.0)}

#: CSS pixels of an inch.
PIXELS = 96


class Browser:
    """Control a page by the Chrome DevTools Protocol: JSON messages in pipes, each ends in NUL."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = os.fdopen(to, "wb"), os.fdopen(back, "rb")
        self._rest, self._number, self._session = b"", 0, {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._frame = self.call("Page.getFrameTree")["frameTree"]["frame"]["id"]
        for domain in ("DOM", "CSS"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params, **self._session}
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        while (answer := self._message()).get("id") != self._number:
            pass  # an event that nobody waits for
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = self._back.read1()
            assert read, "the browser has ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def show(self, html: str) -> None:
        """Show a page."""
        self.call("Page.setDocumentContent", frameId=self._frame, html=html)

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"]["value"]

    def fonts(self, selector: str) -> set[str]:
        """Return the families that the text of these elements is really drawn with."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        nodes = self.call("DOM.querySelectorAll", nodeId=root, selector=selector)["nodeIds"]
        assert nodes, f"no element: {selector}"
        used = [self.call("CSS.getPlatformFontsForNode", nodeId=node)["fonts"] for node in nodes]
        return {font["familyName"] for fonts in used for font in fonts}

    def print(self, paper: str) -> bytes:
        """Return the page as a PDF; headings are in its outline."""
        width, height = PAPERS[paper]
        options = {"generateTaggedPDF": True, "generateDocumentOutline": True}
        done = self.call("Page.printToPDF", paperWidth=width, paperHeight=height, **options)
        return base64.b64decode(done["data"])

    def as_on(self, paper: str) -> None:
        """Lay the page out in the print area of the paper, without the margins of its `@page`."""
        rule = "[...document.styleSheets[0].cssRules].find(rule => rule instanceof CSSPageRule)"
        sides = ("Left", "Right", "Top", "Bottom")
        margins = self.evaluate(f"{json.dumps(sides)}.map(side => {rule}.style[`margin${{side}}`])")
        left, right, top, bottom = (float(text.removesuffix("mm")) / 25.4 for text in margins)
        width, height = PAPERS[paper]
        area = {
            "width": int((width - left - right) * PIXELS),
            "height": int((height - top - bottom) * PIXELS),
        }
        self.call("Emulation.setEmulatedMedia", media="print")
        self.call("Emulation.setDeviceMetricsOverride", **area, deviceScaleFactor=1, mobile=False)


@contextmanager
def open_browser(chromium: str, folder: Path) -> Iterator[Browser]:
    """Start a browser, and end it with the block; its profile goes into the folder."""
    from_us, to, back, from_it = *os.pipe(), *os.pipe()
    # The browser reads commands from file 3 and answers to file 4.
    command = f'exec "$0" "$@" 3<&{from_us} 4>&{from_it}'
    flags = [*FLAGS, f"--user-data-dir={folder}", "--remote-debugging-pipe"]
    process = subprocess.Popen(
        ["bash", "-c", command, chromium, *flags],
        pass_fds=(from_us, from_it),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(from_us)
    os.close(from_it)
    try:
        opened = Browser(to, back)
        yield opened
        opened.call("Browser.close")
        process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()


def n_pages(pdf: bytes) -> int:
    """Return the number of pages of a PDF."""
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def headings(pdf: bytes) -> dict[str, int]:
    """Return on which page (from 1) each heading of a printed page is."""
    kids = re.search(rb"/Kids \[([^\]]*)\]", pdf)
    assert kids, "no tree of pages"
    pages = re.findall(rb"(\d+) 0 R", kids[1])
    found = re.findall(rb"/Title \(([^)]*)\)\s*/Dest \[(\d+) 0 R", pdf)
    return {title.decode(): 1 + pages.index(page) for title, page in found}
