"""Names and texts as SQL writes them."""

from __future__ import annotations

from collections.abc import Iterable


def quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(value: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def list_literal(values: Iterable[str]) -> str:
    """Return a list of texts as SQL writes it.

    >>> list_literal(["a", "o'b"])
    "['a', 'o''b']"
    """
    return f"[{', '.join(map(text_literal, values))}]"
