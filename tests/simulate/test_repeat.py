"""Same profile and seed, same census: whatever the processes, whichever states."""

import resource
from pathlib import Path

import pytest

from discreet.simulate import simulate


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def whole(three_states, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "census"
    summary = simulate(three_states, folder, 7)
    return folder, summary


def test_layout_by_state(whole):
    folder, summary = whole
    names = set(contents(folder))
    tables = {
        f"{t}/{s}.parquet" for t in ("geography", "units", "persons") for s in ("09", "10", "15")
    }
    assert names == tables | {"census.yaml", "schema.yaml", "auxiliary/votes.parquet"}
    assert summary.persons == pytest.approx(15_000, rel=0.1)
    assert summary.blocks == 500
    assert summary.persons_per_second > 0
    assert summary.peak_memory_mb > 10


def test_processes_do_not_matter(three_states, whole, tmp_path):
    simulate(three_states, tmp_path / "census", 7, processes=2)
    assert contents(tmp_path / "census") == contents(whole[0])


def test_states_do_not_depend_on_each_other(three_states, whole, tmp_path):
    simulate(three_states, tmp_path / "census", 7, states=["15", "10"])
    alone, together = contents(tmp_path / "census"), contents(whole[0])
    for table in ("geography", "units", "persons"):
        for state in ("10", "15"):
            name = f"{table}/{state}.parquet"
            assert alone[name] == together[name]
        assert f"{table}/09.parquet" not in alone


def test_unit_numbers_are_unique_across_states(whole, sql):
    ask = sql(whole[0])
    assert ask("select count(*) = count(distinct unit_id) from units") == [(True,)]
    assert ask("select min(unit_id) > 100000000, max(unit_id) < 900000000 from units") == [
        (True, True)
    ]


def test_another_seed_gives_another_census(three_states, whole, tmp_path):
    simulate(three_states, tmp_path / "census", 8, states=["10"])
    assert (
        contents(tmp_path / "census")["persons/10.parquet"]
        != (contents(whole[0])["persons/10.parquet"])
    )


def test_the_other_country_repeats(country, tmp_path):
    simulate("other-country", tmp_path / "census", 1, processes=2)
    assert contents(tmp_path / "census") == contents(country)


@pytest.mark.slow
def test_large_states_repeat_with_any_number_of_processes(tmp_path):
    """Large enough for several row groups and batches, which threads could reorder."""
    simulate("nation", tmp_path / "one", 1, states=["56", "44"])
    simulate("nation", tmp_path / "two", 1, states=["44"], processes=2)
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    for table in ("geography", "units", "persons"):
        assert one[f"{table}/44.parquet"] == two[f"{table}/44.parquet"]
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert peak_kb < 4 * 1024**2
