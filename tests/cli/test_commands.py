"""Every command, run as a program: what it prints, what it writes, how it ends."""

import csv
import io
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import discreet as package

COMMANDS = [
    "demo",
    "simulate",
    "mechanisms",
    "ingest",
    "validate",
    "tabulate",
    "pl94",
    "schema list",
    "schema show",
    "schema check",
    "spec list",
    "spec show",
    "spec psa",
    "spec invert",
    "spec table",
    "spec compare",
    "spec compose",
    "spec registry",
    "spec schema",
    "audit exact",
    "evaluate swap",
    "plan topdown",
]


def test_the_version(discreet) -> None:
    done = discreet("--version")
    assert (done.returncode, done.stdout) == (0, f"discreet {package.__version__}\n")


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys, discreet.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & {"duckdb", "jinja2", "narwhals", "numba", "numpy", "yaml"}


def test_help_lists_every_command(discreet) -> None:
    listed = discreet("--help").stdout
    assert all(re.search(rf"^  {name.split()[0]} ", listed, re.MULTILINE) for name in COMMANDS)


def test_the_package_runs_as_a_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "discreet", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"discreet {package.__version__}\n"


def example(discreet, command: str) -> list[str]:
    """Return the arguments of the example in a command's help."""
    wide = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    done = discreet(*command.split(), "--help", env=wide)
    assert done.returncode == 0, done.stderr
    (line,) = re.findall(r"Example: (discreet .*)", done.stdout)
    assert line.startswith(f"discreet {command}")
    return shlex.split(line)[1:]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_example_in_the_help_runs(discreet, census: Path, tmp_path: Path, command: str) -> None:
    if command != "simulate":
        shutil.copytree(census, tmp_path / "census")
    arguments = example(discreet, command)
    done = discreet(*arguments)
    assert done.returncode == 0, done.stderr
    assert "nanobind" not in done.stderr
    assert done.stdout
    if "--json" in arguments:
        json.loads(done.stdout)


# --- JSON ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        "simulate new --profile tiny --processes 2 --json",
        "ingest census copy --json",
        "validate census --json",
        "mechanisms --json",
        "schema list --json",
        "schema show register-country --json",
        "schema check us-decennial --json",
    ],
)
def test_json_is_all_there_is_on_stdout(discreet, census: Path, tmp_path: Path, arguments) -> None:
    shutil.copytree(census, tmp_path / "census")
    done = discreet(*arguments.split())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert "nanobind" not in done.stderr


def test_mechanisms_are_told_in_one_line_each(discreet) -> None:
    listed = json.loads(discreet("mechanisms", "--json").stdout)
    assert "permutation-swapping" in [entry["name"] for entry in listed]
    assert all(entry["does"] and "\n" not in entry["does"] for entry in listed)
    assert len(discreet("mechanisms").stdout.splitlines()) == len(listed)


# --- demo ---------------------------------------------------------------------------------------


