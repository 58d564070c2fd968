"""A table as rows that name their kind, beside the columns that rows of a kind share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from discreet.engine import Frame


@dataclass(frozen=True)
class ByKind:
    """The rows, each with its ids and its kind; and the kinds, each once."""

    rows: Frame
    kinds: Frame
    #: The column that both have.
    on: str

    def joined(self, make: Callable[[Frame], Frame] | None = None) -> Frame:
        """Return rows with the columns of their kind, or with what `make` makes of the kinds.

        `make` has to keep the column that both have.
        """
        kinds = self.kinds if make is None else make(self.kinds)
        found = self.rows.join(kinds, on=self.on, how="inner")
        return found.select(*(n for n in found.collect_schema().names() if n != self.on))
