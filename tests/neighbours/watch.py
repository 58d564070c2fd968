"""Watch a mechanism while it draws: which counts meet which noise, and under which names.

A number that is drawn has an address: the purpose and key of its array, and its place there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import discreet.noise
from discreet.census import Census
from discreet.errors import BadInput
from discreet.mechanisms import Mechanism
from discreet.noise import DiscreteGaussian, Randomness
from discreet.spec import Exactly, Specification
from worlds import folder_bytes

Address = tuple[str, int, int]


class NotAccepted(Exception):
    """A census is refused, as it should be: before anything is drawn."""


class UsedTwice(AssertionError):
    """A number of one address was drawn twice."""


class AskedForOthers(AssertionError):
    """Which numbers are drawn depends on the census, beyond the answers drawn before."""


@dataclass(frozen=True)
class Number:
    """One number that was drawn: the exact count, the law of its noise, and the sum of both."""

    exact: int
    law: type
    parameter: Fraction
    value: int

    def loss(self, other: Number) -> Fraction:
        """Return what this number loses between two censuses: rho of zCDP, or epsilon.

        Discrete Gaussian noise: (x - y)^2 / (2 sigma^2), Canonne, Kamath and Steinke 2020,
        Theorem 4. Discrete Laplace noise: |x - y| / scale.
        """
        change = abs(self.exact - other.exact)
        if self.law is DiscreteGaussian:
            return Fraction(change) ** 2 / (2 * self.parameter)
        return change / self.parameter


@dataclass
class Watch:
    """Everything a mechanism drew from one census.

    With `answers`, those of another census are given in place of new ones: whatever then
    differs was decided by confidential data without noise.
    """

    rng: Randomness
    answers: dict[Address, Number] | None = None
    numbers: dict[Address, Number] = field(default_factory=dict)
    _words: set[Address] = field(default_factory=set)
    _inside: bool = False

    @property
    def drawn(self) -> int:
        """Return how many numbers and words were drawn."""
        return len(self.numbers) + len(self._words)

    @property
    def mode(self) -> Any:
        """Return the mode of the randomness that is watched."""
        return self.rng.mode

    def words(self, purpose: str, keys: Any, start: Any, length: Any) -> Any:
        """Return words of a tape, each of which is taken once.

        Arrays of noise share words between their numbers, which are watched themselves.
        """
        if not self._inside:
            for key, first, many in zip(keys, start, length, strict=True):
                self._take(self._words, purpose, int(key), range(first, first + many))
        return self.rng.words(purpose, keys, start, length)

    def _take(self, taken: set[Address], purpose: str, key: int, places: Any) -> None:
        for place in places:
            address = (purpose, key, int(place))
            if address in taken:
                raise UsedTwice(f"{address} is drawn twice")
            taken.add(address)

    def measured(self, real: Any, *given: Any, size: Any = None, start: int = 0, at: Any = None):
        """Return noisy counts as `discreet.noise.measure` does, and note all there is to know."""
        _, law, purpose, key, parameter, counts = given
        exact = _counts(counts, parameter, size, at)
        places = range(start, start + exact.size) if at is None else at.tolist()
        addresses = [(purpose, int(key), int(place)) for place in places]
        if self.answers is None:
            self._inside = True
            values = real(self, *given[1:], size, start=start, at=at)
            self._inside = False
        else:
            strange = [one for one in addresses if one not in self.answers]
            if strange:
                raise AskedForOthers(f"{strange[0]} is asked for in one census only")
            values = np.array([self.answers[one].value for one in addresses], dtype=np.int64)
        laws = _parameters(parameter, exact.size)
        for address, count, own, value in zip(addresses, exact, laws, values, strict=True):
            if address in self.numbers:
                raise UsedTwice(f"{address} is drawn twice")
            self.numbers[address] = Number(int(count), law, own, int(value))
        return values


def _counts(counts: Any, parameter: Any, size: int | None, at: Any) -> np.ndarray:
    """Return the counts that are measured."""
    if not callable(counts):
        return np.asarray(counts, dtype=np.int64)
    many = size if at is None and size is not None else len(parameter[1] if at is None else at)
    exact = np.zeros(many, dtype=np.int64)
    counts(exact)
    return exact


def _parameters(parameter: Any, size: int) -> list[Fraction]:
    """Return the parameter of the noise of each number."""
    if not isinstance(parameter, tuple):
        return [Fraction(parameter)] * size
    values, index = parameter
    return [Fraction(values[place]) for place in index.tolist()]


@contextmanager
def watching(watch: Watch) -> Iterator[Watch]:
    """Put the watch where mechanisms measure, in every module that has the function."""
    real = discreet.noise.measure

    def measured(rng, law, purpose, key, parameter, counts, size=None, *, start=0, at=None):
        given = (rng, law, purpose, key, parameter, counts)
        return watch.measured(real, *given, size=size, start=start, at=at)

    modules = [m for n, m in sys.modules.items() if n.startswith("discreet.") and m is not None]
    places = [module for module in modules if vars(module).get("measure") is real]
    for module in places:
        module.measure = measured
    try:
        yield watch
    finally:
        for module in places:
            module.measure = real


def draw_watched(made: Mechanism, census: Census, watch: Watch, folder: Path) -> dict[str, bytes]:
    """Draw under a watch, as a run does, and return the files of the draw."""
    try:
        made.check(census)
    except BadInput as reason:
        raise NotAccepted from reason
    with watching(watch):
        made.draw(census, watch, folder)
    return folder_bytes(folder)


# -- what two censuses of one universe give away ---------------------------------------------------


class TooMuch(AssertionError):
    """More is lost between two censuses than the specification promises."""


class UsedWithoutNoise(AssertionError):
    """Something confidential that the universe leaves free is used without noise."""


def budget_of(specification: Specification) -> Fraction:
    """Return the budget of measurements: rho of zCDP, or epsilon."""
    amount = specification.budget.amount
    assert isinstance(amount, Exactly)
    return Fraction(amount.of)


def compared(
    made: Mechanism, one: Census, other: Census, distance: int, rng: Randomness, folder: Path
) -> Fraction:
    """Return the part of its promise that a mechanism uses between two censuses of one universe.

    The second census is given the noisy answers of the first. Whatever is asked for, and every
    file of the draw, must then be the same.
    """
    specification = made.specify(made.facts(one))
    if specification != made.specify(made.facts(other)):
        raise UsedWithoutNoise("what is promised depends on the census")
    first = Watch(rng)
    files = draw_watched(made, one, first, folder / "one")
    second = Watch(rng, first.numbers)
    others = draw_watched(made, other, second, folder / "other")
    left = set(first.numbers) - set(second.numbers)
    if left:
        raise AskedForOthers(f"{min(left)} is asked for in one census only")
    changed = [name for name in sorted({*files, *others}) if files.get(name) != others.get(name)]
    if changed:
        raise UsedWithoutNoise(f"{', '.join(changed)} differ under the same noisy answers")
    lost = sum(
        (number.loss(second.numbers[at]) for at, number in first.numbers.items()), Fraction()
    )
    square = specification.budget.unit == "rho2"
    promised = budget_of(specification) * (distance**2 if square else distance)
    if lost > promised:
        raise TooMuch(f"{float(lost):.6g} is lost, {float(promised):.6g} promised")
    return lost / promised
