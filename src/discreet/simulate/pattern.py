r"""Make up area codes that fit a pattern: `[A-Z]{2}\d{2}` gives AA01, AA02, ...

Reads the simple patterns schemas use for codes (letters, digits, `\d`, `.`, classes,
counts), not regular expressions at large.
"""

from __future__ import annotations

import re
import string

from discreet.errors import BadInput

#: One character, a class or a dot, and how often it stands there.
_PIECE = re.compile(
    r"(\\d|\\[^A-Za-z0-9]|\[[^\]^]+\]|[^\\\[\]{}()|^$*+?])(\{\d+(?:,\d*)?\}|[+*?])?"
)
_ANY = string.digits + string.ascii_uppercase + string.ascii_lowercase + "-_."


def _characters(text: str) -> str:
    """Return the characters one piece of a pattern allows, in the order codes count."""
    if text == "\\d":
        return string.digits
    if text == ".":
        return _ANY
    if text[0] == "[":
        spans = re.findall(r"\\d|(.)-(.)|(.)", text[1:-1].replace("\\d", "0-9"))
        return "".join(
            single or "".join(map(chr, range(ord(low), ord(high) + 1)))
            for low, high, single in spans
        )
    return text[-1]


def _positions(pattern: str, wanted: int) -> list[str] | None:
    """Return the characters allowed in each place; open counts stretch to `wanted` places."""
    places: list[str] = []
    at = 0
    while at < len(pattern):
        found = _PIECE.match(pattern, at)
        if found is None:
            return None
        at = found.end()
        count = found.group(2) or "{1}"
        least, _, most = count.strip("{}").partition(",")
        repeat = int(least) if least.isdigit() else int(count == "+")
        if count in ("+", "*") or (count.endswith(",}")):
            repeat = max(repeat, wanted - len(places))
        elif most:
            repeat = min(max(repeat, wanted - len(places)), int(most))
        places += [_characters(found.group(1))] * repeat
    return places


def make_codes(pattern: str, above: str, numbers: list[int], what: str) -> list[str]:
    """Return one code per number, beginning with the code of the area `above` if it fits.

    The rest of the code counts: its places are the digits of the number. Codes that end in
    a letter start with the first letter for number one. Raise if the
    pattern is not simple or has not enough codes.
    """
    width = len(str(max(numbers, default=0)))
    places = _positions(pattern, len(above) + width)
    if places is None:
        raise BadInput(
            f"{what}: the simulator cannot make up codes for this pattern. Write it with "
            f"letters, digits, \\d, classes and counts only."
        )
    nested = len(above) < len(places) and all(
        letter in allowed for letter, allowed in zip(above, places, strict=False)
    )
    prefix = above if nested else ""
    free = places[len(prefix) :]
    start = 0 if not free or free[-1][0].isdigit() else 1
    codes = []
    for number in numbers:
        number -= start
        letters: list[str] = []
        for allowed in reversed(free):
            number, digit = divmod(number, len(allowed))
            letters.append(allowed[digit])
        if number:
            raise BadInput(f"{what}: the pattern has fewer codes than the simulator needs.")
        codes.append(prefix + "".join(reversed(letters)))
    return codes
