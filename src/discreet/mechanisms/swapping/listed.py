"""Base of the mechanisms that pair households by lists and look at no distance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.census import Census
from discreet.errors import BadInput
from discreet.mechanisms.numbering import Integers
from discreet.mechanisms.swapping.exchange import PairSwapping
from discreet.mechanisms.swapping.geometry import points_of
from discreet.mechanisms.swapping.households import POINT, Households, Places, read_places
from discreet.mechanisms.swapping.risk import most_pairs


class ListedSwapping(PairSwapping):
    """A mechanism that needs no points; where every block has one, distances are reported.

    Its pass runs on one core whatever `threads` says: a list is read at most twice, and one
    household waits for the one before. Only the engine uses more.
    """

    @property
    def points(self) -> bool:
        """Return no: a census without points will do."""
        return False

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


def pairs_allowed(households: Households, made: PairSwapping) -> Integers:
    """Return how many pairs each area of `within` may have, by the number of the area."""
    allowed = np.zeros(len(households.places.codes), dtype=np.int64)
    area = households.level(made.within)
    for first, last in zip(households.offsets, households.offsets[1:], strict=False):
        allowed[area[first]] = most_pairs(int(last - first), made.rate, overshoot=False)
    return allowed
