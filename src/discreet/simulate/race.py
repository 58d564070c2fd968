"""The 63 race codes and our short list of detailed groups.

A code is a set of the six races; codes are numbered from one by size of the set, then
in the order of the races (`combinations`). Inside the simulator codes count from zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

#: White, Black, Native (AIAN), Asian, Pacific (NHPI), Other.
LETTERS = "WBNAPO"
COMBINATIONS = ["".join(c) for size in range(1, 7) for c in combinations(LETTERS, size)]
MASKS = np.array([sum(1 << LETTERS.index(x) for x in c) for c in COMBINATIONS], dtype=np.uint8)

#: A person has at most this many detailed groups: one for each race.
DETAILS = 6


def code_of_mask() -> npt.NDArray[np.uint8]:
    """Return the code (from zero) of each set of races written as bits."""
    table = np.zeros(64, dtype=np.uint8)
    table[MASKS] = np.arange(63)
    return table


def two_or_more(weights: Mapping[str, float]) -> npt.NDArray[np.float64]:
    """Return cumulative shares over the 63 codes; `rest` goes to what is not listed.

    One race has share zero. Among the rest, one race more is five times as rare.
    """
    listed = np.array([weights.get(c, 0.0) for c in COMBINATIONS])
    rare = np.array([5.0 ** -len(c) if len(c) > 1 else 0.0 for c in COMBINATIONS])
    rare[listed > 0] = 0
    shares = listed + weights.get("rest", 0.0) * rare / rare.sum()
    return cumulative(shares)


def cumulative(weights: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return cumulative shares along the last axis, ending in exactly one."""
    sums = np.cumsum(np.asarray(weights, dtype=np.float64), axis=-1)
    shares: npt.NDArray[np.float64] = sums / sums[..., -1:]
    return shares


@dataclass(frozen=True)
class Origins:
    """Every combination of detailed groups a person may report, grouped by race code.

    Rows `first[c] : first[c + 1]` belong to code `c`; `share` is cumulative within them.
    """

    groups: list[tuple[str, ...]]
    first: npt.NDArray[np.int64]
    share: npt.NDArray[np.float64]

    def column(self, place: int) -> list[str | None]:
        """Return the group each combination names in place 1, 2, ..., or None."""
        return [g[place - 1] if place <= len(g) else None for g in self.groups]

    def key_text(self) -> list[str]:
        """Return the groups of each combination joined by bars, empty where there is none."""
        return ["|".join((*g, *[""] * (DETAILS - len(g)))) for g in self.groups]


def origins(detail: Mapping[str, Mapping[str, float]], second: float) -> Origins:
    """Return the combinations of detailed groups.

    One race: each group alone, and with share `second` beside the race's first group.
    Two races: the two most frequent groups of each, crossed. More: the first of each.
    """
    ranked = {x: sorted(detail[x].items(), key=lambda item: -item[1]) for x in LETTERS}
    groups: list[tuple[str, ...]] = []
    first, shares = [0], []
    for combination in COMBINATIONS:
        rows: list[tuple[tuple[str, ...], float]] = []
        if len(combination) == 1:
            top, *others = ranked[combination]
            rows += [((code,), w * (1 - second)) for code, w in ranked[combination]]
            rows += [((top[0], code), w * second) for code, w in others]
        elif len(combination) == 2:
            left, right = (ranked[x][:2] for x in combination)
            rows += [((a, b), v * w) for a, v in left for b, w in right]
        else:
            rows.append((tuple(ranked[x][0][0] for x in combination), 1.0))
        groups += [row for row, _ in rows]
        shares.append(cumulative([w for _, w in rows]))
        first.append(len(groups))
    return Origins(groups, np.array(first), np.concatenate(shares))
