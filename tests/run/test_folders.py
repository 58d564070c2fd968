"""Folders that a run cannot use are refused before the charge."""

import os
from pathlib import Path

import pytest
import yaml

import limits
from discreet.errors import BadInput
from discreet.run import run

from .test_run import committed

NOT_UTF8 = os.fsdecode(b"n\xff")

#: Names that the engine cannot write as a pattern for themselves alone.
PATTERNS = ["w\\[1]", "w\\*", "a\\b[c"]


def below(folder: Path) -> list[str]:
    """Return everything in a folder except the register, which reading may touch."""
    found = (path.relative_to(folder) for path in folder.rglob("*"))
    return sorted(str(path) for path in found if "register" not in path.name)


@pytest.mark.parametrize("key", ["work", "out"])
@pytest.mark.parametrize("name", PATTERNS)
def test_a_folder_the_engine_cannot_name_is_refused_before_the_charge(
    configure, tmp_path, key, name
):
    config = configure("noisy-tables", "release", **{key: name})
    before = below(tmp_path)
    with pytest.raises(BadInput, match="Rename the"):
        run(config)
    assert "reservation" not in committed(tmp_path)
    assert below(tmp_path) == before


@pytest.mark.parametrize("key", ["work", "out"])
def test_a_folder_with_letters_of_patterns_is_used_if_the_engine_can(configure, tmp_path, key):
    release = run(configure("noisy-tables", "release", **{key: "a[1]*?"}))
    assert release.header.mode == "release"
    assert "commit" in committed(tmp_path)


@pytest.mark.parametrize("relative", ["work", "out"])
def test_a_folder_that_is_not_utf8_is_refused_before_the_charge(configure, tmp_path, relative):
    config = configure("noisy-tables", "release")
    content = yaml.safe_load(config.read_text())
    for key in {"census", "work", "out"} - {relative}:
        content[key] = str(tmp_path / content[key])
    content["account"]["register"] = str(tmp_path / "register.sqlite")
    other = tmp_path / NOT_UTF8
    other.mkdir()
    (other / "run.yaml").write_text(yaml.safe_dump(content))
    before = below(tmp_path)
    with pytest.raises(BadInput, match="not UTF-8"):
        run(other / "run.yaml")
    assert "reservation" not in committed(tmp_path)
    assert below(tmp_path) == before


def test_a_run_in_a_folder_that_is_not_utf8_is_bad_input(configure, tmp_path):
    other = tmp_path / NOT_UTF8
    configure("noisy-tables", "release")
    other.mkdir()
    for name in ("run.yaml", "census", "register.sqlite", "register.sqlite.head"):
        (tmp_path / name).rename(other / name)
    done = limits.discreet("run", "run.yaml", cwd=other)
    assert done.returncode == 2, done.stderr
    assert "not UTF-8" in done.stderr
    assert not (other / "work").exists()
