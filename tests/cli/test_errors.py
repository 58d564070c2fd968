"""However a command fails: one message, the right exit code, nothing left behind."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import limits
from discreet.cli.app import app

PROGRAM = Path(sys.executable).parent / "discreet"


@pytest.mark.parametrize(
    "arguments",
    [
        "validate nowhere",
        "tabulate nowhere --table P1 --level state",
        "ingest nowhere out",
        "ingest nowhere out --layout nolayout",
        "simulate out --profile atlantis",
        "simulate out --profile tiny --states 99",
        "demo --out out --profile atlantis",
        "schema show atlantis",
        "schema check nowhere.yaml",
    ],
)
def test_bad_input_is_one_message_and_exit_2(discreet, tmp_path: Path, arguments: str) -> None:
    done = discreet(*arguments.split())
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "error: " in done.stderr  # a slow machine tells its progress first
    assert "Traceback" not in done.stderr
    assert "nanobind" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("table", "level"), [("P11", "state"), ("P1", "galaxy")])
def test_unknown_names_come_with_the_known_ones(discreet, census: Path, table, level) -> None:
    done = discreet("tabulate", str(census), "--table", table, "--level", level)
    assert done.returncode == 2
    assert "Did you mean" in done.stderr or "Known:" in done.stderr


@pytest.mark.parametrize(
    "arguments", ["", "atlantis", "simulate", "tabulate x", "demo --seed many", "schema", "demo x"]
)
def test_wrong_usage_is_exit_2(discreet, arguments: str) -> None:
    done = discreet(*arguments.split())
    assert done.returncode == 2
    assert "Usage:" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def planted(error: str, debug: bool) -> subprocess.CompletedProcess[str]:
    """Run a command inside which `error` is raised."""
    code = (
        "import sys, discreet.census, discreet.cli\n"
        f"def fail(name): raise {error}\n"
        "discreet.census.load_schema = fail\n"
        "sys.argv = ['discreet', 'schema', 'show', 'us-decennial']\n"
        "discreet.cli.main()\n"
    )
    environment = {**os.environ, "DISCREET_DEBUG": "1" if debug else "0"}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )


def test_an_unexpected_error_tells_its_kind_and_no_value() -> None:
    done = planted("ValueError('secret 4711')", debug=False)
    assert done.returncode == 1
    assert "ValueError" in done.stderr
    assert "DISCREET_DEBUG=1" in done.stderr
    assert "4711" not in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("kind", "says", "code"),
    [
        ("OutOfMemoryException", "memory limit was reached", 1),
        ("IOException", "disk has room", 1),
        ("ConversionException", "types their schema says", 2),
        ("BinderException", "lack a column", 2),
        ("InternalException", "the engine stopped (InternalException)", 1),
    ],
)
def test_an_error_of_the_engine_says_what_it_is(kind: str, says: str, code: int) -> None:
    done = planted(f"__import__('duckdb').{kind}('secret 4711')", debug=False)
    assert done.returncode == code
    assert says in done.stderr
    assert ("types" in done.stderr) == (kind == "ConversionException")
    assert "secret" not in done.stderr


def test_debugging_shows_the_traceback() -> None:
    done = planted("ValueError('secret 4711')", debug=True)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "4711" in done.stderr


def test_a_failure_of_ours_keeps_its_message_and_code() -> None:
    done = planted("__import__('discreet.errors').errors.DiscreetError('it broke.')", debug=False)
    assert (done.returncode, done.stderr) == (1, "error: it broke.\n")


def test_an_interrupt_ends_with_130_and_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [PROGRAM, "demo", "--out", "demo", "--profile", "small-state", "--processes", "2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".demo.*/census")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(tmp_path.iterdir()), "the demo never started"
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the whole group
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert out == ""
    assert errors.splitlines()[-1] == (
        "error: interrupted. Nothing half-written is left; a run can go on with --resume."
    )
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_error(census: Path, tmp_path: Path) -> None:
    errors = tmp_path / "errors.txt"
    command = f"'{PROGRAM}' tabulate '{census}' --table P1 --level block 2> '{errors}' | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "area,race_group,count\n"
    assert errors.read_text() == ""


@pytest.mark.parametrize(
    ("error", "says", "code"),
    [
        ("OSError(28, 'No space left on device', 'big.parquet')", "big.parquet", 1),
        ("OSError(122, 'Disk quota exceeded', 'big.parquet')", "the disk is full", 1),
        ("__import__('duckdb').IOException('x: No space left on device')", "the disk is full", 1),
        ("OSError(5, 'Input/output error', 'big.parquet')", "big.parquet: Input/output error", 1),
        ("FileNotFoundError(2, 'No such file', 'x')", "x: No such file. Check the path", 2),
        ("PermissionError(13, 'Permission denied', 'x')", "x: this user may not", 2),
    ],
)
def test_an_error_of_the_system_has_its_remedy_and_code(error: str, says: str, code: int) -> None:
    done = planted(error, debug=False)
    assert done.returncode == code
    assert says in done.stderr
    assert ("the disk is full" in done.stderr) == ("OSError(28" in error or "full" in says)
    assert ("Check the path" in done.stderr) == ("FileNotFound" in error)
    assert len(done.stderr.splitlines()) == 1


def test_files_that_may_not_grow_end_a_command_with_1_and_nothing_left(tmp_path: Path) -> None:
    """A limit on the size of files fails as a full disk does, at the first write beyond it."""
    done = subprocess.run(
        [PROGRAM, "simulate", "census", "--profile", "tiny", "--processes", "1"],
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_output_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PROGRAM, "mechanisms"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert "the output could not be written: the disk is full" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", "c\0"],
        ["run", "run\0.yaml"],
        ["publish", "run\0.yaml"],
        ["register", "show", "r\0.db"],
        ["register", "open", "r.db", "c\0.yaml"],
        ["tabulate", "c", "--table", "P1", "--level", "state", "--out", "t\0.csv"],
        ["schema", "check", "s\0.yaml"],
    ],
)
def test_a_path_that_no_file_can_have_is_bad_input(arguments: list[str]) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2, done.output
    assert "unexpected" not in done.stderr
    assert "\0" not in done.stderr


def test_a_file_that_may_not_be_read_is_reported_as_such(census: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(census, tmp_path / "census"))
    (copy / "schema.yaml").chmod(0)
    done = limits.discreet("validate", "census", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "error: schema.yaml: this user may not read it. Ask its owner for the permission.\n"
    )
    copy.chmod(0)
    done = limits.discreet("validate", "census", cwd=tmp_path)
    copy.chmod(0o700)
    assert done.returncode == 2
    assert "not readable" in done.stderr or "this user may not" in done.stderr
