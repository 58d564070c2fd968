"""Convex flow of least cost in whole numbers, by successive shortest paths.

Every arc carries a whole number between LOW and HIGH. Its cost is convex and made of three
straight pieces: -OUTER for each unit below BASE, MIDDLE for the unit from BASE to BASE + 1,
OUTER for each unit above. All costs are whole numbers, so nothing drifts
and the end is exactly optimal.

The method is that of Ahuja, Magnanti and Orlin, Network Flows (1993), section 9.7 (successive
shortest paths) and chapter 14 (convex costs): begin with a flow in which every arc alone is at its
cheapest and which is therefore optimal for zero potentials, though it may gain or lose units at
nodes; then send the surplus units to nodes that lack one, each along a shortest path in
the residual graph. With potentials no residual arc ever has a negative reduced cost, so
Dijkstra's method applies and optimality is kept; when no node is out of balance it is the
optimum. A search ends at the first node that lacks a unit, and only the nodes it settled
change their potential, so most searches stay small.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.compiled import compiled, compiled_within

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

#: No way there: dearer than any path. A quarter of the range, so that sums do not overflow.
NO_WAY = np.int64(2**62)
#: The size of a heap at first. A plain 1 would be a type of its own, and be compiled for too.
ONE_NODE: Any = np.int64(1)


# Columns of an arc: its ends, limits, convex cost and the present flow. One arc is one line of
# the processor's cache, and one array is quicker to compile for than eight.
TAIL, HEAD, LOW, HIGH, BASE, MIDDLE, OUTER, FLOW = range(8)

# Columns of a node: its potential and surplus; in a search its distance, the step by which it was
# reached and its place in the heap.
POTENTIAL, SURPLUS, DISTANCE, CAME_BY, PLACE = range(5)

# Columns of a step. Each arc has two, 2a for one unit more and 2a + 1 for one less.
TO, COST = 0, 1


class Graph(NamedTuple):
    """A network and its residual graph.

    The steps that leave node v are `leaving[start[v] : start[v + 1]]`. `heap` and `seen` are
    room for nodes during a search.
    """

    arcs: Int64s
    nodes: Int64s
    steps: Int64s
    start: Int64s
    leaving: Int32s
    heap: Int32s
    seen: Int32s


@compiled_within
def price(arcs: Int64s, a: int, steps: Int64s) -> None:
    """Write what one unit more and one unit less on an arc would cost."""
    above = arcs[a, FLOW] - arcs[a, BASE]
    more = less = NO_WAY
    if arcs[a, FLOW] < arcs[a, HIGH]:
        more = arcs[a, MIDDLE] if above == 0 else arcs[a, OUTER]
        if above < 0:
            more = -arcs[a, OUTER]
    if arcs[a, FLOW] > arcs[a, LOW]:
        less = -arcs[a, MIDDLE] if above == 1 else -arcs[a, OUTER]
        if above < 1:
            less = arcs[a, OUTER]
    steps[2 * a, COST], steps[2 * a + 1, COST] = more, less


@compiled_within
def graph_of(arcs: Int64s, supply: Int64s) -> Graph:
    """Put each arc alone at its cheapest flow, and list the steps that leave each node."""
    many, size = arcs.shape[0], supply.size
    nodes, start = np.zeros((size, 5), np.int64), np.zeros(size + 1, np.int64)
    steps, leaving = np.zeros((2 * many, 2), np.int64), np.empty(2 * many, np.int32)
    for v in range(size):
        nodes[v, SURPLUS], nodes[v, DISTANCE] = supply[v], NO_WAY
    for a in range(many):
        best = arcs[a, BASE] + (1 if arcs[a, MIDDLE] < 0 else 0)
        arcs[a, FLOW] = min(max(best, arcs[a, LOW]), arcs[a, HIGH])
        tail, head = arcs[a, TAIL], arcs[a, HEAD]
        start[tail] += 1
        start[head] += 1
        nodes[tail, SURPLUS] -= arcs[a, FLOW]
        nodes[head, SURPLUS] += arcs[a, FLOW]
        steps[2 * a, TO], steps[2 * a + 1, TO] = head, tail
        price(arcs, a, steps)
    for v in range(1, size + 1):
        start[v] += start[v - 1]
    for step in range(2 * many - 1, -1, -1):
        v = steps[step ^ 1, TO]
        start[v] -= 1
        leaving[start[v]] = step
    return Graph(
        arcs, nodes, steps, start, leaving, np.empty(size, np.int32), np.empty(size, np.int32)
    )


@compiled
def rise(heap: Int32s, nodes: Int64s, at: int, node: int) -> None:
    """Put a node into the heap at or above position `at`."""
    key = nodes[node, DISTANCE]
    while at > 0:
        above = (at - 1) >> 1
        other = heap[above]
        if nodes[other, DISTANCE] <= key:
            break
        heap[at] = other
        nodes[other, PLACE] = at
        at = above
    heap[at] = node
    nodes[node, PLACE] = at


@compiled_within
def take_nearest(heap: Int32s, nodes: Int64s, size: int) -> int:
    """Remove and return the nearest of `size` nodes in the heap."""
    nearest, node = heap[0], heap[size - 1]
    key, last, at = nodes[node, DISTANCE], size - 2, 0
    while 2 * at + 1 <= last:
        below = 2 * at + 1
        if below < last and nodes[heap[below + 1], DISTANCE] < nodes[heap[below], DISTANCE]:
            below += 1
        other = heap[below]
        if key <= nodes[other, DISTANCE]:
            break
        heap[at] = other
        nodes[other, PLACE] = at
        at = below
    heap[at] = node
    nodes[node, PLACE] = at
    return int(nearest)


@compiled_within
def find_lack(graph: Graph, source: int) -> tuple[int, int]:
    """Find the nearest node that lacks a unit (-1: none in reach), and how many were seen."""
    nodes, steps, heap = graph.nodes, graph.steps, graph.heap
    nodes[source, DISTANCE] = nodes[source, PLACE] = 0
    heap[0] = graph.seen[0] = source
    seen = size = ONE_NODE
    enough = NO_WAY  # the least distance at which a lack is known: no need to look beyond
    while size > 0:
        u = take_nearest(heap, nodes, size)
        size -= 1
        if nodes[u, SURPLUS] < 0:
            return u, seen
        here = nodes[u, DISTANCE] + nodes[u, POTENTIAL]
        for i in range(graph.start[u], graph.start[u + 1]):
            step = graph.leaving[i]
            if steps[step, COST] >= NO_WAY:
                continue
            v = steps[step, TO]
            there = here + steps[step, COST] - nodes[v, POTENTIAL]
            if there < nodes[v, DISTANCE] and there <= enough:
                if nodes[v, SURPLUS] < 0:
                    enough = there
                if nodes[v, DISTANCE] >= NO_WAY:
                    nodes[v, PLACE] = size
                    size += 1
                    graph.seen[seen] = v
                    seen += 1
                nodes[v, DISTANCE] = there
                nodes[v, CAME_BY] = step
                rise(heap, nodes, nodes[v, PLACE], v)
    return -1, seen


@compiled
def cheapest_flow(arcs: Int64s, supply: Int64s) -> bool:
    """Fill in the flow of least cost that takes `supply` away from the nodes; false if none.

    Supplies sum to zero; a node of negative supply takes units in. One unit is moved at a time
    until every node is in balance.
    """
    graph = graph_of(arcs, supply)
    nodes = graph.nodes
    for source in range(nodes.shape[0]):
        while nodes[source, SURPLUS] > 0:
            lack, seen = find_lack(graph, source)
            if lack < 0:
                return False
            length = nodes[lack, DISTANCE]
            for i in range(seen):
                v = graph.seen[i]
                if nodes[v, DISTANCE] < length:
                    nodes[v, POTENTIAL] += nodes[v, DISTANCE] - length
                nodes[v, DISTANCE] = NO_WAY  # the search is forgotten
            nodes[source, SURPLUS] -= 1
            nodes[lack, SURPLUS] += 1
            at = lack
            while at != source:
                step = nodes[at, CAME_BY]
                arcs[step >> 1, FLOW] += 1 - 2 * (step & 1)
                price(arcs, step >> 1, graph.steps)
                at = graph.steps[step ^ 1, TO]
    return True
