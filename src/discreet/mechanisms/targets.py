"""Read wanted margins of error from the command line."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.config import rational
from discreet.errors import BadInput


def read_targets(texts: Sequence[str], form: str, example: str) -> dict[tuple[str, str], Fraction]:
    """Return the margin of each pair of names, written as `form` says: `LEVEL:QUERY=MARGIN`.

    >>> read_targets(["county:total=3"], "LEVEL:QUERY=MARGIN", "county:total=3")
    {('county', 'total'): Fraction(3, 1)}
    """
    found: dict[tuple[str, str], Fraction] = {}
    for text in texts:
        place, equals, margin = text.rpartition("=")
        one, colon, other = place.partition(":")
        try:
            wanted = rational(margin)
        except ValueError:
            wanted = Fraction(0)
        if not (equals and colon) or wanted <= 0:
            raise BadInput(f"a target is {form} with a positive margin: {example}.")
        pair = one.strip(), other.strip()
        if pair in found:
            raise BadInput(f"{pair[0]}:{pair[1]} has two targets. Keep one of them.")
        found[pair] = wanted
    return found
