"""Sphinx configuration. Build with `make docs`."""

import runpy
import sys
from pathlib import Path

from sphinx.application import Sphinx

import discreet

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "discreet"
author = "The discreet authors"
project_copyright = "The discreet authors, Apache-2.0"
release = version = discreet.__version__

extensions = ["myst_parser", "run", "mathml"]
html_math_renderer = "mathml"
exclude_patterns = ["_ext", "figures"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"discreet {release}"
html_static_path = ["_static"]
html_css_files = ["discreet.css"]
html_show_sourcelink = False


def draw_figures(app: Sphinx) -> None:
    """Write every figure anew: each figures/NAME.py has a `main(out: Path)`."""
    out = HERE / "generated"
    out.mkdir(exist_ok=True)
    for script in sorted((HERE / "figures").glob("*.py")):
        runpy.run_path(str(script))["main"](out)


def setup(app: Sphinx) -> None:
    """Draw the figures before any page is read."""
    app.connect("builder-inited", draw_figures)
