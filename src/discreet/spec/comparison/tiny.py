"""Data sets small enough to write down, to show by example that two promises differ.

A promise is refuted by two data sets that it compares and that some mechanism tells apart.
This is a systematic search for such pairs among data sets of at most two units with at
most two members each: two codes for every column that an invariant mentions, two areas
for every level, and one column `answer` that no invariant mentions.

Columns vary freely, apart from three rules: a column belongs to the kinds of units that its
invariants name, `size` is the number of members, vacant units have none. No code is
used that the invariants do not name, unless they name one only. That one column is no
function of another (voting age of age) is an assumption, which a witness states.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations, combinations_with_replacement, product
from typing import Any

from discreet.errors import BadInput
from discreet.spec.domain import WHOLE, Domain
from discreet.spec.inputs import ROWS, InputPremetric
from discreet.spec.invariants import Invariant, LinearCombination, MarginalTable, TinyUnit, value

DataSet = tuple[TinyUnit, ...]
Pair = tuple[DataSet, DataSet]

#: Input premetrics that count steps: different data sets are at least 1 apart.
WHOLE_STEPS = ("hamming-of-multisets", "hamming", "symmetric-difference", "deletions")
#: Any variable that no invariant mentions.
ANSWER = "answer"
SIZE = "size"
#: Kinds of units without members.
EMPTY = ("vacant",)
#: Levels that have one area, whatever the data.
ONE_AREA = ("nation", "country", WHOLE)
#: What is tried, in this order: most members of a unit, most units of a data set, and
#: whether there are units without members.
STAGES = ((1, 1, False), (1, 2, False), (2, 2, False), (1, 2, True))
#: Data sets tried per stage; a larger stage is left out.
MOST_DATA_SETS = 6_000
#: Values of the statistic kept per universe, and data sets per value.
KEPT_PER_UNIVERSE = 24
KEPT_PER_VALUE = 3


def records(data: DataSet, unit: str) -> list[str]:
    """Return the records of a data set at the resolution of a unit, in the order listed.

    A person's record says where and in what kind of unit the person lives, but not how many
    others do.
    """
    if unit == "household":
        return [_text(household) for household in data]
    own = [{k: v for k, v in u.items() if k not in ("members", SIZE)} for u in data]
    return [
        _text({**columns, **person})
        for columns, household in zip(own, data, strict=True)
        for person in household.get("members", ())
    ]


def _text(row: TinyUnit) -> str:
    columns = sorted(f"{name}={code}" for name, code in row.items() if name != "members")
    return f"{columns}{sorted(_text(person) for person in row.get('members', ()))}"


def distance(premetric: InputPremetric, pair: Pair) -> float | None:
    """Return how far apart two data sets are; None if the premetric is not computed here."""
    if premetric.unit not in ROWS or premetric.counts == "contributors":
        return None
    try:
        return premetric.distance(*(records(data, premetric.unit) for data in pair))
    except BadInput:
        return None


def published(invariant: Invariant, data: DataSet, domain: Domain) -> Hashable:
    """Return what an invariant tells about a data set."""
    return frozenset(value(invariant, data, domain.spine, domain.places).items())


def one_universe(invariants: Iterable[Invariant], pair: Pair, domain: Domain) -> bool:
    """Tell whether two data sets agree on every invariant."""
    x, y = pair
    return all(published(one, x, domain) == published(one, y, domain) for one in invariants)


def pairs(
    domain: Domain,
    invariants: Sequence[Invariant],
    premetric: InputPremetric,
    differ_in: Invariant | None = None,
) -> Iterator[Pair]:
    """Yield pairs that share a universe, at a finite positive distance, small ones first.

    With `differ_in`, only pairs that differ in this statistic.
    """
    if distance(premetric, ((), ())) is None:
        return
    mentioned = [*invariants, *([differ_in] if differ_in else [])]
    for members, most, empty in STAGES:
        units = _units(domain, mentioned, members, empty)
        if math.comb(len(units) + most, most) > MOST_DATA_SETS:
            continue
        found: list[tuple[int, float, int, Pair]] = []
        for alike in _universes(domain, invariants, differ_in, units, most):
            listed = {id(x): records(x, premetric.unit) for group in alike for x in group}
            for x, y in _unlike(alike):
                apart = premetric.distance(listed[id(x)], listed[id(y)])
                if 0 < apart < math.inf:
                    size = sum(1 + len(unit["members"]) for unit in (*x, *y))
                    found.append((size, apart, len(found), (x, y)))
        yield from (pair for *_, pair in sorted(found, key=lambda one: one[:3]))


def _universes(
    domain: Domain,
    invariants: Sequence[Invariant],
    differ_in: Invariant | None,
    units: Sequence[TinyUnit],
    most: int,
) -> Iterator[list[list[DataSet]]]:
    """Yield the data sets of every universe, grouped by the value of the statistic."""
    universes: dict[Hashable, dict[Hashable, list[DataSet]]] = {}
    for size in range(most + 1):
        for data in combinations_with_replacement(units, size):
            universe = tuple(published(one, data, domain) for one in invariants)
            told = (
                published(differ_in, data, domain)
                if differ_in
                else len(universes.get(universe, ()))
            )
            alike = universes.setdefault(universe, {})
            if told in alike or len(alike) < KEPT_PER_UNIVERSE:
                alike.setdefault(told, []).append(data)
    for values in universes.values():
        yield [group[:KEPT_PER_VALUE] for group in values.values()]


def _unlike(groups: Sequence[Sequence[DataSet]]) -> Iterator[Pair]:
    """Yield all pairs of data sets from different groups."""
    for one, other in combinations(groups, 2):
        yield from product(one, other)


# -- the units a data set is made of ----------------------------------------------------------


def _units(
    domain: Domain, invariants: Sequence[Invariant], most_members: int, empty: bool
) -> list[TinyUnit]:
    """Return all units that the columns, codes and areas allow."""
    places = list(_places(domain, invariants))
    columns = _columns(domain, invariants)
    household = [name for name in columns if _of_units(name, invariants)]
    personal = [name for name in columns if name not in household]
    persons = [
        dict(zip((*personal, ANSWER), codes, strict=True))
        for codes in product(*(columns[name] for name in personal), "ab")
    ]
    units: list[TinyUnit] = []
    for kind in _kinds(domain, invariants):
        if kind in EMPTY and not empty:
            continue
        own = [name for name in household if _belongs(name, kind, invariants)]
        codes = {name: columns[name] for name in own}
        sizes = range(0, 1) if kind in EMPTY else range(1, most_members + 1)
        if kind in EMPTY:
            codes[ANSWER] = ("a", "b")
        for place, chosen in product(places, product(*codes.values())):
            row = {**place, "kind": kind, **dict(zip(codes, chosen, strict=True))}
            for size in sizes:
                for group in combinations_with_replacement(persons, size):
                    units.append({**row, SIZE: str(size), "members": group})
    return units


def _places(domain: Domain, invariants: Sequence[Invariant]) -> Iterator[dict[str, str]]:
    """Yield one place, and for every level another that differs from it from there down."""
    mentioned = {c for i in invariants for c in (i.level, *i.by, *i.where)} - {WHOLE}
    levels = [lv for lv in domain.spine if lv in mentioned or lv == domain.spine[-1]]
    areas = {one.level for one in invariants} - {WHOLE}
    outside = sorted((mentioned & {*domain.places, *areas}) - {*levels})
    here = {level: "1" for level in (*levels, *outside)}
    yield here
    free = [level for level in levels if level not in ONE_AREA]
    for first in reversed(range(len(free))):
        moved = {level: str(code) for code, level in enumerate(free[first:], start=2)}
        yield {**here, **moved, **{level: "2" for level in outside}}
    if not free and outside:  # which of them is the finer one is not known
        yield {**here, **{level: "2" for level in outside}}


def taken_as_free(domain: Domain, invariants: Sequence[Invariant]) -> tuple[str, ...]:
    """Return columns that are varied one without the other, if there are several."""
    names = tuple(_columns(domain, invariants))
    return names if len(names) > 1 else ()


def _columns(domain: Domain, invariants: Sequence[Invariant]) -> dict[str, tuple[str, ...]]:
    """Return the codes of every column that an invariant mentions, apart from places."""
    named: dict[str, list[str]] = {}
    for one in invariants:
        for name in _names(one):
            named.setdefault(name, []).extend(one.where.get(name, ()))
        if isinstance(one, LinearCombination):
            for cell in one.weights:
                for name, code in zip(one.by, cell.split("|"), strict=False):
                    named[name].append(code)
    skipped = {"kind", SIZE, *domain.spine, *domain.places, *(one.level for one in invariants)}
    return {
        name: _codes(list(dict.fromkeys(codes)))
        for name, codes in named.items()
        if name not in skipped
    }


def _names(one: Invariant) -> tuple[str, ...]:
    """Return the columns that an invariant mentions, those it leaves out included."""
    left_out = one.without if isinstance(one, MarginalTable) else ()
    return (*one.by, *one.where, *left_out)


def _codes(named: list[str]) -> tuple[str, ...]:
    """Return two codes, or three of many; others than the named ones might not exist."""
    if len(named) == 1:
        return (named[0], "another")
    return tuple(named[:3]) or ("1", "2")


def _of_units(name: str, invariants: Sequence[Invariant]) -> bool:
    return any(name in _names(one) for one in invariants if one.of == "units")


def _belongs(name: str, kind: str, invariants: Sequence[Invariant]) -> bool:
    """Tell whether some invariant uses the column for units of this kind."""
    users = [one for one in invariants if name in _names(one)]
    return any(kind in one.where.get("kind", [kind]) for one in users)


def _kinds(domain: Domain, invariants: Sequence[Invariant]) -> list[str]:
    named = [kind for one in invariants for kind in one.where.get("kind", [])]
    return list(dict.fromkeys([*domain.kinds[:1], *named])) or ["occupied"]


def as_plain(data: DataSet) -> list[dict[str, Any]]:
    """Return a data set as plain values, for files."""
    return [
        {**unit, "members": [dict(person) for person in unit.get("members", ())]} for unit in data
    ]