def test_the_last_line_of_the_demo_is_the_path_of_the_report(discreet, tmp_path: Path) -> None:
    done = discreet("demo", "--out", "shown", "--profile", "tiny", "--seed", "3")
    assert done.returncode == 0, done.stderr
    report = Path(done.stdout.splitlines()[-1])
    assert report == tmp_path / "shown" / "report.html"
    assert sorted(path.name for path in report.parent.iterdir()) == [
        "census",
        "release",
        "report.html",
    ]
    released = sorted(path.name for path in (report.parent / "release").iterdir())
    assert released == ["microdata", "release.yaml", "specification.yaml", "swap.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["shown"]


def test_a_demo_does_not_overwrite(discreet, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "note.txt").write_text("mine")
    done = discreet("demo", "--out", "kept", "--profile", "tiny")
    assert done.returncode == 2
    assert "error: " in done.stderr  # a slow machine tells its progress first
    assert (tmp_path / "kept" / "note.txt").read_text() == "mine"


# --- tabulate -----------------------------------------------------------------------------------


def test_a_table_comes_as_csv(discreet, census: Path, tmp_path: Path) -> None:
    arguments = ["tabulate", str(census), "--table", "P1", "--level", "state"]
    printed = discreet(*arguments)
    assert printed.returncode == 0, printed.stderr
    header, *rows = csv.reader(io.StringIO(printed.stdout))
    assert header == ["area", "race_group", "count"]
    assert rows == sorted(rows)
    assert discreet(*arguments, "--out", "table.csv").stdout == "table.csv\n"
    assert list(csv.reader((tmp_path / "table.csv").open())) == [header, *rows]
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(("origin", "mode"), [("simulated", 0o644), ("supplied", 0o600)])
def test_exact_counts_of_supplied_data_are_for_their_owner(
    discreet, census: Path, tmp_path: Path, origin: str, mode: int
) -> None:
    shutil.copytree(census, tmp_path / "census")
    header = tmp_path / "census" / "census.yaml"
    header.write_text(header.read_text().replace("simulated", origin, 1))
    arguments = "tabulate census --table P1 --level state --out table.csv"
    done = discreet(*arguments.split())
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE((tmp_path / "table.csv").stat().st_mode) == mode


# --- validate -----------------------------------------------------------------------------------


def test_a_broken_census_is_reported_without_values(discreet, census: Path, tmp_path: Path) -> None:
    broken(census, tmp_path / "census")
    done = discreet("validate", "census")
    assert done.returncode == 2
    assert "persons" in done.stdout
    assert "range" in done.stdout
    assert "119" not in done.stdout + done.stderr
    found = json.loads(discreet("validate", "census", "--json").stdout)
    assert found["valid"] is False
    assert "119" not in json.dumps(found)
    discreet("validate", "census", "--values", "values")
    (values,) = (tmp_path / "values").glob("*.csv")
    assert "119" in values.read_text()
    assert stat.S_IMODE(values.stat().st_mode) == 0o600


def test_a_broken_source_is_not_ingested(discreet, census: Path, tmp_path: Path) -> None:
    broken(census, tmp_path / "census")
    done = discreet("ingest", "census", "copy")
    assert done.returncode == 2
    assert "error: " in done.stderr  # a slow machine tells its progress first
    told = discreet("ingest", "census", "copy", "--json")
    assert told.returncode == 2
    assert json.loads(told.stdout)["written"] is False
    assert "119" not in done.stdout + done.stderr + told.stdout + told.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["census"]


def broken(census: Path, folder: Path) -> None:
    """Copy a census with impossible ages."""
    code = (
        "import sys, narwhals as nw\n"
        "from pathlib import Path\n"
        "from discreet.engine import Engine\n"
        "engine, file = Engine(), Path(sys.argv[1]) / 'persons.parquet'\n"
        "persons = engine.materialise(engine.read_parquet(file))\n"
        "aged = persons.with_columns(age=nw.lit(119, dtype=nw.Int16))\n"
        "engine.write_parquet(aged, file)\n"
    )
    shutil.copytree(census, folder)
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True)


# --- schema -------------------------------------------------------------------------------------


def test_a_schema_of_your_own_is_checked(discreet, tmp_path: Path) -> None:
    shown = json.loads(discreet("schema", "show", "register-country", "--json").stdout)
    (tmp_path / "own.yaml").write_text(json.dumps(shown))
    assert discreet("schema", "check", "own.yaml").stdout == "register-country: a valid schema\n"
    shown["tables"][0]["by"] = ["shoe_size"]
    (tmp_path / "own.yaml").write_text(json.dumps(shown))
    done = discreet("schema", "check", "own.yaml")
    assert done.returncode == 2
    assert "shoe_size" in done.stderr


def test_a_schema_is_shown_for_people(discreet) -> None:
    shown = discreet("schema", "show", "us-decennial").stdout
    for wanted in ("us-decennial", "block_group", "relationship", "P12"):
        assert wanted in shown
