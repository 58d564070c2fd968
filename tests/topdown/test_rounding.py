"""Controlled rounding keeps every limit, is optimal, and does not depend on order."""

import numpy as np
import pytest

from discreet.mechanisms.topdown.rounding import (
    DEPLOYED,
    DEPLOYED_TOGETHER,
    DONE,
    IMPOSSIBLE,
    LOOSE,
    OURS,
    room_for_ties,
    round_children,
    round_root,
)
from discreet.mechanisms.topdown.rounding_cost import Table
from topdown.tables import cost_of, make_table, relaxed_rounding

MODES = (OURS, DEPLOYED, DEPLOYED_TOGETHER)


def some_tables(count):
    for seed in range(count):
        rng = np.random.default_rng(1000 + seed)
        cells, children = rng.integers(2, 40), rng.integers(2, 9)
        yield make_table(seed, cells, children, ties=seed % 2 == 0, exact=seed % 3 == 0)


def node_sums(table, values, level):
    sums = np.zeros((table.tree[level].max() + 1, values.shape[1]))
    np.add.at(sums, table.tree[level], values)
    return sums


def assert_limits(table, result):
    assert result.min() >= 0
    assert (result.sum(axis=1) == table.parent).all()
    assert (node_sums(table, result, 1) >= table.lower).all()
    assert (result[table.allowed[table.group_of] == 0] == 0).all()
    known = ~np.isnan(table.totals)
    assert (result.sum(axis=0)[known] == table.totals[known]).all()


@pytest.mark.parametrize("mode", MODES)
def test_the_result_keeps_all_limits_and_costs_as_little_as_the_relaxed_optimum(mode):
    for table in some_tables(36):
        table = table._replace(mode=mode)
        result, status = round_children(*table)
        assert status == DONE
        assert_limits(table, result)
        relaxed, whole = relaxed_rounding(table)
        assert whole, "two nested families: the relaxed optimum is whole"
        assert cost_of(table, result) == cost_of(table, relaxed)


def test_cells_and_nodes_are_within_one_of_their_values():
    for table in some_tables(60):
        result, _ = round_children(*table)
        assert (np.abs(result - table.x) < 1).all()
        for level in range(table.tree.shape[0]):
            off = node_sums(table, result, level) - node_sums(table, table.x, level)
            assert (np.abs(off) < 1).all()


def test_the_deployed_way_puts_totals_first():
    for table in some_tables(20):
        first, _ = round_children(*table._replace(mode=DEPLOYED))
        together, _ = round_children(*table._replace(mode=DEPLOYED_TOGETHER))
        whole = np.floor(table.x + 1e-7)
        target = np.rint(np.rint((table.x - whole).sum(axis=0) * 2**20) / 2**20)
        miss = [np.abs((r - whole).sum(axis=0) - target).sum() for r in (first, together)]
        assert miss[0] <= miss[1]
        assert set(np.unique(first - whole)) <= {0, 1}


@pytest.mark.parametrize("mode", MODES)
def test_the_order_of_children_does_not_matter(mode):
    for seed in range(20):
        table = make_table(seed, 25, 7, ties=True)._replace(mode=mode)
        order = np.random.default_rng(seed).permutation(7)
        turned = table._replace(
            x=np.ascontiguousarray(table.x[:, order]),
            lower=np.ascontiguousarray(table.lower[:, order]),
            allowed=np.ascontiguousarray(table.allowed[:, order]),
            totals=table.totals[order],
        )
        one, other = round_children(*table)[0], round_children(*turned)[0]
        assert cost_of(table, one) == cost_of(turned, other)
        pairs = [
            sorted((tuple(x), tuple(r)) for x, r in zip(t.x.T, found.T, strict=True))
            for t, found in ((table, one), (turned, other))
        ]
        assert pairs[0] == pairs[1], "children with the same values may trade places, no others"


def test_equal_children_are_not_favoured_by_their_place():
    # One person for eight equal children, in 200 parents that differ elsewhere.
    winners = []
    for other in range(200):
        x = np.array([[1 / 8] * 8, [float(other)] * 8])
        tree = np.array([[0, 0], [0, 1]], np.int32)
        table = Table(
            x, np.array([1, 8 * other]), tree, np.zeros((1, 8), np.int64),
            np.ones((1, 8), np.uint8), np.zeros(2, np.int32), np.full(8, np.nan), OURS,
        )  # fmt: skip
        result, _ = round_children(*table)
        assert (result[1] == other).all()
        winners.append(int(result[0].argmax()))
    assert np.bincount(winners, minlength=8).min() > 8


