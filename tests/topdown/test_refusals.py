"""What a census or a configuration must not be, found before anything is charged or drawn."""

from dataclasses import replace

import narwhals as nw
import pytest

from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism, publish_draw
from discreet.mechanisms.topdown import Measurements
from discreet.noise import trial
from topdown.runs import FEWEST, drawn, topdown
from worlds import us_census

HOMES = [(block, "1", [(40, "1", "01"), (9, "2", "02")]) for block in range(3)]


@pytest.fixture(scope="module")
def census():
    return us_census(Engine(threads=1), HOMES)


def test_a_sound_census_passes(census):
    topdown(census, **FEWEST).check(census)


def test_residents_in_cells_declared_empty_are_refused_by_the_check(census):
    in_home = nw.col("relationship") == "37"
    young = nw.when(in_home).then(nw.lit(9)).otherwise(nw.col("age")).alias("age")
    spoilt = replace(census, persons=census.persons.with_columns(young))
    with pytest.raises(BadInput, match="declares empty"):
        topdown(census, **FEWEST).check(spoilt)


def test_quarters_without_residents_are_refused_by_the_check(census):
    spoilt = replace(census, persons=census.persons.filter(nw.col("relationship") != "37"))
    with pytest.raises(BadInput, match="fewer residents"):
        topdown(census, **FEWEST).check(spoilt)


def test_a_file_is_no_configuration(census, tmp_path, monkeypatch):
    # Its content would not be covered by what was approved.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").write_text("format_version: 1\n")
    with pytest.raises(BadInput, match="not a file"):
        mechanism("phsafe", census.schema, {"configuration": "own"})
    with pytest.raises(BadInput, match="no strategy"):
        mechanism("topdown", census.schema, {"persons": "own"})


def test_released_measurements_are_those_of_the_draw(census, tmp_path):
    draw = drawn(census, trial(4), tmp_path / "draw", release_measurements=True, **FEWEST)
    release = publish_draw(draw, tmp_path / "out", census.engine)
    for run in ("persons", "units"):
        kept = Measurements(draw / run / "measurements", census.engine)
        shown = Measurements(release.folder / "measurements" / run, census.engine)
        assert shown.header.mode == "design"
        for level in shown.header.levels:
            for query in level.queries:
                one, other = (f.read_full(level.level, query) for f in (kept, shown))
                assert (one.value == other.value).all()
    draw = drawn(census, trial(4), tmp_path / "quiet", **FEWEST)
    assert not (publish_draw(draw, tmp_path / "less").folder / "measurements").exists()
