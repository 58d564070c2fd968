"""The figures of the guide to targeted swapping: a study of the simulated small state."""

import runpy
import tempfile
from importlib.resources import files
from pathlib import Path

from discreet.census import Census
from discreet.evaluate import study_swaps, swap_methods
from discreet.report import swap_figures
from discreet.simulate import simulate

SWAPS = files("discreet.report") / "templates" / "swaps.css"

COLOURS = """
.curves-figure { --n1: light-dark(#a8cae4, #35597d); --n2: light-dark(#5c9ace, #4d8bc8);
  --n3: light-dark(#1f63a8, #79b8f5); --rise: light-dark(#dd8628, #f3a655); }
"""


def main(out: Path) -> None:
    """Write one file per figure."""
    piece = runpy.run_path(str(Path(__file__).with_name("specifications.py")))["piece"]
    lines = SWAPS.read_text(encoding="utf-8").splitlines()
    style = COLOURS + "\n".join(line for line in lines if line.startswith("svg"))
    study = study_small_state()
    for name, figure in (
        ("swaps-entropy", swap_figures.entropy_figure(study)),
        ("swaps-parts", swap_figures.parts_figure(study)),
        ("swaps-groups", swap_figures.groups_figure(study)),
        ("swaps-variance", swap_figures.variance_figure(study)),
    ):
        drawn = piece(figure).replace("</style>", f"{style}</style>", 1)
        (out / f"{name}.html").write_text(drawn, encoding="utf-8")


def study_small_state():
    """Return a study of two presets at two rates."""
    with tempfile.TemporaryDirectory(prefix="discreet-docs-") as folder:
        simulate("small-state", Path(folder) / "census", 1)
        census = Census.open(Path(folder) / "census")
        made = swap_methods(census.schema, ["paper", "published-code"], ["0.02", "0.1"])
        study = study_swaps(census, made)
        census.engine.close()
    return study
