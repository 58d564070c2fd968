"""Hold the whole repository to the house style: lint, types, doors, paths, dependencies."""

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPTS = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "--no-cache", "."],
        ["ruff", "format", "--no-cache", "--check", "."],
        ["mypy"],
        ["lint-imports", "--no-cache"],
    ],
    ids=["ruff-check", "ruff-format", "mypy-strict", "import-direction"],
)
def test_checker_is_content(root: Path, command: list[str]) -> None:
    name, *arguments = command
    done = subprocess.run(
        [SCRIPTS / name, *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"


# --- rooms are entered through their front door -------------------------------------------------


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str, list[str]]]:
    """Yield line, absolute module and imported names of every import, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, []
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            # Level 1 is the package that holds the module (or the package itself).
            keep = len(parts) - node.level + is_package
            prefix = ".".join(parts[:keep]) if node.level else ""
            target = ".".join(part for part in (prefix, node.module) if part)
            yield node.lineno, target, [alias.name for alias in node.names]


def offered(front_door: Path) -> set[str]:
    """Return the names that a room's __init__ imports: a function may be called like its module."""
    text = front_door.read_text(encoding="utf-8") if front_door.exists() else ""
    return {
        name for _, _, names in imports(ast.parse(text), "discreet.room", True) for name in names
    }


def back_doors(source: Path) -> list[str]:
    """Return each import in `source`/discreet that reaches past another room's __init__."""
    found = []
    for file in sorted((source / "discreet").rglob("*.py")):
        inside = file.relative_to(source).with_suffix("").parts
        is_package = inside[-1] == "__init__"
        own = inside[:-1] if is_package else inside
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for line, target, names in imports(tree, ".".join(own), is_package):
            parts = target.split(".")
            if parts[0] != "discreet" or len(parts) < 2 or parts[1:2] == list(own[1:2]):
                continue
            room = source / "discreet" / parts[1]
            modules = {name for name in names if (room / f"{name}.py").exists()}
            hidden = sorted(modules - offered(room / "__init__.py"))
            if len(parts) > 2 or hidden:
                what = target if len(parts) > 2 else f"{target}.{hidden[0]}"
                found.append(f"{file.relative_to(source)}:{line} reaches into {what}")
    return found


def test_rooms_are_entered_through_the_front_door(root: Path) -> None:
    found = back_doors(root / "src")
    assert not found, "import these names from the room's __init__ instead:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("report/page.py", "from discreet.census.keys import with_person_key"),
        ("report/page.py", "import discreet.census.keys"),
        ("report/page.py", "from discreet.census import keys"),
        ("report/page.py", "from ..census.keys import with_person_key"),
        ("report/__init__.py", "from ..census import keys"),
        ("cli.py", "def late():\n    from discreet.census.keys import with_person_key"),
    ],
)
def test_a_planted_back_door_is_found(tmp_path: Path, file: str, line: str) -> None:
    plant(tmp_path, file, line)
    assert len(back_doors(tmp_path)) == 1


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("report/page.py", "from discreet.census import with_person_key"),
        ("report/page.py", "from discreet import census"),
        ("report/page.py", "from discreet.errors import DiscreetError"),
        ("census/read.py", "from discreet.census.keys import with_person_key"),
        ("census/read.py", "from .keys import with_person_key"),
        ("census/__init__.py", "from .keys import with_person_key"),
        ("report/page.py", "from discreet.census import validate"),
    ],
)
def test_the_front_door_and_the_own_room_are_open(tmp_path: Path, file: str, line: str) -> None:
    plant(tmp_path, file, line)
    assert back_doors(tmp_path) == []


def plant(source: Path, file: str, line: str) -> None:
    """Write a small house in which `file` holds `line`."""
    house = {
        "__init__.py": "",
        "errors.py": "",
        "census/__init__.py": "from discreet.census.validate import validate\n",
        "census/keys.py": "",
        "census/validate.py": "",
        file: "",
    }
    for path, text in house.items():
        (source / "discreet" / path).parent.mkdir(parents=True, exist_ok=True)
        (source / "discreet" / path).write_text(text)
    (source / "discreet" / file).write_text(line + "\n")


