"""Values made of several columns: ids stay tuples, and a code has one combination of columns.

Joined without a separator, (1, 11) and (11, 1) are one text. An id is nobody's to know, so it
is written in a way that keeps them apart. A code of an area is known to people and stays the
plain text; there a check finds texts that two combinations make.
"""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw

from discreet.census.checks import Check
from discreet.engine import Engine, Frame


def tuple_text(parts: Sequence[nw.Expr], widths: Sequence[int | None]) -> nw.Expr:
    """Return a text per tuple, different for different tuples.

    A part of a known width and the last part are written as they are, others after their
    length. So it can be read back part by part, and parts of known widths make the plain text.
    """
    written: list[nw.Expr] = []
    for part, width in zip(parts[:-1], widths[:-1], strict=True):
        if width is None:
            written += [part.str.len_chars().cast(nw.String), nw.lit(":")]
        written.append(part)
    return nw.concat_str(*written, parts[-1])


def constant_widths(engine: Engine, frame: Frame, parts: Sequence[nw.Expr]) -> list[bool]:
    """Return for each part whether all its values are of one length."""
    limits: dict[str, nw.Expr] = {}
    for number, part in enumerate(parts):
        length = part.str.len_chars()
        limits |= {f"low{number}": length.min(), f"high{number}": length.max()}
    found = engine.rows(frame.select(**limits))[0]
    return [low == high for low, high in zip(found[::2], found[1::2], strict=True)]


def ambiguity(
    frame: Frame, parts: Sequence[nw.Expr], columns: tuple[str, ...]
) -> tuple[Frame, Check]:
    """Return the check that a joined text has one combination of parts, and what it reads."""
    text, exact = nw.concat_str(*parts), tuple_text(parts, [None] * len(parts))
    marked = frame.with_columns(_joined=text, _exact=exact)
    several = nw.col("_exact").min().over("_joined") != nw.col("_exact").max().over("_joined")
    violated = (several & ~nw.col("_joined").is_null()).fill_null(False)
    return marked, Check("ambiguous", violated, columns, mark_first=True)
