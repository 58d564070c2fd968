"""The pass of the swapping after public documents: who is drawn when, and who takes whom.

Steps 1 and 2 of the method; what does not change from one draw to the next is prepared.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from discreet.mechanisms.numbering import Integers
from discreet.mechanisms.swapping.donors import (
    Flags,
    Free,
    arrivals,
    line_up,
    pair_up,
    words_of,
)
from discreet.mechanisms.swapping.factors import Imputation, Selection
from discreet.mechanisms.swapping.households import Households, Swap
from discreet.noise import Randomness


@dataclass(frozen=True)
class Prepared:
    """All that does not change from one draw to the next.

    `groups` are the numbers of the lists a household looks through, nearest first: those
    who match and live in its area of each level of `near`, and all who match.
    """

    households: Households
    imputation: Imputation
    selection: Selection
    near: tuple[str, ...]
    groups: tuple[Integers, ...]
    selected_first: bool
    allowed: Integers


def pair(prepared: Prepared, rng: Randomness, replicate: int = 0) -> Swap:
    """Draw the pairs once; each replicate reads tapes of its own."""
    households = prepared.households
    area = households.level(households.places.within)
    order = draw_order(prepared, area, rng, replicate)
    selected = np.zeros(households.size, dtype=np.bool_)
    selected[order[_place_in_area(area[order]) < 2 * prepared.allowed[area[order]]]] = True

    # The best of each kind: selected or not, at every distance.
    ranked = by_risk(prepared, rng, replicate)
    chosen = [(group, ranked[selected[ranked]]) for group in prepared.groups]
    anybody = [(group, ranked) for group in prepared.groups]
    families = [*chosen, *anybody]
    if not prepared.selected_first:
        families = [family for both in zip(chosen, anybody, strict=True) for family in both]
    free = np.ones(households.size, dtype=np.bool_)
    left = Free(free, area, prepared.allowed.copy(), area, np.zeros_like(prepared.allowed))
    found = pair_up(order, line_up(families), households.leave, left, False)
    partner = np.arange(households.size)
    partner[found.targets], partner[found.partners] = found.partners, found.targets
    notes = _notes(prepared, selected, found.targets, found.partners, free)
    return Swap(partner, found.targets, found.alone, notes, prepared.imputation.wholly)


def draw_order(prepared: Prepared, area: Integers, rng: Randomness, replicate: int = 0) -> Integers:
    """Return households in the order they are drawn, area after area, the unique ones first."""
    selection = prepared.selection
    words = words_of(prepared.households, rng, "public-docs-swap-select", replicate)
    order = np.lexsort((arrivals(words, selection.weight), ~selection.always, area))
    drawn: Integers = order[selection.weight[order] > 0]
    return drawn


def by_risk(prepared: Prepared, rng: Randomness, replicate: int = 0) -> Integers:
    """Return possible partners, at high risk first: the unique, then by weight, then by chance."""
    selection = prepared.selection
    words = words_of(prepared.households, rng, "public-docs-swap-ties", replicate)
    ranked = np.lexsort((words, -selection.weight, ~selection.always))
    possible: Integers = ranked[~prepared.imputation.wholly[ranked]]
    return possible


def _place_in_area(area: Integers) -> Integers:
    """Return the place of each row among those of its area; rows are sorted by area."""
    starts = np.flatnonzero(np.append(True, area[1:] != area[:-1])) if area.size else area
    return np.arange(area.size) - np.repeat(starts, np.diff(np.append(starts, area.size)))


def _notes(
    prepared: Prepared,
    selected: Flags,
    targets: Integers,
    partners: Integers,
    free: Flags,
) -> Counter[str]:
    """Return counts of what was done, for the internal report."""
    always = prepared.selection.always
    notes = Counter(
        selected=int(selected.sum()),
        both_selected=int((selected[targets] & selected[partners]).sum()),
        always_selected=int(always.sum()),
        always_selected_but_not_swapped=int((always & free).sum()),
        imputed_wholly=int(prepared.imputation.wholly.sum()),
    )
    for table in ("units", "persons"):
        unknown = table not in prepared.imputation.known
        notes[f"imputation_of_{table}_unknown"] = int(free.size) if unknown else 0
    for level, group in zip(prepared.near, prepared.groups, strict=False):
        notes[f"pairs_in_one_{level}"] = int((group[targets] == group[partners]).sum())
    return notes
