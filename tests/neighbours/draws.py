"""Small draws that the generators share, and texts that fit a pattern."""

from __future__ import annotations

import functools
import random
import re
import string
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]
T = TypeVar("T")


@functools.cache
def below(number: int) -> st.SearchStrategy[int]:
    """Return whole numbers from 0; kept, since making a strategy takes longer than a draw."""
    strategy = st.integers(0, number - 1)
    _SIDES[strategy] = number
    return strategy


#: How many numbers there are below, for dice.
_SIDES: dict[st.SearchStrategy[int], int] = {}


def sampled(make: Callable[[Draw], T], number: int, seed: int = 0) -> list[T]:
    """Return independent examples of what a generator makes, without Hypothesis.

    Those of Hypothesis are like each other and differ between its versions, so it is these
    that are counted. Every draw has to be one of this module.
    """
    source = random.Random(seed)
    return [make(lambda strategy: source.randrange(_SIDES[strategy])) for _ in range(number)]


def between(draw: Draw, low: int, high: int) -> int:
    """Return a whole number."""
    return low + draw(below(high - low + 1))


def pick(draw: Draw, options: Sequence[T]) -> T:
    """Return one of the options; the first is the simplest."""
    return options[0] if len(options) == 1 else options[draw(below(len(options)))]


def several(draw: Draw, options: Sequence[T], least: int, most: int) -> list[T]:
    """Return `least` to `most` different options, as far as there are so many."""
    left = list(options)
    number = min(len(left), between(draw, least, most))
    return [left.pop(draw(below(len(left)))) for _ in range(number)]


def chance(draw: Draw, one_in: int = 2) -> bool:
    """Return True once in so many times; False is simpler."""
    return draw(below(one_in)) == one_in - 1


# -- texts that fit a pattern ------------------------------------------------------------------

#: A character or a class of them, and how often it stands.
PART = re.compile(r"(\\d|\[[^\]]+\]|[^\\\[\](){}|?*+^$])(?:\{(\d+)(?:,\d*)?\}|([+*?]))?")

#: What a dot stands for, and how many of them `.+` is: codes of several levels fit in.
PLAIN, LONG = string.digits + string.ascii_uppercase, 6


@functools.cache
def places(pattern: str) -> tuple[str, ...]:
    """Return the characters that may stand at each place of a text that fits the pattern."""
    found: list[str] = []
    end = 0
    for part in PART.finditer(pattern):
        if part.start() != end:
            break
        end = part.end()
        letters = {"\\d": string.digits, ".": PLAIN}.get(part[1], part[1])
        if letters.startswith("["):
            letters = "".join(c for c in string.printable if re.fullmatch(letters, c))
        often = LONG if part[1] == "." and part[3] else int(part[2] or 1)
        found += [letters] * often
    if end != len(pattern):
        raise ValueError(f"no text for the pattern {pattern}: it is not a row of characters")
    return tuple(found)


def written(pattern: str, number: int, start: str = "") -> str:
    """Return the text of a number that fits a pattern; it begins with `start` where it can."""
    slots = places(pattern)
    fits = len(start) < len(slots) and all(map(str.__contains__, slots, start))
    kept = start if fits else ""
    text = ""
    for letters in reversed(slots[len(kept) :]):
        number, place = divmod(number, len(letters))
        text = letters[place] + text
    return kept + text
