"""The figures of the guide to specifications, as pieces of HTML that follow the page's colours."""

from html import escape
from importlib.resources import files
from pathlib import Path

from discreet import report

STYLES = files("discreet.report") / "templates"

# The pictures know their parts by class names only; here these get the colours of the pages.
COLOURS = """
.curves-figure { --ink: var(--color-foreground-primary); --soft: var(--color-foreground-muted);
  --line: var(--color-background-border); --card: var(--color-background-primary);
  color-scheme: light; margin: 1.5rem 0; }
body[data-theme="dark"] .curves-figure { color-scheme: dark; }
@media (prefers-color-scheme: dark) {
  body[data-theme="auto"] .curves-figure { color-scheme: dark; }
}
.curves-figure svg { font-family: var(--font-stack); }
.curves-figure figcaption { font-size: var(--font-size--small); margin: .8rem 0; }
.curves-figure summary { font-size: var(--font-size--small); cursor: pointer; }
.curves-figure td, .curves-figure th { text-align: right; padding: .1rem .7rem; }
"""


def main(out: Path) -> None:
    """Write one file per figure."""
    for name, figure in (
        ("budgets-by-rate", report.budgets_by_rate()),
        ("bounds-by-rate", report.bounds_by_rate((5, 5), (5, 5))),
        ("bounds-by-size", report.bounds_by_size()),
        ("variants-by-share", report.variants_by_share()),
    ):
        (out / f"{name}.html").write_text(piece(figure), encoding="utf-8")


def piece(figure: report.Figure) -> str:
    """Return a figure as HTML: picture, caption and numbers."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in figure.columns)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(value)}</td>' for value in row)}</tr>" for row in figure.rows
    )
    return (
        f'<figure class="curves-figure"><style>{style()}</style>'
        f"<p><strong>{escape(figure.title)}</strong></p>{figure.picture}"
        f"<figcaption><strong>How to read it:</strong> {escape(figure.caption)}</figcaption>"
        f"<details><summary>Numbers</summary><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></details></figure>\n"
    )


def style() -> str:
    """Return the rules for pictures from the style sheets of reports, in the pages' colours."""
    lines = (STYLES / "style.css").read_text(encoding="utf-8").splitlines()
    pictures = "\n".join(line for line in lines if line.startswith("svg "))
    return f"{COLOURS}{pictures}\n{(STYLES / 'curves.css').read_text(encoding='utf-8')}"
