"""The first building block: who is protected.

The domain is the set of all data sets that could have been recorded, at one point of
their life. Everything that happens before that point is outside the promise, so moving
the point changes what is protected (Bailie, Gong and Meng).
"""

from __future__ import annotations

from typing import Literal

from discreet.config import Strict

#: The name of the level that has one area only: the whole.
WHOLE = "all"


class Domain(Strict):
    """Which data sets could have been recorded, and at which point of their life.

    Parameters
    ----------
    records
        What the data sets hold, in words.
    schema_name
        The schema that says which variables and codes exist.
    stage
        The point at which the promise begins: responses as given, the edited file after
        imputation, or a sample of it.
    steps
        What was done to the data before that point (editing, imputation, top-coding).
    spine
        The levels of geography, each nested in the one before; used to tell whether one
        published table follows from another.
    places
        Every other column that follows from where a unit is: areas outside the spine,
        attributes of areas.
    kinds
        All kinds of units there are, for the same purpose.
    """

    records: str
    schema_name: str
    stage: Literal["raw", "edited", "sampled"] = "edited"
    steps: tuple[str, ...] = ()
    spine: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return the domain as a phrase."""
        after = f" after {', '.join(self.steps)}" if self.steps else ""
        return f"{self.records}, {self.stage} file{after} (schema {self.schema_name})"

    def at_or_above(self, level: str, finer: str) -> bool:
        """Tell whether every area of `level` is a union of areas of `finer`."""
        if level in (finer, WHOLE):
            return True
        order = self.spine
        return level in order and finer in order and order.index(level) < order.index(finer)
