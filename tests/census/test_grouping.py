"""Units that stand for all, counts of members and links, each against a plain restatement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.census import grouping
from discreet.census.grouping import alike, choose
from discreet.census.linked import LinkedFiles, _find
from discreet.census.members import _sums
from discreet.engine import Plain, Texts


def test_rows_of_one_hash_that_differ_are_not_taken_for_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds = np.zeros(5, dtype=np.int32)
    columns = [np.array([0, 1, 2, 1, 0], dtype=np.int32)]
    found = alike(kinds, columns)
    assert found is not None
    assert found[0].tolist() == [0, *(1 + np.unique(found[0][1:4], return_inverse=True)[1]), 0]
    assert sorted(found[1].tolist()) == [0, 1, 2]
    monkeypatch.setattr(grouping, "FACTOR", np.uint64(0))
    assert alike(kinds, columns) is None
    assert alike(kinds, [np.ones(5, dtype=np.int32)]) is not None


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=30))
def test_groups_are_those_of_equal_rows(rows: list[tuple[int, int, int]]) -> None:
    columns = [np.array(column, dtype=np.int32) for column in zip(*rows, strict=True)]
    kinds = np.unique(columns[0], return_inverse=True)[1].astype(np.int32)
    found = alike(kinds, columns[1:])
    assert found is not None
    group, first = found
    assert len({*group.tolist()}) == len(first) == len({*rows})
    assert all(rows[first[number]] == row for number, row in zip(group, rows, strict=True))


@given(st.data())
def test_every_group_and_area_and_both_ends_of_the_ids_are_chosen(data: st.DataObject) -> None:
    """Units have an area, an area has a class, and units of a group have areas of one class."""
    classes = np.array(data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=6)))
    classes = np.unique(classes, return_inverse=True)[1].astype(np.int32)
    units = data.draw(st.lists(st.integers(0, len(classes) - 1), max_size=8))
    area = np.array([*range(len(classes)), *units], dtype=np.int32)
    own = np.array([data.draw(st.integers(0, 1)) for _ in area], dtype=np.int32)
    ids = np.array(data.draw(st.permutations(range(10, 10 + len(area)))))
    own = np.unique(own, return_inverse=True)[1].astype(np.int32)
    grouped = alike(own, [classes[area]])
    assert grouped is not None
    group, first = grouped
    chosen = choose(first, classes[area[first]], classes, ids)
    assert {*group[chosen.unit]} == {*group}
    assert {*chosen.area} == {*range(len(classes))}
    assert (classes[chosen.area] == classes[area[chosen.unit]]).all()
    assert len({*chosen.ids}) == len(chosen.ids) <= len(ids)
    assert {*chosen.ids} <= {*ids}
    assert {ids.min(), ids.max()} <= {*chosen.ids}
    assert (group[chosen.unit[chosen.group]] == np.arange(len(first))).all()


@pytest.mark.parametrize("most", [1, 3, 200, 5000])
def test_counts_are_those_of_a_plain_count(most: int) -> None:
    """Counts are added up as digits of one number, however many digits they have."""
    random = np.random.default_rng(most)
    home = np.repeat(np.arange(7), [most, 0, 1, most, 2, 1, 1]).astype(np.int32)
    kinds = random.integers(0, 9, home.size).astype(np.int32)
    flags = {f"f{i}": random.integers(0, 2, 9).astype(np.int32) for i in range(13)}
    nothing = Plain("", (), "id", np.arange(7), np.zeros(7, dtype=np.int32), {})
    persons = Plain("", (), "id", home.astype(np.int64), kinds, {"x": Texts.of(["x"] * 9)})
    files = LinkedFiles("id", nothing, nothing, persons, home[:7], home)
    found = _sums(flags, files)
    for name, flag in flags.items():
        assert found[name].tolist() == [int(flag[kinds[home == unit]].sum()) for unit in range(7)]


@pytest.mark.parametrize("spread", [1, 10**12])
def test_ids_are_found_near_and_far(spread: int) -> None:
    ids = np.array([7, 3, 5]) * spread
    found = _find(ids, np.array([5, 7, 5]) * spread)
    assert found is not None
    assert found.tolist() == [2, 0, 2]
    assert _find(ids, np.array([4]) * spread) is None
    assert _find(ids, np.array([8]) * spread) is None
    assert _find(np.array([7, 3, 7]) * spread, np.array([3]) * spread) is None
