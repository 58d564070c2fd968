"""Map a function over processes, with results in the order of the items."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def parallel_map(
    function: Callable[[Item], Result], items: Sequence[Item], processes: int = 1
) -> Iterator[Result]:
    """Yield `function(item)` for each item, in order, computed by `processes` processes.

    One process runs in place. More are spawned, not forked: DuckDB and Numba hold
    threads, and a fork of a threaded process may hang. An error in one item stops
    the map and is raised here.
    """
    if processes <= 1 or len(items) <= 1:
        yield from map(function, items)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(processes, len(items)), mp_context=context) as pool:
        try:
            yield from pool.map(function, items)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
