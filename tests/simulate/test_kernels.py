"""The compiled parts, one by one, against slow and obvious versions of themselves."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from discreet.simulate.derive import derive_households, find_donors, number_residents
from discreet.simulate.mixture import draw_mix, expected_household, softmax
from discreet.simulate.model import load_model
from discreet.simulate.race import COMBINATIONS, MASKS, code_of_mask, cumulative, origins
from discreet.simulate.records import OCCUPIED, PERSON, UNIT
from discreet.simulate.stream import stream

SAME = ("unit", "age", "sex", "race", "hispanic", "relationship", "origin", "ethnicity", "imputed")


def test_race_codes_are_numbered_by_size_then_order():
    names = ["".join(c) for k in range(1, 7) for c in combinations("WBNAPO", k)]
    assert names == COMBINATIONS
    assert COMBINATIONS[6] == "WB"
    assert COMBINATIONS[10] == "WO"
    assert COMBINATIONS[62] == "WBNAPO"
    assert (code_of_mask()[MASKS] == np.arange(63)).all()


def test_every_race_code_has_detailed_groups():
    table = origins(load_model().text["detail"], 0.15)
    assert len(table.first) == 64
    assert len(table.groups) < 256, "a person's combination is one byte"
    assert (np.diff(table.first) > 0).all()
    assert (table.share[table.first[1:] - 1] == 1).all()
    assert table.key_text()[0] == "1010|||||"
    assert len({len(text.split("|")) for text in table.key_text()}) == 1


def random_persons(rng, count, units):
    persons = np.zeros(count, PERSON)
    for name in SAME:
        persons[name] = rng.integers(0, 2, count)
    persons["unit"] = np.sort(rng.integers(0, units, count))
    return persons


def slow_ordinals(persons):
    seen = Counter()
    found = []
    for person in persons:
        record = tuple(int(person[name]) for name in SAME)
        seen[record] += 1
        found.append(seen[record])
    return found


def test_identical_residents_are_numbered():
    persons = random_persons(stream(1, "test"), 3000, 5)
    persons["relationship"] = 37
    number_residents(persons)
    records = [tuple(int(p[name]) for name in SAME) for p in persons]
    groups = {}
    for record, ordinal in zip(records, persons["ordinal"], strict=True):
        groups.setdefault(record, []).append(int(ordinal))
    assert all(sorted(found) == list(range(1, len(found) + 1)) for found in groups.values())
    assert max(map(len, groups.values())) > 3


def test_identical_members_are_numbered():
    rng = stream(2, "test")
    size = rng.integers(1, 9, 400)
    units = np.zeros(400, UNIT)
    units["members"], units["kind"] = size, OCCUPIED
    persons = random_persons(rng, int(size.sum()), 400)
    persons["unit"] = np.repeat(np.arange(400), size)
    persons["relationship"] = 33
    derive_households(units, persons)
    assert persons["ordinal"].tolist() == slow_ordinals(persons)


def test_donors_are_the_nearest_earlier_reported_first_records():
    persons = np.zeros(8, PERSON)
    persons["imputed"] = [1, 0, 1, 0, 0, 1, 1, 0]
    persons["ordinal"] = [1, 1, 1, 1, 2, 1, 1, 1]
    assert find_donors(persons)
    assert persons["donor"].tolist() == [1, -1, 1, -1, -1, 3, 3, -1]


def test_nobody_to_donate():
    persons = np.ones(3, PERSON)
    assert not find_donors(persons)


def test_streams_depend_on_every_part_of_their_name():
    first = {stream(*name).integers(2**62) for name in [(1, "a"), (2, "a"), (1, "b"), (1, "a", "")]}
    assert len(first) == 4
    assert stream(1, "a").integers(2**62) == stream(1, "a").integers(2**62)


def test_cumulative_shares_end_in_one():
    assert cumulative([[1, 1, 2], [0, 0, 5]]).tolist() == [[0.25, 0.5, 1], [0, 0, 1]]


@pytest.mark.parametrize("hispanic", [0.02, 0.19, 0.48])
def test_the_mix_of_persons_is_the_one_asked_for(hispanic):
    """Solved on expected persons: exact up to the tolerance of the solver."""
    race = np.array([0.50, 0.15, 0.02, 0.10, 0.005, 0.12, 0.105])
    rng = stream(5, "test")
    points = rng.uniform(0, 1, (400, 2))
    county = np.repeat(np.arange(4), 100)
    weight = np.ones(400)
    mix = draw_mix(rng, points, county, weight, race, hispanic)
    scale = np.array(load_model().text["segregation"]["scale"])
    block = 0.8 * scale * stream(6, "test").standard_normal((400, 50, 7))
    householders = softmax(mix.logit[:, None, :] + block).mean(axis=1)
    persons = householders.mean(axis=0) @ expected_household().persons
    assert persons / persons.sum() == pytest.approx(race, rel=0.05, abs=0.002)
