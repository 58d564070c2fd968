"""Random promises: no configuration that is accepted loses more than it prints.

For each mechanism a schema, a configuration and two censuses of one universe are drawn. What
is lost between them is computed from the counts that meet the noise, and compared with the
budget at the distance of the two. The largest part of a budget that was used is printed
(`make promises`).
"""

import os
import sys

import numpy as np
import pytest

import discreet.noise
from discreet.engine import Engine
from discreet.mechanisms import MECHANISMS
from discreet.noise import trial
from mechanisms.test_conformance import CASES as SHIPPED
from neighbours.promises_kept import parts_used
from neighbours.subjects import ENUMERATED, MEASURING, WITHOUT_BUDGET
from neighbours.watch import UsedTwice, Watch, draw_watched

#: Cases of each mechanism. Unless told, the same ones each time: a suite that fails by chance
#: would stop whoever changed something else. `make promises` draws others.
CASES = os.environ.get("DISCREET_CASES")

#: If less was used in all cases, they are too tame to tell anything. The published account of
#: PHSafe is far from tight.
TAME = {"noisy-tables": 0.9, "topdown": 0.9, "phsafe": 0.1, "permutation-swapping": 0.9}


def test_every_mechanism_is_under_these_tests():
    assert {*MEASURING, *ENUMERATED, *WITHOUT_BUDGET} == set(MECHANISMS)


@pytest.mark.parametrize("name", [*MEASURING, *ENUMERATED])
def test_no_configuration_loses_more_than_it_promises(name):
    used = parts_used(name, Engine(threads=1), int(CASES or 200), again=CASES is None)
    nothing = sum(part == 0 for part in used)
    print(
        f"{name}: {len(used)} cases, largest part of a budget used {float(max(used)):.4f}, "
        f"nothing lost in {nothing}"
    )
    assert max(used) > TAME[name]


@pytest.mark.parametrize("case", SHIPPED)
def test_no_number_is_drawn_twice(case, tmp_path):
    """Reused noise would cost nothing by the counts alone: every draw has an address of its own."""
    census = SHIPPED[case].census(Engine(threads=1))
    watch = Watch(trial(1))
    draw_watched(SHIPPED[case].mechanism(census), census, watch, tmp_path / "draw")
    assert watch.drawn


def test_words_that_are_read_twice_are_found():
    watch, one = Watch(trial(1)), np.ones(1, dtype=np.int64)
    key = np.ones(1, dtype=np.uint64)
    watch.words("swap", key, 0 * one, 2 * one)
    with pytest.raises(UsedTwice):
        watch.words("swap", key, one, one)


def test_no_mechanism_adds_noise_by_itself():
    """Whatever is measured is watched, because mechanisms know one function that adds noise."""
    drawn = {discreet.noise.discrete_gaussian, discreet.noise.discrete_laplace}
    for name in MECHANISMS:
        assert MECHANISMS[name]  # loaded
    modules = [m for n, m in sys.modules.items() if n.startswith("discreet.mechanisms")]
    holders = [m.__name__ for m in modules for v in vars(m).values() if any(v is d for d in drawn)]
    assert holders == []
