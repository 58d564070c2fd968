"""Exact laws of the mechanisms that pair by lists, for audits on tiny censuses.

Everything random is enumerated, in fractions and in plain Python, apart from the compiled
pass: in which order households are drawn, who comes first among equals, how numbers of
pairs are rounded. The weights are those of the pass.

The laws are those of ideal random numbers. The pass makes orders from 53 random bits in
double precision, so its chances agree to about 15 digits; rounding to one of n areas by a
64-bit word changes a chance by less than 2^-64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, chain, groupby, pairwise, permutations, product
from math import ceil, factorial, prod
from typing import NamedTuple

from discreet.mechanisms.swapping import public_docs_pass, record_pass
from discreet.mechanisms.swapping.households import Households
from discreet.mechanisms.swapping.pair_law import PairLaw, bounded

Order = tuple[int, ...]

#: A family of lists: the list each household looks through, and all members, best first.
Family = tuple[Sequence[int], Sequence[int]]


class State(NamedTuple):
    """Pairs so far, and how many pairs each of the smallest areas should still make."""

    partner: tuple[int, ...]
    quota: tuple[int, ...]

    @property
    def pairs(self) -> int:
        """Return how many pairs are made."""
        return sum(p != h for h, p in enumerate(self.partner)) // 2


def orders_drawn(weight: Mapping[int, Fraction]) -> Iterator[tuple[Order, Fraction]]:
    """Yield every order in which households can be drawn, and its probability.

    Each next one is drawn in proportion to its weight among those left; weights are positive.

    >>> list(orders_drawn({0: Fraction(1), 1: Fraction(3)}))
    [((0, 1), Fraction(1, 4)), ((1, 0), Fraction(3, 4))]
    """
    total = sum(weight.values(), Fraction(0))
    if not weight:
        yield (), Fraction(1)
    for first in sorted(weight):
        rest = {h: w for h, w in weight.items() if h != first}
        for order, chance in orders_drawn(rest):
            yield (first, *order), weight[first] / total * chance


def pair_up(
    visited: Sequence[int],
    families: Sequence[Family],
    leave: Sequence[int],
    state: State,
    most: int,
    home: Sequence[int] = (),
    bound: bool = False,
) -> State:
    """Give each visited household, one after the other, the first partner its lists have.

    `home` numbers the area whose quota a household uses up; with `bound` it is visited only
    while there is some left.
    """
    partner, quota, pairs = list(state.partner), list(state.quota), state.pairs
    for t in visited:
        if partner[t] != t or pairs >= most or (bound and quota[home[t]] <= 0):
            continue
        listed = (h for number, ranked in families for h in ranked if number[h] == number[t])
        found = next((h for h in listed if partner[h] == h and leave[h] != leave[t]), None)
        if found is None:
            continue
        partner[t], partner[found] = found, t
        pairs += 1
        if home:
            quota[home[t]] -= 1
    return State(tuple(partner), tuple(quota))


# -- after public documents -------------------------------------------------------------------


def public_docs_law(prepared: public_docs_pass.Prepared, area: int) -> PairLaw:
    """Return the law of the pairs that are made in one area after public documents."""
    households, selection = prepared.households, prepared.selection
    here = _rows(households, area)
    size, leave = here.stop - here.start, households.leave[here].tolist()
    groups = [group[here].tolist() for group in prepared.groups]
    most = int(prepared.allowed[households.level(households.places.within)[here.start]])
    weight = [Fraction(w) for w in selection.weight[here].tolist()]
    always: list[bool] = selection.always[here].tolist()
    stays = prepared.imputation.wholly[here].tolist()

    drawn = _orders(weight, always)
    risk = [(not always[h], -weight[h]) for h in range(size)]
    rankings = orders_by(risk, [h for h in range(size) if not stays[h]])
    bounded(size * len(drawn) * len(rankings))

    start, each = State(tuple(range(size)), ()), Fraction(1, len(rankings))
    law: dict[tuple[int, ...], Fraction] = {}
    for (order, chance), ranked in product(drawn, rankings):
        selected = set(order[: 2 * most])
        chosen: list[Family] = [(g, [h for h in ranked if h in selected]) for g in groups]
        anybody: list[Family] = [(g, ranked) for g in groups]
        families = [*chosen, *anybody]
        if not prepared.selected_first:
            families = [family for both in zip(chosen, anybody, strict=True) for family in both]
        partner = pair_up(order, families, leave, start, most).partner
        law[partner] = law.get(partner, Fraction(0)) + chance * each
    return law


def _orders(weight: Sequence[Fraction], always: Sequence[bool]) -> list[tuple[Order, Fraction]]:
    """Return every order of drawing with its probability: the unique come before the others."""
    bounded(len(weight) * factorial(len(weight)))
    possible = [h for h, w in enumerate(weight) if w]
    unique = orders_drawn({h: weight[h] for h in possible if always[h]})
    others = list(orders_drawn({h: weight[h] for h in possible if not always[h]}))
    return [(one + other, p * q) for one, p in unique for other, q in others]


def orders_by(key: Sequence[tuple[bool, Fraction]], members: Sequence[int]) -> list[Order]:
    """Return every order of some households by a key, equals in any order."""
    ranked = sorted(members, key=lambda h: key[h])
    equals = [list(group) for _, group in groupby(ranked, key=lambda h: key[h])]
    bounded(prod(factorial(len(group)) for group in equals))
    return [tuple(chain.from_iterable(one)) for one in product(*map(permutations, equals))]


# -- record swapping --------------------------------------------------------------------------


def record_law(prepared: record_pass.Prepared, area: int) -> PairLaw:
    """Return the law of the pairs that record swapping makes in one area, level by level."""
    here = _rows(prepared.households, area)
    size = here.stop - here.start
    bounded(size * factorial(size))
    homes = prepared.households.level(prepared.hierarchy[-1])[here].tolist()
    numbers = sorted(set(homes))
    home = [numbers.index(number) for number in homes]
    law = _rounded(prepared, size, home)
    for number in range(len(prepared.hierarchy)):
        alike = prepared.alike[number][here].tolist()
        drawn = list(orders_drawn({h: Fraction(1, n) for h, n in enumerate(alike)}))
        bounded(size * len(drawn) * len(law))
        after: dict[State, Fraction] = {}
        for (state, p), (order, q) in product(law.items(), drawn):
            reached = _at_level(prepared, here, number, home, order, state)
            after[reached] = after.get(reached, Fraction(0)) + p * q
        law = after
    pairs: dict[tuple[int, ...], Fraction] = {}
    for state, chance in law.items():
        pairs[state.partner] = pairs.get(state.partner, Fraction(0)) + chance
    return pairs


def _rounded(
    prepared: record_pass.Prepared, size: int, home: Sequence[int]
) -> dict[State, Fraction]:
    """Return the law of the quotas, before anybody is swapped."""
    wanted = prepared.rate * size / 2
    asked = [int(wanted)] if prepared.allowed is not None else [int(wanted), ceil(wanted)]
    upto = list(accumulate(home.count(number) for number in sorted(set(home))))
    law: dict[State, Fraction] = {}
    for pairs, offset in product(asked, range(size)):
        reached = [0, *((number * pairs + offset) // size for number in upto)]
        quota = tuple(b - a for a, b in pairwise(reached))
        state = State(tuple(range(size)), quota)
        law[state] = law.get(state, Fraction(0)) + Fraction(1, len(asked) * size)
    return law


def _at_level(
    prepared: record_pass.Prepared,
    here: slice,
    number: int,
    home: Sequence[int],
    order: Order,
    state: State,
) -> State:
    """Return what is reached at one level, given the order in which households stand there."""
    households, last = prepared.households, len(prepared.hierarchy) - 1
    leave = households.level(prepared.hierarchy[number])[here].tolist()
    must = prepared.must[here].tolist()
    families: list[Family] = [(profile[here].tolist(), order) for profile in prepared.profiles]
    most = len(order)
    if prepared.allowed is not None:
        most = int(prepared.allowed[households.level(households.places.within)[here.start]])
    due = [h for h in order if (must[h] <= last if number == last else must[h] == number)]
    state = pair_up(due, families, leave, state, most, home)
    if number == last:
        others = [h for h in order if h not in due]
        state = pair_up(others, families, leave, state, most, home, bound=True)
        if prepared.allowed is not None:
            state = pair_up(others, families, leave, state, most, home)
    return state


def _rows(households: Households, area: int) -> slice:
    """Return the rows of an area."""
    return slice(int(households.offsets[area]), int(households.offsets[area + 1]))
