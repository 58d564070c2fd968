"""Values made of several columns: ids stay tuples, and a code has one combination of columns.

Joined without a separator, (1, 11) and (11, 1) are one text. An id is nobody's to know, so it
is written in a way that keeps them apart. A code of an area is known to people and stays the
plain text; there checks find texts that two combinations make, in one file or in two.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from discreet.census.checks import FILE, ROW, Check
from discreet.census.findings import BUILT_IN
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


@dataclass(frozen=True)
class Joined:
    """A code that the rows of a file put together of several columns."""

    frame: Frame
    file: str
    columns: tuple[str, ...]
    parts: tuple[nw.Expr, ...]
    #: The length of each part but the last, where it is the same in all rows.
    widths: tuple[int | None, ...]

    @property
    def text(self) -> nw.Expr:
        """Return the code."""
        return nw.concat_str(*self.parts)

    def ends(self) -> dict[str, nw.Expr]:
        """Return where in the code each part but the last ends, by the name of a column."""
        lengths = (part.str.len_chars() for part in self.parts[:-1])
        return {f"_end{i}": end for i, end in enumerate(itertools.accumulate(lengths))}

    @property
    def fixed_ends(self) -> list[int]:
        """Return where each part but the last ends in all rows, or nothing where that varies."""
        fixed = [width for width in self.widths if width is not None]
        return [*itertools.accumulate(fixed)] if len(fixed) == len(self.widths) else []


def common_widths(engine: Engine, frame: Frame, parts: Sequence[nw.Expr]) -> list[int | None]:
    """Return for each part the length of all its values, or None where they differ."""
    limits: dict[str, nw.Expr] = {}
    for number, part in enumerate(parts):
        length = part.str.len_chars()
        limits |= {f"low{number}": length.min(), f"high{number}": length.max()}
    found = engine.rows(frame.select(**limits))[0]
    return [low if low == high else None for low, high in zip(found[::2], found[1::2], strict=True)]


def ambiguity(code: Joined) -> tuple[Frame, Check] | None:
    """Return the check that a code has one combination of parts, and what it reads.

    There is none where all parts but the last are of one length, as nearly all are.
    """
    if None not in code.widths:
        return None
    exact = tuple_text(code.parts, [None] * len(code.parts))
    marked = code.frame.with_columns(_joined=code.text, _exact=exact)
    several = nw.col("_exact").min().over("_joined") != nw.col("_exact").max().over("_joined")
    violated = (several & ~nw.col("_joined").is_null()).fill_null(False)
    return marked, Check("ambiguous", violated, code.columns, mark_first=True)


def conflict(engine: Engine, code: Joined, other: Joined) -> tuple[Frame, Check] | None:
    """Return the check that another file has no other combination for a code, and what it reads.

    Without it a row of an area that does not exist could be placed in one that does: widths
    that are the same within each file may differ between them. There is none where the widths
    show that it holds.
    """
    fixed = code.fixed_ends, other.fixed_ends
    if fixed[0] and fixed[1] and not _split_apart(*fixed):
        return None
    ends = other.ends()
    ways = engine.distinct(other.frame.select(_joined=other.text, **ends))
    # A code that the other file makes in several ways is found there.
    count = {"_ways": nw.len(), **{name: nw.col(name).min() for name in ends}}
    single = ways.drop_nulls().group_by("_joined").agg(**count).filter(nw.col("_ways") == 1)
    own = {f"_own{name}": end for name, end in code.ends().items()}
    # Names of the file that begin like ours would pass for what is computed here.
    names = code.frame.collect_schema().names()
    kept = [name for name in names if name in (FILE, ROW) or not name.startswith("_")]
    rows = code.frame.select(*kept, _joined=code.text, **own)
    apart = _split_apart([nw.col(name) for name in own], [nw.col(name) for name in ends])
    title = f"{BUILT_IN['ambiguous']}; {other.file} makes the same of other values"
    check = Check("ambiguous", apart.fill_null(False), code.columns, title, mark_first=True)
    return rows.join(single, on="_joined", how="left"), check


def _split_apart(one: Sequence[Any], other: Sequence[Any]) -> Any:
    """Say of places where parts end, numbers or expressions, whether they contradict each other.

    A file may have one column for several of the other, but must split where that one does.
    """
    fewer, more = sorted((one, other), key=len)
    if len(fewer) == len(more):
        return functools.reduce(operator.or_, map(operator.ne, fewer, more))
    outside = [functools.reduce(operator.and_, [end != e for e in more]) for end in fewer]
    return functools.reduce(operator.or_, outside)