# --- no import goes upwards, planted ------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("errors.py", "", False),
        ("report/page.py", "from discreet.census import with_person_key", False),
        ("census/read.py", "import discreet.report", True),
        ("census/read.py", "def late():\n    from discreet.report import page", True),
        ("spec/__init__.py", "import discreet.engine", True),
        ("errors.py", "import discreet.census", True),
        ("annex/__init__.py", "", True),
    ],
    ids=["empty", "downwards", "upwards", "upwards-late", "independent", "ground", "no-floor"],
)
def test_the_import_rules_find_what_is_planted(
    root: Path, tmp_path: Path, file: str, line: str, broken: bool
) -> None:
    (tmp_path / "pyproject.toml").write_text((root / "pyproject.toml").read_text())
    for room in ["report", "engine", "spec"]:
        plant(tmp_path, f"{room}/__init__.py", "")
    plant(tmp_path, file, line)
    done = subprocess.run(
        [SCRIPTS / "lint-imports", "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == int(broken), done.stdout + done.stderr
    assert not broken or "No import goes upwards BROKEN" in done.stdout


# --- nothing of the machine it was written on ---------------------------------------------------

# Joined here so that this file does not contain what it forbids.
PRIVATE_FOLDERS = "|".join(["root", "work", "home", "Users"])
FORBIDDEN = re.compile(r"(?<![\w.})*-])/(?:" + PRIVATE_FOLDERS + r")/|\bindex[-]url\b")


def repository_files(root: Path) -> list[Path]:
    """Return the files git tracks or would track; all files where there is no git."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode:  # an unpacked archive: leave out what .gitignore would
        made = re.compile(r"^(\.(?!ci/)[^/]+|build|dist|docs/generated)/|(^|/)__pycache__/")
        files = [path for path in root.rglob("*") if path.is_file()]
        return [path for path in files if not made.search(path.relative_to(root).as_posix())]
    return [path for name in listing.stdout.split("\0") if name and (path := root / name).is_file()]


def test_no_file_names_a_private_folder_or_a_package_registry(root: Path) -> None:
    found = []
    for path in repository_files(root):
        text = path.read_bytes().decode("utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            if FORBIDDEN.search(line):
                found.append(f"{path.relative_to(root)}:{number}: {line.strip()[:80]}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("folder", PRIVATE_FOLDERS.split("|"))
def test_a_planted_private_folder_is_found(folder: str) -> None:
    assert FORBIDDEN.search(f"data = Path('/{folder}/me/census')")
    assert not FORBIDDEN.search(f"data = out / 'release/{folder}/draw'")


# --- what is imported is declared ---------------------------------------------------------------


def normal(name: str) -> str:
    """Return a distribution's name in its normal form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(root: Path) -> set[str]:
    """Return the distributions that the package itself (not its extras) depends on."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return {normal(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in project["dependencies"]}


def imported(source: Path) -> set[str]:
    """Return the distributions that the package imports anywhere."""
    names = set()
    for file in source.rglob("*.py"):
        for _, target, _ in imports(ast.parse(file.read_text()), "discreet.x.y", False):
            names.add(target.split(".")[0])
    names -= {"discreet", *sys.stdlib_module_names}
    distributions = importlib.metadata.packages_distributions()
    return {normal(distributions.get(name, [name])[0]) for name in names}


def test_every_import_is_declared_as_a_dependency(root: Path) -> None:
    missing = imported(root / "src") - declared(root)
    assert not missing, f"add to [project] dependencies in pyproject.toml: {sorted(missing)}"


def test_an_undeclared_import_is_found(tmp_path: Path, root: Path) -> None:
    (tmp_path / "planted.py").write_text("def late():\n    import sphinx.errors\n    import yaml\n")
    assert imported(tmp_path) - declared(root) == {"sphinx"}
