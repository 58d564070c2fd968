"""The flow of least cost, against a linear program on small networks of any shape."""

import numpy as np

from discreet.mechanisms.topdown.flow import FLOW, HEAD, HIGH, LOW, TAIL, cheapest_flow
from discreet.mechanisms.topdown.general_rounding import Model, solve


def random_network(seed):
    rng = np.random.default_rng(seed)
    nodes, many = rng.integers(3, 9), rng.integers(6, 20)
    ends = np.array([rng.choice(nodes, 2, replace=False) for _ in range(many)])
    low = rng.integers(0, 3, many)
    high = low + rng.integers(0, 5, many)
    base = low + rng.integers(-1, 4, many)
    outer = rng.integers(1, 20, many)
    middle = rng.integers(-outer, outer + 1)
    arcs = np.column_stack([ends, low, high, base, middle, outer, 0 * low]).astype(np.int64)
    flow = rng.integers(low, high + 1)
    if seed % 5 == 0:  # most likely impossible
        flow = flow + 3
    supply = np.zeros(nodes, np.int64)
    np.add.at(supply, ends[:, 0], flow)
    np.add.at(supply, ends[:, 1], -flow)
    return np.ascontiguousarray(arcs), supply


def cost(arcs, flow):
    above = flow - arcs[:, 4]
    return int(
        (
            (above >= 1) * arcs[:, 5]
            + arcs[:, 6] * (np.maximum(above - 1, 0) - np.minimum(above, 0))
        ).sum()
    )


def linear_program(arcs, supply):
    """Flow is base + middle + more - less; rows are nodes, then limits of arcs."""
    many, nodes = len(arcs), supply.size
    arc = np.arange(many)
    rows, columns, values = [], [], []
    for block, sign in enumerate((1.0, 1.0, -1.0)):
        column = block * many + arc
        for row, factor in ((arcs[:, TAIL], 1.0), (arcs[:, HEAD], -1.0), (nodes + arc, 1.0)):
            rows.append(row)
            columns.append(column)
            values.append(np.full(many, sign * factor))
    entries = (np.concatenate(rows), np.concatenate(columns), np.concatenate(values))
    fixed = np.zeros(nodes)
    np.add.at(fixed, arcs[:, TAIL], arcs[:, 4])
    np.add.at(fixed, arcs[:, HEAD], -arcs[:, 4])
    low = np.concatenate([supply - fixed, arcs[:, LOW] - arcs[:, 4]])
    high = np.concatenate([supply - fixed, arcs[:, HIGH] - arcs[:, 4]])
    outer = arcs[:, 6].astype(float)
    upper = np.concatenate([np.ones(many), np.full(2 * many, np.inf)])
    found = solve(
        Model(np.concatenate([arcs[:, 5], outer, outer]), upper, entries, low, high), False
    )
    if found is None:
        return None
    middle, more, less = found.reshape(3, many)
    return np.rint(arcs[:, 4] + middle + more - less).astype(np.int64)


def test_the_flow_is_as_cheap_as_the_linear_program_says():
    possible = 0
    for seed in range(150):
        arcs, supply = random_network(seed)
        expected = linear_program(arcs, supply)
        done = cheapest_flow(arcs, supply)
        assert done == (expected is not None)
        if not done:
            continue
        possible += 1
        flow = arcs[:, FLOW]
        assert ((flow >= arcs[:, LOW]) & (flow <= arcs[:, HIGH])).all()
        net = np.zeros(supply.size, np.int64)
        np.add.at(net, arcs[:, TAIL], flow)
        np.add.at(net, arcs[:, HEAD], -flow)
        assert (net == supply).all()
        assert cost(arcs, flow) == cost(arcs, expected)
    assert 100 < possible < 150


def test_a_network_without_arcs_is_in_balance_or_not():
    none = np.zeros((0, 8), np.int64)
    assert cheapest_flow(none, np.zeros(2, np.int64))
    assert not cheapest_flow(none, np.array([1, -1]))
