"""The documentation builds without a warning, and every snippet in it runs."""

import doctest
import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MODULES = [
    ".".join(file.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for file in SOURCES
]

# A fence that shows code without running it, as Markdown or as a directive.
PLAIN_FENCE = re.compile(
    r"^\s*(?:`{3,}|~{3,}|:{3,})\s*"
    r"(?:\{(?:code|code-block|code-cell|sourcecode)\}\s*)?"
    r"(?:python3?|py|pycon|console|bash|sh|shell|zsh|doctest)\b",
    re.MULTILINE | re.IGNORECASE,
)
SHELL_BLOCK = re.compile(r"^```(?:console|bash|sh|shell)\n(.*?)^```", re.MULTILINE | re.DOTALL)

# Commands that the pages outside docs/ may show although no build of the docs runs them.
ALLOWED = {
    "make demo": "the first command of the README; CI and people run it, its parts are tested",
    "make test": "runs this very suite",
    "make lint": "the same checkers as tests/house/test_style.py",
    "make docs": "the same build as the test below",
    "make bench": "benchmarks stand apart from the suite",
    "make promises": "runs tests of this suite, with more cases",
    "make update": "changes the locks; its parts are tested in tests/house",
    "make test-lowest": "runs this very suite, in another environment",
    "make test-newest": "runs this very suite, in another environment",
}


def build(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Build the pages in `source` afresh, with every warning an error."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-E", "-q", "-b", "html"]
    return subprocess.run(
        [*command, source, out], capture_output=True, text=True, check=False, cwd=source
    )


@pytest.mark.slow
def test_the_documentation_builds_without_a_warning(tmp_path: Path) -> None:
    done = build(ROOT / "docs", tmp_path / "html")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "html" / "index.html").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_snippet_of_a_page_is_run(page: Path) -> None:
    found = PLAIN_FENCE.findall(page.read_text(encoding="utf-8"))
    assert not found, f"use ```{{run}} in {page.name} instead of: {found}"


@pytest.mark.parametrize("opening", ["```python", "~~~ bash", "```{code-block} python", ":::sh"])
def test_a_planted_plain_fence_is_found(opening: str) -> None:
    assert PLAIN_FENCE.search(f"text\n\n{opening}\nprint(1)\n")


@pytest.mark.parametrize("opening", ["```{run}", "```yaml", "```text", "```{figure} a.svg"])
def test_other_fences_are_left_alone(opening: str) -> None:
    assert not PLAIN_FENCE.search(f"text\n\n{opening}\nprint(1)\n")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_pages_outside_docs_show_only_known_commands(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = SHELL_BLOCK.findall(text)
    assert len(PLAIN_FENCE.findall(text)) == len(blocks), f"{name} may show shell commands only"
    commands = {line.split("#")[0].strip() for block in blocks for line in block.splitlines()}
    # Commands of discreet itself are run, in order, by the test below.
    assert {c for c in commands - {""} if not c.startswith("discreet ")} <= set(ALLOWED)


def test_the_commands_of_the_readme_run_in_order(tmp_path: Path) -> None:
    made = shutil.ignore_patterns("census", "work-*", "public-*")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=made)
    blocks = SHELL_BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    commands = [line.split() for line in lines if line.startswith("discreet ")]
    assert len(commands) >= 3
    for command in commands:
        program = [sys.executable, "-m", *command]
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ALLOWED)
def test_an_allowed_command_exists(command: str) -> None:
    target = command.removeprefix("make ")
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings_run(module: str) -> None:
    if module.endswith("__main__"):
        return
    failed, _ = doctest.testmod(importlib.import_module(module))
    assert failed == 0


# --- the directive itself, on a page of its own -------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a documentation of one (still missing) page that may use {run}."""
    folder = tmp_path / "pages"
    folder.mkdir()
    extension = str(ROOT / "docs" / "_ext")
    (folder / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {extension!r})\nextensions = ['myst_parser', 'run']\n"
    )
    return folder


def page(project: Path, body: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Build `body` as the only page and return what Sphinx said and the text of the page."""
    (project / "index.md").write_text(f"# Page\n\n{body}\n")
    done = build(project, project.parent / "html")
    html = project.parent / "html" / "index.html"
    shown = re.sub(r"<[^>]+>", "", html.read_text()) if html.exists() else ""
    return done, shown


def test_code_and_its_real_output_are_shown(project: Path) -> None:
    done, shown = page(project, "```{run}\necho $((6 * 7))\n```")
    assert done.returncode == 0, done.stderr
    assert "echo $((6 * 7))" in shown.replace("  ", " ")
    assert "\n42\n" in shown


def test_snippets_of_a_page_share_a_folder_whose_name_stays_hidden(project: Path) -> None:
    body = (
        "```{run}\necho written > note.txt\n```\n\n"
        "```{run}\n:language: python\nfrom pathlib import Path\n"
        "print(Path('note.txt').read_text())\nprint(Path('note.txt').resolve(), Path.cwd())\n```"
    )
    done, shown = page(project, body)
    assert done.returncode == 0, done.stderr
    assert "written\n\nnote.txt .\n" in shown
    assert "discreet-docs-" not in shown


def test_the_package_of_this_environment_is_on_the_path(project: Path) -> None:
    done, shown = page(project, "```{run}\npython -c 'import sys; print(sys.prefix)'\n```")
    assert done.returncode == 0, done.stderr
    assert sys.prefix in shown


@pytest.mark.parametrize(
    "snippet",
    [
        "```{run}\nfalse\n```",
        "```{run}\nfalse\necho the last line succeeds\n```",
        "```{run}\n:language: python\nraise ValueError('planted')\n```",
        "```{run}\n:exit: 2\ntrue\n```",
        "```{run}\n:exit: 2\nexit 1\n```",
        "```{run}\n:hide-output:\nfalse\n```",
    ],
)
def test_a_planted_failure_stops_the_build(project: Path, snippet: str) -> None:
    done, _ = page(project, snippet)
    assert done.returncode != 0
    assert "snippet ended with exit status" in done.stderr


def test_an_expected_failure_is_shown(project: Path) -> None:
    done, shown = page(project, "```{run}\n:exit: 2\necho 'bad input' >&2; exit 2\n```")
    assert done.returncode == 0, done.stderr
    assert "\nbad input\n" in shown


def test_output_can_be_cut_or_hidden(project: Path) -> None:
    body = "```{run}\n:max-lines: 2\nseq 101 105\n```\n\n```{run}\n:hide-output:\nexpr 600 + 7\n```"
    done, shown = page(project, body)
    assert done.returncode == 0, done.stderr
    assert "101\n102\n... (3 more lines)" in shown
    assert "103\n" not in shown
    assert "607" not in shown
