"""The internal report of a permutation, and what anybody may be told to expect of one.

What was selected and how far it moved is internal. How many records to expect is not: it
follows from the rate and the sizes of strata, which are invariant.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.numbering import Integers
from discreet.mechanisms.swapping.geometry import between
from discreet.mechanisms.swapping.households import POINT, Floats
from discreet.mechanisms.swapping.tally import spread
from discreet.spec import psa

#: Distances measured in one draw, about: of more records only every so many-th is looked at.
MOST_DISTANCES = 2_000_000

#: Digits of an expected share that are told.
DIGITS = 6

NO_POINTS = "not every block of a record that changed has a latitude and a longitude"
NO_BLOCK = "the block is not swapped, so nobody moved"
NOBODY = "nobody: in a stratum every record is selected with the same chance"


class Moves:
    """Sums over strata, added batch by batch; of `about` records, to choose whom to measure."""

    def __init__(self, rate: Fraction, about: int) -> None:
        self._rate = rate
        self._counts = Counter[str]()
        self._sizes = Counter[int]()
        self._kilometres: list[Floats] = []
        self._missing = NO_BLOCK
        self._every = max(1, int(rate * about) // MOST_DISTANCES)
        self._passed = 0

    def add(
        self,
        offsets: Integers,
        source: Integers,
        value: Integers,
        alike: NDArray[np.bool_],
    ) -> Integers:
        """Add some strata, and return the records that received another value.

        Record r gets the value of record `source[r]`; in a stratum values ascend. `alike`
        tells the strata whose records hold the same, so that no trade can be seen.
        """
        sizes = np.diff(offsets)
        changed = np.flatnonzero(value[source] != value)
        stuck = (value[offsets[:-1]] == value[offsets[1:] - 1]) | alike
        self._counts.update(
            records=source.size,
            strata=sizes.size,
            selected=int((source != np.arange(source.size)).sum()),
            changed=changed.size,
            alone_in_stratum=int((sizes == 1).sum()),
            cannot_change=int(sizes[stuck].sum()),
        )
        different, times = np.unique(sizes, return_counts=True)
        self._sizes.update(dict(zip(different.tolist(), times.tolist(), strict=True)))
        return changed

    def measure(
        self,
        latitude: Floats | None,
        longitude: Floats | None,
        before: Integers,
        after: Integers,
    ) -> None:
        """Add how far records moved, from one place of a list of points to another."""
        self._missing = "" if self._missing == NO_BLOCK else self._missing
        chosen = slice(-self._passed % self._every, None, self._every)
        self._passed += before.size
        here, there = before[chosen], after[chosen]
        if latitude is None or longitude is None:
            self._missing = NO_POINTS
            return
        for values, most in zip((latitude, longitude), POINT.values(), strict=True):
            # False of what is not a number.
            if not (np.abs(values[np.concatenate([here, there])]) <= most).all():
                self._missing = NO_POINTS
                return
        self._kilometres.append(between(latitude, longitude, here, there))

    def report(self) -> dict[str, Any]:
        """Return the internal report as plain data."""
        counts = {name: int(number) for name, number in sorted(self._counts.items())}
        records = max(counts.get("records", 0), 1)
        shares = {
            "rate_realised": "selected",
            "share_changed": "changed",
            "share_alone_in_stratum": "alone_in_stratum",
            "share_that_cannot_change": "cannot_change",
        }
        told: dict[str, Any] = {
            "mechanism": "permutation-swapping",
            "rate_asked": str(self._rate),
            **counts,
            **{share: counts.get(name, 0) / records for share, name in shares.items()},
            "rate_expected": self.expected()["expected_share_selected"],
            "targeted": NOBODY,
            "kilometres_moved": None,
        }
        if self._missing:
            return {**told, "kilometres_missing": self._missing}
        told["kilometres_moved"] = spread(np.concatenate([np.empty(0), *self._kilometres]))
        if self._every > 1:
            told["kilometres_of"] = f"one in {self._every} of the records that changed"
        return told

    def expected(self) -> dict[str, float]:
        """Return shares of records that follow from rate and invariants alone."""
        records = max(sum(size * times for size, times in self._sizes.items()), 1)
        selected = sum(
            size * times * psa.moved_probability(size, self._rate)
            for size, times in sorted(self._sizes.items())
        )
        return {
            "expected_share_selected": _told(selected / records),
            "share_alone_in_stratum": _told(self._sizes[1] / records),
        }


def _told(share: float) -> float:
    """Return a share rounded to digits that every machine agrees on."""
    return float(f"{share:.{DIGITS}g}")
