"""The tree of areas: who is in it, and how the budget is shared along its paths."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms.topdown import spine as spines
from discreet.mechanisms.topdown.spine import Shares, Spine, bypass, spine_of
from discreet.mechanisms.topdown.strategy import load_strategy
from discreet.mechanisms.topdown.universe import blocks_of
from discreet.noise import trial
from discreet.products import check_invariants, invariant_counts
from discreet.spec import MarginalTable
from topdown.runs import LEAST, PERSONS, UNITS, Silent, drawn, levels_of, run, topdown
from worlds import text, us_census

ONE = [(40, "1", "01")]
LEVELS = ("state", "county", "tract", "block_group", "block")
SHARES = [Fraction(part, 20) for part in (1, 2, 3, 4, 10)]


@pytest.fixture(scope="module")
def engine():
    return Engine(threads=1)


def codes(engine, spine, level):
    return [row[0] for row in engine.rows(spine.codes[level].sort("node").select("code"))]


def tree(*parents):
    """Return a tree by the parents of each level below its roots."""
    whole = tuple(np.array(one, dtype=np.int64) for one in parents)
    return Spine(tuple(f"level{n}" for n in range(len(whole))), whole, ())


def share_of(shares, level):
    return [shares.values[level][place] for place in shares.index[level]]


def path_sums(spine, shares):
    """Add the shares up from the root to every leaf, independently of the package."""
    sums = share_of(shares, 0)
    for level in range(1, len(spine.levels)):
        own = share_of(shares, level)
        sums = [own[node] + sums[parent] for node, parent in enumerate(spine.parents[level])]
    return sums


# -- who is in it ----------------------------------------------------------------------------


def test_blocks_without_living_quarters_are_not_in_the_tree(engine):
    census = us_census(engine, [(0, "1", ONE), (3, "1", ONE)], blocks=6, per_county=3, extras=False)
    declared = {"persons": load_strategy(PERSONS)}
    spine = spine_of(census, LEVELS, blocks_of(census, declared))
    assert [spine.size(level) for level in range(5)] == [1, 2, 2, 2, 2]
    assert [code[-3:] for code in codes(engine, spine, 4)] == ["000", "003"]
    assert spine_of(census, LEVELS).size(4) == 6


@pytest.mark.parametrize(("total", "blocks"), [("block", 2), ("tract", 6)])
def test_units_alone_show_blocks_only_if_counted_there(engine, total, blocks):
    census = us_census(engine, [(0, "1", ONE), (3, "1", ONE)], blocks=6, per_county=3, extras=False)
    declared = {"units": load_strategy({**UNITS, "total": total})}
    assert spine_of(census, LEVELS, blocks_of(census, declared)).size(4) == blocks


def test_a_block_that_no_invariant_shows_is_not_told_from_others(engine, tmp_path):
    # Two censuses one record apart: the third household lives in block 1, or in block 2.
    bare = {k: v for k, v in LEAST.items() if k not in ("quarters", "zeros")}
    bare |= {"axes": PERSONS["axes"][1:2], "rounding": ["total"]}
    told = []
    for block in (1, 2):
        homes = [(0, "1", ONE), (0, "1", ONE), (block, "1", ONE)]
        census = us_census(engine, homes, blocks=3, extras=False)
        draw = drawn(census, trial(1), tmp_path / str(block), persons=bare)
        told.append(engine.rows(engine.read_parquet(draw / "persons" / "spine" / "block.parquet")))
    assert len(told[0]) == 3
    assert told[0] == told[1]


def test_children_of_a_node_are_neighbours_in_the_order_of_codes(engine):
    census = us_census(engine, [(n, "1", ONE) for n in range(7)], blocks=7, per_county=3)
    spine = spine_of(census, LEVELS)
    assert codes(engine, spine, 1) == ["50001", "50003", "50005"]
    assert spine.parents[4].tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert codes(engine, spine, 4) == sorted(codes(engine, spine, 4))
    assert spine.child_start(3).tolist() == [0, 3, 6, 7]
    assert spine.upwards(np.arange(7), 4).tolist() == [3, 12, 6]


def test_a_spine_reads_back(engine, tmp_path):
    spine = spine_of(us_census(engine, [(0, "1", ONE), (1, "1", ONE)]), LEVELS)
    spine.write(tmp_path, engine)
    again = Spine.read(tmp_path, LEVELS, engine)
    for one, other in zip(spine.parents, again.parents, strict=True):
        assert np.array_equal(one, other)


def test_a_level_that_is_not_there_is_refused(engine):
    census = us_census(engine, [(0, "1", ONE)])
    with pytest.raises(BadInput, match="no areas of level 'ward'"):
        spine_of(census, ("state", "ward", "block"))


def test_levels_that_do_not_nest_are_refused(engine):
    # Each county has a part in both tracts.
    census = us_census(engine, [(n, "1", ONE) for n in range(4)], blocks=4, per_county=2)
    arrays = engine.to_numpy(census.geography)
    arrays["tract"] = text(["50001000100", "50003000200"] * 2)
    crossed = replace(census, geography=engine.from_numpy(arrays))
    with pytest.raises(BadInput, match="do not nest"):
        spine_of(crossed, ("state", "county", "tract", "block"))


# -- the shares ------------------------------------------------------------------------------


def test_without_only_children_every_level_has_its_own_share():
    spine = tree([0], [0, 0], [0, 0, 1, 1])
    parts = [Fraction(1, 6), Fraction(1, 3), Fraction(1, 2)]
    shares = bypass(spine, parts)
    assert [share_of(shares, level) for level in range(3)] == [
        parts[:1],
        parts[1:2] * 2,
        parts[2:] * 4,
    ]


def test_only_children_give_their_share_to_their_parent():
    # Root 0 has two children; the first heads a chain of only children, the second has two.
    spine = tree([0], [0, 0], [0, 1, 1], [0, 1, 1, 2], [0, 1, 2, 3])
    shares = bypass(spine, SHARES)
    one, two, three, four, ten = SHARES
    assert share_of(shares, 0) == [one]
    assert share_of(shares, 1) == [two + three + four + ten, two]
    assert share_of(shares, 2) == [0, three, three + four + ten]
    assert share_of(shares, 3) == [0, four + ten, four + ten, 0]
    assert share_of(shares, 4) == [0, 0, 0, 0]
    assert set(path_sums(spine, shares)) == {sum(SHARES)}
    assert shares.measured(2).tolist() == [False, True, True]


def test_a_chain_from_the_root_is_measured_once():
    spine = tree([0], [0], [0], [0], [0])
    shares = bypass(spine, SHARES)
    assert [share_of(shares, level) for level in range(5)] == [[1], [0], [0], [0], [0]]


def test_a_forest_has_one_whole_budget_for_each_root():
    # Records of different roots are never on one path.
    spine = tree([0, 0, 0], [0, 1, 1, 2], [0, 1, 2, 2, 3, 3, 3])
    parts = [Fraction(1, 6), Fraction(1, 3), Fraction(1, 2)]
    shares = bypass(spine, parts)
    assert share_of(shares, 0) == [1, Fraction(1, 6), Fraction(1, 2)]
    assert set(path_sums(spine, shares)) == {1}


def test_paths_add_up_in_random_trees():
    dice = np.random.default_rng(3)
    for _ in range(30):
        parents = [np.zeros(int(dice.integers(1, 4)), dtype=np.int64)]
        for _ in range(4):
            inside = 1 + dice.poisson(0.6, parents[-1].size)
            parents.append(np.repeat(np.arange(parents[-1].size), inside))
        spine = tree(*parents)
        assert set(path_sums(spine, bypass(spine, SHARES))) == {1}


@pytest.mark.parametrize("planted", ["an only child is measured too", "a share is forgotten"])
def test_a_wrong_share_is_refused(planted):
    spine = tree([0], [0, 0], [0, 1, 1])
    parts = [Fraction(1, 6), Fraction(1, 3), Fraction(1, 2)]
    right = bypass(spine, parts)
    index = [one.copy() for one in right.index]
    if planted == "an only child is measured too":
        index[2][0] = 1
    else:
        index[1][0] = 1  # its own share only, not that of its only child
    wrong = Shares(right.values, tuple(index))
    assert len(set(path_sums(spine, wrong))) > 1
    spines._check_paths(spine, right, Fraction(1))
    with pytest.raises(ArithmeticError, match="add up"):
        spines._check_paths(spine, wrong, Fraction(1))


# -- roots -----------------------------------------------------------------------------------


def two_states(engine):
    """Return a census of blocks in two states, with a nursing home in the second."""
    homes = [(n % 6, "1", [(30 + n, "1", f"0{1 + n % 3}")] * (1 + n % 3)) for n in range(24)]
    census = us_census(engine, homes, blocks=6, per_county=3)
    moved = {}
    for name, codes_of in {"geography": LEVELS, "units": ("block",)}.items():
        frame = census.table(name)
        names = frame.collect_schema().names()
        rows = [
            tuple(
                value.replace("50003", "51003", 1) if column in codes_of and value else value
                for column, value in zip(names, row, strict=True)
            )
            for row in engine.rows(frame)
        ]
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        if name == "geography":
            columns["state"] = tuple(code[:2] for code in columns["county"])
        whole = {"unit_id": np.int64, "latitude": float, "longitude": float}
        moved[name] = engine.from_numpy(
            {column: np.array(v, dtype=whole.get(column, object)) for column, v in columns.items()}
        )
    return replace(census, **moved)


@pytest.mark.parametrize("root", ["all", "state"])
def test_a_census_of_two_states(engine, tmp_path, root):
    census = two_states(engine)
    asked = {"all": {"detailed": 1}, "state": {"detailed": 1}, "block": {"detailed": 1}}
    whole = {**LEAST, "levels": levels_of(asked)}
    made = topdown(census, persons=whole, root=root)
    spine = spine_of(census, made.strategies["persons"].level_names)
    states = 1 if root == "all" else 0
    assert codes(engine, spine, states) == ["50", "51"]
    assert [spine.size(level) for level in range(len(spine.levels))][-2:] == [2, 6]
    assert made.specify().budget.amount.of == (2 if root == "all" else Fraction(4, 3))
    silent = run(census, Silent(), tmp_path / "silent", persons=whole, root=root)
    loud = run(census, trial(1), tmp_path / "loud", persons=whole, root=root)
    for level in ("state", "block"):
        ages = MarginalTable(name="ages", of="persons", by=("voting_age",), level=level)
        counts = [sorted(engine.rows(invariant_counts(one, ages))) for one in (census, silent)]
        assert counts[0] == counts[1]
    promised = made.specify()
    population = promised.multiverse.model_copy(
        update={"invariants": promised.multiverse.invariants[:1]}
    )
    promised = promised.model_copy(update={"multiverse": population})
    assert check_invariants(promised, census, loud) == {"state population": 0}
