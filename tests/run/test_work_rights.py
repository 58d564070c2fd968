"""The work folder of a run is private, also if it was there before."""

import os
import stat
from pathlib import Path

import pytest

from discreet.errors import BadInput
from discreet.run import run

from .test_run import committed


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("linked", [False, True])
def test_an_existing_work_folder_becomes_private(configure, tmp_path, linked):
    config = configure("noisy-tables", "release")
    real = tmp_path / "real" if linked else tmp_path / "work"
    real.mkdir()
    real.chmod(0o777)
    if linked:
        (tmp_path / "work").symlink_to(real)
    run(config)
    assert mode_of(real) == 0o700


def test_a_folder_in_other_use_keeps_its_rights_and_is_refused(configure, tmp_path):
    config = configure("noisy-tables", "release")
    (tmp_path / "work").mkdir()
    (tmp_path / "work").chmod(0o755)
    (tmp_path / "work" / "x").write_text("x")
    with pytest.raises(BadInput, match="is not empty"):
        run(config)
    assert mode_of(tmp_path / "work") == 0o755
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["x"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_work_folder_of_somebody_else_is_refused(configure, tmp_path):
    config = configure("noisy-tables", "release")
    (tmp_path / "work").mkdir()
    os.chown(tmp_path / "work", 65534, 65534)
    with pytest.raises(BadInput, match="belongs to another user"):
        run(config)
    assert "reservation" not in committed(tmp_path)
    assert list((tmp_path / "work").iterdir()) == []
