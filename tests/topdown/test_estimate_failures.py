"""An estimate that fails names the area, every constraint in play and a remedy; no count."""

import re

import numpy as np
import pytest

from discreet.engine import Engine
from discreet.mechanisms import publish_draw
from discreet.mechanisms.topdown import solve, top
from discreet.mechanisms.topdown.constraints import Impossible
from discreet.mechanisms.topdown.rounding import LOOSE, round_children, round_root
from discreet.noise import trial
from topdown.runs import LEAST, drawn
from worlds import us_census

HOMES = [(block, "1", [(40, "1", "01"), (9, "2", "02")]) for block in range(3)]
#: The rounder that promises nothing about single queries.
DEPLOYED = {"persons": LEAST, "rounder": "deployed"}


@pytest.fixture(scope="module")
def census():
    return us_census(Engine(threads=1), HOMES)


@pytest.fixture(scope="module")
def state(census):
    return census.engine.rows(census.geography.select("state"))[0][0]


def change(path, column, values):
    """Write a table of a draw anew, with another column."""
    engine = Engine(threads=1)
    rows = engine.to_numpy(engine.read_parquet(path))
    rows[column] = values(rows[column])
    engine.write_parquet(engine.from_numpy(rows), path)


def failure(draw, out):
    with pytest.raises(Impossible) as raised:
        publish_draw(draw, out)
    assert not out.exists()
    return str(raised.value)


def test_a_root_is_named_with_all_that_binds_it(census, state, tmp_path):
    draw = drawn(census, trial(1), tmp_path / "draw", persons=LEAST)
    change(draw / "persons/facts/quarters.parquet", "units", lambda units: units + 12345)
    told = failure(draw, tmp_path / "out")
    assert told.startswith(f"topdown, least-persons, state {state}: no counts satisfy all")
    for named in ("exact totals (total)", "quarters by hhgq (quarters)", "empty cells (zeros)"):
        assert named in told
    assert "restore" in told
    assert not re.search(r"\d{3}", told)


def test_an_area_that_cannot_be_split_is_named(census, state, tmp_path):
    draw = drawn(census, trial(1), tmp_path / "draw", persons=LEAST)
    engine, folder = Engine(threads=1), draw / "persons" / "facts"
    blocks = engine.rows(engine.read_parquet(draw / "persons/spine/block.parquet"))
    # Exact totals of blocks that do not add up to the state's.
    rows = {"node": np.arange(len(blocks)), "total": np.full(len(blocks), 77_777)}
    engine.write_parquet(engine.from_numpy(rows), folder / "totals-1.parquet")
    told = failure(draw, tmp_path / "out")
    assert f"state {state} could not be split into areas of level block: no counts" in told
    assert "In play: sums of the state; exact totals (total); quarters by hhgq" in told
    assert "let `root` be the level of `total`" in told
    assert "777" not in told


def test_an_estimate_that_breaks_a_rule_is_named(census, state, tmp_path):
    draw = drawn(census, trial(1), tmp_path / "draw", persons=LEAST, measurements="lazy")
    change(draw / "persons/estimates/0/counts.parquet", "count", lambda count: count + 1)
    told = failure(draw, tmp_path / "out")
    assert told.startswith(f"topdown, least-persons, state {state}: a total that is exact")


def loosely(rounded):
    """Return a rounder that says of every table that some query is more than one away."""

    def round_it(*arguments):
        return rounded(*arguments)[0], LOOSE

    return round_it


@pytest.mark.parametrize(
    ("module", "rounder", "words"),
    [
        (solve, round_children, "could not be split into areas of level block"),
        (top, round_root, "no whole counts lie within one of every query"),
    ],
)
def test_a_query_more_than_one_away_is_not_silent(
    census, state, tmp_path, monkeypatch, module, rounder, words
):
    ours = drawn(census, trial(1), tmp_path / "ours", persons=LEAST)
    deployed = drawn(census, trial(1), tmp_path / "deployed", **DEPLOYED)
    monkeypatch.setattr(module, rounder.__name__, loosely(rounder))
    told = failure(ours, tmp_path / "out")
    assert f"state {state}" in told
    assert words in told
    assert "within one of every query of `rounding`" in told
    assert publish_draw(deployed, tmp_path / "out-deployed").folder.is_dir()
