"""Base of the mechanisms that pair households by lists and look at no distance."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from discreet.census import Census
from discreet.errors import BadInput
from discreet.files import write_json
from discreet.mechanisms.swapping.exchange import PairSwapping
from discreet.mechanisms.swapping.geometry import points_of
from discreet.mechanisms.swapping.households import POINT, Households, Places, Swap, read_places
from discreet.mechanisms.swapping.numbering import Integers
from discreet.mechanisms.swapping.risk import most_pairs
from discreet.noise import Randomness


@dataclass(frozen=True)
class NotedSwap(Swap):
    """A swap with counts of what the method did, for the internal report."""

    notes: Mapping[str, int] = field(default_factory=dict)


class ListedSwapping(PairSwapping):
    """A mechanism that needs no points; where every block has one, distances are reported."""

    @property
    def points(self) -> bool:
        """Return no: a census without points will do."""
        return False

    def check(self, census: Census) -> None:
        """Refuse a census without a column the method looks at, or without partners."""
        super().check(census)
        census.frame("units", [*self.columns(), self.persons, *self.groups])

    def places(self, census: Census) -> Places:
        """Return the blocks, with points if all of them have one."""
        levels = [self.leave, *self.levels()]
        present = census.geography.collect_schema().names()
        places = read_places(census, self.within, levels, points=set(POINT) <= set(present))
        try:
            points_of(places, np.arange(places.areas[self.within].size))
        except BadInput:
            return replace(places, latitude=None, longitude=None)
        return places

    def draw(self, census: Census, rng: Randomness, folder: Path, threads: int = 1) -> None:
        """Swap, write the protected microdata, and tell in the internal report what was done."""
        notes = Counter[str]()
        listening = cast(PairSwapping, _Listening(self, notes))
        PairSwapping.draw(listening, census, rng, folder, threads)
        path = folder / "internal.json"
        write_json(path, {**json.loads(path.read_text()), "notes": dict(notes)}, 0o600)


class _Listening:
    """A mechanism that adds up the notes of its swaps."""

    def __init__(self, made: PairSwapping, notes: Counter[str]) -> None:
        self._made, self._notes = made, notes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    def swap(
        self, census: Census, households: Households, rng: Randomness, threads: int = 1
    ) -> Swap:
        swap = self._made.swap(census, households, rng, threads)
        self._notes.update(cast(NotedSwap, swap).notes)
        return swap


def pairs_allowed(households: Households, made: PairSwapping) -> Integers:
    """Return how many pairs each area of `within` may have, by the number of the area."""
    allowed = np.zeros(len(households.places.codes), dtype=np.int64)
    area = households.level(made.within)
    for first, last in zip(households.offsets, households.offsets[1:], strict=False):
        allowed[area[first]] = most_pairs(int(last - first), made.rate, overshoot=False)
    return allowed