def test_the_result_is_the_same_every_time_and_the_input_is_left_alone():
    table = make_table(3, 30, 6, ties=True)
    before = table.x.copy()
    first = round_children(*table)[0]
    assert (first == round_children(*table)[0]).all()
    assert (table.x == before).all()


@pytest.mark.parametrize("mode", MODES)
def test_a_whole_table_is_returned_as_it_is(mode):
    table = make_table(5, 20, 4)
    whole = round_children(*table)[0]
    again = table._replace(x=whole.astype(float), mode=mode)
    result, status = round_children(*again)
    assert status == DONE
    assert (result == whole).all()


def test_values_that_are_almost_whole_are_whole():
    table = make_table(7, 25, 6, exact=True)
    rng = np.random.default_rng(0)
    whole = round_children(*table)[0]
    noisy = table._replace(x=whole + rng.uniform(-9e-8, 9e-8, whole.shape))
    result, status = round_children(*noisy)
    assert status == DONE
    assert (result == whole).all()


def test_an_input_that_breaks_limits_a_little_is_rounded_exactly():
    for seed in range(30):
        table = make_table(seed, 30, 6, exact=seed % 2 == 0, ties=seed % 3 == 0)
        rng = np.random.default_rng(seed)
        x = table.x + rng.uniform(-1e-6, 1e-6, table.x.shape)
        result, status = round_children(*table._replace(x=x))
        assert status == DONE
        assert_limits(table, result)


def test_a_node_gives_way_where_the_input_is_far_off():
    # Two children, exact totals 2 and 0, but all fractions say one each.
    x = np.full((2, 2), 0.5)
    tree = np.array([[0, 0], [0, 0]], np.int32)
    limits = (np.zeros((1, 2), np.int64), np.ones((1, 2), np.uint8), np.zeros(2, np.int32))
    result, status = round_children(x, np.array([1, 1]), tree, *limits, np.array([2.0, 0.0]), OURS)
    assert status == LOOSE
    assert (result == [[1, 0], [1, 0]]).all()


def test_a_table_that_cannot_be_is_reported():
    table = make_table(2, 10, 3)
    for broken in (
        table._replace(parent=table.parent + 10),
        table._replace(lower=table.lower + 1000),
        table._replace(totals=np.zeros(3)),
        table._replace(x=np.full(table.x.shape, np.nan)),
    ):
        assert round_children(*broken)[1] == IMPOSSIBLE


@pytest.mark.parametrize("mode", [OURS, DEPLOYED_TOGETHER])
@pytest.mark.parametrize("fixed", [True, False])
def test_the_top_is_rounded_without_a_parent(mode, fixed):
    for seed in range(10):
        table = make_table(seed, 40, 4, exact=True, ties=seed % 2 == 0)
        total = float(table.totals[0]) if fixed else np.nan
        top = table._replace(
            x=table.x[:, :1].copy(), parent=np.zeros(0, np.int64), lower=table.lower[:, :1].copy(),
            allowed=table.allowed[:, :1].copy(), totals=np.array([total]), mode=mode,
        )  # fmt: skip
        result, status = round_root(
            top.x[:, 0].copy(), top.tree, top.lower, top.allowed, top.group_of, total, mode
        )
        assert status == DONE
        assert not fixed or result.sum() == total
        assert (node_sums(top, result[:, None], 1) >= top.lower).all()
        relaxed, whole = relaxed_rounding(top)
        assert whole
        assert cost_of(top, result[:, None]) == cost_of(top, relaxed)


def test_ties_leave_room_for_the_costs_of_a_path():
    for cells in (1, 24, 2016, 4096, 10**5, 10**7):
        bits, shift = room_for_ties(cells, 4)
        assert 2 * cells * (2**bits - 1) < 2**shift
        assert bits == 0 or 2 * cells * 5 * 2 ** (20 + shift) < 2**61
    assert room_for_ties(2016, 4)[0] >= 12
