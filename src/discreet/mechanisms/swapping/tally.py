"""The internal report of a swap: what was asked, what came of it, and who was hit.

It tells who was swapped, if only in sums, so it is readable by its owner only and never
part of a release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.numbering import Integers
from discreet.mechanisms.swapping.geometry import kilometres
from discreet.mechanisms.swapping.households import Floats, Households, Swap

Flags = NDArray[np.bool_]

#: Shares of swapped households below which a distance is told.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


#: Why no distance is told.
NO_POINTS = "not every block has a usable latitude and longitude"


class Tally:
    """Sums over all areas, added batch by batch."""

    def __init__(
        self, mechanism: str, rate: Fraction, persons: str, groups: Sequence[str], **told: Any
    ) -> None:
        self._head = {"mechanism": mechanism, "rate_asked": str(rate), **told}
        self._rate, self._persons, self._groups = rate, persons, tuple(groups)
        self._counts = Counter[str]()
        self._kilometres: list[Floats] = []
        self._pointless = False
        # Of all, of targets and of partners: households by size, persons by group, mixed.
        self._who = {who: Counter[str]() for who in ("all", "targets", "partners")}
        self._sizes = {who: Counter[int]() for who in self._who}

    def add(self, households: Households, swap: Swap) -> None:
        """Add the pairs of some areas."""
        partner, targets, without_partner = swap.partner, swap.targets, swap.without_partner
        partners = partner[targets]
        stuck = cannot_change(households, swap.stay)
        swapped = np.flatnonzero(partner != np.arange(households.size))
        changed = households.place[partner[swapped]] != households.place[swapped]
        self._counts.update(
            households=households.size,
            areas=len(households.area_codes),
            targets=int(targets.size),
            partners=int(partners.size),
            swapped=int(swapped.size),
            changed_block=int(changed.sum()),
            cannot_change=int(stuck.sum()),
            no_partner_exists=int(stuck[without_partner].sum()),
            no_partner_left=int((~stuck[without_partner]).sum()),
            most=sum(int(self._rate * int(n) / 2) for n in np.diff(households.offsets)),
        )
        if households.places.latitude is not None:
            self._kilometres.append(
                kilometres(households.places, households.place[targets], households.place[partners])
            )
        else:
            self._pointless = True
        everybody = np.arange(households.size)
        for who, rows in (("all", everybody), ("targets", targets), ("partners", partners)):
            self._look_at(who, households, rows)

    def _look_at(self, who: str, households: Households, rows: Integers) -> None:
        sizes, counts = np.unique(households.columns[self._persons][rows], return_counts=True)
        self._sizes[who].update(dict(zip(sizes.tolist(), counts.tolist(), strict=True)))
        different = np.zeros(rows.size, dtype=np.int64)
        for group in self._groups:
            members = households.columns[group][rows]
            self._who[who][group] += int(members.sum())
            different += members > 0
        self._who[who]["mixed"] += int((different > 1).sum())

    def report(self) -> dict[str, Any]:
        """Return the report as plain data."""
        counts = self._counts
        told: dict[str, Any] = {
            **self._head,
            **{name: counts[name] for name in sorted(counts) if name != "most"},
            "rate_realised": counts["swapped"] / max(counts["households"], 1),
            "pairs_at_rate": counts["most"],
            "share_that_cannot_change": counts["cannot_change"] / max(counts["households"], 1),
            "households_by_size": {who: self._by_size(who) for who in self._who},
        }
        told["kilometres_between_partners"] = None
        if self._pointless:
            told["kilometres_missing"] = NO_POINTS
        else:
            apart = np.concatenate([np.empty(0), *self._kilometres])
            told["kilometres_between_partners"] = spread(apart)
        if self._groups:
            told["persons_by_group"] = {
                who: {group: found[group] for group in self._groups}
                for who, found in self._who.items()
            }
            told["share_of_mixed_households"] = {
                who: found["mixed"] / max(self._sizes[who].total(), 1)
                for who, found in self._who.items()
            }
        return told

    def _by_size(self, who: str) -> dict[str, int]:
        return {str(size): count for size, count in sorted(self._sizes[who].items())}


def cannot_change(households: Households, stay: Flags | None = None) -> Flags:
    """Tell which households must stay, or have no possible partner.

    Those of a stratum whose other households lie in one area to leave, or must stay, have none.
    """
    strata = int(households.stratum.max()) + 1 if households.size else 0
    least = np.full(strata, np.iinfo(np.int64).max)
    most = np.full(strata, -1)
    free = np.ones(households.size, dtype=np.bool_) if stay is None else ~stay
    np.minimum.at(least, households.stratum[free], households.leave[free])
    np.maximum.at(most, households.stratum[free], households.leave[free])
    stuck: Flags = (least >= most)[households.stratum] | ~free
    return stuck


def spread(distances: Floats) -> dict[str, float]:
    """Return quantiles and mean of distances; nothing of none."""
    if not distances.size:
        return {}
    told = {f"{q:.0%}": float(np.quantile(distances, q)) for q in QUANTILES}
    return {
        key: round(value, 3) for key, value in {**told, "mean": float(distances.mean())}.items()
    }
