"""What a census or a configuration must not be, found before anything is charged or drawn."""

from dataclasses import replace

import narwhals as nw
import pytest

from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import mechanism, protect, publish_draw
from discreet.mechanisms.topdown import Measurements
from discreet.noise import trial
from discreet.products import check_invariants
from topdown.runs import FEWEST, LEAST, drawn, topdown
from worlds import us_census

HOMES = [(block, "1", [(40, "1", "01"), (9, "2", "02")]) for block in range(3)]


@pytest.fixture(scope="module")
def census():
    return us_census(Engine(threads=1), HOMES)


def test_a_sound_census_passes(census):
    topdown(census, **FEWEST).check(census)


IN_HOME = nw.col("relationship") == "37"


def with_a_child_in_the_nursing_home(census):
    """Return a census one record away, with a person in a cell that `zeros` declares empty."""
    young = nw.when(IN_HOME).then(nw.lit(9)).otherwise(nw.col("age")).alias("age")
    return replace(census, persons=census.persons.with_columns(young))


def with_an_empty_nursing_home(census):
    """Return a census whose nursing home holds nobody, and a household one person more."""
    moved = [(0, "1", [(40, "1", "01"), (9, "2", "02"), (88, "2", "01")]), *HOMES[1:]]
    more = us_census(census.engine, moved)
    return replace(more, persons=more.persons.filter(~IN_HOME))


NEIGHBOURS = [with_a_child_in_the_nursing_home, with_an_empty_nursing_home]


@pytest.mark.parametrize("measurements", ["full", "lazy"])
@pytest.mark.parametrize("neighbour", NEIGHBOURS)
def test_neighbours_are_not_told_apart_by_a_refusal(census, tmp_path, neighbour, measurements):
    """Nothing exact differs, so both are measured; what is declared holds in the release."""
    made = topdown(census, **FEWEST, measurements=measurements)
    other = neighbour(census)
    assert not any(check_invariants(made.specify(), census, other).values())
    made.check(other)
    released = protect(made, other, trial(3), tmp_path / "out").microdata(census.engine)
    assert not any(check_invariants(made.specify(), census, released).values())
    rows = released.frame("persons", ["hhgq", "voting_age"], where={"hhgq": ["nursing"]})
    found = census.engine.rows(rows)
    assert found
    assert {age for _, age in found} == {"18 and over"}


def test_exact_totals_below_what_quarters_hold_are_refused_by_the_check(census):
    """The nursing home stands alone: the exact population of its block says that it is empty."""
    alone = us_census(census.engine, HOMES[:2])
    emptied = replace(alone, persons=alone.persons.filter(~IN_HOME))
    made = topdown(census, persons={**LEAST, "total": "block"})
    made.check(alone)
    with pytest.raises(BadInput, match="fewer residents") as refused:
        made.check(emptied)
    assert not any(letter.isdigit() for letter in str(refused.value))


def test_held_counts_of_cells_declared_empty_are_refused_by_the_check(census):
    held = {**LEAST, "hold": [{"query": "hhgq*votingage", "level": "state"}]}
    made = topdown(census, persons=held)
    made.check(census)
    with pytest.raises(BadInput, match="zeros") as refused:
        made.check(with_a_child_in_the_nursing_home(census))
    assert not any(letter.isdigit() for letter in str(refused.value))


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
