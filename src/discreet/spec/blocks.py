"""Four of the five building blocks: domain, multiverse, input and output premetric."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from discreet.config import Strict


class Domain(Strict):
    """Which data sets could have been recorded, and at which point of their life.

    Moving the point (raw responses, edited file, sample) changes what is protected:
    nothing that happens before `stage` is covered by the promise.
    """

    records: str
    schema_name: str
    stage: Literal["raw", "edited", "sampled"] = "edited"


class Invariant(Strict):
    """A statistic published exactly, so left outside the promise.

    Two data sets are compared only if they agree on every invariant. The statistic is
    a count of the rows of `of` satisfying `where`, by the columns `by`, in the areas of
    `level`. With `whole_record` the complete records are counted (all their variables,
    members included, location finer than `level` left out).
    """

    name: str
    of: Literal["units", "persons"]
    by: tuple[str, ...] = ()
    level: str
    where: dict[str, list[str]] = Field(default_factory=dict)
    whole_record: bool = False

    def describe(self) -> str:
        """Return the invariant as a phrase."""
        what = "complete records of" if self.whole_record else "number of"
        kinds = "; ".join(f"{name}: {', '.join(codes)}" for name, codes in self.where.items())
        rows = f"{self.of} ({kinds})" if kinds else self.of
        by = f" by {', '.join(self.by)}" if self.by else ""
        return f"{what} {rows}{by}, in every {self.level}"


class Multiverse(Strict):
    """The universes a promise holds in: data sets with equal invariants.

    A larger universe is a stronger promise; every invariant added makes it smaller.
    """

    invariants: tuple[Invariant, ...]


class InputPremetric(Strict):
    """How far apart two data sets are, in changes of one `unit`."""

    name: str
    unit: str
    definition: str


class OutputPremetric(Strict):
    """How far apart two laws of the output are."""

    name: str
    definition: str
